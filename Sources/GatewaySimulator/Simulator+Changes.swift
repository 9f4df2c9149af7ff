import Bytes
import Measurement
import NIOCore
import PushModel

/// Changes while the simulator runs. On return each of them holds for all connections, open ones and later ones.
extension Simulator {
  /// Rejection rules that may be in force at a time.
  public static let maximumRules = 1_000

  /// Faults of HTTP/2 that may be in force at a time.
  public static let maximumFaults = 100

  // MARK: faults

  /// The behavior at the moment.
  public var behavior: Behavior { shared.conduct.withLock { $0.behavior } }

  /// The rejection rules at the moment, in the order in which they are asked, and the rejections that are left of each;
  /// `nil`: any number.
  public var rejections: [(rule: Behavior.RejectionRule, left: Int?)] {
    shared.conduct.withLock { $0.policy.rules.map { ($0.rule, $0.left) } }
  }

  /// Changes the behavior. A rejection rule that stays goes on with its counts; an error response that is being sent is
  /// not changed.
  ///
  /// - Throws: a `SimulatorError` for too many rules, and for another seed or receive buffer, which are given to a
  ///   gateway when it starts.
  public func change(_ body: @Sendable (inout Behavior) -> Void) async throws(SimulatorError) {
    try changeConduct { (behavior, _) throws(SimulatorError) in
      let before = behavior
      body(&behavior)
      guard behavior.seed == before.seed, behavior.reading.receiveBuffer == before.reading.receiveBuffer else {
        throw SimulatorError("the seed and the receive buffer of a gateway that runs cannot be changed")
      }
    }
    await adopt()
  }

  /// Rejects by a rule that is asked before all others. Rules that are over are removed.
  ///
  /// - Throws: a `SimulatorError` for too many rules.
  public func reject(_ rule: Behavior.RejectionRule) async throws(SimulatorError) {
    let over = rejections.filter { $0.left == 0 }.map(\.rule)
    try await change { behavior in
      for rule in over where behavior.rejections.contains(rule) {
        behavior.rejections.remove(at: behavior.rejections.firstIndex(of: rule) ?? 0)
      }
      behavior.rejections.insert(rule, at: 0)
    }
  }

  /// The faults of HTTP/2 at the moment, in the order in which they are asked, how often each has hit, and the hits that
  /// are left of it; `nil`: any number.
  public var http2Faults: [(fault: HTTP2Fault, hits: Int, left: Int?)] {
    shared.conduct.withLock { $0.faults.map { ($0.fault, $0.hits, $0.left) } }
  }

  /// Disturbs HTTP/2 by a fault that is asked before all others. Faults that are over are removed.
  ///
  /// All faults together are `Behavior.http2Faults`, which `change` replaces.
  ///
  /// - Throws: a `SimulatorError` for too many faults.
  public func disturb(_ fault: HTTP2Fault) async throws(SimulatorError) {
    let over = http2Faults.filter { $0.left == 0 }.map(\.fault)
    try await change { behavior in
      for fault in over {
        if let place = behavior.http2Faults.firstIndex(of: fault) { behavior.http2Faults.remove(at: place) }
      }
      behavior.http2Faults.insert(fault, at: 0)
    }
  }

  /// Neither reads nor answers for this time, from now. Connections stay open, and further ones are accepted: they are
  /// silent after their handshake. Zero ends an earlier silence.
  public func beSilent(for time: Duration) async {
    await onEachLoop { $0.beSilent(for: time.timeAmount) }
  }

  /// Closes the open connections to the gateway, of one topic or of all. New ones are accepted.
  public func closeConnections(_ way: ClosingWay, topic: String? = nil) async {
    await onEachLoop { $0.closeConnections(way, topic: topic) }
  }

  // MARK: devices

  /// The device of a token of a topic.
  public func device(of token: [UInt8], topic: String) -> Device {
    let policy = shared.conduct.withLock { $0.policy }
    return policy.devices.device(
      of: token.rawBytes, topicSeed: DevicePopulation.topicSeed(topic, seed: policy.seed))
  }

