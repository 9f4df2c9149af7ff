import Bytes
import DeviceProtocol
import HeapModule
import Measurement

/// The registered devices: their tokens, their connections, and the notifications that they have not acknowledged.
///
/// A value without sockets and clock: times are UNIX ms, given with every call; a time before that of an earlier call counts
/// as the earlier one. What is due is handled first, so a late `advance(to:)` changes nothing. At any time `accepted +
/// restored = delivered + coalesced + expired + dropped + stored`, where `stored` are those that wait or are not acknowledged.
struct RegisteredDevices: Sendable {
  typealias Link = RegisteredApp.Link

  private(set) var counts = Counts()
  /// Bytes of `stored`.
  private(set) var bytes = 0
  let options: DeviceChannel
  private let seed: UInt64
  private let window: Int64
  private let maximumAge: Int64
  private var clock = Int64.min
  var apps: [RegisteredApp] = []
  private var places: [TokenKey: Int32] = [:]
  /// How many topics each token is registered for.
  private var tokens: [TokenKey: Int32] = [:]
  /// The place of the latest generation of a device and topic.
  private var latest: [DeviceTopic: Int32] = [:]
  private var generations: [UInt64: MadeTokens] = [:]
  /// The apps of each connection.
  private var linked: [Link: [Int32]] = [:]
  /// Apps with something that becomes due; an entry is stale unless it has the time that the app has.
  private var dues = Heap<Due>()
  /// The order in which notifications began to wait; entries of those that no longer do are stale.
  private var order: [(number: UInt64, place: Int32)] = []
  private var oldest = 0
  private var waiting = 0
  /// The part of `counts.unacknowledged` that is not held, because its token is no longer valid.
  private var abandoned = 0
  private var lastNumber: UInt64 = 0
  /// Messages for devices since the last `takeMessages`.
  private var messages: [(link: Link, message: DeviceMessage)] = []
  /// Outcomes since the last `takeOutcomes`; `nil`: nobody asks.
  private var outcomes: [DeviceOutcome]?
  /// Changes since the last `takeChanges`; `nil`: no file keeps them.
  private var changes: [Change]?

  private struct DeviceTopic: Hashable, Sendable {
    let device: UInt64
    let topic: UInt32
  }

  private struct Due: Comparable, Sendable {
    let time: Int64
    let place: Int32

    static func < (a: Due, b: Due) -> Bool { (a.time, a.place) < (b.time, b.place) }
  }

  /// - Parameters:
  ///   - seed: determines the tokens.
  ///   - keepsOutcomes: whether outcomes are kept for `takeOutcomes`.
  ///   - keepsChanges: whether changes are kept for `takeChanges`.
  init(_ options: DeviceChannel, seed: UInt64, keepsOutcomes: Bool = false, keepsChanges: Bool = false) {
    self.options = options
    self.seed = seed
    window = options.delivery.window.nanoseconds / 1_000_000
    maximumAge = options.maximumAge.nanoseconds / 1_000_000
    outcomes = keepsOutcomes ? [] : nil
    changes = keepsChanges ? [] : nil
  }

  // MARK: taking

  mutating func takeMessages() -> [(link: Link, message: DeviceMessage)] {
    defer { messages = [] }
    return messages
  }

  mutating func takeOutcomes() -> [DeviceOutcome] {
    guard outcomes?.isEmpty == false else { return [] }
    defer { outcomes = [] }
    return outcomes ?? []
  }

  mutating func takeChanges() -> [Change] {
    guard changes?.isEmpty == false else { return [] }
    defer { changes = [] }
    return changes ?? []
  }

  // MARK: devices

