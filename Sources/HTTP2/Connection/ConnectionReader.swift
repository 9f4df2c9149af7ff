import Bytes

/// Reads both directions of an HTTP/2 connection, as an observer: frames, field blocks, streams, settings and windows.
///
/// A plain value without I/O or clock. It takes the pieces of both directions as they were captured, with gaps, and calls
/// a handler in order. A rule that an endpoint breaks is reported, and reading goes on: what the RFC calls a connection
/// error ends a connection, but not what can be seen of it. Where frames may be missing, nothing is claimed that depends
/// on them: neither broken rules nor limits.
///
/// The states of one side of a stream, of which each stream has two (RFC 9113 section 5.1):
/// ```
///            HEADERS                 END_STREAM
///   idle ──────────────► open ─────────────────────► closed on this side
///                          └───── RST_STREAM ──────► closed on both
/// ```
///
/// Memory: the limits, each for one connection.
public struct ConnectionReader: Sendable {
  /// Limits on what the peers can make the reader keep.
  public struct Limits: Sendable, Equatable {
    /// Lengths of frames.
    public var frames = FrameReader.Limits()
    /// Sizes of the dynamic table and of a field section.
    public var fields = HPACKDecoder.Limits()
    /// The longest field block in bytes. A longer one is not decoded, and the table is lost.
    public var blockLength = 65_536
    /// The most CONTINUATION frames of a block. A block with more is not decoded, and the table is lost.
    public var continuations = 128
    /// The most streams that are open at once. Beyond it the oldest is forgotten.
    public var openStreams = 10_000
    /// The most SETTINGS frames that wait for their acknowledgement. Beyond it limits are no longer known.
    public var announcedSettings = 64

    /// The default limits.
    public init() {}
  }

  /// The limits.
  public let limits: Limits
  // Each is taken out while it is read, so that the rest of the value can change.
  var client: Direction?
  var server: Direction?
  var streams = StreamTable()
  /// The highest stream that the client opened.
  var highestClientStream: UInt32 = 0
  /// Streams that the client may have opened in what is lost: it passed over them.
  var missed = MissedStreams()
  /// Violations that are reported at the end of the connection, unless frames are missing by then.
  var suspected: [(violation: Violation, origin: FrameOrigin)] = []
  /// Whether a loss of table entries is told apart: a gap tells its own, and none matters at the end.
  var tellsTableLosses = true

  /// Makes the reader of a connection.
  ///
  /// - Parameters:
  ///   - isFromStart: whether the first bytes of both directions are the first of the connection. Otherwise frames are
  ///     searched, and fields of a table that was filled before are unknown.
  ///   - limits: what it keeps at most.
  public init(isFromStart: Bool = true, limits: Limits = Limits()) {
    self.limits = limits
    client = Direction(.client, isFromStart: isFromStart, limits)
    server = Direction(.server, isFromStart: isFromStart, limits)
  }

  // MARK: what is known

  /// The number of open streams.
  public var openStreams: Int { streams.count }

  /// The settings of a side that the other side has acknowledged, so that they are in force; `nil` if SETTINGS or an
  /// acknowledgement may be missing.
  public func settingsInForce(of side: FrameReader.Side) -> Settings? {
    if side == .client { return client?.areSettingsKnown == true ? client?.inForce : nil }
    return server?.areSettingsKnown == true ? server?.inForce : nil
  }

  /// The bytes of content that a side may still send before a WINDOW_UPDATE; `nil` if frames may be missing.
  public func connectionWindow(of side: FrameReader.Side) -> Int? {
    guard areBothIntact(nil) else { return nil }
    return (side == .client ? client : server).map { 65_535 - $0.windowUsed }
  }

  /// Whether every entry of the dynamic table that a side's fields refer to is known.
  public func isTableKnown(of side: FrameReader.Side) -> Bool {
    (side == .client ? client : server)?.decoder.isTableKnown ?? false
  }

