import Bytes

/// One direction of a connection: delivered bytes, buffered segments, known gaps.
///
/// Offsets are 64-bit byte offsets from the start of the stream; the 32-bit sequence numbers of segments are read as
/// distances from the next expected one.
struct DirectionalStream {
  /// How certain the start of the stream is.
  enum Start {
    /// Nothing is known, or only what the peer acknowledged.
    case unknown
    /// Data came without a SYN. They are held until the lowest sequence number has probably been seen.
    case held
    case known
  }

  /// A FIN or RST.
  struct Closing {
    var isReset: Bool
    var sequence: SequenceNumber
    var acknowledgement: SequenceNumber
    var time: Timestamp

    /// Whether both are captures of one packet: a sender retransmits after more than this many nanoseconds.
    func isSamePacket(as other: Closing, within delay: Int64) -> Bool {
      guard let distance = other.time.nanoseconds(since: time) else { return false }
      return (-delay...delay).contains(distance) && isReset == other.isReset && sequence == other.sequence
        && acknowledgement == other.acknowledgement
    }
  }

  enum Scaling: Equatable {
    /// The SYN was not captured.
    case unknown
    /// The SYN has no window scale option.
    case none
    case by(UInt8)
  }

  /// Bytes that arrived before the bytes preceding them.
  struct Waiting {
    var offset: Int
    var bytes: [UInt8]
    var time: Timestamp
    var packet: Int
    /// The acknowledgement number of that packet.
    var acknowledgement: UInt32
    var end: Int { offset + bytes.count }
    /// The bytes counted against the limits, including overhead.
    var cost: Int { bytes.count + DirectionalStream.pieceOverhead }
  }

  /// The memory that a waiting piece needs in addition to its bytes.
  static let pieceOverhead = 96

  var start = Start.unknown
  /// The sequence number of stream offset 0.
  var base = SequenceNumber(rawValue: 0)
  /// The start of the stream according to a SYN; equal to `base` unless the SYN was recorded long after its data.
  var synBase: SequenceNumber?
  /// Whether `base` comes from the peer's acknowledgement or from a segment without data.
  var hasHint = false
  /// Whether the hint was a segment without data that may be a keep-alive, whose sequence number is one below the next.
  var hintMayBeKeepAlive = false
  /// The offset of the next byte to deliver.
  var next = 0
  /// Buffered pieces, sorted, without overlaps, all after `next`.
  var waiting: [Waiting] = []
  /// The cost of `waiting` and `cuts` against the limits; 0 only if both are empty.
  var waitingCost = 0
  /// Ranges truncated by the snap length, sorted, without overlaps. Waiting bytes within a range count nevertheless.
  var cuts: [Range<Int>] = []
  /// The offset of the FIN, if one was captured.
  var finOffset: Int?
  /// The last FIN or RST.
  var closing: Closing?
  /// The highest offset that the peer acknowledged; `nil` without an acknowledgement.
  var acknowledged: Int?
  /// By how much the last acknowledgement advanced: a FIN that was not captured is acknowledged as one byte.
  var lastAdvance = 0
  /// The number of packets since the peer acknowledged the missing bytes before `waiting`, or since data is held.
  var patience = 0
  var hasEnded = false
  /// The last window of the sender, and the window scale of its SYN.
  var window = UInt16.max
  private(set) var scaling = Scaling.unknown
  /// The time of the sender's last packet.
  var lastTime = Timestamp.none
  var recent = RecentSegments()
  /// The latest run of contiguous segments that are too far away: the next expected number, and the length of the run.
  private var elsewhere: (next: SequenceNumber, count: Int)?

  /// Whether later packets decide about a part of the stream: about bytes after missing ones, or about a FIN.
  var waitsForPackets: Bool { waitingCost > 0 || start == .held || finOffset.map { $0 > next } ?? false }

  func offset(of sequence: SequenceNumber) -> Int {
    next + sequence.distance(from: base.advanced(by: next))
  }

  /// Whether nothing is missing, waiting or ending, so that the next bytes in order can pass through.
  var isInOrder: Bool { start == .known && waitingCost == 0 && finOffset == nil }

  /// Whether the number acknowledges bytes that were not captured yet. A single byte more may be a FIN.
  @inline(__always)
  func isBehind(_ acknowledgement: UInt32) -> Bool {
    offset(of: SequenceNumber(rawValue: acknowledgement)) > next + 1
  }

  /// Takes a SYN's window scale. The SYN's own window is not scaled, and is valid until the sender's next segment.
  mutating func noteSYN(windowScale: UInt8?) {
    scaling = windowScale.map { .by($0) } ?? .none
    if let windowScale { window >>= UInt16(windowScale) }
  }

  /// Notes the peer's acknowledgement if it can refer to this stream.
  mutating func acknowledge(_ number: SequenceNumber, within farthest: Int) {
    let offset = offset(of: number)
    if let acknowledged, acknowledged >= offset { return }
    guard offset - next < farthest else { return }
    lastAdvance = offset - (acknowledged ?? offset)
    acknowledged = offset
  }

