import BinaryProtocol
import Measurement
import PacketCapture

/// Facts about a story after all of its sendings were added, in a form for memory and files.
struct StoryFacts: BitwiseCopyable {
  var first: StoryRow
  /// The outcome by the captured sendings alone.
  var seen: StoryOutcome
  /// One of its sendings was selected.
  var isSelected: Bool
  /// Its content was sent on several connections, of which only some show their topic.
  var isOfUnknownProvider = false
  var sent: Int
  var lastTime: Int64
  /// The time of the accepted sending, in nanoseconds.
  var acceptedTime: Int64

  /// The longest time from a sending that was not accepted to the next sending, in nanoseconds.
  var longestResend: Int64

  /// The outcome, as far as it is proven; if it is open, also the reason.
  func outcome(in unseen: UnseenSendings.View) -> (outcome: StoryOutcome, reason: OpenReason?) {
    let isRequest = first.flags.contains(.isRequest)
    if seen == .open { return (.open, isRequest ? .unanswered : .unknownFate) }
    let reason = unseen.reason(
      against: seen, first: first.time, last: lastTime, topic: first.topic,
      isOfUnknownProvider: isOfUnknownProvider, isRequest: isRequest)
    return reason == nil ? (seen, nil) : (.open, reason)
  }

  /// Nanoseconds from the first sending to the accepted one, of a recovered notification with times.
  var recoveredAfter: Int64? {
    guard seen == .recovered else { return nil }
    return Timestamp(nanoseconds: acceptedTime).nanoseconds(since: Timestamp(nanoseconds: first.time))
  }

  /// Nanoseconds from the last sending to the end of the recording, of a notification with times whose sendings were all
  /// discarded.
  func observedFor(until end: Timestamp) -> Int64? {
    guard seen == .lost else { return nil }
    return end.nanoseconds(since: Timestamp(nanoseconds: lastTime)).map { max(0, $0) }
  }
}

/// Decides what became of a notification, whose sendings come in order of time.
struct StoryFold {
  let first: StoryRow
  private(set) var sent = 0
  private var accepted = 0
  private var acceptedFirst = false
  private var hasPassed = false
  private var hasUnknown = false
  private var hasRejected = false
  private var isSelected = false
  private var lastTime = Timestamp.none
  private var lastAccepted = Timestamp.none
  private var lastWasAccepted = false
  private var longestResend: Int64 = 0

  init(_ first: StoryRow) {
    self.first = first
    add(first)
  }

  var place: SendingPlace { first.place }

  /// Whether a sending belongs to this story: the content is the same, and it is not an intentional repeat.
  ///
  /// - Parameter repeatAfter: nanoseconds after the last accepted sending from which on a sending is an intentional
  ///   repeat.
  func takes(_ row: StoryRow, repeatAfter: Int64) -> Bool {
    row.content == first.content && row.topic == first.topic && continues(row, repeatAfter: repeatAfter)
  }

  private func continues(_ row: StoryRow, repeatAfter: Int64) -> Bool {
    guard let pause = Timestamp(nanoseconds: row.time).nanoseconds(since: lastAccepted) else { return true }
    return pause < repeatAfter
  }

  mutating func add(_ row: StoryRow) {
    let time = Timestamp(nanoseconds: row.time)
    if sent > 0, !lastWasAccepted, let pause = time.nanoseconds(since: lastTime) {
      longestResend = max(longestResend, pause)
    }
    sent += 1
    lastTime = time
    lastWasAccepted = row.fate == .accepted
    if row.flags.contains(.isSelected) { isSelected = true }
    switch row.fate {
    case .accepted:
      accepted += 1
      lastAccepted = lastTime
      if sent == 1 { acceptedFirst = true }
      // It matters only if no other sending is accepted.
      hasPassed =
        row.flags.contains(.hasExpiration) && row.expiration != 0 && lastTime.isKnown
        && lastTime.nanoseconds > Int64(row.expiration) * 1_000_000_000
    case .rejected: hasRejected = true
    case .unknown: hasUnknown = true
    case .discarded: break
    }
  }

