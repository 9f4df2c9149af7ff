import Measurement
import PacketCapture
import ProviderAPI
import Records

/// How providers treat answers, tokens and connections over HTTP/2, as far as one request or connection alone does not
/// show it.
struct RequestHealth {
  /// A client's address and a server.
  private struct Pair: Hashable {
    var client: String
    var server: String
  }

  /// A client's address and the key that its provider tokens are signed with.
  private struct Signer: Hashable {
    var client: String
    var keyID: String?
    var teamID: String?
  }

  /// Notifications that nothing came back for after a pause.
  private struct Silence {
    var count: Int
    var packet: Int
    var from: Timestamp
  }

  /// The fewest rejections with BadDeviceToken that suggest tokens of the other environment.
  private static let fewestBadTokens = 3
  /// The fewest connections with a provider token each that show a pattern.
  private static let fewestSigners = 3
  private static let second: Int64 = 1_000_000_000
  /// How long an answer has to be missing.
  private static let silence = 10 * second
  /// Tokens of one provider that were issued less than these seconds apart.
  private static let renewal = 20 * 60

  private let limit: Int
  /// When notifications were answered with 429 or 5xx, by digest; those of the latest second.
  private var refused: [UInt64: Timestamp] = [:]
  /// When addressees were answered with 410, by token and topic.
  private var unregistered: [UInt64: Timestamp] = [:]
  private var pairs: [Pair: (good: Int, bad: Int, isSelected: Bool)] = [:]
  /// The issue time of each connection's only provider token.
  private var issued: [Signer: [Int]] = [:]
  private var issuedCount = 0
  private var silences: [Silence] = []
  private var latest = Timestamp.none

  init(limit: Int) { self.limit = limit }

  /// Notes a time of the recording.
  mutating func note(_ time: Timestamp) { if time.isKnown, time > latest { latest = time } }

  // MARK: notifications and answers

  /// - Parameters:
  ///   - digest: of the notification; `nil`: it cannot be recognised.
  ///   - addressee: of token and topic; `nil`: one of them is uncertain.
  mutating func note(
    _ record: borrowing ProviderNotificationRecord, _ digest: UInt64?, _ addressee: UInt64?
  ) -> [FindingOfRequest] {
    note(record.place.time)
    var found: [FindingOfRequest] = []
    let time = record.firstTime
    if let digest, !refused.isEmpty, let answered = refused.removeValue(forKey: digest),
      let pause = time.nanoseconds(since: answered), pause >= 0, pause < Self.second
    {
      found.append(.retryStorm)
    }
    if let addressee, !unregistered.isEmpty, let answered = unregistered[addressee],
      let pause = time.nanoseconds(since: answered), pause > 0
    {
      found.append(.sentAfterUnregistered)
    }
    return found
  }

  mutating func note(_ record: ResponseRecord, _ pending: ConnectionRequests.Pending) {
    let time = record.place.time
    note(time)
    guard let status = record.status, time.isKnown else { return }
    if status == 429 || (500...599).contains(status), pending.isRecognisable {
      if refused.count >= 1_024 { refused = refused.filter { time.nanoseconds - $0.value.nanoseconds < Self.second } }
      if refused.count < limit { refused[pending.sent.digest] = time }
    }
    guard let addressee = pending.addressee else { return }
    if status == 410 {
      if unregistered[addressee] == nil, unregistered.count < limit { unregistered[addressee] = time }
    } else if (200...299).contains(status), !unregistered.isEmpty {
      unregistered[addressee] = nil
    }
  }

  /// A gap may hide an acceptance, after which 410 is no longer the last answer for a token.
  mutating func noteGap() { unregistered = [:] }

  // MARK: connections

  mutating func end(_ record: ConnectionRecord, _ requests: ConnectionRequests, isSelected: Bool) {
    note(record.opened)
    note(record.closed)
    if let client = record.client, let server = record.server {
      let pair = Pair(client: client.address.description, server: server.description)
      if pairs[pair] != nil || pairs.count < limit {
        var known = pairs[pair] ?? (0, 0, false)
        // An unknown one may be accepted.
        known.good += record.fates.accepted + record.fates.unknown
        known.bad += requests.badDeviceTokens
        if isSelected { known.isSelected = true }
        pairs[pair] = known
      }
      if isSelected, requests.tokens.count == 1, let token = requests.tokens.first, let time = token.issuedAt,
        issuedCount < limit
      {
        issuedCount += 1
        issued[Signer(client: pair.client, keyID: token.keyID, teamID: token.teamID), default: []].append(time)
      }
    }
    // Without any byte of the server, its direction may not have been captured.
    let isSilent =
      record.end != .serverFIN && record.end != .serverRST && !requests.lacksAnswers && record.serverBytes > 0
    guard isSelected, isSilent, let pause = requests.afterPause, silences.count < limit else { return }
    // An answer to a PING shows that the connection is not dead.
    if let answered = record.http2?.pings.lastAnswer, answered.isKnown, answered >= pause.from { return }
    // Until the connection's end, or else the recording's.
    if record.closed.isKnown {
      guard let length = record.closed.nanoseconds(since: pause.from), length >= Self.silence else { return }
    }
    silences.append(
      Silence(count: pause.count, packet: pause.packet, from: record.closed.isKnown ? .none : pause.from))
  }

  // MARK: findings

  /// Findings that are of the whole recording.
  func report(into findings: inout Findings) {
    let bad = pairs.values.filter { $0.isSelected && $0.bad >= Self.fewestBadTokens && $0.bad > $0.good }
    if !bad.isEmpty { findings.note(.badDeviceTokens, count: bad.reduce(0) { $0 + $1.bad }, packet: 0) }
    for times in issued.values {
      let count = Self.signedApart(times)
      if count >= Self.fewestSigners { findings.note(.providerTokenPerConnection, count: count, packet: 0) }
    }
    for silence in silences {
      if silence.from.isKnown {
        guard let length = latest.nanoseconds(since: silence.from), length >= Self.silence else { continue }
      }
      findings.note(.silentAfterIdle, count: silence.count, packet: silence.packet)
    }
  }

  /// How many of the connections have a token of their own that was issued shortly before or after another one's.
  private static func signedApart(_ times: [Int]) -> Int {
    let sorted = times.sorted()
    func apart(_ one: Int, _ other: Int) -> Int {
      let (difference, isOver) = sorted[other].subtractingReportingOverflow(sorted[one])
      return isOver ? .max : difference
    }
    return sorted.indices.count { place in
      let before = place > 0 ? apart(place - 1, place) : .max
      let after = place + 1 < sorted.count ? apart(place, place + 1) : .max
      return before > 0 && after > 0 && min(before, after) < renewal
    }
  }
}
