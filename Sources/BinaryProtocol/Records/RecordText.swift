import Bytes

/// Decodes strings in records.
package enum RecordText {
  /// Writes the bytes of hexadecimal digits; `false` for other characters.
  package static func write(hex text: RawSpan, into output: inout ByteWriter) -> Bool {
    guard text.byteCount.isMultiple(of: 2) else { return false }
    output.reserve(text.byteCount / 2)
    for offset in stride(from: 0, to: text.byteCount, by: 2) {
      guard let high = hexDigit(text.byte(at: offset)), let low = hexDigit(text.byte(at: offset + 1)) else {
        return false
      }
      output.write(high << 4 | low)
    }
    return true
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x61...0x66: byte - 0x57
    case 0x41...0x46: byte - 0x37
    default: nil
    }
  }

  /// Writes the bytes of Base64 with padding (RFC 4648 §4); `false` for invalid text.
  package static func write(base64 text: RawSpan, into output: inout ByteWriter) -> Bool {
    guard text.byteCount.isMultiple(of: 4) else { return false }
    var offset = 0
    while offset < text.byteCount {
      var group: UInt32 = 0
      var padding = 0
      for place in offset..<offset + 4 {
        let byte = text.byte(at: place)
        if byte == UInt8(ascii: "="), place >= offset + 2, offset + 4 == text.byteCount {
          padding += 1
          group <<= 6
        } else {
          guard padding == 0, let digit = base64Digit(byte) else { return false }
          group = group << 6 | UInt32(digit)
        }
      }
      output.write(UInt8(truncatingIfNeeded: group >> 16))
      if padding < 2 { output.write(UInt8(truncatingIfNeeded: group >> 8)) }
      if padding < 1 { output.write(UInt8(truncatingIfNeeded: group)) }
      offset += 4
    }
    return true
  }

  private static func base64Digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x41...0x5a: byte - 0x41
    case 0x61...0x7a: byte - 0x61 + 26
    case 0x30...0x39: byte - 0x30 + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}

extension RecordText {
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
      guard let digit = hexDigit(digits.byte(at: offset)) else { return nil }
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
        value.flatMap { value in hexDigit(text.byte(at: place)).map { value << 4 | UInt32($0) } }
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
