/// The median, the mean of the middle two for an even number; `nil` for no values, or if one is NaN.
package func median(_ values: [Double]) -> Double? {
  guard !values.isEmpty, !values.contains(where: \.isNaN) else { return nil }
  let sorted = values.sorted()
  let half = sorted.count / 2
  // Halved first, so that the sum of two large ones does not overflow.
  return sorted.count % 2 == 1 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2
}

/// The ratio of a value to `base`; `nil` if it is not a number.
package func ratio(_ value: Double, to base: Double) -> Double? {
  let ratio = value / base
  return ratio.isFinite ? ratio : nil
}

func mean(_ values: some Collection<Double>) -> Double { values.reduce(0, +) / Double(values.count) }

/// The variance of a sample: divided by n − 1.
func variance(_ values: some Collection<Double>, mean: Double) -> Double {
  values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count - 1)
}
