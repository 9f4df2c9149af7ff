/// A line of fields for a terminal, which leaves out the least important ones where it is too narrow for all.
package struct StatusLine: Sendable {
  private var fields: [(text: String, rank: Int)] = []

  package init() {}

  /// Adds a field behind the others.
  ///
  /// - Parameter rank: fields of the highest rank are left out first.
  package mutating func add(_ text: String, rank: Int) { fields.append((text, rank)) }

  /// All fields.
  package var text: String { fields.map(\.text).joined(separator: "  ") }

  /// The fields that fit, the first one cut if not even that does.
  package func fitted(_ columns: Int?) -> String {
    guard let columns else { return text }
    // The most important first, each where there is still room for it.
    var places: Set<Int> = []
    var width = -2
    for place in fields.indices.sorted(by: { fields[$0].rank < fields[$1].rank }) {
      let more = TextLayout.displayWidth(fields[place].text) + 2
      guard places.isEmpty || width + more <= columns else { continue }
      places.insert(place)
      width += more
    }
    let shown = fields.indices.filter(places.contains).map { fields[$0] }
    let line = shown.map(\.text).joined(separator: "  ")
    return TextLayout.displayWidth(line) <= columns ? line : String(line.prefix(max(0, columns - 1))) + "…"
  }
}
