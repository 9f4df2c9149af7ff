import Bytes

/// The dynamic table of one direction (RFC 7541 section 2.3.2), of which a part may be unknown.
///
/// Indices count from the newest entry, so the entries inserted since a loss are known exactly, however many were
/// inserted in what was lost; older ones are at unknown indices. `isComplete` tells whether there can be such.
///
/// ```
///   newest                                          oldest
///   62    63    64      65 …
/// ┌─────┬─────┬─────┬ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┐
/// │  inserted since │   at unknown indices, or     │
/// │    the loss     │   evicted in the meantime    │
/// └─────┴─────┴─────┴ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┘
/// ```
///
/// Values that were inserted since are right even if the table's size was changed in what was lost: an encoder refers
/// only to entries that are there, and a smaller or larger table has the same newest entries.
struct DynamicTable: Sendable {
  /// Added to the lengths of name and value (RFC 7541 section 4.1).
  static let overhead = 32

  struct Entry: Sendable {
    var start: Int
    var nameLength: Int
    var valueLength: Int
    /// Whether the name, which may have been that of a lost entry, is known.
    var isNameKnown: Bool
    var isValueKnown: Bool
    /// Whether name and value have no character that none may have: they are looked at once and not in each message.
    var isPlain: Bool

    var size: Int { nameLength + valueLength + DynamicTable.overhead }
    var name: Range<Int> { start..<start + nameLength }
    var value: Range<Int> { start + nameLength..<start + nameLength + valueLength }
  }

  /// The size of the table in bytes as its encoder has set it, in what was read.
  private(set) var maximumSize: Int
  /// The largest size that the encoder may have set, if it did so in what was lost.
  private(set) var sizeBound: Int
  /// The largest size that is kept here.
  let limit: Int
  /// The size of the known entries.
  private(set) var size = 0
  /// The number of insertions so far; they number the entries.
  private(set) var inserted = 0
  /// Whether no entry can be older than the known ones.
  private(set) var isComplete = true

  /// A ring of the known entries: the newest is before `head`.
  private var entries: [Entry] = []
  private var head = 0
  private(set) var count = 0
  /// Names and values of the known entries, in the order of insertion, up to `end`.
  private var storage: [UInt8] = []
  private var end = 0

  init(maximumSize: Int, limit: Int) {
    (self.maximumSize, self.limit) = (maximumSize, limit)
    sizeBound = maximumSize
  }

  /// Whether the encoder's table is not larger than the known entries are evicted for.
  private var isBounded: Bool { sizeBound <= min(maximumSize, limit) }

  var bytes: RawSpan {
    @_lifetime(borrow self)
    get { storage.rawBytes }
  }

  var heldBytes: Int { storage.count + entries.count * MemoryLayout<Entry>.stride }

  /// The entry at a distance from the newest one, which is 0; `nil` if it is not known.
  func entry(_ distance: Int) -> Entry? {
    guard distance < count else { return nil }
    return entries[(head &- 1 &- distance) & (entries.count &- 1)]
  }

  /// The number of the insertion at a distance from the newest one.
  func insertion(_ distance: Int) -> Int { inserted - 1 - distance }

  /// Sets the size, as a size update does.
  mutating func resize(to size: Int) {
    (maximumSize, sizeBound) = (size, size)
    evict(for: 0)
    completeIfFull()
  }

  /// Notes that an unknown number of entries was inserted, and that the size may have been changed.
  ///
  /// - Parameter bound: the largest size that the encoder was allowed to set.
  mutating func lose(bound: Int) {
    (size, count, end) = (0, 0, 0)
    isComplete = false
    sizeBound = max(sizeBound, bound)
    completeIfFull()
  }

  /// Notes that the table is empty and new.
  mutating func reset(maximumSize: Int) {
    (size, count, end) = (0, 0, 0)
    (self.maximumSize, sizeBound, isComplete) = (maximumSize, maximumSize, true)
  }

