import Bytes

/// A field block as it is coded (RFC 7541 section 6): where its size updates and its strings are. Needs no table.
///
/// ```
/// +---+---+---+-------------------+     +---+---------------------+----------------+
/// | 0 | 0 | 1 |   size (5+)       | …   | index, or 0 |  H, length (7+) | string    | …
/// +---+---+---+-------------------+     +---+---------------------+----------------+
/// ```
package struct CodedBlock: Sendable {
  /// A name or a value.
  package struct Text: Sendable {
    /// The coded bytes, without their length.
    package var range: Range<Int>
    package var isHuffman: Bool
  }

  /// The end of the size updates, which begin the block.
  package private(set) var sizeUpdatesEnd = 0
  /// The names and values that are literals, in their order.
  package private(set) var texts: [Text] = []

  /// The end of what could be read: that of the block, or the place of a fault. Of a string that is cut its first byte.
  package private(set) var end = 0

  /// - Throws: the rule that its coding breaks.
  package init(parsing block: RawSpan) throws(Rule) { try read(block) }

  /// Reads the beginning of a block up to a fault.
  package init(beginning block: RawSpan) { try? read(block) }

  private mutating func read(_ block: RawSpan) throws(Rule) {
    var offset = 0
    while offset < block.byteCount, block.byte(at: offset) & 0xe0 == 0x20 {
      _ = try HPACKInteger.read(block, &offset, prefix: 5)
    }
    (sizeUpdatesEnd, end) = (offset, offset)
    while offset < block.byteCount {
      let first = block.byte(at: offset)
      if first >= 0x80 {
        _ = try HPACKInteger.read(block, &offset, prefix: 7)
      } else {
        guard first >= 0x40 || first < 0x20 else { throw .sizeUpdateLate }
        let name = try HPACKInteger.read(block, &offset, prefix: first >= 0x40 ? 6 : 4)
        if name == 0 { try readText(block, &offset) }
        try readText(block, &offset)
      }
      end = offset
    }
  }

  private mutating func readText(_ block: RawSpan, _ offset: inout Int) throws(Rule) {
    guard offset < block.byteCount else { throw .integerCut }
    let isHuffman = block.byte(at: offset) >= 0x80
    let length = try HPACKInteger.read(block, &offset, prefix: 7)
    end = offset
    guard length <= block.byteCount - offset else { throw .stringCut }
    texts.append(Text(range: offset..<offset + length, isHuffman: isHuffman))
    offset += length
    end = offset
  }
}