  /// Changes devices, for all topics; `nil` undoes earlier changes of a device. What waits for a device that is no
  /// longer offline is delivered, or dropped unless the device is active.
  ///
  /// - Throws: a `SimulatorError`, and changes nothing, when more devices would be changed than
  ///   `SimulatorOptions.maximumChangedDevices`.
  public func setDevices(_ devices: [(token: [UInt8], device: Device?)]) async throws(SimulatorError) {
    let most = shared.options.maximumChangedDevices
    let now = shared.milliseconds
    try changeConduct { (_, population) throws(SimulatorError) in
      for (token, device) in devices { population.change(token.rawBytes, to: device, at: now) }
      guard population.changedCount <= most else { throw SimulatorError("more than \(most) devices would be changed") }
    }
    await adopt()
    for (token, device) in devices {
      guard let device else { continue }
      shared.store.settle(device, token: token.rawBytes, now: shared.milliseconds)
    }
  }

  /// The tokens that were listed in a file or changed, with their devices, in ascending order; not those that are
  /// generated. O(n log n).
  public var knownDevices: [(token: [UInt8], device: Device)] { shared.conduct.withLock { $0.policy.devices }.known }

  // MARK: reset

  /// Begins anew: the behavior and the devices are those of the start, nothing waits for a device, the feedback lists
  /// are empty, there is no broadcast channel, and `counts()` begins at 0. Open connections stay open.
  ///
  /// - Throws: when the feedback list cannot be written; all else is done.
  public func reset() async throws {
    shared.conduct.withLock { $0 = Conduct(shared.options.behavior, shared.options.devices) }
    await adopt()
    await beSilent(for: .zero)
    shared.store.removeAll(now: shared.milliseconds)
    shared.devices?.use { $0.removeAll(now: shared.milliseconds) }
    loseLocalPushHeartbeats(shared.options.localPush?.faults.lostHeartbeats ?? 0)
    shared.broadcastChannels?.removeAll()
    let counts = await countsNow()
    baseline.withLock { $0 = counts }
    try await shared.feedbackList.removeAll()
  }

  /// The ledger since the latest reset or, without one, since the start; without the list of connections.
  public func counts() async -> Ledger {
    let now = await countsNow()
    return baseline.withLock { $0 }.map { shared.ledger(now, since: $0) } ?? shared.ledger(now.tally)
  }

  private func countsNow() async -> SimulatorContext.Counts {
    shared.counts(await tally())
  }

  // MARK: how changes reach the loops

  private func changeConduct(
    _ body: (inout Behavior, inout DevicePopulation) throws(SimulatorError) -> Void
  ) throws(SimulatorError) {
    try shared.conduct.withLock { (conduct) throws(SimulatorError) in
      var (behavior, devices) = (conduct.behavior, conduct.policy.devices)
      try body(&behavior, &devices)
      guard behavior.rejections.count <= Self.maximumRules else {
        throw SimulatorError("more than \(Self.maximumRules) rejection rules would be in force")
      }
      guard behavior.http2Faults.count <= Self.maximumFaults else {
        throw SimulatorError("more than \(Self.maximumFaults) faults of HTTP/2 would be in force")
      }
      conduct = Conduct(behavior, devices, after: conduct)
    }
  }

  /// The loops take the newest value, so that two changes at a time end with the later one everywhere.
  private func adopt() async {
    let shared = shared
    shared.admission.adopt(behavior.connection)
    await onEachLoop { $0.adopt(shared.conduct.withLock { $0 }) }
  }

  func onEachLoop(_ body: @escaping @Sendable (EventLoopState) -> Void) async {
    for (loop, loopState) in loopState {
      // A loop that has ended has no connections.
      try? await loop.submit { body(loopState.value) }.get()
    }
  }
}
