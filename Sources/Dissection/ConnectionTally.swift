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
  var window: SentWindow

  init(number: Int, opened: Timestamp, window: SentWindow) {
    self.number = number
    self.opened = opened
    self.window = window
  }

  var lastPacket: Int { window.lastPacket }

  @inline(__always)
  mutating func note(
    _ layout: PushNotification.Layout, _ frame: RawSpan, _ place: RecordPlace, _ shared: inout SharedTally
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
    window.append(sent, packet: place.packet, room: &shared.windowRoom)
  }
}

/// What an inspection counts over all connections, notification by notification.
struct SharedTally {
  var findings = Findings()
  var payloadLengths = Counts(highest: 65_535)
  var perSecond = PerSecond()
  var lost: LostNotifications
  /// Places that the connections' windows may still take.
  var windowRoom: Int

  init(_ limits: Inspection.Limits) {
    lost = LostNotifications(limit: limits.remembered)
    windowRoom = limits.totalWindow
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
    tallies[index] = ConnectionTally(number: number, opened: .none, window: SentWindow(maximum: 1))
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
    digest = max(1, ContentDigest(payload, seed: ContentDigest(token).value).value)
  }
}

/// The latest notifications of a connection, by index: a ring that grows to its maximum while there is room in all.
struct SentWindow {
  private let maximum: Int
  private var entries: [SentNotification] = []
  /// Index of the next notification, and where in the ring it goes once the ring does not grow any more.
  private var next = 0
  private var place = 0
  private(set) var lastPacket = 0
  /// Places this window has taken from the room for all.
  private(set) var capacity = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  @inline(__always)
  mutating func append(_ sent: SentNotification, packet: Int, room: inout Int) {
    lastPacket = packet
    // The ring may grow only while nothing was overwritten, so that an index tells its place.
    if entries.count == next && entries.count < maximum && (entries.count < capacity || takeRoom(&room)) {
      entries.append(sent)
    } else if !entries.isEmpty {
      entries[place] = sent
      place = place + 1 == entries.count ? 0 : place + 1
    }
    next += 1
  }

  private mutating func takeRoom(_ room: inout Int) -> Bool {
    let wanted = min(max(16, capacity), maximum - capacity)
    guard wanted > 0, room >= wanted else { return false }
    room -= wanted
    capacity += wanted
    entries.reserveCapacity(capacity)
    return true
  }

  /// Index of the oldest one that is remembered.
  var first: Int { next - entries.count }

  subscript(index: Int) -> SentNotification? {
    index >= first && index < next && !entries.isEmpty ? entries[index % entries.count] : nil
  }

  /// The remembered ones with an index above `lower`, up to `upper`.
  func forEach(after lower: Int, upTo upper: Int, _ body: (SentNotification) -> Void) {
    var index = max(lower + 1, first)
    while index < next && index <= upper {
      body(entries[index % entries.count])
      index += 1
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
