import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TLSTransport

/// Runs a load from its plan to its outcome.
///
/// ```swift
/// let runner = try LoadRunner(plan, tls: context)
/// let outcome = try await runner.run { progress in … }
/// ```
public final class LoadRunner: Sendable {
  /// Why a run did not begin.
  public enum Failure: Error, Sendable, CustomStringConvertible {
    /// No connection could be made.
    case unreachable(String)
    /// The planned start had passed before the connections were made.
    case late(String)

    public var description: String {
      switch self {
      case .unreachable(let reason), .late(let reason): reason
      }
    }
  }

  private let plan: LoadPlan
  /// Of each topic, or the only one.
  private let workloads: [Workload]
  /// The context of each topic, or the only one; empty: plain TCP.
  private let tls: [TLSContext]
  private let isStopped = Atomic<Bool>(false)
  private let published = Mutex(LoadSnapshot())

  /// Checks the plan; throws what is wrong with it. The time of the call is `{time}` in a template.
  ///
  /// - Parameters:
  ///   - plan: the load.
  ///   - tls: the client's certificate and settings; `nil`: plain TCP. A plan with topics needs one for each.
  public convenience init(_ plan: LoadPlan, tls: TLSContext?) throws(Workload.PlanError) {
    guard tls == nil || plan.topics.isEmpty else {
      throw Workload.PlanError("several topics need as many certificates")
    }
    try self.init(plan, contexts: tls.map { [$0] } ?? [])
  }

  /// Checks a plan with topics, as `init(_:tls:)` does.
  ///
  /// - Parameters:
  ///   - plan: the load.
  ///   - identities: the certificate and settings of each topic of the plan.
  public convenience init(_ plan: LoadPlan, identities: [String: TLSContext]) throws(Workload.PlanError) {
    let contexts = plan.topics.compactMap { identities[$0] }
    guard !contexts.isEmpty, contexts.count == plan.topics.count else {
      throw Workload.PlanError("each topic needs a certificate")
    }
    try self.init(plan, contexts: contexts)
  }

  private init(_ plan: LoadPlan, contexts: [TLSContext]) throws(Workload.PlanError) {
    self.plan = plan
    tls = contexts
    let now = Int(WallClock.system.nanoseconds() / 1_000_000_000)
    workloads = try plan.workloads(start: now)
  }

  /// Ends the run in good order: no new notification is sent, and what was sent is settled. Thread-safe.
  public func stop() { isStopped.store(true, ordering: .relaxed) }

  /// The latest published counts, some hundredths of a second old, without cost for the event loops. Thread-safe.
  public func snapshot() -> LoadSnapshot { published.withLock { $0 } }

