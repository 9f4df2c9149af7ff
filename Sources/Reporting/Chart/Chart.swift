/// A chart as one SVG: lines, areas, bars, points or a strip over two axes.
///
/// `svg` draws the chart. Values that are not finite are skipped, with a break in lines. Series of any length
/// are thinned to the resolution in pixels, keeping the smallest and largest value of each pixel. All text is escaped.
/// A chart without anything to draw shows "no data". Colours come from variables with a light and a dark value.
package struct Chart: Sendable, Equatable {
  /// A text description of the chart, for readers who cannot see it; a page also prints it above the chart.
  package var title: String
  package var x: Axis
  package var y: Axis
  package var marks: [Mark]
  /// Shaded parts of the x axis, as the phases of a run.
  package var regions: [Region]
  /// Events on the x axis; ticks along the upper edge.
  package var events: [Event]
  /// Lines across, as a limit or a knee.
  package var rules: [Rule]
  /// Rows with spans instead of marks; `y` then counts for nothing.
  package var strip: Strip?
  /// The height of the plot area, in pixels at full width (720).
  package var height: Int
  /// Whether the x axis has no labels: another chart below has the same axis.
  package var hidesTicks = false

  package init(
    title: String, x: Axis, y: Axis, marks: [Mark], regions: [Region] = [], events: [Event] = [], rules: [Rule] = [],
    height: Int = 200
  ) {
    self.title = title
    self.x = x
    self.y = y
    self.marks = marks
    self.regions = regions
    self.events = events
    self.rules = rules
    self.height = height
  }

  /// Rows of spans over time, coloured by state. Its height follows from the number of rows.
  package init(title: String, x: Axis, strip: Strip, regions: [Region] = [], events: [Event] = []) {
    self.init(title: title, x: x, y: Axis(""), marks: [], regions: regions, events: events)
    self.strip = strip
  }

  /// Whether there is nothing to draw.
  package var isEmpty: Bool {
    if let strip { return strip.rows.allSatisfy { $0.spans.isEmpty } }
    return marks.allSatisfy { !$0.points.contains { $0.x.isFinite && $0.y.isFinite } }
  }

  /// A part of the x axis that is shaded and named.
  package struct Region: Sendable, Equatable {
    package var from: Double
    package var to: Double
    package var label: String
    /// `nil`: every other region is shaded.
    package var isShaded: Bool?

    package init(from: Double, to: Double, label: String, isShaded: Bool? = nil) {
      self.from = from
      self.to = to
      self.label = label
      self.isShaded = isShaded
    }
  }

  /// One or more events near one position of the x axis.
  package struct Event: Sendable, Equatable {
    package var x: Double
    package var count: Int
    /// Its plural name: `errors`.
    package var label: String
    package var color: Color

    package init(x: Double, count: Int = 1, label: String, color: Color = .vermillion) {
      self.x = x
      self.count = count
      self.label = label
      self.color = color
    }
  }

  /// A dashed line across the plot with a word at it.
  package enum Rule: Sendable, Equatable {
    case horizontal(Double, String)
    case vertical(Double, String)
  }
}
