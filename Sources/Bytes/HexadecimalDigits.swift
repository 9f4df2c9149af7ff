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
      unsafe Swift.withUnsafeBytes(of: word) { unsafe append(contentsOf: $0) }
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
  ///
  /// Digits are random, so a branch for each would be mispredicted in one of three.
  fileprivate func word(ofHexadecimalAt offset: Int) -> (word: UInt64, fault: UInt64) {
    // Safe: the caller sees to it that 16 bytes are there.
    let block = unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    let decimal = block &- SIMD16(repeating: 0x30)
    let letter = (block | SIMD16(repeating: 0x20)) &- SIMD16(repeating: 0x61)
    let (isDecimal, isLetter) = (decimal .< SIMD16(repeating: 10), letter .< SIMD16(repeating: 6))
    let values = (letter &+ SIMD16(repeating: 10)).replacing(with: decimal, where: isDecimal)
    // Safe: in both any bit pattern is a value. The mask's own reduction goes byte by byte.
    let words = unsafe unsafeBitCast(isDecimal .| isLetter, to: SIMD2<UInt64>.self)
    let bytes = values.evenHalf &<< SIMD8(repeating: 4) | values.oddHalf
    return (unsafe unsafeBitCast(bytes, to: UInt64.self), ~(words[0] & words[1]))
  }
}
