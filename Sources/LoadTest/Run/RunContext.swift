import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// What a run needs of the world outside, as `LoopEnvironment` is what each of its event loops needs: a simulation puts its own in
/// its place.
struct RunContext: Sendable {
  /// One for each part of the load.
  var loops: [any EventLoop]
  /// Nanoseconds of a clock that only goes forward.
  var clock: @Sendable () -> Int64
  /// Returns when so much time has passed, or more.
  var sleep: @Sendable (Duration) async -> Void
  /// Makes what belongs to an event loop.
  var makeEnvironment: @Sendable (any EventLoop) async throws -> NIOLoopBound<LoopEnvironment>

  static func real(_ plan: LoadPlan, _ tls: TLSContext?, _ group: MultiThreadedEventLoopGroup) -> RunContext {
    let sessions = SessionCache()
    return RunContext(
      loops: Array(group.makeIterator()), clock: MonotonicClock.nanoseconds, sleep: { try? await Task.sleep(for: $0) },
      makeEnvironment: { loop in
        let pipe = try await LoopTickPipe.makePipe(on: loop)
        return try await loop.submit {
          NIOLoopBound(.real(GatewayConnector(plan, tls, sessions), try LoopTickPipe(pipe)), eventLoop: loop)
        }.get()
      })
  }
}
