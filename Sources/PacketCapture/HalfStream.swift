import Bytes

/// One direction of a connection: what was delivered, what waits, what is known to be missing.
///
/// Offsets are bytes from the start of the stream, 64 bits wide; the 32-bit sequence numbers on the wire are read as
/// distances from the next expected one.
struct HalfStream {
  /// How sure the start of the stream is.
  enum Start {
    /// Nothing is known, or only what the peer acknowledged.
    case unknown
    /// Data came without a SYN; it is held until the lowest sequence number is likely to have been seen.
    case held
    case known
  }

  /// Bytes that came before the ones in front of them.
  struct Waiting {
    var offset: Int
    var bytes: [UInt8]
    var time: Timestamp
    var packet: Int
    var end: Int { offset + bytes.count }
  }

  var start = Start.unknown
  /// Sequence number of stream offset 0.
  var base = SequenceNumber(rawValue: 0)
  /// `base` was told by a SYN.
  var sawSYN = false
  /// `base` was told by the peer's acknowledgement or by a segment without data.
  var hasHint = false
  /// Offset of the next byte to deliver.
  var next = 0
  /// Sorted, without overlaps, all behind `next`.
  var waiting: [Waiting] = []
  var waitingBytes = 0
  /// Up to here, bytes that are neither delivered nor waiting were cut by the snap length.
  var truncatedUntil = 0
  /// Offset of the FIN, or -1.
  var finOffset = -1
  /// Highest offset the peer has acknowledged.
  var acknowledged = 0
  /// Packets seen since the peer acknowledged the missing bytes in front of `waiting`, or since data is held.
  var patience = 0
  var hasEnded = false
  var recent = RecentSegments()

  func offset(of sequence: SequenceNumber) -> Int {
    next + sequence.distance(from: base.advanced(by: next))
  }

  /// Nothing is missing, waiting or ending: the next bytes in order can pass through.
  var isSmooth: Bool { start == .known && waiting.isEmpty && finOffset < 0 && truncatedUntil <= next }

  /// Notes what the peer has acknowledged, if it can be about this stream.
  mutating func acknowledge(_ number: SequenceNumber, within farthest: Int) {
    let offset = offset(of: number)
    if offset > acknowledged && offset - next < farthest { acknowledged = offset }
  }

  /// Takes a segment that is whole and next in order, and returns its offset; `nil` when it is not.
  mutating func takeNext(_ sequence: SequenceNumber, _ payload: RawSpan, ofLength length: Int) -> Int? {
    guard payload.byteCount == length, sequence == base.advanced(by: next) else { return nil }
    let offset = next
    recent.note(payload, at: offset)
    next += length
    return offset
  }

  /// Keeps bytes that cannot be delivered yet. Where something waits already the first bytes stay; returns how many
  /// bytes of the new ones differ from them, and the first place where they do.
  mutating func hold(
    _ bytes: RawSpan, at offset: Int, time: Timestamp, packet: Int
  ) -> (added: Int, conflicts: Int, firstConflict: Int) {
    let end = offset + bytes.byteCount
    var cursor = offset
    var added = 0
    var conflicts = 0
    var firstConflict = 0
    var index = firstWaiting(endingAfter: offset)
    while cursor < end {
      guard index < waiting.count, waiting[index].offset < end else {
        insert(bytes.extracting(cursor - offset..<bytes.byteCount), at: cursor, index, time, packet)
        added += end - cursor
        break
      }
      if cursor < waiting[index].offset {
        let stop = waiting[index].offset
        insert(bytes.extracting(cursor - offset..<stop - offset), at: cursor, index, time, packet)
        added += stop - cursor
        cursor = stop
        index += 1
      }
      let overlapEnd = min(end, waiting[index].end)
      while cursor < overlapEnd {
        if waiting[index].bytes[cursor - waiting[index].offset] != bytes.byte(at: cursor - offset) {
          if conflicts == 0 { firstConflict = cursor }
          conflicts += 1
        }
        cursor += 1
      }
      index += 1
    }
    waitingBytes += added
    return (added, conflicts, firstConflict)
  }

  private mutating func insert(_ bytes: RawSpan, at offset: Int, _ index: Int, _ time: Timestamp, _ packet: Int) {
    waiting.insert(Waiting(offset: offset, bytes: Array(copying: bytes), time: time, packet: packet), at: index)
  }

  private func firstWaiting(endingAfter offset: Int) -> Int {
    if let last = waiting.last, last.end <= offset { return waiting.count }
    var (low, high) = (0, waiting.count)
    while low < high {
      let middle = (low + high) / 2
      if waiting[middle].end <= offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Moves the start of a held stream to where it must be: the lowest byte seen, or what the peer expected before it.
  mutating func settleStart() {
    guard start != .known else { return }
    start = .known
    patience = 0
    var lowest = waiting.first?.offset ?? 0
    // The peer's expectation counts only if it can be about this data: a little before it.
    if hasHint && lowest >= 0 && lowest <= 1 << 20 { lowest = 0 }
    guard lowest != 0 else { return }
    base = base.advanced(by: lowest)
    for index in waiting.indices { waiting[index].offset -= lowest }
    acknowledged = max(0, acknowledged - lowest)
    if finOffset >= 0 { finOffset = max(0, finOffset - lowest) }
    truncatedUntil = max(0, truncatedUntil - lowest)
  }
}

/// The latest segments of a direction with a digest of their bytes, so that a retransmission of delivered bytes can be
/// told from one with other contents without keeping the bytes.
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
