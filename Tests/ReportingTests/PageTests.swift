import Testing

@testable import Reporting

/// A page as HTML and as Markdown.
@Suite("Page")
struct PageTests {
  private static let page: Page = {
    var table = Table([.init("name"), .init("count", .right)])
    table.add("plain", "1,234")
    table.add(.strong("strong") + " and " + .code("a|b"), "5", tone: .bad)
    let chart = Chart(
      title: "A line", x: .time(), y: Axis("y"), marks: [.line("", [Point(0, 1), Point(1, 2)])], height: 60)
    return Page(
      title: "A page", subtitle: "with everything",
      sections: [
        Section(
          "First",
          [
            .figures([Figure("rate", "5/s", note: "asked 6/s", tone: .warning)]),
            .callout(.good, "It went " + .strong("well") + "."),
            .paragraph("Words with " + .code("code") + "."), .list(["one", "two"]),
          ]),
        Section(
          "Second", [.heading("Inside"), .table(table), .values([Value("host", "a"), Value("seed", .code("1"))])]),
        Section("Third", [.chart(chart, caption: "It rises.")]),
        Section(
          "Fourth",
          [.preformatted("a < b\n  c"), .callout(.bad, "No."), .callout(.warning, "Well."), .callout(.neutral, "So.")]),
      ], footer: "Made by " + .code("apnscope"))
  }()

  @Test("HTML and Markdown are as they are kept")
  func golden() throws {
    // Style and script are files of their own.
    let html = Self.page.html
    #expect(html.contains(Page.style) && html.contains(Chart.style) && html.contains(Page.script))
    let content = html.replacing(Page.style, with: "").replacing(Chart.style, with: "").replacing(Page.script, with: "")
    try expectGolden(content, "page.html")
    try expectGolden(Self.page.markdown().text, "page.md")
    #expect(Self.page.markdown(charts: "x-").charts.map(\.name) == ["x-1.svg"])
    #expect(Self.page.markdown().charts.map(\.text) == Self.page.charts.map(\.svg))
  }

