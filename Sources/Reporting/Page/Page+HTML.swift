extension Page {
  /// A self-contained HTML page.
  ///
  /// Light or dark according to the reader's system; in print it is black on white, with everything unfolded. The first
  /// section is the one that a reader sees first; its title is for readers who do not see.
  public var html: String {
    var parts = [
      """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="\(Self.policy)">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta name="generator" content="apnscope">
      <title>\(Markup.escaped(title))</title>
      <link rel="icon" href="data:,">
      <style>
      \(Self.style)\(Chart.style)</style>
      </head>
      <body>
      <main>
      <header>
      <h1>\(Markup.escaped(title))</h1>
      """
    ]
    if !subtitle.isEmpty { parts.append("<p class=\"subtitle\">\(subtitle.html)</p>") }
    parts.append("</header>")
    for (index, section) in sections.enumerated() {
      let title = Markup.escaped(section.title)
      let blocks = section.blocks.map(\.html)
      parts.append("<section id=\"s\(index + 1)\"\(index == 0 ? " class=\"lead\"" : "")>")
      if section.isFolded {
        parts +=
          ["<details><summary><span role=\"heading\" aria-level=\"2\">\(title)</span></summary>"] + blocks + [
            "</details>"
          ]
      } else {
        parts += ["<h2>\(title)</h2>"] + blocks
      }
      parts.append("</section>")
      // After the first section: the verdict comes before the table of contents.
      if index == 0, sections.count > 3 { parts.append(contents) }
    }
    if !footer.isEmpty { parts.append("<footer><p>\(footer.html)</p></footer>") }
    parts.append("</main>\n<script>\n\(Self.script)</script>\n</body>\n</html>\n")
    return parts.joined(separator: "\n")
  }

  private var contents: String {
    let entries = sections.enumerated().dropFirst().map { "<a href=\"#s\($0 + 1)\">\(Markup.escaped($1.title))</a>" }
    return "<nav aria-label=\"Contents\">\(entries.joined(separator: "\n"))</nav>"
  }

  /// A browser then lets the page ask for nothing.
  private static let policy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

  static let style = String(decoding: PackageResources.page_css, as: UTF8.self)
  static let script = String(decoding: PackageResources.page_js, as: UTF8.self)
}

extension Prose {
  var html: String {
    runs.map { run in
      let text = Markup.escaped(run.text)
      return switch run.style {
      case .plain: text
      case .strong: "<strong>\(text)</strong>"
      case .code: "<code>\(text)</code>"
      }
    }.joined()
  }
}

extension Tone {
  /// A sign before the text, for readers who cannot see the colour.
  var sign: String {
    switch self {
    case .neutral: ""
    case .good: "✓"
    case .bad: "✗"
    case .warning: "!"
    }
  }

  fileprivate var name: String {
    switch self {
    case .neutral: ""
    case .good: "good"
    case .bad: "bad"
    case .warning: "warning"
    }
  }

  /// How much a row of it stands out.
  var weight: Int {
    switch self {
    case .neutral, .good: 0
    case .warning: 1
    case .bad: 2
    }
  }

  fileprivate var attribute: String { self == .neutral ? "" : " class=\"\(name)\"" }
  fileprivate var mark: String { self == .neutral ? "" : "<span class=\"sign\">\(sign)</span>" }
}

