/// Where a series becomes steady, by MSER-5: the beginning that is best left out is the one without which the mean of
/// the rest is known best.
///
/// The series is cut into means of 5 values; of those left when the first d are dropped, the squared standard error
/// Σ(Z − Z̄)²/(m − d)² is smallest at the end of the warm-up. (White, "An effective truncation heuristic for bias
/// reduction in simulation output", 1997; White, Cobb and Spratt, 2000.)
public enum WarmUp: Sendable, Equatable {
  /// Steady from this value on, counted from 0.
  case settled(at: Int)
  /// The smallest error is in the second half: what is left then is too little to be called steady.
  case neverSettles
  /// Fewer than 10 means of 5 values.
  case tooShort

  /// Values that are taken together.
  public static let group = 5

  public init(_ values: [Double]) {
    let count = values.count / Self.group
    guard count >= 10, values.allSatisfy(\.isFinite) else {
      self = .tooShort
      return
    }
    let means = (0..<count).map { mean(values[$0 * Self.group..<($0 + 1) * Self.group]) }
    // From the end, so that each error takes one step: Welford's sums.
    var (best, at) = (Double.infinity, 0)
    var (sum, middle, left) = (0.0, 0.0, 0.0)
    for index in means.indices.reversed() {
      left += 1
      let distance = means[index] - middle
      middle += distance / left
      sum += distance * (means[index] - middle)
      // A few at the end are alike by chance.
      guard left >= Double(max(5, count / 4)) else { continue }
      let error = sum / (left * left)
      if error <= best { (best, at) = (error, index) }
    }
    self = at <= count / 2 ? .settled(at: at * Self.group) : .neverSettles
  }
}
