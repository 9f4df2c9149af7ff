import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TLSTransport

/// Runs a fleet of simulated devices from its plan to its result.
///
/// ```swift
/// let runner = try FleetRunner(plan, tls: nil)
/// let result = try await runner.run()
/// ```
public final class FleetRunner: Sendable {
  /// The counts of a moment.
  public struct Progress: Sendable, Equatable {
    /// Seconds since the start.
    public var elapsed = 0.0
    /// Devices of the fleet or its segment, and those that are online.
    public var devices = 0
    public var online = 0
    public var connecting = 0
    public var opened = 0
    public var failed = 0
    public var received = 0
    public var duplicates = 0
    /// Notifications and connections per second, of the time since the last progress.
    public var receivedPerSecond = 0.0
    public var openedPerSecond = 0.0

    package init() {}
  }

  private let plan: FleetPlan
  private let tls: TLSContext?
  private let isStopped = Atomic<Bool>(false)
  private let published = Mutex(FleetResult())

  /// Checks the plan; throws what is wrong with it.
  ///
  /// - Parameters:
  ///   - plan: the fleet.
  ///   - tls: the settings of TLS; `nil`: plain TCP.
  public init(_ plan: FleetPlan, tls: TLSContext?) throws(FleetPlan.PlanError) {
    try plan.check()
    (self.plan, self.tls) = (plan, tls)
  }

  /// Ends the run in good order: devices acknowledge what they have, and go. Thread-safe.
  public func stop() { isStopped.store(true, ordering: .relaxed) }

  /// The counts of about a second ago, without cost for the event loops. Thread-safe.
  public func snapshot() -> FleetResult { published.withLock { $0 } }

  /// Runs the fleet to its end.
  ///
  /// - Parameters:
  ///   - progress: called once a second.
  ///   - notified: called on event loops with each notification; it must return at once.
  /// - Returns: the result, which the caller completes with its environment and its plan.
  public func run(
    _ progress: @escaping @Sendable (Progress) -> Void = { _ in },
    notified: (@Sendable (DeviceNotification) -> Void)? = nil
  ) async throws -> FleetResult {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: plan.threads)
    let result: Result<FleetResult, any Error>
    do {
      result = .success(try await run(on: group, progress, notified))
    } catch {
      result = .failure(error)
    }
    try await group.shutdownGracefully()
    return try result.get()
  }

  private func run(
    on group: MultiThreadedEventLoopGroup, _ progress: @escaping @Sendable (Progress) -> Void,
    _ notified: (@Sendable (DeviceNotification) -> Void)?
  ) async throws -> FleetResult {
    let eventLoops = Array(group.makeIterator())
    let start = MonotonicClock.nanoseconds()
    let sessions = SessionCache()
    var loops: [LoopOfFleet] = []
    var ticks: [RepeatedTask] = []
    let started = WallClock.system.nanoseconds()
    for (number, eventLoop) in eventLoops.enumerated() {
      let (plan, tls, count) = (plan, tls, eventLoops.count)
      let (bound, tick) = try await eventLoop.submit {
        let places = stride(from: number, to: plan.devices, by: count).map(plan.numbers.number)
        let fleet = FleetLoop(
          plan, tls, sessions, eventLoop, places: places, share: count, start: start, notified: notified)
        return (NIOLoopBound(fleet, eventLoop: eventLoop), fleet.startTicking())
      }.get()
      loops.append(LoopOfFleet(loop: eventLoop, fleet: bound))
      ticks.append(tick)
    }
    defer { for tick in ticks { tick.cancel() } }

    var course = FleetCourse(plan, start: start)
    while !isStopped.load(ordering: .relaxed), !course.isOver {
      try? await Task.sleep(for: .milliseconds(100))
      let tally = await Self.tally(loops)
      if let now = course.look(tally) {
        progress(now)
        let snapshot = result(tally, course, started)
        published.withLock { $0 = snapshot }
      }
    }
    var end = await Self.tally(loops)
    let onlineAtEnd = end.online
    _ = course.look(end, isLast: true)
    for loop in loops { try? await loop.loop.submit { loop.fleet.value.finish() }.get() }
    let patience = ContinuousClock.now + .seconds(5)
    while ContinuousClock.now < patience {
      if await Self.isSettled(loops) { break }
      try? await Task.sleep(for: .milliseconds(5))
    }
    end = await Self.tally(loops)
    // Whoever has not gone by now ends with the event loops.
    end.closed[.end, default: 0] += end.open
    var result = result(end, course, started)
    result.devices.onlineAtEnd = onlineAtEnd
    // Without another end, to be stopped is the end.
    result.interrupted = isStopped.load(ordering: .relaxed) && (plan.duration != nil || plan.untilIdle != nil)
    if let warning = course.warning(end) { result.warnings.append(warning) }
    if end.notifications.early > 0 {
      result.warnings.append(
        "\(GroupedNumber.text(end.notifications.early)) notifications tell a time after the one at which they came: the clocks of two machines differ, and latencies are wrong"
      )
    }
    // The gateway sends at once, and a connected device is told as soon as the network lets it.
    let fastest = end.latency.onlineUs
    if fastest.count > 0, fastest.minimum >= 1_000_000 {
      result.warnings.append(
        "not one notification came within a second of the gateway's read: the devices' clock may be ahead of the gateway's, and latencies wrong"
      )
    }
    let last = result
    published.withLock { $0 = last }
    return result
  }

  private struct LoopOfFleet: Sendable {
    let loop: any EventLoop
    let fleet: NIOLoopBound<FleetLoop>
  }

  private static func tally(_ loops: [LoopOfFleet]) async -> FleetTally {
    var tally = FleetTally()
    for loop in loops {
      if let part = try? await loop.loop.submit({ loop.fleet.value.tally }).get() { tally += part }
    }
    return tally
  }

  private static func isSettled(_ loops: [LoopOfFleet]) async -> Bool {
    for loop in loops {
      guard (try? await loop.loop.submit({ loop.fleet.value.isSettled }).get()) == true else { return false }
    }
    return true
  }

  private func result(_ tally: FleetTally, _ course: FleetCourse, _ started: Int64) -> FleetResult {
    var result = FleetResult()
    result.started = rfc3339(started)
    result.ended = rfc3339(WallClock.system.nanoseconds())
    result.segment = "\(plan.segment + 1)/\(plan.segments)"
    result.devices.asked = plan.devices
    result.devices.everOnline = tally.everOnline
    result.devices.onlineAtEnd = tally.online
    result.devices.restored = tally.restored
    result.connections.attempted = tally.attempted
    result.connections.opened = tally.opened
    result.connections.failed = tally.failures
    result.connections.abandoned = tally.attempted - tally.opened - tally.failed
    for (cause, count) in tally.closed where count > 0 { result.connections.closed[cause] = count }
    result.registrations.asked = tally.asked
    result.registrations.tokens = tally.tokens
    result.registrations.wrongTokens = tally.faults[SessionFault.wrongToken.rawValue] ?? 0
    result.registrations.tokenChanges = tally.tokenChanges
    result.registrations.refused = tally.refused
    result.notifications = tally.notifications
    result.latency = tally.latency
    result.campaigns = tally.campaigns
    if plan.localPush != nil { result.localPush = tally.localPush }
    result.faults = tally.faults
    result.lastReceived = tally.lastReceived.map(rfc3339)
    result.storms = tally.storms
    result.timeline = course.timeline
    (result.resources.cpuUserS, result.resources.cpuSystemS) = ProcessStatus.processor()
    result.resources.maxRssBytes = ProcessStatus.maximumMemory()
    return result
  }
}

