import Bytes
import HTTP2

/// The server's side of one HTTP/2 connection (RFC 9113): requests in, answers out.
///
/// A value without sockets and clock: bytes of the client go in, events come out one at a time, and what is to be sent
/// collects in `output`.
///
/// ```swift
/// var offset = 0
/// while let event = session.next(bytes, &offset, second: now) {
///   if case .ended(let stream, _, _) = event { session.answer(stream.slot, status: 200) { $0.writeField("apns-id", id) } }
/// }
/// // bytes from `offset` on are the beginning of a frame; session.output is to be sent
/// ```
///
/// Every rule that a client can break is one of `Rule`; what the RFC prescribes is written to the output, and reported.
///
/// Memory: `ServerOptions`, and the output, which whoever drives the session bounds by not reading while it is not sent.
public struct ServerSession: ~Copyable {
  enum State: Sendable, Equatable {
    case preface
    /// The client's first frame has to be SETTINGS.
    case firstFrame
    case open
    /// The connection has failed: nothing else is read.
    case failed
  }

  struct PendingBlock: Sendable {
    var stream: UInt32
    var endsStream: Bool
    var frames = 0
  }

  public let options: ServerOptions
  /// Bytes to be sent, in order. Whoever sends them removes them. It has room for SETTINGS at first: many connections idle.
  public var output = ByteWriter(capacity: 64)
  /// The fields of the latest `began` or `refused`.
  public internal(set) var fields = FieldList()
  public internal(set) var counts = ServerCounts()

  var state = State.preface
  var decoder: HPACKDecoder
  var streams = ServerStreams()
  /// The field block whose last frame has not come, and its bytes so far.
  var pending: PendingBlock?
  var block: [UInt8] = []
  var queued: ServerEvent?
  /// The highest stream of the client.
  var highest: UInt32 = 0
  /// Streams above are not processed; `nil` without a GOAWAY.
  var lastProcessed: UInt32?
  /// The client's settings.
  var peer = Settings()
  /// Limits on streams: those in force, `nil` before the client has acknowledged any, and those that it has not
  /// acknowledged yet.
  var streamLimit: Int?
  var unacknowledged: [Int?] = []
  /// Bytes of DATA on the connection that no WINDOW_UPDATE has given back.
  var windowUsed = 0
  /// Bytes of DATA that the client allows on the connection.
  var sendWindow = 65_535
  /// Streams whose answer waits for a window.
  var blocked = 0
  /// The bytes of answers that wait for a window.
  public internal(set) var unsentBytes = 0
  /// Streams whose answer waits for the connection's window, in the order in which they began to wait; those before
  /// `firstWaiting` do no more, and others may be closed.
  var waiting: [UInt32] = []
  var firstWaiting = 0
  /// The table's size that the client allows, if the next field block has to say so.
  var owedTableSize: Int?
  /// Whether WINDOW_UPDATE frames are sent.
  public var opensWindows: Bool
  var floods: FloodsLeft
  var second: Int64 = 0

  struct FloodsLeft: Sendable {
    var resets: AllowanceLeft
    var settings: AllowanceLeft
    var pings: AllowanceLeft
    var emptyFrames: AllowanceLeft
    var windowUpdates: AllowanceLeft
    var ignoredFrames: AllowanceLeft

    init(_ limits: FloodLimits) {
      resets = AllowanceLeft(limits.resets)
      settings = AllowanceLeft(limits.settings)
      pings = AllowanceLeft(limits.pings)
      emptyFrames = AllowanceLeft(limits.emptyFrames)
      windowUpdates = AllowanceLeft(limits.windowUpdates)
      ignoredFrames = AllowanceLeft(limits.ignoredFrames)
    }
  }

  /// The window of a connection at its beginning, which SETTINGS do not change (RFC 9113 section 6.9.2).
  static let connectionWindow = 65_535
  /// The largest window.
  static let largestWindow = 0x7fff_ffff

