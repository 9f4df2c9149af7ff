import Bytes

/// Cuts one direction of a connection into frames, and finds the next frame after a gap.
///
/// It receives the pieces of the stream in order, and the lengths of gaps. While boundaries are known, a frame is a range
/// of the borrowed piece; only one that is spread over several pieces is copied. A gap within a frame ends that frame
/// and no other: its header tells where the next one begins. When frames may be missing entirely, the reader searches:
/// it takes the first byte of a TLS record for a frame if that has a plausible header, and elsewhere two plausible frames
/// in a row.
///
/// ```
///            piece          gap within a frame       rest skipped
/// preface ─► aligned ──────────────────────► skipping ───────────► aligned
///               │  gap over a frame's beginning                        ▲
///               └────────────────────────────────► searching ──────────┘
/// ```
///
/// Memory: the longest frame that is kept, and in a search the longest frame that it believes.
public struct FrameReader: Sendable {
  /// Lengths above which payloads are not kept, in bytes.
  public struct Limits: Sendable, Equatable {
    /// The longest payload that is read; longer frames are named and skipped.
    public var longestPayload = 1 << 20
    /// The longest payload that a search believes. Frames that are longer are not found again after a gap.
    public var longestSearchedPayload = 65_535

    /// The default limits.
    public init() {}
  }

  /// The direction of a stream.
  public enum Side: Sendable, Hashable {
    case client, server
  }

  /// A frame in the stream.
  public struct Place: Sendable, Equatable {
    /// The header.
    public var header: FrameHeader
    /// The range of the payload in the piece or, if `isKept`, in `kept`. Shorter than the header says if `isWhole` is
    /// false.
    public var payload: Range<Int>
    /// Whether the payload is in `kept`, because the frame came in several pieces.
    public var isKept: Bool
    /// Whether the whole payload is there. Otherwise its rest was lost, or is longer than the limit.
    public var isWhole: Bool
    /// The stream offset of the header.
    public var offset: Int
    /// The arrival of the last byte that is there.
    public var arrival: Arrival
  }

  /// The reason why bytes are not read.
  public enum UnreadCause: Sendable, Equatable {
    /// They end a frame that began before the recording.
    case beforeStart
    /// They are behind a gap, before the first frame that was found again.
    case afterGap
    /// They begin a frame whose header is cut off.
    case cut
    /// A connection begins with them, and they are not HTTP/2.
    case notHTTP2
  }

  /// The next step in the stream.
  public enum Step: Sendable, Equatable {
    /// The client's preface ends here: nothing precedes the following frame.
    case preface
    case frame(Place)
    /// Bytes that are there and belong to no frame that can be read.
    case unread(UnreadCause, offset: Int, length: Int, Arrival)
    /// Bytes that are missing, and may contain any number of frames.
    case missing(offset: Int, length: Int)
    /// Everything is read or kept.
    case done
  }

  enum State: Sendable, Equatable {
    case preface
    case aligned
    /// The rest of a frame that was named already ends at this stream offset.
    case skipping(until: Int)
    case searching(UnreadCause)
    case opaque
  }

  /// The limits.
  public let limits: Limits
  /// The longest payload that the receiver allows, in bytes: its SETTINGS_MAX_FRAME_SIZE.
  public var maximumFrameSize = 16_384
  /// The highest stream of either direction. A search does not believe streams far above it.
  public var highestStream: UInt32 = 0

  let side: Side
  private(set) var state: State
  /// Bytes not explained yet, the first of them at `keptStart` in the stream.
  var keptBytes: [UInt8] = []
  var keptStart = 0
  /// The first byte in `keptBytes` that belongs to no frame returned so far.
  var cursor = 0
  private var arrivals: [(end: Int, arrival: Arrival)] = []
  /// How far above the highest stream a plausible one may be; grows with the bytes that are missing.
  var streamSlack: UInt32
  /// Bytes before `keptStart` that a search has given up and not yet reported.
  private var unreadBefore = 0
  /// The arrival of the last of these.
  private var unreadArrival = Arrival(time: 0, packet: 0)
  /// `keptBytes` are of steps that `gap` returned, and are dropped at the next call.
  private var isSpent = false

