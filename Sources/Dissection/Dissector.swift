import APNSProtocol
import Bytes
import PacketCapture

/// From reassembled bytes to records.
///
/// It takes what `TCPReassembler` emits (or the pieces of a raw dump), decides for each connection who the client is
/// and what the bytes are, cuts them into records, and applies the session rules.
struct Dissector: StreamConsumer {
  /// Bytes of a direction that are looked at before a connection on an unknown port counts as something else.
  private static let sniffedBytes = 4_096

  let sink: any RecordSink
  let options: DissectionOptions
  var summary = SummaryRecord()
  private var connections: [Connection?] = []

  init(sink: any RecordSink, options: DissectionOptions) {
    self.sink = sink
    self.options = options
  }

  // MARK: connections

  mutating func consume(_ event: ConnectionEvent, slot: Int, time: Timestamp, packet: Int) {
    if case .opened(let flow) = event {
      summary.connections += 1
      let connection = Connection(number: summary.connections, flow: flow, opened: time, options: options)
      while connections.count <= slot { connections.append(nil) }
      connections[slot] = connection
      sink.opened(connection: connection.number, at: time)
      return
    }
    guard let connection = connections[slot] else { return }
    switch event {
    case .opened: break
    case .initiator(let isHigh):
      connection.startWasCaptured = true
      if connection.clientIsHigh == nil { connection.clientIsHigh = isHigh }
    case .closing(let fromHigh, let isReset):
      if connection.firstClosing == nil { connection.firstClosing = (fromHigh, isReset) }
      connection.closed = time
    case .conflict(_, _, let length): connection.conflictingBytes += length
    case .limit(let kind): if !connection.limits.contains(kind) { connection.limits.append(kind) }
    case .closed:
      close(connection)
      connections[slot] = nil
    }
  }

  mutating func close(_ connection: Connection) {
    decideFinally(connection)
    finish(connection, fromHigh: false)
    finish(connection, fromHigh: true)
    for var response in connection.seenResponses {
      if let named = response.notification { response.discarded = connection.session.discarded(after: named) }
      sink.receive(response)
    }
    sink.receive(record(of: connection))
    if connection.isEncrypted { summary.undecryptedConnections += 1 }
  }

  private func record(of connection: Connection) -> ConnectionRecord {
    // With nothing else to go by, the server is the end with the lower port.
    let clientIsHigh = connection.clientIsHigh ?? connection.flow.map { $0.high.port > $0.low.port } ?? false
    let (low, high) = (connection.ways.low, connection.ways.high)
    let end: ConnectionRecord.End =
      switch connection.firstClosing {
      case nil: .captureEnd
      case (let isHigh, false)?: isHigh == clientIsHigh ? .clientFIN : .serverFIN
      case (let isHigh, true)?: isHigh == clientIsHigh ? .clientRST : .serverRST
      }
    return ConnectionRecord(
      connection: connection.number, service: connection.service,
      client: connection.flow.map { clientIsHigh ? $0.high : $0.low },
      server: connection.flow.map { clientIsHigh ? $0.low : $0.high },
      opened: connection.opened, closed: connection.closed, end: end,
      tls: connection.isEncrypted
        ? ConnectionRecord.TLS(isDecrypted: false, problem: "this version does not decrypt TLS") : nil,
      clientBytes: clientIsHigh ? high.bytes : low.bytes, serverBytes: clientIsHigh ? low.bytes : high.bytes,
      missingBytes: connection.missingBytes, notifications: connection.session.written,
      errorResponses: connection.errorResponses, feedbackTuples: connection.feedbackTuples,
      fates: connection.session.fates, conflictingBytes: connection.conflictingBytes, limits: connection.limits)
  }

  // MARK: streams

  mutating func consume(_ event: borrowing StreamEvent, at position: StreamPosition) {
    guard let connection = connections[position.slot] else { return }
    let fromHigh = position.fromHigh
    let mark = Mark(time: position.time, packet: position.packet)
    switch event {
    case .bytes(let bytes):
      if fromHigh { connection.ways.high.bytes += bytes.byteCount } else { connection.ways.low.bytes += bytes.byteCount }
      read(bytes, at: position.offset, mark, connection, fromHigh)
    case .gap(let length, let reason):
      connection.missingBytes += length
      if reading(connection, fromHigh) == .undecided { decide(connection, fromHigh, isFinal: true) }
      readGap(length, reason, at: position.offset, mark, connection, fromHigh)
    case .end:
      if reading(connection, fromHigh) == .undecided { decide(connection, fromHigh, isFinal: true) }
      finish(connection, fromHigh: fromHigh)
    }
  }

  private func reading(_ connection: Connection, _ fromHigh: Bool) -> Connection.Reading {
    fromHigh ? connection.ways.high.reading : connection.ways.low.reading
  }

