import DeviceProtocol
import Measurement
import NIOCore
import NIOPosix

/// Local push while the simulator runs.
extension Simulator {
  /// The outcome of a message for a user of local push, as far as it is known at once.
  public enum LocalPushOutcome: String, Sendable, CaseIterable, Codable {
    /// It was sent, and its acknowledgement is awaited.
    case sent
    /// The user has no connection.
    case absent
    /// Too many requests on the user's connection are not acknowledged.
    case overloaded
    /// The user's connection has fallen silent.
    case silenced
  }

  /// A port of local push.
  struct LocalPushPort {
    enum State {
      case listening(any Channel)
      /// A restart is under way, which listens again.
      case away
      /// It could not be had again.
      case lost

      var channel: (any Channel)? {
        if case .listening(let channel) = self { channel } else { nil }
      }
    }

    let address: SimulatorOptions.Address
    let service: Listener
    var state: State
  }

  /// The ports of local push, and whether the simulator ends: none is opened any more.
  struct LocalPushPorts {
    var ports: [LocalPushPort] = []
    var isEnding = false
    /// The restarts that the options plan, and those that are under way by their numbers: at most one a port.
    var plan: Task<Void, Never>?
    var restarts: [Int: Task<Void, Never>] = [:]
    var lastRestart = 0
  }

  /// A port that nobody listens at while a restart is under way, and the channel that did.
  private struct TakenPort: Sendable {
    let place: Int
    let address: SimulatorOptions.Address
    let service: Listener
    let channel: (any Channel)?
  }

  /// Whether there is a server of local push.
  public var hasLocalPush: Bool { shared.localPush != nil }

  /// The outcomes of a message for those who are on a network, as far as they are known at once.
  public struct LocalPushOutcomes: Sendable, Equatable {
    /// Users who were there at that moment. If there are none, the message counts as one that is absent.
    public var receivers = 0
    public var outcomes: [LocalPushOutcome: Int] = [:]
  }

  /// A network at the moment.
  public struct LocalPushNetworkState: Sendable {
    public var network: LocalPushService.Network
    /// Users with a notification channel.
    public var here: Int
    /// Whether connections are accepted: not so while it is away.
    public var listens: Bool
  }

  /// A user with a notification channel.
  public struct LocalPushUserState: Sendable {
    public var user: LocalPushMessage.User
    /// The name of the network.
    public var network: String
  }

  /// Has a message for a user of local push.
  ///
  /// - Parameter content: a text, an invitation, or an action in a call.
  /// - Returns: what became of it at once; `nil`: there is no server of local push, or the content is none of these.
  @discardableResult
  public func offerLocalPush(_ content: LocalPushMessage.Content) -> LocalPushOutcome? {
    switch content {
    case .text, .invite, .callAction: break
    case .user, .heartbeat, .directory, .other: return nil
    }
    let now = shared.wallClock.nanoseconds()
    return shared.localPush?.use { $0.offer(content, from: .control, now: now) }
  }

  /// Has a message for a user of local push, or for everybody on a network at the moment. O(users) for a network.
  ///
  /// - Returns: what became of it at once; `nil`: there is no server of local push, or no such network.
  public func offerLocalPush(_ message: LocalPushOffer) -> LocalPushOutcomes? {
    let now = shared.wallClock.nanoseconds()
    guard let center = shared.localPush else { return nil }
    let offered: [LocalPushOutcome]? = center.use { $0.offer(message, from: .control, now: now) }
    guard let offered else { return nil }
    var result = LocalPushOutcomes(receivers: offered.count)
    for outcome in offered { result.outcomes[outcome, default: 0] += 1 }
    if offered.isEmpty { result.outcomes = [.absent: 1] }
    return result
  }

  /// The networks of local push at the moment, in the order of the options.
  public var localPushStates: [LocalPushNetworkState] {
    let listening = localPushPorts.withLock { ports in
      ports.ports.compactMap { port -> Int? in
        guard case .localPush(let network) = port.service, port.state.channel != nil else { return nil }
        return network
      }
    }
    let parts = shared.localPush?.use { $0.counts.networks } ?? []
    return zip(localPushNetworks, parts).enumerated().map { place, pair in
      .init(network: pair.0, here: pair.1.here, listens: listening.contains(place))
    }
  }

  /// Users with a notification channel by their identifiers. O(n log n) in their number.
  ///
  /// - Parameters:
  ///   - network: the name of the network that they are on; `nil`: any.
  ///   - most: the most users that are returned.
  /// - Returns: the users, and how many there are; `nil`: there is no such network.
  public func localPushUsers(on network: String? = nil, most: Int) -> (users: [LocalPushUserState], count: Int)? {
    guard let center = shared.localPush else { return nil }
    let found: [LocalPushServer.Located]? = center.use { server in
      guard let network else { return server.users() }
      return server.network(named: network).map { server.users(on: $0) }
    }
    guard let all = found else { return nil }
    let sorted = all.sorted { $0.user.identifier < $1.user.identifier }.prefix(max(0, most))
    return (sorted.map { .init(user: $0.user, network: localPushNetworks[$0.network].name) }, all.count)
  }