  /// Makes a reader for a direction of which nothing was read.
  ///
  /// - Parameters:
  ///   - side: the sender. The client's direction begins with the preface.
  ///   - isAligned: whether the first byte is the first of the connection. Otherwise the reader searches for a frame.
  ///   - limits: lengths above which payloads are not kept.
  public init(_ side: Side, isAligned: Bool, limits: Limits = Limits()) {
    self.side = side
    self.limits = limits
    state = !isAligned ? .searching(.beforeStart) : side == .client ? .preface : .aligned
    streamSlack = isAligned ? 4_096 : 0x7fff_ffff
  }

  /// The bytes in which payloads with `isKept` are, until the next call.
  public var kept: RawSpan {
    @_lifetime(borrow self)
    get { keptBytes.rawBytes }
  }

  /// Lends `keptBytes`, so that the reader's owner can change while they are read; `takeBack` is to follow.
  mutating func lendKept() -> [UInt8] {
    var lent: [UInt8] = []
    swap(&lent, &keptBytes)
    return lent
  }

  mutating func takeBack(_ kept: consuming [UInt8]) { keptBytes = kept }

  /// The bytes that it holds until more arrive.
  public var heldBytes: Int { keptBytes.count + arrivals.count * MemoryLayout<(Int, Arrival)>.stride }

  /// Frees memory that is ready for the next frame.
  mutating func freeSpare() {
    guard keptBytes.isEmpty || isSpent || cursor == keptBytes.count && isAligned else { return }
    keptStart += keptBytes.count
    (keptBytes, arrivals, cursor, isSpent) = ([], [], 0, false)
  }

  /// Whether the boundaries of frames are known.
  public var isAligned: Bool {
    switch state {
    case .preface, .aligned, .skipping: true
    case .searching, .opaque: false
    }
  }

  /// The next step in a piece from `position`, which moves past it; to be called until it returns `.done`.
  ///
  /// - Parameters:
  ///   - bytes: a piece of the stream, the same until `.done`.
  ///   - position: the offset in `bytes`, 0 at first.
  ///   - offset: the stream offset of the first byte of `bytes`.
  ///   - arrival: where the piece came from.
  ///   - startsRecord: whether a TLS record begins with the piece, and none that continues a full one.
  /// - Complexity: O(1) for each frame; a search looks at each byte once.
  public mutating func next(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, arrival: Arrival, startsRecord: Bool = false
  ) -> Step {
    dropSpent()
    while true {
      switch state {
      case .aligned:
        guard cursor == keptBytes.count else { return nextKept(bytes, &position, offset, arrival) }
        let available = bytes.byteCount - position
        guard available > 0 else { return .done }
        if available >= FrameHeader.length {
          let header = FrameHeader(bytes, at: position)
          let end = position + header.frameLength
          if end <= bytes.byteCount, header.payloadLength <= limits.longestPayload {
            let payload = position + FrameHeader.length..<end
            let start = offset + position
            position = end
            note(header)
            return .frame(
              Place(
                header: header, payload: payload, isKept: false, isWhole: true, offset: start, arrival: arrival))
          }
        }
        forgetKept(at: offset + position)
        return nextKept(bytes, &position, offset, arrival)
      case .skipping(let end):
        position = max(position, min(end - offset, bytes.byteCount))
        guard position < bytes.byteCount || offset + position == end else { return .done }
        state = .aligned
      case .preface:
        if keptBytes.isEmpty { forgetKept(at: offset + position) }
        keep(bytes, &position, ByteWriter.http2Preface.count - keptBytes.count, offset, arrival)
        guard ByteWriter.http2Preface.starts(with: keptBytes) else {
          state = .opaque
          let step = Step.unread(.notHTTP2, offset: keptStart, length: keptBytes.count, arrival)
          forgetKept(at: keptStart + keptBytes.count)
          return step
        }
        guard keptBytes.count == ByteWriter.http2Preface.count else { return .done }
        forgetKept(at: offset + position)
        state = .aligned
        return .preface
      case .searching(let cause):
        if keptBytes.isEmpty { keptStart = offset + position }
        guard position < bytes.byteCount || cursor < keptBytes.count else { return .done }
        let edge = position == 0 && startsRecord ? keptBytes.count : nil
        let hasMore = position < bytes.byteCount
        keep(bytes, &position, bytes.byteCount - position, offset, arrival)
        guard hasMore, let step = found(cause, edge: edge, atEnd: false) else { return .done }
        if let step = step { return step }
      case .opaque:
        guard position < bytes.byteCount else { return .done }
        let step = Step.unread(.notHTTP2, offset: offset + position, length: bytes.byteCount - position, arrival)
        position = bytes.byteCount
        return step
      }
    }
  }