  /// Runs the load to its end.
  ///
  /// - Parameters:
  ///   - progress: called about once a second.
  ///   - notice: called with messages, for example when connections are refused and retried.
  ///   - checkpoint: called at the start and about every second with the outcome so far, for
  ///     `LoadOutcome.lostResult`.
  ///   - events: called every few milliseconds with what has happened, if something has; it should return at once. Of
  ///     each event loop at most 1,000 events are passed on at a time, and the others counted.
  public func run(
    _ progress: @escaping @Sendable (LoadProgress) -> Void = { _ in },
    notice: @escaping @Sendable (String) -> Void = { _ in },
    checkpoint: (@Sendable (LoadOutcome) -> Void)? = nil, events: (@Sendable ([LoadEvent]) -> Void)? = nil
  ) async throws -> LoadOutcome {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: plan.loopCount)
    let pollGroup = plan.feedback == nil ? nil : MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let outcome: Result<LoadOutcome, any Error>
    do {
      outcome = .success(
        try await run(
          in: .real(plan, tls, group, pollGroup: pollGroup), progress, notice: notice, checkpoint: checkpoint,
          events: events))
    } catch {
      outcome = .failure(error)
    }
    try await group.shutdownGracefully()
    try await pollGroup?.shutdownGracefully()
    return try outcome.get()
  }

  /// Runs the load on event loops and with a clock that may be simulated.
  func run(
    in context: RunContext, _ progress: @escaping @Sendable (LoadProgress) -> Void = { _ in },
    notice: @escaping @Sendable (String) -> Void = { _ in },
    checkpoint: (@Sendable (LoadOutcome) -> Void)? = nil, events: (@Sendable ([LoadEvent]) -> Void)? = nil
  ) async throws -> LoadOutcome {
    var runners: [NIOLoopBound<LoopRunner>] = []
    let shares = plan.shares(of: context.loops.count)
    for (loop, share) in zip(context.loops, shares) {
      let (plan, workload) = (plan, workloads[share.topic ?? 0])
      let environment = try await context.makeEnvironment(loop, share.topic)
      runners.append(
        try await loop.submit {
          NIOLoopBound(LoopRunner(plan, workload, loop, share, environment.value), eventLoop: loop)
        }.get())
    }
    let loopRunners = LoopRunnerGroup(runners, context.loops)
    var outcome = LoadOutcome(plan: plan, shares: shares)
    outcome.usesTLS = !tls.isEmpty
    let ticks = loopRunners.startTicking()
    defer { for tick in ticks { tick.cancel() } }
    let started = WallClock.system.nanoseconds()
    outcome.started = rfc3339(started)
    var recorder = Recorder(loopRunners, topics: plan.topics.count, clock: context.clock, progress) { snapshot in
      self.published.withLock { $0 = snapshot }
    }
    if let feedback = plan.feedback, let startPoll = context.startPoll {
      recorder.feedback = FeedbackPolling(
        feedback, workloads[0], registered: UInt32(clamping: started / 1_000_000_000), start: startPoll)
    }
    if let events {
      recorder.events = EventRecorder(began: recorder.began, wallBegan: started, events)
      recorder.events?.begin(.connect, at: recorder.began)
      await loopRunners.each { $0.books.events = LoopEvents(limit: 1_000) }
    }
    var notices = Notices(say: notice)
    if let checkpoint {
      recorder.checkpoints = Checkpoints(outcome, checkpoint)
      await recorder.takeCheckpoint(context.clock())
    }

    var beginning: Beginning?
    do {
      outcome.givenUp = try await connect(loopRunners, &recorder, &notices, context)
      if let start = plan.start, outcome.givenUp == nil {
        switch try await wait(for: start, loopRunners, &recorder, &notices, context) {
        case .begins(let time): beginning = time
        case .givenUp(let reason): outcome.givenUp = .permanentFailure(reason)
        case .stopped: break
        }
      }
    } catch {
      await loopRunners.each { $0.finish() }
      _ = await recorder.step()
      throw error
    }
    outcome.end(await recorder.endPhase(at: beginning?.run), isInterrupted: isStopped.load(ordering: .relaxed))
    if outcome.goesOn {
      let beginning = beginning ?? Beginning(context.clock())
      if plan.start != nil {
        outcome.actualStart = .init(time: context.timeOfDay(), clock: context.clockState())
        recorder.checkpoints?.books.actualStart = outcome.actualStart
      }
      recorder.begin(plan, beginning)
      await loopRunners.each { $0.begin(beginning) }
      await send(&outcome, from: beginning, loopRunners, &recorder, &notices, context)
    }
    recorder.phase = .drain
    if outcome.goesOn { await catchUp(loopRunners, &recorder, context) }
    await drain(loopRunners, &recorder, context)
    // Of a short run the first answers may come in its drain.
    if outcome.givenUp == nil, let permanentFailure = await permanentFailure(await recorder.step(), loopRunners) {
      outcome.givenUp = .permanentFailure(permanentFailure)
    }
    outcome.phases.append(await recorder.endPhase())
    await finishPoll(&recorder, context)
    await recorder.settle(&outcome)
    outcome.lastError = await loopRunners.lastError()
    outcome.series = recorder.series
    if outcome.bins != nil { outcome.feedback = recorder.feedback?.books }
    outcome.timeline = await recorder.timeline()
    outcome.processor = ProcessStatus.processor()
    outcome.maximumMemory = ProcessStatus.maximumMemory()
    return outcome
  }

  /// Until every connection has been opened, or no more was for a while. Returns why there is nothing to wait for.
  private func connect(
    _ loopRunners: LoopRunnerGroup, _ recorder: inout Recorder, _ notices: inout Notices, _ context: RunContext
  ) async throws -> LoadOutcome.GivingUp? {
    let total = plan.connections.count
    if let start = plan.start { try check(start, context, PlannedStart.tolerance) }
    await loopRunners.each { $0.openAll() }
    // The time in which this process is stopped does not count.
    var (waited, last): (Int64, Int64) = (0, context.clock())
    while !isStopped.load(ordering: .relaxed) {
      await context.sleep(.milliseconds(5))
      let now = context.clock()
      waited += min(now - last, 100_000_000)
      last = now
      let tally = await recorder.step()
      if let permanentFailure = await permanentFailure(tally, loopRunners) {
        guard tally.opened > 0 else { throw Failure.unreachable(permanentFailure) }
        return .permanentFailure(permanentFailure)
      }
      if tally.everOpened >= total { return nil }
      let lastError = tally.failed > 0 ? await loopRunners.lastError() : nil
      if let lastError { notices.tryingAgain(lastError) }
      // A gateway that is slow to answer is there; one that refuses is not.
      let isAbsent = tally.opened == 0 && tally.failed > 0
      let patience =
        isAbsent ? min(plan.connections.giveUp, plan.connections.patienceWithNobody) : plan.connections.giveUp
      guard waited > patience.nanoseconds else { continue }
      if tally.opened > 0 { return nil }
      throw Failure.unreachable(await loopRunners.lastError() ?? "no answer")
    }
    return nil
  }

  private enum Waiting {
    case begins(Beginning)
    case givenUp(String)
    case stopped
  }

  /// Until the planned start. Connections that end meanwhile are opened again.
  private func wait(
    for start: PlannedStart, _ loopRunners: LoopRunnerGroup, _ recorder: inout Recorder, _ notices: inout Notices,
    _ context: RunContext
  ) async throws -> Waiting {
    notices.waiting(until: start.time, from: context.timeOfDay())
    let connected = context.clock()
    let isInTime = context.timeOfDay() <= start.time
    let tolerance = isInTime ? PlannedStart.tolerableDelay : PlannedStart.tolerance
    while !isStopped.load(ordering: .relaxed) {
      // Asked each time: the clock may be set meanwhile.
      let left = start.time - context.timeOfDay()
      guard left > 0 else {
        try check(start, context, tolerance)
        // Of one moment, as far as two readings can be.
        let (now, late) = (context.clock(), context.timeOfDay() - start.time)
        let schedule = now - late
        let leavesOut = late > tolerance.nanoseconds
        return .begins(
          Beginning(
            schedule: schedule, run: schedule >= connected && !leavesOut ? schedule : now, leavesOut: leavesOut))
      }
      await context.sleep(.nanoseconds(min(left, 5_000_000)))
      let tally = await recorder.step()
      if let reason = await permanentFailure(tally, loopRunners) { return .givenUp(reason) }
      if tally.up == 0, tally.failed > 0, let lastError = await loopRunners.lastError() {
        notices.tryingAgain(lastError)
      }
    }
    return .stopped
  }

  /// Throws when a start has passed, and what was due then cannot be left out.
  private func check(_ start: PlannedStart, _ context: RunContext, _ tolerance: Duration) throws {
    let late = context.timeOfDay() - start.time
    guard late > tolerance.nanoseconds else { return }
    let planned = "the schedule was to begin at \(rfc3339(start.time)), \(seconds(late)) ago"
    switch start.late {
    case .fail: throw Failure.late("late: \(planned)")
    case .skip:
      guard late >= (plan.warmUp + plan.duration).nanoseconds else { return }
      throw Failure.late("late: \(planned), and has ended")
    }
  }

  /// The phases of the schedule, which begin and end at the times of the plan; the last one ends earlier when all is
  /// sent, or the run is stopped.
  private func send(
    _ outcome: inout LoadOutcome, from beginning: Beginning, _ loopRunners: LoopRunnerGroup,
    _ recorder: inout Recorder, _ notices: inout Notices, _ context: RunContext
  ) async {
    var end = beginning.schedule
    for (phase, length) in [(RunPhase.warmUp, plan.warmUp), (.measured, plan.duration)] {
      end += length.nanoseconds
      // A run that is late may have no warm-up any more.
      guard phase == .measured || (length > .zero && end > beginning.run) else { continue }
      recorder.phase = phase
      let how = await wait(until: end, loopRunners, &recorder, &notices, context)
      if case .givenUp(let reason) = how { outcome.givenUp = reason }
      let ended =
        switch how {
        case .timeIsUp: end
        // With its last write: that it was is seen some milliseconds later.
        case .allSent: min(end, max(recorder.phaseBegan, await loopRunners.gather { $0.books.lastWrite }.max() ?? 0))
        case .stopped, .givenUp: min(end, context.clock())
        }
      if phase == .measured || how != .timeIsUp {
        recorder.endMeasuring(at: ended)
        await loopRunners.each { $0.endSchedule(at: ended) }
      }
      outcome.end(await recorder.endPhase(at: ended), isInterrupted: how == .stopped)
      // A run that ends in the warm-up measures nothing.
      if how != .timeIsUp { break }
    }
  }

  /// A permanent failure, unless the gateway was proven to be one.
  private func permanentFailure(_ tally: LoadTally, _ loopRunners: LoopRunnerGroup) async -> String? {
    guard tally.obstacles > 0, !tally.hasProof else { return nil }
    return await loopRunners.permanentFailure()?.reason
  }

  private enum End: Equatable {
    case timeIsUp
    /// All of a count.
    case allSent
    case stopped
    case givenUp(LoadOutcome.GivingUp)
  }

  private func wait(
    until end: Int64, _ loopRunners: LoopRunnerGroup, _ recorder: inout Recorder, _ notices: inout Notices,
    _ context: RunContext
  ) async -> End {
    var failed = Int.max
    while context.clock() < end {
      if isStopped.load(ordering: .relaxed) { return .stopped }
      await context.sleep(.milliseconds(10))
      let tally = await recorder.step()
      if let permanentFailure = await permanentFailure(tally, loopRunners) {
        return .givenUp(.permanentFailure(permanentFailure))
      }
      if await loopRunners.all({ $0.machine.isCutOff }) {
        let opened = await loopRunners.gather { $0.machine.watch.openedSinceOfUse }.reduce(0, +)
        if opened > 0 { return .givenUp(.useless(opened: opened)) }
        return .givenUp(.lost(lastError: await loopRunners.lastError()))
      }
      // Behind the end the loops are in the next phase already.
      if await loopRunners.all({ $0.isAllSent }), context.clock() < end { return .allSent }
      if tally.up == 0, tally.failed > failed, let lastError = await loopRunners.lastError() {
        notices.tryingAgain(lastError)
      }
      failed = tally.failed
    }
    return .timeIsUp
  }

  /// Due notifications may still be written this long after the end of the schedule; the rest is unsent.
  private func catchUp(_ loopRunners: LoopRunnerGroup, _ recorder: inout Recorder, _ context: RunContext) async {
    let end = context.clock() + LoadPlan.lateness.nanoseconds
    while context.clock() < end, !isStopped.load(ordering: .relaxed), await loopRunners.any({ $0.machine.isOwing }) {
      await context.sleep(.milliseconds(5))
      _ = await recorder.step()
    }
  }

  /// A poll that goes on at the end of the run comes to its end, so that its tuples are in the books; it has a time limit
  /// of its own. An interrupted run does not wait.
  private func finishPoll(_ recorder: inout Recorder, _ context: RunContext) async {
    while recorder.feedback?.isPolling == true, !isStopped.load(ordering: .relaxed) {
      await context.sleep(.milliseconds(5))
      _ = recorder.feedback?.step(context.clock())
    }
    recorder.feedback?.abandon()
  }

  private func drain(_ loopRunners: LoopRunnerGroup, _ recorder: inout Recorder, _ context: RunContext) async {
    await loopRunners.each { $0.drain() }
    let end = context.clock() + plan.drain.nanoseconds
    while context.clock() < end {
      // Do not wait for a gateway that is down either.
      if await loopRunners.all({ $0.drainStep() || $0.machine.isCutOff }) { break }
      let tally = await recorder.step()
      if tally.obstacles > 0, !tally.hasProof { break }
      await context.sleep(.milliseconds(5))
    }
    await loopRunners.each { $0.finish() }
  }
}