  /// Inserts a field, evicting old entries (RFC 7541 section 4.4).
  ///
  /// - Parameters:
  ///   - name: the name; `nil` if it is not known.
  ///   - value: the value; `nil` if it is not known.
  ///   - isPlain: whether neither has a character that none may have.
  /// - Returns: whether it was inserted, and not larger than the table.
  @discardableResult
  mutating func insert(_ source: RawSpan, name: Range<Int>?, value: Range<Int>?, isPlain: Bool = false) -> Bool {
    let length = (name?.count ?? 0) + (value?.count ?? 0)
    evict(for: length + Self.overhead)
    // An entry that is larger than the table empties it.
    guard length + Self.overhead <= min(maximumSize, limit) else { return false }
    inserted += 1
    if count == entries.count { growEntries() }
    makeRoom(length)
    let start = end
    if let name { copy(source, name) }
    if let value { copy(source, value) }
    entries[head] = Entry(
      start: start, nameLength: name?.count ?? 0, valueLength: value?.count ?? 0, isNameKnown: name != nil,
      isValueKnown: value != nil, isPlain: isPlain)
    head = (head &+ 1) & (entries.count &- 1)
    count += 1
    size += length + Self.overhead
    completeIfFull()
    return true
  }

  /// No older entry is left when even an empty one has no room beside the known ones.
  private mutating func completeIfFull() {
    if isBounded, size + Self.overhead > maximumSize { isComplete = true }
  }

  /// Evicts the oldest entries until `needed` bytes have room.
  private mutating func evict(for needed: Int) {
    let room = min(maximumSize, limit) - needed
    guard size > room else { return }
    while count > 0, size > room {
      let oldest = entries[(head &- count) & (entries.count &- 1)]
      size -= oldest.size
      count -= 1
    }
    // Entries leave in the order of their insertion, so none at an unknown index is left, except in a larger table.
    isComplete = isBounded
    if count == 0 { end = 0 }
  }

  private mutating func copy(_ source: RawSpan, _ range: Range<Int>) {
    guard !range.isEmpty else { return }
    let part = source.extracting(range)
    let start = end
    // Safe: `makeRoom` made the storage at least this long, and the two never overlap.
    unsafe storage.withUnsafeMutableBytes { target in
      unsafe part.withUnsafeBytes { source in
        guard let to = target.baseAddress, let from = source.baseAddress else { return }
        unsafe (to + start).copyMemory(from: from, byteCount: source.count)
      }
    }
    end += range.count
  }

  /// Makes room for the strings of one entry behind `end`. The storage has twice the live bytes, so moving them to its
  /// beginning costs amortised O(1) for each byte.
  private mutating func makeRoom(_ length: Int) {
    guard end + length > storage.count else { return }
    let first = count > 0 ? entries[(head &- count) & (entries.count &- 1)].start : end
    let live = end - first
    if 2 * (live + length) > storage.count {
      var larger = [UInt8](repeating: 0, count: max(512, 4 * (live + length)))
      for offset in 0..<live { larger[offset] = storage[first + offset] }
      storage = larger
    } else {
      for offset in 0..<live { storage[offset] = storage[first + offset] }
    }
    for distance in 0..<count { entries[(head &- 1 &- distance) & (entries.count &- 1)].start -= first }
    end = live
  }

  private mutating func growEntries() {
    var larger: [Entry] = []
    larger.reserveCapacity(max(16, 2 * count))
    for distance in stride(from: count - 1, through: 0, by: -1) {
      larger.append(entries[(head &- 1 &- distance) & (entries.count &- 1)])
    }
    let empty = Entry(start: 0, nameLength: 0, valueLength: 0, isNameKnown: false, isValueKnown: false, isPlain: false)
    larger += Array(repeating: empty, count: max(16, 2 * count) - count)
    entries = larger
    head = count
  }
}