  /// Gives a device the token of an app, the same one each time.
  ///
  /// - Parameters:
  ///   - topic: the number of the registration's topic.
  ///   - link: the device's connection.
  mutating func register(
    _ registration: DeviceMessage.Registration, topic: UInt32, on link: Link, now: Int64
  ) -> Registration {
    advance(to: now)
    let key = DeviceTopic(device: registration.device, topic: topic)
    let earlier = latest[key]
    if let earlier {
      let app = apps[Int(earlier)]
      if app.generation == registration.generation { return answer(registration, app.token, link) }
      if app.generation > registration.generation { return .refused(.oldGeneration) }
    }
    guard apps.count < options.maximumTokens else { return .refused(.tooMany) }
    if generations.count > 1_000 { generations = [:] }
    let made = generations[registration.generation] ?? MadeTokens(seed: seed, generation: registration.generation)
    generations[registration.generation] = made
    let token = made[registration.device]
    let app = RegisteredApp(
      topic: topic, name: registration.topic, token: token, device: registration.device,
      generation: registration.generation)
    if let earlier { retire(earlier, by: link) }
    add(app)
    note(app)
    return answer(registration, token, link)
  }

  /// The token reaches the device when it is kept.
  private mutating func answer(
    _ registration: DeviceMessage.Registration, _ token: [UInt8], _ link: Link
  ) -> Registration {
    messages.append(
      (link, .registered(.init(device: registration.device, topic: registration.topic, token: token))))
    return .token(token)
  }

  private mutating func add(_ app: RegisteredApp) {
    let place = Int32(apps.count)
    apps.append(app)
    places[TokenKey(topic: app.topic, app.token.rawBytes)] = place
    tokens[TokenKey(app.token.rawBytes), default: 0] += 1
    guard !app.isRetired else { return }
    latest[DeviceTopic(device: app.device, topic: app.topic)] = place
    counts.apps += 1
  }

  /// A later generation has registered: nothing is delivered to the token any more.
  private mutating func retire(_ place: Int32, by link: Link) {
    disconnect(place, for: link)
    apps[Int(place)].state = .retired(at: clock)
    counts.apps -= 1
    note(apps[Int(place)])
    drop(place)
  }

  /// Drops what waits. Notifications that were sent may have arrived, which no message will say: they stay in the counts.
  private mutating func drop(_ place: Int32) {
    let (sent, held) = (apps[Int(place)].unacknowledged, apps[Int(place)].waiting)
    (apps[Int(place)].unacknowledged, apps[Int(place)].waiting) = ([], [])
    for sent in sent {
      bytes -= sent.held.size
      abandoned += 1
      changes?.append(.settled(sent.held.number))
      note(.stored, sent.held, place)
    }
    for held in held { settleWaiting(held, place, as: .dropped) }
  }

  /// A device is connected, and says which notifications it has. Returns why a token cannot be used.
  mutating func online(
    _ apps: [(topic: UInt32, app: DeviceMessage.Online.App)], hasLowPower: Bool, on link: Link, now: Int64
  ) -> [(topic: String, reason: DeviceMessage.Refusal)] {
    advance(to: now)
    var refusals: [(topic: String, reason: DeviceMessage.Refusal)] = []
    for (topic, app) in apps.prefix(options.maximumAppsOfDevice) {
      guard let place = places[TokenKey(topic: topic, app.token.rawBytes)] else {
        refusals.append((app.topic, .unknownToken))
        continue
      }
      guard !self.apps[Int(place)].isRetired else {
        refusals.append((app.topic, .oldGeneration))
        continue
      }
      connect(place, link, hasLowPower: hasLowPower, received: app.received)
    }
    for (_, app) in apps.dropFirst(options.maximumAppsOfDevice) { refusals.append((app.topic, .tooMany)) }
    return refusals
  }

  private mutating func connect(_ place: Int32, _ link: Link, hasLowPower: Bool, received: UInt64) {
    acknowledge(place, received)
    apps[Int(place)].lastSequence = max(apps[Int(place)].lastSequence, received)
    if apps[Int(place)].link != link {
      disconnect(place, for: link)
      takeBack(place)
      linked[link, default: []].append(place)
      counts.online += 1
    }
    apps[Int(place)].state = .online(link, hasLowPower: hasLowPower)
    release(place, isAwake: true)
  }

