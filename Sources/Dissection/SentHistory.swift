import APNSProtocol
import Bytes

/// A notification as it is recognised when it is sent again: by token and payload, regardless of its identifier.
struct SentNotification {
  let digest: UInt64
  /// The first eight bytes of the token, to show which device it was for.
  let tokenPrefix: UInt64
  var isKnownBad: Bool { tokenPrefix == 0 && digest == 0 }

  /// Never equal to another one.
  static let unrecognisable = SentNotification(token: RawSpan(), payload: RawSpan())

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
/// One ring and not one a connection, for locality.
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
    /// The error response that it was lost to, by `beginLoss()`; the latest of several.
    var loss: Int
  }

  private var waiting: [UInt64: Entry] = [:]
  private var waitingCount = 0
  private var resent = 0
  private var firstResent = 0
  private var overLimit = 0
  private let limit: Int
  /// Resends of discarded notifications, by error response.
  private var resentByLoss: [Int] = []
  private var losses = 0

  init(limit: Int) { self.limit = limit }

  var isEmpty: Bool { waitingCount == 0 }

  /// A number for an error response that discards notifications; above the limit they are not tracked.
  mutating func beginLoss() -> Int {
    if resentByLoss.count < limit { resentByLoss.append(0) }
    losses += 1
    return losses - 1
  }

  /// How many of the notifications discarded by an error response were seen again; `nil` if not tracked.
  func resent(ofLoss loss: Int) -> Int? { resentByLoss.indices.contains(loss) ? resentByLoss[loss] : nil }

  mutating func add(_ sent: SentNotification, packet: Int, loss: Int) {
    guard !sent.isKnownBad else { return }
    guard waiting.count < limit else {
      overLimit += 1
      return
    }
    waiting[sent.digest, default: Entry(count: 0, packet: packet, loss: loss)].count += 1
    waiting[sent.digest]?.loss = loss
    waitingCount += 1
  }

  /// Counts discarded notifications that are no longer remembered.
  mutating func addForgotten(_ count: Int) { overLimit += max(0, count) }

  mutating func remove(_ sent: SentNotification) {
    guard let entry = waiting[sent.digest] else { return }
    waiting[sent.digest] = entry.count > 1 ? Entry(count: entry.count - 1, packet: entry.packet, loss: entry.loss) : nil
    waitingCount -= 1
  }

  mutating func sentAgain(_ sent: SentNotification) {
    guard let entry = waiting[sent.digest] else { return }
    resent += 1
    if resentByLoss.indices.contains(entry.loss) { resentByLoss[entry.loss] += 1 }
    if firstResent == 0 || entry.packet < firstResent { firstResent = entry.packet }
    remove(sent)
  }

  /// Whether it is one that was discarded, or its like.
  func isWaiting(_ sent: SentNotification) -> Bool { waiting[sent.digest] != nil }

  func report(into findings: inout Findings) {
    if waitingCount > 0 {
      findings.note(.neverResent, count: waitingCount, packet: waiting.values.map(\.packet).min() ?? 0)
    }
    if resent > 0 { findings.note(.resent, count: resent, packet: firstResent) }
    if overLimit > 0 { findings.note(.lostNotTracked, count: overLimit, packet: 0) }
  }
}
