import Bytes

/// The latest segments of a direction with a digest of their bytes, so that retransmissions with other contents are
/// detected without keeping the bytes.
struct RecentSegments {
  private struct Segment {
    var offset = -1
    var length = 0
    var digest: UInt64 = 0
  }

  private static let capacity = 8
  private var segments = InlineArray<8, Segment>(repeating: Segment())
  private var latest = 0

  @inline(__always)
  mutating func note(_ bytes: RawSpan, at offset: Int) {
    latest = (latest + 1) & (Self.capacity - 1)
    segments[latest] = Segment(offset: offset, length: bytes.byteCount, digest: Self.digest(bytes))
  }

  /// How many bytes of whole segments among the latest stand in `bytes`, which begins at `offset`, with other contents.
  func conflicts(_ bytes: RawSpan, at offset: Int) -> (length: Int, first: Int) {
    var result = (length: 0, first: 0)
    for index in 0..<Self.capacity {
      let segment = segments[index]
      let start = segment.offset - offset
      guard segment.offset >= 0, start >= 0, start + segment.length <= bytes.byteCount else { continue }
      if Self.digest(bytes.extracting(start..<start + segment.length)) != segment.digest {
        if result.length == 0 || segment.offset < result.first { result.first = segment.offset }
        result.length += segment.length
      }
    }
    return result
  }

  /// A sum of eight-byte words in four lanes keeps up with memory. The last 32 bytes are summed once more, apart: so none is
  /// left to be looked at alone.
  @inline(__always)
  private static func digest(_ bytes: RawSpan) -> UInt64 {
    let count = bytes.byteCount
    var lanes = SIMD4<UInt64>(repeating: 0)
    var offset = 0
    guard count >= 32 else {
      var sum: UInt64 = 0
      for offset in 0..<count { sum = (sum &<< 9 | sum &>> 55) &+ UInt64(bytes.byte(at: offset)) }
      return sum
    }
    while offset + 32 <= count {
      // Safe: bounds-checked load of a type in which every bit pattern is a value.
      lanes = lanes &+ (unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD4<UInt64>.self))
      offset += 32
    }
    let last = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: count - 32, as: SIMD4<UInt64>.self)
    func sum(_ lanes: SIMD4<UInt64>) -> UInt64 {
      lanes[0] &+ lanes[1] &* 3 &+ lanes[2] &* 5 &+ lanes[3] &* 7
    }
    let product = (sum(lanes) ^ 0x9e37_79b9_7f4a_7c15).multipliedFullWidth(by: sum(last) ^ 0xa076_1d64_78bd_642f)
    return product.high ^ product.low
  }
}
