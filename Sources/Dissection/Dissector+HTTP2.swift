import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel
import Records
import TLSDecryption

/// Connections over HTTP/2: how they are recognised, and the records of what happens on them.
extension Dissector {
  // MARK: recognition

  /// Whether bytes that nothing is known of are HTTP/2; if so, the connection is to be read as that.
  ///
  /// - Parameter isAligned: only frames that begin with the first byte count.
  mutating func claimHTTP2(
    _ first: RawSpan, _ connection: Connection, _ fromHigh: Bool, isAligned: Bool, isFinal: Bool
  ) -> FrameRecognition.Verdict {
    let sender: HTTP2Side? = connection.clientIsHigh.map { $0 == fromHigh ? .client : .server }
    // Without a SYN the ends were told apart by their ports, which the bytes may contradict.
    let known = connection.startWasCaptured || connection.tls != nil ? sender : nil
    var verdict = FrameRecognition.ofStart(first, sender: known, atEnd: isFinal)
    if verdict == .no, !connection.startWasCaptured {
      verdict = FrameRecognition.ofMiddle(first, isAligned: isAligned, atEnd: isFinal)
    }
    // SETTINGS are the server's first bytes, but the client's as well after a preface that was not captured.
    if known == nil, !connection.startWasCaptured, case .yes(.server) = verdict,
      case .yes(let sender) = FrameRecognition.ofMiddle(first, isAligned: true, atEnd: true), sender != .server
    {
      verdict = .yes(sender: sender)
    }
    // Later bytes may tell who sends.
    if known == nil, verdict == .yes(sender: nil), !isFinal { return .needsMore }
    if case .yes(let sender?) = verdict, known == nil { connection.clientIsHigh = (sender == .client) == fromHigh }
    return verdict
  }

  /// As above, for a connection of which one direction lacks its beginning.
  mutating func claimHTTP2AfterLoss(
    _ connection: Connection, _ fromHigh: Bool, isFinal: Bool
  ) -> FrameRecognition.Verdict {
    let direction = fromHigh ? connection.directions.high : connection.directions.low
    let first = direction.held.flatMap(\.bytes)
    guard !first.isEmpty else { return isFinal ? .no : .needsMore }
    guard direction.lacksBeginning else {
      return claimHTTP2(first.rawBytes, connection, fromHigh, isAligned: true, isFinal: isFinal)
    }
    var verdict = FrameRecognition.ofMiddle(first.rawBytes, isAligned: true, atEnd: isFinal)
    if verdict == .no { verdict = FrameRecognition.ofMiddle(first.rawBytes, isAligned: false, atEnd: true) }
    let known: HTTP2Side? = connection.clientIsHigh.map { $0 == fromHigh ? .client : .server }
    if case .yes(let sender?) = verdict, let known, sender != known { return .no }
    return verdict
  }

  /// Whether TLS negotiated HTTP/2.
  func hasNegotiatedHTTP2(_ connection: Connection) -> Bool {
    guard let summary = connection.tls?.summary else { return false }
    return summary.chosenProtocol.map { $0 == "h2" } ?? (summary.offeredProtocols == ["h2"])
  }

  /// Whether the user says that the connection is HTTP/2.
  func isDeclaredHTTP2(_ connection: Connection) -> Bool {
    guard let flow = connection.flow, !options.http2Ports.isEmpty else { return false }
    switch connection.clientIsHigh {
    case true?: return options.http2Ports.contains(flow.low.port)
    case false?: return options.http2Ports.contains(flow.high.port)
    case nil: return options.http2Ports.contains(flow.low.port) || options.http2Ports.contains(flow.high.port)
    }
  }