  /// Makes the session of a connection that was accepted. Its SETTINGS are in the output.
  public init(_ options: ServerOptions = ServerOptions()) {
    self.options = options
    opensWindows = options.opensWindows
    floods = FloodsLeft(options.floods)
    var limits = HPACKDecoder.Limits()
    limits.tableSize = 4_096
    limits.listSize = options.maximumFieldList
    decoder = HPACKDecoder(limits: limits)
    var settings: [Setting] = []
    if let limit = options.streamLimit {
      settings.append(Setting(.maximumConcurrentStreams, UInt32(clamping: limit)))
    }
    settings.append(Setting(.initialWindowSize, UInt32(clamping: options.streamWindow)))
    if let size = options.announcedFieldListSize {
      settings.append(Setting(.maximumHeaderListSize, UInt32(clamping: size)))
    }
    output.writeSettings(settings)
    unacknowledged.append(options.streamLimit)
  }

  // MARK: what is known

  /// Open streams.
  public var openStreams: Int { streams.count }
  /// The bytes of content and of field blocks that wait for their end, and of answers that wait for a window.
  public var heldBytes: Int { streams.keptBytes + unsentBytes + (pending == nil ? 0 : block.count) }
  /// The slots of open streams, in the order of the streams. O(n log n).
  public var openSlots: [Int] { streams.inOrder() }
  /// Whether the connection has failed: what is in the output is the last.
  public var hasFailed: Bool { state == .failed }
  /// Whether GOAWAY was sent and no stream is open.
  public var isDrained: Bool { hasFailed || lastProcessed != nil && streams.count == 0 }
  /// Whether GOAWAY was sent.
  public var hasSaidGoAway: Bool { lastProcessed != nil || hasFailed }
  /// The highest stream that the client has opened.
  public var highestStream: UInt32 { highest }
  /// Whether a request, or a frame, has begun and not ended.
  public var isWithinRequest: Bool { pending != nil || streams.count > 0 }
  /// Whether the client has begun a request, or a field block, and not ended it. O(n) in open streams.
  public var hasUnfinishedRequest: Bool { pending != nil || streams.hasOpenClient }
  /// The number of the stream in a slot; 0 if the slot is free.
  public func stream(of slot: Int) -> UInt32 { slot < streams.slots.count ? streams[slot].number : 0 }

  // MARK: input

  /// Reads up to the next event.
  ///
  /// - Parameters:
  ///   - bytes: what the client sent, from the first byte on that was not read.
  ///   - offset: the bytes that were read; moves past each whole frame.
  ///   - second: the seconds of any clock.
  /// - Returns: what happened; `nil` when no whole frame is left.
  public mutating func next(_ bytes: RawSpan, _ offset: inout Int, second: Int64) -> ServerEvent? {
    if let event = queued {
      queued = nil
      return event
    }
    self.second = second
    if state == .preface {
      guard let event = readPreface(bytes, &offset) else { return nil }
      if let event { return event }
    }
    while state != .failed, bytes.byteCount - offset >= FrameHeader.length {
      let header = FrameHeader(bytes, at: offset)
      guard header.payloadLength <= 16_384 else {
        // It may be of any type: the connection ends, as section 4.2 allows.
        return fail(Violation(.fieldFrameTooLong, stream: header.stream))
      }
      guard bytes.byteCount - offset >= header.frameLength else { return nil }
      let start = offset + FrameHeader.length
      offset += header.frameLength
      if let event = take(header, bytes.extracting(start..<offset), at: start) { return event }
    }
    if state == .failed { offset = bytes.byteCount }
    return nil
  }

  /// The preface; `nil` when it is not complete, `.some(nil)` when it is.
  private mutating func readPreface(_ bytes: RawSpan, _ offset: inout Int) -> ServerEvent?? {
    let preface = ByteWriter.http2Preface
    let count = min(preface.count, bytes.byteCount - offset)
    guard bytes.extracting(offset..<offset + count).elementsEqual(preface.rawBytes.extracting(0..<count)) else {
      offset = bytes.byteCount
      return fail(Violation(.connectionPreface))
    }
    guard count == preface.count else { return nil }
    offset += count
    state = .firstFrame
    return .some(nil)
  }

  /// The content of a request that is not in the bytes that were given to `next`. To be called once.
  public mutating func takeContent(_ slot: Int) -> [UInt8] {
    streams.takeContent(slot)
  }

  // MARK: the session's own frames