/// Reports each reason once, up to a limit.
private struct Notices {
  let say: @Sendable (String) -> Void
  private var said: Set<String> = []

  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func waiting(until time: Int64, from now: Int64) {
    // A short wait needs no word.
    guard time - now > 1_000_000_000 else { return }
    say("connected; the schedule begins at \(rfc3339(time)), in \(seconds(time - now))")
  }

  mutating func tryingAgain(_ reason: String) {
    guard said.count < 8, said.insert(reason).inserted else { return }
    say("trying again: \(reason)")
  }
}

extension LoadOutcome {
  fileprivate var goesOn: Bool { interruption == nil && givenUp == nil }

  fileprivate mutating func end(_ phase: Phase, isInterrupted: Bool) {
    phases.append(phase)
    if isInterrupted { interruption = .init(phase: phase.phase, afterS: phase.seconds) }
  }
}

/// All loop runners, for access from outside their event loops.
struct LoopRunnerGroup: Sendable {
  private let runners: [NIOLoopBound<LoopRunner>]
  private let loops: [any EventLoop]

  init(_ runners: [NIOLoopBound<LoopRunner>], _ loops: [any EventLoop]) {
    self.runners = runners
    self.loops = loops
  }

  func each(_ body: @escaping @Sendable (LoopRunner) -> Void) async {
    _ = await gather(body)
  }

