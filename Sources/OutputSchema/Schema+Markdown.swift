extension Schema {
  /// A Markdown page that describes outputs: for each output a general part, an example, and a table for each object;
  /// then the definitions that several outputs share.
  public static func markdown(of schemas: [Schema]) -> String {
    let names = schemas.map(\.name).joined(separator: " ")
    var blocks = ["<!-- Made by apnscope schema \(names) --format markdown. -->"]
    for schema in schemas {
      blocks += ["# \(schema.title)"] + schema.text.map { wrapped($0) }
      blocks.append("```\(schema.form == .settings ? "toml" : "json")\n\(schema.example)\n```")
      blocks.append("`apnscope schema \(schema.name)` prints the following as a JSON Schema.")
      for section in Outline(schema).sections { blocks += Self.blocks(of: section) }
    }
    let definitions = schemas.map(\.root).definitions
    if !definitions.isEmpty {
      blocks.append("# Objects that are used in several places")
      for section in Outline(definitions).sections { blocks += Self.blocks(of: section) }
    }
    return blocks.joined(separator: "\n\n") + "\n"
  }

  private static func blocks(of section: Outline.Section) -> [String] {
    var blocks: [String] = []
    if !section.title.isEmpty { blocks.append("## \(heading(section.title))") }
    if !section.text.isEmpty { blocks.append(wrapped(section.text)) }
    if !section.rows.isEmpty { blocks.append(table(section.rows)) }
    for (field, values) in section.names {
      blocks.append("Names in `\(field)`:")
      blocks.append(values.map { "- `\($0.name)`: \($0.text)" }.joined(separator: "\n"))
    }
    return blocks
  }

  /// Names of fields are formatted as code; names of definitions are words.
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

  /// A paragraph in lines of at most 120 characters. Each line begins with a word, because Markdown may treat other
  /// beginnings as a list.
  private static func wrapped(_ paragraph: String) -> String {
    var lines: [String] = []
    var line = ""
    for word in paragraph.split(separator: " ") {
      let isWord = word.first.map { $0.isLetter || $0 == "`" } ?? false
      // The signs that follow a word stay with it.
      if !line.isEmpty, isWord, line.count + 1 + word.count > 116 {
        lines.append(line)
        line = ""
      }
      line += line.isEmpty ? String(word) : " \(word)"
    }
    return (lines + [line]).joined(separator: "\n")
  }

  private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
