import DequeModule
import DeviceProtocol
import HeapModule
import Measurement

/// The server of local push: who is on which network, and which requests are not acknowledged.
///
/// ```
///            connected            user                       disconnected, replaced
///   (none) ────────────► unknown ──────► registered ───────────────────────────────► (none)
///                           │                │ silence
///                           │ anything else  ▼
///                           └──► (none)    silent ──► (none)
/// ```
///
/// A value without sockets and clock: times are UNIX ns, given with every call; a time before that of an earlier call counts
/// as the earlier one. What is due is done first. Of each kind of request `offered = sent + absent + overloaded + silenced`
/// and `sent = acknowledged + timedOut + lost + unacknowledged`, at any time. A user is on the network of the address at which
/// the user's notification channel came in, and on none without one.
struct LocalPushServer: Sendable {
  typealias Link = RegisteredApp.Link
  typealias User = LocalPushMessage.User

  /// An order for a connection.
  enum Order: Sendable, Equatable {
    case write(LocalPushMessage)
    case close
  }

  /// A user, and the place of the network where that user is.
  struct Located: Sendable, Equatable {
    let user: User
    let network: Int
  }

  /// Where a message for a user comes from.
  enum Source: String, Sendable, CaseIterable { case device, control, file, rate }

  typealias Outcome = Simulator.LocalPushOutcome

  /// Why a connection is closed.
  enum Refusal: String, Sendable, CaseIterable {
    /// Something else than a user came first.
    case unregistered
    /// The user's name or identifier is empty or too long, or another one than before.
    case user
    /// The user has connected anew.
    case replaced
    /// Nobody registered in time.
    case late
    /// The peer did not read what was written.
    case slow
  }

  /// The most bytes of a user's identifier, and of the name of the device.
  static let longestIdentifier = 64
  static let longestName = 128
  /// The most bytes of the users of a directory, before Base64.
  private static let longestDirectory = 32 << 10
  /// The most messages of the rate that are made at a time; what is left comes the next time.
  private static let mostAtOnce = 10_000

  private struct Connection: Sendable {
    let channel: LocalPushChannel
    /// `nil`: nobody has registered.
    var user: String?
    var isSilent = false
    var lastIdentifier: UInt32 = 0
    var unacknowledged: [UInt32: LocalPushKind] = [:]
    var heartbeats: UInt64 = 0
    /// Its place among the control channels.
    var place = 0
    /// Users have come or gone since the last directory, which is not acknowledged.
    var owesDirectory = false
  }

  private struct Person: Sendable {
    var user: User
    var notification: Link?
    var control: Link?
    /// Its place among those who are here.
    var place = 0
  }

  private struct Beat: Comparable, Sendable {
    let time: Int64
    let link: Link

    static func < (a: Beat, b: Beat) -> Bool { (a.time, a.link.connection) < (b.time, b.link.connection) }
  }

  private(set) var counts: Counts
  let options: LocalPushService
  /// At the moment.
  private(set) var lostHeartbeats: Double
  private let seed: UInt64
  private let start: Int64
  private var clock: Int64
  private var connections: [Link: Connection] = [:]
  private var people: [String: Person] = [:]
  /// The identifiers of those with a notification channel.
  private var here: [String] = []
  /// Registered control channels.
  private var controls: [Link] = []
  private var beats = Heap<Beat>()
  /// Requests in the order in which they time out; entries of those that were acknowledged are stale.
  private var deadlines = Deque<(time: Int64, link: Link, identifier: UInt32)>()
  private var unacknowledged = 0
  /// When control channels are told of who is here.
  private var directoryAt: Int64?
  private var nextPlanned = 0
  private var nextSilence = 0
  /// Messages of the rate so far.
  private var made: UInt64 = 0
  private var hits: UInt64 = 0
  /// Nothing is sent any more of the server's own accord.
  private var isEnding = false
  private var orders: [(link: Link, order: Order)] = []

  init(_ options: LocalPushService, seed: UInt64, start: Int64) {
    (self.options, self.seed, self.start, clock) = (options, seed, start, start)
    lostHeartbeats = options.faults.lostHeartbeats
    counts = Counts(networks: options.networks.count)
  }

