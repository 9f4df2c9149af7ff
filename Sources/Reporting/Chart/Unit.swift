/// The units of numbers, and how they are written.
package enum Unit: Sendable, Equatable {
  /// A number as it is: a ratio, cores.
  case plain
  /// Things, written with k, M and G on axes and in full in text.
  case count
  /// Things per second.
  case perSecond
  /// Times by the unit of their values; formatted in µs, ms, s, min, h or d.
  case seconds, milliseconds, microseconds
  /// Written in B, KiB, MiB …
  case bytes
  case bytesPerSecond
  /// 0…1, written in percent.
  case share

  /// A value in full: `12,345/s`, `1.25 ms`, `64.0 KiB`. NaN is "–".
  package func text(_ value: Double) -> String {
    guard value.isFinite else { return "–" }
    switch self {
    case .plain: return significant(value, 4)
    case .count: return value == value.rounded() ? grouped(value) : significant(value, 3)
    case .perSecond:
      return (abs(value) >= 100 || value == value.rounded() ? grouped(value) : significant(value, 3)) + "/s"
    case .share:
      // A share below 1 is not rounded to 100 %.
      let digits = (3...9).first { value >= 1 || significant(value * 100, $0) != "100" } ?? 9
      return significant(value * 100, digits) + " %"
    case .seconds, .milliseconds, .microseconds, .bytes, .bytesPerSecond:
      let scale = scale(for: value)
      let scaled = value / scale.divisor
      let isWhole = scale.suffix == " B" || scale.suffix == " B/s"
      return (isWhole && scaled == scaled.rounded() ? grouped(scaled) : significant(scaled, 3)) + scale.suffix
    }
  }

  /// The divisor of values of this size, and their suffix.
  func scale(for largest: Double) -> (divisor: Double, suffix: String) {
    let size = abs(largest)
    func pick(_ steps: [(from: Double, suffix: String)], _ end: String = "") -> (Double, String) {
      let step = steps.last { size >= $0.from } ?? steps[0]
      return (step.from == 0 ? 1 : step.from, step.suffix + end)
    }
    func thousands(_ end: String) -> (divisor: Double, suffix: String) {
      switch size {
      case ..<1e4: (1, end)
      case ..<1e6: (1e3, " k" + end)
      case ..<1e9: (1e6, " M" + end)
      default: (1e9, " G" + end)
      }
    }
    switch self {
    case .plain: return (1, "")
    case .count: return thousands("")
    case .perSecond: return thousands("/s")
    case .share: return (0.01, " %")
    case .bytes: return pick(Self.binary)
    case .bytesPerSecond: return pick(Self.binary, "/s")
    case .seconds, .milliseconds, .microseconds:
      let perSecond = 1 / secondsEach
      switch size / perSecond {
      case 0: return (1, self == .seconds ? " s" : self == .milliseconds ? " ms" : " µs")
      // A nanosecond below the boundary, so that values that round to a whole unit use it.
      case ..<0.000_999_9: return (1e-6 * perSecond, " µs")
      case ..<0.999_9: return (1e-3 * perSecond, " ms")
      case ..<120: return (perSecond, " s")
      case ..<7_200: return (60 * perSecond, " min")
      case ..<172_800: return (3_600 * perSecond, " h")
      default: return (86_400 * perSecond, " d")
      }
    }
  }

  private static let binary: [(from: Double, suffix: String)] = [
    (0, " B"), (1_024, " KiB"), (1_048_576, " MiB"), (1_073_741_824, " GiB"), (1_099_511_627_776, " TiB"),
  ]

  /// Seconds per unit; 1 for units other than times.
  var secondsEach: Double {
    switch self {
    case .milliseconds: 1e-3
    case .microseconds: 1e-6
    default: 1
    }
  }

  var isTime: Bool { self == .seconds || self == .milliseconds || self == .microseconds }
}
