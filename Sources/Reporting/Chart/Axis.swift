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
    return unit.text(value)
  }
}
