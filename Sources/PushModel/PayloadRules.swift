import Bytes

/// The checks of a gateway on a payload.
@usableFromInline package enum PayloadRules {
  /// Whether the payload has `content-available` and nothing that a device would show or play: no alert, badge or sound.
  ///
  /// Such a notification must not have priority 10. Any value of `content-available` except 0, `false` and `null`
  /// counts; an alert, badge or sound counts by its key alone (clients sent an empty sound to be allowed priority 10).
  /// Of a repeated key the last one counts. A payload that is not a JSON object is not silent.
  ///
  /// Payloads are searched for the key's hyphen first, which few have, and for letters written as escapes, which nearly
  /// none have, so this costs a few nanoseconds for all others.
  @inlinable
  package static func isSilent(_ payload: RawSpan) -> Bool {
    payload.contains(UInt8(ascii: "-"), or: UInt8(ascii: "\\")) && mayBeSilent(payload)
  }

  @usableFromInline @inline(never)
  static func mayBeSilent(_ payload: RawSpan) -> Bool {
    var offset = 0
    while let hyphen = payload.firstOffset(of: UInt8(ascii: "-"), from: offset) {
      offset = hyphen + 1
      if hyphen >= 7, payload.byteCount - hyphen >= 10, payload.byte(at: hyphen - 1) == UInt8(ascii: "t"),
        payload.byte(at: hyphen + 1) == UInt8(ascii: "a")
      {
        return hasOnlyContentAvailable(payload)
      }
    }
    offset = 0
    while let escape = payload.firstOffset(of: UInt8(ascii: "\\"), from: offset) {
      // Both bytes of an escape are passed, or the second of `\\` would begin another.
      offset = escape + 2
      if payload.holds("\\u00", at: escape), payload.byteCount - escape >= 6 {
        // A hyphen is 2d, letters are 61 to 7a.
        let digit = payload.byte(at: escape + 4)
        if digit == UInt8(ascii: "2") || digit == UInt8(ascii: "6") || digit == UInt8(ascii: "7") {
          return hasOnlyContentAvailable(payload)
        }
      }
    }
    return false
  }

  @usableFromInline @inline(never)
  static func hasOnlyContentAvailable(_ payload: RawSpan) -> Bool {
    guard JSONText.scan(payload) != .invalid else { return false }
    var isSilent = false
    forEachMember(of: payload, from: 0) { key, value in
      guard isKey("aps", payload, key) else { return }
      isSilent = false
      var shows = false
      forEachMember(of: payload, from: value) { key, value in
        if isKey("content-available", payload, key) {
          isSilent = isSomething(payload, value)
        } else if isKey("alert", payload, key) || isKey("badge", payload, key) || isKey("sound", payload, key) {
          shows = true
        }
      }
      if shows { isSilent = false }
    }
    return isSilent
  }

  /// Whether the string at `start` (its opening quote) is `name`, which has lower-case letters and hyphens only. Each
  /// of its characters may be written as an escape, as `\u002d`.
  private static func isKey(_ name: StaticString, _ text: RawSpan, _ start: Int) -> Bool {
    var offset = start + 1
    for index in 0..<name.utf8CodeUnitCount {
      // Safe: `name` is a compile-time constant of that many bytes.
      let expected = unsafe name.utf8Start[index]
      if text.byte(at: offset) == expected {
        offset += 1
      } else if text.holds("\\u00", at: offset),
        hexValue(text.byte(at: offset + 4)) << 4 | hexValue(text.byte(at: offset + 5)) == expected
      {
        offset += 6
      } else {
        return false
      }
    }
    return text.byte(at: offset) == UInt8(ascii: "\"")
  }

  /// The value of a hexadecimal digit. The text is valid JSON, so the byte is such a digit.
  private static func hexValue(_ digit: UInt8) -> UInt8 { (digit & 15) + (digit > 0x39 ? 9 : 0) }

  /// Whether the value at `offset` is neither a zero nor `false` nor `null`.
  private static func isSomething(_ text: RawSpan, _ offset: Int) -> Bool {
    switch text.byte(at: offset) {
    case UInt8(ascii: "f"), UInt8(ascii: "n"): return false
    case UInt8(ascii: "-"), UInt8(ascii: "0"):
      // `0`, `-0`, `0.00` and `0e7`: a number is zero if every digit before its exponent is 0.
      for digit in offset..<text.byteCount {
        switch text.byte(at: digit) {
        case UInt8(ascii: "1")...UInt8(ascii: "9"): return true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "0"): continue
        default: return false
        }
      }
      return false
    default: return true
    }
  }

  /// Calls `body` with the offsets of the keys (their quotes) and values of the object that begins at or after `start`.
  /// The text is valid JSON, so nothing can be missing.
  private static func forEachMember(of text: RawSpan, from start: Int, _ body: (_ key: Int, _ value: Int) -> Void) {
    var offset = skipSpace(text, start)
    guard offset < text.byteCount, text.byte(at: offset) == UInt8(ascii: "{") else { return }
    offset = skipSpace(text, offset + 1)
    while offset < text.byteCount, text.byte(at: offset) == UInt8(ascii: "\"") {
      let key = offset
      offset = skipSpace(text, endOfValue(text, key))
      let value = skipSpace(text, offset + 1)
      body(key, value)
      offset = skipSpace(text, endOfValue(text, value))
      if offset < text.byteCount, text.byte(at: offset) == UInt8(ascii: ",") { offset = skipSpace(text, offset + 1) }
    }
  }

  private static func skipSpace(_ text: RawSpan, _ start: Int) -> Int {
    var offset = start
    while offset < text.byteCount, text.byte(at: offset) <= 0x20 { offset += 1 }
    return offset
  }

  /// The offset after a value: after its closing quote or bracket, or after a number or word.
  private static func endOfValue(_ text: RawSpan, _ start: Int) -> Int {
    var offset = start
    var depth = 0
    var isString = false
    while offset < text.byteCount {
      let byte = text.byte(at: offset)
      offset += 1
      if isString {
        if byte == UInt8(ascii: "\\") { offset += 1 }
        if byte == UInt8(ascii: "\"") { isString = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          if depth == 0 { return offset - 1 }
          depth -= 1
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          if depth == 0 { return offset - 1 }
          continue
        default:
          if depth > 0 || !isEndOfScalar(text, offset) { continue }
        }
      }
      if depth == 0 && !isString { return offset }
    }
    return offset
  }

  private static func isEndOfScalar(_ text: RawSpan, _ offset: Int) -> Bool {
    guard offset < text.byteCount else { return true }
    switch text.byte(at: offset) {
    case 0...0x20, UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"): return true
    default: return false
    }
  }
}
