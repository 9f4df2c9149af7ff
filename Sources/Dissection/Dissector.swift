import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import TLSDecryption

/// From reassembled bytes to records.
///
/// It takes what `TCPReassembler` emits (or the pieces of a raw dump), decides for each connection who the client is
/// and what the bytes are, cuts them into records, and applies the session rules.
struct Dissector<Sink: RecordSink> {
  /// Bytes of a direction that are looked at before a connection on an unknown port counts as something else.
  private static var sniffedBytes: Int { 4_096 }
  /// 2009-01-01, in UNIX seconds.
  private static var firstFeedback: UInt32 { 1_230_768_000 }
  /// The state of more than these is not in the processor's cache when it is needed.
  private static var manyConnections: Int { 512 }

  var output: RecordEmitter<Sink>
  let options: DissectionOptions
  let secrets: Secrets
  var connections: [Connection?] = []
  /// Ended connections whose secrets may still come, with their client streams.
  var parked: [(connection: Connection, clientStream: ClientStream)] = []
  /// One for each connection, at the same place.
  let clientStreams: ClientStreams
  /// Connections that turned out to be TLS and are not closed.
  var tlsConnections = 0
  /// The limit on the memory of all connections.
  var memory: MemoryBudget

  init(sink: Sink, options: DissectionOptions, secrets: Secrets) {
    output = RecordEmitter(sink: sink)
    self.options = options
    self.secrets = secrets
    clientStreams = ClientStreams(options: options)
    memory = MemoryBudget(limit: options.maximumMemory)
  }

  // MARK: connections

  private mutating func consume(_ event: ConnectionEvent, slot: Int, time: Timestamp, packet: Int) {
    if case .opened(let flow) = event {
      _ = open(slot, flow, time, packet: packet)
      return
    }
    guard let connection = connections[slot] else { return }
    switch event {
    case .opened: break
    case .initiator(let direction):
      connection.startWasCaptured = true
      if connection.clientIsHigh == nil { connection.clientIsHigh = direction == .reverse }
    case .closing(let direction, let isReset):
      connection.note(.init(isHigh: direction == .reverse, isReset: isReset, time: time, packet: packet))
    case .conflict(_, _, let length): connection.conflictingBytes += length
    case .alsoSeen(let flow, let isFlipped): connection.noteView(flow, isFlipped: isFlipped)
    case .limit(let kind): if !connection.limits.contains(kind) { connection.limits.append(kind) }
    case .unfinished(let direction, let since, let until):
      let open = ConnectionRecord.OpenEnd(since: since, until: until)
      if direction == .reverse { connection.unfinished.high = open } else { connection.unfinished.low = open }
    case .closed:
      if !park(connection) { close(connection) }
      connections[slot] = nil
      clientStreams.clear(slot)
    }
  }

  /// Begins a connection; `flow` is `nil` for a raw dump.
  mutating func open(_ slot: Int, _ flow: Flow?, _ time: Timestamp, packet: Int) -> Connection {
    output.summary.connections += 1
    let connection = Connection(
      number: output.summary.connections, slot: slot, flow: flow, opened: time, firstPacket: packet,
      options: options)
    while connections.count <= slot {
      connections.append(nil)
      clientStreams.append()
    }
    connections[slot] = connection
    clientStreams[slot] = ClientStream(connection: connection.number, options: options)
    output.sink.opened(connection: connection.number, at: time)
    return connection
  }

  /// A raw dump needs no deciding: its low end is the client, and it begins with a record.
  mutating func beginDump(_ connection: Connection) {
    connection.startWasCaptured = true
    connection.clientIsHigh = false
    clientStreams[connection.slot].readings = connection.readings()
  }

  mutating func count(_ bytes: Int, _ connection: Connection, fromClient: Bool) {
    clientStreams[connection.slot].count(bytes, fromHigh: !fromClient)
  }

  /// Ends all open connections in order, after an interruption.
  mutating func endAll() {
    for connection in connections.compactMap({ $0 }).sorted(by: { $0.number < $1.number }) {
      close(connection)
      connections[connection.slot] = nil
    }
    retryParked(isFinal: true)
  }

