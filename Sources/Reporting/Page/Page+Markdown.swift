extension Page {
  /// A file to be stored in the folder of the Markdown text.
  public struct Attachment: Sendable, Equatable {
    /// The file's name, without a folder.
    public var name: String
    /// The file's content: an SVG document.
    public var text: String
  }

  /// The page as GitHub-flavoured Markdown, and its charts as SVG files: `chart-1.svg`, `chart-2.svg` …
  ///
  /// The charts themselves follow the reader's light or dark preference.
  ///
  /// - Parameter prefix: the beginning of the files' names, for several texts in one folder.
  public func markdown(charts prefix: String = "chart-") -> (text: String, charts: [Attachment]) {
    var charts: [Attachment] = []
    var parts = ["# \(Markdown.escaped(title))"]
    if !subtitle.isEmpty { parts.append(subtitle.markdown) }
    for section in sections {
      parts.append("## \(Markdown.escaped(section.title))")
      for block in section.blocks {
        switch block {
        case .heading(let text): parts.append("### \(Markdown.escaped(text))")
        case .paragraph(let prose): parts.append(prose.markdown)
        case .list(let items): parts.append(items.map { "- \($0.markdown)" }.joined(separator: "\n"))
        case .figures(let figures):
          var table = Table([.init("figure"), .init("value", .right), .init("")])
          for figure in figures {
            table.add(Prose(figure.name), .strong(figure.value), Prose(figure.note), tone: figure.tone)
          }
          parts.append(table.markdown)
        case .table(let table): parts.append(table.markdown)
        case .values(let values):
          parts.append(values.map { "- \(Markdown.escaped($0.name)): \($0.text.markdown)" }.joined(separator: "\n"))
        case .charts(let stack, let title, let caption):
          parts.append(
            "**\(Markdown.escaped(title))**" + (caption.isEmpty ? "" : "  \n\(caption.markdown)"))
          let images = stack.map { chart in
            let name = "\(prefix)\(charts.count + 1).svg"
            charts.append(Attachment(name: name, text: chart.svg))
            return "![\(Markdown.escaped(chart.title))](\(name))"
          }
          parts.append(images.joined(separator: "  \n"))
        case .callout(let tone, let prose):
          parts.append("> \(tone == .neutral ? "" : "**\(tone.sign)** ")\(prose.markdown)")
        case .preformatted(let text): parts.append(Markdown.fenced(text))
        }
      }
    }
    if !footer.isEmpty { parts += ["---", footer.markdown] }
    return (parts.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n", charts)
  }
}

/// Text for Markdown.
enum Markdown {
  /// Text as plain text on one line: characters with a meaning in Markdown or HTML are escaped.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    let scalars = Array(oneLine(text).unicodeScalars)
    let digits = scalars.prefix { ("0"..."9").contains($0) }.count
    for (index, scalar) in scalars.enumerated() {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\\", "`", "*", "_", "[", "]", "|", "~", "$": escaped += "\\\(scalar)"
      // Signs that mean something at the start of a line.
      case "#", "+", "-", "=": escaped += index == 0 ? "\\\(scalar)" : "\(scalar)"
      // A number, a dot and a space would begin a list.
      case ".", ")":
        let isMark = index > 0 && index == digits && (index + 1 == scalars.count || scalars[index + 1] == " ")
        escaped += isMark ? "\\\(scalar)" : "\(scalar)"
      // Prevents addresses and names from becoming links.
      case "@": escaped += "&#64;"
      case ":" where scalars[(index + 1)...].starts(with: ["/", "/"]): escaped += "&#58;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// Between more backticks than are in it.
  static func code(_ text: String) -> String {
    let text = oneLine(text)
    let ticks = String(repeating: "`", count: longestRun(of: "`", in: text) + 1)
    let space = text.hasPrefix("`") || text.hasSuffix("`") ? " " : ""
    // A table's cell ends at a bar, in code too.
    return ticks + space + text.replacing("|", with: "\\|") + space + ticks
  }

  static func fenced(_ text: String) -> String {
    let ticks = String(repeating: "`", count: max(3, longestRun(of: "`", in: text) + 1))
    return "\(ticks)text\n\(cleaned(text, keeping: "\n"))\n\(ticks)"
  }

  private static func oneLine(_ text: String) -> String {
    cleaned(text.replacing("\r\n", with: " ").replacing("\n", with: " "), keeping: " ")
  }

  /// The text without control characters and marks that change its direction.
  private static func cleaned(_ text: String, keeping kept: Unicode.Scalar) -> String {
    var cleaned = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case kept, "\t": cleaned.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}":
        cleaned += "\u{FFFD}"
      default: cleaned.unicodeScalars.append(scalar)
      }
    }
    return cleaned
  }

  private static func longestRun(of character: Character, in text: String) -> Int {
    var (longest, run) = (0, 0)
    for letter in text {
      run = letter == character ? run + 1 : 0
      longest = max(longest, run)
    }
    return longest
  }
}

extension Prose {
  var markdown: String {
    runs.map { run in
      switch run.style {
      case .plain: Markdown.escaped(run.text)
      case .strong: "**\(Markdown.escaped(run.text))**"
      case .code: Markdown.code(run.text)
      }
    }.joined()
  }
}

extension Table {
  fileprivate var markdown: String {
    func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }
    var lines = [
      line(columns.map { $0.name.isEmpty ? " " : Markdown.escaped($0.name) }),
      line(columns.map { $0.alignment == .right ? "---:" : "---" }),
    ]
    for row in rows {
      lines.append(
        line(
          columns.indices.map { column in
            var text = row.cells.indices.contains(column) ? row.cells[column].markdown : ""
            if column == columns.count - 1, !row.note.isEmpty { text += " (\(row.note.markdown))" }
            return column == 0 && row.tone != .neutral ? "\(row.tone.sign) \(text)" : text
          }))
    }
    return lines.joined(separator: "\n")
  }
}
