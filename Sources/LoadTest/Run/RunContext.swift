import Dispatch
import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// The environment of a run, as `LoopEnvironment` is that of each event loop; simulations replace it.
struct RunContext: Sendable {
  /// One for each part of the load.
  var loops: [any EventLoop]
  /// Nanoseconds of a clock that only goes forward.
  var clock: @Sendable () -> Int64
  /// The time of day in UNIX nanoseconds UTC, which can be set at any time.
  var timeOfDay: @Sendable () -> Int64 = WallClock.system.nanoseconds
  /// The system's clock; `nil` where the system tells nothing of it.
  var clockState: @Sendable () -> SystemClockState? = SystemClockState.now
  /// Returns after at least this time.
  var sleep: @Sendable (Duration) async -> Void
  /// Creates the environment of an event loop, of the topic at that place of the plan's, if there are topics.
  var makeEnvironment: @Sendable (any EventLoop, _ topic: Int?) async throws -> NIOLoopBound<LoopEnvironment>
  /// Begins a poll of the feedback service; `nil` when there are none.
  var startPoll: FeedbackPolling.Start?

  private static let alarms = DispatchQueue(label: "apnscope.load.alarms")

  /// Waits without the threads that all asynchronous code shares, as `Task.sleep` does: computations of the process that
  /// holds the run can occupy them for seconds, in which phases would not end and no poll would begin.
  @Sendable
  private static func sleepOnItsOwn(for time: Duration) async {
    await withCheckedContinuation { continuation in
      alarms.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: time.nanoseconds))) { continuation.resume() }
    }
  }

  /// - Parameters:
  ///   - tls: the context of each topic, or the only one; empty: plain TCP.
  ///   - pollGroup: the event loop of polls; `nil` without polls.
  static func real(
    _ plan: LoadPlan, _ tls: [TLSContext], _ group: MultiThreadedEventLoopGroup,
    pollGroup: MultiThreadedEventLoopGroup?
  ) -> RunContext {
    let sessions = SessionCache()
    var context = RunContext(
      loops: Array(group.makeIterator()), clock: MonotonicClock.nanoseconds, sleep: sleepOnItsOwn,
      makeEnvironment: { loop, topic in
        let pipe = try await LoopTickPipe.makePipe(on: loop)
        return try await loop.submit {
          let context = tls.isEmpty ? nil : tls[topic ?? 0]
          return NIOLoopBound(
            .real(GatewayConnector(plan, context, sessions), try LoopTickPipe(pipe)), eventLoop: loop)
        }.get()
      })
    if let feedback = plan.feedback, let pollGroup {
      let connector = FeedbackConnector(plan: plan, feedback: feedback, tls: tls.first, loop: pollGroup.next())
      context.startPoll = { connector.poll($0, $1) }
    }
    return context
  }
}
