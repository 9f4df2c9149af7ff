/// Checks in one pass, without building anything, whether bytes are JSON text in UTF-8 (RFC 8259).
///
/// Payloads are embedded into records unchanged, so every notification is checked; it is a hot path. It is strict: no
/// byte order mark, no trailing comma, no control character in a string, only well-formed UTF-8. Any value may be at
/// the top level. Numbers keep every digit because nothing converts them.
package enum JSONText {
  package enum Verdict: Sendable, Equatable {
    case invalid
    /// Valid. `isCompact` is false if there is white space outside of strings.
    case valid(isCompact: Bool)
  }

  /// Deepest nesting that can be accepted; deeper text counts as invalid.
  package static var deepestNesting: Int { 512 }

  @usableFromInline enum Expectation { case value, valueOrEnd, key, keyOrEnd, colon, commaOrEnd, nothing }

  /// Checks all of `bytes`. Empty bytes are invalid. Linear in the length, no allocation.
  package static func scan(_ bytes: RawSpan) -> Verdict {
    let count = bytes.byteCount
    var offset = 0
    var expected = Expectation.value
    var isCompact = true
    var depth = 0
    // One bit per level: set for an object.
    var objects = InlineArray<8, UInt64>(repeating: 0)
    var inObject = false
    var hasEscapes = false

    while offset < count {
      let byte = bytes.byte(at: offset)
      if byte <= 0x20 {
        guard byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 else { return .invalid }
        isCompact = false
        offset += 1
        continue
      }
      switch byte {
      case UInt8(ascii: "\""):
        guard let end = JSONLexer.endOfString(bytes, from: offset + 1, &hasEscapes) else { return .invalid }
        offset = end
        switch expected {
        case .value, .valueOrEnd: expected = depth == 0 ? .nothing : .commaOrEnd
        case .key, .keyOrEnd: expected = .colon
        default: return .invalid
        }
        continue
      case UInt8(ascii: ":"):
        guard expected == .colon else { return .invalid }
        expected = .value
      case UInt8(ascii: ","):
        guard expected == .commaOrEnd else { return .invalid }
        expected = inObject ? .key : .value
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard expected == .value || expected == .valueOrEnd, depth < deepestNesting else { return .invalid }
        inObject = byte == UInt8(ascii: "{")
        let bit = UInt64(1) << UInt64(depth & 63)
        if inObject { objects[depth >> 6] |= bit } else { objects[depth >> 6] &= ~bit }
        depth += 1
        expected = inObject ? .keyOrEnd : .valueOrEnd
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        let closesObject = byte == UInt8(ascii: "}")
        guard depth > 0, closesObject == inObject,
          expected == .commaOrEnd || expected == (closesObject ? .keyOrEnd : .valueOrEnd)
        else { return .invalid }
        depth -= 1
        if depth > 0 { inObject = objects[(depth - 1) >> 6] >> UInt64((depth - 1) & 63) & 1 == 1 }
        expected = depth == 0 ? .nothing : .commaOrEnd
      default:
        guard expected == .value || expected == .valueOrEnd, let end = JSONLexer.endOfScalar(bytes, from: offset) else {
          return .invalid
        }
        offset = end
        expected = depth == 0 ? .nothing : .commaOrEnd
        continue
      }
      offset += 1
    }
    return expected == .nothing ? .valid(isCompact: isCompact) : .invalid
  }

  /// Writes valid JSON text without the white space outside its strings.
  package static func writeCompact(_ bytes: RawSpan, into output: inout ByteWriter) {
    var inString = false
    var escaped = false
    for offset in 0..<bytes.byteCount {
      let byte = bytes.byte(at: offset)
      if inString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          inString = false
        }
      } else if byte <= 0x20 {
        continue
      } else if byte == UInt8(ascii: "\"") {
        inString = true
      }
      output.write(byte)
    }
  }
}
