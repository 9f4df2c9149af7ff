import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TLSTransport

/// Drives a load from its plan to its books.
///
/// ```swift
/// let runner = try LoadRunner(plan, tls: context)
/// let outcome = try await runner.run { progress in … }
/// ```
public final class LoadRunner: Sendable {
  public enum Failure: Error, Sendable, CustomStringConvertible {
    /// No connection could be made.
    case unreachable(String)

    public var description: String {
      switch self {
      case .unreachable(let reason): reason
      }
    }
  }

  private let plan: LoadPlan
  private let workload: Workload
  private let tls: TLSContext?
  private let isStopped = Atomic<Bool>(false)
  private let published = Mutex(LoadSnapshot())

  /// Throws `Workload.PlanError`. The run starts now, for `{time}` in a template.
  public init(_ plan: LoadPlan, tls: TLSContext?) throws(Workload.PlanError) {
    self.plan = plan
    self.tls = tls
    workload = try Workload(plan.workload, start: Clock.unixSeconds(), replay: plan.replay)
  }

  /// Ends the run in good order: nothing new is sent, the rest is settled. Safe from any thread.
  public func stop() { isStopped.store(true, ordering: .relaxed) }

  /// How the books stand, some hundredths of a second old. Costs the event loops nothing. Safe from any thread.
  public func snapshot() -> LoadSnapshot { published.withLock { $0 } }

  /// Runs the load to its end.
  ///
  /// - Parameter progress: called about once a second.
  public func run(_ progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }) async throws -> LoadOutcome {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, min(plan.threads, plan.connections.count)))
    let outcome: Result<LoadOutcome, any Error>
    do { outcome = .success(try await run(in: .real(plan, tls, group), progress)) } catch { outcome = .failure(error) }
    try await group.shutdownGracefully()
    return try outcome.get()
  }

  /// The same on event loops, and in a time, that may be simulated.
  func run(
    in context: RunContext, _ progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
  ) async throws -> LoadOutcome {
    var runners: [NIOLoopBound<LoopRunner>] = []
    for (part, loop) in context.loops.enumerated() {
      let (plan, workload, count) = (plan, workload, context.loops.count)
      let world = try await context.makeWorld(loop)
      runners.append(
        try await loop.submit {
          NIOLoopBound(LoopRunner(plan, workload, loop, part: part, of: count, world.value), eventLoop: loop)
        }.get())
    }
    let crew = Crew(runners, context.loops)
    var outcome = LoadOutcome(plan: plan)
    outcome.usesTLS = tls != nil
    let ticks = crew.startTicking()
    defer { for tick in ticks { tick.cancel() } }
    outcome.started = Clock.utc()
    var recorder = Recorder(crew, clock: context.clock, progress) { snapshot in
      self.published.withLock { $0 = snapshot }
    }

    do {
      try await connect(crew, &recorder, context)
    } catch {
      await crew.each { $0.finish() }
      throw error
    }
    outcome.end(await recorder.endPhase("connect"), isInterrupted: isStopped.load(ordering: .relaxed))
    if outcome.interruption == nil {
      await crew.each { $0.begin(at: $0.clock()) }
      if plan.dueCount(at: 0) != nil { recorder.schedule = (plan, context.clock()) }
    }
    if plan.warmUp > .zero, outcome.interruption == nil {
      recorder.phaseName = "warm-up"
      let isOver = await wait(plan.warmUp, crew, &recorder, context)
      outcome.end(await recorder.endPhase("warm-up"), isInterrupted: !isOver)
    }
    // What was ended before has nothing that was measured.
    if outcome.interruption == nil {
      recorder.phaseName = "measured"
      let isOver = await wait(plan.duration, crew, &recorder, context)
      outcome.wasCutOff = await crew.all { $0.isCutOff }
      if outcome.wasCutOff { outcome.lastError = await crew.lastError() }
      outcome.end(await recorder.endPhase("measured"), isInterrupted: !isOver)
    }
    recorder.phaseName = "drain"
    await drain(crew, &recorder, context)
    outcome.phases.append(await recorder.endPhase("drain"))
    outcome.series = recorder.series
    outcome.timeline = await recorder.timeline()
    outcome.processor = Clock.processor()
    outcome.maximumMemory = Clock.maximumMemory()
    return outcome
  }

  /// Until all connections are up, or no more came up for a while.
  private func connect(_ crew: Crew, _ recorder: inout Recorder, _ context: RunContext) async throws {
    let total = plan.connections.count
    await crew.each { runner in
      let numbers = stride(from: runner.part, to: total, by: runner.parts)
      runner.openAll(Array(numbers), of: total)
    }
    let began = context.clock()
    let most = Int64(plan.connections.giveUp / .nanoseconds(1))
    while !isStopped.load(ordering: .relaxed) {
      await context.sleep(.milliseconds(5))
      let tally = await recorder.step()
      if tally.up >= total { return }
      guard context.clock() - began > most else { continue }
      if tally.up > 0 { return }
      throw Failure.unreachable(await crew.lastError())
    }
  }

  /// Returns whether it came to its end, and was not stopped.
  private func wait(
    _ duration: Duration, _ crew: Crew, _ recorder: inout Recorder, _ context: RunContext
  ) async -> Bool {
    let end = context.clock() + Int64(duration / .nanoseconds(1))
    while context.clock() < end {
      if isStopped.load(ordering: .relaxed) { return false }
      await context.sleep(.milliseconds(10))
      _ = await recorder.step()
      if await crew.all({ $0.isAllSent }) { return true }
      if await crew.all({ $0.isCutOff }) { return true }
    }
    return true
  }

  private func drain(_ crew: Crew, _ recorder: inout Recorder, _ context: RunContext) async {
    await crew.each { $0.drain() }
    let end = context.clock() + Int64(plan.drain / .nanoseconds(1))
    while context.clock() < end {
      // Nor does anybody wait for a gateway that is gone.
      if await crew.all({ $0.drainStep() || $0.isCutOff }) { break }
      _ = await recorder.step()
      await context.sleep(.milliseconds(5))
    }
    await crew.each { $0.finish() }
  }
}

extension LoadOutcome {
  fileprivate mutating func end(_ phase: Phase, isInterrupted: Bool) {
    phases.append(phase)
    if isInterrupted { interruption = .init(phase: phase.name, afterS: phase.seconds) }
  }
}

/// The event loops' runners, from outside.
struct Crew: Sendable {
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
    // All are asked before the first is waited for: a busy loop takes its time to answer.
    let answers = zip(runners, loops).map { runner, loop in loop.submit { body(runner.value) } }
    var values: [Value] = []
    for answer in answers {
      if let value = try? await answer.get() { values.append(value) }
    }
    return values
  }

  func all(_ body: @escaping @Sendable (LoopRunner) -> Bool) async -> Bool { await gather(body).allSatisfy { $0 } }

  func lastError() async -> String { await gather { $0.lastError }.first { !$0.isEmpty } ?? "no answer" }

  func startTicking() -> [RepeatedTask] {
    zip(runners, loops).map { runner, loop in
      loop.scheduleRepeatedTask(initialDelay: .milliseconds(1), delay: .milliseconds(1)) { _ in runner.value.tick() }
    }
  }
}
