/// Bytes written as text.
extension ByteWriter {
  /// Writes the bytes of hexadecimal digits; `false` for other characters.
  package mutating func write(bytesOfHexadecimal text: RawSpan) -> Bool {
    guard text.byteCount.isMultiple(of: 2) else { return false }
    reserve(text.byteCount / 2)
    for offset in stride(from: 0, to: text.byteCount, by: 2) {
      guard let high = text.byte(at: offset).valueAsHexadecimalDigit,
        let low = text.byte(at: offset + 1).valueAsHexadecimalDigit
      else { return false }
      write(high << 4 | low)
    }
    return true
  }

  /// Writes the bytes of Base64 with padding (RFC 4648 §4); `false` for invalid text.
  package mutating func write(bytesOfBase64 text: RawSpan) -> Bool {
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
          guard padding == 0, let digit = Self.base64Digit(byte) else { return false }
          group = group << 6 | UInt32(digit)
        }
      }
      write(UInt8(truncatingIfNeeded: group >> 16))
      if padding < 2 { write(UInt8(truncatingIfNeeded: group >> 8)) }
      if padding < 1 { write(UInt8(truncatingIfNeeded: group)) }
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
