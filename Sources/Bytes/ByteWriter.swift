/// A growing block of memory into which numbers and text are written.
///
/// The hot paths write straight into it: no `String`, no array per value. The block grows by doubling, so writing takes
/// amortized constant time per byte; call `removeAll()` after the contents are used, to reuse the memory.
@safe public struct ByteWriter: ~Copyable {
  // Safe because the pointer is owned by this non-copyable value alone, `reserve` is called before every store, and
  // nothing hands the pointer out.
  @usableFromInline var storage: UnsafeMutableRawPointer
  @usableFromInline var capacity: Int
  /// Bytes written since the start or the last `removeAll()`.
  public var count: Int { @inlinable @inline(__always) get { used } }
  @usableFromInline var used: Int

  /// Makes an empty writer.
  ///
  /// - Parameter capacity: the bytes to allocate at first, at least 64.
  public init(capacity: Int = 1 << 16) {
    self.capacity = max(64, capacity)
    unsafe self.storage = .allocate(byteCount: self.capacity, alignment: 16)
    self.used = 0
  }

  /// Takes ownership of memory that `giveUp` returned.
  init(_ memory: UnsafeMutableRawPointer, capacity: Int) {
    unsafe storage = memory
    self.capacity = capacity
    used = 0
  }

  deinit { unsafe storage.deallocate() }

  /// The memory, which is the caller's then.
  consuming func giveUp() -> (memory: UnsafeMutableRawPointer, capacity: Int, count: Int) {
    let parts = unsafe (storage, capacity, used)
    discard self
    return unsafe parts
  }

