import APNSProtocol
import Bytes
import PacketCapture

/// What an inspection keeps of a connection while it is open.
final class ConnectionTally {
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
}

/// The open connections' tallies by number. Numbers rise, so an array that forgets its ended beginning serves.
struct Tallies {
  private var first = 1
  private var tallies: [ConnectionTally?] = []
  private var ended = 0

  mutating func add(_ tally: ConnectionTally) {
    if tallies.isEmpty { first = tally.number }
    tallies.append(tally)
  }

  subscript(number: Int) -> ConnectionTally? {
    let index = number - first
    return tallies.indices.contains(index) ? tallies[index] : nil
  }

  mutating func remove(_ number: Int) -> ConnectionTally? {
    let index = number - first
    guard tallies.indices.contains(index), let tally = tallies[index] else { return nil }
    tallies[index] = nil
    ended += 1
    if ended >= 64 && ended * 2 >= tallies.count {
      let prefix = tallies.prefix { $0 == nil }.count
      tallies.removeFirst(prefix)
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

  init(_ notification: borrowing PushNotification) {
    let token = notification.token
    if token.byteCount == 0 {
      (digest, tokenPrefix) = (0, 0)
      return
    }
    tokenPrefix = token.byteCount >= 8 ? token.uint64(at: 0) : UInt64(token.byte(at: 0)) << 56
    digest = max(1, Self.hash(notification.payload, seed: Self.hash(token, seed: 0x9e37_79b9_7f4a_7c15)))
  }

  /// A multiply-and-fold hash in two independent lanes, sixteen bytes a step each.
  @inline(__always)
  private static func hash(_ bytes: RawSpan, seed: UInt64) -> UInt64 {
    func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
      let product = a.multipliedFullWidth(by: b)
      return product.high ^ product.low
    }
    let count = bytes.byteCount
    var first = seed ^ UInt64(truncatingIfNeeded: count)
    var second = seed &* 0xa076_1d64_78bd_642f
    var offset = 0
    while offset + 32 <= count {
      first = fold(bytes.uint64(at: offset) ^ 0xe703_7ed1_a0b4_28db, bytes.uint64(at: offset + 8) ^ first)
      second = fold(bytes.uint64(at: offset + 16) ^ 0x8ebc_6af0_9c88_c6e3, bytes.uint64(at: offset + 24) ^ second)
      offset += 32
    }
    while offset + 8 <= count {
      first = fold(bytes.uint64(at: offset) ^ 0x5899_65cc_7537_4cc3, first)
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < count {
      rest = rest << 8 | UInt64(bytes.byte(at: offset))
      offset += 1
    }
    return fold(rest ^ 0x1d8e_4e27_c47d_124f, first ^ second)
  }
}

/// The latest notifications of a connection, by index: a ring that grows to its maximum while there is room in all.
struct SentWindow {
  private struct Entry {
    var sent: SentNotification
    var packet: Int
  }

  private let maximum: Int
  private var entries: [Entry] = []
  /// Index of the next notification, and where in the ring it goes once the ring is full.
  private var next = 0
  private(set) var lastPacket = 0
  /// Places this window has taken from the room for all.
  private(set) var capacity = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  mutating func append(_ sent: SentNotification, index: Int, packet: Int, room: inout Int) {
    lastPacket = packet
    let entry = Entry(sent: sent, packet: packet)
    // The ring may grow only while it has not wrapped, so that place = index modulo count stays right.
    if entries.count == next && entries.count < maximum && (entries.count < capacity || takeRoom(&room)) {
      entries.append(entry)
    } else if !entries.isEmpty {
      entries[next % entries.count] = entry
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

  private var first: Int { next - entries.count }

  subscript(index: Int) -> SentNotification? {
    index >= first && index < next && !entries.isEmpty ? entries[index % entries.count].sent : nil
  }

  /// The remembered ones with an index above `lower`, up to `upper`.
  func forEach(after lower: Int, upTo upper: Int, _ body: (SentNotification, Int) -> Void) {
    var index = max(lower + 1, first)
    while index < next && index <= upper {
      let entry = entries[index % entries.count]
      body(entry.sent, entry.packet)
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

  var isEmpty: Bool { waitingCount == 0 }

  mutating func add(_ sent: SentNotification, packet: Int, limit: Int) {
    guard !sent.isKnownBad else { return }
    guard waiting.count < limit else {
      overLimit += 1
      return
    }
    waiting[sent.digest, default: Entry(count: 0, packet: packet)].count += 1
    waitingCount += 1
  }

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