  /// Reads the connection as HTTP/2 from here on, with what was held.
  mutating func beginHTTP2(_ connection: Connection) {
    if connection.clientIsHigh == nil {
      connection.clientIsHigh = connection.flow.map { $0.high.port > $0.low.port } ?? false
    }
    memory.isUnforeseen = true
    (connection.service, connection.otherProtocol) = (.other, .http2)
    connection.reading = .http2(HTTP2Reader(isFromStart: connection.startWasCaptured, limits: options.http2))
    clientStreams[connection.slot].readings = (.http2, .http2)
    readHeld(connection.takeHeld(), connection)
  }

  // MARK: input

  mutating func readHTTP2(
    _ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection, _ fromHigh: Bool
  ) {
    guard case .http2(let reader) = connection.reading else { return }
    let side = http2Side(connection, fromHigh)
    let startsFrame = reader.begin(bytes.byteCount, side, at: offset)
    let before = reader.heldBytes
    reader.session.read(
      bytes, from: side, at: offset, arrival: Arrival(mark), startsRecord: connection.tls != nil && startsFrame,
      isAhead: mark.isAhead
    ) { take($0, $1, reader, connection) }
    if takesHTTP2 {
      let place = RecordPlace(
        connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: bytes.byteCount)
      output.sink.receive(http2: bytes, at: place, Direction(side))
    }
    // A few bytes can open a stream, or refer to a long field.
    memory.add(max(0, reader.heldBytes - before - bytes.byteCount))
    releaseFates(reader, connection)
  }

  mutating func readHTTP2Gap(
    _ length: Int, _ reason: GapRecord.Reason, at offset: Int, _ mark: CapturePosition, _ connection: Connection,
    _ fromHigh: Bool, _ reader: HTTP2Reader
  ) {
    let side = http2Side(connection, fromHigh)
    reader.skip(length, side, at: offset)
    reader.gapReason = reason
    reader.session.gap(from: side, at: offset, length: length, arrival: Arrival(mark)) {
      take($0, $1, reader, connection)
    }
    releaseFates(reader, connection)
  }

  mutating func finishHTTP2(_ connection: Connection, fromHigh: Bool, _ reader: HTTP2Reader) {
    let mark = CapturePosition(time: connection.closed, packet: 0)
    reader.session.finish(
      http2Side(connection, fromHigh), connection.hasEnded(fromHigh: fromHigh) ? .closed : .recordingEnds,
      arrival: Arrival(mark)
    ) { take($0, $1, reader, connection) }
    releaseFates(reader, connection)
  }

  /// Makes a connection drop what it holds.
  mutating func dropHTTP2(_ connection: Connection, _ mark: CapturePosition, _ reader: HTTP2Reader) {
    reader.gapReason = .givenUp
    reader.session.drop(
      at: (reader.offsets.client, reader.offsets.server), arrival: Arrival(mark)
    ) { take($0, $1, reader, connection) }
    reader.gapReason = .lost
    for record in reader.takeAllWaiting() { output.sink.receive(.channelRequest(record)) }
    reader.giveUp()
    releaseFates(reader, connection)
  }

  /// The last records of a connection before its own.
  mutating func endHTTP2(_ connection: Connection) {
    guard case .http2(let reader) = connection.reading else { return }
    for record in reader.takeAllWaiting() { output.sink.receive(.channelRequest(record)) }
    releaseFates(reader, connection)
  }

  private func http2Side(_ connection: Connection, _ fromHigh: Bool) -> HTTP2Side {
    fromHigh == (connection.clientIsHigh ?? false) ? .client : .server
  }

  private mutating func releaseFates(_ reader: HTTP2Reader, _ connection: Connection) {
    reader.fates.release(connection.number) { output.sink.receive($0) }
    var decided = reader.session.fates
    decided.unknown = 0
    settle(connection, decided)
  }

  // MARK: events

