import Bytes

/// What strings of records stand for.
enum RecordText {
  /// Writes the bytes that hexadecimal digits stand for; `false` when they are none.
  static func write(hex text: RawSpan, into output: inout ByteWriter) -> Bool {
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

  /// Writes the bytes that Base64 with padding (RFC 4648 §4) stands for; `false` when it is none.
  static func write(base64 text: RawSpan, into output: inout ByteWriter) -> Bool {
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

  /// UNIX nanoseconds of a time as records have it, `2015-09-16T01:02:03.123456789Z` with up to nine digits behind the
  /// point, from 1970 to 2261; `nil` for anything else.
  static func nanoseconds(_ text: RawSpan) -> Int64? {
    guard (20...30).contains(text.byteCount), text.byte(at: text.byteCount - 1) == UInt8(ascii: "Z") else { return nil }
    for (offset, byte) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")] as [(Int, Unicode.Scalar)]
    where text.byte(at: offset) != UInt8(ascii: byte) { return nil }
    guard let year = digits(text, 0..<4), let month = digits(text, 5..<7), let day = digits(text, 8..<10),
      let hour = digits(text, 11..<13), let minute = digits(text, 14..<16), let second = digits(text, 17..<19),
      (1970...2261).contains(year), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
      second < 61
    else { return nil }
    var fraction = 0
    if text.byteCount > 20 {
      guard text.byteCount > 21, text.byte(at: 19) == UInt8(ascii: "."),
        let digits = digits(text, 20..<text.byteCount - 1)
      else { return nil }
      fraction = digits
      for _ in text.byteCount - 21..<9 { fraction *= 10 }
    }
    // Years that begin in March: a leap day is then the last day of its year.
    let shifted = month > 2 ? year : year - 1
    let days =
      365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1
      - 719_468
    return Int64(((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + Int64(fraction)
  }

  private static func digits(_ text: RawSpan, _ range: Range<Int>) -> Int? {
    var value = 0
    for offset in range {
      let byte = text.byte(at: offset)
      guard RecordMembers.isDigit(byte) else { return nil }
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
    }
    return value
  }
}