  /// Ends the use of an app's connection because of another one.
  private mutating func disconnect(_ place: Int32, for other: Link) {
    guard let link = apps[Int(place)].link else { return }
    if link != other { messages.append((link, .refused(reason: .replaced, topic: apps[Int(place)].name))) }
    linked[link]?.removeAll { $0 == place }
    if linked[link]?.isEmpty == true { linked[link] = nil }
    leave(place)
  }

  /// The device of an app is no longer connected.
  private mutating func leave(_ place: Int32) {
    apps[Int(place)].state = .away
    counts.online -= 1
    coalesce(place)
    expire(place)
    schedule(place)
  }

  /// Notifications that an ended connection has not brought to the device wait again, in the order of their numbers.
  private mutating func takeBack(_ place: Int32) {
    let lost = apps[Int(place)].unacknowledged
    guard !lost.isEmpty else { return }
    apps[Int(place)].unacknowledged = []
    counts.unacknowledged -= lost.count
    for sent in lost {
      var held = sent.held
      held.hasWaited = true
      held.wasSent = true
      apps[Int(place)].waiting.append(held)
      beginWaiting(held, place)
    }
    // What a window or a budget held back may be older.
    apps[Int(place)].waiting.sort { $0.number < $1.number }
    coalesce(place)
    expire(place)
  }

  /// A connection has ended.
  mutating func offline(_ link: Link, now: Int64) {
    advance(to: now)
    for place in linked.removeValue(forKey: link) ?? [] { leave(place) }
  }

  /// A device has all notifications of an app up to a sequence. `false` if its connection has no such app.
  mutating func acknowledge(topic: UInt32, token: [UInt8], sequence: UInt64, on link: Link, now: Int64) -> Bool {
    advance(to: now)
    guard let place = places[TokenKey(topic: topic, token.rawBytes)], apps[Int(place)].link == link,
      sequence <= apps[Int(place)].lastSequence
    else { return false }
    acknowledge(place, sequence)
    release(place, isAwake: false)
    return true
  }

  private mutating func acknowledge(_ place: Int32, _ sequence: UInt64) {
    while let first = apps[Int(place)].unacknowledged.first, first.sequence <= sequence {
      apps[Int(place)].unacknowledged.removeFirst()
      counts.unacknowledged -= 1
      settle(first.held, place, as: .delivered)
    }
  }

  // MARK: notifications

  /// The place of an app, and what is decided on its notifications without looking at them.
  private func find(_ topic: UInt32, _ token: RawSpan) -> (place: Int32, Decision) {
    guard let place = places[TokenKey(topic: topic, token)] else {
      return (-1, tokens[TokenKey(token)] == nil ? .unknown : .otherTopic)
    }
    if case .retired(let time) = apps[Int(place)].state { return (place, .unregistered(since: time)) }
    return (place, .accepted)
  }

  /// The decision on a notification, which is not yet accepted.
  func decision(on push: OfferedPush) -> Decision { find(push.topic, push.token).1 }

  /// Takes a notification for a registered device: sends it, or lets it wait.
  mutating func accept(_ push: OfferedPush, now: Int64) -> Decision {
    advance(to: now)
    let (place, decision) = find(push.topic, push.token)
    guard decision == .accepted else { return decision }
    lastNumber += 1
    let held = held(push, number: lastNumber)
    counts.accepted += 1
    take(held, place)
    return .accepted
  }

  /// The number that the next accepted notification has.
  var nextNumber: UInt64 { lastNumber + 1 }

  /// A notification as it is held.
  func held(_ push: OfferedPush, number: UInt64) -> HeldNotification {
    let now = max(clock, push.sent / 1_000_000)
    let age = Self.sum(now, maximumAge)
    let end = push.expiration.map { $0 == 0 ? now : Int64($0) * 1_000 } ?? Int64.max
    return HeldNotification(
      number: number, origin: push.origin, payload: Array(copying: push.payload), priority: push.priority,
      pushType: push.pushType, expiration: push.expiration, collapseID: push.collapseID,
      isBackground: push.isBackground,
      sent: push.sent, lastMoment: min(age, end),
      releasedAt: push.priority == 5 && window > 0 ? (now / window + 1) * window : now)
  }

