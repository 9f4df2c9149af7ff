import Measurement

/// An axis of a chart: its name, unit and scale.
package struct Axis: Sendable, Equatable {
  package enum Layout: Sendable, Equatable {
    case linear
    /// Values that are not above 0 are left out.
    case logarithmic
    /// Values are shares q from 0 to below 1, laid out as log(1/(1−q)): 50 %, 90 %, 99 %, 99.9 % …
    case percentile
    /// Values are places in this list: 0, 1, 2 …
    case categories([String])
  }

  package var label: String
  package var unit: Unit
  package var layout: Layout
  /// Ends of the axis; `nil`: from the data.
  package var bounds: ClosedRange<Double>?
  /// Whether a linear axis begins at 0 though the data do not; a y axis should.
  package var includesZero: Bool
  /// The time of day of the value 0, in seconds since midnight UTC: labels are then times of day.
  package var clock: Double?

  package init(
    _ label: String, unit: Unit = .plain, layout: Layout = .linear, bounds: ClosedRange<Double>? = nil,
    includesZero: Bool = true
  ) {
    self.label = label
    self.unit = unit
    self.layout = layout
    self.bounds = bounds
    self.includesZero = includesZero
  }

  /// Seconds since the start of a run.
  package static func time(_ label: String = "time since start", bounds: ClosedRange<Double>? = nil) -> Axis {
    Axis(label, unit: .seconds, bounds: bounds, includesZero: false)
  }

  /// Percentiles, so that the tail has room.
  package static func percentile(_ label: String = "percentile") -> Axis {
    Axis(label, unit: .share, layout: .percentile, includesZero: false)
  }

  package static func categories(_ names: [String], label: String = "") -> Axis {
    Axis(label, layout: .categories(names), includesZero: false)
  }

  /// The label of values in tooltips.
  func text(_ value: Double) -> String {
    if case .categories(let names) = layout {
      let index = Int(exactly: value.rounded()) ?? -1
      return names.indices.contains(index) ? names[index] : ""
    }
    return clock.map { ClockTime.text($0 + value * unit.secondsEach, step: 1e-3) } ?? unit.text(value)
  }
}

/// Times of day, for axes.
enum ClockTime {
  /// `03:04:05.678`; without the part of a second if times a step apart differ without it.
  static func text(_ seconds: Double, step: Double) -> String {
    guard seconds.isFinite, abs(seconds) < 1e12 else { return "–" }
    let places = step >= 1 ? 0 : step >= 1e-3 ? 3 : 6
    let parts = [0: 1, 3: 1_000, 6: 1_000_000][places] ?? 1
    let day = seconds - (seconds / 86_400).rounded(.down) * 86_400
    let units = Int(nearest: (day * Double(parts)).rounded())
    let whole = units / parts
    func padded(_ number: Int, _ length: Int) -> String {
      let text = "\(number)"
      return String(repeating: "0", count: max(0, length - text.count)) + text
    }
    let time = [whole / 3_600 % 24, whole / 60 % 60, whole % 60].map { padded($0, 2) }.joined(separator: ":")
    return places == 0 ? time : "\(time).\(padded(units % parts, places))"
  }
}
