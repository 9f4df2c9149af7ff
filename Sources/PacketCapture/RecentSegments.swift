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

  /// A sum of eight-byte words in four lanes: it sees any single difference and keeps up with memory.
  @inline(__always)
  private static func digest(_ bytes: RawSpan) -> UInt64 {
    let count = bytes.byteCount
    var lanes = SIMD4<UInt64>(repeating: 0)
    var offset = 0
    while offset + 32 <= count {
      // Safe: bounds-checked load of a type in which every bit pattern is a value.
      lanes = lanes &+ (unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD4<UInt64>.self))
      offset += 32
    }
    var sum = lanes[0] &+ lanes[1] &* 3 &+ lanes[2] &* 5 &+ lanes[3] &* 7
    while offset < count {
      sum = (sum &<< 9 | sum &>> 55) &+ UInt64(bytes.byte(at: offset))
      offset += 1
    }
    return sum
  }
}