extension Block {
  var html: String {
    switch self {
    case .heading(let text): return "<h3>\(Markup.escaped(text))</h3>"
    case .paragraph(let prose): return "<p>\(prose.html)</p>"
    case .list(let items):
      return items.isEmpty ? "" : "<ul>\n\(items.map { "<li>\($0.html)</li>" }.joined(separator: "\n"))\n</ul>"
    case .figures(let figures):
      let items = figures.map { figure in
        "<li\(figure.tone.attribute)><span>\(Markup.escaped(figure.name))</span><b>\(Markup.escaped(figure.value))</b>"
          + (figure.note.isEmpty ? "" : "<span>\(Markup.escaped(figure.note))</span>") + "</li>"
      }
      return items.isEmpty ? "" : "<ul class=\"figures\">\n\(items.joined(separator: "\n"))\n</ul>"
    case .table(let table): return table.html
    case .values(let values):
      let items = values.map { "<dt>\(Markup.escaped($0.name))</dt><dd>\($0.text.html)</dd>" }
      return items.isEmpty ? "" : "<dl class=\"values\">\n\(items.joined(separator: "\n"))\n</dl>"
    case .charts(let charts, let title, let caption):
      let words = caption.isEmpty ? "" : "<span>\(caption.html)</span>"
      return """
        <figure>
        <figcaption><b>\(Markup.escaped(title))</b>\(words)</figcaption>
        \(charts.map(\.inlineSVG).joined(separator: "\n"))
        \(Self.numbers(of: charts))</figure>
        """
    case .callout(let tone, let prose): return "<p class=\"callout \(tone.name)\">\(tone.mark)\(prose.html)</p>"
    case .preformatted(let text):
      // Many short lines take less room side by side.
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      let isNarrow = lines.count > 12 && lines.count { $0.count >= 64 } <= lines.count / 12
      return "<pre\(isNarrow ? " class=\"columns\"" : "")>\(Markup.escaped(text))</pre>"
    }
  }

  /// The charts' numbers, folded.
  private static func numbers(of charts: [Chart]) -> String {
    let tables = charts.compactMap { chart in chart.numbers.map { (chart.title, $0) } }
    guard !tables.isEmpty else { return "" }
    let parts = tables.map { title, numbers in
      (tables.count > 1 ? "<h3>\(Markup.escaped(title))</h3>\n" : "")
        + (numbers.note.isEmpty ? "" : "<p>\(Markup.escaped(numbers.note))</p>\n") + numbers.table.whole
    }
    return "<details class=\"numbers\"><summary>Numbers</summary>\n\(parts.joined(separator: "\n"))\n</details>\n"
  }
}

extension Table {
  /// Rows that are shown; a table of more has the rest folded.
  static let shownRows = 30

  /// The rows that stand out, and others up to `shownRows`; the rest is folded.
  fileprivate var html: String {
    guard rows.count > Self.shownRows + 5 else { return whole }
    // The worst first, when not all of them have room.
    let byWeight = rows.indices.sorted { (-rows[$0].tone.weight, $0) < (-rows[$1].tone.weight, $1) }
    let shown = Set(byWeight.prefix(Self.shownRows))
    func part(_ isShown: Bool) -> Table {
      Table(columns, rows.indices.filter { shown.contains($0) == isShown }.map { rows[$0] })
    }
    let (first, rest) = (part(true), part(false))
    let isOfWorst = rows.contains { $0.tone.weight > 0 }
    return """
      \(first.markup(stands: stands))
      <details class="more"><summary>\(grouped(rest.rows.count)) more rows\(isOfWorst ? ", which stand out less" : "")</summary>
      \(rest.markup(stands: stands))
      </details>
      """
  }

  /// All rows.
  fileprivate var whole: String { markup(stands: stands) }

  /// Whether rows with a tone are few enough to be coloured: where most are, none stands out.
  private var stands: Bool {
    let count = rows.count { $0.tone.weight > 0 }
    return count <= 2 || count * 3 <= rows.count
  }

  private func markup(stands: Bool) -> String {
    let isMany = columns.count > 4
    func attributes(_ column: Int, named: Bool) -> String {
      guard columns.indices.contains(column) else { return "" }
      return (columns[column].alignment == .right ? " class=\"r\"" : "")
        + (named && isMany ? " data-name=\"\(Markup.escaped(columns[column].name))\"" : "")
    }
    let head = columns.enumerated().map {
      "<th scope=\"col\"\(attributes($0, named: false))>\(Markup.escaped($1.name))</th>"
    }
    let body = rows.map { row in
      let cells = columns.indices.map { column in
        let prose = row.cells.indices.contains(column) ? row.cells[column].html : ""
        return "<td\(attributes(column, named: true))>\(column == 0 ? row.tone.mark : "")\(prose)</td>"
      }
      let names = [row.tone == .neutral ? "" : row.tone.name, row.note.isEmpty ? "" : "noted"].filter { !$0.isEmpty }
      let classes = names.isEmpty ? "" : " class=\"\(names.joined(separator: " "))\""
      let note =
        row.note.isEmpty
        ? ""
        : "\n<tr class=\"note\(row.tone == .neutral ? "" : " \(row.tone.name)")\"><td colspan=\"\(columns.count)\">\(row.note.html)</td></tr>"
      return "<tr\(classes)>\(cells.joined())</tr>\(note)"
    }
    let classes = [isMany ? "many" : "", stands ? "stand" : ""].filter { !$0.isEmpty }.joined(separator: " ")
    return """
      <div class="scroll" tabindex="0"><table\(classes.isEmpty ? "" : " class=\"\(classes)\"")>
      <thead><tr>\(head.joined())</tr></thead>
      <tbody>
      \(body.joined(separator: "\n"))
      </tbody>
      </table></div>
      """
  }
}
