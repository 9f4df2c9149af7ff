import Glibc

/// Places on an axis that are worth a label.
enum Ticks {
  /// Distances between ticks: 1, 2 or 5 times a power of ten; of two for bytes; whole for counts; whole seconds, minutes and hours.
  enum Steps { case decimal, whole, binary, time }

  /// Ticks from at or below `low` to at or above `high`, from 2 to `count` of them.
  static func covering(_ low: Double, _ high: Double, atMost count: Int, steps: Steps = .decimal) -> [Double] {
    let (low, high) = widened(low, high)
    var step = Step(atLeast: (high - low) / Double(max(1, count - 1)), steps)
    var (first, last) = step.around(low, high)
    while last - first > Double(max(1, count - 1)) {
      step = Step(atLeast: step.value * 1.01, steps)
      (first, last) = step.around(low, high)
    }
    return (0...Int(last - first)).map { step.times(first + Double($0)) }
  }

  /// Ticks between two values, `count` of them at most.
  static func inside(_ low: Double, _ high: Double, atMost count: Int, steps: Steps = .decimal) -> [Double] {
    guard high > low else { return [low] }
    let slack = (high - low) * 1e-9
    return covering(low, high, atMost: count + 2, steps: steps).filter { $0 >= low - slack && $0 <= high + slack }
      .thinned(to: count)
  }

  /// Ticks from at or below `low` (above 0) to at or above `high`: powers of ten, also 2 and 5 times these when there are
  /// few, and not every power when there are many.
  static func logarithmic(_ low: Double, _ high: Double, atMost count: Int) -> [Double] {
    let low = low.isFinite ? min(max(low, 1e-250), 1e250) : 1
    let high = high.isFinite ? min(max(high, low), 1e250) : low
    let first = Int(floor(log10(low) + 1e-9))
    var last = Int(ceil(log10(high) - 1e-9))
    if last == first { last += 1 }
    if (last - first) * 3 + 1 <= count {
      let fine = (first...last).flatMap { power in [1.0, 2, 5].map { scaled($0, power) } }
      let lower = fine.lastIndex { $0 <= low * (1 + 1e-9) } ?? 0
      let upper = fine.firstIndex { $0 >= high * (1 - 1e-9) } ?? fine.count - 1
      if upper > lower { return Array(fine[lower...upper]) }
    }
    let count = max(2, count)
    var stride = 1
    func aligned(_ power: Int, _ rule: FloatingPointRoundingRule) -> Int {
      Int((Double(power) / Double(stride)).rounded(rule)) * stride
    }
    while (aligned(last, .up) - aligned(first, .down)) / stride >= count { stride += 1 }
    return Swift.stride(from: aligned(first, .down), through: aligned(last, .up), by: stride).map { scaled(1, $0) }
  }

  /// Shares 0, 50 %, 90 %, 99 % … up to the last one below `highest`.
  static func percentiles(upTo highest: Double) -> [Double] {
    var ticks = [0, 0.5]
    for power in 1...12 {
      let share = 1 - pow(10, -Double(power))
      if share > highest { break }
      ticks.append(share)
    }
    return ticks
  }

  /// m·10^power without the error of a negative power.
  static func scaled(_ value: Double, _ power: Int) -> Double {
    power < 0 ? value / pow(10, Double(-power)) : value * pow(10, Double(power))
  }

  /// A range that is neither empty nor too narrow for numbers of its size.
  private static func widened(_ low: Double, _ high: Double) -> (Double, Double) {
    let low = low.isFinite ? min(max(low, -1e250), 1e250) : 0
    let high = high.isFinite ? min(max(high, low), 1e250) : low
    let size = max(abs(low), abs(high))
    guard high - low <= size * 1e-9 else { return (low, high) }
    return size == 0 ? (0, 1) : (low - size / 2, high + size / 2)
  }
}

/// A distance between ticks, as a fraction so that its multiples are exact.
private struct Step {
  let numerator: Double
  let denominator: Double

  var value: Double { numerator / denominator }

  private init(numerator: Double, denominator: Double) {
    self.numerator = numerator
    self.denominator = denominator
  }

  init(atLeast least: Double, _ steps: Ticks.Steps) {
    switch steps {
    case .time where least > 86_400: self.init(decimal: least / 86_400, times: 86_400)
    case .time where least > 1:
      let steps: [Double] = [
        2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
      ]
      self.init(numerator: steps.first { $0 >= least } ?? 86_400, denominator: 1)
    case .binary where least > 1: self.init(numerator: pow(2, ceil(log2(least) - 1e-9)), denominator: 1)
    case .whole: self.init(decimal: max(1, least), times: 1)
    case .decimal, .binary, .time: self.init(decimal: least, times: 1)
    }
  }

  private init(decimal least: Double, times factor: Double) {
    let power = Int(floor(log10(max(least, 1e-250))))
    let leading = least / Ticks.scaled(1, power)
    let (digit, shift) = [(1.0, 0), (2, 0), (5, 0)].first { $0.0 >= leading * (1 - 1e-9) } ?? (1.0, 1)
    let exponent = power + shift
    self.init(
      numerator: factor * digit * (exponent > 0 ? pow(10, Double(exponent)) : 1),
      denominator: exponent < 0 ? pow(10, Double(-exponent)) : 1)
  }

  func times(_ count: Double) -> Double { count * numerator / denominator }

  /// The multiples at or outside two values.
  func around(_ low: Double, _ high: Double) -> (first: Double, last: Double) {
    let first = floor(low / value + 1e-9)
    return (first, max(first + 1, ceil(high / value - 1e-9)))
  }
}

extension Array where Element == Double {
  /// Every n-th tick, with the smallest n that leaves at most `count`.
  fileprivate func thinned(to count: Int) -> [Double] {
    guard self.count > count, count > 0 else { return self }
    let stride = (self.count + count - 1) / count
    return Swift.stride(from: 0, to: self.count, by: stride).map { self[$0] }
  }
}
