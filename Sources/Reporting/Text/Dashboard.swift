/// A screen of figures over time, each with its course as a row of bars, for a terminal that is redrawn.
package struct Dashboard: Sendable {
  /// A figure and its course.
  package struct Row: Sendable {
    package var name: String
    /// The latest value as it is shown.
    package var text: String
    /// Values in equal steps of time, the latest last.
    package var values: [Double]

    package init(_ name: String, _ text: String, _ values: [Double]) {
      (self.name, self.text, self.values) = (name, text, values)
    }
  }

  package var title: String
  package var rows: [Row]
  package var footer: String

  package init(title: String, rows: [Row], footer: String) {
    (self.title, self.rows, self.footer) = (title, rows, footer)
  }

  /// The lines of the screen, none wider than it, and no more than it has: the last rows are left out first.
  package func lines(columns: Int, rows most: Int) -> [String] {
    let names = rows.map { TextLayout.displayWidth($0.name) }.max() ?? 0
    let values = rows.map { TextLayout.displayWidth($0.text) }.max() ?? 0
    let room = columns - names - values - 4
    var lines = [title, ""]
    for row in rows {
      let name = row.name + String(repeating: " ", count: names - TextLayout.displayWidth(row.name))
      let value = String(repeating: " ", count: values - TextLayout.displayWidth(row.text)) + row.text
      lines.append("\(name)  \(value)" + (room >= 8 ? "  \(Self.bars(row.values, room))" : ""))
    }
    if lines.count + 2 > most { lines.removeLast(min(lines.count - 1, lines.count + 2 - most)) }
    lines += ["", footer]
    return lines.prefix(most).map { TextLayout.displayWidth($0) <= columns ? $0 : String($0.prefix(columns - 1)) + "…" }
  }

  private static let levels = Array("▁▂▃▄▅▆▇█")

  /// The latest values as bars, one a column, between 0 and the largest of them. A value above 0 is never drawn as 0.
  package static func bars(_ values: [Double], _ columns: Int) -> String {
    let shown = values.suffix(max(0, columns))
    guard let most = shown.filter(\.isFinite).max(), most > 0 else {
      return String(repeating: levels[0], count: shown.count)
    }
    return String(
      shown.map { value in
        guard value.isFinite, value > 0 else { return levels[0] }
        return levels[min(levels.count - 1, 1 + Int(value / most * Double(levels.count - 1) * 0.999_999))]
      })
  }
}