  private mutating func take(
    _ event: ProviderEvent, _ bytes: RawSpan, _ reader: HTTP2Reader, _ connection: Connection
  ) {
    switch event {
    case .providerToken(let token, let number): reader.note(token, number: number)
    case .request(let request): take(request, bytes, reader, connection)
    case .response(let response): take(response, bytes, reader, connection)
    case .fate(let decision): reader.fates.note(decision.notification, decision.fate, decision.cause)
    case .goAway(let lastStream, let error, let reason, let discarded, let open, let origin):
      let isServer = origin.side == .server
      output.sink.receive(
        .goAway(
          GoAwayRecord(
            place: place(origin, connection), direction: Direction(origin.side), lastStream: Int(lastStream),
            error: error.description, reason: reason?.rawValue, discarded: isServer ? discarded : nil,
            unknown: isServer ? open : nil)))
    case .reset(let stream, let error, let notification, let origin):
      output.sink.receive(
        .reset(
          ResetRecord(
            place: place(origin, connection), direction: Direction(origin.side), stream: Int(stream),
            error: error?.description, notification: notification)))
    case .settings(let settings, let origin):
      output.sink.receive(
        .settings(
          SettingsRecord(
            place: place(origin, connection), direction: Direction(origin.side),
            values: values(of: settings))))
    case .ping(let data, let isAcknowledgement, let origin):
      reader.note(
        ping: data, isAcknowledgement: isAcknowledgement, origin.side, Timestamp(nanoseconds: origin.arrival.time))
    case .violation(let violation, let origin): report(violation.description, origin, connection)
    case .missing(let origin, let losesTable):
      reader.noteLoss()
      if losesTable { reader.noteTableLoss(origin.side) }
      report(gap: origin, reader.gapReason, losesTable: losesTable, connection)
    case .tableLost(let side): reader.noteTableLoss(side)
    case .unread(let cause, let origin):
      reader.noteLoss()
      report(cause, origin, reader.gapReason, connection)
    }
  }

  /// Of a setting that is repeated the last value holds.
  private func values(of settings: [Setting]) -> [SettingsRecord.Value] {
    var values: [SettingsRecord.Value] = []
    // A frame may have 10,922 different ones.
    var places: [String: Int] = [:]
    for setting in settings {
      let value = SettingsRecord.Value(name: setting.name.description, value: Int(setting.value))
      if let place = places[value.name] {
        values[place] = value
      } else {
        places[value.name] = values.count
        values.append(value)
      }
    }
    return values
  }

  private func place(_ origin: FrameOrigin, _ connection: Connection) -> RecordPlace {
    RecordPlace(
      connection: connection.number, time: Timestamp(nanoseconds: origin.arrival.time),
      packet: origin.arrival.packet, offset: origin.offset, length: origin.length)
  }

  private func place(_ arrival: Arrival, _ offset: Int, _ length: Int, _ connection: Connection) -> RecordPlace {
    RecordPlace(
      connection: connection.number, time: Timestamp(nanoseconds: arrival.time), packet: arrival.packet,
      offset: offset, length: length)
  }

  private mutating func take(
    _ request: ProviderRequest, _ bytes: RawSpan, _ reader: HTTP2Reader, _ connection: Connection
  ) {
    let place = place(request.ended ?? request.latest, request.offset, request.length, connection)
    if let index = request.notification {
      output.summary.notifications += 1
      // With a certificate APNs ignores the field, so what is no token leaves nothing open.
      guard !request.hasOtherAuthorization || connection.clientSubject == nil else {
        var request = request
        request.uncertain.remove(.trust)
        return pass(request, bytes, at: place, index, reader, connection)
      }
      pass(request, bytes, at: place, index, reader, connection)
    } else if case .channel(let action) = request.target {
      var record = ChannelRequestRecord(place: place, stream: Int(request.stream), action: action)
      record.bundle = bytes.text(request.bundle)
      record.channelID = bytes.text(request.channelID)
      record.requestID = bytes.text(request.requestID)
      if let record = reader.wait(record, request.stream) { output.sink.receive(.channelRequest(record)) }
    }
  }

