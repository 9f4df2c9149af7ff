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
  private var client: Direction?
  private var server: Direction?
  private var streams = StreamTable()
  /// The highest stream that the client opened.
  private var highestClientStream: UInt32 = 0
  /// Streams that the client may have opened in what is lost: it passed over them.
  private var missed = MissedStreams()
  /// Violations that are reported at the end of the connection, unless frames are missing by then.
  private var suspected: [(violation: Violation, origin: FrameOrigin)] = []
  /// Whether a loss of table entries is told apart: a gap tells its own, and none matters at the end.
  private var tellsTableLosses = true

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
  public mutating func gap(
    from side: FrameReader.Side, at offset: Int, length: Int, arrival: Arrival,
    into handler: inout some ConnectionHandler
  ) {
    guard var direction = take(side) else { return }
    let hadEntries = direction.decoder.isTableKnown || direction.decoder.knownEntries > 0
    let steps = direction.reader.gap(at: offset, length: length)
    tellsTableLosses = false
    for step in steps {
      if case .missing = step { continue }
      process(step, &direction, &handler)
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
  public mutating func finish(_ side: FrameReader.Side, into handler: inout some ConnectionHandler) {
    guard var direction = take(side) else { return }
    if !direction.hasEnded {
      tellsTableLosses = false
      for step in direction.reader.finish() { process(step, &direction, &handler) }
      endPendingBlock(&direction, &handler)
      tellsTableLosses = true
      direction.hasEnded = true
    }
    putBack(direction)
    guard client?.hasEnded ?? true, server?.hasEnded ?? true else { return }
    if areBothIntact(nil) { for (violation, origin) in suspected { handler.receive(violation, origin) } }
    suspected = []
    for slot in streams.inOrder() { close(slot, .connectionEnd, &handler) }
  }

  /// Gives up frames and field blocks that have begun, and all open streams. What follows is read as after a gap.
  ///
  /// - Parameters:
  ///   - offsets: the stream offsets of the next bytes of both directions.
  ///   - arrival: where it was given up.
  ///   - handler: receives what happens.
  public mutating func drop(
    at offsets: (client: Int, server: Int), arrival: Arrival, into handler: inout some ConnectionHandler
  ) {
    for (side, offset) in [(FrameReader.Side.client, offsets.client), (.server, offsets.server)] {
      gap(from: side, at: offset, length: 0, arrival: arrival, into: &handler)
    }
    for slot in streams.inOrder() { close(slot, .limit, &handler) }
    freeSpare()
  }

  private mutating func take(_ side: FrameReader.Side) -> Direction? {
    side == .client ? client.take() : server.take()
  }

  private mutating func putBack(_ direction: consuming Direction) {
    if direction.side == .client { client = direction } else { server = direction }
  }

  // MARK: steps

  private mutating func process(
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
  private mutating func lose(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    endPendingBlock(&direction, &handler)
    direction.losses += 1
    direction.decoder.lose()
    loseSettings(&direction, &handler)
  }

  /// SETTINGS of this side, and its acknowledgements of the other's, may be missing.
  private mutating func loseSettings(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    direction.missSettings()
    if direction.side == .client { server?.missSettings() } else { client?.missSettings() }
    handler.receiveLossOfSettings()
  }

  // MARK: frames

  private mutating func process(
    _ place: FrameReader.Place, _ payload: RawSpan, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let header = place.header
    let origin = FrameOrigin(
      side: direction.side, offset: place.offset, length: header.frameLength, arrival: place.arrival)
    if !direction.hasFrames {
      direction.hasFrames = true
      if direction.isIntact, header.type != .settings || header.flags.contains(.acknowledgement) {
        handler.receive(Violation(.firstFrame), origin)
      }
    }
    if let pending = direction.pending, header.type != .continuation || header.stream != pending.stream {
      if direction.isIntact { handler.receive(Violation(.blockInterrupted, stream: header.stream), origin) }
      endPendingBlock(&direction, &handler)
      loseTable(&direction, &handler)
    }
    if let limit = direction.allowed?.payload, header.payloadLength > limit {
      // On an idle stream there is no stream error.
      let isConnection =
        header.stream == 0 || header.type.carriesFields
        || direction.side == .client && header.stream > highestClientStream
      handler.receive(
        Violation(isConnection ? .fieldFrameTooLong : .frameTooLong, stream: header.stream), origin)
    }
    guard place.isWhole else { return processCut(header, payload, origin, &direction, &handler) }
    let content: FrameContent
    do throws(Violation) {
      content = try FrameContent(parsing: payload, of: header)
    } catch {
      handler.receive(error, origin)
      if header.type.carriesFields { loseBlock(header, origin, &direction, &handler) }
      return
    }
    switch content {
    case .data(let range):
      receive(payload.extracting(range), isWhole: true, header, origin, &direction, &handler)
    case .headers(let block, _):
      begin(payload.extracting(block), header, isPromise: false, origin, &direction, &handler)
    case .pushPromise(_, let block):
      if direction.side == .client {
        handler.receive(Violation(.pushPromiseFromClient), origin)
      } else if client?.areSettingsKnown == true, client?.inForce.isPushEnabled == false {
        handler.receive(Violation(.pushPromiseDisabled), origin)
      }
      begin(payload.extracting(block), header, isPromise: true, origin, &direction, &handler)
    case .continuation(let block):
      resume(payload.extracting(block), header, origin, &direction, &handler)
    case .reset(let code): receiveReset(code, header, origin, &direction, &handler)
    case .settings(let isAcknowledgement):
      if isAcknowledgement {
        receiveAcknowledgement(origin, &direction, &handler)
      } else {
        receive(Setting.list(payload), origin, &direction, &handler)
      }
    case .ping(let data, let isAcknowledgement):
      handler.receive(ping: data, isAcknowledgement: isAcknowledgement, origin)
    case .goAway(let lastStream, let code, let debugData):
      handler.receive(goAway: lastStream, code, debugData: payload.extracting(debugData), origin)
    case .windowUpdate(let increment): receiveWindowUpdate(increment, header, origin, &direction, &handler)
    case .priority, .undefined: break
    }
  }

  /// A frame whose payload is lost or too long from some place on.
  private mutating func processCut(
    _ header: FrameHeader, _ payload: RawSpan, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    switch header.type {
    case .data:
      guard header.stream != 0 else { return }
      let start = FrameContent.start(in: payload, of: header) ?? payload.byteCount
      receive(
        payload.extracting(start..<payload.byteCount), isWhole: false, header, origin, &direction, &handler)
    case .headers, .pushPromise, .continuation:
      guard header.stream != 0 else { return loseTable(&direction, &handler) }
      guard let start = FrameContent.start(in: payload, of: header), start < payload.byteCount else {
        return loseBlock(header, origin, &direction, &handler)
      }
      // The padding at the end may be there already.
      let padding = header.flags.contains(.padded) && header.type != .continuation ? Int(payload.byte(at: 0)) : 0
      let end = max(start, min(payload.byteCount, header.payloadLength - padding))
      let part = payload.extracting(start..<end)
      if header.type == .continuation {
        guard direction.pending != nil else { return loseTable(&direction, &handler) }
        append(part, header, origin, &direction)
      } else {
        let isPromise = header.type == .pushPromise
        direction.pending = Direction.PendingBlock(
          stream: header.stream, endsStream: !isPromise && header.flags.contains(.endStream), isPromise: isPromise,
          origin: origin)
        direction.block.removeAll(keepingCapacity: true)
        append(part, nil, origin, &direction)
      }
      endPendingBlock(&direction, &handler)
    case .reset: receiveReset(nil, header, origin, &direction, &handler)
    case .settings: loseSettings(&direction, &handler)
    case .goAway where payload.byteCount >= 8 && header.stream == 0:
      handler.receive(
        goAway: payload.uint32(at: 0) & 0x7fff_ffff, ErrorCode(rawValue: payload.uint32(at: 4)),
        debugData: payload.extracting(8..<payload.byteCount), origin)
    default: break
    }
    // A window that was enlarged by an unknown amount is not known.
    if header.type == .windowUpdate { direction.losses += 1 }
  }

  // MARK: field blocks

  /// Notes that blocks are lost that changed the table.
  private mutating func loseTable(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    direction.decoder.lose()
    noteTableLoss(direction, &handler)
  }

  private func noteTableLoss(_ direction: borrowing Direction, _ handler: inout some ConnectionHandler) {
    if tellsTableLosses { handler.receiveLossOfTable(of: direction.side) }
  }

  private mutating func begin(
    _ block: RawSpan, _ header: FrameHeader, isPromise: Bool, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let pending = Direction.PendingBlock(
      stream: header.stream, endsStream: !isPromise && header.flags.contains(.endStream), isPromise: isPromise,
      origin: origin)
    if header.flags.contains(.endHeaders), block.byteCount <= limits.blockLength {
      return decode(block, isCut: false, pending, &direction, &handler)
    }
    direction.pending = pending
    direction.block.removeAll(keepingCapacity: true)
    append(block, nil, origin, &direction)
    if header.flags.contains(.endHeaders) { endWholeBlock(&direction, &handler) }
  }

  private mutating func resume(
    _ part: RawSpan, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard direction.pending != nil else {
      if direction.isIntact {
        handler.receive(Violation(.continuationWithoutBlock, stream: header.stream), origin)
      }
      return loseTable(&direction, &handler)
    }
    append(part, header, origin, &direction)
    if header.flags.contains(.endHeaders) { endWholeBlock(&direction, &handler) }
  }

  /// Appends a part of the pending block, as far as the limits allow.
  private mutating func append(
    _ part: RawSpan, _ continuation: FrameHeader?, _ origin: FrameOrigin, _ direction: inout Direction
  ) {
    if let continuation {
      direction.pending?.continuations += 1
      direction.pending?.origin.length += continuation.frameLength
      direction.pending?.origin.arrival = origin.arrival
    }
    guard let pending = direction.pending, pending.excess == nil else { return }
    if pending.continuations > limits.continuations {
      direction.pending?.excess = .continuationFlood
    } else if direction.block.count + part.byteCount > limits.blockLength {
      direction.pending?.excess = .blockTooLong
    } else {
      direction.block.append(copying: part)
    }
  }

  private mutating func endWholeBlock(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    guard let pending = direction.pending else { return }
    direction.pending = nil
    finishBlock(pending, isCut: false, &direction, &handler)
  }

  /// Ends a block whose rest does not come.
  private mutating func endPendingBlock(_ direction: inout Direction, _ handler: inout some ConnectionHandler) {
    guard let pending = direction.pending else { return }
    direction.pending = nil
    finishBlock(pending, isCut: true, &direction, &handler)
  }

  private mutating func finishBlock(
    _ pending: Direction.PendingBlock, isCut: Bool, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let excess = pending.excess {
      handler.receive(Violation(excess, stream: pending.stream), pending.origin)
      direction.fields.removeAll()
      loseTable(&direction, &handler)
      return receiveFields(pending, .lost, &direction, &handler)
    }
    var block: [UInt8] = []
    swap(&block, &direction.block)
    decode(block.rawBytes, isCut: isCut, pending, &direction, &handler)
    swap(&block, &direction.block)
  }

  private mutating func decode(
    _ block: RawSpan, isCut: Bool, _ pending: Direction.PendingBlock, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let rule = direction.decoder.decode(block, isCut: isCut, into: &direction.fields) {
      handler.receive(Violation(rule, stream: pending.stream), pending.origin)
      if rule.losesTable { noteTableLoss(direction, &handler) }
    }
    receiveFields(pending, direction.fields.isCut ? .cut : .whole, &direction, &handler)
  }

  /// A field block that cannot be read at all.
  private mutating func loseBlock(
    _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    if let pending = direction.pending {
      direction.pending = nil
      finishBlock(pending, isCut: true, &direction, &handler)
    }
    loseTable(&direction, &handler)
    guard header.type == .headers, header.stream != 0 else { return }
    direction.fields.removeAll()
    let lost = Direction.PendingBlock(
      stream: header.stream, endsStream: header.flags.contains(.endStream), isPromise: false, origin: origin)
    receiveFields(lost, .lost, &direction, &handler)
  }

  // MARK: streams

  private mutating func receiveFields(
    _ block: Direction.PendingBlock, _ extent: FieldSection.Extent, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard !block.isPromise else { return }
    let (side, stream, origin) = (direction.side, block.stream, block.origin)
    guard let slot = slotForFields(stream, origin, &direction, &handler), let half = streams[slot]?[side] else {
      return
    }
    let isRequest = side == .client
    let status = isRequest || extent == .lost ? nil : MessageRules.status(direction.fields)
    let isInterim = status.map { (100...199).contains($0) } ?? false
    // Behind content whose HEADERS are lost.
    let isTrailers = half.hasFields || half.length > 0 || !half.isLengthKnown
    if half.hasEnded {
      handler.receive(Violation(.frameAfterEnd, stream: stream), origin)
      return
    }
    if isTrailers, !block.endsStream, direction.isIntact, extent != .lost, !isInterim {
      handler.receive(Violation(.trailersWithoutEnd, stream: stream), origin)
    }
    if let rule = MessageRules.fault(
      in: direction.fields, isRequest: isRequest, isTrailers: isTrailers, isWhole: extent == .whole)
    {
      handler.receive(Violation(rule, stream: stream), origin)
    }
    if !isInterim {
      streams[slot]?[side].hasFields = true
      if !isTrailers { streams[slot]?[side].expectedLength = MessageRules.contentLength(direction.fields) }
    }
    let kind: FieldSection.Kind =
      isTrailers ? .trailers : isRequest ? .request : isInterim ? .interimResponse : .response
    let place = StreamPlace(stream: stream, slot: slot)
    handler.receive(
      FieldSection(kind: kind, extent: extent, endsStream: block.endsStream, status: status), direction.fields,
      on: place, origin)
    if block.endsStream { end(slot, origin, &direction, &handler) }
  }

  /// The slot of a stream on which fields arrive: an open stream's, or that of a new one.
  private mutating func slotForFields(
    _ stream: UInt32, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) -> Int? {
    guard stream & 1 == 1 else {
      // The server's streams are those that it promised, which no client here accepts.
      if direction.side == .client { handler.receive(Violation(.streamParity, stream: stream), origin) }
      return nil
    }
    if let slot = streams.slot(of: stream) {
      if direction.side == .client { noteOpened(stream, direction) }
      return slot
    }
    if direction.side == .server {
      // A response may be captured before its request, or the request may be lost. One that was answered is closed.
      guard stream > highestClientStream || mayBeMissed(stream, client?.losses) else { return nil }
      return open(stream, direction, &handler)
    }
    guard stream > highestClientStream || mayBeMissed(stream, direction.losses) else {
      if !streams.wasClosed(stream), direction.isIntact {
        handler.receive(Violation(.streamNumberNotRising, stream: stream), origin)
      }
      return nil
    }
    noteOpened(stream, direction)
    let slot = open(stream, direction, &handler)
    if server?.areSettingsKnown == true, let limit = server?.inForce.maximumConcurrentStreams, streams.count > limit {
      suspect(Violation(.tooManyStreams, stream: stream), origin)
    }
    return slot
  }

  /// Whether the client may have opened the stream in what is lost.
  private func mayBeMissed(_ stream: UInt32, _ losses: Int?) -> Bool {
    (losses ?? 0) > 0 && missed.contains(stream) && !streams.wasClosed(stream)
  }

  /// Notes a stream that the client has opened.
  private mutating func noteOpened(_ stream: UInt32, _ direction: borrowing Direction) {
    guard stream > highestClientStream else { return missed.remove(stream) }
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    if losses > 0 { missed.note(after: highestClientStream, before: stream) }
    highestClientStream = stream
  }

  private mutating func open(
    _ stream: UInt32, _ direction: borrowing Direction, _ handler: inout some ConnectionHandler
  ) -> Int {
    if streams.count >= limits.openStreams, let oldest = streams.oldest() { close(oldest, .limit, &handler) }
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    return streams.open(OpenStream(number: stream, clientLosses: losses))
  }

  private mutating func receive(
    _ content: RawSpan, isWhole: Bool, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let (side, stream) = (direction.side, header.stream)
    count(header.payloadLength, origin, &direction)
    guard let slot = slotForData(stream, origin, &direction, &handler), var half = streams[slot]?[side] else { return }
    guard !half.hasEnded else {
      handler.receive(Violation(.frameAfterEnd, stream: stream), origin)
      return
    }
    half.length += content.byteCount
    half.windowUsed += header.payloadLength
    if !isWhole { half.isLengthKnown = false }
    streams[slot]?[side] = half
    checkWindow(half, header, origin, direction)
    let endsStream = header.flags.contains(.endStream)
    handler.receive(
      content: content, isWhole: isWhole, endsStream: endsStream, on: StreamPlace(stream: stream, slot: slot), origin)
    if endsStream { end(slot, origin, &direction, &handler) }
  }

  private mutating func slotForData(
    _ stream: UInt32, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) -> Int? {
    if let slot = streams.slot(of: stream) { return slot }
    guard stream & 1 == 1 else { return nil }
    if direction.isIntact, direction.side == .client {
      if stream > highestClientStream { handler.receive(Violation(.idleStream, stream: stream), origin) }
      return nil
    }
    // The HEADERS may be lost.
    let mayBeNew =
      direction.side == .client
      ? stream > highestClientStream || mayBeMissed(stream, direction.losses)
      : !direction.isIntact && (stream > highestClientStream || mayBeMissed(stream, client?.losses))
    guard mayBeNew else { return nil }
    if direction.side == .client { noteOpened(stream, direction) }
    let slot = open(stream, direction, &handler)
    streams[slot]?[direction.side].isLengthKnown = false
    return slot
  }

  /// END_STREAM of one side.
  private mutating func end(
    _ slot: Int, _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    guard var stream = streams[slot] else { return }
    stream[direction.side].hasEnded = true
    let half = stream[direction.side]
    streams[slot] = stream
    if let expected = half.expectedLength, half.isLengthKnown, direction.isIntact, expected != half.length {
      handler.receive(Violation(.contentLength, stream: stream.number), origin)
    }
    // The client's END_STREAM may be among what is lost since.
    let losses = direction.side == .client ? direction.losses : client?.losses ?? 0
    let mayHaveEnded = direction.side == .server && losses > stream.clientLosses
    if stream.client.hasEnded && stream.server.hasEnded || mayHaveEnded { close(slot, .closed, &handler) }
  }

  private mutating func receiveReset(
    _ code: ErrorCode?, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    guard let slot = streams.slot(of: header.stream) else {
      if header.stream & 1 == 1, header.stream > highestClientStream, direction.side == .client, direction.isIntact {
        handler.receive(Violation(.resetOnIdleStream, stream: header.stream), origin)
      } else if header.stream != 0 {
        handler.receive(reset: code, onClosed: header.stream, origin)
      }
      return
    }
    handler.receive(reset: code, on: StreamPlace(stream: header.stream, slot: slot), origin)
    close(slot, .closed, &handler)
  }

  private mutating func close(_ slot: Int, _ reason: StreamEnd, _ handler: inout some ConnectionHandler) {
    guard let stream = streams[slot] else { return }
    streams.close(slot)
    handler.closed(StreamPlace(stream: stream.number, slot: slot), reason)
  }

  // MARK: settings and windows

  private mutating func receive(
    _ settings: [Setting], _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    handler.receive(settings: settings, origin)
    if direction.announced.count >= limits.announcedSettings {
      direction.announced.removeAll()
      loseSettings(&direction, &handler)
    }
    direction.announced.append(settings)
    for setting in settings where setting.name == .headerTableSize {
      if direction.side == .client {
        server?.decoder.announce(tableSize: Int(setting.value))
      } else {
        client?.decoder.announce(tableSize: Int(setting.value))
      }
    }
    if direction.side == .client {
      server?.allowed = direction.allowedToOther
      if let payload = server?.allowed?.payload { server?.reader.maximumFrameSize = payload }
    } else {
      client?.allowed = direction.allowedToOther
      if let payload = client?.allowed?.payload { client?.reader.maximumFrameSize = payload }
    }
  }

  /// The direction keeps to the other side's settings from here on.
  private mutating func receiveAcknowledgement(
    _ origin: FrameOrigin, _ direction: inout Direction, _ handler: inout some ConnectionHandler
  ) {
    guard var other = take(direction.side == .client ? .server : .client) else { return }
    if let settings = other.applyAnnounced() {
      for setting in settings where setting.name == .headerTableSize { direction.decoder.acknowledge() }
      direction.allowed = other.allowedToOther
      handler.receiveAcknowledgement(inForce: other.inForce, origin)
      putBack(other)
    } else {
      putBack(other)
      // SETTINGS that were not seen are in force.
      loseSettings(&direction, &handler)
    }
  }

  private mutating func count(_ length: Int, _ origin: FrameOrigin, _ direction: inout Direction) {
    let before = direction.windowUsed
    direction.windowUsed += length
    if before <= 65_535, direction.windowUsed > 65_535 { suspect(Violation(.windowExceeded), origin) }
  }

  private mutating func checkWindow(
    _ half: StreamHalf, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: borrowing Direction
  ) {
    guard let window = direction.allowed?.window, half.windowUsed > window else { return }
    guard half.windowUsed - header.payloadLength <= window else { return }
    suspect(Violation(.windowExceeded, stream: header.stream), origin)
  }

  private mutating func receiveWindowUpdate(
    _ increment: UInt32, _ header: FrameHeader, _ origin: FrameOrigin, _ direction: inout Direction,
    _ handler: inout some ConnectionHandler
  ) {
    let other: FrameReader.Side = direction.side == .client ? .server : .client
    guard header.stream != 0 else {
      let used = (other == .client ? client?.windowUsed : server?.windowUsed) ?? 0
      if other == .client { client?.windowUsed -= Int(increment) } else { server?.windowUsed -= Int(increment) }
      if 65_535 - used + Int(increment) > 0x7fff_ffff { suspect(Violation(.windowOverflow), origin) }
      return
    }
    guard let slot = streams.slot(of: header.stream), var half = streams[slot]?[other] else {
      if direction.side == .client, direction.isIntact, header.stream & 1 == 1, header.stream > highestClientStream {
        handler.receive(Violation(.windowUpdateOnIdleStream, stream: header.stream), origin)
      }
      return
    }
    half.windowUsed -= Int(increment)
    streams[slot]?[other] = half
    let window = (other == .client ? client?.allowed?.window : server?.allowed?.window) ?? 65_535
    if window - half.windowUsed > 0x7fff_ffff {
      suspect(Violation(.windowOverflow, stream: header.stream), origin)
    }
  }

  // MARK: claims that depend on both directions

  /// Whether every frame of both directions was read; `direction` is the one that is being read.
  private func areBothIntact(_ direction: Direction?) -> Bool {
    (client?.isIntact ?? direction?.isIntact ?? false) && (server?.isIntact ?? direction?.isIntact ?? false)
  }

  /// Notes a violation that is none if frames of the other direction turn out to be missing: a direction with a gap is
  /// read later than the other.
  private mutating func suspect(_ violation: Violation, _ origin: FrameOrigin) {
    guard suspected.count < Self.mostSuspected else { return }
    suspected.append((violation, origin))
  }

  private static let mostSuspected = 64
}
