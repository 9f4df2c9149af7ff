import Bytes

/// Decodes the field blocks of one direction of a connection (RFC 7541), also after some of them were lost.
///
/// Blocks must come in the order of the connection, those of all streams. After a lost one the decoder goes on: fields
/// that need an entry from before the loss have an unknown name or value, all others are exact. No guess is made.
///
/// Memory: the dynamic table, at most twice `Limits.tableSize`.
public struct HPACKDecoder: Sendable {
  /// Limits on what a peer can make the decoder keep, in bytes.
  public struct Limits: Sendable, Equatable {
    /// The largest dynamic table that is kept. In a larger one, the oldest entries are unknown.
    public var tableSize = 65_536
    /// The largest field section; further fields of a block are dropped.
    public var listSize = 65_536

    /// The default limits.
    public init() {}
  }

  /// The limits.
  public let limits: Limits
  private var table: DynamicTable
  /// The table sizes that the receiver has announced and the encoder may apply: the last acknowledged one, then those
  /// that are on their way.
  private var announced: [Int] = [4_096]
  /// The encoder has acknowledged a smaller size, and has to say so at the beginning of its next block.
  private var owesSizeUpdate = false
  private var remembered = RememberedValue()

  /// Makes the decoder of a direction.
  ///
  /// - Parameters:
  ///   - isAtStart: whether no block of the connection precedes.
  ///   - limits: what it keeps at most.
  public init(isAtStart: Bool = true, limits: Limits = Limits()) {
    self.limits = limits
    table = DynamicTable(maximumSize: 4_096, limit: limits.tableSize)
    // The receiver may have announced any size by then.
    if !isAtStart { table.lose(bound: Int(UInt32.max)) }
    hasMissedSettings = !isAtStart
  }

  /// Whether SETTINGS of the receiver may have been missed, so that a size above the known limit may be allowed.
  private var hasMissedSettings: Bool

  /// Whether every entry of the dynamic table is known.
  public var isTableKnown: Bool { table.isComplete }
  /// Whether entries were lost, and none was inserted since.
  var hasLostAll: Bool { !table.isComplete && table.count == 0 }
  /// The number of known entries.
  public var knownEntries: Int { table.count }
  /// The size of the known entries in bytes (RFC 7541 section 4.1).
  public var knownSize: Int { table.size }
  /// The bytes of memory.
  public var heldBytes: Int { table.heldBytes + remembered.heldBytes }

  // MARK: what happens beside blocks

  /// Notes that one or more blocks are lost: entries inserted before are at unknown indices.
  public mutating func lose() {
    table.lose(bound: hasMissedSettings ? Int(UInt32.max) : announced.max() ?? 4_096)
    owesSizeUpdate = false
  }

  /// Notes that the receiver announced a size of the table, SETTINGS_HEADER_TABLE_SIZE.
  public mutating func announce(tableSize: Int) {
    // A receiver that announces without end, and is never answered, is not worth memory.
    if announced.count > 64 { announced.remove(at: 1) }
    announced.append(tableSize)
  }

  /// Notes that the sender of the blocks acknowledged the first size that it had not acknowledged yet.
  public mutating func acknowledge() {
    guard announced.count > 1 else { return }
    announced.removeFirst()
    if announced[0] < table.maximumSize { owesSizeUpdate = true }
  }

  /// Notes that SETTINGS of the receiver are lost: limits are not known.
  public mutating func missSettings() {
    hasMissedSettings = true
    owesSizeUpdate = false
  }

  // MARK: blocks

  /// Decodes one block.
  ///
  /// - Parameters:
  ///   - block: the whole block, or its beginning.
  ///   - isCut: whether the block's end is lost. The fields before it are decoded, and the table is lost then.
  ///   - list: receives the fields; its contents are replaced.
  /// - Returns: the rule that the block breaks. Fields before that place are in `list`; the table is lost, except after
  ///   `sizeUpdateMissing` and `fieldListTooLong`, which leave nothing unread.
  /// - Complexity: O(*n*) in the length of the fields. Nothing is allocated once the memory is large enough.
  public mutating func decode(_ block: RawSpan, isCut: Bool = false, into list: inout FieldList) -> Rule? {
    list.removeAll()
    var warning: Rule?
    do throws(Rule) {
      var offset = 0
      try readSizeUpdates(block, &offset, &warning)
      while offset < block.byteCount { try readField(block, &offset, &list) }
    } catch {
      list.isCut = true
      lose()
      // A field that the cut goes through is no fault.
      if isCut, error == .integerCut || error == .stringCut { return warning }
      return error
    }
    if isCut {
      list.isCut = true
      lose()
    }
    if warning == nil, list.isCut, !isCut { warning = .fieldListTooLong }
    return warning
  }

