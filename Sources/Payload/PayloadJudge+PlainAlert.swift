import Bytes

extension PayloadJudge {
  /// Whether a payload is `{"aps":{"alert":"…"}}` with ASCII text and nothing else, of up to 256 bytes: the commonest
  /// form, which breaks no rule in any year and is of the kind `alert`.
  ///
  /// The check is cheaper than looking up a kept judgement. `false` is no verdict: the payload has to be judged.
  ///
  /// - Parameters:
  ///   - command: the frame's command; with 2, `priority` is judged, too.
  @inlinable @inline(__always)
  package static func isPlainAlert(_ payload: RawSpan, command: UInt8, priority: UInt8?, topic: PayloadTopic) -> Bool {
    let count = payload.byteCount
    guard count >= 28, count <= 256, payload.uint64(at: 0) == 0x7b22_6170_7322_3a7b else { return false }
    // {"aps":{ "alert": " and, at the end, "}}.
    guard payload.uint64(at: 8) == 0x2261_6c65_7274_223a, payload.byte(at: 16) == 0x22,
      payload.byte(at: count - 3) == 0x22, payload.byte(at: count - 2) == 0x7d, payload.byte(at: count - 1) == 0x7d
    else { return false }
    // A text that begins with a blank or a brace may hold an object.
    let first = payload.byte(at: 17)
    guard first > 0x20, first != 0x7b, topic.takesAlerts, command < 2 || priority == nil || priority == 10 else {
      return false
    }
    return isPlainText(payload, from: 17, to: count - 3)
  }

  /// Whether there are only printed ASCII characters but quotes, backslashes and ampersands, in eight bytes or more.
  @inlinable @inline(__always)
  static func isPlainText(_ bytes: RawSpan, from start: Int, to end: Int) -> Bool {
    let text = bytes.extracting(start..<end)
    var special: UInt64 = 0
    // Without a bounds check the compiler vectorizes the loop, which takes a third of the time. Safe: as many words
    // as the text has.
    for word in 0..<text.byteCount / 8 {
      special |= Self.special(unsafe text.unsafeLoadUnaligned(fromUncheckedByteOffset: word &* 8, as: UInt64.self))
    }
    special |= Self.special(text.uint64(at: text.byteCount - 8))
    return special & 0x8080_8080_8080_8080 == 0
  }

  /// Sets the highest bit of each byte that is not a printable ASCII character, or is a quote, a backslash or an
  /// ampersand, which may begin an HTML entity. May also set it in the byte above such a byte.
  @inlinable @inline(__always)
  static func special(_ word: UInt64) -> UInt64 {
    let quotes = word ^ 0x2222_2222_2222_2222
    let escapes = word ^ 0x5c5c_5c5c_5c5c_5c5c
    let ampersands = word ^ 0x2626_2626_2626_2626
    return (word &- 0x2020_2020_2020_2020) | (quotes &- 0x0101_0101_0101_0101)
      | (escapes &- 0x0101_0101_0101_0101) | (ampersands &- 0x0101_0101_0101_0101) | word
  }
}
