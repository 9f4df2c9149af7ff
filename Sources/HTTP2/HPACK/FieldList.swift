import Bytes

/// The fields of a field block, and the memory that their names and values are in.
///
/// The memory is reused for the next block, so decoding allocates nothing once it is large enough. Fields are ranges in
/// it; those of the static table refer to a part that is always there.
public struct FieldList: Sendable {
  /// How a field is coded (RFC 7541 section 6).
  public enum Representation: UInt8, Sendable {
    case indexed
    /// A literal that is inserted into the dynamic table.
    case incremental
    case withoutIndexing
    /// A literal that no intermediary may index.
    case neverIndexed
  }

  /// What else has the same value.
  public enum Origin: Sendable, Hashable {
    /// A literal of this block alone.
    case literal
    /// The static table.
    case staticTable
    /// The entry of the dynamic table with this number: fields with the same number are the same.
    case entry(Int)
    /// A value that was coded with the same bytes before, as an authorization that is never indexed; equal numbers
    /// mean equal values.
    case repeated(Int)
  }

  /// One field. Its name or value is unknown if it was inserted into the dynamic table by a block that is lost.
  public struct Field: Sendable, Equatable {
    var nameStart: UInt32
    var nameLength: UInt32
    var valueStart: UInt32
    var valueLength: UInt32
    /// How the field is coded.
    public var representation: Representation
    /// Whether the name is known.
    public var isNameKnown: Bool
    /// Whether the value is known.
    public var isValueKnown: Bool
    /// Whether name and value are known to have no character that none may have.
    var isPlain = false
    /// What else has the same value.
    public var origin: Origin
    /// The bytes of the value in the block, with its length, if it is a literal that is in no table; else 0.
    public internal(set) var codedLength: UInt32 = 0

    var name: Range<Int> { Int(nameStart)..<Int(nameStart &+ nameLength) }
    var value: Range<Int> { Int(valueStart)..<Int(valueStart &+ valueLength) }

    init(
      name: Range<Int>, value: Range<Int>, _ representation: Representation, isNameKnown: Bool = true,
      isValueKnown: Bool = true, origin: Origin
    ) {
      (nameStart, nameLength) = (UInt32(truncatingIfNeeded: name.lowerBound), UInt32(truncatingIfNeeded: name.count))
      (valueStart, valueLength) = (
        UInt32(truncatingIfNeeded: value.lowerBound), UInt32(truncatingIfNeeded: value.count)
      )
      (self.representation, self.isNameKnown, self.isValueKnown) = (representation, isNameKnown, isValueKnown)
      self.origin = origin
    }
  }

  /// The fields in their order.
  public internal(set) var fields: [Field] = []
  /// Whether fields are missing at the end, because the block is cut, has a fault, or exceeds the limit.
  public internal(set) var isCut = false
  /// The size of the fields in bytes as in RFC 9113 section 10.5.1: names, values and 32 for each field.
  public internal(set) var size = 0

  /// Initialised memory, of which `used` bytes are in use; it begins with the static table.
  var storage = StaticTable.bytes
  var used = StaticTable.bytes.count

  /// An empty list.
  public init() {}

  /// The bytes of memory.
  public var heldBytes: Int { storage.capacity + fields.capacity * MemoryLayout<Field>.stride }

  /// The name of a field; empty if it is not known.
  @_lifetime(borrow self)
  public func name(of field: Field) -> RawSpan {
    storage.rawBytes.extracting(field.name)
  }

  /// The value of a field; empty if it is not known.
  @_lifetime(borrow self)
  public func value(of field: Field) -> RawSpan {
    storage.rawBytes.extracting(field.value)
  }

  /// Removes all fields and keeps the memory.
  public mutating func removeAll() {
    fields.removeAll(keepingCapacity: true)
    used = StaticTable.bytes.count
    (isCut, size) = (false, 0)
  }

  /// Makes at least `count` bytes after `used` writable.
  @inline(__always)
  mutating func reserve(_ count: Int) {
    if storage.count - used < count { grow(count) }
  }

  @inline(never)
  private mutating func grow(_ count: Int) {
    storage += [UInt8](repeating: 0, count: max(storage.count, 2_048, count))
  }

  /// Copies bytes of another memory to the end.
  mutating func append(_ source: RawSpan) -> Range<Int> {
    let count = source.byteCount
    reserve(count)
    let start = used
    // Safe: `reserve` made the memory long enough, and the source is another value's.
    unsafe storage.withUnsafeMutableBytes { target in
      unsafe source.withUnsafeBytes { source in
        guard let to = target.baseAddress, let from = source.baseAddress else { return }
        unsafe (to + start).copyMemory(from: from, byteCount: count)
      }
    }
    used += count
    return start..<used
  }

  /// Decodes a Huffman-coded string to the end.
  mutating func append(huffman coded: RawSpan) throws(Rule) -> Range<Int> {
    reserve(HuffmanCode.longestDecoded(coded.byteCount) + 2)
    let start = used
    var output = storage.mutableSpan
    used = try HuffmanCode.decode(coded, to: &output, at: start)
    return start..<used
  }
}
