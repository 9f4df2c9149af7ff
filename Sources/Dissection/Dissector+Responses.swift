import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// Handles what the binary protocol's servers send: error responses, which settle notifications, and feedback tuples.
extension Dissector {
  /// Passes on the error responses that were held for their final counts.
  mutating func releaseResponses(_ connection: Connection) {
    guard case .binary(let reader) = connection.reading else { return }
    for index in reader.seen.indices where reader.seen[index].record.notification == nil {
      resolve(&reader.seen[index], connection)
      clientStreams[connection.slot].reportFates(to: &output.sink)
      output.sink.receiveEarly(reader.seen[index].record)
    }
    for seen in reader.seen {
      var response = seen.record
      response.acknowledged = clientStreams[connection.slot].acknowledged(by: seen.mark)
      if let named = response.notification {
        response.discarded = clientStreams[connection.slot].session.discarded(after: named)
      }
      output.sink.receive(response)
    }
    reader.seen = []
    reader.waiting = 0
  }

  mutating func readResponses(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    // A provider may send frames to a server of another protocol, whose answer shows this.
    if offset == 0, connection.otherProtocol == nil {
      connection.otherProtocol = OtherProtocol(
        beginning: Array(copying: bytes.extracting(0..<min(OtherProtocol.longest, bytes.byteCount))))
      // Frames of HTTP/2 contain bytes that look like error responses.
      if connection.otherProtocol == .http2 {
        return makeOpaque(connection, fromHigh: connection.clientIsHigh == false)
      }
    }
    guard case .binary(let reader) = connection.reading else { return }
    reader.framer.read(bytes, at: offset, mark: mark) {
      response($0, $1, $2, reader, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  private mutating func response(
    _ bytes: RawSpan, _ offset: Int, _ mark: CapturePosition, _ reader: ResponseReader, _ connection: Connection
  ) {
    var position = 0
    guard let response = try? ErrorResponse(parsing: bytes, at: &position) else { return }
    note(response, at: offset, mark, reader, connection)
  }

  private mutating func note(
    _ response: ErrorResponse, at offset: Int, _ mark: CapturePosition, _ reader: ResponseReader,
    _ connection: Connection
  ) {
    reader.count += 1
    output.summary.errorResponses += 1
    output.summary.errorsByRejection[.status(response.status), default: 0] += 1
    var record = ErrorResponseRecord(
      place: RecordPlace(
        connection: connection.number, time: mark.time, packet: mark.packet, offset: offset,
        length: ErrorResponse.length),
      response: response, candidates: 0)
    let before = clientStreams[connection.slot].session.written
    let isHeld = reader.seen.count < options.maximumHeldResponses
    if isHeld && mark.isAhead {
      reader.waiting += 1
      return reader.seen.append(.init(record: record, mark: mark, before: before, isWaiting: true))
    }
    // Nothing that this response acknowledges is missing, so neither is what earlier ones acknowledged.
    for index in reader.seen.indices.suffix(reader.waiting) {
      resolve(&reader.seen[index], connection)
      if reader.seen[index].record.notification != nil {
        output.sink.receiveEarly(reader.seen[index].record)
      }
    }
    reader.waiting = 0
    let (verdict, latency) = clientStreams[connection.slot].receive(response, at: mark)
    settleDecided(connection)
    note(verdict, latency, in: &record, connection)
    // One that names nothing yet may name a notification when the connection has ended.
    if record.notification != nil || !isHeld { output.sink.receiveEarly(record) }
    if isHeld {
      reader.seen.append(.init(record: record, mark: mark, before: before, isWaiting: false))
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

  /// Counts what responses have decided while the connection is open.
  private mutating func settleDecided(_ connection: Connection) {
    var decided = clientStreams[connection.slot].session.fates
    (decided.discarded, decided.unknown) = (0, 0)
    settle(connection, decided)
  }

  /// Resolves a response after it was seen: what it acknowledges, or notifications buffered after missing bytes,
  /// arrived later.
  private mutating func resolve(_ seen: inout ResponseReader.Seen, _ connection: Connection) {
    let (verdict, latency) = clientStreams[connection.slot].receiveLate(
      seen.record.response, at: seen.mark, after: seen.before)
    if seen.isWaiting || verdict.notification != nil { note(verdict, latency, in: &seen.record, connection) }
    seen.isWaiting = false
    settleDecided(connection)
  }

  mutating func readFeedback(_ bytes: RawSpan, at offset: Int, _ mark: CapturePosition, _ connection: Connection) {
    guard case .feedback(let reader) = connection.reading else { return }
    reader.framer.read(bytes, at: offset, mark: mark) {
      tuple($0, $1, $2, reader, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  private mutating func tuple(
    _ bytes: RawSpan, _ offset: Int, _ mark: CapturePosition, _ reader: FeedbackReader, _ connection: Connection
  ) {
    let place = RecordPlace(
      connection: connection.number, time: mark.time, packet: mark.packet, offset: offset, length: bytes.byteCount)
    output.sink.receive(
      FeedbackRecord(place: place, index: reader.count, tuple: FeedbackTuple(record: bytes)))
    reader.count += 1
    output.summary.feedbackTuples += 1
  }

  /// A response with a command byte other than 8 counts only if the gateway sent nothing else, which is known at the
  /// end of its direction; so it is reported late.
  mutating func readWholeAnswer(_ connection: Connection) {
    guard case .binary(let reader) = connection.reading, connection.startWasCaptured,
      let (bytes, mark) = reader.framer.unreadable(ofLength: ErrorResponse.length),
      let response = ErrorResponse(wholeAnswer: bytes.rawBytes)
    else { return }
    reader.framer.dropUnreadable()
    note(response, at: 0, mark, reader, connection)
  }

  mutating func readFoundResponses(_ connection: Connection) {
    guard case .binary(let reader) = connection.reading else { return }
    reader.framer.readFound {
      response($0, $1, $2, reader, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }

  mutating func readFoundFeedback(_ connection: Connection) {
    guard case .feedback(let reader) = connection.reading else { return }
    reader.framer.readFound {
      tuple($0, $1, $2, reader, connection)
    } damage: {
      output.report($0, .server, connection.number)
    }
  }
}