  private mutating func take(_ held: HeldNotification, _ place: Int32) {
    counts.stored += 1
    bytes += held.size
    makeRoom()
    guard !isOverLimit else {
      // All others were sent.
      return settle(held, place, as: .dropped)
    }
    let isAwake = held.priority > 5 && !held.isBackground
    if case .online(let link, let hasLowPower) = apps[Int(place)].state, apps[Int(place)].waiting.isEmpty,
      apps[Int(place)].unacknowledged.count < options.maximumUnacknowledged,
      isFree(held, place, isAwake: isAwake, hasLowPower: hasLowPower)
    {
      return send(held, place, link)
    }
    apps[Int(place)].waiting.append(held)
    beginWaiting(held, place)
    coalesce(place)
    release(place, isAwake: isAwake)
    if let last = apps[Int(place)].waiting.indices.last, apps[Int(place)].waiting[last].number == held.number {
      apps[Int(place)].waiting[last].hasWaited = true
    }
  }

  private mutating func beginWaiting(_ held: HeldNotification, _ place: Int32) {
    waiting += 1
    order.append((held.number, place))
    guard order.count - oldest > 2 * waiting + 1_024 else { return }
    let apps = apps
    order = order[oldest...].filter { entry in
      apps[Int(entry.place)].waiting.contains { $0.number == entry.number }
    }
    oldest = 0
  }

  /// A later notification replaces one that waits, of the same app and collapse identifier. For a device that is away,
  /// those without one replace each other, too; one that is connected gets all of them.
  private mutating func coalesce(_ place: Int32) {
    guard apps[Int(place)].waiting.count > 1 else { return }
    let replaced = apps[Int(place)].coalesce(keepsUnnamed: apps[Int(place)].isOnline)
    for held in replaced { settleWaiting(held, place, as: .coalesced) }
  }

  private mutating func expire(_ place: Int32) {
    guard apps[Int(place)].waiting.contains(where: { $0.isOver(at: clock, isAway: !apps[Int(place)].isOnline) }) else {
      return
    }
    let isAway = !apps[Int(place)].isOnline
    let waiting = apps[Int(place)].waiting
    apps[Int(place)].waiting.removeAll { $0.isOver(at: clock, isAway: isAway) }
    for held in waiting where held.isOver(at: clock, isAway: isAway) { settleWaiting(held, place, as: .expired) }
  }

  /// Sends what may be sent to a device that is connected, in the order in which it was accepted.
  ///
  /// - Parameter isAwake: what waits for the device to be awake is sent, too.
  private mutating func release(_ place: Int32, isAwake: Bool) {
    expire(place)
    guard case .online(let link, let hasLowPower) = apps[Int(place)].state else { return schedule(place) }
    var index = 0
    while index < apps[Int(place)].waiting.count,
      apps[Int(place)].unacknowledged.count < options.maximumUnacknowledged
    {
      let held = apps[Int(place)].waiting[index]
      guard isFree(held, place, isAwake: isAwake, hasLowPower: hasLowPower) else {
        index += 1
        continue
      }
      apps[Int(place)].waiting.remove(at: index)
      waiting -= 1
      send(held, place, link)
    }
    if isAwake { for index in apps[Int(place)].waiting.indices { apps[Int(place)].waiting[index].isReleased = true } }
    schedule(place)
  }

  private func isFree(_ held: HeldNotification, _ place: Int32, isAwake: Bool, hasLowPower: Bool) -> Bool {
    if held.isBackground, hasLowPower || isSpent(place) { return false }
    switch held.priority {
    case 1: return isAwake || held.isReleased
    case 5: return isAwake || held.isReleased || held.releasedAt <= clock
    default: return true
    }
  }

  private func isSpent(_ place: Int32) -> Bool {
    guard let budget = options.delivery.backgroundBudget else { return false }
    return apps[Int(place)].day == clock / Self.day && apps[Int(place)].used >= budget || budget == 0
  }