  // MARK: networks

  /// The place of a network; `nil`: no network has this name.
  func network(named name: String) -> Int? { options.networks.firstIndex { $0.name == name } }

  /// The network that a user is on; `nil`: none.
  func network(of identifier: String) -> Int? {
    people[identifier]?.notification.flatMap { connections[$0]?.channel.network }
  }

  /// Those who are on a network, or on any, in no order. O(users who are here).
  func users(on network: Int? = nil) -> [Located] {
    here.compactMap { identifier in
      guard let user = people[identifier]?.user, let place = self.network(of: identifier) else { return nil }
      return network == nil || place == network ? Located(user: user, network: place) : nil
    }
  }

  /// The orders since the last call, as they were given.
  mutating func takeOrders() -> [(link: Link, order: Order)] {
    guard !orders.isEmpty else { return [] }
    defer { orders = [] }
    return orders
  }

  // MARK: connections

  /// A connection can be used.
  mutating func connected(_ link: Link, _ channel: LocalPushChannel, now: Int64) {
    advance(to: now)
    connections[link] = Connection(channel: channel)
    counts.open += 1
  }

  /// A connection was accepted, and ended before its handshake was completed.
  mutating func noteFailedHandshake() { counts.handshakeFailures += 1 }

  /// A connection was accepted.
  mutating func noteConnection() { counts.connections += 1 }

  /// A connection has ended. Later calls for it do nothing.
  mutating func disconnected(_ link: Link, now: Int64) {
    advance(to: now)
    forget(link)
  }

  /// Bytes came that are no message: the caller closes the connection.
  mutating func noteMalformed(_ link: Link, now: Int64) {
    advance(to: now)
    guard let connection = connections[link], !connection.isSilent else { return }
    counts.malformed += 1
    forget(link)
  }

  private mutating func forget(_ link: Link) {
    guard let connection = connections.removeValue(forKey: link) else { return }
    counts.open -= 1
    let network = connection.channel.network
    for kind in connection.unacknowledged.values {
      counts[network][kind].unacknowledged -= 1
      counts[network][kind].lost += 1
    }
    unacknowledged -= connection.unacknowledged.count
    guard let identifier = connection.user, var person = people[identifier] else { return }
    switch connection.channel {
    case .notification where person.notification == link:
      person.notification = nil
      counts[network].here -= 1
      if let last = here.popLast(), last != identifier {
        here[person.place] = last
        people[last]?.place = person.place
      }
      noteChange()
    case .control where person.control == link:
      person.control = nil
      if let last = controls.popLast(), last != link {
        controls[connection.place] = last
        connections[last]?.place = connection.place
      }
    default: break
    }
    people[identifier] = person.notification == nil && person.control == nil ? nil : person
  }

  /// Ends a connection.
  mutating func refuse(_ link: Link, _ reason: Refusal, now: Int64) {
    advance(to: now)
    guard connections[link] != nil else { return }
    refuse(link, reason)
  }

  private mutating func refuse(_ link: Link, _ reason: Refusal) {
    counts.refused[reason, default: 0] += 1
    forget(link)
    orders.append((link, .close))
  }

  /// All connections of the server or of a network end, or fall silent for ever.
  ///
  /// - Parameter network: its place; `nil`: the whole server. If connections end, nobody there is known any more.
  mutating func restart(
    _ network: Int? = nil, _ ending: LocalPushFaults.Outage.Ending = .closed, now: Int64
  ) {
    advance(to: now)
    if network == nil { counts.restarts += 1 }
    for place in counts.networks.indices where network == nil || network == place { counts[place].restarts += 1 }
    for link in links(network) {
      switch ending {
      case .closed:
        forget(link)
        orders.append((link, .close))
      case .silent: fallSilent(link)
      }
    }
  }

  /// The connections of a network or of all, in an order that does not depend on the seed of hashes.
  private func links(_ network: Int? = nil) -> [Link] {
    connections.filter { network == nil || $0.value.channel.network == network }.keys
      .sorted { $0.connection < $1.connection }
  }

  /// Sends no more messages, heartbeats and directories of its own.
  mutating func end(now: Int64) {
    advance(to: now)
    isEnding = true
  }

