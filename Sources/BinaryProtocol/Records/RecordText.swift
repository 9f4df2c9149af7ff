import Bytes

/// Decodes strings in records.
package enum RecordText {
  /// Writes JSON text in which control characters escaped as `\u009b` are unescaped, from the first on, until it is
  /// shorter by the given number of bytes.
  package static func write(restoringControlsOf text: RawSpan, bytesLess excess: Int, into output: inout ByteWriter) {
    var excess = excess
    var offset = 0
    while offset < text.byteCount {
      let length = text.byte(at: offset) == UInt8(ascii: "\\") ? min(2, text.byteCount - offset) : 1
      if excess > 0, length == 2, text.byte(at: offset + 1) == UInt8(ascii: "u"), offset + 6 <= text.byteCount,
        let control = control(text.extracting(offset + 2..<offset + 6))
      {
        output.write(text: control)
        excess -= 6 - control.utf8.count
        offset += 6
      } else {
        output.write(text.extracting(offset..<offset + length))
        offset += length
      }
    }
  }

  /// The control character with this number in four digits; those below 0x20 must be escaped in JSON.
  private static func control(_ digits: RawSpan) -> String? {
    var value: UInt32 = 0
    for offset in 0..<4 {
      guard let digit = digits.byte(at: offset).valueAsHexadecimalDigit else { return nil }
      value = value << 4 | UInt32(digit)
    }
    guard value >= 0x7f, let scalar = Unicode.Scalar(value), ControlCharacters.contains(scalar) else { return nil }
    return String(scalar)
  }

  /// The text of a JSON string, given without its quotes and known to be well-formed; half of a surrogate pair becomes
  /// U+FFFD.
  package static func unescaped(_ text: RawSpan) -> String {
    var units: [UInt8] = []
    units.reserveCapacity(text.byteCount)
    var offset = 0
    func hex(at offset: Int) -> UInt32? {
      guard offset + 4 <= text.byteCount else { return nil }
      return (offset..<offset + 4).reduce(UInt32?.some(0)) { value, place in
        value.flatMap { value in text.byte(at: place).valueAsHexadecimalDigit.map { value << 4 | UInt32($0) } }
      }
    }
    while offset < text.byteCount {
      let byte = text.byte(at: offset)
      offset += 1
      guard byte == UInt8(ascii: "\\"), offset < text.byteCount else {
        units.append(byte)
        continue
      }
      let escape = text.byte(at: offset)
      offset += 1
      switch escape {
      case UInt8(ascii: "n"): units.append(0x0a)
      case UInt8(ascii: "r"): units.append(0x0d)
      case UInt8(ascii: "t"): units.append(0x09)
      case UInt8(ascii: "b"): units.append(0x08)
      case UInt8(ascii: "f"): units.append(0x0c)
      case UInt8(ascii: "u"):
        var value = hex(at: offset) ?? 0xfffd
        offset += 4
        if (0xd800..<0xdc00).contains(value), offset + 6 <= text.byteCount, text.byte(at: offset) == UInt8(ascii: "\\"),
          text.byte(at: offset + 1) == UInt8(ascii: "u"), let low = hex(at: offset + 2), (0xdc00..<0xe000).contains(low)
        {
          value = 0x1_0000 + (value - 0xd800) << 10 + (low - 0xdc00)
          offset += 6
        }
        units += String(Unicode.Scalar(value) ?? "\u{fffd}").utf8
      default: units.append(escape)
      }
    }
    return String(decoding: units, as: UTF8.self)
  }

  /// The strings of a JSON list; other values are passed over.
  package static func strings(_ list: RawSpan) -> [String] {
    var strings: [String] = []
    var offset = 0
    while offset < list.byteCount {
      defer { offset += 1 }
      guard list.byte(at: offset) == UInt8(ascii: "\"") else { continue }
      let start = offset + 1
      offset = start
      while offset < list.byteCount, list.byte(at: offset) != UInt8(ascii: "\"") {
        offset += list.byte(at: offset) == UInt8(ascii: "\\") ? 2 : 1
      }
      strings.append(unescaped(list.extracting(start..<min(offset, list.byteCount))))
    }
    return strings
  }
}
