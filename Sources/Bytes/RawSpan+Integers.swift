import Glibc

/// Reads integers from borrowed memory.
///
/// Nearly all unsafe loads of the parsers are in this file, and nearly all unsafe stores in `ByteWriter`. The loads are
/// safe because each goes through the bounds check of `RawSpan`, needs no alignment, and yields a type for which every bit
/// pattern is valid. An offset outside the span is a programming error and traps; callers check the lengths of untrusted
/// data first.
extension RawSpan {
  /// The byte at `offset`. An offset outside the span traps, as in all functions here.
  @inlinable @inline(__always)
  public func byte(at offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  /// The two bytes at `offset` in network order.
  @inlinable @inline(__always)
  public func uint16(at offset: Int) -> UInt16 {
    UInt16(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  /// The four bytes at `offset` in network order.
  @inlinable @inline(__always)
  public func uint32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// The eight bytes at `offset` in network order.
  @inlinable @inline(__always)
  public func uint64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The two bytes at `offset` in little-endian order, or big-endian if `bigEndian` is true.
  @inlinable @inline(__always)
  public func uint16(at offset: Int, bigEndian: Bool) -> UInt16 {
    let value = uint16(at: offset)
    return bigEndian ? value : value.byteSwapped
  }

  /// The four bytes at `offset` in little-endian order, or big-endian if `bigEndian` is true.
  @inlinable @inline(__always)
  public func uint32(at offset: Int, bigEndian: Bool) -> UInt32 {
    let value = uint32(at: offset)
    return bigEndian ? value : value.byteSwapped
  }

  /// The eight bytes at `offset` in little-endian order, or big-endian if `bigEndian` is true.
  @inlinable @inline(__always)
  public func uint64(at offset: Int, bigEndian: Bool) -> UInt64 {
    let value = uint64(at: offset)
    return bigEndian ? value : value.byteSwapped
  }

  /// Whether both spans have the same bytes.
  @inlinable
  public func elementsEqual(_ other: RawSpan) -> Bool {
    let count = byteCount
    guard count == other.byteCount else { return false }
    guard count >= 8 else {
      for offset in 0..<count where byte(at: offset) != other.byte(at: offset) { return false }
      return true
    }
    // The last eight bytes may overlap the ones before.
    let last = count &- 8
    var offset = 0
    while offset < last {
      if uint64(at: offset) != other.uint64(at: offset) { return false }
      offset &+= 8
    }
    return uint64(at: last) == other.uint64(at: last)
  }
}

/// Searches borrowed memory.
extension RawSpan {
  /// The offset of the first `byte` at or after `start`, at the speed of the system's `memchr`; `nil` if there is none.
  @inlinable
  public func firstOffset(of byte: UInt8, from start: Int = 0) -> Int? {
    guard start < byteCount else { return nil }
    // Safe: memchr looks at no more than the bytes of this span, and its result points into them.
    return unsafe withUnsafeBytes { memory in
      guard let base = memory.baseAddress,
        let found = unsafe memchr(base + start, Int32(byte), memory.count - start)
      else { return nil }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  /// Whether the span contains one of two bytes, in one pass and 16 bytes at a time.
  @inlinable
  package func contains(_ first: UInt8, or second: UInt8) -> Bool {
    guard byteCount >= 16 else {
      for offset in 0..<byteCount where byte(at: offset) == first || byte(at: offset) == second { return true }
      return false
    }
    let (first, second) = (SIMD16(repeating: first), SIMD16(repeating: second))
    let last = byteCount &- 16
    // The last block may overlap the previous one.
    var found = isEqual(at: last, to: first, or: second)
    var offset = 0
    while offset < last {
      found .|= isEqual(at: offset, to: first, or: second)
      offset &+= 16
    }
    // Safe: both are 16 bytes, in which any bit pattern is a value. The mask's own reduction goes byte by byte.
    let words = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
    return words[0] | words[1] != 0
  }

  @inlinable @inline(__always)
  func isEqual(at offset: Int, to first: SIMD16<UInt8>, or second: SIMD16<UInt8>) -> SIMDMask<SIMD16<Int8>> {
    // Safe: callers see to it that 16 bytes are there.
    let block = unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    return (block .== first) .| (block .== second)
  }

  /// Whether the bytes begin with all of `prefix`.
  @inlinable
  public func begins(with prefix: RawSpan) -> Bool {
    byteCount >= prefix.byteCount && extracting(0..<prefix.byteCount).elementsEqual(prefix)
  }

  /// Whether the text's bytes are at `offset`.
  @inlinable
  package func holds(_ text: StaticString, at offset: Int) -> Bool {
    let length = text.utf8CodeUnitCount
    guard offset >= 0, byteCount - offset >= length else { return false }
    // Safe: `text` is a compile-time constant of `length` bytes, and as many are there.
    return unsafe withUnsafeBytes { memory in
      guard let base = memory.baseAddress else { return length == 0 }
      return unsafe memcmp(base + offset, text.utf8Start, length) == 0
    }
  }
}

extension Array where Element == UInt8 {
  /// A copy of borrowed bytes that outlives their buffer.
  @inlinable
  public init(copying bytes: RawSpan) {
    self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
  }

  /// Appends a copy of borrowed bytes.
  @inlinable
  public mutating func append(copying bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
  }
}

extension Array where Element == UInt8 {
  /// The array's bytes, borrowed.
  @inlinable
  public var rawBytes: RawSpan {
    @_lifetime(borrow self)
    // Safe because a byte has no padding and every bit pattern is a value.
    get { unsafe span.bytes }
  }
}

extension Span where Element == UInt8 {
  /// The bytes as a raw span.
  @inlinable
  public var rawBytes: RawSpan {
    @_lifetime(copy self)
    // Safe because a byte has no padding and every bit pattern is a value.
    get { unsafe bytes }
  }
}
