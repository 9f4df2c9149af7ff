/// A 64-bit digest of bytes to distinguish contents, as fast as memory; not collision-resistant.
///
/// Multiply and fold in four independent lanes, sixteen bytes each a step, so that multiplications do not depend on
/// each other; the last sixteen bytes are read as one overlapping block.
@usableFromInline package struct ContentDigest {
  @usableFromInline package let value: UInt64

  @inlinable @inline(__always)
  package init(_ bytes: RawSpan, seed: UInt64 = 0x9e37_79b9_7f4a_7c15) {
    self.init(value: Self.digest(bytes, seed))
  }

  @inlinable
  init(value: UInt64) { self.value = value }

  /// A seed made from bytes, so that a digest covers them too; 32 bytes, a device token, need two steps.
  @inlinable @inline(__always)
  package static func seed(from bytes: RawSpan) -> UInt64 {
    guard bytes.byteCount == 32 else { return digest(bytes, 0x9e37_79b9_7f4a_7c15) }
    return fold(bytes.uint64(at: 0) ^ 0xe703_7ed1_a0b4_28db, bytes.uint64(at: 8))
      ^ fold(bytes.uint64(at: 16) ^ 0x8ebc_6af0_9c88_c6e3, bytes.uint64(at: 24))
  }

  @inlinable @inline(__always)
  static func digest(_ bytes: RawSpan, _ seed: UInt64) -> UInt64 {
    let count = bytes.byteCount
    var a = seed ^ UInt64(truncatingIfNeeded: count)
    if count < 16 {
      for offset in 0..<count { a = (a ^ UInt64(bytes.byte(at: offset))) &* 0x0000_0100_0000_01b3 }
      return fold(a, seed | 1)
    }
    // Safe: every load below ends at or before `count`, needs no alignment, and any bits are an integer.
    return unsafe bytes.withUnsafeBytes { memory in
      guard let base = memory.baseAddress else { return a }
      func step(_ lane: UInt64, _ offset: Int, _ key: UInt64) -> UInt64 {
        let low = unsafe base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let high = unsafe base.loadUnaligned(fromByteOffset: offset &+ 8, as: UInt64.self)
        return fold(low ^ key, high ^ lane)
      }
      var b = seed &* 0xa076_1d64_78bd_642f
      var c = seed ^ 0x8ebc_6af0_9c88_c6e3
      var d = ~seed
      var offset = 0
      while offset &+ 64 <= count {
        a = step(a, offset, 0xe703_7ed1_a0b4_28db)
        b = step(b, offset &+ 16, 0x8ebc_6af0_9c88_c6e3)
        c = step(c, offset &+ 32, 0x5899_65cc_7537_4cc3)
        d = step(d, offset &+ 48, 0x1d8e_4e27_c47d_124f)
        offset = offset &+ 64
      }
      let rest = count &- offset
      if rest > 16 { a = step(a, offset, 0xe703_7ed1_a0b4_28db) }
      if rest > 32 { b = step(b, offset &+ 16, 0x8ebc_6af0_9c88_c6e3) }
      if rest > 48 { c = step(c, offset &+ 32, 0x5899_65cc_7537_4cc3) }
      d = step(d, count &- 16, 0xa076_1d64_78bd_642f)
      return fold(a ^ b &* 3, c ^ d)
    }
  }

  @inlinable @inline(__always)
  static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }
}