  mutating func close(_ connection: Connection) {
    decideFinally(connection)
    if let tls = connection.tls {
      tls.finish(at: CapturePoint(time: connection.closed.nanoseconds, packet: 0)) {
        consumePlaintext($0, $1, $2, $3, connection.slot)
      }
      // Its plaintext may have been too short to decide.
      decideFinally(connection)
    }
    finish(connection, fromHigh: false)
    finish(connection, fromHigh: true)
    releaseResponses(connection)
    clientStreams[connection.slot].reportFates(atEnd: true, to: &output.sink)
    let record = record(of: connection)
    output.sink.receive(record)
    output.summary.noteEnd(of: record)
    settle(connection, record.fates)
    if connection.tls != nil { tlsConnections -= 1 }
  }

  /// Passes on the error responses that were held for their final counts.
  mutating func releaseResponses(_ connection: Connection) {
    for index in connection.seenResponses.indices where connection.seenResponses[index].record.notification == nil {
      resolve(&connection.seenResponses[index], connection)
      clientStreams[connection.slot].reportFates(to: &output.sink)
      output.sink.receiveEarly(connection.seenResponses[index].record)
    }
    for seen in connection.seenResponses {
      var response = seen.record
      response.acknowledged = clientStreams[connection.slot].acknowledged(by: seen.mark)
      if let named = response.notification {
        response.discarded = clientStreams[connection.slot].session.discarded(after: named)
      }
      output.sink.receive(response)
    }
    connection.seenResponses = []
    connection.waitingResponses = 0
  }

  /// Counts the fates of a connection's notifications that are decided now.
  private mutating func settle(_ connection: Connection, _ fates: FateCounts) {
    func add(_ fate: WritableKeyPath<FateCounts, Int>) {
      output.summary.settled[keyPath: fate] += max(0, fates[keyPath: fate] - connection.settled[keyPath: fate])
      connection.settled[keyPath: fate] = max(fates[keyPath: fate], connection.settled[keyPath: fate])
    }
    add(\.accepted)
    add(\.rejected)
    add(\.discarded)
    add(\.unknown)
  }

  private func record(of connection: Connection) -> ConnectionRecord {
    // With nothing else to go by, the server is the end with the lower port.
    let clientIsHigh = connection.clientIsHigh ?? connection.flow.map { $0.high.port > $0.low.port } ?? false
    var (low, high) = clientStreams[connection.slot].byteCounts
    let tls = connection.tls?.summary
    if let stream = connection.tls, tls?.isDecrypted == false {
      // Nothing is known of the content.
      low = stream.wireBytes(from: connection.side(fromHigh: false))
      high = stream.wireBytes(from: connection.side(fromHigh: true))
    }
    let end: ConnectionRecord.End =
      switch connection.firstClosing {
      case nil: .captureEnd
      case (let isHigh, false)?: isHigh == clientIsHigh ? .clientFIN : .serverFIN
      case (let isHigh, true)?: isHigh == clientIsHigh ? .clientRST : .serverRST
      }
    let (service, other) = spoken(connection, tls, bytes: low + high)
    var record = ConnectionRecord(
      connection: connection.number, file: connection.firstFile,
      flow: options.capture.shard == nil ? nil : connection.stableKey,
      service: service, otherProtocol: other, isOnKnownPort: isOnKnownPort(connection),
      outline: connection.outline(clientIsHigh: clientIsHigh),
      notCaptured: ConnectionRecord.NotCaptured(
        start: connection.flow != nil && !connection.startWasCaptured,
        client: clientIsHigh ? connection.unfinished.high : connection.unfinished.low,
        server: clientIsHigh ? connection.unfinished.low : connection.unfinished.high),
      client: connection.flow.map { clientIsHigh ? $0.high : $0.low },
      server: connection.flow.map { clientIsHigh ? $0.low : $0.high },
      opened: connection.opened, closed: connection.closed, end: end,
      tls: tls,
      clientBytes: clientIsHigh ? high : low, serverBytes: clientIsHigh ? low : high,
      missingBytes: connection.missingBytes, notifications: clientStreams[connection.slot].session.written,
      errorResponses: connection.errorResponses, feedbackTuples: connection.feedbackTuples,
      fates: clientStreams[connection.slot].session.fates, conflictingBytes: connection.conflictingBytes,
      limits: connection.limits, alsoSeenAs: connection.otherEnds(clientIsHigh: clientIsHigh))
    record.preamble = connection.preamble.kind
    let (lowPreamble, highPreamble) = connection.preambleBytes
    record.preambleBytes = clientIsHigh ? (highPreamble, lowPreamble) : (lowPreamble, highPreamble)
    return record
  }