  /// Announces another limit on open streams, which holds once the client has acknowledged it.
  public mutating func setStreamLimit(_ limit: Int) {
    guard state != .failed else { return }
    output.writeSettings([Setting(.maximumConcurrentStreams, UInt32(clamping: limit))])
    unacknowledged.append(limit)
  }

  /// Sends GOAWAY: streams above `lastStream` are not processed from here on. A later call may lower it, and never raises
  /// it (RFC 9113 section 6.8).
  ///
  /// - Parameters:
  ///   - lastStream: the highest stream that is or will be processed; 2³¹−1 says that more may come.
  ///   - code: the error code.
  ///   - debugData: text for the client.
  public mutating func goAway(lastStream: UInt32, _ code: ErrorCode = .noError, debugData: [UInt8] = []) {
    guard state != .failed else { return }
    output.writeGoAway(lastStream: min(lastStream, lastProcessed ?? .max), code, debugData: debugData)
    counts.goAways += 1
    if lastStream < 0x7fff_ffff { lastProcessed = min(lastProcessed ?? .max, lastStream) }
  }

  /// Resets an open stream.
  public mutating func reset(_ slot: Int, _ code: ErrorCode) {
    guard state != .failed else { return }
    writeReset(streams[slot].number, code)
    close(slot, isReset: true)
  }

  /// Closes an open stream without a frame: what its client still sends on it is ignored. For faults, and for streams that
  /// a GOAWAY has excluded.
  public mutating func forget(_ slot: Int) {
    guard state != .failed else { return }
    close(slot, isReset: true)
  }

  /// Frees memory that is ready for what comes, of a connection that is idle.
  public mutating func freeSpare() {
    streams.freeSpare()
    fields = FieldList()
    if pending == nil { block = [] }
    if output.count == 0 { output = ByteWriter(capacity: 64) }
    if blocked == 0 { (waiting, firstWaiting) = ([], 0) }
  }

  // MARK: ends

  mutating func writeReset(_ stream: UInt32, _ code: ErrorCode) {
    output.writeReset(code, stream: stream)
    counts.resetsSent += 1
  }

  mutating func close(_ slot: Int, isReset: Bool = false) {
    if !streams[slot].unsent.isEmpty { blocked -= 1 }
    unsentBytes -= streams[slot].unsent.count
    streams.close(slot, isReset: isReset)
    // Closed streams stay in line until it is their turn, unless they are most of it.
    if waiting.count - firstWaiting > 2 * streams.count + 1_024 {
      waiting = waiting[firstWaiting...].filter { streams.slot(of: $0) != nil }
      firstWaiting = 0
    }
  }

  /// Ends the connection for a broken rule.
  mutating func fail(_ violation: Violation) -> ServerEvent {
    fail(violation.code, "\(violation.rule)", .violation(violation))
  }

  mutating func fail(_ flood: Flood) -> ServerEvent {
    fail(.enhanceYourCalm, "too many \(flood.rawValue.replacing("_", with: " "))", .flood(flood))
  }

  private mutating func fail(_ code: ErrorCode, _ words: String, _ failure: ConnectionFailure) -> ServerEvent {
    output.writeGoAway(lastStream: min(highest, lastProcessed ?? .max), code, debugData: Array(words.utf8))
    counts.goAways += 1
    state = .failed
    return .failed(failure)
  }

  /// Resets a stream on which a rule was broken. The client has opened it, or may have.
  mutating func fail(_ rule: Rule, onStream number: UInt32) -> ServerEvent {
    writeReset(number, rule.entryCode)
    guard let slot = streams.slot(of: number) else {
      streams.noteReset(number)
      return .violated(Violation(rule, stream: number))
    }
    close(slot, isReset: true)
    return .abandoned(ServerStream(number: number, slot: slot), rule.entryCode, by: .violation(rule))
  }
}

extension Rule {
  /// The error code that the RFC prescribes.
  var entryCode: ErrorCode { Violation(self).code }
}

/// Counts of frames that a session has sent or received.
public struct ServerCounts: Sendable, Equatable {
  public var goAways = 0
  public var resetsSent = 0
  public var resetsReceived = 0
  public var pings = 0
  public var windowUpdatesSent = 0

  public init() {}
}
