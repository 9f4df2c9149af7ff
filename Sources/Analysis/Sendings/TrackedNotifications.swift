import HeapModule
import PacketCapture
import Records

/// Notifications with a story: those that were discarded, rejected, or sent more than once; each with its sendings.
///
/// A notification is tracked as soon as it may be one of these. Its outcome is decided at the end, by the fates of all
/// of its sendings, as `StoryFold` does for `follow`.
struct TrackedNotifications {
  struct Sending {
    var time: Timestamp
    /// The packet that shows it: the error response's, or a resend's or repeat's own; 0: none.
    var packet: Int
    /// In four bytes each, because there may be many sendings.
    fileprivate var narrow: (connection: UInt32, index: UInt32, loss: Int32, next: Int32)
    var expiration: UInt32
    var fate: FateCode
    let isSelected: Bool
    /// It is a request of the provider API.
    let isRequest: Bool

    var connection: Int { Int(narrow.connection) }
    var index: Int { Int(narrow.index) }
    /// The error response that discards it, by `beginLoss()`; -1: none.
    var loss: Int { Int(narrow.loss) }

    fileprivate init(_ sent: SentNotification, packet: Int, loss: Int, fate: FateCode) {
      (time, self.packet, expiration, self.fate) = (sent.time, packet, sent.expiration, fate)
      (isSelected, isRequest) = (sent.isSelected, sent.isRequest)
      narrow = (
        UInt32(truncatingIfNeeded: sent.connection), UInt32(truncatingIfNeeded: sent.index),
        Int32(truncatingIfNeeded: loss), -1
      )
    }
  }

  private struct Story {
    /// Places of sendings.
    var first: Int32
    var last: Int32
    /// The number of its sendings that may have been discarded, less the sendings that followed them.
    var waiting: Int32 = 0
    /// One of its sendings may have been discarded or rejected.
    var isLoss = false
  }

  /// A sending whose fate is open.
  private struct Open: Comparable {
    var index: UInt32
    var place: Int32
    static func < (a: Open, b: Open) -> Bool { a.index < b.index }
  }

  private let limit: Int
  private var stories: [Story] = []
  /// The numbers of stories, by the digest of their notification.
  private var numbers: [UInt64: Int32] = [:]
  private var sendings: [Sending] = []
  /// Sendings whose fates are open, by connection.
  private var open: [Int: Heap<Open>] = [:]
  /// The places of open sendings, by connection and index.
  private var places: [UInt64: Int32] = [:]
  private var filter = DigestFilter()
  private var responses = 0
  /// The numbers of sendings that may have been discarded or rejected, of later sendings of the same notifications, of
  /// other repeats, and of expired ones.
  private var counts = (losses: 0, resends: 0, repeats: 0, late: 0)
  /// Discarded notifications that are not tracked.
  private(set) var lossesNotTracked = 0
  /// Sendings of repeated notifications that are not tracked.
  private(set) var repeatsNotTracked = 0

  /// Selected sendings of notifications that had expired, which are not tracked.
  private(set) var lateNotTracked = 0

  /// - Parameter limit: the number of sendings that are tracked of each of four kinds: possibly discarded or rejected
  ///   ones, later sendings of these, other repeats, and expired ones.
  init(limit: Int) { self.limit = limit }

  /// A number for an error response that discards notifications.
  mutating func beginLoss() -> Int {
    responses += 1
    return responses - 1
  }

  /// Counts discarded notifications that the history no longer holds.
  mutating func addForgotten(_ count: Int) { lossesNotTracked += max(0, count) }

  /// The limit of possibly discarded notifications is reached: no further one is tracked.
  var isFull: Bool { counts.losses >= limit }

  /// Whether a notification may be tracked; `false` is certain.
  @inline(__always)
  func mayHave(_ digest: UInt64) -> Bool { filter.mayHave(digest) }

  /// Whether a notification was discarded and not yet sent again.
  func isWaiting(_ digest: UInt64) -> Bool {
    mayHave(digest) && story(of: digest).map { stories[$0].waiting > 0 } ?? false
  }

  /// Whether a notification is tracked.
  func has(_ digest: UInt64) -> Bool { mayHave(digest) && story(of: digest) != nil }

  private func story(of digest: UInt64) -> Int? { numbers[digest].map(Int.init) }