  private mutating func pass(
    _ request: ProviderRequest, _ bytes: RawSpan, at place: RecordPlace, _ index: Int, _ reader: HTTP2Reader,
    _ connection: Connection
  ) {
    output.sink.receive(
      ProviderNotificationRecord(
        request, bytes, at: place, index: index, trust: trust(request, connection),
        providerToken: reader.token(request.providerToken)))
  }

  /// A certificate is known from a handshake that was read; a terminator's connections have none to show.
  private func trust(_ request: ProviderRequest, _ connection: Connection) -> ProviderTrust? {
    if request.hasAuthorization { return .token }
    guard !request.uncertain.contains(.trust) else { return nil }
    if connection.clientSubject != nil { return .certificate }
    return connection.presentsNoCertificate ? ProviderTrust.none : nil
  }

  private mutating func take(
    _ response: ProviderResponse, _ bytes: RawSpan, _ reader: HTTP2Reader, _ connection: Connection
  ) {
    let place = place(response.ended ?? response.started, response.offset, response.length, connection)
    var record = ResponseRecord(place: place, stream: Int(response.stream))
    record.status = response.status
    record.reason = response.reason?.rawValue
    record.timestamp = response.timestamp
    record.apnsID = bytes.text(response.apnsID)
    record.apnsUniqueID = bytes.text(response.apnsUniqueID)
    record.channelID = bytes.text(response.channelID)
    record.requestID = bytes.text(response.requestID)
    record.notification = response.notification
    record.latencyNanoseconds = place.time.isKnown ? response.latency : nil
    record.isUncertain = response.isUncertain
    output.summary.responses += 1
    if let status = record.status, record.notification != nil, !(200...299).contains(status) {
      reader.noteRejection(status, record.reason)
    }
    output.sink.receive(.response(record))
    guard var request = reader.takeWaiting(response.stream) else { return }
    (request.status, request.reason) = (record.status, record.reason)
    request.channelID = request.channelID ?? record.channelID
    request.requestID = request.requestID ?? record.requestID
    request.latencyNanoseconds = record.latencyNanoseconds
    output.sink.receive(.channelRequest(request))
  }

  // MARK: damage

  /// Records of HTTP/2 have no bytes: they may be those of a credential.
  private mutating func report(_ problem: String, _ origin: FrameOrigin, _ connection: Connection) {
    output.receive(
      MalformedRecord(
        place: place(origin, connection), direction: Direction(origin.side), problem: problem, bytes: []))
  }

  private mutating func report(
    _ cause: HTTP2UnreadCause, _ origin: FrameOrigin, _ reason: GapRecord.Reason, _ connection: Connection
  ) {
    switch cause {
    case .beforeStart: report(gap: origin, .beforeCapture, losesTable: false, connection)
    case .afterGap: report("part of a frame that a gap cut", origin, connection)
    case .cut:
      report(gap: origin, reason == .givenUp ? .givenUp : .captureEnd, losesTable: false, connection)
    case .notHTTP2: report("not HTTP/2", origin, connection)
    }
  }

  private mutating func report(
    gap origin: FrameOrigin, _ reason: GapRecord.Reason, losesTable: Bool, _ connection: Connection
  ) {
    // What is given up has no length: it is whatever is open.
    guard origin.length > 0 || reason == .givenUp else { return }
    output.receive(
      GapRecord(
        place: place(origin, connection), direction: Direction(origin.side), reason: reason,
        losesHeaderTable: losesTable))
  }
}

extension Arrival {
  init(_ mark: CapturePosition) { self.init(time: mark.time.nanoseconds, packet: mark.packet) }
}

extension Direction {
  init(_ side: HTTP2Side) { self = side == .client ? .client : .server }
}

extension RawSpan {
  /// The text of a field; `nil` if it is absent.
  func text(_ field: ByteField) -> String? {
    field.isPresent ? String(decoding: Array(copying: extracting(field.range)), as: UTF8.self) : nil
  }
}
