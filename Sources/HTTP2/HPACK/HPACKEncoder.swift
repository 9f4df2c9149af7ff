import Bytes

/// Encodes the field blocks of one direction of a connection (RFC 7541).
public struct HPACKEncoder: Sendable {
  /// Whether a field is put into the dynamic table.
  public enum Indexing: Sendable, Hashable, CaseIterable {
    /// The field is inserted, unless a table has it.
    case incremental
    /// The field is not inserted. It is indexed if a table has it.
    case withoutIndexing
    /// The field is a literal that no intermediary may index.
    case neverIndexed
  }

  /// Whether strings are Huffman-coded.
  public enum StringCoding: Sendable, Hashable, CaseIterable {
    case plain, huffman
    /// Huffman-coded when that is shorter.
    case shortest
  }

  private var table: DynamicTable
  /// Sizes to be told at the beginning of the next block: the smallest since the last one, and the final one.
  private var sizeUpdate: (smallest: Int, final: Int)?

  /// Makes the encoder of a connection on which nothing was sent.
  public init() { table = DynamicTable(maximumSize: 4_096, limit: .max) }

  /// Changes the size of the table; the next block begins with it.
  ///
  /// - Parameter size: the size in bytes, at most the receiver's SETTINGS_HEADER_TABLE_SIZE.
  public mutating func resize(to size: Int) {
    sizeUpdate = (min(sizeUpdate?.smallest ?? size, size), size)
    table.resize(to: size)
  }

  /// Begins a block.
  public mutating func beginBlock(_ writer: inout ByteWriter) {
    guard let update = sizeUpdate else { return }
    if update.smallest < update.final { HPACKInteger.write(update.smallest, prefix: 5, pattern: 0x20, to: &writer) }
    HPACKInteger.write(update.final, prefix: 5, pattern: 0x20, to: &writer)
    sizeUpdate = nil
  }

  /// Writes one field of the block.
  ///
  /// - Parameters:
  ///   - name: the name.
  ///   - value: the value.
  ///   - indexing: whether it is put into the table.
  ///   - coding: whether its strings are Huffman-coded.
  ///   - writer: receives the field.
  /// - Complexity: O(*n*) in the number of the table's entries.
  public mutating func write(
    _ name: RawSpan, _ value: RawSpan, _ indexing: Indexing = .incremental, _ coding: StringCoding = .shortest,
    to writer: inout ByteWriter
  ) {
    let match = find(name, value)
    if let match, match.hasValue, indexing != .neverIndexed {
      return HPACKInteger.write(match.index, prefix: 7, pattern: 0x80, to: &writer)
    }
    let index = match?.index ?? 0
    switch indexing {
    case .incremental: HPACKInteger.write(index, prefix: 6, pattern: 0x40, to: &writer)
    case .withoutIndexing: HPACKInteger.write(index, prefix: 4, pattern: 0, to: &writer)
    case .neverIndexed: HPACKInteger.write(index, prefix: 4, pattern: 0x10, to: &writer)
    }
    if index == 0 { Self.write(string: name, coding, to: &writer) }
    Self.write(string: value, coding, to: &writer)
    guard indexing == .incremental else { return }
    let field = Array(copying: name) + Array(copying: value)
    table.insert(field.rawBytes, name: 0..<name.byteCount, value: name.byteCount..<field.count)
  }

  /// The index of a field, or of one with its name; the static table comes first.
  private func find(_ name: RawSpan, _ value: RawSpan) -> (index: Int, hasValue: Bool)? {
    let inStatic = StaticTable.find(name, value)
    if let inStatic, inStatic.hasValue { return inStatic }
    var withName: Int?
    for distance in 0..<table.count {
      guard let entry = table.entry(distance), entry.nameLength == name.byteCount,
        table.bytes.extracting(entry.name).elementsEqual(name)
      else { continue }
      if table.bytes.extracting(entry.value).elementsEqual(value) { return (StaticTable.count + 1 + distance, true) }
      if withName == nil { withName = StaticTable.count + 1 + distance }
    }
    return inStatic ?? withName.map { ($0, false) }
  }

  private static func write(string: RawSpan, _ coding: StringCoding, to writer: inout ByteWriter) {
    let coded = coding == .plain ? 0 : HuffmanCode.codedLength(string)
    if coding == .huffman || coding == .shortest && coded < string.byteCount {
      HPACKInteger.write(coded, prefix: 7, pattern: 0x80, to: &writer)
      HuffmanCode.write(string, to: &writer)
    } else {
      HPACKInteger.write(string.byteCount, prefix: 7, pattern: 0, to: &writer)
      writer.write(string)
    }
  }
}