  /// Tracks a sending that may be discarded by an error response, or be the one that is rejected.
  ///
  /// - Parameters:
  ///   - fate: the fate, as far as it is known.
  ///   - earlier: the sending before it, with its fate if known.
  mutating func add(
    _ sent: SentNotification, packet: Int, loss: Int, fate: FateCode,
    after earlier: (SentNotification, FateCode?)? = nil
  ) {
    guard sent.isRecognisable else { return }
    if !isFull || mayHave(sent.digest), let known = places[Self.key(sent.connection, sent.index)] {
      let known = Int(known)
      if let story = story(of: sent.digest) {
        stories[story].waiting += (loss >= 0 ? 1 : 0) - (sendings[known].loss >= 0 ? 1 : 0)
        stories[story].isLoss = true
      }
      sendings[known].narrow.loss = Int32(truncatingIfNeeded: loss)
      (sendings[known].packet, sendings[known].fate) = (packet, fate)
      return
    }
    guard !isFull else {
      lossesNotTracked += 1
      return
    }
    counts.losses += 1
    let known = story(of: sent.digest)
    let story = append(sent, to: known ?? earlier.map { append($0) }, packet: packet, loss: loss, fate: fate)
    stories[story].isLoss = true
    if loss >= 0 { stories[story].waiting += 1 }
  }

  /// Tracks a sending of a notification that is tracked, or that was sent before.
  ///
  /// - Parameters:
  ///   - earlier: the sending before, with its fate if that is known.
  mutating func addRepeat(_ sent: SentNotification, packet: Int, after earlier: (SentNotification, FateCode?)?) {
    let story = story(of: sent.digest)
    guard story != nil || earlier != nil else { return }
    let isResend = story.map { stories[$0].isLoss } ?? false
    if let story, stories[story].waiting > 0 { stories[story].waiting -= 1 }
    guard (isResend ? counts.resends : counts.repeats) < limit else {
      repeatsNotTracked += 1
      return
    }
    if isResend { counts.resends += 1 } else { counts.repeats += 1 }
    _ = append(sent, to: story ?? earlier.map { append($0) }, packet: packet, loss: -1, fate: .unknown)
  }

  /// Tracks a sending whose notification has expired, so that it matters whether it is accepted.
  mutating func addLate(_ sent: SentNotification) {
    guard counts.late < limit else {
      if sent.isSelected { lateNotTracked += 1 }
      return
    }
    counts.late += 1
    _ = append(sent, to: nil, packet: 0, loss: -1, fate: .unknown)
  }

  /// Begins a story with the sending before, and returns its number.
  private mutating func append(_ earlier: (sent: SentNotification, fate: FateCode?)) -> Int {
    append(
      earlier.sent, to: nil, packet: 0, loss: -1, fate: earlier.fate ?? .unknown, isOpen: earlier.fate == nil)
  }

  /// Appends a sending to a story, or to a new one, and returns the story's number.
  private mutating func append(
    _ sent: SentNotification, to known: Int?, packet: Int, loss: Int, fate: FateCode, isOpen: Bool = true
  ) -> Int {
    let place = Int32(truncatingIfNeeded: sendings.count)
    sendings.append(Sending(sent, packet: packet, loss: loss, fate: fate))
    let story = known ?? stories.count
    if known == nil {
      stories.append(Story(first: place, last: place))
      numbers[sent.digest] = Int32(truncatingIfNeeded: story)
      filter.insert(sent.digest)
    } else {
      sendings[Int(stories[story].last)].narrow.next = place
      stories[story].last = place
    }
    guard isOpen else { return story }
    open[sent.connection, default: Heap()].insert(Open(index: UInt32(truncatingIfNeeded: sent.index), place: place))
    places[Self.key(sent.connection, sent.index)] = place
    return story
  }

  private static func key(_ connection: Int, _ index: Int) -> UInt64 {
    UInt64(truncatingIfNeeded: connection) << 32 | UInt64(truncatingIfNeeded: index) & 0xffff_ffff
  }

  /// Applies fates that became final, which come in the order of a connection's notifications.
  mutating func decide(_ record: FateRecord) {
    guard open[record.connection] != nil else { return }
    let fate = FateCode(record.fate)
    while let first = open[record.connection]?.min, Int(first.index) <= record.last {
      open[record.connection]?.removeMin()
      places[Self.key(record.connection, Int(first.index))] = nil
      if Int(first.index) >= record.first { sendings[Int(first.place)].fate = fate }
    }
    if open[record.connection]?.isEmpty == true { open[record.connection] = nil }
  }

  /// The number of notifications.
  var count: Int { stories.count }

  /// The sendings of a notification, by its number from 0, in the order in which they were tracked.
  func sendings(of number: Int) -> [Sending] {
    var result: [Sending] = []
    var place = Int(stories[number].first)
    while place >= 0 {
      result.append(sendings[place])
      place = Int(sendings[place].narrow.next)
    }
    return result
  }
}