/// The time of a run: its samples, and when it is over.
struct FleetCourse {
  private let plan: FleetPlan
  private let start: Int64
  private(set) var timeline = FleetResult.Timeline()
  private(set) var isOver = false
  private var hasGivenUp = false
  private var last = FleetTally()
  private var lastTime: Int64
  /// Since when nothing has come, and what had come by then.
  private var idleSince: Int64
  private var idleCounts = (received: 0, opened: 0, ended: 0)

  init(_ plan: FleetPlan, start: Int64) {
    (self.plan, self.start, lastTime, idleSince) = (plan, start, start, start)
  }

  /// - Returns: the progress, once a second.
  mutating func look(_ tally: FleetTally, isLast: Bool = false) -> FleetRunner.Progress? {
    let now = MonotonicClock.nanoseconds()
    judge(tally, now)
    guard now - lastTime >= 1_000_000_000 || isLast else { return nil }
    let seconds = max(1e-9, Double(now - lastTime) / 1e9)
    let (opened, received) = (
      tally.opened - last.opened, tally.notifications.received - last.notifications.received
    )
    timeline.note(
      time: Int(WallClock.system.nanoseconds() / 1_000_000_000), onlineS: seconds < 0.5 ? 0 : tally.online,
      opened: opened, received: received, most: plan.limits.samples)
    var progress = FleetRunner.Progress()
    progress.elapsed = Double(now - start) / 1e9
    (progress.devices, progress.online, progress.connecting) = (plan.devices, tally.online, tally.connecting)
    (progress.opened, progress.failed) = (tally.opened, tally.failed)
    (progress.received, progress.duplicates) = (tally.notifications.received, tally.notifications.duplicates)
    progress.receivedPerSecond = Double(received) / seconds
    progress.openedPerSecond = Double(opened) / seconds
    (last, lastTime) = (tally, now)
    return progress
  }

  private mutating func judge(_ tally: FleetTally, _ now: Int64) {
    if let duration = plan.duration, now - start >= duration.nanoseconds { isOver = true }
    let counts = (tally.notifications.received, tally.opened, tally.closed.values.reduce(0, +))
    if counts != idleCounts || tally.everOnline == 0 { (idleCounts, idleSince) = (counts, now) }
    if let idle = plan.untilIdle, now - idleSince >= idle.nanoseconds { isOver = true }
    // Without a failure the gateway may be slow, or no device has come yet.
    if tally.everOnline == 0, tally.failed + tally.closed.count > 0, now - start >= plan.giveUp.nanoseconds {
      (isOver, hasGivenUp) = (true, true)
    }
  }

  /// Why no device was ever online; `nil`: one was.
  func warning(_ tally: FleetTally) -> String? {
    guard tally.everOnline == 0 else { return nil }
    return "no device was ever online" + (tally.lastFailure.map { ": \($0)" } ?? "")
  }
}