  private func isOnKnownPort(_ connection: Connection) -> Bool {
    guard let flow = connection.flow else { return false }
    return options.ports[flow.low.port] != nil || options.ports[flow.high.port] != nil
  }

  /// The service of a connection that has ended, and the other protocol it uses.
  ///
  /// - Parameter bytes: the decrypted ones of both directions.
  private func spoken(_ connection: Connection, _ tls: TLSSummary?, bytes: Int) -> (Service, OtherProtocol?) {
    var other = connection.otherProtocol
    if let tls, other == nil, !tls.isDecrypted || bytes == 0 {
      other = OtherProtocol(tls) ?? (connection.service == .unknown ? .tls : nil)
      if other != nil { return (.other, other) }
    }
    return (connection.service == .unknown && other != nil ? .other : connection.service, other)
  }

  // MARK: streams

  @inline(__always)
  mutating func consume(_ batch: borrowing EventBatch) {
    batch.forEachEvent { event, position, number in
      prepare(for: number, of: batch)
      consume(event, at: position)
    }
  }

  /// Fetches what the events after one need: the client stream, and later what the sink has of its connection.
  @inline(__always)
  mutating func prepare(for number: Int, of batch: borrowing EventBatch) {
    guard clientStreams.count > Self.manyConnections else { return }
    if let slot = batch.slot(ofEvent: number + 8) { clientStreams.prefetch(slot) }
    if let slot = batch.slot(ofEvent: number + 4), slot < clientStreams.count {
      clientStreams[slot].prefetch()
      output.sink.prepare(for: clientStreams[slot].connection)
    }
  }

  mutating func consume(_ event: borrowing StreamEvent, at position: StreamPosition) {
    switch event {
    case .connection(let change):
      consume(copy change, slot: position.slot, time: position.time, packet: position.packet)
    case .bytes(let bytes):
      if let tls = clientStreams[position.slot].tls { return consume(bytes, at: position, through: tls) }
      let mark = CapturePosition(position)
      // The usual case accesses only the client stream.
      if clientStreams[position.slot].readWholeFrames(
        bytes, at: position.offset, fromHigh: position.fromHigh, mark, into: &output)
      {
        return
      }
      if let connection = connections[position.slot] {
        read(bytes, at: position.offset, mark, connection, position.fromHigh)
      }
    case .gap(let length, let reason):
      guard let connection = connections[position.slot] else { return }
      let mark = CapturePosition(position)
      connection.missingBytes += length
      if let tls = connection.tls {
        tls.gap(
          length: length, reason: reason == .truncated ? .truncated : .lost,
          from: connection.side(fromHigh: position.fromHigh), at: CapturePoint(position)
        ) { consumePlaintext($0, $1, $2, $3, position.slot) }
        return
      }
      if reading(connection, position.fromHigh) == .undecided { decide(connection, position.fromHigh, isFinal: true) }
      if position.fromHigh {
        connection.directions.high.missing += length
      } else {
        connection.directions.low.missing += length
      }
      readGap(
        length, reason == .truncated ? .truncated : .lost, at: position.offset, mark, connection, position.fromHigh)
    case .end:
      guard let connection = connections[position.slot] else { return }
      if let tls = connection.tls {
        tls.end(from: connection.side(fromHigh: position.fromHigh), at: CapturePoint(position)) {
          consumePlaintext($0, $1, $2, $3, position.slot)
        }
      } else {
        end(connection, position.fromHigh)
      }
    }
  }

  mutating func end(_ connection: Connection, _ fromHigh: Bool) {
    // A direction that ends without a byte decides nothing: the other may still tell.
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    if reading(connection, fromHigh) == .undecided && !direction.held.isEmpty {
      decide(connection, fromHigh, isFinal: true)
    }
    finish(connection, fromHigh: fromHigh)
  }

  func reading(_ connection: Connection, _ fromHigh: Bool) -> ClientStream.ReadingMode {
    clientStreams[connection.slot].reading(fromHigh: fromHigh)
  }