  /// The bytes of memory that depend on input.
  public var heldBytes: Int { (client?.heldBytes ?? 0) + (server?.heldBytes ?? 0) + streams.heldBytes }

  /// Frees memory that is ready for what comes, of a connection that is idle. If no stream is open, slots are numbered
  /// from 0 again.
  public mutating func freeSpare() {
    client?.freeSpare()
    server?.freeSpare()
    streams.freeSlots()
  }

  // MARK: input

  /// Reads a piece of one direction.
  ///
  /// - Parameters:
  ///   - bytes: the next bytes of the direction.
  ///   - side: the sender.
  ///   - offset: the stream offset of the first byte.
  ///   - arrival: where the piece came from.
  ///   - startsRecord: whether a TLS record begins with the piece, and none that continues a full one.
  ///   - handler: receives what happens.
  public mutating func read(
    _ bytes: RawSpan, from side: FrameReader.Side, at offset: Int, arrival: Arrival, startsRecord: Bool = false,
    into handler: inout some ConnectionHandler
  ) {
    var position = 0
    while !read(bytes, &position, from: side, at: offset, arrival: arrival, startsRecord: startsRecord, into: &handler)
    {
    }
  }

  /// Reads on in a piece from `position`, 0 at first, until the handler is full; returns whether all of it was read.
  package mutating func read(
    _ bytes: RawSpan, _ position: inout Int, from side: FrameReader.Side, at offset: Int, arrival: Arrival,
    startsRecord: Bool, into handler: inout some ConnectionHandler
  ) -> Bool {
    guard var direction = take(side) else { return true }
    while true {
      let step = direction.reader.next(
        bytes, &position, at: offset, arrival: arrival, startsRecord: startsRecord)
      if case .done = step { break }
      if case .frame(let place) = step, !place.isKept {
        process(place, bytes.extracting(place.payload), &direction, &handler)
      } else {
        process(step, &direction, &handler)
      }
      if handler.isFull {
        putBack(direction)
        return false
      }
    }
    putBack(direction)
    return true
  }

  /// Notes that bytes of one direction are missing.
  ///
  /// - Parameters:
  ///   - side: the sender.
  ///   - offset: the stream offset of the first missing byte.
  ///   - length: the number of missing bytes.
  ///   - arrival: where the gap was noticed.
  ///   - handler: receives what happens.
  ///   - makeRoom: called when the handler is full.
  public mutating func gap<Handler: ConnectionHandler>(
    from side: FrameReader.Side, at offset: Int, length: Int, arrival: Arrival, into handler: inout Handler,
    makeRoom: (inout Handler) -> Void = { _ in }
  ) {
    guard var direction = take(side) else { return }
    let hadEntries = direction.decoder.isTableKnown || direction.decoder.knownEntries > 0
    let steps = direction.reader.gap(at: offset, length: length)
    tellsTableLosses = false
    for step in steps {
      if case .missing = step { continue }
      process(step, &direction, &handler)
      if handler.isFull { makeRoom(&handler) }
    }
    let losesFrames = steps.contains { if case .missing = $0 { true } else { false } }
    if losesFrames { lose(&direction, &handler) }
    tellsTableLosses = true
    handler.receive(
      missing: FrameOrigin(side: side, offset: offset, length: length, arrival: arrival),
      losesFrames: losesFrames, losesTable: losesFrames || hadEntries && direction.decoder.hasLostAll)
    putBack(direction)
  }

  /// Notes the end of one direction. The second one ends the connection, and all streams that are open.
  ///
  /// - Parameters:
  ///   - side: the sender.
  ///   - handler: receives what happens.
  ///   - makeRoom: called when the handler is full.
  public mutating func finish<Handler: ConnectionHandler>(
    _ side: FrameReader.Side, into handler: inout Handler, makeRoom: (inout Handler) -> Void = { _ in }
  ) {
    guard var direction = take(side) else { return }
    if !direction.hasEnded {
      tellsTableLosses = false
      for step in direction.reader.finish() {
        process(step, &direction, &handler)
        if handler.isFull { makeRoom(&handler) }
      }
      endPendingBlock(&direction, &handler)
      tellsTableLosses = true
      direction.hasEnded = true
    }
    putBack(direction)
    guard client?.hasEnded ?? true, server?.hasEnded ?? true else { return }
    if areBothIntact(nil) { for (violation, origin) in suspected { handler.receive(violation, origin) } }
    suspected = []
    closeAll(.connectionEnd, &handler, makeRoom)
  }