  private var outcome: StoryOutcome {
    if accepted > 1 { return .acceptedTwice }
    // The unknown sending may have been accepted, or accepted a second time.
    if hasUnknown { return .open }
    if accepted == 1 { return hasPassed ? .expired : acceptedFirst ? .accepted : .recovered }
    // A discarded notification without a token loses nothing: processed, it would have been rejected.
    return hasRejected || first.flags.contains(.lacksToken) ? .rejected : .lost
  }

  var facts: StoryFacts {
    StoryFacts(
      first: first, seen: outcome, isSelected: isSelected, sent: sent, lastTime: lastTime.nanoseconds,
      acceptedTime: lastAccepted.nanoseconds, longestResend: longestResend)
  }
}

/// Facts about a token when all that concerns it was seen, as it goes through memory and files.
struct TokenFacts: BitwiseCopyable {
  var first: SendingPlace
  var tokenPlace: Int
  var topicPlace: Int
  var isSelected = false
  var sent = 0
  var accepted = 0
  var rejected = 0
  var status: UInt16?
  /// As `StoryRow.reason`, of the same rejection.
  var reason: UInt16 = 0
  var isOfRequests = false
  var listed = Timestamp.none.nanoseconds
  var gone: UInt32?
  var isListed = false
  var sentAfterListed = 0
  var sentAfterGone = 0
  var lastTime: Int64
  /// When the latest sending was accepted.
  private var lastAccepted = Timestamp.none.nanoseconds
  /// The latest time when it was listed, or rejected as an invalid token.
  private var lastDead = Timestamp.none.nanoseconds
  private var hasDied = false

  private let token: ContentKey
  private let topic: ContentKey

  init(_ row: StoryRow) {
    first = row.place
    (tokenPlace, topicPlace) = (row.tokenPlace, row.topicPlace)
    (token, topic) = (row.token, row.topic)
    lastTime = row.time
    add(row)
  }

  func takes(_ row: StoryRow) -> Bool { row.token == token && row.topic == topic }

  /// Feedback comes before sendings.
  mutating func add(_ row: StoryRow) {
    first = min(first, row.place)
    lastTime = max(lastTime, row.time)
    if row.flags.contains(.isSelected) { isSelected = true }
    guard row.kind != .feedback else {
      if !isListed || row.time < listed { listed = row.time }
      isListed = true
      noteDead(at: row.time)
      if row.expiration != 0 { gone = min(gone ?? .max, row.expiration) }
      return
    }
    sent += 1
    let isRequest = row.flags.contains(.isRequest)
    if isRequest {
      isOfRequests = true
      // Only an answer to an earlier sending tells the provider.
      if let gone, row.time > Int64(gone) * 1_000_000_000 { sentAfterGone += 1 }
      if row.flags.contains(.isGone) { gone = min(gone ?? .max, row.identifier) }
    }
    switch row.fate {
    case .accepted:
      accepted += 1
      lastAccepted = max(lastAccepted, row.time)
    case .rejected:
      rejected += 1
      if row.flags.contains(.hasStatus) {
        (status, reason) = (row.status, row.reason)
        // BadDeviceToken may be the environment's fault, and tells nothing of the token.
        let isDead = isRequest ? row.status == 410 : row.status == UInt16(ErrorResponse.Status.invalidToken.rawValue)
        if isDead { noteDead(at: row.time) }
      }
    case .discarded, .unknown: break
    }
    guard !isRequest else { return }
    let time = Timestamp(nanoseconds: row.time)
    guard time.isKnown else { return }
    if isListed, Timestamp(nanoseconds: listed).isKnown, row.time > listed { sentAfterListed += 1 }
    if let gone, row.time > Int64(gone) * 1_000_000_000 { sentAfterGone += 1 }
  }

  private mutating func noteDead(at time: Int64) {
    hasDied = true
    lastDead = max(lastDead, time)
  }

  /// Whether it was listed, or rejected as an invalid token, after it was last accepted.
  var isDead: Bool {
    let (accepted, dead) = (Timestamp(nanoseconds: lastAccepted), Timestamp(nanoseconds: lastDead))
    return hasDied && (self.accepted == 0 || accepted.isKnown && dead.isKnown && dead > accepted)
  }
}
