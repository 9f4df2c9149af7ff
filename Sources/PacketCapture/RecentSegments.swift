import Bytes

/// The latest segments of a direction with a digest of their bytes, to detect retransmissions with different contents
/// without keeping the bytes.
struct RecentSegments {
  struct Segment {
    fileprivate(set) var offset = -1
    fileprivate(set) var length: UInt32 = 0
    /// The time of capture in units of 1,024 ns; wraps around after 73 minutes.
    fileprivate var tick: UInt32 = 0
    fileprivate(set) var digest: UInt64 = 0

    /// Whether the segment was captured within this many nanoseconds of the time, modulo the wrap-around.
    func isWithin(_ nanoseconds: Int64, of time: Timestamp) -> Bool {
      offset >= 0 && abs(Int64(Int32(bitPattern: RecentSegments.tick(time) &- tick))) << 10 <= nanoseconds
    }
  }

  private static let capacity = 8
  private var segments = InlineArray<8, Segment>(repeating: Segment())
  private var latest = 0

  @inline(__always)
  mutating func note(_ bytes: RawSpan, at offset: Int, _ time: Timestamp = .none) {
    latest = (latest + 1) & (Self.capacity - 1)
    segments[latest] = Segment(
      offset: offset, length: UInt32(truncatingIfNeeded: bytes.byteCount), tick: Self.tick(time),
      digest: Self.digest(bytes))
  }

  @inline(__always)
  private static func tick(_ time: Timestamp) -> UInt32 { UInt32(truncatingIfNeeded: time.nanoseconds >> 10) }

  /// The segment with this offset and length, if it is among the latest.
  func segment(at offset: Int, length: Int) -> Segment? {
    for index in 0..<Self.capacity where segments[index].offset == offset && segments[index].length == length {
      return segments[index]
    }
    return nil
  }

  /// Compares the latest segments with `bytes`, which begin at `offset`: the length of all segments that lie within
  /// `bytes` and have different contents, and the offset of the first one.
  func conflicts(_ bytes: RawSpan, at offset: Int) -> (length: Int, first: Int) {
    var result = (length: 0, first: 0)
    for index in 0..<Self.capacity {
      let segment = segments[index]
      let start = segment.offset - offset
      let length = Int(segment.length)
      guard segment.offset >= 0, start >= 0, start + length <= bytes.byteCount else { continue }
      if Self.digest(bytes.extracting(start..<start + length)) != segment.digest {
        if result.length == 0 || segment.offset < result.first { result.first = segment.offset }
        result.length += length
      }
    }
    return result
  }

  /// A digest of bytes. From 32 bytes on it is made of the sums of eight-byte words in four lanes, which is as fast as
  /// memory. The last 32 bytes are added a second time, in a sum of their own, so that no tail is left to process byte by
  /// byte.
  @inline(__always)
  static func digest(_ bytes: RawSpan) -> UInt64 {
    let count = bytes.byteCount
    var lanes = SIMD4<UInt64>(repeating: 0)
    var offset = 0
    guard count >= 32 else {
      var sum: UInt64 = 0
      for offset in 0..<count { sum = (sum &<< 9 | sum &>> 55) &+ UInt64(bytes.byte(at: offset)) }
      return sum
    }
    while offset + 32 <= count {
      // Safe: a bounds-checked load of a type for which every bit pattern is valid.
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
