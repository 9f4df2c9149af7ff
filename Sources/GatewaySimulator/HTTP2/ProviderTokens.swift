import Bytes
import HTTP2
import Measurement
import ProviderAPI
import Synchronization

/// The provider tokens of one connection: verified once each, and judged for each request by their age.
///
/// Of a token there is kept who issued it, when, and a digest; not its text, and no part of its signature.
struct ProviderTokens: Sendable {
  struct Digest: Hashable, Sendable {
    var first: UInt64
    var second: UInt64

    init(_ value: RawSpan) {
      first = ContentDigest(value).value
      second = ContentDigest(value, seed: 0x2545_f491_4f6c_dd1d).value
    }
  }

  struct Entry: Sendable {
    var digest: Digest
    var keyID = ""
    var teamID = ""
    /// Seconds since 1970; 0 for a token that is not valid.
    var issuedAt = 0
    /// The place of the key that has signed it; `nil` for a token that is not valid.
    var key: Int?
    /// `nil`: the signature is right.
    var fault: ProviderReason?
    /// The connection has accepted it before.
    var wasAccepted = false
  }

  private let keys: [ProviderKey]
  private let rules: ServingRules
  private let limit: Int
  private let isSandbox: Bool
  /// Those that were looked at.
  private var known: [Digest: Entry] = [:]
  private var latest: (origin: FieldList.Origin, entry: Entry)?
  /// The token in use, and since when in UNIX seconds.
  private var current: (entry: Entry, since: Int)?
  /// Tokens that took the place of another one.
  private(set) var renewals = 0
  /// Those that were accepted for the first time since the last `takeAccepted`.
  private var accepted: [Entry] = []

  /// - Parameters:
  ///   - limit: tokens that are remembered.
  ///   - isSandbox: which environment keys have to be for.
  init(_ keys: [ProviderKey], _ rules: ServingRules, limit: Int, isSandbox: Bool) {
    (self.keys, self.rules, self.limit, self.isSandbox) = (keys, rules, limit, isSandbox)
  }

  /// Whether a token was accepted.
  var hasAccepted: Bool { current != nil }

  /// The token of an `authorization` field, for `judge`.
  mutating func entry(of value: RawSpan, _ origin: FieldList.Origin) -> Entry {
    if let latest, origin == latest.origin, origin != .literal { return latest.entry }
    let digest = Digest(value)
    let entry: Entry
    if let before = known[digest] {
      entry = before
    } else {
      entry = self.entry(value, digest)
      // A client that sends more tokens than are remembered has each verified again.
      if known.count >= limit { known = [:] }
      known[digest] = entry
    }
    latest = (origin, entry)
    return entry
  }

  private func entry(_ value: RawSpan, _ digest: Digest) -> Entry {
    var entry = Entry(digest: digest, fault: .invalidProviderToken)
    guard let token = try? ProviderToken(parsing: value), let signed = ProviderToken.signed(in: value),
      token.algorithm == "ES256", let keyID = token.keyID, let teamID = token.teamID, let issuedAt = token.issuedAt,
      issuedAt > 0, token.issuedAtForm != .string || rules.allowsTextTime
    else { return entry }
    (entry.keyID, entry.teamID, entry.issuedAt) = (keyID, teamID, issuedAt)
    let message = value.extracting(signed.message)
    entry.key = keys.firstIndex {
      ($0.keyID ?? keyID) == keyID && ($0.teamID ?? teamID) == teamID && $0.key.verifies(message, signed.signature)
    }
    if entry.key != nil { entry.fault = nil }
    return entry
  }

  /// Why a request with this token is rejected; `nil`: it is trusted.
  ///
  /// The order: signature, key and team; the age; the key's environment; the key of the connection; renewals.
  ///
  /// - Parameter now: UNIX seconds.
  mutating func judge(_ entry: Entry, now: Int) -> ProviderReason? {
    if let fault = entry.fault { return fault }
    let age = now - entry.issuedAt
    if age > ServingRules.longestTokenAge || age < -rules.clockSkew { return .expiredProviderToken }
    if let key = entry.key, let isOfSandbox = keys[key].scope.isOfSandbox, isOfSandbox != isSandbox {
      return rules.keyEnvironment
    }
    guard let current else {
      use(entry, now)
      return nil
    }
    if current.entry.digest == entry.digest { return nil }
    if current.entry.teamID != entry.teamID { return .invalidProviderToken }
    if current.entry.keyID != entry.keyID, !areRelated(current.entry, entry) { return .unrelatedKeyID }
    if rules.checksRenewal, now - current.since < ServingRules.shortestRenewal { return .tooManyProviderTokenUpdates }
    renewals += 1
    use(entry, now)
    return nil
  }

  private func areRelated(_ one: Entry, _ other: Entry) -> Bool {
    guard let first = one.key, let second = other.key else { return false }
    return keys[first].scope.related.contains(other.keyID) || keys[second].scope.related.contains(one.keyID)
  }

  /// Whether the key of a token is for a topic.
  func allows(_ topic: String, _ entry: Entry) -> Bool {
    guard let key = entry.key, let topics = keys[key].scope.topics else { return true }
    return topics.contains(topic)
  }

  /// Without the rule about renewals a client may return to a token: it is told of once, as long as it is remembered.
  private mutating func use(_ entry: Entry, _ now: Int) {
    current = (entry, now)
    guard known[entry.digest]?.wasAccepted != true else { return }
    known[entry.digest]?.wasAccepted = true
    accepted.append(entry)
  }

  /// The tokens that were accepted for the first time since the last call.
  mutating func takeAccepted() -> [Entry] {
    guard !accepted.isEmpty else { return [] }
    defer { accepted = [] }
    return accepted
  }
}

/// The provider tokens that all connections of a simulator have accepted, for the ledger.
///
/// Shared by all event loops; accessed when a connection accepts another token.
final class ProviderTokenBook: Sendable {
  private struct Book {
    var tokens: [Ledger.HTTP2.ProviderToken] = []
    var places: [ProviderTokens.Digest: Int] = [:]
    var omitted = 0
    var renewals = 0
  }

  private let limit: Int
  private let book = Mutex(Book())

  init(limit: Int) { self.limit = limit }

  func addRenewals(_ count: Int) { book.withLock { $0.renewals += count } }

  /// - Parameter now: nanoseconds since 1970.
  func add(_ entry: ProviderTokens.Entry, now: Int64) {
    book.withLock { book in
      if let place = book.places[entry.digest] {
        book.tokens[place].connections += 1
        return
      }
      guard book.tokens.count < limit else {
        book.omitted += 1
        return
      }
      book.places[entry.digest] = book.tokens.count
      book.tokens.append(
        Ledger.HTTP2.ProviderToken(
          keyID: entry.keyID, teamID: entry.teamID, issuedAt: rfc3339(Int64(entry.issuedAt) * 1_000_000_000),
          ageS: Int(now / 1_000_000_000) - entry.issuedAt, connections: 1))
    }
  }

  var all: (tokens: [Ledger.HTTP2.ProviderToken], omitted: Int, renewals: Int) {
    book.withLock { ($0.tokens, $0.omitted, $0.renewals) }
  }
}
