import APNSProtocol
import Bytes
import PacketCapture

/// What an inspection keeps of a connection while it is open.
///
/// A value in an array, like `GatewayLane`, and for the same reason.
struct ConnectionTally {
  let number: Int
  let opened: Timestamp
  /// Notifications by command: 0, 1, and 2.
  var commands = InlineArray<3, Int>(repeating: 0)
  var firstError: ErrorResponseRecord?
  /// A response said that nothing after `named` was read.
  var isTerminated = false
  var named = -1
  var lastPacket = 0
  /// Where the history has the connection's latest notification.
  private(set) var latest = -1
  var written: Int { commands[0] + commands[1] + commands[2] }

  init(number: Int, opened: Timestamp) {
    self.number = number
    self.opened = opened
  }

  @inline(__always)
  mutating func note(
    _ layout: PushNotification.Layout, _ frame: RawSpan, _ place: RecordPlace, index: Int, _ shared: inout SharedTally
  ) {
    let command = layout.command.rawValue
    commands[command > 1 ? 2 : Int(command)] += 1
    let token = frame.extracting(layout.token.range)
    let payload = frame.extracting(layout.payload.range)
    shared.note(layout, token, payload, place)
    let sent = SentNotification(token: token, payload: payload)
    if isTerminated {
      shared.lost.add(sent, packet: place.packet)
    } else if !shared.lost.isEmpty {
      shared.lost.sentAgain(sent)
    }
    shared.history.append(sent, index: index, latest: &latest)
    lastPacket = place.packet
  }
}

/// What an inspection counts over all connections, notification by notification.
struct SharedTally {
  var findings = Findings()
  var payloadLengths = Counts(highest: 65_535)
  var perSecond = PerSecond()
  var lost: LostNotifications
  var history: SentHistory

  init(_ limits: Inspection.Limits) {
    lost = LostNotifications(limit: limits.remembered)
    history = SentHistory(maximum: limits.history)
  }

  @inline(__always)
  mutating func note(
    _ layout: PushNotification.Layout, _ token: RawSpan, _ payload: RawSpan, _ place: RecordPlace
  ) {
    payloadLengths.add(payload.byteCount)
    if place.time.isKnown { perSecond.add(1, at: place.time) }
    let isUsual =
      token.byteCount == 32 && payload.byteCount <= 2_048 && !layout.hasUnknownItems && Self.looksLikeObject(payload)
      && !Self.isStrange(layout.expiration)
    if !isUsual { noteForm(layout, token, payload, packet: place.packet) }
  }

  @inline(__always)
  private static func looksLikeObject(_ payload: RawSpan) -> Bool {
    payload.byteCount > 0 && payload.byte(at: 0) == UInt8(ascii: "{")
      && payload.byte(at: payload.byteCount - 1) == UInt8(ascii: "}")
  }

  /// Before 2001, or the end of time.
  private static func isStrange(_ expiration: UInt32?) -> Bool {
    guard let expiration else { return false }
    return expiration != 0 && expiration < 1_000_000_000 || expiration == .max
  }

  @inline(never)
  private mutating func noteForm(
    _ layout: PushNotification.Layout, _ token: RawSpan, _ payload: RawSpan, packet: Int
  ) {
    if token.byteCount != 32 { findings.note(token.byteCount == 0 ? .knownBad : .unusualTokenLength, packet: packet) }
    if payload.byteCount > 2_048 {
      findings.note(payload.byteCount > 4_096 ? .payloadOver4096 : .payloadOver2048, packet: packet)
    }
    if payload.byteCount > 0 && !Self.looksLikeObject(payload) { findings.note(.notAnObject, packet: packet) }
    if Self.isStrange(layout.expiration) { findings.note(.strangeExpiration, packet: packet) }
    if layout.hasUnknownItems { findings.note(.unknownItems, packet: packet) }
  }
}

/// The open connections' tallies by number. Numbers rise, so an array that forgets its ended beginning serves.
struct Tallies {
  private var first = 1
  private var tallies: [ConnectionTally] = []
  private var hasEnded: [Bool] = []
  private var ended = 0

  mutating func add(_ tally: ConnectionTally) {
    if tallies.isEmpty { first = tally.number }
    tallies.append(tally)
    hasEnded.append(false)
  }

  /// Where the connection's tally is until the next `add` or `remove`; `nil` when it has ended.
  @inline(__always)
  func index(of number: Int) -> Int? {
    let index = number - first
    return index >= 0 && index < tallies.count && !hasEnded[index] ? index : nil
  }

  subscript(index: Int) -> ConnectionTally {
    @inline(__always) get { tallies[index] }
    @inline(__always) _modify { yield &tallies[index] }
  }

