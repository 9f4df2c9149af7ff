/// Finds the ends of JSON tokens (RFC 8259), for `JSONText` and `JSONTape`.
///
/// Every function returns `nil` if there is no valid token; `JSONFault` determines the reason.
enum JSONLexer {
  /// The offset after the closing quote of a string whose opening quote is before `start`; sets `hasEscapes` when
  /// there is a backslash in it.
  ///
  /// Plain text up to the quote is handled here, in a function small enough to be inlined.
  @inline(__always)
  static func endOfString(_ bytes: RawSpan, from start: Int, _ hasEscapes: inout Bool) -> Int? {
    let offset = endOfPlainText(bytes, from: start)
    if offset < bytes.byteCount, bytes.byte(at: offset) == UInt8(ascii: "\"") { return offset + 1 }
    return endOfOtherString(bytes, from: offset, &hasEscapes)
  }

  /// The offset of the first byte that is not plain, or of the last seven bytes.
  @inline(__always)
  private static func endOfPlainText(_ bytes: RawSpan, from start: Int) -> Int {
    let count = bytes.byteCount
    var offset = start
    // Bytes that are not plain get their highest bit set: those below 0x20, " and \, and those above 0x7f.
    while offset + 16 <= count {
      // Safe: any bit pattern is a value of these types, which have one size, and the load is checked.
      let block = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
      let (quotes, escapes) = (block ^ SIMD16(repeating: 0x22), block ^ SIMD16(repeating: 0x5c))
      let one = SIMD16<UInt8>(repeating: 1)
      let marked = (block &- SIMD16(repeating: 0x20)) | (quotes &- one) | (escapes &- one) | block
      let words = unsafe unsafeBitCast(marked, to: SIMD2<UInt64>.self)
      let (first, second) = (words[0] & 0x8080_8080_8080_8080, words[1] & 0x8080_8080_8080_8080)
      if first != 0 { return offset + (first.trailingZeroBitCount >> 3) }
      if second != 0 { return offset + 8 + (second.trailingZeroBitCount >> 3) }
      offset += 16
    }
    // The same in a word of eight: a byte may borrow from the next, but the lowest marked one is exact.
    while offset + 8 <= count {
      let word = bytes.uint64(at: offset, bigEndian: false)
      let quotes = word ^ 0x2222_2222_2222_2222
      let escapes = word ^ 0x5c5c_5c5c_5c5c_5c5c
      let special =
        ((word &- 0x2020_2020_2020_2020) | (quotes &- 0x0101_0101_0101_0101)
          | (escapes &- 0x0101_0101_0101_0101) | word) & 0x8080_8080_8080_8080
      if special != 0 { return offset + (special.trailingZeroBitCount >> 3) }
      offset += 8
    }
    return offset
  }

  @inline(never)
  private static func endOfOtherString(_ bytes: RawSpan, from start: Int, _ hasEscapes: inout Bool) -> Int? {
    let count = bytes.byteCount
    var offset = start
    while offset < count {
      let byte = bytes.byte(at: offset)
      if byte == UInt8(ascii: "\"") { return offset + 1 }
      if byte == UInt8(ascii: "\\") {
        hasEscapes = true
        guard let end = endOfEscape(bytes, from: offset + 1) else { return nil }
        offset = endOfPlainText(bytes, from: end)
      } else if byte < 0x20 {
        return nil
      } else if byte < 0x80 {
        offset = endOfPlainText(bytes, from: offset + 1)
      } else {
        guard let end = endOfCharacter(bytes, from: offset) else { return nil }
        offset = end
      }
    }
    return nil
  }

  static func endOfEscape(_ bytes: RawSpan, from offset: Int) -> Int? {
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

  static func isHexDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  /// The end of a character above U+007F: the shortest form only, no surrogates, nothing above U+10FFFF (RFC 3629).
  static func endOfCharacter(_ bytes: RawSpan, from offset: Int) -> Int? {
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
  static func endOfScalar(_ bytes: RawSpan, from start: Int) -> Int? {
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

  static func endOfLiteral(_ literal: StaticString, _ bytes: RawSpan, _ start: Int) -> Int? {
    let length = literal.utf8CodeUnitCount
    guard start + length <= bytes.byteCount else { return nil }
    // Safe: `literal` is a compile-time constant of `length` bytes.
    for index in 0..<length where unsafe literal.utf8Start[index] != bytes.byte(at: start + index) { return nil }
    return start + length
  }

  /// The offset of the first `\u` escape that is half a surrogate pair, in a string without other faults.
  static func loneSurrogate(_ bytes: RawSpan, _ start: Int, _ end: Int) -> Int? {
    var offset = start
    while offset < end {
      guard bytes.byte(at: offset) == UInt8(ascii: "\\") else {
        offset += 1
        continue
      }
      let (scalar, length) = escape(bytes, at: offset, before: end)
      if scalar == "\u{fffd}", length == 6, (0xd800...0xdfff).contains(unit(bytes, at: offset + 2)) { return offset }
      offset += length
    }
    return nil
  }

  /// The character of a valid escape at `offset`, and its length: 2, 6, or 12 for a complete surrogate pair. Half of a
  /// pair is U+FFFD.
  static func escape(_ bytes: RawSpan, at offset: Int, before end: Int) -> (scalar: Unicode.Scalar, length: Int) {
    let letter = bytes.byte(at: offset + 1)
    switch letter {
    case UInt8(ascii: "b"): return ("\u{8}", 2)
    case UInt8(ascii: "f"): return ("\u{c}", 2)
    case UInt8(ascii: "n"): return ("\n", 2)
    case UInt8(ascii: "r"): return ("\r", 2)
    case UInt8(ascii: "t"): return ("\t", 2)
    case UInt8(ascii: "u"): break
    default: return (Unicode.Scalar(letter), 2)
    }
    let first = unit(bytes, at: offset + 2)
    if let scalar = Unicode.Scalar(first) { return (scalar, 6) }
    if first < 0xdc00, offset + 12 <= end, bytes.holds("\\u", at: offset + 6) {
      let second = unit(bytes, at: offset + 8)
      if (0xdc00...0xdfff).contains(second),
        let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
      {
        return (scalar, 12)
      }
    }
    return ("\u{fffd}", 6)
  }

  private static func unit(_ bytes: RawSpan, at offset: Int) -> UInt32 {
    var value: UInt32 = 0
    for digit in offset..<offset + 4 {
      let byte = bytes.byte(at: digit)
      value = value << 4 | UInt32((byte & 15) + (byte > 0x39 ? 9 : 0))
    }
    return value
  }
}

extension RawSpan {
  /// The length of the UTF-8 character at `offset`, 1 to 4; `nil` if it is not valid: the shortest form only, no
  /// surrogates, nothing above U+10FFFF (RFC 3629).
  package func lengthOfCharacter(at offset: Int) -> Int? {
    if byte(at: offset) < 0x80 { return 1 }
    return JSONLexer.endOfCharacter(self, from: offset).map { $0 - offset }
  }

  /// The offset of the closing quote of a JSON string whose contents begin at `start`; `nil` if they have an escape, or
  /// are not valid.
  @inline(__always)
  package func endOfPlainJSONString(from start: Int) -> Int? {
    var hasEscapes = false
    guard let end = JSONLexer.endOfString(self, from: start, &hasEscapes), !hasEscapes else { return nil }
    return end - 1
  }
}
