/// The bytes of hexadecimal digits; blanks between them mean nothing.
func hex(_ text: String) -> [UInt8] {
  let digits = text.filter { !$0.isWhitespace }.map { UInt8($0.hexDigitValue!) }
  precondition(digits.count % 2 == 0)
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// The lower-case hexadecimal digits of bytes.
func text(_ bytes: [UInt8]) -> String { bytes.map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined() }