  private mutating func send(_ held: HeldNotification, _ place: Int32, _ link: Link) {
    if held.isBackground {
      let today = clock / Self.day
      if apps[Int(place)].day != today { (apps[Int(place)].day, apps[Int(place)].used) = (today, 0) }
      apps[Int(place)].used += 1
    }
    apps[Int(place)].lastSequence += 1
    let sequence = apps[Int(place)].lastSequence
    counts.unacknowledged += 1
    counts.sent += 1
    if held.wasSent { counts.repeated += 1 }
    changes?.append(.sent(held.number, sequence: sequence))
    let app = apps[Int(place)]
    messages.append(
      (
        link,
        .deliver(
          DeviceMessage.Delivery(
            token: app.token, topic: app.name, sequence: sequence, payload: held.payload, priority: held.priority,
            pushType: held.pushType, expiration: held.expiration,
            collapseID: held.collapseID.isEmpty ? nil : String(decoding: held.collapseID, as: UTF8.self),
            sent: held.sent, isStored: held.hasWaited, isRepeated: held.wasSent))
      ))
    apps[Int(place)].unacknowledged.append(.init(sequence: sequence, held: held))
  }

  // MARK: time

  /// Expires and sends what is due.
  ///
  /// Complexity: O(log n) for each app with something due.
  mutating func advance(to now: Int64) {
    let end = max(clock, now)
    while let due = dues.min, due.time <= end {
      _ = dues.popMin()
      guard apps[Int(due.place)].enteredDue == due.time else { continue }
      apps[Int(due.place)].enteredDue = .max
      clock = max(clock, due.time)
      release(due.place, isAwake: false)
      expire(due.place)
      schedule(due.place)
    }
    clock = end
  }

  /// Enters the time at which something of an app becomes due.
  private mutating func schedule(_ place: Int32) {
    guard !apps[Int(place)].waiting.isEmpty else { return }
    let isOnline = apps[Int(place)].isOnline
    var time = Int64.max
    for held in apps[Int(place)].waiting {
      if held.lastMoment < Int64.max { time = min(time, held.lastMoment + 1) }
      guard isOnline else { continue }
      if held.priority == 5, held.releasedAt > clock { time = min(time, held.releasedAt) }
      if held.isBackground, isSpent(place) { time = min(time, (clock / Self.day + 1) * Self.day) }
    }
    guard time < apps[Int(place)].enteredDue else { return }
    apps[Int(place)].enteredDue = time
    dues.insert(Due(time: time, place: place))
    // Stale entries remain only where what waits becomes due ever earlier.
    guard dues.count > 2 * apps.count + 1_024 else { return }
    let apps = apps
    dues.removeAll { apps[Int($0.place)].enteredDue != $0.time }
  }

  // MARK: outcomes

  /// How the gateway is done with a notification.
  private enum End {
    case delivered, coalesced, expired, dropped

    var outcome: DeviceOutcome.Kind {
      switch self {
      case .delivered: .delivered
      case .coalesced: .coalesced
      case .expired: .expired
      case .dropped: .dropped
      }
    }

    var count: WritableKeyPath<Counts, Int> {
      switch self {
      case .delivered: \.delivered
      case .coalesced: \.coalesced
      case .expired: \.expired
      case .dropped: \.dropped
      }
    }

    /// How long it was at the gateway; of what is delivered the devices know it.
    var times: WritableKeyPath<Counts, LatencyHistogram>? {
      switch self {
      case .coalesced: \.coalescedAfter
      case .expired: \.expiredAfter
      case .delivered, .dropped: nil
      }
    }
  }

  private mutating func settleWaiting(_ held: HeldNotification, _ place: Int32, as end: End) {
    waiting -= 1
    settle(held, place, as: end)
  }

  private mutating func settle(_ held: HeldNotification, _ place: Int32, as end: End) {
    counts.stored -= 1
    bytes -= held.size
    counts[keyPath: end.count] += 1
    if let times = end.times {
      let (now, overflows) = clock.multipliedReportingOverflow(by: 1_000)
      counts[keyPath: times].record(overflows ? 0 : Int(now - held.sent / 1_000))
    }
    changes?.append(.settled(held.number))
    note(end.outcome, held, place)
  }

