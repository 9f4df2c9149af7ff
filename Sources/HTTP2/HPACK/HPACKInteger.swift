import Bytes

/// Integers of RFC 7541 section 5.1.
package enum HPACKInteger {
  /// Reads the integer whose first bits are the low `prefix` bits of the byte at `offset`, which moves past it.
  ///
  /// - Throws: `integerCut` at the end of the bytes, `integerTooLong` above 2³²−1 or for more than five further bytes.
  @inline(__always)
  static func read(_ bytes: RawSpan, _ offset: inout Int, prefix: UInt8) throws(Rule) -> Int {
    guard offset < bytes.byteCount else { throw .integerCut }
    let mask = (UInt8(1) << prefix) - 1
    let first = bytes.byte(at: offset) & mask
    offset += 1
    return first < mask ? Int(first) : try readRest(bytes, &offset, Int(mask))
  }

  private static func readRest(_ bytes: RawSpan, _ offset: inout Int, _ first: Int) throws(Rule) -> Int {
    var (value, shift) = (first, 0)
    while true {
      guard offset < bytes.byteCount else { throw .integerCut }
      let byte = bytes.byte(at: offset)
      offset += 1
      guard shift <= 28 else { throw .integerTooLong }
      value += Int(byte & 0x7f) << shift
      guard value <= Int(UInt32.max) else { throw .integerTooLong }
      if byte < 0x80 { return value }
      shift += 7
    }
  }

  /// Writes an integer; `pattern` has the bits above the prefix.
  package static func write(_ value: Int, prefix: UInt8, pattern: UInt8, to writer: inout ByteWriter) {
    let mask = (1 << Int(prefix)) - 1
    guard value >= mask else { return writer.write(pattern | UInt8(truncatingIfNeeded: value)) }
    writer.write(pattern | UInt8(truncatingIfNeeded: mask))
    var rest = value - mask
    while rest >= 0x80 {
      writer.write(UInt8(truncatingIfNeeded: rest & 0x7f) | 0x80)
      rest >>= 7
    }
    writer.write(UInt8(truncatingIfNeeded: rest))
  }
}
