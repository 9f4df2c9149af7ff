import BinaryProtocol
import Bytes
import PacketCapture
import ProviderAPI
import PushModel
import Records

/// Passes records to another sink with everything redacted but what is known to be structure: counts, times, lengths,
/// fates, positions, and sentences of apnscope.
package struct RedactedRecords: RecordSink {
  /// Receives the redacted records. An existential as in `SelectedRecords`: hashing a token costs more than the call.
  private var sink: any RecordSink
  private let redaction: Redaction
  private let limits: ProviderSession.Limits
  private let memory: Int
  /// The connections over HTTP/2 that are written again, if the sink takes their bytes.
  private var streams: [Int: RedactedHTTP2] = [:]
  private var heldBytes = 0

  /// - Parameters:
  ///   - limits: on connections over HTTP/2.
  ///   - memory: the most bytes for all connections over HTTP/2 that are written again. One beyond it is not.
  package init(
    _ sink: some RecordSink, _ redaction: Redaction, limits: ProviderSession.Limits = ProviderSession.Limits(),
    memory: Int = 64 << 20
  ) {
    self.sink = sink
    self.redaction = redaction
    (self.limits, self.memory) = (limits, memory)
  }

  package var isOpen: Bool { sink.isOpen }

  package mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let frame = redaction.frame(fields, frame)
    sink.receive(fields, frame.rawBytes, at: place, index: index)
  }

  package mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let frame = redaction.frame(fields, frame)
    sink.receive(malformed: RedactedText.problem(problem), fields, frame.rawBytes, at: place, index: index)
  }

  package mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    let (request, bytes) = redaction.request(record)
    sink.receive(
      ProviderNotificationRecord(
        request, bytes.rawBytes, at: record.place, index: record.index, trust: record.trust,
        providerToken: record.providerToken.map(redaction.token)))
  }
  package mutating func receive(_ record: ProviderRecord) { sink.receive(redaction.record(record)) }
  package mutating func receive(_ record: MessageRecord) { sink.receive(redaction.record(record)) }

  package var takesHTTP2: Bool { sink.takesHTTP2 }
  package mutating func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {
    let connection = place.connection
    var stream =
      streams.removeValue(forKey: connection) ?? RedactedHTTP2(redaction, connection: connection, limits: limits)
    heldBytes -= stream.heldBytes
    stream.read(bytes, at: place, direction) { sink.receive(http2: $0, at: $1, $2) }
    if heldBytes + stream.heldBytes > memory { stream.giveUp() }
    heldBytes += stream.heldBytes
    streams[connection] = stream
  }

  /// Whether a connection over HTTP/2 was written again to its last byte.
  private mutating func endHTTP2(_ record: ConnectionRecord) -> Bool {
    guard var stream = streams.removeValue(forKey: record.connection) else { return false }
    heldBytes -= stream.heldBytes
    stream.finish { sink.receive(http2: $0, at: $1, $2) }
    return stream.isWhole && stream.readBytes == (record.clientBytes, record.serverBytes)
  }

  package mutating func receive(_ record: borrowing FeedbackRecord) {
    let token = redaction.token(record.tuple.token)
    let tuple = FeedbackTuple(timestamp: record.tuple.timestamp, token: token.rawBytes)
    sink.receive(FeedbackRecord(place: record.place, index: record.index, tuple: tuple))
  }

  package mutating func receive(_ record: MalformedRecord) {
    var record = record
    record.bytes = [UInt8](repeating: 0, count: record.bytes.count)
    record.problem = RedactedText.problem(record.problem)
    sink.receive(record)
  }

  package mutating func receive(_ record: ConnectionRecord) {
    var record = record
    record.client = record.client.map(redaction.endpoint)
    record.server = record.server.map(redaction.endpoint)
    record.alsoSeenAs = record.alsoSeenAs.map {
      ConnectionEnds(client: redaction.endpoint($0.client), server: redaction.endpoint($0.server))
    }
    record.flow = record.flow.map(redaction.flow)
    record.http2 = record.http2.map(redaction.summary)
    record.outline.areFramesWhole = endHTTP2(record)
    if var tls = record.tls {
      tls.clientSubject = tls.clientSubject.map(redaction.subject)
      tls.problem = tls.problem.map(RedactedText.problem)
      tls.alert = tls.alert.map(RedactedText.problem)
      record.tls = tls
    }
    sink.receive(record)
  }

  package mutating func receive(_ record: CaptureRecord) { sink.receive(redaction.capture(record)) }
  package mutating func receive(_ record: CaptureLossRecord) {
    var record = record
    record.loss.interface = record.loss.interface.map(redaction.label)
    sink.receive(record)
  }
  package mutating func receive(_ record: DeliveryRecord) {
    var record = record
    record.token = redaction.token(record.token.rawBytes)
    sink.receive(record)
  }
  package mutating func receive(_ outcome: CaptureOutcome) {
    var outcome = outcome
    outcome.source = redaction.label(outcome.source)
    sink.receive(outcome)
  }

  package mutating func receiveEarly(_ record: ErrorResponseRecord) { sink.receiveEarly(record) }
  package mutating func receive(_ record: ErrorResponseRecord) { sink.receive(record) }
  package mutating func receive(_ record: FateRecord) { sink.receive(record) }
  package mutating func receiveEarly(_ record: FateRecord) { sink.receiveEarly(record) }
  package mutating func receive(_ record: GapRecord) { sink.receive(record) }
  package mutating func receive(_ record: SummaryRecord) { sink.receive(record) }
  package mutating func opened(connection: Int, at time: Timestamp) { sink.opened(connection: connection, at: time) }
  /// Payload rules depend on the topic, so the sink gets the real one; no record shows it.
  package mutating func presented(subject: String, connection: Int) {
    sink.presented(subject: subject, connection: connection)
  }
  package mutating func ended(connection: Int) { sink.ended(connection: connection) }
  package mutating func segment(notifications: Int, at time: Timestamp) {
    sink.segment(notifications: notifications, at: time)
  }
  package var takesWholeRecording: Bool { sink.takesWholeRecording }
  package mutating func mark(isSelected: Bool) { sink.mark(isSelected: isSelected) }
  package mutating func select(connection: Int) { sink.select(connection: connection) }
  package mutating func pause() { sink.pause() }
}

extension Redaction {
  /// Redacts the file's name and the selection.
  func capture(_ record: CaptureRecord) -> CaptureRecord {
    var record = record
    record.source = label(record.source)
    record.selection = record.selection.map(RedactedText.selection)
    return record
  }
}

/// Passes stories to another sink, redacted like records.
package final class RedactedStories: StorySink {
  private let sink: any StorySink
  private let redaction: Redaction

  package init(_ sink: some StorySink, _ redaction: Redaction) {
    self.sink = sink
    self.redaction = redaction
  }

  package var isOpen: Bool { sink.isOpen }
  package func flush() { sink.flush() }
  package func receive(_ record: CaptureRecord) { sink.receive(redaction.capture(record)) }
  package func begin(_ story: StoryRecord) {
    var story = story
    story.token = story.token.map { redaction.token($0.rawBytes) }
    story.payload = story.payload.map(redaction.payload)
    story.topic = story.topic.map(redaction.topics)
    sink.begin(story)
  }
  package func receive(_ sending: SendingRecord) { sink.receive(sending) }
  package func endStory() { sink.endStory() }
  package func receive(_ token: TokenRecord) {
    var token = token
    token.token = redaction.token(token.token.rawBytes)
    token.topic = token.topic.map(redaction.topics)
    sink.receive(token)
  }
  package func receive(_ summary: StorySummary) { sink.receive(summary) }
}