  // MARK: messages of devices

  /// A device has sent a message.
  mutating func receive(_ message: LocalPushMessage, on link: Link, now: Int64) {
    advance(to: now)
    guard let connection = connections[link], !connection.isSilent else { return }
    guard case .request = message.command, let content = message.content else {
      guard connection.user != nil else { return refuse(link, .unregistered) }
      return acknowledge(message.identifier, on: link)
    }
    guard !isEnding else { return }
    if case .user(let user) = content {
      guard isPossible(user), connection.user == nil || connection.user == user.identifier else {
        return refuse(link, .user)
      }
      answer(message.identifier, content, on: link)
      register(user, on: link)
      return
    }
    guard connection.user != nil else { return refuse(link, .unregistered) }
    answer(message.identifier, content, on: link)
    switch content {
    case .text, .invite, .callAction: offer(content, from: .device)
    case .directory: tellDirectory(link)
    case .user, .heartbeat, .other: break
    }
  }

  private mutating func answer(_ identifier: UInt32, _ content: LocalPushMessage.Content, on link: Link) {
    counts.requests[content.name, default: 0] += 1
    orders.append((link, .write(LocalPushMessage(acknowledging: identifier))))
  }

  private func isPossible(_ user: User) -> Bool {
    (1...Self.longestIdentifier).contains(user.identifier.utf8.count) && user.deviceName.utf8.count <= Self.longestName
  }

  private mutating func register(_ user: User, on link: Link) {
    guard let connection = connections[link] else { return }
    let isNew = connection.user == nil
    var person = people[user.identifier] ?? Person(user: user)
    let hasOtherName = person.user != user
    person.user = user
    people[user.identifier] = person
    guard isNew else {
      if hasOtherName { noteChange() }
      return
    }
    let network = connection.channel.network
    let earlier = network == nil ? person.control : person.notification
    if let earlier { refuse(earlier, .replaced) }
    // The earlier connection may have been the only one.
    person = people[user.identifier] ?? Person(user: user)
    connections[link]?.user = user.identifier
    counts[network].registered += 1
    switch connection.channel {
    case .notification:
      (person.notification, person.place) = (link, here.count)
      here.append(user.identifier)
      counts[network].here += 1
      beats.insert(Beat(time: clock + options.heartbeat.nanoseconds, link: link))
      noteChange()
    case .control:
      person.control = link
      connections[link]?.place = controls.count
      controls.append(link)
    }
    people[user.identifier] = person
    if connection.channel == .control { tellDirectory(link) }
  }

  private mutating func acknowledge(_ identifier: UInt32, on link: Link) {
    guard let kind = connections[link]?.unacknowledged.removeValue(forKey: identifier) else {
      counts.strayAcknowledgements += 1
      return
    }
    unacknowledged -= 1
    let network = connections[link]?.channel.network
    counts[network][kind].unacknowledged -= 1
    counts[network][kind].acknowledged += 1
    if kind == .directory, connections[link]?.owesDirectory == true { tellDirectory(link) }
  }

  // MARK: messages for devices

  /// Has a message for a user, who gets it if there is a connection of the channel.
  ///
  /// - Parameter content: a text, an invitation, or an action in a call; anything else is for nobody.
  @discardableResult
  mutating func offer(_ content: LocalPushMessage.Content, from source: Source, now: Int64) -> Outcome {
    advance(to: now)
    return offer(content, from: source)
  }

  /// Has a message for a user, or for everybody who is on a network at the moment.
  ///
  /// - Returns: the outcomes as far as they are known at once, one for each receiver; none: nobody is on the network, which
  ///   counts as one absent receiver. `nil`: there is no such network. O(users who are here) for a network.
  @discardableResult
  mutating func offer(_ message: LocalPushOffer, from source: Source, now: Int64) -> [Outcome]? {
    advance(to: now)
    return offer(message, from: source)
  }

