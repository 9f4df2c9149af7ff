import Measurement

/// One series of a chart and how it is drawn.
public struct Mark: Sendable, Equatable {
  public enum Shape: Sendable, Equatable {
    case line
    /// A line that keeps its value until the next point.
    case steps
    /// A line with the space below it filled.
    case area
    /// From `low` to `high` of each point, as an interval around a line.
    case band
    /// Those of several marks at one place stand on each other; `width` is in units of the x axis.
    case bars(width: Double)
    /// Dots, with whiskers where a point has `low` and `high`.
    case points
  }

  public var shape: Shape
  /// For the legend, which shows when there are two marks with names.
  public var name: String
  public var points: [Point]
  public var color: Color
  public var isDashed = false

  public init(_ shape: Shape, name: String = "", points: [Point], color: Color = .blue) {
    self.shape = shape
    self.name = name
    self.points = points
    self.color = color
  }

  public static func line(_ name: String = "", _ points: [Point], color: Color = .blue, isDashed: Bool = false) -> Mark
  {
    var mark = Mark(.line, name: name, points: points, color: color)
    mark.isDashed = isDashed
    return mark
  }

  public static func steps(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.steps, name: name, points: points, color: color)
  }

  public static func area(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.area, name: name, points: points, color: color)
  }

  public static func band(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.band, name: name, points: points, color: color)
  }

  public static func bars(_ name: String = "", _ points: [Point], width: Double = 0.7, color: Color = .blue) -> Mark {
    Mark(.bars(width: width), name: name, points: points, color: color)
  }

  public static func points(_ name: String = "", _ points: [Point], color: Color = .blue) -> Mark {
    Mark(.points, name: name, points: points, color: color)
  }

  /// The percentile curve of a histogram, for a chart over `Axis.percentile()`; y is in the histogram's unit as measured:
  /// microseconds for all times, else counts or bytes.
  public static func percentiles(_ name: String = "", of histogram: LatencyHistogram, color: Color = .blue) -> Mark {
    let total = Double(histogram.count)
    var below = 0.0
    var points: [Point] = []
    let counts = histogram.counts
    for (index, pair) in counts.enumerated() {
      let value = index == counts.count - 1 ? histogram.maximum : index == 0 ? histogram.minimum : pair.value
      points.append(Point(below / total, Double(value)))
      below += Double(pair.count)
      // The share of all is at infinity: the largest value stands where half a value more would be.
      points.append(Point(min(below, total - 0.5) / total, Double(value)))
    }
    return Mark(.line, name: name, points: points, color: color)
  }
}

/// A place in a chart, with an interval when it is an estimate.
public struct Point: Sendable, Equatable {
  public var x: Double
  public var y: Double
  public var low: Double?
  public var high: Double?
  /// For its tooltip, in front of the values.
  public var note: String?

  public init(_ x: Double, _ y: Double, low: Double? = nil, high: Double? = nil, note: String? = nil) {
    self.x = x
    self.y = y
    self.low = low
    self.high = high
    self.note = note
  }
}

/// Colours that people who do not see all of them can tell apart, after Okabe and Ito ("Color Universal Design", 2008).
public enum Color: Int, Sendable, CaseIterable {
  case blue = 1
  case orange, green, vermillion, purple, sky, yellow, grey

  /// The n-th of a row of series, from 0.
  public static func number(_ index: Int) -> Color { allCases[((index % 7) + 7) % 7] }
}

/// Rows with spans of time, coloured by what state each was in.
public struct Strip: Sendable, Equatable {
  public struct State: Sendable, Equatable {
    public var name: String
    public var color: Color
    /// Paler than the others: the state that is as it should be.
    public var isQuiet: Bool

    public init(_ name: String, color: Color, isQuiet: Bool = false) {
      self.name = name
      self.color = color
      self.isQuiet = isQuiet
    }
  }

  public struct Span: Sendable, Equatable {
    public var from: Double
    public var to: Double
    /// An index of `states`; a span of any other is left out.
    public var state: Int
    public var note: String?

    public init(from: Double, to: Double, state: Int, note: String? = nil) {
      self.from = from
      self.to = to
      self.state = state
      self.note = note
    }
  }

  public struct Row: Sendable, Equatable {
    public var label: String
    public var spans: [Span]

    public init(label: String, spans: [Span]) {
      self.label = label
      self.spans = spans
    }
  }

  /// Where spans share a pixel the one with the later state is seen: put the important ones last.
  public var states: [State]
  public var rows: [Row]
  /// The name of a row: `connection`.
  public var rowName: String

  public init(states: [State], rows: [Row], rowName: String = "") {
    self.states = states
    self.rows = rows
    self.rowName = rowName
  }
}
