import Bytes

/// Text that users paste: the output of terminals, logs and other programs that shows packets or bytes.
enum PastedText {
  /// Whether a byte occurs in text: bytes above 7f may be UTF-8, and escape sequences colour the output of terminals.
  static func isText(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != 0x7f || (0x07...0x0d).contains(byte) || byte == 0x1b
  }

  /// The bytes as UTF-8. UTF-16 with a byte order mark, as PowerShell writes it, is converted. `nil` if the bytes are
  /// not text.
  static func utf8(_ bytes: RawSpan) -> [UInt8]? {
    guard bytes.byteCount > 1 else { return nil }
    let mark = bytes.uint16(at: 0)
    if mark == 0xfeff || mark == 0xfffe {
      let units = (1..<bytes.byteCount / 2).map { bytes.uint16(at: 2 * $0, bigEndian: mark == 0xfeff) }
      let text = Array(String(decoding: units, as: UTF16.self).utf8)
      return text.allSatisfy(isText) ? text : nil
    }
    for offset in 0..<bytes.byteCount where !isText(bytes.byte(at: offset)) { return nil }
    var text = Array(copying: bytes)
    if text.starts(with: [0xef, 0xbb, 0xbf]) { text.removeFirst(3) }
    return text
  }

  /// Calls `body` with each line, without its line end, until it returns `false`.
  static func eachLine(_ text: [UInt8], _ body: (ArraySlice<UInt8>) -> Bool) {
    var start = 0
    while start < text.count {
      let end = text[start...].firstIndex(of: 0x0a) ?? text.count
      var line = text[start..<end]
      while line.last == 0x0d { line.removeLast() }
      if !body(line) { return }
      start = end + 1
    }
  }

  static func isHexDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  static func digit(_ byte: UInt8) -> UInt8 { byte < 0x40 ? byte & 15 : (byte & 0xdf) &- 0x41 &+ 10 }

  static func isDecimal(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
  static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line.drop(while: isBlank)
    while let last = line.last, isBlank(last) { line.removeLast() }
    return line
  }

  /// The bytes of a text that consists of pairs of digits; `nil` for any other text.
  static func pairs(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text {
      guard isHexDigit(character) else { return nil }
      if let first = high {
        bytes.append(first << 4 | digit(character))
        high = nil
      } else {
        high = digit(character)
      }
    }
    return high == nil ? bytes : nil
  }

  /// A number of at most 15 digits; `nil` for anything else.
  static func number(_ text: some Collection<UInt8>, radix: Int) -> Int? {
    guard !text.isEmpty, text.count <= 15 else { return nil }
    var value = 0
    for character in text {
      guard isHexDigit(character), Int(digit(character)) < radix else { return nil }
      value = value * radix + Int(digit(character))
    }
    return value
  }

  /// The words of a line, as slices of it.
  static func words(_ line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] { line.split(whereSeparator: isBlank) }

  /// The bytes of base64 text with lines of any length; `nil` if it has other characters.
  static func base64(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    var isOver = false
    for character in text {
      let value: UInt8
      switch character {
      case 0x41...0x5a: value = character - 0x41
      case 0x61...0x7a: value = character - 0x61 + 26
      case 0x30...0x39: value = character - 0x30 + 52
      case UInt8(ascii: "+"), UInt8(ascii: "-"): value = 62
      case UInt8(ascii: "/"), UInt8(ascii: "_"): value = 63
      case UInt8(ascii: "="):
        isOver = true
        continue
      case 0x20, 0x09, 0x0a, 0x0d: continue
      default: return nil
      }
      if isOver { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }
}
