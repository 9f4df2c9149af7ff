import Glibc

/// Quantiles that intervals are made of.
enum Distributions {
  /// P(Z ≤ z) of the normal distribution.
  static func normal(below z: Double) -> Double { 0.5 * erfc(-z / 2.0.squareRoot()) }

  /// z so that P(|Z| ≤ z) = `share`, for a share from 0 to less than 1.
  static func normalBound(_ share: Double) -> Double {
    bisected { 1 - erfc($0 / 2.0.squareRoot()) < share }
  }

  /// t so that P(|T| ≤ t) = `share` with `degrees` (from 1) of freedom, for a share from 0 to less than 1.
  static func studentBound(_ share: Double, degrees: Int) -> Double {
    // From here on the t and normal distributions differ by less than 0.01 %.
    degrees > 10_000 ? normalBound(share) : bisected { student(within: $0, degrees: degrees) < share }
  }

  /// P(|T| ≤ t), by the finite sums over powers of cos θ, θ = atan(t/√ν) (Abramowitz and Stegun, 26.7.3 and 26.7.4).
  static func student(within t: Double, degrees: Int) -> Double {
    let angle = atan(t / Double(degrees).squareRoot())
    let square = cos(angle) * cos(angle)
    let isOdd = degrees % 2 == 1
    var (term, sum) = (isOdd ? cos(angle) : 1.0, 0.0)
    for power in stride(from: isOdd ? 1 : 0, through: degrees - 2, by: 2) {
      sum += term
      term *= square * Double(power + 1) / Double(power + 2)
    }
    return isOdd ? 2 / .pi * (angle + sin(angle) * sum) : sin(angle) * sum
  }

  /// The point up to which a condition holds that is true at 0, by bisection.
  private static func bisected(_ isBelow: (Double) -> Bool) -> Double {
    var (low, high) = (0.0, 1.0)
    while isBelow(high), high < 1e12 { (low, high) = (high, high * 2) }
    for _ in 0..<100 {
      let middle = (low + high) / 2
      if isBelow(middle) { low = middle } else { high = middle }
    }
    return high
  }
}
