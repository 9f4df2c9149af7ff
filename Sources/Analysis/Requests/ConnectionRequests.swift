import PacketCapture
import ProviderAPI
import Records

/// The state of an open connection over HTTP/2 during an inspection.
struct ConnectionRequests {
  /// A notification without an answer.
  struct Pending {
    var sent: SentNotification
    var packet: Int
    /// Of token and topic; `nil`: one of them is uncertain.
    var addressee: UInt64?
    var isRecognisable: Bool
  }

  /// Notifications that were written after a pause, before anything came from the gateway.
  struct AfterPause {
    var from: Timestamp
    var packet: Int
    var count: Int
  }

  /// The latest provider token.
  private struct Token {
    var number: Int
    var content: ProviderToken?
  }

  /// Notifications and answers.
  var notifications = 0
  var badDeviceTokens = 0
  /// The bytes of selected notifications without their payloads, where they are known.
  var headerBytes = 0
  /// Bytes of the gateway, or of either side, are missing.
  var lacksAnswers = false
  var hasGap = false
  var pending: [Int: Pending] = [:]
  /// The loss to which its discarded notifications belong (`TrackedNotifications.beginLoss`).
  var loss = -1
  /// Different provider tokens whose content is known.
  private(set) var tokens: [ProviderToken] = []
  private var latestToken: Token?
  private var excluding: (lastStream: Int, since: Timestamp)?
  /// Notifications on a connection that allowed many streams.
  private var alone = 0
  private var isBusy = false
  private var waited: Int64 = 0
  private var firstAlone = Timestamp.none
  private var lastAnswered = Timestamp.none
  private var latest = Timestamp.none
  private(set) var afterPause: AfterPause?
  /// Notifications on more streams than were allowed, as far as known: what closed others may be missing.
  private(set) var overLimit: (count: Int, packet: Int)?

  /// The fewest notifications one at a time that show a pattern, and the least limit on streams that they leave unused.
  private static let (fewestAlone, unusedLimit) = (20, 100)
  private static let maximumTokens = 64
  private static let second: Int64 = 1_000_000_000
  private static let pause = 60 * second
  private static let renewal = 20 * 60

  // MARK: notifications

  /// Notes a notification, and returns what is to be said of it.
  mutating func note(
    _ record: borrowing ProviderNotificationRecord, openStreams: Int?, streamLimit: Int?
  ) -> [FindingOfRequest] {
    notifications += 1
    var found: [FindingOfRequest] = []
    let time = record.firstTime
    if noteToken(record) { found.append(.tokenRenewedOften) }
    if let excluding, Int(record.request.stream) > excluding.lastStream,
      let after = record.started.nanoseconds(since: excluding.since), after >= Self.second
    {
      found.append(.writtenAfterGoAway)
    }
    noteStreams(record, openStreams, streamLimit)
    if let openStreams, let streamLimit, openStreams > streamLimit {
      if overLimit == nil { overLimit = (0, record.place.packet) }
      overLimit?.count += 1
    }
    if afterPause != nil {
      afterPause?.count += 1
    } else if pending.isEmpty, let silence = time.nanoseconds(since: latest), silence >= Self.pause {
      afterPause = AfterPause(from: time, packet: record.place.packet, count: 1)
    }
    note(record.place.time)
    return found
  }

  private mutating func note(_ time: Timestamp) { if time.isKnown, time > latest { latest = time } }

  /// Whether the notification has a token that was renewed too early.
  private mutating func noteToken(_ record: borrowing ProviderNotificationRecord) -> Bool {
    guard let number = record.request.providerToken, number > latestToken?.number ?? 0 else { return false }
    let before = latestToken?.content
    latestToken = Token(number: number, content: record.providerToken)
    guard let token = record.providerToken else { return false }
    if tokens.count < Self.maximumTokens { tokens.append(token) }
    guard let before, before.keyID == token.keyID, before.teamID == token.teamID,
      let issued = token.issuedAt, let earlier = before.issuedAt
    else { return false }
    let (apart, isOver) = issued.subtractingReportingOverflow(earlier)
    return !isOver && apart > -Self.renewal && apart < Self.renewal
  }

  private mutating func noteStreams(_ record: borrowing ProviderNotificationRecord, _ open: Int?, _ limit: Int?) {
    if open ?? 2 > 1 { isBusy = true }
    guard let limit, limit >= Self.unusedLimit else { return }
    alone += 1
    if !firstAlone.isKnown { firstAlone = record.firstTime }
  }

  // MARK: other records

  /// Notes an answer, and returns the notification that it is of.
  mutating func note(_ record: ResponseRecord) -> Pending? {
    noteServer(record.place.time)
    guard let notification = record.notification else { return nil }
    if let latency = record.latencyNanoseconds, alone > 0 {
      waited += latency
      lastAnswered = record.place.time
    }
    if record.reason == "BadDeviceToken" { badDeviceTokens += 1 }
    return pending.removeValue(forKey: notification)
  }

  mutating func note(_ record: GoAwayRecord) {
    guard record.direction == .server else { return note(record.place.time) }
    noteServer(record.place.time)
    if excluding == nil || record.lastStream < excluding?.lastStream ?? 0 {
      excluding = (record.lastStream, record.place.time)
    }
  }

  /// Something came from the gateway.
  mutating func noteServer(_ time: Timestamp) {
    note(time)
    afterPause = nil
  }

  mutating func noteGap(_ direction: Direction) {
    hasGap = true
    if direction == .server { lacksAnswers = true }
    isBusy = true
    afterPause = nil
  }

  // MARK: the end

  /// One notification was open at a time, most of the time was spent waiting for answers, and many streams were allowed.
  var leavesStreamsUnused: Bool {
    guard !isBusy, !hasGap, alone >= Self.fewestAlone, let time = lastAnswered.nanoseconds(since: firstAlone) else {
      return false
    }
    return waited >= time / 2
  }
}

/// A finding about one notification beside what was seen before it.
enum FindingOfRequest {
  case tokenRenewedOften, writtenAfterGoAway, retryStorm, sentAfterUnregistered
}