  /// The share of heartbeats of local push that are not sent at the moment.
  public var lostLocalPushHeartbeats: Double { shared.localPush?.use { $0.lostHeartbeats } ?? 0 }

  /// Sends this share of heartbeats no more, from now on.
  public func loseLocalPushHeartbeats(_ share: Double) {
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.loseHeartbeats(share, now: now) }
  }

  /// Open connections of local push fall silent: messages on them are ignored, and nothing is sent. The server closes only
  /// those that it closes at any time.
  public func silenceLocalPush(_ share: Double) {
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.silence(share, now: now) }
  }

  /// Ends all connections of local push or of a network, or lets them be silent, and listens again after a pause.
  /// Returns when it listens; at once where a restart is under way already, there is no such network, or the simulator
  /// ends.
  ///
  /// - Throws: a `SimulatorError` when a port cannot be had again; what has ended stays so.
  public func restartLocalPush(_ outage: LocalPushFaults.Outage) async throws(SimulatorError) {
    guard let concerned = concerned(by: outage), let ports = take(concerned) else { return }
    try await restart(ports, concerned, outage)
  }

  /// Begins a restart, and returns at once; where one is under way, that goes on instead. A port that cannot be had again is
  /// among the failures of the simulator.
  ///
  /// - Returns: `false`: there is no such network.
  @discardableResult
  public func beginRestartOfLocalPush(_ outage: LocalPushFaults.Outage) -> Bool {
    guard let concerned = concerned(by: outage) else { return false }
    localPushPorts.withLock { ports in
      guard let taken = Self.take(&ports, concerned) else { return }
      ports.lastRestart += 1
      ports.restarts[ports.lastRestart] = Task { [number = ports.lastRestart] in
        do throws(SimulatorError) { try await restart(taken, concerned, outage) } catch { shared.note(error) }
        localPushPorts.withLock { $0.restarts[number] = nil }
      }
    }
    return true
  }

  /// The extent of a restart.
  private enum Concerned {
    case server
    case network(Int)

    /// `nil`: everything.
    var network: Int? {
      if case .network(let place) = self { place } else { nil }
    }
  }

  /// `nil`: there is no such network.
  private func concerned(by outage: LocalPushFaults.Outage) -> Concerned? {
    guard let name = outage.network else { return .server }
    return localPushNetworks.firstIndex { $0.name == name }.map { .network($0) }
  }

  private func take(_ concerned: Concerned) -> [TakenPort]? { localPushPorts.withLock { Self.take(&$0, concerned) } }

  /// Lets ports be away. `nil`: all of them are, or the simulator ends.
  private static func take(_ ports: inout LocalPushPorts, _ concerned: Concerned) -> [TakenPort]? {
    guard !ports.isEnding else { return nil }
    var taken: [TakenPort] = []
    for (place, port) in ports.ports.enumerated() {
      if let network = concerned.network, port.service != .localPush(network: network) { continue }
      if case .away = port.state { continue }
      taken.append(.init(place: place, address: port.address, service: port.service, channel: port.state.channel))
      ports.ports[place].state = .away
    }
    return taken.isEmpty ? nil : taken
  }

  private func restart(
    _ taken: [TakenPort], _ concerned: Concerned, _ outage: LocalPushFaults.Outage
  ) async throws(SimulatorError) {
    for port in taken { try? await port.channel?.close() }
    // First those whose handshake is not completed: none of them is open, and not silent, behind the server's back.
    await onEachLoop { $0.endLocalPush(concerned.network, outage.ending) }
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.restart(concerned.network, outage.ending, now: now) }
    try? await Task.sleep(for: outage.pause)
    var failure: SimulatorError?
    for port in taken {
      guard !localPushPorts.withLock({ $0.isEnding }) else { return }
      do {
        let channel = try await listen(port.address, port.service)
        let isLate = localPushPorts.withLock { ports in
          if !ports.isEnding { ports.ports[port.place].state = .listening(channel) }
          return ports.isEnding
        }
        if isLate { try? await channel.close() }
      } catch {
        localPushPorts.withLock { $0.ports[port.place].state = .lost }
        failure = failure ?? error as? SimulatorError ?? SimulatorError("\(error)")
      }
    }
    if let failure { throw failure }
  }

  /// Does what the options plan for later.
  func beginLocalPush() {
    guard let service = shared.options.localPush else { return }
    let restarts = service.faults.restarts
    guard !restarts.isEmpty else { return }
    let start = ContinuousClock.now
    let task = Task {
      for restart in restarts {
        do { try await Task.sleep(until: start + restart.time, clock: .continuous) } catch { return }
        // Not awaited: another network may end meanwhile.
        beginRestartOfLocalPush(restart.outage)
      }
    }
    localPushPorts.withLock { $0.plan = task }
  }

  /// Nobody listens for local push any more, and no message is made.
  func endLocalPush() async {
    let (channels, tasks) = localPushPorts.withLock { ports in
      ports.isEnding = true
      return (
        ports.ports.compactMap(\.state.channel), [ports.plan].compactMap { $0 } + Array(ports.restarts.values)
      )
    }
    for task in tasks { task.cancel() }
    for channel in channels { try? await channel.close() }
    for task in tasks { await task.value }
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.end(now: now) }
  }
}
