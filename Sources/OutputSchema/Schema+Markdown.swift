extension Schema {
  /// The schema as a page in Markdown: what holds for all of it, an example, and a table for each object.
  public var markdown: String {
    var blocks = ["# \(title)", "`apnscope schema \(name)` prints this as JSON Schema, and with `--format` as a page."]
    blocks += text
    blocks.append("```\(form == .settings ? "toml" : "json")\n\(example)\n```")
    for section in Outline(self).sections {
      if !section.title.isEmpty { blocks.append("## \(Self.heading(section.title))") }
      if !section.text.isEmpty { blocks.append(section.text) }
      if !section.rows.isEmpty { blocks.append(Self.table(section.rows)) }
      for (field, values) in section.names {
        blocks.append("`\(field)` is one of")
        blocks.append(values.map { "- `\($0.name)`: \($0.text)" }.joined(separator: "\n"))
      }
    }
    return blocks.joined(separator: "\n\n") + "\n"
  }

  /// Names of fields are code; those of definitions are words.
  private static func heading(_ title: String) -> String {
    title.contains(" ") ? title.prefix(1).uppercased() + title.dropFirst() : "`\(title)`"
  }

  private static func table(_ fields: [Field]) -> String {
    let rows = fields.map { field in
      let unit = field.unit.map { " (\($0.rawValue))" } ?? ""
      return "| `\(field.name)` | \(cell(field.shape.typeName + unit)) | \(cell(field.description)) |"
    }
    return (["| field | type | meaning |", "| --- | --- | --- |"] + rows).joined(separator: "\n")
  }

  private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
