extension Schema {
  /// The schema as a manual page of section 5, in mdoc(7).
  ///
  /// - Parameters:
  ///   - program: its name and version, for the foot of the page.
  ///   - date: as mdoc has it: "November 3, 2026".
  package func manual(program: String, date: String) -> String {
    var lines = [
      ".\\\" Made by apnscope schema \(name) --format man.", ".Dd \(date)", ".Dt APNSCOPE-\(name.uppercased()) 5",
      ".Os \(program)", ".Sh NAME", ".Nm apnscope-\(name)",
      ".Nd \(Roff.text(title.prefix(1).lowercased() + title.dropFirst()))", ".Sh DESCRIPTION",
    ]
    for (index, paragraph) in text.enumerated() {
      if index > 0 { lines.append(".Pp") }
      lines += Roff.sentences(paragraph)
    }
    lines.append(".Sh FIELDS")
    for section in Outline(self).sections + Outline([root].definitions).sections { lines += Self.lines(of: section) }
    lines += [".Sh EXAMPLES", ".Bd -literal"]
    for line in example.split(separator: "\n") { lines.append(Roff.line(line)) }
    lines += [".Ed", ".Sh SEE ALSO", ".Xr apnscope 1 ,", ".Xr apnscope-schema 1"]
    return lines.joined(separator: "\n") + "\n"
  }

  private static func lines(of section: Outline.Section) -> [String] {
    var lines: [String] = []
    if !section.title.isEmpty { lines.append(".Ss " + Roff.text(section.title)) }
    if !section.text.isEmpty { lines += Roff.sentences(section.text) }
    if !section.rows.isEmpty {
      lines.append(".Bl -tag -width Ds")
      for field in section.rows {
        let unit = field.unit.map { ", \($0.rawValue)" } ?? ""
        lines.append(".It Va \(Roff.text(field.name)) Pq \(Roff.text(field.shape.typeName + unit))")
        lines += Roff.sentences(field.description)
      }
      lines.append(".El")
    }
    for (field, values) in section.names {
      lines += [".Pp", "Names in", ".Va \(Roff.text(field)) :", ".Bl -tag -width Ds -compact"]
      for value in values { lines += [".It Li " + Roff.text(value.name)] + Roff.sentences(value.text) }
      lines.append(".El")
    }
    return lines
  }
}

/// Escapes text for troff.
private enum Roff {
  /// Part of a line: characters special to troff, or printed as characters that cannot be copied, are escaped; text
  /// between backquotes is bold.
  static func text(_ text: some StringProtocol) -> String {
    var roff = ""
    var isCode = false
    for scalar in text.unicodeScalars {
      switch scalar {
      case "`":
        isCode.toggle()
        roff += isCode ? "\\fB" : "\\fR"
      case "\\": roff += "\\e"
      case "-": roff += "\\-"
      case "'": roff += "\\(aq"
      case "~": roff += "\\(ti"
      case "^": roff += "\\(ha"
      case "\"": roff += "\\(dq"
      default:
        if scalar.isASCII {
          roff.unicodeScalars.append(scalar)
        } else {
          let digits = String(scalar.value, radix: 16, uppercase: true)
          roff += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
        }
      }
    }
    return roff
  }

  /// A whole line, escaped so that troff does not take it for a request.
  static func line(_ text: some StringProtocol) -> String { (text.first == "." ? "\\&" : "") + self.text(text) }

  /// A paragraph: each sentence begins a line, as the language asks for.
  static func sentences(_ paragraph: String) -> [String] {
    var lines: [String] = []
    var rest = paragraph[...]
    while let end = rest.firstRange(of: ". ") {
      lines.append(line(rest[..<end.lowerBound] + "."))
      rest = rest[end.upperBound...]
    }
    if !rest.isEmpty { lines.append(line(rest)) }
    return lines
  }
}
