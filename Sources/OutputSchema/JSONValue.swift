/// A JSON value as it is written: members keep their order, numbers their digits.
public enum JSONValue: Sendable, Hashable {
  /// A member of an object.
  public struct Member: Sendable, Hashable {
    /// The name, without escapes.
    public var name: String
    /// The value.
    public var value: JSONValue

    /// Makes a member.
    ///
    /// - Parameters:
    ///   - name: the name, without escapes.
    ///   - value: the value.
    public init(_ name: String, _ value: JSONValue) { (self.name, self.value) = (name, value) }
  }

  case null
  case boolean(Bool)
  /// The number as written: `1.50` stays `1.50`.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral text: String) { self = .string(text) }
  public init(integerLiteral number: Int) { self = .number("\(number)") }
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(members.map { Member($0.0, $0.1) }) }
}

extension JSONValue {
  /// The value on several lines, two spaces deeper at each level, without a final line end.
  public var text: String {
    var text = ""
    write(to: &text, indent: "")
    return text
  }

  private func write(to text: inout String, indent: String) {
    let deeper = indent + "  "
    switch self {
    case .null: text += "null"
    case .boolean(let value): text += value ? "true" : "false"
    case .number(let digits): text += digits
    case .string(let string): Self.write(string, to: &text)
    case .array(let elements):
      guard !elements.isEmpty else {
        text += "[]"
        return
      }
      text += "["
      for (index, element) in elements.enumerated() {
        text += index > 0 ? ",\n\(deeper)" : "\n\(deeper)"
        element.write(to: &text, indent: deeper)
      }
      text += "\n\(indent)]"
    case .object(let members):
      guard !members.isEmpty else {
        text += "{}"
        return
      }
      text += "{"
      for (index, member) in members.enumerated() {
        text += index > 0 ? ",\n\(deeper)" : "\n\(deeper)"
        Self.write(member.name, to: &text)
        text += ": "
        member.value.write(to: &text, indent: deeper)
      }
      text += "\n\(indent)}"
    }
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      default:
        if scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) {
          let digits = String(scalar.value, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        } else {
          text.unicodeScalars.append(scalar)
        }
      }
    }
    text += "\""
  }
}
