import Bytes

/// Whether bytes are JSON text in UTF-8 (RFC 8259), found in one pass without building anything.
///
/// Payloads are embedded into records as they are, so this decides on every notification; it is a hot path. It is
/// strict: no byte order mark, no trailing comma, no control character in a string, only well-formed UTF-8. Any value
/// may stand at the top. Numbers keep every digit because nothing converts them.
public enum JSONText {
  public enum Verdict: Sendable, Equatable {
    case invalid
    /// Valid. `isCompact` is false when white space stands outside strings.
    case valid(isCompact: Bool)
  }

  /// Deepest nesting that can be accepted; deeper text counts as invalid.
  public static var deepestNesting: Int { 512 }

  @usableFromInline enum Expectation { case value, valueOrEnd, key, keyOrEnd, colon, commaOrEnd, nothing }

  /// Checks all of `bytes`. Empty bytes are invalid. Linear in the length, no allocation.
  public static func scan(_ bytes: RawSpan) -> Verdict {
    let count = bytes.byteCount
    var offset = 0
    var expected = Expectation.value
    var isCompact = true
    var depth = 0
    // One bit a level: set for an object.
    var objects = InlineArray<8, UInt64>(repeating: 0)
    var inObject = false

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
        guard let end = endOfString(bytes, from: offset + 1) else { return .invalid }
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
        guard expected == .value || expected == .valueOrEnd, let end = endOfScalar(bytes, from: offset) else {
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
  public static func writeCompact(_ bytes: RawSpan, into output: inout ByteWriter) {
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

  /// The offset after the closing quote of a string whose opening quote is before `start`.
  @inline(__always)
  private static func endOfString(_ bytes: RawSpan, from start: Int) -> Int? {
    let count = bytes.byteCount
    var offset = start
    while true {
      // Eight plain bytes at a time: none below 0x20, none of " and \, none above 0x7f. The lowest marked byte is exact.
      while offset + 8 <= count {
        let word = bytes.uint64(at: offset, bigEndian: false)
        let quotes = word ^ 0x2222_2222_2222_2222
        let escapes = word ^ 0x5c5c_5c5c_5c5c_5c5c
        let special =
          ((word &- 0x2020_2020_2020_2020) | (quotes &- 0x0101_0101_0101_0101)
            | (escapes &- 0x0101_0101_0101_0101) | word) & 0x8080_8080_8080_8080
        if special == 0 {
          offset += 8
        } else {
          offset += special.trailingZeroBitCount >> 3
          break
        }
      }
      guard offset < count else { return nil }
      let byte = bytes.byte(at: offset)
      if byte == UInt8(ascii: "\"") { return offset + 1 }
      if byte == UInt8(ascii: "\\") {
        guard let end = endOfEscape(bytes, from: offset + 1) else { return nil }
        offset = end
      } else if byte < 0x20 {
        return nil
      } else if byte < 0x80 {
        offset += 1
      } else {
        guard let end = endOfCharacter(bytes, from: offset) else { return nil }
        offset = end
      }
    }
  }

  private static func endOfEscape(_ bytes: RawSpan, from offset: Int) -> Int? {
    guard offset < bytes.byteCount else { return nil }
    switch bytes.byte(at: offset) {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return offset + 1
    case UInt8(ascii: "u"):
      guard offset + 5 <= bytes.byteCount else { return nil }
      for digit in offset + 1..<offset + 5 where !isHexDigit(bytes.byte(at: digit)) { return nil }
      return offset + 5
    default: return nil
    }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  /// One character above U+007F: the shortest form only, no surrogates, nothing above U+10FFFF (RFC 3629).
  private static func endOfCharacter(_ bytes: RawSpan, from offset: Int) -> Int? {
    let first = bytes.byte(at: offset)
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xbf
    switch first {
    case 0xc2...0xdf: length = 2
    case 0xe0: (length, second) = (3, 0xa0...0xbf)
    case 0xed: (length, second) = (3, 0x80...0x9f)
    case 0xe1...0xef: length = 3
    case 0xf0: (length, second) = (4, 0x90...0xbf)
    case 0xf1...0xf3: length = 4
    case 0xf4: (length, second) = (4, 0x80...0x8f)
    default: return nil
    }
    guard offset + length <= bytes.byteCount, second.contains(bytes.byte(at: offset + 1)) else { return nil }
    for next in offset + 2..<offset + max(2, length) where bytes.byte(at: next) & 0xc0 != 0x80 { return nil }
    return offset + length
  }

  /// The offset after a number, `true`, `false` or `null`.
  private static func endOfScalar(_ bytes: RawSpan, from start: Int) -> Int? {
    switch bytes.byte(at: start) {
    case UInt8(ascii: "t"): return endOfLiteral("true", bytes, start)
    case UInt8(ascii: "f"): return endOfLiteral("false", bytes, start)
    case UInt8(ascii: "n"): return endOfLiteral("null", bytes, start)
    default: break
    }
    var offset = start
    func isDigit(_ offset: Int) -> Bool { offset < bytes.byteCount && (0x30...0x39).contains(bytes.byte(at: offset)) }
    func isByte(_ offset: Int, _ byte: UInt8) -> Bool { offset < bytes.byteCount && bytes.byte(at: offset) == byte }

    if isByte(offset, UInt8(ascii: "-")) { offset += 1 }
    guard isDigit(offset) else { return nil }
    if isByte(offset, UInt8(ascii: "0")) {
      offset += 1
    } else {
      while isDigit(offset) { offset += 1 }
    }
    if isByte(offset, UInt8(ascii: ".")) {
      offset += 1
      guard isDigit(offset) else { return nil }
      while isDigit(offset) { offset += 1 }
    }
    if isByte(offset, UInt8(ascii: "e")) || isByte(offset, UInt8(ascii: "E")) {
      offset += 1
      if isByte(offset, UInt8(ascii: "+")) || isByte(offset, UInt8(ascii: "-")) { offset += 1 }
      guard isDigit(offset) else { return nil }
      while isDigit(offset) { offset += 1 }
    }
    return offset
  }

  private static func endOfLiteral(_ literal: StaticString, _ bytes: RawSpan, _ start: Int) -> Int? {
    let length = literal.utf8CodeUnitCount
    guard start + length <= bytes.byteCount else { return nil }
    // Safe: `literal` is a compile-time constant of `length` bytes.
    for index in 0..<length where unsafe literal.utf8Start[index] != bytes.byte(at: start + index) { return nil }
    return start + length
  }
}
