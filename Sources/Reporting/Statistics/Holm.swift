/// The p values of several tests, corrected so that a false alarm in any test is no more likely than with a single one.
///
/// The smallest is multiplied by their number, the next by one less, and so on; none becomes smaller than its
/// predecessor, or larger than 1. If nothing differs, one of them is below 0.05 in at most 5 % of all cases, however
/// they depend on each other. (Holm, "A simple sequentially rejective multiple test procedure", 1979.)
func holm(_ p: [Double]) -> [Double] {
  var corrected = p
  var largest = 0.0
  for (place, index) in p.indices.sorted(by: { p[$0] < p[$1] }).enumerated() {
    largest = max(largest, min(1, p[index] * Double(p.count - place)))
    corrected[index] = largest
  }
  return corrected
}