  private mutating func note(_ kind: DeviceOutcome.Kind, _ held: HeldNotification, _ place: Int32) {
    guard outcomes != nil else { return }
    outcomes?.append(DeviceOutcome(kind, held.origin, token: apps[Int(place)].token, at: clock))
  }

  private mutating func note(_ app: RegisteredApp) {
    guard changes != nil else { return }
    var retiredAt: Int64?
    if case .retired(let time) = app.state { retiredAt = time }
    changes?.append(
      .app(
        topic: app.name, token: app.token, device: app.device, generation: app.generation, retiredAt: retiredAt))
  }

  private var isOverLimit: Bool {
    counts.stored - abandoned > options.maximumNotifications || bytes > options.maximumBytes
  }

  /// Drops what has waited longest while there is too much.
  private mutating func makeRoom() {
    while isOverLimit, oldest < order.count {
      let (number, place) = order[oldest]
      oldest += 1
      guard let index = apps[Int(place)].waiting.firstIndex(where: { $0.number == number }) else { continue }
      settleWaiting(apps[Int(place)].waiting.remove(at: index), place, as: .dropped)
    }
  }

  /// Ends the time of all: what is stored now stays so.
  mutating func close(now: Int64) {
    advance(to: now)
    guard outcomes != nil else { return }
    for place in apps.indices {
      for sent in apps[place].unacknowledged { note(.stored, sent.held, Int32(place)) }
      for held in apps[place].waiting { note(.stored, held, Int32(place)) }
    }
  }

  /// A notification could not be kept.
  mutating func noteUnkept() { counts.unkept += 1 }

  /// Drops what waits, and forgets what is not acknowledged.
  mutating func removeAll(now: Int64) {
    advance(to: now)
    for place in apps.indices.map(Int32.init) { drop(place) }
    counts.stored -= abandoned
    counts.unacknowledged -= abandoned
    abandoned = 0
    (counts.coalescedAfter, counts.expiredAfter) = (LatencyHistogram(.milliseconds), LatencyHistogram(.milliseconds))
  }

  // MARK: what a file has kept

  /// Adds an app of an earlier run, before devices connect.
  mutating func restore(
    topic: UInt32, name: String, token: [UInt8], device: UInt64, generation: UInt64, retiredAt: Int64?
  ) {
    var app = RegisteredApp(topic: topic, name: name, token: token, device: device, generation: generation)
    if let retiredAt { app.state = .retired(at: retiredAt) }
    add(app)
  }

  /// Adds a notification of an earlier run, in the order of their numbers, before devices connect.
  ///
  /// - Parameter sequence: that it was sent with; `nil`: it was not sent.
  mutating func restore(_ held: HeldNotification, topic: UInt32, token: [UInt8], sequence: UInt64?, now: Int64) {
    lastNumber = max(lastNumber, held.number)
    guard let place = places[TokenKey(topic: topic, token.rawBytes)], !apps[Int(place)].isRetired else {
      changes?.append(.settled(held.number))
      return
    }
    clock = max(clock, now)
    counts.restored += 1
    guard let sequence else { return take(held, place) }
    counts.stored += 1
    counts.unacknowledged += 1
    bytes += held.size
    apps[Int(place)].unacknowledged.append(.init(sequence: sequence, held: held))
    apps[Int(place)].lastSequence = max(apps[Int(place)].lastSequence, sequence)
  }

  private static var day: Int64 { 86_400_000 }

  private static func sum(_ time: Int64, _ span: Int64) -> Int64 {
    let (sum, overflow) = time.addingReportingOverflow(span)
    return overflow ? Int64.max : sum
  }
}

extension HeldNotification {
  /// Whether it can no longer be sent.
  ///
  /// - Parameter isAway: the device is not connected: what is not to be stored ends.
  func isOver(at time: Int64, isAway: Bool) -> Bool { lastMoment < time || (isAway && expiration == 0) }
}
