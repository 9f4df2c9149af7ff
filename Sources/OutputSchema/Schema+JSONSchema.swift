extension Schema {
  /// The schema as JSON Schema, draft 2020-12; for JSON Lines, the schema of one line.
  public var jsonSchema: JSONValue {
    var members: [JSONValue.Member] = [
      .init("$schema", "https://json-schema.org/draft/2020-12/schema"), .init("$id", .string("urn:apnscope:\(name)")),
      .init("title", .string(form == .lines ? "\(title): one line" : title)),
      .init("description", .string(text.joined(separator: "\n\n"))),
    ]
    let root = validRoot
    members += root.jsonSchemaMembers
    let definitions = [root].definitions
    if !definitions.isEmpty {
      members.append(
        .init(
          "$defs",
          .object(
            definitions.map { definition in
              let description = JSONValue.Member("description", .string(definition.text))
              return JSONValue.Member(definition.key, .object([description] + definition.shape.jsonSchemaMembers))
            })))
    }
    return .object(members)
  }
}

extension Schema {
  /// The root as outputs are held against it: nothing is required of a file of settings.
  var validRoot: Shape { form == .settings ? root.optional : root }
}

extension Shape {
  /// The same object with every field optional.
  fileprivate var optional: Shape {
    switch self {
    case .object(let fields): .object(fields.map(\.optional))
    case .named(let definition): .named(Definition(definition.name, definition.text, definition.shape.optional))
    default: self
    }
  }
}

extension Field {
  fileprivate var optional: Field {
    if case .when = presence { return self }
    return Field(name, shape, text, unit: unit, of: window, when: "it is given")
  }
}

extension Shape.Definition {
  /// The name as a key of a JSON Schema.
  var key: String { name.replacing(" ", with: "_") }
}

extension [Shape] {
  /// The definitions used in the fields, each once, in the order of first use.
  var definitions: [Shape.Definition] {
    var found: [Shape.Definition] = []
    for shape in self { shape.collect(into: &found) }
    return found
  }
}

extension Shape {
  fileprivate func collect(into found: inout [Definition]) {
    if case .named(let definition) = self {
      guard !found.contains(where: { $0.name == definition.name }) else { return }
      found.append(definition)
    }
    for part in parts { part.collect(into: &found) }
  }

  /// The shapes that it is made of.
  var parts: [Shape] {
    switch self {
    case .integer, .number, .boolean, .null, .anything, .string, .word, .exactly, .enumeration: []
    case .array(let element): [element]
    case .tuple(let elements), .either(let elements): elements
    case .object(let fields): fields.map(\.shape)
    case .map(let key, let value): [key, value]
    case .choice(_, let alternatives): alternatives.flatMap { $0.fields.map(\.shape) }
    case .named(let definition): [definition.shape]
    }
  }

  fileprivate var jsonSchema: JSONValue { .object(jsonSchemaMembers) }

  fileprivate var jsonSchemaMembers: [JSONValue.Member] {
    switch self {
    case .integer: [.init("type", "integer")]
    case .number: [.init("type", "number")]
    case .boolean: [.init("type", "boolean")]
    case .null: [.init("type", "null")]
    case .anything: []
    case .string(.any): [.init("type", "string")]
    case .string(.time): [.init("type", "string"), .init("format", "date-time")]
    case .string(.hexadecimal): [.init("type", "string"), .init("pattern", "^([0-9a-f]{2})*$")]
    case .string(.base64): [.init("type", "string"), .init("contentEncoding", "base64")]
    case .word(let text): [.init("const", .string(text))]
    case .exactly(let number): [.init("const", .number("\(number)"))]
    case .enumeration(let values): [.init("oneOf", .array(values.map(Self.valueSchema)))]
    case .array(let element): [.init("type", "array"), .init("items", element.jsonSchema)]
    case .tuple(let elements):
      [
        .init("type", "array"), .init("prefixItems", .array(elements.map(\.jsonSchema))), .init("items", false),
        .init("minItems", .number("\(elements.count)")),
      ]
    case .object(let fields): Self.objectSchema(of: fields)
    case .map(let key, let value):
      [
        .init("type", "object"), .init("propertyNames", key.keySchema), .init("additionalProperties", value.jsonSchema),
      ]
    case .choice(let discriminator, let alternatives):
      [
        .init(
          "oneOf",
          .array(
            alternatives.map { alternative -> JSONValue in
              let first = Field(discriminator, .word(alternative.name), "Which kind of object it is.")
              var members: [JSONValue.Member] = [
                .init("title", .string(alternative.name)), .init("description", .string(alternative.text)),
              ]
              members += Self.objectSchema(of: [first] + alternative.fields)
              return .object(members)
            }))
      ]
    case .either(let shapes): [.init("anyOf", .array(shapes.map(\.jsonSchema)))]
    case .named(let definition): [.init("$ref", .string("#/$defs/\(definition.key)"))]
    }
  }

  private static func valueSchema(_ value: Value) -> JSONValue {
    ["const": .string(value.name), "description": .string(value.text)]
  }

  private static func objectSchema(of fields: [Field]) -> [JSONValue.Member] {
    let properties = fields.map { field -> JSONValue.Member in
      let unit = field.unit.map { " In \($0.rawValue)." } ?? ""
      let description = JSONValue.Member("description", .string(field.description + unit))
      return JSONValue.Member(field.name, .object([description] + field.shape.jsonSchemaMembers))
    }
    let needed = fields.filter { $0.presence == .always }.map { JSONValue.string($0.name) }
    var members: [JSONValue.Member] = [.init("type", "object"), .init("properties", .object(properties))]
    if !needed.isEmpty { members.append(.init("required", .array(needed))) }
    members.append(.init("additionalProperties", false))
    return members
  }

  /// The schema of the shape as a member's name, which is always a string.
  private var keySchema: JSONValue {
    switch self {
    case .integer: ["pattern": "^[0-9]+$"]
    case .enumeration(let values): ["enum": .array(values.map { JSONValue.string($0.name) })]
    default: ["type": "string"]
    }
  }
}