  @discardableResult
  private mutating func offer(_ message: LocalPushOffer, from source: Source) -> [Outcome]? {
    switch message.receiver {
    case .user(let user): return [offer(message.content(for: user), from: source)]
    case .network(let name):
      guard let network = network(named: name) else { return nil }
      let receivers = users(on: network)
      if receivers.isEmpty {
        counts.sources[source, default: 0] += 1
        counts[network][message.countedKind].offered += 1
        counts[network][message.countedKind].absent += 1
      }
      return receivers.map { offer(message.content(for: $0.user), from: source) }
    }
  }

  @discardableResult
  private mutating func offer(_ content: LocalPushMessage.Content, from source: Source) -> Outcome {
    let (kind, link): (LocalPushKind, Link?)
    switch content {
    case .text(_, _, let receiver): (kind, link) = (.text, people[receiver.identifier]?.notification)
    case .invite(_, let receiver): (kind, link) = (.invite, people[receiver.identifier]?.notification)
    case .callAction(_, let receiver): (kind, link) = (.callAction, people[receiver.identifier]?.control)
    case .user, .heartbeat, .directory, .other: return .absent
    }
    counts.sources[source, default: 0] += 1
    guard let link, !isEnding else {
      counts[nil][kind].offered += 1
      counts[nil][kind].absent += 1
      return .absent
    }
    return send(content, kind, on: link)
  }

  /// Sends a request, and awaits its acknowledgement.
  @discardableResult
  private mutating func send(
    _ content: LocalPushMessage.Content, _ kind: LocalPushKind, on link: Link
  ) -> Outcome {
    let network = connections[link]?.channel.network
    counts[network][kind].offered += 1
    guard var connection = connections[link] else {
      counts[network][kind].absent += 1
      return .absent
    }
    guard !connection.isSilent else {
      counts[network][kind].silenced += 1
      return .silenced
    }
    guard connection.unacknowledged.count < options.maximumUnacknowledged else {
      counts[network][kind].overloaded += 1
      return .overloaded
    }
    connections[link] = nil
    repeat { connection.lastIdentifier &+= 1 } while connection.unacknowledged[connection.lastIdentifier] != nil
    connection.unacknowledged[connection.lastIdentifier] = kind
    connections[link] = connection
    counts[network][kind].sent += 1
    counts[network][kind].unacknowledged += 1
    unacknowledged += 1
    deadlines.append((clock + options.requestTimeout.nanoseconds, link, connection.lastIdentifier))
    removeStaleDeadlines()
    orders.append((link, .write(LocalPushMessage(request: connection.lastIdentifier, content, sent: clock))))
    return .sent
  }

  /// Entries of requests that may time out, stale ones included.
  var deadlineCount: Int { deadlines.count }

  private mutating func removeStaleDeadlines() {
    guard deadlines.count > 2 * unacknowledged + 1_024 else { return }
    let connections = connections
    deadlines.removeAll { connections[$0.link]?.unacknowledged[$0.identifier] == nil }
  }

  private mutating func noteChange() {
    guard directoryAt == nil, !isEnding else { return }
    directoryAt = clock + options.directoryInterval.nanoseconds
  }

  private mutating func tellDirectory(_ link: Link) {
    guard !isEnding, let connection = connections[link] else { return }
    guard !connection.unacknowledged.values.contains(.directory) else {
      connections[link]?.owesDirectory = true
      return
    }
    connections[link]?.owesDirectory = false
    send(.directory(directory), .directory, on: link)
  }

  /// Those who are here, as many as a message has room for.
  private var directory: [User] {
    var users: [User] = []
    var length = 0
    for identifier in here.prefix(options.maximumDirectoryUsers) {
      guard let user = people[identifier]?.user else { continue }
      length += Self.length(user)
      guard length <= Self.longestDirectory else { break }
      users.append(user)
    }
    return users
  }

  /// The most bytes that a user takes in JSON.
  private static func length(_ user: User) -> Int {
    func length(_ text: String) -> Int {
      text.utf8.reduce(0) { $0 + ($1 < 0x20 || $1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 6 : 1) }
    }
    return 32 + length(user.identifier) + length(user.deviceName)
  }

  // MARK: faults

  /// Whether the server has fallen silent on a connection.
  func isSilent(_ link: Link) -> Bool { connections[link]?.isSilent == true }

  /// The share of heartbeats that are not sent from now on.
  mutating func loseHeartbeats(_ share: Double, now: Int64) {
    advance(to: now)
    lostHeartbeats = share
  }