  /// The bytes written so far.
  public var bytes: RawSpan {
    @_lifetime(borrow self)
    get {
      let span = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(storage), byteCount: count)
      return unsafe _overrideLifetime(span, borrowing: self)
    }
  }

  /// Forgets the contents and keeps the memory.
  @inlinable public mutating func removeAll() { used = 0 }

  /// Calls `body` with the written bytes.
  public func withBytes(_ body: (RawSpan) -> Void) { body(bytes) }

  /// Drops everything after the first `count` bytes, which must not be more than were written.
  public mutating func truncate(to count: Int) {
    precondition(count >= 0 && count <= self.count)
    self.used = count
  }

  /// Replaces the four bytes at `offset` by an integer in network order. All four must have been written.
  public mutating func overwrite(bigEndian value: UInt32, at offset: Int) {
    precondition(offset >= 0 && offset <= count - 4)
    unsafe storage.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
  }

  /// Reserves room for this many more bytes; writing also grows the block as needed.
  @inlinable @inline(__always)
  public mutating func reserve(_ additional: Int) {
    if capacity - count < additional { grow(additional) }
  }

  @inline(never) @usableFromInline
  mutating func grow(_ additional: Int) {
    let wanted = max(capacity * 2, count + additional)
    let bigger = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 16)
    unsafe bigger.copyMemory(from: storage, byteCount: count)
    unsafe storage.deallocate()
    unsafe storage = bigger
    capacity = wanted
  }

  // MARK: bytes and integers

  /// Writes one byte.
  @inlinable @inline(__always)
  public mutating func write(_ byte: UInt8) {
    reserve(1)
    unsafe storage.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    used = count + 1
  }

  /// Writes an integer in network order.
  @inlinable @inline(__always)
  public mutating func write<T: FixedWidthInteger & BitwiseCopyable>(bigEndian value: T) {
    reserve(MemoryLayout<T>.size)
    unsafe storage.storeBytes(of: value.bigEndian, toByteOffset: count, as: T.self)
    used = count + MemoryLayout<T>.size
  }

  /// Writes a copy of borrowed bytes.
  @inlinable
  public mutating func write(_ bytes: RawSpan) {
    reserve(bytes.byteCount)
    unsafe bytes.withUnsafeBytes { source in
      if let base = source.baseAddress {
        unsafe (storage + count).copyMemory(from: base, byteCount: source.count)
      }
    }
    used = count + bytes.byteCount
  }

  /// Writes a string literal in UTF-8, without a terminator.
  @inlinable @inline(__always)
  public mutating func write(_ text: StaticString) {
    let length = text.utf8CodeUnitCount
    reserve(length)
    unsafe (storage + count).copyMemory(from: text.utf8Start, byteCount: length)
    used = count + length
  }

  /// Writes text in UTF-8. A literal should be passed to `write(_:)`, which copies it in one piece.
  public mutating func write(text: String) {
    for byte in text.utf8 { write(byte) }
  }

  // MARK: text

  /// Writes a number in decimal digits, 1 to 20.
  @inlinable
  public mutating func write(decimal value: UInt64) {
    reserve(20)
    if value < 10 {
      unsafe storage.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: value), toByteOffset: used, as: UInt8.self)
      used += 1
      return
    }
    var digits = 2
    var limit: UInt64 = 100
    while value >= limit {
      digits += 1
      if digits == 20 { break }
      limit &*= 10
    }
    var rest = value
    var position = used + digits
    while position > used {
      position -= 1
      let quotient = rest / 10
      unsafe storage.storeBytes(
        of: 0x30 + UInt8(truncatingIfNeeded: rest &- quotient &* 10), toByteOffset: position, as: UInt8.self)
      rest = quotient
    }
    used += digits
  }

  /// Writes a number in decimal digits, with a minus sign if it is negative.
  @inlinable
  public mutating func write(decimal value: Int) {
    if value < 0 { write(UInt8(ascii: "-")) }
    write(decimal: UInt64(value.magnitude))
  }

  /// Writes a number in exactly `width` decimal digits, zeros in front.
  @inlinable
  package mutating func write(decimal value: UInt32, width: Int) {
    reserve(width)
    var rest = value
    var position = count + width
    while position > count {
      position -= 1
      unsafe storage.storeBytes(of: 0x30 + UInt8(rest % 10), toByteOffset: position, as: UInt8.self)
      rest /= 10
    }
    used = count + width
  }

  /// Replaces each byte of a range by this one. All must have been written.
  package mutating func overwrite(_ byte: UInt8, in range: Range<Int>) {
    precondition(range.lowerBound >= 0 && range.upperBound <= count)
    for place in range { unsafe storage.storeBytes(of: byte, toByteOffset: place, as: UInt8.self) }
  }

  /// Replaces bytes at `offset` by a number in exactly `width` decimal digits, zeros in front. All must have been written.
  package mutating func overwrite(decimal value: UInt64, width: Int, at offset: Int) {
    precondition(width >= 0 && offset >= 0 && width <= count && offset <= count - width)
    var rest = value
    for place in stride(from: offset + width - 1, through: offset, by: -1) {
      unsafe storage.storeBytes(of: 0x30 + UInt8(rest % 10), toByteOffset: place, as: UInt8.self)
      rest /= 10
    }
  }

  /// Writes each byte as two lower-case hexadecimal digits.
  @inlinable
  public mutating func write(hex bytes: RawSpan) {
    reserve(2 * bytes.byteCount)
    var offset = 0
    // Four bytes become eight digits in one register: spread the nibbles, then add the distance to '0' or 'a'.
    while offset + 4 <= bytes.byteCount {
      var x = UInt64(bytes.uint32(at: offset))
      x = (x | (x << 16)) & 0x0000_ffff_0000_ffff
      x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff
      x = (x | (x << 4)) & 0x0f0f_0f0f_0f0f_0f0f
      let letters = ((x &+ 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101
      let digits = x &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
      unsafe storage.storeBytes(of: digits.bigEndian, toByteOffset: count + 2 * offset, as: UInt64.self)
      offset += 4
    }
    while offset < bytes.byteCount {
      let byte = bytes.byte(at: offset)
      let high = Self.hexDigit(byte >> 4)
      let low = Self.hexDigit(byte & 15)
      unsafe storage.storeBytes(of: high, toByteOffset: count + 2 * offset, as: UInt8.self)
      unsafe storage.storeBytes(of: low, toByteOffset: count + 2 * offset + 1, as: UInt8.self)
      offset += 1
    }
    used = count + 2 * bytes.byteCount
  }

  @inlinable @inline(__always)
  static func hexDigit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 + nibble : 0x57 + nibble }

  /// Writes the bytes in Base64 with padding (RFC 4648 §4).
  public mutating func write(base64 bytes: RawSpan) {
    var offset = 0
    while offset < bytes.byteCount {
      let left = min(3, bytes.byteCount - offset)
      var group = UInt32(bytes.byte(at: offset)) << 16
      if left > 1 { group |= UInt32(bytes.byte(at: offset + 1)) << 8 }
      if left > 2 { group |= UInt32(bytes.byte(at: offset + 2)) }
      for digit in 0..<4 {
        write(
          digit <= left
            ? Self.base64Digit(UInt8(truncatingIfNeeded: group >> (18 - 6 * UInt32(digit))) & 63) : UInt8(ascii: "="))
      }
      offset += 3
    }
  }

  private static func base64Digit(_ value: UInt8) -> UInt8 {
    switch value {
    case 0..<26: 0x41 + value
    case 26..<52: 0x61 + value - 26
    case 52..<62: 0x30 + value - 52
    case 62: UInt8(ascii: "+")
    default: UInt8(ascii: "/")
    }
  }
}
