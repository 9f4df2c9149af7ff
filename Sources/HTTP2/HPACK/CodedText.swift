import Bytes

/// Letters of a coded text that are replaced where they are, without a change of its length.
extension CodedBlock.Text {
  /// The text; `nil` if it breaks the Huffman code.
  package func decoded(in block: RawSpan) -> [UInt8]? {
    guard isHuffman else { return Array(copying: block.extracting(range)) }
    var list = FieldList()
    guard let place = try? list.append(huffman: block.extracting(range)) else { return nil }
    return Array(list.storage[place])
  }

  /// The coded bytes of the text with filler in some ranges, as many as before: of Huffman-coded text each letter
  /// becomes one whose code is as long, of other text an x.
  ///
  /// - Parameters:
  ///   - text: what `decoded` returned.
  ///   - ranges: in `text`.
  package func coded(_ text: [UInt8], filling ranges: [Range<Int>]) -> [UInt8] {
    var text = text
    for place in ranges.joined() {
      text[place] = isHuffman ? HuffmanCode.fillers[Int(text[place])] : UInt8(ascii: "x")
    }
    guard isHuffman else { return text }
    var writer = ByteWriter(capacity: range.count)
    HuffmanCode.write(text.rawBytes, to: &writer)
    return Array(copying: writer.bytes)
  }
}

extension HuffmanCode {
  /// For each byte one whose code is as long: a letter, as far as there is one.
  fileprivate static let fillers: [UInt8] = {
    let candidates =
      Array("xoAX".utf8) + Array(0x20...0xff as ClosedRange<UInt8>) + Array(0...0x1f as ClosedRange<UInt8>)
    return (0...0xff as ClosedRange<UInt8>).map { byte in
      candidates.first { bitLength(of: $0) == bitLength(of: byte) } ?? byte
    }
  }()
}