  mutating func remove(_ number: Int) -> ConnectionTally? {
    guard let index = index(of: number) else { return nil }
    let tally = tallies[index]
    tallies[index] = ConnectionTally(number: number, opened: .none)
    hasEnded[index] = true
    ended += 1
    if ended >= 64 && ended * 2 >= tallies.count {
      let prefix = hasEnded.prefix { $0 }.count
      tallies.removeFirst(prefix)
      hasEnded.removeFirst(prefix)
      first += prefix
      ended -= prefix
    }
    return tally
  }
}

/// A notification as it is recognised when it is sent again: by token and payload, whatever its identifier.
struct SentNotification {
  let digest: UInt64
  /// The first eight bytes of the token, to show which device it was for.
  let tokenPrefix: UInt64
  var isKnownBad: Bool { tokenPrefix == 0 && digest == 0 }

  @inline(__always)
  init(token: RawSpan, payload: RawSpan) {
    if token.byteCount == 0 {
      (digest, tokenPrefix) = (0, 0)
      return
    }
    tokenPrefix = token.byteCount >= 8 ? token.uint64(at: 0) : UInt64(token.byte(at: 0)) << 56
    digest = ContentDigest(payload, seed: ContentDigest.seed(from: token)).value | 1
  }
}

/// The latest notifications of all connections in the order in which they were seen: a ring, in which each one knows how
/// far back the one before it on its connection is.
///
/// One ring and not one a connection, because a connection's own would be far away in memory each time.
struct SentHistory {
  private struct Entry {
    var sent: SentNotification
    var index: UInt32
    /// Places back to the connection's previous one; 0 for none.
    var distance: UInt32
  }

  /// A power of two.
  private let maximum: Int
  private var entries: [Entry] = []
  /// Notifications ever noted.
  private var total = 0

  init(maximum: Int) {
    var power = 1
    while power < maximum { power *= 2 }
    self.maximum = power
  }

  /// Notes the next notification of a connection; `latest` is the place of its previous one, and becomes this one's.
  @inline(__always)
  mutating func append(_ sent: SentNotification, index: Int, latest: inout Int) {
    let distance = latest < 0 ? 0 : total - latest
    let entry = Entry(
      sent: sent, index: UInt32(truncatingIfNeeded: index), distance: distance < maximum ? UInt32(distance) : 0)
    if entries.count < maximum { entries.append(entry) } else { entries[total & (maximum - 1)] = entry }
    latest = total
    total += 1
  }

  /// The remembered notifications of a connection from index `lower` on, the latest first.
  func forEach(from lower: Int, latest: Int, _ body: (_ index: Int, SentNotification) -> Void) {
    var place = latest
    while place >= 0 && place >= total - entries.count {
      let entry = entries[place & (maximum - 1)]
      guard Int(entry.index) >= lower else { return }
      body(Int(entry.index), entry.sent)
      guard entry.distance > 0 else { return }
      place -= Int(entry.distance)
    }
  }
}

/// Notifications that were discarded, until they are seen again.
struct LostNotifications {
  private struct Entry {
    var count: Int
    var packet: Int
  }

  private var waiting: [UInt64: Entry] = [:]
  private var waitingCount = 0
  private var resent = 0
  private var firstResent = 0
  private var overLimit = 0
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  var isEmpty: Bool { waitingCount == 0 }

  mutating func add(_ sent: SentNotification, packet: Int) {
    guard !sent.isKnownBad else { return }
    guard waiting.count < limit else {
      overLimit += 1
      return
    }
    waiting[sent.digest, default: Entry(count: 0, packet: packet)].count += 1
    waitingCount += 1
  }

  /// Notes discarded notifications that are no longer remembered.
  mutating func addForgotten(_ count: Int) { overLimit += max(0, count) }

  mutating func remove(_ sent: SentNotification) {
    guard let entry = waiting[sent.digest] else { return }
    waiting[sent.digest] = entry.count > 1 ? Entry(count: entry.count - 1, packet: entry.packet) : nil
    waitingCount -= 1
  }

  mutating func sentAgain(_ sent: SentNotification) {
    guard let entry = waiting[sent.digest] else { return }
    resent += 1
    if firstResent == 0 || entry.packet < firstResent { firstResent = entry.packet }
    remove(sent)
  }

  func report(into findings: inout Findings) {
    if waitingCount > 0 {
      findings.note(.neverResent, count: waitingCount, packet: waiting.values.map(\.packet).min() ?? 0)
    }
    if resent > 0 { findings.note(.resent, count: resent, packet: firstResent) }
    if overLimit > 0 { findings.note(.lostNotTracked, count: overLimit, packet: 0) }
  }
}
