/// The values that a field, or a whole output, can have.
public indirect enum Shape: Sendable, Equatable {
  case integer
  case number
  case boolean
  case null
  /// Any JSON value, which is not checked.
  case anything
  case string(Notation)
  /// Always this text.
  case word(String)
  /// Always this integer.
  case exactly(Int)
  case enumeration([Value])
  case array(Shape)
  /// An array with elements of exactly these shapes, in this order.
  case tuple([Shape])
  /// An object with these fields and no others.
  case object([Field])
  /// An object whose keys are data; a key of shape `integer` is written in decimal digits.
  case map(key: Shape, value: Shape)
  /// Objects of several kinds, distinguished by the value of the field `by`, which is not listed in their fields.
  case choice(by: String, [Alternative])
  case either([Shape])
  /// A shape that is used in several places and described once.
  case named(Definition)

  /// The format of a string's text.
  public enum Notation: Sendable {
    case any
    /// RFC 3339 in UTC: `2015-09-16T01:02:03.123456789Z`, with or without decimals.
    case time
    /// Bytes, two lower-case digits each.
    case hexadecimal
    case base64
  }

  /// A text that an enumeration can have.
  public struct Value: Sendable, Equatable {
    /// The text of the value.
    public let name: String
    /// The meaning.
    public let text: String

    package init(_ name: String, _ text: String) { (self.name, self.text) = (name, text) }
  }

  /// One alternative of a choice of objects.
  public struct Alternative: Sendable, Equatable {
    /// The value of the field that distinguishes the alternatives.
    public let name: String
    /// The meaning.
    public let text: String
    /// The other fields of the object.
    public let fields: [Field]

    package init(_ name: String, _ text: String, _ fields: [Field]) {
      (self.name, self.text, self.fields) = (name, text, fields)
    }
  }

  /// A shape with a name, which others refer to.
  public struct Definition: Sendable, Equatable {
    /// The name in references.
    public let name: String
    /// The meaning.
    public let text: String
    /// The shape itself.
    public let shape: Shape

    package init(_ name: String, _ text: String, _ shape: Shape) {
      (self.name, self.text, self.shape) = (name, text, shape)
    }
  }

  package static let text = Shape.string(.any)
  package static let time = Shape.string(.time)
  package static let hexadecimal = Shape.string(.hexadecimal)

  /// An enumeration with the meaning of each value.
  package static func values(_ values: KeyValuePairs<String, String>) -> Shape {
    .enumeration(values.map { Value($0.key, $0.value) })
  }
}

extension Shape {
  /// Its type in a few words.
  var typeName: String {
    switch self {
    case .integer: "integer"
    case .number: "number"
    case .boolean: "boolean"
    case .null: "null"
    case .anything: "any JSON"
    case .string(.any): "string"
    case .string(.time): "time"
    case .string(.hexadecimal): "hexadecimal"
    case .string(.base64): "Base64"
    case .word(let text): "\"\(text)\""
    case .exactly(let number): "\(number)"
    case .enumeration: "name"
    case .array(let element): "array of \(element.typeName)"
    case .tuple(let elements): "[\(elements.map(\.typeName).joined(separator: ", "))]"
    case .object, .choice: "object"
    case .map(let key, let value): "map: \(key.typeName) to \(value.typeName)"
    case .either(let shapes): shapes.map(\.typeName).joined(separator: " or ")
    case .named(let definition): definition.name
    }
  }
}