  private mutating func readSizeUpdates(_ block: RawSpan, _ offset: inout Int, _ warning: inout Rule?) throws(Rule) {
    while offset < block.byteCount, block.byte(at: offset) & 0xe0 == 0x20 {
      let size = try HPACKInteger.read(block, &offset, prefix: 5)
      guard hasMissedSettings || announced.contains(where: { size <= $0 }) else { throw .sizeUpdateAboveLimit }
      table.resize(to: size)
      if size <= announced[0] { owesSizeUpdate = false }
    }
    guard owesSizeUpdate, offset < block.byteCount else { return }
    owesSizeUpdate = false
    warning = .sizeUpdateMissing
  }

  @inline(__always)
  private mutating func readField(_ block: RawSpan, _ offset: inout Int, _ list: inout FieldList) throws(Rule) {
    let first = block.byte(at: offset)
    if first >= 0x80 {
      let index = try HPACKInteger.read(block, &offset, prefix: 7)
      try appendIndexed(index, &list)
    } else if first >= 0x40 {
      try readLiteral(block, &offset, .incremental, prefix: 6, &list)
    } else if first >= 0x20 {
      throw .sizeUpdateLate
    } else {
      try readLiteral(block, &offset, first >= 0x10 ? .neverIndexed : .withoutIndexing, prefix: 4, &list)
    }
  }

  /// An index of the dynamic table, as the distance from its newest entry; whether it is in the table, as far as known.
  private func check(_ distance: Int) throws(Rule) {
    // No entry is smaller than 32 bytes.
    let isPossible = !table.isComplete && distance < table.sizeBound / DynamicTable.overhead
    guard distance < table.count || isPossible else { throw .indexBeyondTables }
  }

  private mutating func appendIndexed(_ index: Int, _ list: inout FieldList) throws(Rule) {
    guard index > 0 else { throw .indexZero }
    if index <= StaticTable.count {
      let entry = StaticTable.entries[index - 1]
      guard list.hasRoom(entry.name.count + entry.value.count, limits.listSize) else { return }
      var field = FieldList.Field(name: entry.name, value: entry.value, .indexed, origin: .staticTable)
      field.isPlain = true
      list.fields.append(field)
      return
    }
    let distance = index - StaticTable.count - 1
    guard let entry = table.entry(distance) else {
      try check(distance)
      guard list.hasRoom(0, limits.listSize) else { return }
      list.fields.append(
        .init(name: 0..<0, value: 0..<0, .indexed, isNameKnown: false, isValueKnown: false, origin: .literal))
      return
    }
    guard list.hasRoom(entry.nameLength + entry.valueLength, limits.listSize) else { return }
    // Name and value are adjacent, so one copy moves both.
    let text = list.append(table.bytes.extracting(entry.start..<entry.value.upperBound))
    let middle = text.lowerBound + entry.nameLength
    var field = FieldList.Field(
      name: text.lowerBound..<middle, value: middle..<text.upperBound, .indexed, isNameKnown: entry.isNameKnown,
      isValueKnown: entry.isValueKnown, origin: .entry(table.insertion(distance)))
    field.isPlain = entry.isPlain
    list.fields.append(field)
  }

