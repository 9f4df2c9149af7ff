import Glibc

/// Converts values of an axis to coordinates.
struct Scale {
  let axis: Axis
  /// Ends of the axis as values.
  let low: Double
  let high: Double
  /// The coordinates of the axis' ends.
  let from: Double
  let to: Double
  let ticks: [Double]

  /// - Parameters:
  ///   - values: smallest and largest value; `nil` without values.
  ///   - roomForTicks: the number of labels that fit.
  ///   - endsAtTicks: the axis ends at ticks, otherwise at the values.
  ///   - hasHeadroom: the axis extends beyond the largest value, where there is text.
  init(
    _ axis: Axis, values: ClosedRange<Double>?, from: Double, to: Double, roomForTicks: Int, endsAtTicks: Bool,
    hasHeadroom: Bool = false
  ) {
    self.axis = axis
    self.from = from
    self.to = to
    let given = axis.bounds ?? values ?? 0...1
    switch axis.layout {
    case .categories(let names):
      (low, high) = (-0.5, Double(max(1, names.count)) - 0.5)
      ticks = names.indices.map(Double.init)
    case .percentile:
      low = 0
      high = min(max(given.upperBound, 0.9), 1 - 1e-12)
      ticks = Ticks.percentiles(upTo: high)
    case .logarithmic:
      ticks = Ticks.logarithmic(given.lowerBound, given.upperBound, atMost: roomForTicks)
      (low, high) = (ticks.first ?? 1, ticks.last ?? 10)
    case .linear:
      var (first, last) = (given.lowerBound, given.upperBound)
      if axis.bounds == nil, axis.includesZero { (first, last) = (min(0, first), max(0, last)) }
      if axis.bounds == nil, hasHeadroom { last += (last - first) * 0.04 }
      let each = axis.unit.secondsEach
      let steps: Ticks.Steps =
        axis.unit.isTime && (last - first) * each > 60
        ? .time
        : axis.unit == .bytes || axis.unit == .bytesPerSecond ? .binary : axis.unit == .count ? .whole : .decimal
      if endsAtTicks {
        ticks = Ticks.covering(first * each, last * each, atMost: roomForTicks, steps: steps).map { $0 / each }
        (low, high) = (ticks.first ?? 0, ticks.last ?? 1)
      } else {
        if last <= first { last = first + 1 }
        let start = axis.clock ?? 0
        // Times of day are long.
        let room = axis.clock == nil ? roomForTicks : min(6, roomForTicks)
        ticks = Ticks.inside(start + first * each, start + last * each, atMost: room, steps: steps).map {
          ($0 - start) / each
        }
        (low, high) = (first, last)
      }
    }
  }

  /// The coordinate of a value; `nil` if it is outside of the scale's domain.
  func callAsFunction(_ value: Double) -> Double? {
    guard let share = share(value), share.isFinite else { return nil }
    return from + (to - from) * share
  }

  /// The coordinate of a value, clamped to the axis.
  func clamped(_ value: Double) -> Double? {
    self(value).map { min(max($0, min(from, to)), max(from, to)) }
  }

  /// The coordinate of a value that is on the axis; `nil` for any other.
  func inside(_ value: Double) -> Double? {
    self(value).flatMap { $0 >= min(from, to) - 0.5 && $0 <= max(from, to) + 0.5 ? $0 : nil }
  }

  /// The value at a coordinate.
  func value(at coordinate: Double) -> Double {
    let share = (coordinate - from) / (to - from)
    switch axis.layout {
    case .linear, .categories: return low + (high - low) * share
    case .logarithmic: return low * pow(high / low, share)
    case .percentile: return 1 - pow(1 - high, share)
    }
  }

  private func share(_ value: Double) -> Double? {
    guard value.isFinite else { return nil }
    switch axis.layout {
    case .linear, .categories: return (value - low) / (high - low)
    case .logarithmic: return value > 0 ? log(value / low) / log(high / low) : nil
    case .percentile: return value >= 0 && value < 1 ? log(1 - value) / log(1 - high) : nil
    }
  }

  /// The label of a tick.
  func label(_ tick: Double) -> String {
    switch axis.layout {
    case .categories: return axis.text(tick)
    case .percentile: return decimal(tick * 100, 10) + " %"
    case .logarithmic:
      let scale = axis.unit.scale(for: tick)
      return decimal(tick / scale.divisor, 12) + Self.short(scale.suffix)
    case .linear:
      if let clock = axis.clock {
        let step = ticks.count > 1 ? abs(ticks[1] - ticks[0]) : high - low
        return ClockTime.text(clock + tick * axis.unit.secondsEach, step: step * axis.unit.secondsEach * (1 + 1e-9))
      }
      if tick == 0 { return "0" }
      let scale = axis.unit.scale(for: max(abs(low), abs(high)))
      return decimal(tick / scale.divisor, 9) + Self.short(scale.suffix)
    }
  }

  /// The suffix without "/s", which is in the axis' name, so that labels are short.
  private static func short(_ suffix: String) -> String {
    suffix.hasSuffix("/s") ? String(suffix.dropLast(2)) : suffix
  }
}