  private mutating func closeAll<Handler: ConnectionHandler>(
    _ reason: StreamEnd, _ handler: inout Handler, _ makeRoom: (inout Handler) -> Void
  ) {
    for slot in streams.inOrder() {
      close(slot, reason, &handler)
      if handler.isFull { makeRoom(&handler) }
    }
  }

  /// Gives up frames and field blocks that have begun, and all open streams. What follows is read as after a gap.
  ///
  /// - Parameters:
  ///   - offsets: the stream offsets of the next bytes of both directions.
  ///   - arrival: where it was given up.
  ///   - handler: receives what happens.
  ///   - makeRoom: called when the handler is full.
  public mutating func drop<Handler: ConnectionHandler>(
    at offsets: (client: Int, server: Int), arrival: Arrival, into handler: inout Handler,
    makeRoom: (inout Handler) -> Void = { _ in }
  ) {
    for (side, offset) in [(FrameReader.Side.client, offsets.client), (.server, offsets.server)] {
      gap(from: side, at: offset, length: 0, arrival: arrival, into: &handler, makeRoom: makeRoom)
    }
    closeAll(.limit, &handler, makeRoom)
    freeSpare()
  }

  mutating func take(_ side: FrameReader.Side) -> Direction? {
    side == .client ? client.take() : server.take()
  }

  mutating func putBack(_ direction: consuming Direction) {
    if direction.side == .client { client = direction } else { server = direction }
  }

  // MARK: steps

  mutating func process(
    _ step: FrameReader.Step, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    switch step {
    case .frame(let place):
      // The reader's bytes do not change while the frame is read, but the rest of the direction does.
      let kept = direction.reader.lendKept()
      process(place, kept.rawBytes.extracting(place.payload), &direction, &handler)
      direction.reader.takeBack(kept)
    case .preface:
      // The recording begins with the connection after all: only packets without data precede.
      guard direction.losses == 1 else { return }
      direction.losses = 0
      direction.decoder = HPACKDecoder(limits: limits.fields)
    case .unread(let cause, let offset, let length, let arrival):
      let origin = FrameOrigin(side: direction.side, offset: offset, length: length, arrival: arrival)
      if cause == .notHTTP2, direction.isIntact {
        direction.losses += 1
        handler.receive(Violation(.connectionPreface), origin)
      }
      handler.receive(unread: cause, origin)
    case .missing, .done: break
    }
  }

  /// Notes that frames of a direction may be missing.
  mutating func lose(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    endPendingBlock(&direction, &handler)
    direction.losses += 1
    direction.decoder.lose()
    loseSettings(&direction, &handler)
  }

  /// SETTINGS of this side, and its acknowledgements of the other's, may be missing.
  mutating func loseSettings(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    direction.missSettings()
    if direction.side == .client { server?.missSettings() } else { client?.missSettings() }
    handler.receiveLossOfSettings()
  }

  // MARK: claims that depend on both directions

  /// Whether every frame of both directions was read; `direction` is the one that is being read.
  func areBothIntact(_ direction: Direction?) -> Bool {
    (client?.isIntact ?? direction?.isIntact ?? false) && (server?.isIntact ?? direction?.isIntact ?? false)
  }

  /// Notes a violation that is none if frames of the other direction turn out to be missing: a direction with a gap is
  /// read later than the other.
  mutating func suspect(_ violation: Violation, _ origin: FrameOrigin) {
    guard suspected.count < Self.mostSuspected else { return }
    suspected.append((violation, origin))
  }

  static let mostSuspected = 64
}
