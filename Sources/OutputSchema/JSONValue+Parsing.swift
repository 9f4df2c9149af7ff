/// A syntax error in JSON, and where it is.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The error, in words.
  public let problem: String
  /// The offset in bytes.
  public let offset: Int
  public var description: String { "\(problem) at offset \(offset)" }
}

extension JSONValue {
  /// Parses one value, and the white space around it (RFC 8259).
  ///
  /// - Throws: a `JSONError` if the text is not JSON, if anything follows the value, or if values are nested too deep.
  public init(parsing bytes: [UInt8]) throws(JSONError) {
    var reader = JSONReader(bytes: bytes)
    self = try reader.value(depth: 0)
    reader.skipSpace()
    if reader.offset < bytes.count { throw reader.error("unexpected bytes after the value") }
  }

  /// Values may be nested so deep.
  static let deepest = 512
}

private struct JSONReader {
  let bytes: [UInt8]
  var offset = 0

  func error(_ problem: String) -> JSONError { JSONError(problem: problem, offset: offset) }

  mutating func skipSpace() {
    while offset < bytes.count, [0x20, 0x0a, 0x0d, 0x09].contains(bytes[offset]) { offset += 1 }
  }

  private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  private mutating func take(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
    let text = Array("\(word)".utf8)
    guard bytes[offset...].starts(with: text) else { throw error("expected a value") }
    offset += text.count
    return value
  }

  mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    if depth > JSONValue.deepest { throw error("values nested too deep") }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return .object(try members(depth: depth))
    case UInt8(ascii: "["): return .array(try elements(depth: depth))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try take("true", .boolean(true))
    case UInt8(ascii: "f"): return try take("false", .boolean(false))
    case UInt8(ascii: "n"): return try take("null", .null)
    case nil: throw error("expected a value")
    default: return .number(try number())
    }
  }

  private mutating func members(depth: Int) throws(JSONError) -> [JSONValue.Member] {
    offset += 1
    skipSpace()
    var members: [JSONValue.Member] = []
    if take("}") { return members }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw error("expected a member's name") }
      let name = try string()
      skipSpace()
      guard take(":") else { throw error("expected a colon after a member's name") }
      members.append(JSONValue.Member(name, try value(depth: depth + 1)))
      skipSpace()
      if take("}") { return members }
      guard take(",") else { throw error("expected a comma or the end of the object") }
    }
  }

  private mutating func elements(depth: Int) throws(JSONError) -> [JSONValue] {
    offset += 1
    skipSpace()
    var elements: [JSONValue] = []
    if take("]") { return elements }
    while true {
      elements.append(try value(depth: depth + 1))
      skipSpace()
      if take("]") { return elements }
      guard take(",") else { throw error("expected a comma or the end of the array") }
    }
  }

  /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
  private mutating func number() throws(JSONError) -> String {
    let start = offset
    _ = take("-")
    if !take("0") { try digits() }
    if take(".") { try digits() }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      offset += 1
      if !take("+") { _ = take("-") }
      try digits()
    }
    return String(decoding: bytes[start..<offset], as: UTF8.self)
  }

  private mutating func digits() throws(JSONError) {
    let start = offset
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { offset += 1 }
    if offset == start { throw error("expected a digit") }
  }

  private mutating func string() throws(JSONError) -> String {
    offset += 1
    var text = ""
    while true {
      let start = offset
      while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { offset += 1 }
      text += String(decoding: bytes[start..<offset], as: UTF8.self)
      switch next {
      case UInt8(ascii: "\""):
        offset += 1
        return text
      case UInt8(ascii: "\\"): text.unicodeScalars.append(try escape())
      case nil: throw error("unterminated string")
      default: throw error("unescaped control character in a string")
      }
    }
  }

  private mutating func escape() throws(JSONError) -> Unicode.Scalar {
    offset += 1
    guard let character = next else { throw error("unterminated string") }
    offset += 1
    switch character {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(character)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default: throw error("unknown escape")
    }
    let first = try unit()
    guard (0xd800..<0xdc00).contains(first), bytes[offset...].starts(with: [0x5c, 0x75]) else {
      return Unicode.Scalar(first) ?? "\u{fffd}"
    }
    // Half of a surrogate pair is kept as is.
    let rest = offset
    offset += 2
    let second = try unit()
    guard (0xdc00..<0xe000).contains(second) else {
      offset = rest
      return "\u{fffd}"
    }
    return Unicode.Scalar(0x1_0000 + (first - 0xd800) << 10 + (second - 0xdc00)) ?? "\u{fffd}"
  }

  /// Four hexadecimal digits.
  private mutating func unit() throws(JSONError) -> UInt32 {
    guard offset + 4 <= bytes.count else { throw error("unterminated string") }
    let text = String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    guard text.allSatisfy(\.isHexDigit), let value = UInt32(text, radix: 16) else {
      throw error("expected four hexadecimal digits")
    }
    offset += 4
    return value
  }
}
