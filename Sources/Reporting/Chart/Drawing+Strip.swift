/// Rows of spans.
extension Drawing {
  /// Up to this many spans are separate elements with tooltips; more are painted pixel by pixel.
  private static let exactSpans = 1_500
  /// Maximum number of painted runs, about 10 bytes each, which bounds the size of a chart with many rows.
  private static let paintedRuns = 24_000

  mutating func draw(_ strip: Strip) {
    let height = (layout.bottom - layout.top) / Double(max(1, strip.rows.count))
    if strip.rows.reduce(0, { $0 + $1.spans.count }) <= Self.exactSpans {
      exact(strip, height)
    } else {
      painted(strip, height)
    }
  }

  mutating func labels(_ strip: Strip) {
    let height = (layout.bottom - layout.top) / Double(max(1, strip.rows.count))
    var end = (wide: -Double.infinity, narrow: -Double.infinity)
    for (index, row) in strip.rows.enumerated() {
      let place = layout.top + (Double(index) + 0.5) * height
      guard place - end.wide >= 15 else { continue }
      end.wide = place
      let fitsNarrow = place - end.narrow >= 24
      if fitsNarrow { end.narrow = place }
      let label = row.label.count > 11 ? row.label.prefix(10) + "…" : row.label[...]
      add(
        "<text class=\"e\(fitsNarrow ? "" : " w")\" x=\"\(n(layout.left - 7))\" y=\"\(n(place))\" dy=\".34em\">\(Markup.escaped(String(label)))</text>"
      )
    }
  }

  private mutating func exact(_ strip: Strip, _ height: Double) {
    let gap = height > 8 ? 3.0 : height > 4 ? 1 : 0
    for (index, row) in strip.rows.enumerated() {
      let top = layout.top + Double(index) * height + gap / 2
      let spans = row.spans.filter { strip.states.indices.contains($0.state) }
      for span in spans.sorted(by: { ($0.state, $0.from) < ($1.state, $1.from) }) {
        guard let from = x.clamped(span.from), let to = x.clamped(span.to), to >= from else { continue }
        let state = strip.states[span.state]
        let words = [
          "\(strip.rowName.isEmpty ? "" : strip.rowName + " ")\(row.label): \(state.name)",
          "\(chart.x.text(span.from)) to \(chart.x.text(span.to)), \(chart.x.text(span.to - span.from))",
          span.note ?? "",
        ]
        // Never thinner than can be seen, and inside the plot.
        let width = max(to - from, 1)
        add(
          "<rect class=\"f\(state.color.rawValue)\(state.isQuiet ? " q" : "")\" x=\"\(n(min(from, layout.right - width)))\" y=\"\(n(top))\" width=\"\(n(width))\" height=\"\(n(height - gap))\">\(title(words.filter { !$0.isEmpty }.joined(separator: "\n")))</rect>"
        )
      }
    }
  }

  /// Each pixel of a row shows that of its states which is last in `states`, so that short but important states stay
  /// visible.
  private mutating func painted(_ strip: Strip, _ height: Double) {
    var columns = Int(layout.right - layout.left)
    var runs = Self.runs(strip, x, layout, columns)
    while runs.count > Self.paintedRuns, columns > 40 {
      columns /= 2
      runs = Self.runs(strip, x, layout, columns)
    }
    let width = (layout.right - layout.left) / Double(columns)
    let gap = height > 8 ? 3.0 : height > 4 ? 1 : 0
    for (index, state) in strip.states.enumerated() {
      var data = ""
      for run in runs where run.state == index {
        let top = layout.top + Double(run.row) * height + gap / 2 + (height - gap) / 2
        data += "M\(n(layout.left + Double(run.from) * width)) \(n(top))h\(n(Double(run.to - run.from) * width))"
      }
      guard !data.isEmpty else { continue }
      add(
        "<path class=\"p c\(state.color.rawValue)\(state.isQuiet ? " q" : "")\" stroke-width=\"\(Self.hundredths(height - gap))\" d=\"\(data)\">\(title(state.name))</path>"
      )
    }
  }

  private static func hundredths(_ value: Double) -> String { decimal(value, 2) }

  private struct Run {
    var row: Int
    var from: Int
    var to: Int
    var state: Int
  }

  private static func runs(_ strip: Strip, _ x: Scale, _ layout: Layout, _ columns: Int) -> [Run] {
    let width = (layout.right - layout.left) / Double(columns)
    var runs: [Run] = []
    for (index, row) in strip.rows.enumerated() {
      var cells = [Int](repeating: -1, count: columns)
      for span in row.spans where strip.states.indices.contains(span.state) {
        guard let from = x.clamped(span.from), let to = x.clamped(span.to), to >= from else { continue }
        let first = min(columns - 1, Int((from - layout.left) / width))
        let last = min(columns - 1, max(first, Int(((to - layout.left) / width).rounded(.up)) - 1))
        for cell in first...last where cells[cell] < span.state { cells[cell] = span.state }
      }
      var start = 0
      for cell in 1...columns where cell == columns || cells[cell] != cells[start] {
        if cells[start] >= 0 { runs.append(Run(row: index, from: start, to: cell, state: cells[start])) }
        start = cell
      }
    }
    return runs
  }
}