  /// Notes that bytes are missing.
  ///
  /// - Parameters:
  ///   - offset: the stream offset of the first missing byte.
  ///   - length: the number of missing bytes.
  /// - Returns: the steps for bytes that were kept, then the gap, unless it ends within the frame in which it begins.
  public mutating func gap(at offset: Int, length: Int) -> [Step] {
    dropSpent()
    var steps = closed()
    let end = offset + length
    switch state {
    case .skipping(let next) where end < next: return steps
    case .skipping(let next) where end == next:
      state = .aligned
      return steps
    case .opaque: return steps
    default: break
    }
    state = .searching(.afterGap)
    streamSlack = UInt32(clamping: UInt64(streamSlack) + UInt64(length / FrameHeader.length) + 4_096)
    isSpent = true
    steps.append(.missing(offset: offset, length: length))
    return steps
  }

  /// Notes the end of the stream.
  ///
  /// - Returns: the steps for bytes that were kept.
  public mutating func finish() -> [Step] {
    dropSpent()
    let steps = closed()
    if case .skipping = state { state = .aligned }
    return steps
  }

  // MARK: kept bytes

  /// The frame that begins in `keptBytes`, completed from the piece.
  private mutating func nextKept(_ bytes: RawSpan, _ position: inout Int, _ offset: Int, _ arrival: Arrival) -> Step {
    dropReturned()
    keep(bytes, &position, FrameHeader.length - keptBytes.count, offset, arrival)
    guard keptBytes.count >= FrameHeader.length else { return .done }
    let header = FrameHeader(keptBytes.rawBytes, at: 0)
    guard header.payloadLength <= limits.longestPayload else {
      note(header)
      let place = Place(
        header: header, payload: 0..<0, isKept: true, isWhole: false, offset: keptStart, arrival: arrival)
      // A search may have kept all of it, and what follows.
      if keptBytes.count >= header.frameLength {
        cursor = header.frameLength
      } else {
        state = .skipping(until: keptStart + header.frameLength)
        forgetKept(at: keptStart + keptBytes.count)
      }
      return .frame(place)
    }
    keep(bytes, &position, header.frameLength - keptBytes.count, offset, arrival)
    guard keptBytes.count >= header.frameLength else { return .done }
    return .frame(takeFrame(header, isWhole: true))
  }

  /// The frame at `cursor`, which moves behind it; its bytes stay until the next call.
  private mutating func takeFrame(_ header: FrameHeader, isWhole: Bool) -> Place {
    note(header)
    let end = isWhole ? cursor + header.frameLength : keptBytes.count
    let arrival = arrivals.first { $0.end >= keptStart + end }?.arrival
    defer { cursor = end }
    return Place(
      header: header, payload: cursor + FrameHeader.length..<end, isKept: true, isWhole: isWhole,
      offset: keptStart + cursor, arrival: arrival ?? lastArrival)
  }

  private var lastArrival: Arrival { arrivals.last?.arrival ?? Arrival(time: 0, packet: 0) }

  /// Removes bytes whose frames were returned.
  private mutating func dropReturned() {
    guard cursor > 0 else { return }
    keptBytes.removeFirst(cursor)
    keptStart += cursor
    cursor = 0
    if let first = arrivals.firstIndex(where: { $0.end > keptStart }) {
      arrivals.removeFirst(first)
    } else {
      arrivals.removeAll(keepingCapacity: true)
    }
  }

