/// The values of strings and numbers on a tape. `text` is the text that the tape was read from.
extension JSONTape {
  /// The contents of a string without its quotes, escapes as they are written.
  @inlinable
  package func contents(_ index: Int) -> Range<Int> { Int(nodes[index].start) + 1..<Int(nodes[index].end) - 1 }

  /// Where the text of a value is, brackets and quotes included.
  package func range(_ index: Int) -> Range<Int> { Int(nodes[index].start)..<Int(nodes[index].end) }

  /// Whether a string has no characters.
  @inlinable @inline(__always)
  package func isEmptyString(_ index: Int) -> Bool { nodes[index].end - nodes[index].start == 2 }

  /// The UTF-8 bytes of a string's value; half of a surrogate pair becomes U+FFFD.
  package func stringBytes(_ index: Int, _ text: RawSpan) -> [UInt8] {
    let contents = contents(index)
    guard nodes[index].hasEscapes else { return Array(copying: text.extracting(contents)) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(contents.count)
    var offset = contents.lowerBound
    while offset < contents.upperBound {
      let byte = text.byte(at: offset)
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        offset += 1
        continue
      }
      let (scalar, length) = JSONLexer.escape(text, at: offset, before: contents.upperBound)
      bytes.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [0xef, 0xbf, 0xbd])
      offset += length
    }
    return bytes
  }

  /// The value of a string.
  package func string(_ index: Int, _ text: RawSpan) -> String {
    String(decoding: stringBytes(index, text), as: UTF8.self)
  }

  /// The value as it is written.
  package func written(_ index: Int, _ text: RawSpan) -> String {
    String(decoding: Array(copying: text.extracting(range(index))), as: UTF8.self)
  }

  /// Whether a number is whole and whether it is negative, and its value if it is small; `1.2e1` is 12.
  package func number(_ index: Int, _ text: RawSpan) -> JSONNumber {
    JSONNumber(text.extracting(range(index)))
  }
}

/// A JSON number, exactly: no digit is lost to binary fractions.
package struct JSONNumber: Sendable, Equatable {
  /// Below zero; `-0` is not.
  package let isNegative: Bool
  package let isWhole: Bool
  /// The value of a whole number that fits; otherwise `nil`.
  package let integer: Int?

  /// Reads valid JSON text of a number, such as `-12`, `1.50` or `1.2e1`.
  package init(_ text: RawSpan) {
    var hasMinus = false
    // The digits without the point and without zeros at both ends; `scale` of them are after the point.
    var (significant, zeros, scale, exponent) = (0, 0, 0, 0)
    var (isFraction, isExponent, isExponentNegative) = (false, false, false)
    var digits: Int? = 0
    for offset in 0..<text.byteCount {
      let byte = text.byte(at: offset)
      switch byte {
      case UInt8(ascii: "-"): if isExponent { isExponentNegative = true } else { hasMinus = true }
      case UInt8(ascii: "."): isFraction = true
      case UInt8(ascii: "e"), UInt8(ascii: "E"): isExponent = true
      case UInt8(ascii: "0")...UInt8(ascii: "9") where isExponent:
        // A million is more than any text can outweigh with digits that anybody reads.
        exponent = min(exponent * 10 + Int(byte & 15), 1_000_000_000)
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        if isFraction { scale += 1 }
        if byte == UInt8(ascii: "0") {
          if significant > 0 { zeros += 1 }
        } else {
          for _ in 0..<min(zeros + 1, 20) { digits = digits.flatMap { Self.times10($0) } }
          digits = digits.flatMap { Self.sum($0, Int(byte & 15)) }
          significant += zeros + 1
          zeros = 0
        }
      default: break
      }
    }
    // digits · 10^power
    let power = zeros - scale + (isExponentNegative ? -exponent : exponent)
    guard significant > 0 else {
      (isNegative, isWhole, integer) = (false, true, 0)
      return
    }
    isNegative = hasMinus
    isWhole = power >= 0
    guard power >= 0, power < 20 else {
      integer = nil
      return
    }
    for _ in 0..<power { digits = digits.flatMap { Self.times10($0) } }
    integer = digits.map { hasMinus ? -$0 : $0 }
  }

  private static func times10(_ value: Int) -> Int? {
    let (product, overflow) = value.multipliedReportingOverflow(by: 10)
    return overflow ? nil : product
  }

  private static func sum(_ value: Int, _ digit: Int) -> Int? {
    let (sum, overflow) = value.addingReportingOverflow(digit)
    return overflow ? nil : sum
  }
}
