/// The frame of a chart: axes, regions, events, legend.
extension Drawing {
  mutating func axes() {
    if chart.strip == nil {
      for tick in y.ticks {
        guard let place = y(tick) else { continue }
        add(
          "<path class=\"\(tick == y.ticks.first ? "x" : "g")\" d=\"M\(n(layout.left)) \(n(place))H\(n(layout.right))\"/>"
        )
        add(
          "<text class=\"e\" x=\"\(n(layout.left - 7))\" y=\"\(n(place))\" dy=\".34em\">\(Markup.escaped(y.label(tick)))</text>"
        )
      }
    } else {
      add("<path class=\"x\" d=\"M\(n(layout.left)) \(n(layout.bottom))H\(n(layout.right))\"/>")
    }
    add("<g class=\"t\">")
    xTicks()
    add("</g>")
    let name = chart.strip?.rowName ?? chart.y.label
    if !name.isEmpty { add("<text x=\"2\" y=\"\(n(layout.nameLine))\">\(Markup.escaped(name))</text>") }
    if !chart.x.label.isEmpty, !chart.hidesTicks {
      add(
        "<text class=\"e\" x=\"\(n(layout.right))\" y=\"\(n(layout.bottom + 9))\" dy=\"2.25em\">\(Markup.escaped(chart.x.label))</text>"
      )
    }
  }

  /// Labels that do not touch each other; fewer when the screen is narrow.
  private mutating func xTicks() {
    var ends = (wide: -Double.infinity, narrow: -Double.infinity)
    for tick in x.ticks {
      guard let place = x.inside(tick) else { continue }
      let label = x.label(tick)
      let half = Double(label.count) * Layout.letter / 2
      // Otherwise the last label might extend beyond the picture's edge.
      let beyond = place + half * Layout.narrow > Layout.width
      func start(_ size: Double) -> Double { beyond ? Layout.width - 1 - 2 * half * size : place - half * size }
      guard start(Layout.middling) > ends.wide + 4 else { continue }
      ends.wide = place + half * Layout.middling
      let fitsNarrow = start(Layout.narrow) > ends.narrow + (beyond ? 20 : 10)
      if fitsNarrow { ends.narrow = place + half * Layout.narrow }
      add("<path class=\"x\" d=\"M\(n(place)) \(n(layout.bottom))v5\"/>")
      if chart.hidesTicks { continue }
      let anchor = beyond ? "e" : "m"
      add(
        "<text class=\"\(anchor)\(fitsNarrow ? "" : " w")\" x=\"\(n(beyond ? Layout.width - 1 : place))\" y=\"\(n(layout.bottom + 6))\" dy=\"1em\">\(Markup.escaped(label))</text>"
      )
    }
  }

  mutating func regions() {
    for (index, region) in chart.regions.enumerated() {
      guard let from = x.clamped(region.from), let to = x.clamped(region.to), to > from else { continue }
      let shade = region.isShaded ?? (index % 2 == 0) ? "s" : "h"
      add(
        "<rect class=\"\(shade)\" x=\"\(n(from))\" y=\"\(n(layout.top))\" width=\"\(n(to - from))\" height=\"\(n(layout.bottom - layout.top))\"/>"
      )
    }
  }

  /// Names of the regions; over the data, so that they can be read.
  mutating func regionLabels() {
    for region in chart.regions where !region.label.isEmpty {
      guard let from = x.clamped(region.from), let to = x.clamped(region.to) else { continue }
      let length = Double(region.label.count) * Layout.letter + 8
      guard to - from >= length else { continue }
      let isNarrow = to - from >= length * Layout.narrow
      add(
        "<text class=\"m o\(isNarrow ? "" : " w")\" data-at=\"\(n((from + to) / 2))\" x=\"\(n((from + to) / 2))\" y=\"\(n(layout.top + 14))\">\(Markup.escaped(region.label))</text>"
      )
    }
  }

  mutating func events() {
    var columns: [Int: (count: Int, first: Chart.Event)] = [:]
    for event in chart.events {
      guard let place = x.inside(event.x) else { continue }
      // Counts of a document may be anything.
      let (sum, overflow) = columns[Int(place / 2), default: (0, event)].count
        .addingReportingOverflow(max(0, event.count))
      columns[Int(place / 2), default: (0, event)].count = overflow ? .max : sum
    }
    for (column, events) in columns.sorted(by: { $0.key < $1.key }) {
      let text = "\(grouped(events.count)) \(events.first.label) at \(chart.x.text(events.first.x))"
      let color = events.first.color.rawValue
      add("<path class=\"v c\(color)\" d=\"M\(column * 2 + 1) \(n(layout.top - 10))v9\">\(title(text))</path>")
    }
  }

  mutating func verticalRules() {
    for case .vertical(let value, _) in chart.rules {
      guard let place = x.inside(value) else { continue }
      add("<path class=\"u\" d=\"M\(n(place)) \(n(layout.top))V\(n(layout.bottom))\"/>")
    }
  }

  mutating func rules() {
    for rule in chart.rules {
      switch rule {
      case .horizontal(let value, let label):
        guard let place = y.inside(value) else { continue }
        add("<path class=\"u\" d=\"M\(n(layout.left)) \(n(place))H\(n(layout.right))\"/>")
        let base = place - 5 < layout.top + 10 ? place + 15 : place - 5
        add("<text class=\"e o\" x=\"\(n(layout.right - 4))\" y=\"\(n(base))\">\(Markup.escaped(label))</text>")
      case .vertical(let value, let label):
        guard let place = x.inside(value), !label.isEmpty else { continue }
        let fits = place + Double(label.count) * Layout.letter * Layout.narrow + 5 < Layout.width
        add(
          "<text class=\"\(fits ? "o" : "e o")\" data-at=\"\(n(fits ? place + 5 : place - 5))\" x=\"\(n(fits ? place + 5 : place - 5))\" y=\"\(n(layout.top + 14))\">\(Markup.escaped(label))</text>"
        )
      }
    }
  }

  /// One line of text per row, which wraps: it fits with larger letters too.
  mutating func legend() {
    for (index, row) in layout.legend.enumerated() {
      let line = layout.legendIsBesideName ? layout.nameLine : Double(index + 1) * 21 - 3
      let place = layout.legendIsBesideName ? ("e", layout.right) : ("", 2)
      let words = row.enumerated().map { index, entry in
        "\(index == 0 ? "" : "\u{2002} ")<tspan class=\"f\(entry.color.rawValue)\(entry.isQuiet ? " q" : "")\">\(entry.isDashed ? "╌╌" : "■")</tspan> \(Markup.escaped(entry.name))"
      }
      add("<text class=\"k \(place.0)\" x=\"\(n(place.1))\" y=\"\(n(line))\">\(words.joined())</text>")
    }
  }
}