  func gather<Value: Sendable>(_ body: @escaping @Sendable (LoopRunner) -> Value) async -> [Value] {
    // Submits to all loops before waiting for the first, because a busy loop answers late.
    let answers = zip(runners, loops).map { runner, loop in loop.submit { body(runner.value) } }
    var values: [Value] = []
    for answer in answers {
      if let value = try? await answer.get() { values.append(value) }
    }
    return values
  }

  func all(_ body: @escaping @Sendable (LoopRunner) -> Bool) async -> Bool { await gather(body).allSatisfy { $0 } }

  func any(_ body: @escaping @Sendable (LoopRunner) -> Bool) async -> Bool { await gather(body).contains(true) }

  /// `nil` when nothing has failed.
  func lastError() async -> String? { await gather { $0.books.lastError }.first { !$0.isEmpty } }

  func permanentFailure() async -> PermanentFailure? {
    await gather { $0.books.permanentFailure }.lazy.compactMap { $0 }.first
  }

  func startTicking() -> [RepeatedTask] {
    zip(runners, loops).map { runner, loop in
      loop.scheduleRepeatedTask(initialDelay: .milliseconds(1), delay: .milliseconds(1)) { _ in runner.value.tick() }
    }
  }
}

/// "3.2 s", of nanoseconds.
private func seconds(_ nanoseconds: Int64) -> String { "\((Double(nanoseconds) / 1e8).rounded() / 10) s" }
