import Measurement

/// One series of a chart and how it is drawn.
package struct Mark: Sendable, Equatable {
  package enum Shape: Sendable, Equatable {
    case line
    /// A line that keeps its value until the next point.
    case steps
    /// A line with the space below it filled.
    case area
    /// The area from `low` to `high` of each point, as an interval around a line.
    case band
    /// Bars; those of several marks at one position are stacked. `width` is in units of the x axis.
    case bars(width: Double)
    /// Dots, with whiskers where a point has `low` and `high`.
    case points
  }

  package var shape: Shape
  /// The name in the legend, which is shown if two or more marks have names.
  package var name: String
  package var points: [Point]
  package var color: Color
  package var isDashed = false

  package init(_ shape: Shape, name: String = "", points: [Point], color: Color = .blue) {
    self.shape = shape
    self.name = name
    self.points = points
    self.color = color
  }

  package static func line(_ name: String = "", _ points: [Point], color: Color = .blue, isDashed: Bool = false) -> Mark
  {
    var mark = Mark(.line, name: name, points: points, color: color)
    mark.isDashed = isDashed
    return mark
  }

  package static func steps(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.steps, name: name, points: points, color: color)
  }

  package static func area(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.area, name: name, points: points, color: color)
  }

  package static func band(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.band, name: name, points: points, color: color)
  }

  package static func bars(_ name: String = "", _ points: [Point], width: Double = 0.7, color: Color = .blue) -> Mark {
    Mark(.bars(width: width), name: name, points: points, color: color)
  }

  package static func points(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.points, name: name, points: points, color: color)
  }

  /// The percentile curve of a histogram, for a chart over `Axis.percentile()`; y is in the histogram's unit of
  /// measurement: microseconds for times, otherwise counts or bytes.
  package static func percentiles(_ name: String = "", of histogram: LatencyHistogram, color: Color = .blue) -> Mark {
    let total = Double(histogram.count)
    var below = 0.0
    var points: [Point] = []
    let counts = histogram.counts
    for (index, pair) in counts.enumerated() {
      let value = index == counts.count - 1 ? histogram.maximum : index == 0 ? histogram.minimum : pair.value
      points.append(Point(below / total, Double(value)))
      below += Double(pair.count)
      // The share 1 is at infinity, so the largest value is drawn half a value earlier.
      points.append(Point(min(below, total - 0.5) / total, Double(value)))
    }
    return Mark(.line, name: name, points: points, color: color)
  }
}

/// A place in a chart, with an interval when it is an estimate.
package struct Point: Sendable, Equatable {
  package var x: Double
  package var y: Double
  package var low: Double?
  package var high: Double?
  /// The beginning of its tooltip, before the values.
  package var note: String?

  package init(_ x: Double, _ y: Double, low: Double? = nil, high: Double? = nil, note: String? = nil) {
    self.x = x
    self.y = y
    self.low = low
    self.high = high
    self.note = note
  }
}

/// Colours that remain distinct with defective colour vision, after Okabe and Ito ("Color Universal Design", 2008).
package enum Color: Int, Sendable, CaseIterable {
  case blue = 1
  case orange, green, vermillion, purple, sky, yellow, grey

  /// The n-th of a row of series, from 0.
  package static func number(_ index: Int) -> Color { allCases[((index % 7) + 7) % 7] }
}

/// Rows with spans of time, coloured by what state each was in.
package struct Strip: Sendable, Equatable {
  package struct State: Sendable, Equatable {
    package var name: String
    package var color: Color
    /// Drawn paler than the others: the normal state.
    package var isQuiet: Bool

    package init(_ name: String, color: Color, isQuiet: Bool = false) {
      self.name = name
      self.color = color
      self.isQuiet = isQuiet
    }
  }

  package struct Span: Sendable, Equatable {
    package var from: Double
    package var to: Double
    /// An index of `states`; a span of any other is left out.
    package var state: Int
    package var note: String?

    package init(from: Double, to: Double, state: Int, note: String? = nil) {
      self.from = from
      self.to = to
      self.state = state
      self.note = note
    }
  }

  package struct Row: Sendable, Equatable {
    package var label: String
    package var spans: [Span]

    package init(label: String, spans: [Span]) {
      self.label = label
      self.spans = spans
    }
  }

  /// The states by ascending importance: if spans share a pixel, the later state is shown.
  package var states: [State]
  package var rows: [Row]
  /// The name of a row: `connection`.
  package var rowName: String

  package init(states: [State], rows: [Row], rowName: String = "") {
    self.states = states
    self.rows = rows
    self.rowName = rowName
  }
}