  @Test("Hostile text stays text in every place of both")
  func hostile() {
    let bad =
      "</title></style><script>x</script>\n# h\n- l\n|c|`k` **b** [l](http://e.x) <img src=x onerror=y> &amp; \"' \u{0}\u{202E}"
    var table = Table([.init(bad), .init(bad, .right)])
    table.add(Prose(bad), .code(bad), tone: .bad)
    let page = Page(
      title: bad, subtitle: Prose(bad),
      sections: [
        Section(
          bad,
          [
            .heading(bad), .paragraph(.strong(bad)), .list([Prose(bad)]), .figures([Figure(bad, bad, note: bad)]),
            .table(table),
            .values([Value(bad, .code(bad))]), .callout(.bad, Prose(bad)), .preformatted(bad + "\n```\n</pre>"),
            .chart(Chart(title: bad, x: Axis(bad), y: Axis(bad), marks: []), caption: Prose(bad)),
          ])
      ], footer: Prose(bad))
    let html = page.html
    #expect(
      !html.contains("<script>x") && html.split(separator: "<script").count == 2 && !html.contains("<img")
        && !html.contains("\u{0}") && !html.contains("\u{202E}"))
    #expect(!html.contains("\"'"), "an attribute could end there")
    let markdown = page.markdown().text
    // Between backticks nothing is markup; everywhere else signs are escaped.
    var outside = ""
    var isFenced = false
    for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("````") {
        isFenced.toggle()
      } else if !isFenced {
        outside += withoutCode(String(line)) + "\n"
      }
    }
    #expect(!isFenced)
    for sign in ["<", "http://", "\u{202E}"] {
      let line = outside.split(separator: "\n").first { $0.contains(sign) }
      #expect(line == nil)
    }
    #expect(!outside.contains("\n# h") && !outside.contains("\n- l"))
    let rows = markdown.split(separator: "\n").filter { $0.hasPrefix("| ") || $0.hasPrefix("✗ ") }
    for row in rows {
      #expect(row.replacing("\\|", with: "").filter { $0 == "|" }.count <= 4, "a cell that is two: \(row)")
    }
  }

  /// A line without its code spans, each between runs of backticks of one length.
  private func withoutCode(_ line: String) -> String {
    var text = ""
    var rest = line[...]
    while let start = rest.firstIndex(of: "`") {
      if start > rest.startIndex, rest[rest.index(before: start)] == "\\" {
        text += rest[...start]
        rest = rest[rest.index(after: start)...]
        continue
      }
      let ticks = rest[start...].prefix { $0 == "`" }
      text += rest[..<start]
      rest = rest[ticks.endIndex...]
      guard let end = rest.firstRange(of: ticks) else { return text }
      rest = rest[end.upperBound...]
    }
    return text + rest
  }

  @Test("A page needs nothing from outside, and its browser is told to ask for nothing")
  func selfContained() {
    let html = Self.page.html
    let requests = [
      "http:", "https:", "src=", "url(", "@import", "onload", "fetch(", "XMLHttpRequest", "WebSocket", "EventSource",
      "sendBeacon", "import(", "eval(", "innerHTML +=",
    ]
    for word in requests {
      // The namespace of SVG is a name, not an address that is asked.
      #expect(!html.replacing("http://www.w3.org/2000/svg", with: "").contains(word), "\(word)")
    }
    #expect(html.contains("content=\"default-src 'none'; img-src data:; "))
    #expect(
      html.contains("prefers-color-scheme: dark") && html.contains("@media print")
        && html.contains("width=device-width")
    )
  }

  private func page(_ table: Table) -> String {
    let html = Page(title: "t", sections: [Section("s", [.table(table)])]).html
    return html.components(separatedBy: "<main>")[1].components(separatedBy: "<script>")[0]
  }

  @Test("Of many rows those that stand out are shown, in their order, and the rest is folded; of few all are shown")
  func folding() {
    var table = Table([.init("n", .right)])
    for number in 0..<100 {
      table.add(Prose("row \(number)"), tone: number % 10 == 5 ? .bad : number % 10 == 7 ? .warning : .neutral)
    }
    let parts = page(table).components(separatedBy: "<details class=\"more\">")
    #expect(parts.count == 2 && parts[1].contains("70 more rows, which stand out less"))
    for number in 0..<100 {
      let isShown = parts[0].contains("row \(number)<")
      #expect(isShown != parts[1].contains("row \(number)<"), "row \(number) is once on the page")
      if number % 10 == 5 || number % 10 == 7 { #expect(isShown) }
    }
    #expect(parts[0].components(separatedBy: "<tr").count - 2 == Table.shownRows)
    let shown = parts[0].matches(of: /row (\d+)</).compactMap { Int($0.1) }
    #expect(shown == shown.sorted())
    table.rows.removeLast(100 - 35)
    #expect(!page(table).contains("<details"))
  }

  @Test("A row is coloured where it stands out, and none is where most would be")
  func standing() {
    var table = Table([.init("n")])
    for number in 0..<9 { table.add(Prose("\(number)"), tone: number < 3 ? .bad : .good) }
    #expect(page(table).contains("<table class=\"stand\">"))
    for number in 0..<3 { table.rows[3 + number].tone = .warning }
    let html = page(table)
    #expect(!html.contains("stand") && html.contains("<tr class=\"bad\"><td><span class=\"sign\">✗"))
  }

  @Test("A section that is folded keeps its title and place, and Markdown has all of it")
  func foldedSection() {
    let sections = ["One", "Two", "Three", "Four"].map { Section($0, [.paragraph(Prose("text of \($0)"))]) }
    let page = Page(title: "t", sections: sections.dropLast() + [sections[3].folded])
    #expect(
      page.html.contains("<section id=\"s4\">\n<details><summary><span role=\"heading\" aria-level=\"2\">Four</span>"))
    #expect(page.html.contains("<a href=\"#s4\">Four</a>"))
    #expect(page.markdown().text.contains("## Four\n\ntext of Four"))
  }

  @Test("Markdown escapes what would be markup, and leaves numbers alone")
  func escaping() {
    for (text, escaped) in [
      ("99.8 %", "99.8 %"), ("1. a", "1\\. a"), ("3)", "3\\)"), ("# a", "\\# a"), ("a # b", "a # b"),
      ("a_b*c", "a\\_b\\*c"),
      ("a|b", "a\\|b"), ("a\nb", "a b"), ("x@y", "x&#64;y"), ("http://x", "http&#58;//x"), ("a: b", "a: b"),
    ] { #expect(Markdown.escaped(text) == escaped) }
    #expect(Markdown.code("a`b") == "``a`b``")
    #expect(Markdown.code("`") == "`` ` ``")
  }
}
