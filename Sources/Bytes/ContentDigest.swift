/// A 64-bit digest of bytes that tells contents apart, and keeps up with memory; it is no protection against somebody
/// who wants two contents to have the same one.
///
/// Multiply and fold in two independent lanes, sixteen bytes each a step; the last sixteen bytes are read again rather
/// than one by one.
public struct ContentDigest {
  public let value: UInt64

  @inlinable @inline(__always)
  public init(_ bytes: RawSpan, seed: UInt64 = 0x9e37_79b9_7f4a_7c15) {
    self.init(value: Self.digest(bytes, seed))
  }

  @inlinable
  init(value: UInt64) { self.value = value }

  @inlinable @inline(__always)
  static func digest(_ bytes: RawSpan, _ seed: UInt64) -> UInt64 {
    let count = bytes.byteCount
    var first = seed ^ UInt64(truncatingIfNeeded: count)
    var second = seed &* 0xa076_1d64_78bd_642f
    if count < 16 {
      for offset in 0..<count { first = (first ^ UInt64(bytes.byte(at: offset))) &* 0x0000_0100_0000_01b3 }
      return fold(first, second | 1)
    }
    // Safe: every load below ends at or before `count`, needs no alignment, and any bits are an integer.
    return unsafe bytes.withUnsafeBytes { memory in
      guard let base = memory.baseAddress else { return first }
      func word(_ offset: Int) -> UInt64 { unsafe base.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
      var offset = 0
      while offset &+ 32 <= count {
        first = fold(word(offset) ^ 0xe703_7ed1_a0b4_28db, word(offset &+ 8) ^ first)
        second = fold(word(offset &+ 16) ^ 0x8ebc_6af0_9c88_c6e3, word(offset &+ 24) ^ second)
        offset = offset &+ 32
      }
      if offset &+ 16 < count {
        first = fold(word(offset) ^ 0x5899_65cc_7537_4cc3, word(offset &+ 8) ^ first)
      }
      second = fold(word(count &- 16) ^ 0x1d8e_4e27_c47d_124f, word(count &- 8) ^ second)
      return fold(first ^ 0x5899_65cc_7537_4cc3, second ^ 0xe703_7ed1_a0b4_28db)
    }
  }

  @inlinable @inline(__always)
  static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }
}
