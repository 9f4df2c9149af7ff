/// Bytes written as hexadecimal digits.
extension Array where Element == UInt8 {
  /// Appends the bytes that digits of this array stand for, 16 digits at a time.
  ///
  /// - Parameter digits: the range of the digits, of which two are a byte; letters of either case are taken.
  /// - Returns: `false`, and nothing is appended, if the count is odd or there are other characters.
  package mutating func appendBytes(ofHexadecimal digits: Range<Int>) -> Bool {
    guard digits.count.isMultiple(of: 2), digits.lowerBound >= 0, digits.upperBound <= count else { return false }
    let start = count
    var offset = digits.lowerBound
    var faults: UInt64 = 0
    while digits.upperBound - offset >= 16 {
      let (word, fault) = rawBytes.word(ofHexadecimalAt: offset)
      unsafe Swift.withUnsafeBytes(of: word.littleEndian) { unsafe append(contentsOf: $0) }
      faults |= fault
      offset += 16
    }
    while offset < digits.upperBound {
      let (high, low) = (Self.value(ofDigit: self[offset]), Self.value(ofDigit: self[offset + 1]))
      if high | low > 15 { faults = 1 }
      append(high << 4 | low & 15)
      offset += 2
    }
    if faults != 0 { removeLast(count - start) }
    return faults == 0
  }

  /// The value of a hexadecimal digit; 255 for other bytes.
  private static func value(ofDigit digit: UInt8) -> UInt8 {
    let decimal = digit &- 0x30
    if decimal < 10 { return decimal }
    let letter = (digit | 0x20) &- 0x61
    return letter < 6 ? letter &+ 10 : 255
  }
}

extension RawSpan {
  /// The eight bytes that 16 hexadecimal digits stand for, as they are in memory; `fault` is not 0 if one is no digit.
  fileprivate func word(ofHexadecimalAt offset: Int) -> (word: UInt64, fault: UInt64) {
    let (first, second) = (half(ofHexadecimalAt: offset), half(ofHexadecimalAt: offset + 8))
    return (first.bytes | second.bytes << 32, first.fault | second.fault)
  }

  /// The four bytes that eight digits stand for: all at once, as digits are random and a branch for each would often be
  /// mispredicted.
  @inline(__always)
  private func half(ofHexadecimalAt offset: Int) -> (bytes: UInt64, fault: UInt64) {
    // Each byte of these is of one digit.
    let (ones, text) = (0x0101_0101_0101_0101 as UInt64, uint64(at: offset).byteSwapped)
    // The low bits of a letter are 1 to 6, and no value of a digit is above 15.
    let values = (text & (0x0f * ones)) &+ ((text >> 6) & ones) &* 9
    // A character is a digit if the digit of its value is the same character.
    let letters = (values &+ 6 * ones) >> 4 & ones
    let digits = values &+ 0x30 * ones &+ letters &* 0x27
    let fault = (text | letters << 5) ^ digits | (values & (0xf0 * ones))
    var bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff
    bytes = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff
    return ((bytes | bytes >> 16) & 0xffff_ffff, fault)
  }
}

extension UInt8 {
  /// The value of a hexadecimal digit of either case; `nil` for other bytes.
  package var valueAsHexadecimalDigit: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x61...0x66: self - 0x57
    case 0x41...0x46: self - 0x37
    default: nil
    }
  }
}
