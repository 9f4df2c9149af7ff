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

  /// A port of local push; without a channel nobody listens.
  struct LocalPushPort {
    let address: SimulatorOptions.Address
    let service: Listener
    var channel: (any Channel)?
  }

  /// The ports of local push, and whether the simulator ends: none is opened any more.
  struct LocalPushPorts {
    var ports: [LocalPushPort] = []
    var isRestarting = false
    var isEnding = false
    /// The restarts that the options plan, and the latest one that was asked for.
    var plan: Task<Void, Never>?
    var restart: Task<Void, Never>?
  }

  /// Whether there is a server of local push.
  public var hasLocalPush: Bool { shared.localPush != nil }

  /// Has a message for a user of local push.
  ///
  /// - Parameter content: a text, an invitation, or an action in a call.
  /// - Returns: what became of it at once; `nil`: there is no server of local push, or the content is none of these.
  public func offerLocalPush(_ content: LocalPushMessage.Content) -> LocalPushOutcome? {
    switch content {
    case .text, .invite, .callAction: break
    case .user, .heartbeat, .directory, .other: return nil
    }
    let now = shared.wallClock.nanoseconds()
    let outcome = shared.localPush?.use { $0.offer(content, from: .control, now: now) }
    return outcome.flatMap { LocalPushOutcome(rawValue: $0.rawValue) }
  }

  /// The share of heartbeats of local push that are not sent at the moment.
  public var lostLocalPushHeartbeats: Double { shared.localPush?.use { $0.lostHeartbeats } ?? 0 }

  /// Sends this share of heartbeats no more, from now on.
  public func loseLocalPushHeartbeats(_ share: Double) {
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.loseHeartbeats(share, now: now) }
  }

  /// Open connections of local push fall silent: they are neither read nor written any more, nor closed.
  public func silenceLocalPush(_ share: Double) {
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.silence(share, now: now) }
  }

  /// Ends all connections of local push, and listens again after a pause. Returns when it listens; at once while another
  /// restart is under way, or the simulator ends.
  ///
  /// - Throws: a `SimulatorError` when a port cannot be had again; what has ended stays so.
  public func restartLocalPush(pause: Duration) async throws(SimulatorError) {
    let channels: [any Channel]? = localPushPorts.withLock { ports in
      guard !ports.isRestarting, !ports.isEnding, !ports.ports.isEmpty else { return nil }
      ports.isRestarting = true
      defer { for place in ports.ports.indices { ports.ports[place].channel = nil } }
      return ports.ports.compactMap(\.channel)
    }
    guard let channels else { return }
    defer { localPushPorts.withLock { $0.isRestarting = false } }
    for channel in channels { try? await channel.close() }
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.restart(now: now) }
    // Those whose handshake is not completed, too.
    await onEachLoop { $0.closeLocalPush() }
    try? await Task.sleep(for: pause)
    let closed = localPushPorts.withLock { $0.isEnding ? [] : $0.ports }
    for (place, port) in closed.enumerated() {
      let channel: any Channel
      do {
        channel = try await listen(port.address, port.service)
      } catch {
        throw error as? SimulatorError ?? SimulatorError("\(error)")
      }
      let isLate = localPushPorts.withLock { ports in
        if !ports.isEnding { ports.ports[place].channel = channel }
        return ports.isEnding
      }
      if isLate { try? await channel.close() }
    }
  }

  /// Begins a restart, and returns at once; a restart that is under way goes on instead. A port that cannot be had again is
  /// among the failures of the simulator.
  public func beginRestartOfLocalPush(pause: Duration) {
    localPushPorts.withLock { ports in
      guard !ports.isRestarting, !ports.isEnding else { return }
      ports.restart = Task {
        do throws(SimulatorError) { try await restartLocalPush(pause: pause) } catch { shared.note(error) }
      }
    }
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
        do throws(SimulatorError) {
          try await restartLocalPush(pause: restart.pause)
        } catch {
          shared.note(error)
        }
      }
    }
    localPushPorts.withLock { $0.plan = task }
  }

  /// Nobody listens for local push any more, and no message is made.
  func endLocalPush() async {
    let (channels, tasks) = localPushPorts.withLock { ports in
      ports.isEnding = true
      return (ports.ports.compactMap(\.channel), [ports.plan, ports.restart].compactMap { $0 })
    }
    for task in tasks { task.cancel() }
    for channel in channels { try? await channel.close() }
    for task in tasks { await task.value }
    let now = shared.wallClock.nanoseconds()
    shared.localPush?.use { $0.end(now: now) }
  }
}
