/// Characters that control a terminal or hide the content of a text: control characters of both sets and DEL, marks and
/// embeddings of direction, separators of lines and paragraphs.
///
/// They are escaped as in JSON, `\u001b`, in every format: a terminal, CSV and JSON show the same text.
public enum ControlCharacters {
  package static func contains(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }

  /// The text with each control character as `\u` and four hexadecimal digits. A backslash stays unchanged, so the
  /// result cannot be reversed.
  ///
  /// - Parameters:
  ///   - text: text from any source.
  ///   - keepsLines: whether line feeds stay unchanged.
  /// - Complexity: O(*n*); text without control characters is returned as it is.
  public static func escaped(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: contains) else { return text }
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if contains(scalar) && !(keepsLines && scalar == "\n") {
        let digits = String(scalar.value, radix: 16)
        escaped.append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".unicodeScalars)
      } else {
        escaped.append(scalar)
      }
    }
    return String(escaped)
  }

  /// The length in bytes, 1 to 3, and the number of the control character that begins at `offset` of UTF-8; `nil` if
  /// there is none.
  static func one(in bytes: RawSpan, at offset: Int) -> (length: Int, value: UInt16)? {
    let left = bytes.byteCount - offset
    switch bytes.byte(at: offset) {
    case let byte where byte < 0x20 || byte == 0x7f: return (1, UInt16(byte))
    case let lead where lead == 0xc2 || lead == 0xd8:
      guard left >= 2 else { return nil }
      let value = UInt16(lead & 0x1f) << 6 | UInt16(bytes.byte(at: offset + 1) & 0x3f)
      return contains(value) ? (2, value) : nil
    case 0xe2:
      guard left >= 3 else { return nil }
      let value = 0x2000 | UInt16(bytes.byte(at: offset + 1) & 0x3f) << 6 | UInt16(bytes.byte(at: offset + 2) & 0x3f)
      return contains(value) ? (3, value) : nil
    default: return nil
    }
  }

  private static func contains(_ value: UInt16) -> Bool { Unicode.Scalar(value).map(contains) ?? false }
}

extension ByteWriter {
  /// Writes UTF-8 with control characters as `\u001b` and the like, which does not change the value of JSON text.
  ///
  /// Linear, without allocation. Text without control characters is copied in one piece; plain ASCII is checked eight
  /// bytes at a time.
  package mutating func write(escapingControlsOf text: RawSpan) {
    if Self.isPlain(text) { return write(text) }
    var (start, offset) = (0, 0)
    while offset < text.byteCount {
      guard let control = ControlCharacters.one(in: text, at: offset) else {
        offset += 1
        continue
      }
      write(text.extracting(start..<offset))
      write("\\u")
      for digit in 0..<4 as Range<UInt16> {
        write(Self.hexDigit(UInt8(truncatingIfNeeded: control.value >> (12 - 4 * digit)) & 15))
      }
      offset += control.length
      start = offset
    }
    write(text.extracting(start..<text.byteCount))
  }

  /// Escapes the bytes written from `start` on. Does not allocate when there is nothing to escape.
  package mutating func escapeControls(from start: Int) {
    guard let text = copyWithControls(from: start) else { return }
    truncate(to: start)
    write(escapingControlsOf: text.rawBytes)
  }

  /// A copy of the bytes from `start` on; `nil` when they hold no control character.
  private func copyWithControls(from start: Int) -> [UInt8]? {
    let text = bytes.extracting(start..<count)
    guard !Self.isPlain(text) else { return nil }
    var offset = 0
    while offset < text.byteCount, ControlCharacters.one(in: text, at: offset) == nil { offset += 1 }
    return offset < text.byteCount ? Array(copying: text) : nil
  }

  /// Nothing above 0x7e, and no control character.
  private static func isPlain(_ text: RawSpan) -> Bool {
    var offset = 0
    while offset + 8 <= text.byteCount {
      let word = text.uint64(at: offset, bigEndian: false)
      // The highest bit marks bytes above 0x7f, bytes that become so when 1 is added (0x7f), and bytes below 0x20.
      let marks = word | (word &+ 0x0101_0101_0101_0101) | ((word &- 0x2020_2020_2020_2020) & ~word)
      if marks & 0x8080_8080_8080_8080 != 0 { return false }
      offset += 8
    }
    while offset < text.byteCount {
      let byte = text.byte(at: offset)
      if byte < 0x20 || byte > 0x7e { return false }
      offset += 1
    }
    return true
  }
}