  private mutating func read(
    _ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Connection, _ fromHigh: Bool
  ) {
    switch reading(connection, fromHigh) {
    case .gateway: readGateway(bytes, at: offset, mark, connection)
    case .responses: readResponses(bytes, at: offset, mark, connection)
    case .feedback: readFeedback(bytes, at: offset, mark, connection)
    case .opaque: return
    case .undecided:
      hold(bytes, at: offset, mark, connection, fromHigh)
      decide(connection, fromHigh, isFinal: false)
    }
  }

  mutating func readGateway(_ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Connection) {
    let before = connection.session.written
    if before == 0 && !connection.startWasCaptured && TLSRecognition.isRecord(bytes) && connection.flow != nil {
      // A capture that begins inside a TLS record is known at the next one.
      connection.isEncrypted = true
      connection.setReadings()
      return
    }
    connection.gateway.feed(bytes, at: offset, mark: mark) { event, offset, mark in
      receiveGateway(event, offset, mark, connection)
    }
    let ended = connection.session.written - before
    if ended > 0 { connection.writeTimes.note(before, mark.time) }
    sink.segment(notifications: ended, at: mark.time)
  }

  private mutating func receiveGateway(
    _ event: borrowing FramedEvent, _ offset: Int, _ mark: Mark, _ connection: Connection
  ) -> ParseError? {
    switch event {
    case .record(let frame):
      let layout: PushNotification.Layout
      do { layout = try PushNotification.Layout(parsing: frame) } catch { return error }
      let index = connection.session.write(identifier: layout.identifier, isKnownBad: layout.token.length == 0)
      summary.notifications += 1
      let place = RecordPlace(
        connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: frame.byteCount)
      sink.receive(
        NotificationRecord(place: place, index: index, notification: PushNotification(layout: layout, frame: frame)))
    case .damage(let cause, let length, let bytes):
      report(cause, length, bytes, .client, offset, mark, connection)
    }
    return nil
  }

  mutating func readResponses(_ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Connection) {
    connection.responses.feed(bytes, at: offset, mark: mark) { event, offset, mark in
      receiveResponse(event, offset, mark, connection)
    }
  }

  private mutating func receiveResponse(
    _ event: borrowing FramedEvent, _ offset: Int, _ mark: Mark, _ connection: Connection
  ) -> ParseError? {
    switch event {
    case .record(let bytes):
      var position = 0
      guard let response = try? ErrorResponse(parsing: bytes, at: &position) else { return nil }
      let verdict = connection.session.receive(response)
      connection.errorResponses += 1
      summary.errorResponses += 1
      let record = ErrorResponseRecord(
        place: RecordPlace(
          connection: connection.number, time: mark.time, packet: mark.packet, offset: offset,
          length: ErrorResponse.length),
        response: response, notification: verdict.notification, accepted: verdict.accepted,
        discarded: verdict.notification.map { connection.session.discarded(after: $0) },
        latencyNanoseconds: verdict.notification.flatMap { connection.writeTimes.time(of: $0) }
          .flatMap { mark.time.nanoseconds(since: $0) },
        candidates: verdict.candidates)
      sink.receiveEarly(record)
      if connection.seenResponses.count < options.maximumHeldResponses {
        connection.seenResponses.append(record)
      } else {
        sink.receive(record)
      }
    case .damage(let cause, let length, let bytes):
      report(cause, length, bytes, .server, offset, mark, connection)
    }
    return nil
  }

  mutating func readFeedback(_ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Connection) {
    connection.feedback.feed(bytes, at: offset, mark: mark) { event, offset, mark in
      receiveFeedback(event, offset, mark, connection)
    }
  }

  private mutating func receiveFeedback(
    _ event: borrowing FramedEvent, _ offset: Int, _ mark: Mark, _ connection: Connection
  ) -> ParseError? {
    switch event {
    case .record(let bytes):
      let place = RecordPlace(
        connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: bytes.byteCount)
      sink.receive(
        FeedbackRecord(place: place, index: connection.feedbackTuples, tuple: FeedbackTuple(record: bytes)))
      connection.feedbackTuples += 1
      summary.feedbackTuples += 1
    case .damage(let cause, let length, let bytes):
      report(cause, length, bytes, .server, offset, mark, connection)
    }
    return nil
  }

  // MARK: gaps, ends, damage

  private mutating func readGap(
    _ length: Int, _ reason: GapReason, at offset: Int, _ mark: Mark, _ connection: Connection, _ fromHigh: Bool
  ) {
    switch reading(connection, fromHigh) {
    case .gateway:
      connection.gateway.gap(at: offset, length: length) { event, offset, mark in
        receiveGateway(event, offset, mark, connection)
      }
    case .responses:
      connection.responses.gap(at: offset, length: length) { event, offset, mark in
        receiveResponse(event, offset, mark, connection)
      }
    case .feedback:
      connection.feedback.gap(at: offset, length: length) { event, offset, mark in
        receiveFeedback(event, offset, mark, connection)
      }
    case .opaque, .undecided: break
    }
    // What other protocols lost is none of our business.
    guard connection.service != .unknown else { return }
    summary.gaps += 1
    sink.receive(
      GapRecord(
        place: RecordPlace(
          connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: length),
        direction: connection.direction(fromHigh: fromHigh), reason: reason == .truncated ? .truncated : .lost))
  }

