import Bytes

/// One direction of a connection: delivered bytes, buffered segments, known gaps.
///
/// Offsets are bytes from the start of the stream, 64 bits wide; the 32-bit sequence numbers on the wire are read as
/// distances from the next expected one.
struct DirectionalStream {
  /// How sure the start of the stream is.
  enum Start {
    /// Nothing is known, or only what the peer acknowledged.
    case unknown
    /// Data came without a SYN; it is held until the lowest sequence number is likely to have been seen.
    case held
    case known
  }

  /// A FIN or RST.
  struct Closing {
    var isReset: Bool
    var sequence: SequenceNumber
    var acknowledgement: SequenceNumber
    var time: Timestamp

    /// It was captured twice: senders repeat it later than in so many nanoseconds.
    func isSamePacket(as other: Closing, within delay: Int64) -> Bool {
      guard let distance = other.time.nanoseconds(since: time) else { return false }
      return (-delay...delay).contains(distance) && isReset == other.isReset && sequence == other.sequence
        && acknowledgement == other.acknowledgement
    }
  }

  enum Scaling: Equatable {
    /// The SYN was not captured.
    case unknown
    /// The SYN has no option for it.
    case none
    case by(UInt8)
  }

  /// Bytes that came before the ones in front of them.
  struct Waiting {
    var offset: Int
    var bytes: [UInt8]
    var time: Timestamp
    var packet: Int
    /// Of that packet.
    var acknowledgement: UInt32
    var end: Int { offset + bytes.count }
    /// Its cost against the limits, including overhead.
    var cost: Int { bytes.count + DirectionalStream.pieceOverhead }
  }

  /// Memory that a waiting piece takes beside its bytes.
  static let pieceOverhead = 96

  var start = Start.unknown
  /// Sequence number of stream offset 0.
  var base = SequenceNumber(rawValue: 0)
  /// Where a SYN says the stream begins. That is `base`, unless the SYN was recorded long after its data.
  var synBase: SequenceNumber?
  /// `base` is from the peer's acknowledgement or from a segment without data.
  var hasHint = false
  /// It was a segment without data, which may have been a keep-alive: those stand one byte before the next one.
  var hintMayBeKeepAlive = false
  /// Offset of the next byte to deliver.
  var next = 0
  /// Sorted, without overlaps, all after `next`.
  var waiting: [Waiting] = []
  /// The cost of `waiting` and `cuts` against the limits; 0 only when both are empty.
  var waitingCost = 0
  /// Ranges that the snap length cut, sorted, without overlaps; bytes that wait in one of them still count.
  var cuts: [Range<Int>] = []
  /// Offset of the FIN, if one was seen.
  var finOffset: Int?
  /// The last FIN or RST.
  var closing: Closing?
  /// Highest offset the peer has acknowledged, if it was heard at all.
  var acknowledged: Int?
  /// By how much the last acknowledgement went on: a FIN that was not captured is acknowledged as one byte.
  var lastAdvance = 0
  /// Packets seen since the peer acknowledged the missing bytes in front of `waiting`, or since data is held.
  var patience = 0
  var hasEnded = false
  /// The sender's last window, and what its SYN said about windows.
  var window = UInt16.max
  private(set) var scaling = Scaling.unknown
  /// When the sender was heard last.
  var lastTime = Timestamp.none
  var recent = RecentSegments()
  /// The segments in a row that were too far away, the latest: where the next one would be, and how many there were.
  private var elsewhere: (next: SequenceNumber, count: Int)?

  /// Something of it is decided by packets that come later: bytes behind missing ones, or a FIN.
  var waitsForPackets: Bool { waitingCost > 0 || start == .held || finOffset.map { $0 > next } ?? false }

  func offset(of sequence: SequenceNumber) -> Int {
    next + sequence.distance(from: base.advanced(by: next))
  }

  /// Nothing is missing, waiting or ending: the next bytes in order can pass through.
  var isInOrder: Bool { start == .known && waitingCost == 0 && finOffset == nil }

  /// Whether that acknowledges bytes that have not come. One more than have is a FIN.
  @inline(__always)
  func isBehind(_ acknowledgement: UInt32) -> Bool {
    offset(of: SequenceNumber(rawValue: acknowledgement)) > next + 1
  }

  /// Takes a SYN's window scale. Its own window is not shifted, and stands until the sender's next segment.
  mutating func noteSYN(windowScale: UInt8?) {
    scaling = windowScale.map { .by($0) } ?? .none
    if let windowScale { window >>= UInt16(windowScale) }
  }

  /// Notes what the peer has acknowledged, if it can be about this stream.
  mutating func acknowledge(_ number: SequenceNumber, within farthest: Int) {
    let offset = offset(of: number)
    if let acknowledged, acknowledged >= offset { return }
    guard offset - next < farthest else { return }
    lastAdvance = offset - (acknowledged ?? offset)
    acknowledged = offset
  }

  /// Takes a segment that is whole and next in order, and returns its offset; `nil` when it is not.
  @inline(__always)
  mutating func takeNext(_ segment: borrowing TCPSegment, _ payload: RawSpan, _ time: Timestamp) -> Int? {
    let length = segment.payloadLength
    guard payload.byteCount == length, segment.sequence == base.advanced(by: next), !hasEnded else { return nil }
    let offset = next
    recent.note(payload, at: offset, time)
    next += length
    return offset
  }

  /// So many segments in a row show that a stream goes on far away.
  private static let convincing = 3

  /// Notes a segment with data that is too far away to belong to the stream. Returns whether the stream goes on there: an
  /// outage of the capture hid more than a gigabyte, or the ends use their ports again. A segment with a damaged number
  /// has none behind it; one with a time before the latest is taken for a second recording of old data.
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

  /// Keeps bytes that cannot be delivered yet. Where something waits already the first bytes stay; returns how many
  /// bytes of the new ones differ from them, and the first place where they do.
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

  /// Notes that the snap length cut these bytes off.
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

  /// Forgets cuts that lie before `next`.
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

  /// Moves the start of a held stream to where it must be: the lowest byte seen, or what the peer expected before it.
  mutating func settleStart() {
    guard start != .known else { return }
    start = .known
    patience = 0
    var lowest = firstPending ?? min(0, finOffset ?? 0)
    // The peer's expectation counts only if it can be about this data: a little before it.
    if hasHint && lowest >= 0 && lowest <= 1 << 20 { lowest = 0 }
    moveBase(by: lowest)
  }

  /// Makes the stream begin `distance` bytes later, while nothing was delivered.
  mutating func moveBase(by distance: Int) {
    guard distance != 0 else { return }
    base = base.advanced(by: distance)
    for index in waiting.indices { waiting[index].offset -= distance }
    for index in cuts.indices { cuts[index] = cuts[index].lowerBound - distance..<cuts[index].upperBound - distance }
    if let offset = acknowledged { acknowledged = offset - distance }
    if let offset = finOffset { finOffset = max(0, offset - distance) }
  }
}
