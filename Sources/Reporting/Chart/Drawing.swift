/// The drawing of one chart: its layout, and the elements so far.
struct Drawing {
  let chart: Chart
  let layout: Layout
  let x: Scale
  let y: Scale
  private(set) var text = ""

  init(_ chart: Chart) {
    self.chart = chart
    let layout = Layout(chart)
    self.layout = layout
    let values = Values(chart)
    let isBars = chart.marks.contains { if case .bars = $0.shape { true } else { false } }
    x = Scale(
      chart.x, values: values.x, from: layout.left, to: layout.right, roomForTicks: 9,
      endsAtTicks: chart.x.layout == .linear && chart.x.includesZero && !isBars)
    y = Scale(
      chart.y, values: values.y, from: layout.bottom, to: layout.top,
      roomForTicks: chart.height < 60 ? 2 : max(4, chart.height / 34),
      endsAtTicks: true, hasHeadroom: !chart.regions.isEmpty)
  }

  mutating func add(_ element: String) { text += element + "\n" }

  mutating func draw() {
    inPlot { $0.regions() }
    axes()
    inPlot {
      if $0.chart.isEmpty { return }
      if let strip = $0.chart.strip { $0.draw(strip) } else { $0.marks() }
      $0.verticalRules()
      $0.events()
    }
    if chart.isEmpty {
      add("<text class=\"m\" x=\"\(n(layout.middle))\" y=\"\(n((layout.top + layout.bottom) / 2 + 4))\">no data</text>")
    }
    if let strip = chart.strip { labels(strip) }
    dots()
    rules()
    regionLabels()
    legend()
  }

  /// Draws into a picture of its own in the place of the plot. A zoom shows a part of it at the plot's whole width, so
  /// it has no text and no circles, which would be stretched.
  private mutating func inPlot(_ draw: (inout Drawing) -> Void) {
    let before = text.utf8.count
    let (x, y) = (layout.left, layout.top - 12)
    let (width, height) = (layout.right - layout.left, layout.bottom - layout.top + 14)
    let box = "\(n(x)) \(n(y)) \(n(width)) \(n(height))"
    let start =
      "<svg class=\"z\" x=\"\(n(x))\" y=\"\(n(y))\" width=\"\(n(width))\" height=\"\(n(height))\" viewBox=\"\(box)\" preserveAspectRatio=\"none\">"
    add(start)
    let inside = text.utf8.count
    draw(&self)
    if text.utf8.count == inside {
      text.removeLast(inside - before)
    } else {
      add("</svg>")
    }
  }

  func n(_ value: Double) -> String { Markup.number(value) }

  /// A tooltip, as the child of an element.
  func title(_ text: String) -> String { "<title>\(Markup.escaped(text))</title>" }

  /// Places of everything, in the picture's own units: 720 across.
  struct Layout {
    static let width = 720.0
    /// The approximate width of a label's letter at full width.
    static let letter = 5.8
    /// The factor by which letters are larger on a medium-sized screen, which shows the same labels as a wide one.
    static let middling = 13 / 10.5
    /// The factor by which letters are larger on a narrow screen.
    static let narrow = 18.0 / 10.5

    let left: Double
    let right: Double
    let top: Double
    let bottom: Double
    let fullHeight: Double
    /// Baseline of the y axis' name, and of the legend's rows.
    let nameLine: Double
    let legend: [[Legend]]
    let legendIsBesideName: Bool

    struct Legend: Equatable {
      var name: String
      var color: Color
      var isDashed = false
      var isQuiet = false
    }

    var middle: Double { (left + right) / 2 }

    init(_ chart: Chart) {
      let strip = chart.strip
      left = 86
      right = Self.width - 14
      var entries: [Legend] = []
      if let strip {
        entries = strip.states.map { Legend(name: $0.name, color: $0.color, isQuiet: $0.isQuiet) }
      } else {
        let named = chart.marks.filter { !$0.name.isEmpty }
        for mark in named where named.count > 1 {
          let entry = Legend(name: mark.name, color: mark.color, isDashed: mark.isDashed)
          if !entries.contains(entry) { entries.append(entry) }
        }
      }
      let name = strip?.rowName ?? chart.y.label
      // A legend that fits on a narrow screen fits on a wide one.
      let lettersPerLine = Int(Self.width / (Self.letter * Self.narrow))
      func letters(_ entries: [Legend]) -> Int { entries.reduce(0) { $0 + $1.name.count + 5 } }
      legendIsBesideName = letters(entries) + name.count + 3 <= lettersPerLine
      var rows: [[Legend]] = []
      for entry in entries {
        if let row = rows.last, letters(row + [entry]) <= lettersPerLine || legendIsBesideName {
          rows[rows.count - 1] = row + [entry]
        } else {
          rows.append([entry])
        }
      }
      legend = rows
      let lines = legendIsBesideName || rows.isEmpty ? 1 : rows.count + 1
      nameLine = Double(lines) * 21 - 3
      top = nameLine + (chart.events.isEmpty ? 15 : 19)
      bottom = top + (strip.map(Self.height) ?? Double(max(40, chart.height)))
      fullHeight = bottom + (chart.hidesTicks ? 10 : chart.x.label.isEmpty ? 30 : 54)
    }

    /// The height of all rows.
    static func height(of strip: Strip) -> Double {
      let rows = Double(max(1, strip.rows.count))
      return max(48, rows * rowHeight(strip))
    }

    static func rowHeight(_ strip: Strip) -> Double {
      let rows = Double(max(1, strip.rows.count))
      return rows <= 16 ? 20 : max(320 / rows, min(3, 560 / rows))
    }
  }

  /// Smallest and largest values to be drawn.
  private struct Values {
    private(set) var x: ClosedRange<Double>?
    private(set) var y: ClosedRange<Double>?

    init(_ chart: Chart) {
      for mark in chart.marks {
        var half = 0.0
        if case .bars(let width) = mark.shape { half = width / 2 }
        for point in mark.points {
          Self.include(point.x - half, in: &x, chart.x)
          Self.include(point.x + half, in: &x, chart.x)
          for value in [point.y, point.low, point.high] {
            if let value { Self.include(value, in: &y, chart.y) }
          }
        }
      }
      for stack in BarStacks(chart.marks).stacks { Self.include(stack.total, in: &y, chart.y) }
      for row in chart.strip?.rows ?? [] {
        for span in row.spans {
          Self.include(span.from, in: &x, chart.x)
          Self.include(span.to, in: &x, chart.x)
        }
      }
      for rule in chart.rules {
        switch rule {
        case .horizontal(let value, _): Self.include(value, in: &y, chart.y)
        case .vertical(let value, _): Self.include(value, in: &x, chart.x)
        }
      }
    }

    private static func include(_ value: Double, in range: inout ClosedRange<Double>?, _ axis: Axis) {
      guard value.isFinite, abs(value) < 1e250, axis.layout != .logarithmic || value > 0,
        axis.layout != .percentile || value < 1
      else { return }
      range = min(range?.lowerBound ?? value, value)...max(range?.upperBound ?? value, value)
    }
  }
}