  private mutating func dropSpent() {
    guard isSpent else { return }
    isSpent = false
    forgetKept(at: keptStart + keptBytes.count)
  }

  private mutating func forgetKept(at offset: Int) {
    keptBytes.removeAll(keepingCapacity: keptBytes.capacity <= 1 << 16)
    arrivals.removeAll(keepingCapacity: true)
    cursor = 0
    keptStart = offset
  }

  /// Appends up to `count` bytes of the piece.
  private mutating func keep(
    _ bytes: RawSpan, _ position: inout Int, _ count: Int, _ offset: Int, _ arrival: Arrival
  ) {
    let taken = min(count, bytes.byteCount - position)
    guard taken > 0 else { return }
    keptBytes.append(copying: bytes.extracting(position..<position + taken))
    position += taken
    if let last = arrivals.indices.last, arrivals[last].arrival == arrival {
      arrivals[last].end = offset + position
    } else {
      arrivals.append((offset + position, arrival))
    }
  }

  private mutating func note(_ header: FrameHeader) {
    guard header.stream > highestStream else { return }
    highestStream = header.stream
  }

  // MARK: ends

  /// The steps for kept bytes when no more follow directly; the state is then that at a boundary, in a frame to skip, or
  /// of a search.
  private mutating func closed() -> [Step] {
    var steps: [Step] = []
    search: while true {
      switch state {
      case .searching(let cause):
        guard cursor < keptBytes.count || unreadBefore > 0 else { break search }
        guard let step = found(cause, edge: nil, atEnd: true) else { break search }
        if let step { steps.append(step) }
        guard isAligned else { break search }
      case .aligned:
        guard cursor < keptBytes.count else { break search }
        // Every step has its own bytes, so none may be dropped before the caller has seen them all.
        let rest = keptBytes.count - cursor
        let start = keptStart + cursor
        guard rest >= FrameHeader.length else {
          steps.append(.unread(.cut, offset: start, length: rest, lastArrival))
          cursor = keptBytes.count
          break search
        }
        let header = FrameHeader(keptBytes.rawBytes, at: cursor)
        let isWhole = header.frameLength <= rest
        steps.append(.frame(takeFrame(header, isWhole: isWhole)))
        if !isWhole { state = .skipping(until: start + header.frameLength) }
      case .preface:
        if !keptBytes.isEmpty {
          steps.append(.unread(.cut, offset: keptStart, length: keptBytes.count, lastArrival))
          cursor = keptBytes.count
        }
        break search
      case .skipping, .opaque: break search
      }
    }
    return steps
  }

  // MARK: searching

  /// Searches `keptBytes`. `nil`: nothing is found; `.some(nil)`: a frame begins with the first of them, and nothing is
  /// to be reported; otherwise what is to be reported first.
  private mutating func found(_ cause: UnreadCause, edge: Int?, atEnd: Bool) -> Step?? {
    let arrival = arrivals.last?.arrival ?? unreadArrival
    if cause == .beforeStart, side == .client, unreadBefore == 0, keptBytes.starts(with: ByteWriter.http2Preface) {
      // The recording lacks only the connection's first packets, which have no data.
      cursor = ByteWriter.http2Preface.count
      dropReturned()
      state = .aligned
      streamSlack = 4_096
      return .preface
    }
    var place: Int?
    if let edge, isPlausible(at: edge), isNextPlausible(after: edge) { place = edge } else { place = search(atEnd) }
    guard let place else {
      guard atEnd || cursor == keptBytes.count || cursor >= 4_096 else { return nil }
      if atEnd { cursor = keptBytes.count }
      unreadBefore += cursor
      unreadArrival = arrival
      let end = keptStart + cursor
      dropReturned()
      guard atEnd, unreadBefore > 0 else { return nil }
      let length = unreadBefore
      unreadBefore = 0
      return .unread(cause, offset: end - length, length: length, arrival)
    }
    let length = unreadBefore + place
    let start = keptStart + place - length
    cursor = place
    dropReturned()
    unreadBefore = 0
    state = .aligned
    streamSlack = 4_096
    return length > 0 ? .unread(cause, offset: start, length: length, arrival) : .some(nil)
  }
}
