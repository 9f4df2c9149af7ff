import Bytes
import HeapModule

/// Store and forward for offline devices: of each device and topic the latest notification of each collapse identifier is
/// stored, and the latest one without.
///
/// A plain value without a clock: times are UNIX times in milliseconds, given with every call; a time before that of an
/// earlier call counts as the earlier one. Due entries are handled first, so a late `advance(to:)` does not change the
/// counts. At any time `accepted = delivered + coalesced + expired + dropped + stored`.
public struct OfflineStore: Sendable {
  /// When devices come online, and limits on stored notifications.
  public struct Options: Sendable, Equatable {
    /// Milliseconds after its first waiting notification was stored until a device comes online, gets all that wait, and
    /// goes offline again; `nil`: only by `bringDevicesOnline`.
    public var onlineAfter: Int64?
    /// Maximum milliseconds that a notification waits, regardless of its expiration; then it expires.
    public var maximumAge: Int64
    /// The most notifications that are stored; above, the oldest is dropped.
    package private(set) var maximumNotifications: Int
    /// The most bytes of tokens, payloads and collapse identifiers that are stored; above, the oldest notifications are
    /// dropped. Each needs about 250 bytes more, and one with a collapse identifier more than that.
    public var maximumBytes: Int

    public init(
      onlineAfter: Int64? = nil, maximumAge: Int64 = 28 * 86_400_000, maximumNotifications: Int = 1_000_000,
      maximumBytes: Int = 256 << 20
    ) {
      self.onlineAfter = onlineAfter
      self.maximumAge = maximumAge
      // Places are 32-bit numbers.
      self.maximumNotifications = min(maximumNotifications, Int(Int32.max))
      self.maximumBytes = maximumBytes
    }
  }

  package struct Counts: Sendable, Equatable {
    package var accepted = 0
    /// The device came online.
    package var delivered = 0
    /// Replaced by a later one before the device came online.
    package var coalesced = 0
    /// Its expiration or the maximum age passed, or it was not to be stored.
    package var expired = 0
    /// The store was full, or the device was changed or reset while it waited.
    package var dropped = 0
    /// Waiting.
    package var stored = 0

    package init() {}
  }

  package private(set) var counts = Counts()
  /// Bytes of tokens, payloads and collapse identifiers that are stored.
  package private(set) var bytes = 0

  private let options: Options
  private var clock = Int64.min
  private var isClosed = false
  /// Those without a collapse identifier.
  private var places: [TokenKey: Int32] = [:]
  private var collapsed: [CollapseKey: Int32] = [:]
  /// Of each device and topic the newest of those with a collapse identifier, linked by `Slot.nextOfDevice`.
  private var groups: [TokenKey: Int32] = [:]
  private var slots: [Slot] = []
  private var firstFree = Self.none
  /// The notifications that wait, linked in the order in which they were stored.
  private var oldest = Self.none
  private var newest = Self.none
  /// The times at which slots become due. A slot has one live entry; an entry whose serial differs from its slot's is
  /// stale.
  private var dues = Heap<Due>()
  private var lastSerial: UInt64 = 0

  /// Outcomes since the last `takeOutcomes`; `nil`: they are only counted.
  private var outcomes: [DeviceOutcome]?

  /// - Parameter keepsOutcomes: whether outcomes are kept for `takeOutcomes`.
  package init(_ options: Options = Options(), keepsOutcomes: Bool = false) {
    self.options = options
    outcomes = keepsOutcomes ? [] : nil
  }

  /// What was decided since the last call. To be called after each other one: they have no limit.
  package mutating func takeOutcomes() -> [DeviceOutcome] {
    guard outcomes?.isEmpty == false else { return [] }
    defer { outcomes = [] }
    return outcomes ?? []
  }

  private mutating func note(_ kind: DeviceOutcome.Kind, _ origin: DeviceOutcome.Origin, _ token: RawSpan) {
    if outcomes != nil { outcomes?.append(DeviceOutcome(kind, origin, token: Array(copying: token), at: clock)) }
  }

  private mutating func note(_ kind: DeviceOutcome.Kind, _ slot: Slot, at time: Int64) {
    if outcomes != nil { outcomes?.append(DeviceOutcome(kind, slot.origin, token: slot.key.token, at: time)) }
  }

  // MARK: events

