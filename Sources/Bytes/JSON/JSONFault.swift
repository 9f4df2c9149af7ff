/// The first offset at which text stops being JSON, and the cause.
package struct JSONFault: Error, Sendable, Equatable {
  package enum Problem: Sendable, Equatable {
    /// The text ends before its value does.
    case truncated
    /// A comma is followed by a closing bracket.
    case trailingComma
    /// A value is followed by another one instead of a comma or the end.
    case missingComma
    /// A key or value begins with an apostrophe.
    case singleQuote
    /// A string contains a byte below 20 hex.
    case controlCharacter
    /// Not UTF-8.
    case badUTF8
    /// Any other: literals of other languages, keys without quotes, leading zeros, comments, text after the end.
    case other
  }

  package let problem: Problem
  /// The first byte that is wrong; for a comma too much, the comma. The length of the text where it is cut.
  package let offset: Int

  package init(_ problem: Problem, at offset: Int) {
    self.problem = problem
    self.offset = offset
  }

  /// The fault at `offset`, where there is no valid token, or not the expected one.
  @inline(never)
  static func found(
    in text: RawSpan, at offset: Int, _ expected: JSONText.Expectation, _ inObject: Bool
  ) -> JSONFault {
    let byte = text.byte(at: offset)
    switch byte {
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      // After a comma a key is due in an object, and a value in an array.
      let comma = lastByteBefore(offset, in: text)
      let isTrailing = expected == .key || expected == .value && !inObject
      if isTrailing, let comma, text.byte(at: comma) == UInt8(ascii: ",") {
        return JSONFault(.trailingComma, at: comma)
      }
      return JSONFault(.other, at: offset)
    case UInt8(ascii: "'"):
      switch expected {
      case .value, .valueOrEnd, .key, .keyOrEnd: return JSONFault(.singleQuote, at: offset)
      case .commaOrEnd: return JSONFault(.missingComma, at: offset)
      case .colon, .nothing: return JSONFault(.other, at: offset)
      }
    default: break
    }
    switch expected {
    case .commaOrEnd: return JSONFault(beginsAnotherValue(text, offset) ? .missingComma : .other, at: offset)
    case .colon, .nothing: return JSONFault(.other, at: offset)
    case .value, .valueOrEnd, .key, .keyOrEnd: break
    }
    if byte == UInt8(ascii: "\"") { return inString(text, from: offset + 1) }
    guard expected == .value || expected == .valueOrEnd else { return JSONFault(.other, at: offset) }
    return inScalar(text, from: offset)
  }

  private static func lastByteBefore(_ offset: Int, in text: RawSpan) -> Int? {
    var before = offset - 1
    while before >= 0, text.byte(at: before) <= 0x20 { before -= 1 }
    return before >= 0 ? before : nil
  }

  /// Whether an unrelated value begins here: `03` and `1.x` are single numbers that are wrong.
  private static func beginsAnotherValue(_ text: RawSpan, _ offset: Int) -> Bool {
    switch text.byte(at: offset) {
    case UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["): return true
    default: break
    }
    if offset > 0 {
      switch text.byte(at: offset - 1) {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): return false
      default: break
      }
    }
    return JSONLexer.endOfScalar(text, from: offset) != nil
  }

  /// The fault in a string whose contents begin at `start` and that has no valid end.
  private static func inString(_ text: RawSpan, from start: Int) -> JSONFault {
    var offset = start
    while offset < text.byteCount {
      let byte = text.byte(at: offset)
      if byte < 0x20 { return JSONFault(.controlCharacter, at: offset) }
      if byte == UInt8(ascii: "\\") {
        guard let end = JSONLexer.endOfEscape(text, from: offset + 1) else { return inEscape(text, from: offset) }
        offset = end
      } else if byte < 0x80 {
        offset += 1
      } else {
        guard let end = JSONLexer.endOfCharacter(text, from: offset) else { return JSONFault(.badUTF8, at: offset) }
        offset = end
      }
    }
    return JSONFault(.truncated, at: text.byteCount)
  }

  private static func inEscape(_ text: RawSpan, from start: Int) -> JSONFault {
    guard start + 1 < text.byteCount else { return JSONFault(.truncated, at: text.byteCount) }
    guard text.byte(at: start + 1) == UInt8(ascii: "u") else { return JSONFault(.other, at: start) }
    for offset in start + 2..<start + 6 {
      guard offset < text.byteCount else { return JSONFault(.truncated, at: text.byteCount) }
      guard JSONLexer.isHexDigit(text.byte(at: offset)) else { break }
    }
    return JSONFault(.other, at: start)
  }

  /// The fault in a number or literal that begins at `start`: it is cut where more of it would make it valid.
  private static func inScalar(_ text: RawSpan, from start: Int) -> JSONFault {
    let left = text.extracting(start..<text.byteCount)
    for literal: StaticString in ["true", "false", "null"] where left.byteCount < literal.utf8CodeUnitCount {
      // Safe: the literal is a constant longer than the rest of the text.
      let isBeginning = (0..<left.byteCount).allSatisfy { unsafe literal.utf8Start[$0] == left.byte(at: $0) }
      if isBeginning { return JSONFault(.truncated, at: text.byteCount) }
    }
    // A number that ends the text with its minus, point or exponent needs one more digit.
    let last = left.byte(at: left.byteCount - 1)
    switch last {
    case UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
      var number = Array(copying: left)
      number.append(UInt8(ascii: "1"))
      if JSONLexer.endOfScalar(number.rawBytes, from: 0) == number.count {
        return JSONFault(.truncated, at: text.byteCount)
      }
    default: break
    }
    return JSONFault(.other, at: start)
  }
}