  /// Takes a segment that is complete and next in order, and returns its offset; `nil` for any other segment.
  @inline(__always)
  mutating func takeNext(_ segment: borrowing TCPSegment, _ payload: RawSpan, _ time: Timestamp) -> Int? {
    let length = segment.payloadLength
    guard payload.byteCount == length, segment.sequence == base.advanced(by: next), !hasEnded else { return nil }
    let offset = next
    recent.note(payload, at: offset, time)
    next += length
    return offset
  }

  /// The number of contiguous segments that show that a stream continues far away.
  private static let convincing = 3

  /// Notes a segment with data that is too far away to belong to the stream.
  ///
  /// A segment with a corrupt sequence number has no contiguous successor; a segment with a time before the latest one
  /// counts as a second recording of old data.
  ///
  /// - Returns: whether the stream continues there: more than a gigabyte was not captured, or the endpoints reused
  ///   their ports.
  mutating func goesOn(at sequence: SequenceNumber, _ length: Int, _ time: Timestamp) -> Bool {
    guard start == .known, length > 0, (time.nanoseconds(since: lastTime) ?? 0) >= 0 else { return false }
    let count = elsewhere.map { $0.next == sequence ? $0.count + 1 : 1 } ?? 1
    elsewhere = (sequence.advanced(by: length), count)
    guard count >= Self.convincing else { return false }
    elsewhere = nil
    return true
  }

  /// The first offset after `next` with buffered or truncated bytes.
  var firstPending: Int? {
    guard let cut = cuts.first?.lowerBound else { return waiting.first?.offset }
    return min(cut, waiting.first?.offset ?? cut)
  }

  /// Buffers bytes that cannot be delivered yet. Where bytes are buffered already, the earlier ones are kept.
  ///
  /// - Returns: the number of new bytes that differ from the buffered ones, and the offset of the first difference.
  mutating func hold(
    _ bytes: RawSpan, at offset: Int, in packet: StreamPosition
  ) -> (conflicts: Int, firstConflict: Int) {
    let end = offset + bytes.byteCount
    var cursor = offset
    var conflicts = 0
    var firstConflict = 0
    var index = firstWaiting(endingAfter: offset)
    while cursor < end {
      guard index < waiting.count, waiting[index].offset < end else {
        insert(bytes.extracting(cursor - offset..<bytes.byteCount), at: cursor, index, packet)
        break
      }
      if cursor < waiting[index].offset {
        let stop = waiting[index].offset
        insert(bytes.extracting(cursor - offset..<stop - offset), at: cursor, index, packet)
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
    return (conflicts, firstConflict)
  }

  /// Notes that the snap length truncated these bytes.
  mutating func noteCut(_ range: Range<Int>) {
    var range = range
    var index = cuts.count
    while index > 0, cuts[index - 1].lowerBound > range.lowerBound { index -= 1 }
    if index > 0, cuts[index - 1].upperBound >= range.lowerBound { index -= 1 }
    var last = index
    while last < cuts.count, cuts[last].lowerBound <= range.upperBound {
      range = min(range.lowerBound, cuts[last].lowerBound)..<max(range.upperBound, cuts[last].upperBound)
      last += 1
    }
    waitingCost += (1 - (last - index)) * Self.pieceOverhead
    cuts.replaceSubrange(index..<last, with: [range])
  }

  /// Removes truncated ranges that end before `next`.
  mutating func dropPassedCuts() {
    let passed = cuts.prefix { $0.upperBound <= next }.count
    guard passed > 0 else { return }
    cuts.removeFirst(passed)
    waitingCost -= passed * Self.pieceOverhead
  }

  mutating func removeFirstWaiting() -> Waiting {
    let first = waiting.removeFirst()
    waitingCost -= first.cost
    return first
  }

  private mutating func insert(_ bytes: RawSpan, at offset: Int, _ index: Int, _ packet: StreamPosition) {
    let piece = Waiting(
      offset: offset, bytes: Array(copying: bytes), time: packet.time, packet: packet.packet,
      acknowledgement: packet.acknowledgement)
    waitingCost += piece.cost
    waiting.insert(piece, at: index)
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

  /// Fixes the start of a held stream: the lowest offset seen, or the offset before it that the peer expected.
  mutating func settleStart() {
    guard start != .known else { return }
    start = .known
    patience = 0
    var lowest = firstPending ?? min(0, finOffset ?? 0)
    // The peer's expectation counts only if it can refer to this data, that is, if it is a little before the data.
    if hasHint && lowest >= 0 && lowest <= 1 << 20 { lowest = 0 }
    moveBase(by: lowest)
  }

  /// Moves the start of the stream by `distance` bytes; only while nothing was delivered.
  mutating func moveBase(by distance: Int) {
    guard distance != 0 else { return }
    base = base.advanced(by: distance)
    for index in waiting.indices { waiting[index].offset -= distance }
    for index in cuts.indices { cuts[index] = cuts[index].lowerBound - distance..<cuts[index].upperBound - distance }
    if let offset = acknowledged { acknowledged = offset - distance }
    if let offset = finOffset { finOffset = max(0, offset - distance) }
  }
}