  /// Accepts a notification for an offline device. If it is not stored, an earlier one remains.
  ///
  /// - Parameters:
  ///   - topic: the topic's number.
  ///   - expiration: the UNIX second until which it may be delivered; 0: it is not stored; `nil`: it never expires,
  ///     except by `maximumAge`.
  ///   - collapseID: replaces the one that waits with the same; empty: the one that waits without.
  ///   - origin: names it in its outcome.
  package mutating func accept(
    topic: UInt32, token: RawSpan, payload: RawSpan, expiration: UInt32?, collapseID: [UInt8] = [], now: Int64,
    origin: DeviceOutcome.Origin = DeviceOutcome.Origin()
  ) {
    advance(to: now)
    counts.accepted += 1
    let lastMoment = min(
      Self.sum(clock, options.maximumAge), expiration.map { Int64($0) * 1_000 } ?? Int64.max)
    guard expiration != 0, lastMoment >= clock else {
      counts.expired += 1
      return note(.expired, origin, token)
    }
    let size = token.byteCount + payload.byteCount + collapseID.count
    guard size <= options.maximumBytes, options.maximumNotifications > 0 else {
      counts.dropped += 1
      return note(.dropped, origin, token)
    }
    let key = TokenKey(topic: topic, token)
    let place: Int32
    if let waiting = self.place(key, collapseID) {
      place = waiting
      counts.coalesced += 1
      note(.coalesced, slots[Int(place)], at: clock)
      counts.stored -= 1
      bytes -= slots[Int(place)].size
      unlink(place)
      makeRoom(for: size)
    } else {
      // Before there is room: the device is awaited, whatever is dropped.
      let awaited = (places[key] ?? groups[key]).map { slots[Int($0)].onlineAt }
      makeRoom(for: size)
      place = newPlace(key, collapseID, onlineAt: awaited)
    }
    counts.stored += 1
    bytes += size
    slots[Int(place)].payload.removeAll(keepingCapacity: true)
    slots[Int(place)].payload.append(copying: payload)
    slots[Int(place)].lastMoment = lastMoment
    slots[Int(place)].origin = origin
    link(place)
    schedule(place)
  }

  /// Expires and delivers due notifications.
  ///
  /// Complexity: O(log n) for each due notification; O(1) if none is due.
  package mutating func advance(to now: Int64) {
    guard !isClosed else { return }
    clock = max(clock, now)
    while let due = dues.min, due.time <= clock {
      _ = dues.popMin()
      guard slots[Int(due.place)].serial == due.serial else { continue }
      let slot = slots[Int(due.place)]
      if slot.due > clock {
        // A later notification outlives the one that the entry was made for.
        enter(due.place)
      } else {
        let isDelivered = slot.onlineAt <= slot.lastMoment
        if isDelivered { counts.delivered += 1 } else { counts.expired += 1 }
        note(isDelivered ? .delivered : .expired, slot, at: slot.due)
        remove(due.place)
      }
    }
  }

  /// All devices come online, get their notifications, and go offline again.
  package mutating func comeOnline(now: Int64) {
    advance(to: now)
    counts.delivered += counts.stored
    clear(as: .delivered)
  }

  /// A device comes online for good, or never will: what waits for it is delivered or dropped.
  package mutating func settle(topic: UInt32, token: RawSpan, isDelivered: Bool, now: Int64) {
    advance(to: now)
    let key = TokenKey(topic: topic, token)
    while let place = places[key] ?? groups[key] {
      if isDelivered { counts.delivered += 1 } else { counts.dropped += 1 }
      note(isDelivered ? .delivered : .dropped, slots[Int(place)], at: clock)
      remove(place)
    }
  }

  /// Drops everything that waits.
  package mutating func removeAll(now: Int64) {
    advance(to: now)
    counts.dropped += counts.stored
    clear(as: .dropped)
  }

  /// Ends the time of the store: what waits now stays so, whatever is asked later.
  package mutating func close(now: Int64) {
    advance(to: now)
    noteAll(as: .stored)
    isClosed = true
  }

  /// In the order in which they were stored.
  private mutating func noteAll(as kind: DeviceOutcome.Kind) {
    guard outcomes != nil else { return }
    var place = oldest
    while place != Self.none {
      note(kind, slots[Int(place)], at: clock)
      place = slots[Int(place)].next
    }
  }

  private mutating func clear(as kind: DeviceOutcome.Kind) {
    noteAll(as: kind)
    counts.stored = 0
    bytes = 0
    (places, collapsed, groups) = ([:], [:], [:])
    slots = []
    dues = []
    (firstFree, oldest, newest) = (Self.none, Self.none, Self.none)
  }

  /// The payload that waits for a device; `nil` when none does.
  ///
  /// - Parameter collapseID: of the one with it; empty: of the one without.
  package func latest(topic: UInt32, token: RawSpan, collapseID: [UInt8] = []) -> [UInt8]? {
    place(TokenKey(topic: topic, token), collapseID).map { slots[Int($0)].payload }
  }

  private func place(_ key: TokenKey, _ collapseID: [UInt8]) -> Int32? {
    collapseID.isEmpty ? places[key] : collapsed[CollapseKey(device: key, identifier: collapseID)]
  }

  // MARK: capacity

  private mutating func makeRoom(for size: Int) {
    while oldest != Self.none, counts.stored >= options.maximumNotifications || bytes + size > options.maximumBytes {
      counts.dropped += 1
      note(.dropped, slots[Int(oldest)], at: clock)
      remove(oldest)
    }
  }