  /// Open connections fall silent, until they end.
  ///
  /// - Parameter share: of the connections, drawn by the seed and their numbers.
  mutating func silence(_ share: Double, now: Int64) {
    advance(to: now)
    silence(share)
  }

  private mutating func silence(_ share: Double) {
    for link in links() where connections[link]?.isSilent == false && isHit(share, link.connection) { fallSilent(link) }
  }

  private mutating func fallSilent(_ link: Link) {
    guard connections[link]?.isSilent == false else { return }
    connections[link]?.isSilent = true
    counts.silencedConnections += 1
  }

  private mutating func isHit(_ share: Double, _ number: UInt64) -> Bool {
    guard share > 0 else { return false }
    hits &+= 1
    var draws = SplitMix64(seed: seed ^ 0x6c70_6861_756c_7400 ^ hits, stream: number)
    return draws.isHit(share)
  }

  // MARK: time

  /// Does what is due.
  mutating func advance(to now: Int64) {
    clock = max(clock, now)
    while let first = deadlines.first, first.time <= clock {
      deadlines.removeFirst()
      guard let kind = connections[first.link]?.unacknowledged.removeValue(forKey: first.identifier) else { continue }
      unacknowledged -= 1
      let network = connections[first.link]?.channel.network
      counts[network][kind].unacknowledged -= 1
      counts[network][kind].timedOut += 1
      if kind == .directory, connections[first.link]?.owesDirectory == true { tellDirectory(first.link) }
    }
    guard !isEnding else { return }
    while nextSilence < options.faults.silences.count {
      let silence = options.faults.silences[nextSilence]
      guard isPast(silence.time) else { break }
      nextSilence += 1
      self.silence(silence.share)
    }
    while let beat = beats.min, beat.time <= clock {
      beats.removeMin()
      self.beat(beat)
    }
    if let time = directoryAt, time <= clock {
      directoryAt = nil
      for link in controls { tellDirectory(link) }
    }
    while nextPlanned < options.planned.count, isPast(options.planned[nextPlanned].time) {
      nextPlanned += 1
      offer(options.planned[nextPlanned - 1].message, from: .file)
    }
    makeMessages()
  }

  private func isPast(_ time: Duration) -> Bool { clock - start >= time.nanoseconds }

  private mutating func beat(_ beat: Beat) {
    guard let connection = connections[beat.link] else { return }
    let next = beat.time + options.heartbeat.nanoseconds
    // After a pause of the process there is one, and not one for each that was missed.
    beats.insert(Beat(time: next > clock ? next : clock + options.heartbeat.nanoseconds, link: beat.link))
    connections[beat.link]?.heartbeats += 1
    if isHit(lostHeartbeats, beat.link.connection) {
      counts[connection.channel.network][.heartbeat].offered += 1
      counts[connection.channel.network][.heartbeat].silenced += 1
      return
    }
    send(.heartbeat(count: connection.heartbeats + 1), .heartbeat, on: beat.link)
  }

  /// Makes the messages of the rate that are due. The receiver of each is drawn from those who are here.
  private mutating func makeMessages() {
    guard options.rate > 0 else { return }
    let due = Double(clock - start) / 1e9 * options.rate
    var left = Self.mostAtOnce
    while Double(made) < due, due < 0x1p53, left > 0 {
      left -= 1
      var draws = SplitMix64(seed: seed ^ 0x6c70_7261_7465_0001, stream: made)
      made += 1
      var receiver = User(identifier: "", deviceName: "")
      if !here.isEmpty {
        let place = Int(draws.next() % UInt64(here.count))
        receiver = people[here[place]]?.user ?? receiver
      }
      let isCall = draws.isHit(options.callShare)
      offer(
        isCall ? .invite(from: .server, to: receiver) : .text("Message \(made)", from: .server, to: receiver),
        from: .rate
      )
    }
  }
}

extension LocalPushMessage.User {
  /// The sender of messages that the server makes itself.
  static let server = LocalPushMessage.User(
    identifier: "ffffffff-ffff-4fff-bfff-ffffffffffff", deviceName: "apnscope")
}
