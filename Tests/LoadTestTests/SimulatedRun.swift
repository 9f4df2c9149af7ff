import Measurement
import NIOCore
import Synchronization
import TestSupport

@testable import LoadTest

/// A whole run, from its plan to its books, in a time that is a number: no machine is too slow for it, and nobody waits.
///
/// All of it is done on the thread that calls `run()`: the event loops are one embedded loop, and what `LoadRunner` awaits
/// comes back to a queue that is emptied between two moments. So a seed gives the same run again.
final class SimulatedRun: @unchecked Sendable {
  // Safe: everything is used on one thread.
  let plan: LoadPlan
  let environment: SimulatedEnvironment
  let runner: LoadRunner
  private let jitter: UInt64
  private var result: Result<LoadOutcome, any Error>?
  /// Gets what the run has to say at once.
  var notice: (String) -> Void = { _ in }
  /// Gets the books while it runs.
  var checkpoint: (@Sendable (LoadOutcome) -> Void)?
  /// The feedback service: returns how a poll that begins now ends, and the bytes of its list.
  var feedbackService: (() -> (end: FeedbackPoll.End, list: [UInt8]))?
  /// The time of day, when the run is to know it.
  var timeOfDay: ((SimulatedRun) -> Int64)?
  var clockState: SystemClockState?
  /// When it was over.
  private(set) var endedAt: Int64 = 0

  struct TimeLimitError: Error {}

  convenience init(
    _ behavior: SimulatedLink.GatewayBehavior = .init(), seed: UInt64 = 1, step: ClosedRange<Int> = 10_000...1_000_000,
    _ change: (inout LoadPlan) -> Void = { _ in }
  ) throws {
    var plan = LoadPlan()
    plan.threads = 1
    plan.count = 2_000
    plan.connections.stagger = .milliseconds(10)
    change(&plan)
    try self.init(plan, SimulatedEnvironment(behavior, SeededGenerator(seed: seed), step: step), seed: seed)
  }

  init(_ plan: LoadPlan, _ environment: SimulatedEnvironment, seed: UInt64) throws {
    (self.plan, self.environment, jitter) = (plan, environment, seed)
    runner = try LoadRunner(plan, tls: nil)
  }

  /// Does something when so much time of the run has passed.
  func at(_ time: Duration, _ body: @escaping (SimulatedRun) -> Void) {
    _ = environment.loop.scheduleTask(in: .nanoseconds(time.nanoseconds)) { body(self) }
  }

  /// How long the run took.
  var length: Duration { .nanoseconds(endedAt - 1_000_000_000) }

  /// - Parameters:
  ///   - longest: the run has to be over in so much simulated time.
  ///   - watch: called at each moment.
  func run(
    longest: Duration = .seconds(600), _ watch: (SimulatedRun) -> Void = { _ in }
  ) throws -> LoadOutcome {
    let loops = plan.loopCount
    var context = RunContext(
      loops: Array(repeating: environment.loop, count: loops), clock: { self.environment.now },
      sleep: { await self.sleep($0) },
      makeEnvironment: { loop, _ in NIOLoopBound(self.environment.loopEnvironment(jitter: self.jitter), eventLoop: loop)
      })
    if timeOfDay != nil { context.timeOfDay = { self.timeOfDay?(self) ?? 0 } }
    context.clockState = { self.clockState }
    if feedbackService != nil {
      context.startPoll = { reader, done in
        // Three milliseconds from the connection to the end of the list.
        _ = self.environment.loop.scheduleTask(in: .milliseconds(3)) {
          var reader = reader
          let earlier = reader.tokens
          guard let service = self.feedbackService else { return }
          let (planned, list) = service()
          var end = planned
          do { try reader.receive(list) } catch { end = .incomplete("\(error)") }
          done(FeedbackPoll(end: end, counts: reader.counts, tokens: end == .complete ? reader.tokens : earlier))
        }
      }
    }
    let executor = SimulatedExecutor()
    Task(executorPreference: executor) {
      do {
        self.result = .success(
          try await self.runner.run(in: context, notice: { self.notice($0) }, checkpoint: self.checkpoint))
      } catch {
        self.result = .failure(error)
      }
    }
    let last = environment.now + longest.nanoseconds
    while true {
      repeat {
        executor.runAll()
        environment.loop.run()
      } while executor.hasJobs
      if let outcome = result {
        endedAt = environment.now
        try environment.end()
        return try outcome.get()
      }
      guard environment.now < last else { throw TimeLimitError() }
      try environment.pass()
      watch(self)
    }
  }

  private func sleep(_ duration: Duration) async {
    await withCheckedContinuation { continuation in
      _ = environment.loop.scheduleTask(in: .nanoseconds(duration.nanoseconds)) { continuation.resume() }
    }
  }
}

/// What is to go on waits in a queue until somebody runs it.
private final class SimulatedExecutor: TaskExecutor {
  private let jobs = Mutex<[UnownedJob]>([])

  var hasJobs: Bool { jobs.withLock { !$0.isEmpty } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
  }

  func runAll() {
    while true {
      let waiting = jobs.withLock { jobs in
        defer { jobs = [] }
        return jobs
      }
      guard !waiting.isEmpty else { return }
      for job in waiting { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}
