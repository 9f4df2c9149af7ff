extension Page {
  /// A self-contained HTML page.
  ///
  /// Light or dark according to the reader's system; wide tables scroll in their box; in print it is black on white.
  public var html: String {
    var parts = [
      """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta name="generator" content="apnscope">
      <title>\(Markup.escaped(title))</title>
      <link rel="icon" href="data:,">
      <style>
      \(Self.style)\(Chart.style)
      </style>
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
      parts.append("<section id=\"s\(index + 1)\">\n<h2>\(Markup.escaped(section.title))</h2>")
      parts += section.blocks.map(\.html)
      parts.append("</section>")
      // After the first section: the verdict comes before the table of contents.
      if index == 0, sections.count > 3 { parts.append(contents) }
    }
    if !footer.isEmpty { parts.append("<footer><p>\(footer.html)</p></footer>") }
    parts.append("</main>\n</body>\n</html>\n")
    return parts.joined(separator: "\n")
  }

  private var contents: String {
    let entries = sections.enumerated().dropFirst().map { "<a href=\"#s\($0 + 1)\">\(Markup.escaped($1.title))</a>" }
    return "<nav aria-label=\"Contents\">\(entries.joined(separator: "\n"))</nav>"
  }

  private static let style = """
    :root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--ground:#fff;--raised:#f6f8fa;--line:#d9dee3;--good:#00734f;--bad:#b3400a;--warning:#8a5a00;--good-ground:#e6f5ef;--bad-ground:#fdeee6;--warning-ground:#fdf4dd;--link:#0062a3}
    @media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b3;--ground:#0d1117;--raised:#161b22;--line:#2f363e;--good:#3ccf9f;--bad:#ff935c;--warning:#f0b429;--good-ground:#0f2a22;--bad-ground:#33190c;--warning-ground:#2e240a;--link:#6cb6f0}}
    *{box-sizing:border-box}
    html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
    body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
    main{max-width:1000px;margin:0 auto;padding:28px 24px 56px}
    h1{font-size:1.75rem;line-height:1.2;margin:0;overflow-wrap:anywhere;letter-spacing:-.01em}
    h2{font-size:1.25rem;line-height:1.3;margin:44px 0 12px;padding-top:14px;border-top:1px solid var(--line);letter-spacing:-.005em}
    section:first-of-type h2{margin-top:20px;border:0;padding-top:0}
    h3{font-size:1rem;line-height:1.4;margin:28px 0 6px}
    p{margin:8px 0 12px;max-width:46em}
    ul{margin:8px 0 12px;padding-left:1.3em;max-width:46em}
    li{margin:3px 0}
    a{color:var(--link)}
    .subtitle{color:var(--soft);margin:6px 0 0;overflow-wrap:anywhere}
    nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin:26px 0 0;font-size:.9rem}
    nav a{text-decoration:none;padding:2px 0}nav a:hover{text-decoration:underline}
    code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
    code{background:var(--raised);padding:.1em .35em;border-radius:4px;overflow-wrap:anywhere}
    pre{background:var(--raised);border-radius:8px;padding:12px 14px;white-space:pre-wrap;overflow-wrap:anywhere;margin:10px 0 14px}
    pre.columns{columns:27em;column-gap:2.5em}
    .figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px;margin:14px 0 16px;padding:0;max-width:none;list-style:none}
    .figures li{background:var(--raised);border-radius:10px;padding:12px 14px;margin:0;border-left:4px solid var(--line)}
    .figures span{display:block;color:var(--soft);font-size:.84rem;line-height:1.4}
    .figures b{display:block;font-size:1.45rem;font-weight:600;line-height:1.35;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
    .figures .good{border-left-color:var(--good)}.figures .bad{border-left-color:var(--bad)}.figures .warning{border-left-color:var(--warning)}
    .callout{border-radius:10px;padding:11px 15px;margin:10px 0 12px;max-width:none;background:var(--raised)}
    .callout.good{background:var(--good-ground)}.callout.bad{background:var(--bad-ground)}.callout.warning{background:var(--warning-ground)}
    .good>.sign,tr.good .sign{color:var(--good)}.bad>.sign,tr.bad .sign{color:var(--bad)}.warning>.sign,tr.warning .sign{color:var(--warning)}
    .sign{font-weight:700;margin-right:.45em}
    .scroll{overflow-x:auto;margin:10px 0 16px}
    table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;min-width:min(100%,22em)}
    th,td{text-align:left;padding:6px 18px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
    th{color:var(--soft);font-weight:600;font-size:.84rem;vertical-align:bottom}
    td:not(.r){min-width:7.5em}
    td:last-child,th:last-child{padding-right:2px}
    .r{text-align:right}td.r{white-space:nowrap}
    tr.bad td{background:var(--bad-ground)}tr.warning td{background:var(--warning-ground)}
    dl.values{display:grid;grid-template-columns:minmax(8em,max-content) 1fr;gap:5px 22px;margin:10px 0 16px;font-size:.95rem}
    dl.values dt{color:var(--soft)}dl.values dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
    svg.apns-chart{display:block;width:100%;height:auto}
    figure{margin:18px 0 20px}
    figcaption{margin:0 0 6px}figcaption b{font-weight:600}figcaption span{display:block;color:var(--soft);font-size:.88rem;max-width:52em}
    footer{margin-top:48px;border-top:1px solid var(--line);padding-top:10px;color:var(--soft);font-size:.85rem}
    @media (max-width:600px){main{padding:18px 16px 40px}h1{font-size:1.45rem}h2{margin-top:34px}.figures{grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:9px}.figures b{font-size:1.2rem}dl.values{grid-template-columns:1fr;gap:0}dl.values dd{margin-bottom:8px}}
    @media print{:root{color-scheme:light;--ink:#000;--soft:#444;--ground:#fff;--raised:#f4f4f4;--line:#bbb;--good:#00734f;--bad:#b3400a;--warning:#8a5a00;--good-ground:#fff;--bad-ground:#fff;--warning-ground:#fff}.apns-chart{--ink:#000;--soft:#444;--grid:#ddd;--axis:#888;--c1:#0072b2;--c2:#e69f00;--c3:#009e73;--c4:#d55e00;--c5:#b5608f;--c6:#56b4e9;--c7:#b8a800;--c8:#777}body{font-size:10.5pt}main{max-width:none;padding:0}nav{display:none}.figures{grid-template-columns:repeat(auto-fit,minmax(120px,1fr))}.callout{border:1px solid var(--line)}figure,tr,.figures li,.callout{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}}

    """
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
    case .chart(let chart, let caption):
      let words = caption.isEmpty ? "" : "<span>\(caption.html)</span>"
      return """
        <figure>
        <figcaption><b>\(Markup.escaped(chart.title))</b>\(words)</figcaption>
        \(chart.inlineSVG)
        </figure>
        """
    case .callout(let tone, let prose): return "<p class=\"callout \(tone.name)\">\(tone.mark)\(prose.html)</p>"
    case .preformatted(let text):
      // Many short lines take less room side by side.
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      let isNarrow = lines.count > 12 && lines.count { $0.count >= 64 } <= lines.count / 12
      return "<pre\(isNarrow ? " class=\"columns\"" : "")>\(Markup.escaped(text))</pre>"
    }
  }
}

extension Table {
  fileprivate var html: String {
    func attribute(_ column: Int) -> String {
      columns.indices.contains(column) && columns[column].alignment == .right ? " class=\"r\"" : ""
    }
    let head = columns.enumerated().map { "<th scope=\"col\"\(attribute($0))>\(Markup.escaped($1.name))</th>" }.joined()
    let body = rows.map { row in
      let cells = columns.indices.map { column in
        let prose = row.cells.indices.contains(column) ? row.cells[column].html : ""
        return "<td\(attribute(column))>\(column == 0 ? row.tone.mark : "")\(prose)</td>"
      }
      return "<tr\(row.tone.attribute)>\(cells.joined())</tr>"
    }
    return """
      <div class="scroll" tabindex="0"><table>
      <thead><tr>\(head)</tr></thead>
      <tbody>
      \(body.joined(separator: "\n"))
      </tbody>
      </table></div>
      """
  }
}
