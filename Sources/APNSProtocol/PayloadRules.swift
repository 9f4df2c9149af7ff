import Bytes

/// What a gateway looks for in a payload.
public enum PayloadRules {
  /// Whether the payload has `content-available` and nothing that a device would show or play: no alert, badge or sound.
  ///
  /// Such a notification must not have priority 10. Payloads are searched for the key's hyphen first, which few have, so
  /// this costs a few nanoseconds for all others. What is no JSON object is not silent.
  @inlinable
  public static func isSilent(_ payload: RawSpan) -> Bool {
    var offset = 0
    while let hyphen = payload.firstOffset(of: UInt8(ascii: "-"), from: offset) {
      offset = hyphen + 1
      if hyphen >= 7, payload.byteCount - hyphen >= 10, payload.byte(at: hyphen - 1) == UInt8(ascii: "t"),
        payload.byte(at: hyphen + 1) == UInt8(ascii: "a")
      {
        return hasOnlyContentAvailable(payload)
      }
    }
    return false
  }

  @usableFromInline @inline(never)
  static func hasOnlyContentAvailable(_ payload: RawSpan) -> Bool {
    guard JSONText.scan(payload) != .invalid else { return false }
    var isSilent = false
    forEachMember(of: payload, from: 0) { key, value in
      guard payload.holds("\"aps\"", at: key) else { return }
      isSilent = false
      var shows = false
      forEachMember(of: payload, from: value) { key, value in
        if payload.holds("\"content-available\"", at: key) { isSilent = payload.byte(at: value) != UInt8(ascii: "0") }
        if payload.holds("\"alert\"", at: key) || payload.holds("\"badge\"", at: key)
          || payload.holds("\"sound\"", at: key)
        {
          shows = true
        }
      }
      if shows { isSilent = false }
    }
    return isSilent
  }

  /// Calls `body` with the offsets of the keys (their quotes) and values of the object that begins at or behind `start`.
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

  /// The offset behind a value: behind its closing quote or bracket, or at what follows a number or word.
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