  mutating func finish(_ connection: Connection, fromHigh: Bool) {
    switch reading(connection, fromHigh) {
    case .gateway:
      let before = connection.session.written
      connection.gateway.finish { event, offset, mark in receiveGateway(event, offset, mark, connection) }
      if connection.session.written > before { connection.writeTimes.note(before, connection.closed) }
    case .responses:
      connection.responses.finish { event, offset, mark in receiveResponse(event, offset, mark, connection) }
    case .feedback:
      connection.feedback.finish { event, offset, mark in receiveFeedback(event, offset, mark, connection) }
    case .opaque, .undecided: break
    }
  }

  @inline(never)
  private mutating func report(
    _ cause: DamageCause, _ length: Int, _ bytes: RawSpan, _ direction: Direction, _ offset: Int, _ mark: Mark,
    _ connection: Connection
  ) {
    let place = RecordPlace(
      connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: length)
    let problem: String
    switch cause {
    case .beforeCapture, .captureEnd:
      summary.gaps += 1
      var isBefore = false
      if case .beforeCapture = cause { isBefore = true }
      sink.receive(GapRecord(place: place, direction: direction, reason: isBefore ? .beforeCapture : .captureEnd))
      return
    case .cut: problem = "part of a record that a gap cut"
    case .malformed(let parseProblem): problem = parseProblem.description
    }
    summary.malformed += 1
    sink.receive(
      MalformedRecord(place: place, direction: direction, problem: problem, bytes: Array(copying: bytes)))
  }

  // MARK: deciding what a connection is

  private func hold(_ bytes: RawSpan, at offset: Int, _ mark: Mark, _ connection: Connection, _ fromHigh: Bool) {
    let held = Connection.Held(bytes: Array(copying: bytes), offset: offset, mark: mark)
    if fromHigh {
      connection.ways.high.held.append(held)
      connection.ways.high.heldCount += bytes.byteCount
    } else {
      connection.ways.low.held.append(held)
      connection.ways.low.heldCount += bytes.byteCount
    }
  }

  /// Decides how the connection is read if what is known suffices; then reads what was held.
  private mutating func decide(_ connection: Connection, _ fromHigh: Bool, isFinal: Bool) {
    connection.decideByPorts(options.ports)
    let way = fromHigh ? connection.ways.high : connection.ways.low
    let first = way.held.flatMap(\.bytes)
    switch TLSRecognition.begins(first, isFinal: isFinal) {
    case .needsMore: return
    case .yes:
      connection.isEncrypted = true
      if connection.clientIsHigh == nil && first.count > 5 { connection.clientIsHigh = fromHigh == (first[5] == 1) }
    case .no:
      if connection.service == .unknown {
        switch sniff(first, connection, fromHigh, isFinal: isFinal || first.count >= Self.sniffedBytes) {
        case .needsMore: return
        case .yes, .no: break
        }
      }
    }
    if connection.clientIsHigh == nil {
      connection.clientIsHigh = connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    connection.setReadings()
    for isHigh in [fromHigh, !fromHigh] {
      let held = isHigh ? connection.ways.high.held : connection.ways.low.held
      if isHigh { connection.ways.high.held = [] } else { connection.ways.low.held = [] }
      for piece in held { read(piece.bytes.rawBytes, at: piece.offset, piece.mark, connection, isHigh) }
    }
  }

  private mutating func decideFinally(_ connection: Connection) {
    for fromHigh in [false, true] where reading(connection, fromHigh) == .undecided {
      let way = fromHigh ? connection.ways.high : connection.ways.low
      if !way.held.isEmpty { decide(connection, fromHigh, isFinal: true) }
    }
    if connection.service == .unknown && !connection.isEncrypted { connection.decideByPorts(options.ports) }
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
      take(connection.gateway.grammar.probe(bytes, 0, atEnd: isFinal), .gateway, fromClient: true)
    {
      return .yes
    }
    if mayBe(client: false) {
      if first.count <= ErrorResponse.length,
        take(ResponseGrammar().probe(bytes, 0, atEnd: isFinal), .gateway, fromClient: false)
      {
        return .yes
      }
      if take(connection.feedback.grammar.probe(bytes, 0, atEnd: isFinal), .feedback, fromClient: false) { return .yes }
    }
    return needsMore && !isFinal ? .needsMore : .no
  }
}

/// TLS is only recognised here: a record begins with a content type from 20 to 23 and the version's first byte, 3.
enum TLSRecognition {
  static func begins(_ first: [UInt8], isFinal: Bool) -> Plausibility {
    guard let type = first.first, (20...23).contains(type) else { return .no }
    guard first.count >= 3 else { return isFinal ? .no : .needsMore }
    return first[1] == 3 && first[2] <= 4 ? .yes : .no
  }

  static func isRecord(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 5 && (20...23).contains(bytes.byte(at: 0)) && bytes.byte(at: 1) == 3 && bytes.byte(at: 2) <= 4
      && bytes.uint16(at: 3) <= 18_432
  }
}
