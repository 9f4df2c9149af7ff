/// The bytes of a `ByteWriter` as a value that can be sent to other threads: it takes ownership of the memory without a
/// copy.
///
/// `ByteWriter(reusing:)` reuses the memory for writing.
@safe public struct WrittenBytes: Sendable {
  /// Owns the memory.
  ///
  /// `@unchecked Sendable` is valid because the memory is written only by the `ByteWriter` that has it, while no storage
  /// does. The interleavings that were looked at:
  /// - Two threads read: nothing changes. `count` is constant.
  /// - One reads and the other drops its copy: references are counted atomically, and the last one frees.
  /// - One takes the memory back and the other reads: the first would need the only reference
  ///   (`isKnownUniquelyReferenced`, on a variable that it has exclusively), and the other has one.
  /// - One takes the memory back and the other makes a copy: that needs a copy to be made of, which would be a second
  ///   reference.
  @safe fileprivate final class Storage: @unchecked Sendable {
    private var memory: UnsafeMutableRawPointer?
    private let capacity: Int
    private let count: Int

    init(_ memory: UnsafeMutableRawPointer, capacity: Int, count: Int) {
      unsafe self.memory = memory
      (self.capacity, self.count) = (capacity, count)
    }

    deinit { unsafe memory?.deallocate() }

    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: memory, count: count) }

    /// Gives the memory away; for the owner of the only reference.
    func take() -> (memory: UnsafeMutableRawPointer, capacity: Int)? {
      guard let taken = unsafe memory.take() else { return nil }
      return unsafe (taken, capacity)
    }
  }

  private var storage: Storage?

  /// No bytes.
  public init() {}

  /// Takes ownership of the written bytes.
  public init(_ writer: consuming ByteWriter) {
    let (memory, capacity, count) = unsafe writer.giveUp()
    storage = unsafe Storage(memory, capacity: capacity, count: count)
  }

  /// The bytes, borrowed.
  public var bytes: RawSpan {
    @_lifetime(borrow self)
    get {
      guard let storage else { return RawSpan() }
      // Safe: the storage keeps the memory as long as this value has it.
      let span = unsafe RawSpan(_unsafeBytes: storage.bytes)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// The memory, if it has no other reference.
  fileprivate mutating func takeMemory() -> (memory: UnsafeMutableRawPointer, capacity: Int)? {
    guard isKnownUniquelyReferenced(&storage) else { return nil }
    defer { storage = nil }
    return unsafe storage?.take()
  }
}

extension ByteWriter {
  /// Writes into the memory of earlier bytes if these have no other reference; otherwise into new memory.
  public init(reusing written: consuming WrittenBytes) {
    var written = written
    if let (memory, capacity) = unsafe written.takeMemory() {
      unsafe self.init(memory, capacity: capacity)
    } else {
      self.init()
    }
  }
}
