import BinaryProtocol
import Bytes
import Measurement
import PacketCapture
import PushModel
import Records

/// Follows each distinct notification of a recording through all of its sendings, in bounded memory, and exactly for
/// recordings of any size: what does not fit goes to unnamed files.
///
/// It is a sink: read the recording into it, once, then call `write()`. A notification's fate is known when its
/// connection has ended, and its other sendings when everything was read. So rows are kept and sorted four times: by
/// connection, where fates meet notifications; by content, where sendings meet; by token; and by time, for the output.
package final class StoryCollector: RecordSink {
  package struct Options: Sendable {
    package var selection = RecordSelection()
    /// The outcomes that are wanted; empty: all.
    package var outcomes: Set<StoryOutcome> = []
    /// Unselected stories are emitted too, marked as such.
    package var writesOthers = false
    /// Whether stories and tokens are wanted.
    package var writesStories = true
    package var writesTokens = true
    /// Only tokens that were listed, or rejected as invalid, after they were last accepted.
    package var writesOnlyDeadTokens = false
    /// Nanoseconds after an accepted sending from which another is a repeat on purpose.
    package var repeatAfter: Int64 = 600_000_000_000
    /// Nanoseconds within which providers resend what was discarded, unless the recording shows that they take longer:
    /// what was discarded within this time before its end, or after its beginning, is open and not lost.
    package var resendWithin = UnseenSendings.usualResendWithin
    /// Other connections of the recording are not read.
    package var isPart = false
    /// Bytes of memory for rows and contents; what exceeds it goes to unnamed files.
    package var memory = 256 << 20
    /// The folder of the unnamed files.
    package var folder = "/tmp"
    package init() {}
  }

  let options: Options
  let output: any StorySink
  var selection: StorySelection
  var contents: ContentStore
  var byConnection: RowSorter<ConnectionOrder>?
  /// The topic of all connections that show one.
  var onlyTopic: (key: ContentKey, place: Int)?
  var hasSeveralTopics = false
  /// The latest time that was seen.
  var end = Timestamp.none
  var unseen: UnseenSendings
  private(set) var summary = SummaryRecord()
  /// The reasons of answers over HTTP/2, in the order in which they came.
  private(set) var reasons: [String] = []
  private var reasonNumbers: [String: UInt16] = [:]
  /// Why a temporary file cannot be used; nothing more is taken then.
  private(set) var failure: UnnamedFile.Failure?

  package init(_ options: Options, into output: any StorySink) {
    self.options = options
    self.output = output
    selection = StorySelection(options.selection)
    contents = ContentStore(memory: options.memory / 8, folder: options.folder)
    byConnection = RowSorter(memory: options.memory / 2, folder: options.folder)
    unseen = UnseenSendings(resendWithin: options.resendWithin, isPart: options.isPart)
  }

  package var isOpen: Bool { failure == nil && output.isOpen }

  /// Whether something did not fit into memory.
  var hasSpilled: Bool { byConnection?.hasSpilled == true }

  package func pause() { output.flush() }

  // MARK: records

  package func receive(_ record: CaptureRecord) {
    unseen.note(record)
    var record = record
    record.selection +=
      options.selection.options
      + StoryOutcome.allCases.filter(options.outcomes.contains)
      .map { "--outcome=\($0.name)" }
    output.receive(record)
  }

  package func receive(_ outcome: CaptureOutcome) {
    note(outcome.lastTime)
    unseen.note(outcome)
  }

  package func receive(_ record: CaptureLossRecord) { unseen.note(record) }

  package func opened(connection: Int, at time: Timestamp) {
    if time.isKnown { selection.noteStart(time) }
    unseen.note(time)
  }

  package func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    keep(fields, frame, place, index, isMalformed: false)
  }

  package func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    keep(fields, frame, place, index, isMalformed: true)
  }

  private func keep(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, _ index: Int, isMalformed: Bool
  ) {
    var row = StoryRow(.sending, connection: place.connection, index: index)
    row.time = place.time.nanoseconds
    row.packet = place.packet
    if let identifier = fields.identifier {
      row.identifier = identifier
      row.flags.insert(.hasIdentifier)
    }
    if let expiration = fields.expiration {
      row.expiration = expiration
      row.flags.insert(.hasExpiration)
    }
    if isMalformed { row.flags.insert(.isMalformed) }
    if fields.token.length > 0 { row.flags.insert(.hasToken) } else if !isMalformed { row.flags.insert(.lacksToken) }
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    if selection.takes(place, token: token, identifier: fields.identifier) { row.flags.insert(.isSelected) }
    let identity = NotificationIdentity(fields, frame, isMalformed: isMalformed)
    if identity.isRecognisable { row.flags.insert(.isRecognisable) }
    let keys = identity.keys
    // Equal payloads without a token are not known to be one notification.
    row.content = token.byteCount > 0 ? keys.notification : ContentKey(ofSending: index, on: place.connection)
    row.token = keys.token
    do throws(UnnamedFile.Failure) {
      if fields.token.isPresent { row.tokenPlace = try contents.keep(token, key: row.token) }
      if fields.payload.isPresent { row.payloadPlace = try contents.keep(payload, key: keys.payload) }
      try byConnection?.append(row)
    } catch {
      failure = error
    }
    note(place.time)
  }

  package func receive(_ record: FateRecord) {
    var row = StoryRow(.fate, connection: record.connection, index: record.first)
    row.last = record.last
    row.fate = FateCode(record.fate)
    row.discardCause = record.cause
    keep(row)
  }

  // MARK: HTTP/2

  package func receive(_ record: borrowing ProviderNotificationRecord) {
    let (request, place) = (record.request, record.place)
    var row = StoryRow(.sending, connection: place.connection, index: record.index)
    row.flags = .isRequest
    (row.time, row.packet) = (place.time.nanoseconds, place.packet)
    if request.expiration != nil {
      row.expiration = record.clampedExpiration
      row.flags.insert(.hasExpiration)
    }
    let token = record.bytes(of: request.token)
    let topic = record.text(of: request.topic)
    if selection.takes(requestAt: place, token: token, topic: topic) { row.flags.insert(.isSelected) }
    if record.isRecognisable {
      row.flags.insert(.isRecognisable)
    } else {
      unseen.noteUncertain(hasEnded: request.completion == .complete)
    }
    let keys = record.identityKeys
    (row.content, row.token) = (keys.notification, keys.token)
    do throws(UnnamedFile.Failure) {
      if request.token.isPresent {
        row.flags.insert(.hasToken)
        row.tokenPlace = try contents.keep(token, key: row.token)
      }
      if request.isPayloadWhole {
        row.payloadPlace = try contents.keep(record.bytes(of: request.payload), key: keys.payload)
      }
      if let topic {
        let bytes = record.bytes(of: request.topic)
        row.topic = ContentKey(topics: [topic])
        row.topicPlace = try contents.keep(bytes, key: row.topic)
      } else if !request.uncertain.contains(.topic) {
        row.flags.insert(.hasTopicOfConnection)
      }
      try byConnection?.append(row)
    } catch {
      failure = error
    }
    note(place.time)
  }

  package func receive(_ record: ProviderRecord) {
    note(record.place.time)
    var row = StoryRow(.response, connection: record.place.connection, index: -1)
    row.flags = .isRequest
    (row.time, row.packet) = (record.place.time.nanoseconds, record.place.packet)
    switch record {
    case .response(let response):
      guard let notification = response.notification else { return }
      row.index = notification
      if let status = response.status, let code = UInt16(exactly: status) {
        row.status = code
        row.flags.insert(.hasStatus)
      }
      row.reason = response.reason.map { number(ofReason: $0) } ?? 0
      if response.status == 410, let time = response.timestamp, let second = UInt32(exactly: time / 1_000) {
        row.expiration = second
        row.flags.insert(.isGone)
      }
    case .reset(let reset):
      guard reset.direction == .server, let notification = reset.notification else { return }
      row.index = notification
    case .goAway(let goAway):
      guard goAway.direction == .server else { return }
    case .settings, .channelRequest: return
    }
    keep(row)
  }

  package func receive(_ record: MessageRecord) { note(record.place.time) }

  /// Reasons beyond the limit count as none.
  private func number(ofReason reason: String) -> UInt16 {
    if let known = reasonNumbers[reason] { return known }
    guard reasons.count < Self.maximumReasons else { return 0 }
    reasons.append(reason)
    reasonNumbers[reason] = UInt16(reasons.count)
    return UInt16(reasons.count)
  }

  private static let maximumReasons = 1_024

  // MARK: further records

  package func receive(_ record: ErrorResponseRecord) {
    note(record.place.time)
    unseen.note(record)
    guard let named = record.notification else { return }
    var row = StoryRow(.response, connection: record.place.connection, index: named)
    row.status = UInt16(record.response.status.rawValue)
    row.packet = record.place.packet
    row.time = record.place.time.nanoseconds
    keep(row)
  }

  package func receive(_ record: borrowing FeedbackRecord) {
    note(record.place.time)
    guard options.writesTokens, record.tuple.token.byteCount > 0 else { return }
    var row = StoryRow(.feedback, connection: record.place.connection, index: record.index)
    row.time = record.place.time.nanoseconds
    row.packet = record.place.packet
    row.expiration = record.tuple.timestamp
    row.token = ContentKey(record.tuple.token, in: .present)
    if selection.takes(feedbackAt: record.place, token: record.tuple.token) { row.flags.insert(.isSelected) }
    do throws(UnnamedFile.Failure) {
      row.tokenPlace = try contents.keep(record.tuple.token, key: row.token)
      try byConnection?.append(row)
    } catch {
      failure = error
    }
  }

  package func receive(_ record: ConnectionRecord) {
    note(record.closed)
    unseen.note(record)
    var row = StoryRow(.connection, connection: record.connection, index: -1)
    let topics = record.tls?.topics ?? []
    if selection.takes(topics: topics) { row.flags.insert(.isSelected) }
    if !topics.isEmpty {
      let name = Array(topics.joined(separator: " ").utf8)
      row.topic = ContentKey(topics: topics)
      do throws(UnnamedFile.Failure) {
        row.topicPlace = try contents.keep(name.rawBytes, key: row.topic)
      } catch {
        failure = error
      }
      // Requests are not taken to be of another connection's topic.
      if record.http2 == nil {
        if let onlyTopic, onlyTopic.key != row.topic { hasSeveralTopics = true }
        onlyTopic = (row.topic, row.topicPlace)
      }
    }
    keep(row)
  }

  package func receive(_ record: SummaryRecord) { summary = record }

  private func note(_ time: Timestamp) {
    if time > end {
      end = time
      unseen.note(time)
    }
  }

  private func keep(_ row: StoryRow) {
    do throws(UnnamedFile.Failure) { try byConnection?.append(row) } catch { failure = error }
  }

  // MARK: ignored records

  package func receive(_ record: GapRecord) {
    note(record.place.time)
    unseen.note(record)
  }
  package func receive(_ record: MalformedRecord) { note(record.place.time) }
}

extension ContentKey {
  static let absent = ContentKey(high: 0, low: 1)
  static let present = ContentKey(high: 0, low: 2)
}
