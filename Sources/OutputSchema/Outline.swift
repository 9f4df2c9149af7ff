/// The outline of a schema for pages: a section for each object, with a row for each of its fields.
struct Outline: Sendable {
  struct Section: Sendable {
    /// The object's path, as `verdict.thresholds[]`; the kind of an alternative; or the name of a definition.
    var title: String
    var text: String
    var rows: [Field]
    /// Values of fields with their meanings, by field.
    var names: [(field: String, values: [Shape.Value])]
  }

  private(set) var sections: [Section] = []

  /// Sections of the schema's own objects.
  init(_ schema: Schema) { add(schema.root, path: "", text: "") }

  /// Sections of definitions, which several places use.
  init(_ definitions: [Shape.Definition]) { for definition in definitions { add(definition) } }

  private mutating func add(_ definition: Shape.Definition) {
    switch definition.shape {
    case .object(let fields): add(fields, title: definition.name, path: definition.name, text: definition.text)
    case .enumeration(let values):
      sections.append(
        Section(
          title: definition.name, text: definition.text, rows: [], names: [(field: definition.name, values: values)]))
    default: sections.append(Section(title: definition.name, text: definition.text, rows: [], names: []))
    }
  }

  /// Adds the objects in a shape; definitions have separate sections.
  private mutating func add(_ shape: Shape, path: String, text: String) {
    switch shape {
    case .object(let fields): add(fields, title: path, path: path, text: text)
    case .array(let element): add(element, path: path + "[]", text: text)
    case .map(_, let value): add(value, path: path + ".*", text: text)
    case .tuple(let elements), .either(let elements):
      for element in elements { add(element, path: path, text: text) }
    case .choice(let discriminator, let alternatives):
      for alternative in alternatives {
        let first = Field(discriminator, .word(alternative.name), "Which kind of object it is.")
        add([first] + alternative.fields, title: alternative.name, path: alternative.name, text: alternative.text)
      }
    case .integer, .number, .boolean, .null, .anything, .string, .word, .exactly, .enumeration, .named: break
    }
  }

  private mutating func add(_ fields: [Field], title: String, path: String, text: String) {
    let names = fields.flatMap { field in field.shape.enumerations.map { (field: field.name, values: $0) } }
    sections.append(Section(title: title, text: text, rows: fields, names: names))
    for field in fields {
      add(field.shape, path: path.isEmpty ? field.name : "\(path).\(field.name)", text: field.text)
    }
  }
}

extension Shape {
  /// The enumerations in it that no object and no definition is around.
  fileprivate var enumerations: [[Value]] {
    switch self {
    case .enumeration(let values): [values]
    case .array, .tuple, .either, .map: parts.flatMap(\.enumerations)
    default: []
    }
  }
}