  /// - Parameter onlineAt: when the device is awaited; `nil`: nothing waits for it yet.
  private mutating func newPlace(_ key: TokenKey, _ collapseID: [UInt8], onlineAt: Int64?) -> Int32 {
    let onlineAt = onlineAt ?? options.onlineAfter.map { Self.sum(clock, $0) } ?? Int64.max
    let slot = Slot(key: key, collapseID: collapseID, onlineAt: onlineAt)
    let place: Int32
    if firstFree != Self.none {
      place = firstFree
      firstFree = slots[Int(place)].next
      slots[Int(place)] = slot
    } else {
      place = Int32(slots.count)
      slots.append(slot)
    }
    if collapseID.isEmpty {
      places[key] = place
    } else {
      collapsed[CollapseKey(device: key, identifier: collapseID)] = place
      if let next = groups.updateValue(place, forKey: key) {
        slots[Int(place)].nextOfDevice = next
        slots[Int(next)].previousOfDevice = place
      }
    }
    return place
  }

  /// Removes a notification from everything except the count of its outcome.
  private mutating func remove(_ place: Int32) {
    let slot = slots[Int(place)]
    counts.stored -= 1
    bytes -= slot.size
    unlink(place)
    if slot.collapseID.isEmpty { places[slot.key] = nil } else { leaveGroup(slot) }
    slots[Int(place)] = .free
    slots[Int(place)].next = firstFree
    firstFree = place
  }

  private mutating func leaveGroup(_ slot: Slot) {
    collapsed[CollapseKey(device: slot.key, identifier: slot.collapseID)] = nil
    let (previous, next) = (slot.previousOfDevice, slot.nextOfDevice)
    if next != Self.none { slots[Int(next)].previousOfDevice = previous }
    if previous != Self.none {
      slots[Int(previous)].nextOfDevice = next
    } else {
      groups[slot.key] = next == Self.none ? nil : next
    }
  }

  // MARK: the order of storing

  private mutating func link(_ place: Int32) {
    slots[Int(place)].previous = newest
    slots[Int(place)].next = Self.none
    if newest == Self.none { oldest = place } else { slots[Int(newest)].next = place }
    newest = place
  }

  private mutating func unlink(_ place: Int32) {
    let (previous, next) = (slots[Int(place)].previous, slots[Int(place)].next)
    if previous == Self.none { oldest = next } else { slots[Int(previous)].next = next }
    if next == Self.none { newest = previous } else { slots[Int(next)].previous = previous }
  }

  // MARK: the order of becoming due

  /// Ensures that an entry comes up no later than the slot is due; an entry that comes up earlier is entered again
  /// then.
  private mutating func schedule(_ place: Int32) {
    let slot = slots[Int(place)]
    if slot.serial != 0 && slot.enteredDue <= slot.due { return }
    enter(place)
    // Stale entries remain only for devices whose notifications expire ever earlier, and their number is bounded.
    if dues.count > 2 * counts.stored + 1_024 {
      let slots = self.slots
      dues.removeAll { slots[Int($0.place)].serial != $0.serial }
    }
  }

  private mutating func enter(_ place: Int32) {
    lastSerial += 1
    let due = slots[Int(place)].due
    slots[Int(place)].serial = lastSerial
    slots[Int(place)].enteredDue = due
    dues.insert(Due(time: due, serial: lastSerial, place: place))
  }

  private static func sum(_ time: Int64, _ span: Int64) -> Int64 {
    let (sum, overflow) = time.addingReportingOverflow(span)
    return overflow ? Int64.max : sum
  }

  private static var none: Int32 { -1 }

  private struct Due: Comparable, Sendable {
    let time: Int64
    let serial: UInt64
    let place: Int32

    static func < (a: Due, b: Due) -> Bool { a.time < b.time }
  }

  private struct CollapseKey: Hashable, Sendable {
    let device: TokenKey
    let identifier: [UInt8]
  }

  private struct Slot: Sendable {
    let key: TokenKey
    /// Empty: without.
    let collapseID: [UInt8]
    var payload: [UInt8] = []
    /// The last millisecond at which it can be delivered.
    var lastMoment = Int64.max
    let onlineAt: Int64
    var origin = DeviceOutcome.Origin()
    /// The serial of its live entry; 0 before it has one.
    var serial: UInt64 = 0
    var enteredDue = Int64.max
    var previous = OfflineStore.none
    var next = OfflineStore.none
    /// The neighbours among those of the device and topic that have a collapse identifier.
    var previousOfDevice = OfflineStore.none
    var nextOfDevice = OfflineStore.none

    init(key: TokenKey, collapseID: [UInt8], onlineAt: Int64) {
      self.key = key
      self.collapseID = collapseID
      self.onlineAt = onlineAt
    }

    static var free: Slot { Slot(key: .other(topic: 0, []), collapseID: [], onlineAt: Int64.max) }

    var size: Int { key.length + collapseID.count + payload.count }

    /// The time at which the device comes online or, if it is earlier, the first millisecond at which the notification
    /// has expired.
    var due: Int64 { onlineAt <= lastMoment ? onlineAt : lastMoment == Int64.max ? lastMoment : lastMoment + 1 }
  }
}
