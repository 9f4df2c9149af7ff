import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// The counts of an open connection.
///
/// A value in an array, like `ClientStream`, for locality.
struct ConnectionTally {
  let number: Int
  let opened: Timestamp
  /// Notifications by command: 0, 1, and 2.
  var commands = InlineArray<3, Int>(repeating: 0)
  var firstError: ErrorResponseRecord?
  /// Whether a response showed that nothing after `named` was read.
  var isTerminated = false
  var named = -1
  /// The error response to which losses of this connection belong (`TrackedNotifications.beginLoss`).
  var loss = -1
  /// The index in the inspection's `losses` of the response whose losses these are.
  var lossRow: Int?
  var lastPacket = 0
  /// Error responses with status 8 that name a token.
  var invalidTokens = 0
  /// Whether a record of the connection is selected.
  var isShown = true
  /// Whether an error response was received.
  var isAnswered = false
  /// Not all that the gateway sent is in the recording.
  var lacksAnswers = false
  /// The place of the connection's latest notification in the history; -1: none.
  private(set) var latest = -1
  /// Notifications so far, including unselected ones.
  private(set) var written = 0

  init(number: Int, opened: Timestamp) {
    self.number = number
    self.opened = opened
  }

  /// - Parameter known: the digest of the notification's identity, if it is known.
  @inline(__always)
  mutating func note(
    _ fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int, digest known: UInt64? = nil,
    isSelected: Bool, _ shared: inout SharedTally
  ) {
    if !isSelected { return note(other: fields, frame, place, index: index, &shared) }
    let command = fields.command.rawValue
    commands[command > 1 ? 2 : Int(command)] += 1
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    shared.note(fields, token, payload, place)
    let digest =
      known
      ?? NotificationIdentity.digest(
        token: token, payload: payload, hasPayload: fields.payload.isPresent)
    let sent = SentNotification(fields, digest: digest, at: place, index: index, isSelected: true)
    shared.judge(fields, frame, sent, place)
    note(sent, token, payload, place, &shared)
  }

  /// Notes a notification that is not selected, and therefore not counted.
  @inline(never)
  private mutating func note(
    other fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int,
    _ shared: inout SharedTally
  ) {
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    let digest = NotificationIdentity.digest(
      token: token, payload: payload, hasPayload: fields.payload.isPresent)
    let sent = SentNotification(fields, digest: digest, at: place, index: index, isSelected: false)
    shared.judgeOther(fields, frame, sent, place)
    note(sent, token, payload, place, &shared)
  }

  /// A frame with bad items: its fields are unreliable and not counted.
  mutating func note(
    malformed fields: PushFields, _ frame: RawSpan, _ place: RecordPlace, index: Int, isSelected: Bool,
    _ shared: inout SharedTally
  ) {
    if isSelected { commands[2] += 1 }
    let token = frame.extracting(fields.token.range)
    let payload = frame.extracting(fields.payload.range)
    if isSelected { shared.note(time: place.time) }
    let digest = NotificationIdentity(fields, frame, isMalformed: true).digest
    let sent = SentNotification(fields, digest: digest, at: place, index: index, isSelected: isSelected)
    note(sent, token, payload, place, &shared)
  }

  /// A notification of the provider API, whose sending is returned, and what its payload is, if that was judged.
  mutating func note(
    _ record: borrowing ProviderNotificationRecord, isSelected: Bool, _ shared: inout SharedTally
  ) -> (SentNotification, PayloadVerdict?) {
    let sent = SentNotification(record, isSelected: isSelected)
    let verdict = shared.note(record, isSelected: isSelected)
    // Requests end in another order than that of their numbers, so they form no chain.
    var latest = -1
    shared.history.append(
      sent, token: record.bytes(of: record.request.token), payload: record.bytes(of: record.request.payload),
      packet: record.place.packet, loss: -1, latest: &latest)
    if shared.history.waiting == SentHistory.lag { shared.trackNext() }
    lastPacket = record.place.packet
    return (sent, verdict)
  }

  @inline(__always)
  private mutating func note(
    _ sent: SentNotification, _ token: RawSpan, _ payload: RawSpan, _ place: RecordPlace, _ shared: inout SharedTally
  ) {
    shared.history.append(
      sent, token: token, payload: payload, packet: place.packet, loss: isTerminated ? loss : -1, latest: &latest)
    if shared.history.waiting == SentHistory.lag { shared.trackNext() }
    lastPacket = place.packet
    written = sent.index + 1
  }
}