  mutating func read(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool
  ) {
    let reading = reading(connection, fromHigh)
    if reading != .undecided && connection.mayTurnOutToBeTLS(clientStreams[connection.slot])
      && TLSRecognition.isRecord(bytes)
    {
      noteOtherPreamble(bytes.byteCount, connection, fromHigh)
      // A capture that begins inside a TLS record, or without the first, shows it at the next one.
      hold(bytes, at: offset, mark, connection, fromHigh)
      return beginTLS(connection, bytes, fromHigh: fromHigh)
    }
    switch reading {
    case .gateway: readGateway(bytes, at: offset, mark, connection)
    case .responses: readResponses(bytes, at: offset, mark, connection)
    case .feedback: readFeedback(bytes, at: offset, mark, connection)
    case .opaque: return
    case .undecided:
      hold(bytes, at: offset, mark, connection, fromHigh)
      decide(connection, fromHigh, isFinal: false)
    }
  }

  mutating func readGateway(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    clientStreams[connection.slot].read(bytes, at: offset, mark, into: &output)
  }

  mutating func readResponses(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    // A provider may speak this protocol to a server of another one, whose answer shows it.
    if offset == 0, connection.otherProtocol == nil {
      connection.otherProtocol = OtherProtocol(
        beginning: Array(copying: bytes.extracting(0..<min(OtherProtocol.longest, bytes.byteCount))))
      // Its frames contain bytes that look like error responses.
      if connection.otherProtocol == .http2 {
        return makeOpaque(connection, fromHigh: connection.clientIsHigh == false)
      }
    }
    connection.responses.read(bytes, at: offset, mark: mark) {
      response($0, $1, $2, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  private mutating func response(_ bytes: RawSpan, _ offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    var position = 0
    guard let response = try? ErrorResponse(parsing: bytes, at: &position) else { return }
    note(response, at: offset, mark, connection)
  }

  private mutating func note(
    _ response: ErrorResponse, at offset: Int, _ mark: CapturePosition, _ connection: Connection
  ) {
    connection.errorResponses += 1
    output.summary.errorResponses += 1
    output.summary.errorsByRejection[.status(response.status), default: 0] += 1
    var record = ErrorResponseRecord(
      place: RecordPlace(
        connection: connection.number, time: mark.time, packet: mark.packet, offset: offset,
        length: ErrorResponse.length),
      response: response, candidates: 0)
    let before = clientStreams[connection.slot].session.written
    let isHeld = connection.seenResponses.count < options.maximumHeldResponses
    if isHeld && mark.isAhead {
      connection.waitingResponses += 1
      return connection.seenResponses.append(.init(record: record, mark: mark, before: before, isWaiting: true))
    }
    // Nothing is missing of what this one acknowledges, so nothing is of what those before it did.
    for index in connection.seenResponses.indices.suffix(connection.waitingResponses) {
      resolve(&connection.seenResponses[index], connection)
      if connection.seenResponses[index].record.notification != nil {
        output.sink.receiveEarly(connection.seenResponses[index].record)
      }
    }
    connection.waitingResponses = 0
    let (verdict, latency) = clientStreams[connection.slot].receive(response, at: mark)
    settleDecided(connection)
    note(verdict, latency, in: &record, connection)
    // One that names nothing yet may do so when the connection has ended.
    if record.notification != nil || !isHeld { output.sink.receiveEarly(record) }
    if isHeld {
      connection.seenResponses.append(.init(record: record, mark: mark, before: before, isWaiting: false))
    } else {
      output.sink.receive(record)
    }
    clientStreams[connection.slot].reportFates(to: &output.sink)
  }

  private func note(
    _ verdict: BinarySession.Naming, _ latency: Int64?, in record: inout ErrorResponseRecord,
    _ connection: Connection
  ) {
    record.notification = verdict.notification
    record.accepted = verdict.accepted
    record.discarded = verdict.notification.map { clientStreams[connection.slot].session.discarded(after: $0) }
    record.latencyNanoseconds = latency
    record.candidates = verdict.candidates
    record.isAmbiguous = verdict.isAmbiguous
  }

  /// Counts what responses have decided while the connection goes on.
  private mutating func settleDecided(_ connection: Connection) {
    var decided = clientStreams[connection.slot].session.fates
    (decided.discarded, decided.unknown) = (0, 0)
    settle(connection, decided)
  }

  /// Resolves a response later than it was seen: what it acknowledges, or notifications buffered behind missing bytes,
  /// came after it.
  private mutating func resolve(_ seen: inout Connection.SeenResponse, _ connection: Connection) {
    let (verdict, latency) = clientStreams[connection.slot].receiveLate(
      seen.record.response, at: seen.mark, after: seen.before)
    if seen.isWaiting || verdict.notification != nil { note(verdict, latency, in: &seen.record, connection) }
    seen.isWaiting = false
    settleDecided(connection)
  }

  mutating func readFeedback(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    connection.feedback.read(bytes, at: offset, mark: mark) {
      tuple($0, $1, $2, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  private mutating func tuple(_ bytes: RawSpan, _ offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    let place = RecordPlace(
      connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: bytes.byteCount)
    output.sink.receive(
      FeedbackRecord(place: place, index: connection.feedbackTuples, tuple: FeedbackTuple(record: bytes)))
    connection.feedbackTuples += 1
    output.summary.feedbackTuples += 1
  }

  // MARK: gaps, ends, damage

  mutating func readGap(
    _ length: Int, _ reason: GapRecord.Reason, at offset: Int, _ mark: CapturePosition, _ connection: Connection,
    _ fromHigh: Bool
  ) {
    switch reading(connection, fromHigh) {
    case .gateway:
      clientStreams[connection.slot].gap(at: offset, length: length, mark, into: &output)
    case .responses:
      connection.responses.gap(at: offset, length: length)
      readFoundResponses(connection)
    case .feedback:
      connection.feedback.gap(at: offset, length: length)
      readFoundFeedback(connection)
    case .opaque, .undecided: break
    }
    // Gaps of other protocols are not recorded.
    guard connection.service == .gateway || connection.service == .feedback else { return }
    output.receive(
      GapRecord(
        place: RecordPlace(
          connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: length),
        direction: connection.direction(fromHigh: fromHigh), reason: reason))
  }

  mutating func finish(_ connection: Connection, fromHigh: Bool) {
    switch reading(connection, fromHigh) {
    case .gateway:
      let mark = CapturePosition(time: connection.closed, packet: 0)
      clientStreams[connection.slot].finish(mark, into: &output)
    case .responses:
      readWholeAnswer(connection)
      connection.responses.finish()
      readFoundResponses(connection)
    case .feedback:
      connection.feedback.finish()
      readFoundFeedback(connection)
    case .opaque, .undecided: break
    }
  }

  /// A response with a command byte other than 8 counts only if the gateway sent nothing else, which is known at the
  /// end of its direction; so it is reported late.
  private mutating func readWholeAnswer(_ connection: Connection) {
    guard connection.startWasCaptured,
      let (bytes, mark) = connection.responses.unreadable(ofLength: ErrorResponse.length),
      let response = ErrorResponse(wholeAnswer: bytes.rawBytes)
    else { return }
    connection.responses.dropUnreadable()
    note(response, at: 0, mark, connection)
  }

  mutating func readFoundResponses(_ connection: Connection) {
    connection.responses.readFound {
      response($0, $1, $2, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  mutating func readFoundFeedback(_ connection: Connection) {
    connection.feedback.readFound {
      tuple($0, $1, $2, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  // MARK: deciding what a connection is

  func hold(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool) {
    let held = Connection.Held(bytes: Array(copying: bytes), offset: offset, mark: mark)
    if fromHigh {
      connection.directions.high.held.append(held)
    } else {
      connection.directions.low.held.append(held)
    }
  }

  /// Decides how the connection is read if enough is known; then reads held bytes.
  mutating func decide(_ connection: Connection, _ fromHigh: Bool, isFinal: Bool) {
    connection.decideByPorts(options.ports)
    if connection.flow != nil, connection.tls == nil, waitsForPreamble(connection, fromHigh, isFinal: isFinal) {
      return
    }
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    let first = direction.held.flatMap(\.bytes)
    switch connection.tls == nil ? TLSRecognition.begins(first.rawBytes) : .no {
    case .yes:
      dropText(connection)
      return beginTLS(connection, first.rawBytes, fromHigh: fromHigh)
    case .needsMore where !isFinal && !first.isEmpty: return
    case .needsMore, .no:
      if connection.service == .unknown {
        switch sniff(first, connection, fromHigh, isFinal: isFinal || first.count >= Self.sniffedBytes) {
        case .needsMore: return
        case .yes, .no: break
        }
      }
    }
    if connection.otherProtocol == nil {
      connection.otherProtocol = connection.tls.flatMap { OtherProtocol($0.summary) } ?? OtherProtocol(beginning: first)
      // On a known port the connection has to begin with it: bytes from the middle of a stream may spell a method.
      if connection.otherProtocol != nil, connection.startWasCaptured || connection.otherProtocol == .http2 {
        connection.service = .other
      }
    }
    if connection.clientIsHigh == nil {
      connection.clientIsHigh = connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    // A port that is known at both ends tells the service once the client is settled.
    if connection.service == .unknown && connection.otherProtocol == nil { connection.decideByPorts(options.ports) }
    if connection.tls == nil, connection.otherProtocol == nil, connection.service == .gateway, connection.flow != nil,
      connection.startWasCaptured,
      GatewayGrammar(limits: options.limits).canStart(first.rawBytes, 0, atEnd: true) == .yes
    {
      dropText(connection)
    }
    clientStreams[connection.slot].readings = connection.readings()
    if !connection.startWasCaptured { clientStreams[connection.slot].beginAnywhere() }
    for (piece, isHigh) in connection.takeHeld() {
      read(piece.bytes.rawBytes, at: piece.offset, piece.mark, connection, isHigh)
    }
  }

  private mutating func decideFinally(_ connection: Connection) {
    for fromHigh in [false, true] where reading(connection, fromHigh) == .undecided {
      let direction = fromHigh ? connection.directions.high : connection.directions.low
      if !direction.held.isEmpty { decide(connection, fromHigh, isFinal: true) }
    }
    if connection.service == .unknown { connection.decideByPorts(options.ports) }
    // A proxy that opened no tunnel: all there is is its protocol.
    if connection.preamble.kind == .httpConnect, !connection.preamble.isOpen, connection.tls == nil,
      reading(connection, false) == .undecided, reading(connection, true) == .undecided
    {
      connection.otherProtocol = .http1
      connection.service = .other
    }
  }

  /// The rest of one way is another protocol's.
  private mutating func makeOpaque(_ connection: Connection, fromHigh: Bool) {
    if fromHigh {
      clientStreams[connection.slot].readings.high = .opaque
    } else {
      clientStreams[connection.slot].readings.low = .opaque
    }
  }

  /// On a port that says nothing: whether the first bytes of one direction are this protocol's.
  private func sniff(
    _ first: [UInt8], _ connection: Connection, _ fromHigh: Bool, isFinal: Bool
  ) -> Plausibility {
    guard !first.isEmpty else { return isFinal ? .no : .needsMore }
    func mayBe(client: Bool) -> Bool { connection.clientIsHigh.map { ($0 == fromHigh) == client } ?? true }
    var needsMore = false
    func take(_ plausibility: Plausibility, _ service: Service, fromClient: Bool) -> Bool {
      if plausibility == .needsMore { needsMore = true }
      guard plausibility == .yes else { return false }
      connection.service = service
      connection.clientIsHigh = fromClient == fromHigh
      return true
    }
    let bytes = first.rawBytes
    if mayBe(client: true),
      take(
        GatewayGrammar(limits: options.limits)
          .probe(bytes, 0, beginsBetween: connection.startWasCaptured, atEnd: isFinal), .gateway, fromClient: true)
    {
      return .yes
    }
    if mayBe(client: false) {
      if first.count <= ErrorResponse.length,
        take(ResponseGrammar().canStart(bytes, 0, atEnd: isFinal), .gateway, fromClient: false)
      {
        return .yes
      }
      let tuple = connection.feedback.grammar
        .probe(bytes, 0, beginsBetween: connection.startWasCaptured, atEnd: isFinal)
      // In the middle of a stream few bytes look like a tuple; no service existed before 2009.
      let isDated = connection.startWasCaptured || (first.count >= 4 && bytes.uint32(at: 0) >= Self.firstFeedback)
      if isDated || tuple == .needsMore, take(tuple, .feedback, fromClient: false) { return .yes }
    }
    return needsMore && !isFinal ? .needsMore : .no
  }
}