  private mutating func readLiteral(
    _ block: RawSpan, _ offset: inout Int, _ representation: FieldList.Representation, prefix: UInt8,
    _ list: inout FieldList
  ) throws(Rule) {
    let before = list.used
    let index = try HPACKInteger.read(block, &offset, prefix: prefix)
    var name: Range<Int>? = nil
    if index == 0 {
      name = try readString(block, &offset, &list)
    } else if index <= StaticTable.count {
      name = StaticTable.entries[index - 1].name
    } else {
      let distance = index - StaticTable.count - 1
      if let entry = table.entry(distance) {
        // The insertion may evict the entry that it takes its name from.
        if entry.isNameKnown { name = list.append(table.bytes.extracting(entry.name)) }
      } else {
        try check(distance)
      }
    }
    var origin = FieldList.Origin.literal
    let start = offset
    let value: Range<Int>
    if representation != .incremental, let name, Self.isLongLived(list.storage.rawBytes.extracting(name)) {
      let coded = try codedString(block, &offset)
      value = try appendRemembered(coded, block, &origin, &list)
    } else {
      value = try readString(block, &offset, &list)
    }
    var isPlain = false
    if representation == .incremental {
      isPlain = MessageRules.isPlain(name: name, value: value, in: list.storage.rawBytes)
      if table.insert(list.storage.rawBytes, name: name, value: value, isPlain: isPlain) {
        origin = .entry(table.insertion(0))
      }
    }
    guard list.hasRoom((name?.count ?? 0) + value.count, limits.listSize) else {
      list.used = before
      return
    }
    var field = FieldList.Field(
      name: name ?? 0..<0, value: value, representation, isNameKnown: name != nil, origin: origin)
    field.isPlain = isPlain
    if representation != .incremental { field.codedLength = UInt32(truncatingIfNeeded: offset - start) }
    list.fields.append(field)
  }

  // MARK: strings

  private struct CodedString {
    var range: Range<Int>
    var isHuffman: Bool
  }

  @inline(__always)
  private func codedString(_ block: RawSpan, _ offset: inout Int) throws(Rule) -> CodedString {
    guard offset < block.byteCount else { throw .integerCut }
    let isHuffman = block.byte(at: offset) >= 0x80
    let length = try HPACKInteger.read(block, &offset, prefix: 7)
    guard length <= block.byteCount - offset else { throw .stringCut }
    defer { offset += length }
    return CodedString(range: offset..<offset + length, isHuffman: isHuffman)
  }

  @inline(__always)
  private func readString(_ block: RawSpan, _ offset: inout Int, _ list: inout FieldList) throws(Rule) -> Range<Int> {
    let coded = try codedString(block, &offset)
    let bytes = block.extracting(coded.range)
    return coded.isHuffman ? try list.append(huffman: bytes) : list.append(bytes)
  }

  /// Values of `authorization` are hundreds of bytes and the same in many blocks, though they are indexed in none.
  private static func isLongLived(_ name: RawSpan) -> Bool {
    name.byteCount == 13 && name.holds("authorization", at: 0)
  }

  private mutating func appendRemembered(
    _ coded: CodedString, _ block: RawSpan, _ origin: inout FieldList.Origin, _ list: inout FieldList
  ) throws(Rule) -> Range<Int> {
    let bytes = block.extracting(coded.range)
    if remembered.isSame(bytes, isHuffman: coded.isHuffman) {
      origin = .repeated(remembered.number)
      return list.append(remembered.value.rawBytes)
    }
    let value = coded.isHuffman ? try list.append(huffman: bytes) : list.append(bytes)
    remembered.remember(bytes, isHuffman: coded.isHuffman, value: list.storage.rawBytes.extracting(value))
    origin = .repeated(remembered.number)
    return value
  }
}

extension FieldList {
  /// Whether a field of this length fits the limit; counts it, or notes that it is left out.
  @inline(__always)
  fileprivate mutating func hasRoom(_ length: Int, _ limit: Int) -> Bool {
    guard !isCut, size + length + DynamicTable.overhead <= limit else {
      isCut = true
      return false
    }
    size += length + DynamicTable.overhead
    return true
  }
}

/// The last long value that was a literal, coded and decoded.
private struct RememberedValue: Sendable {
  private var coded: [UInt8] = []
  private var isHuffman = false
  private(set) var value: [UInt8] = []
  /// The number of different values so far.
  private(set) var number = 0

  var heldBytes: Int { coded.count + value.count }

  func isSame(_ bytes: RawSpan, isHuffman: Bool) -> Bool {
    isHuffman == self.isHuffman && number > 0 && bytes.elementsEqual(coded.rawBytes)
  }

  mutating func remember(_ bytes: RawSpan, isHuffman: Bool, value: RawSpan) {
    self.isHuffman = isHuffman
    coded.removeAll(keepingCapacity: true)
    coded.append(copying: bytes)
    self.value.removeAll(keepingCapacity: true)
    self.value.append(copying: value)
    number += 1
  }
}
