import Measurement
import NIOCore
import NIOPosix
import TLSTransport
import Testing

@testable import LoadTest

/// One event loop's part of a load over real sockets, which the test looks at and drives on its loop.
final class LoopbackLoad {
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let loop: any EventLoop
  private var runner: NIOLoopBound<LoopRunner>?

  /// - Parameter clock: what the load takes for the time, of which the sockets know nothing.
  init(
    _ plan: LoadPlan, tls: TLSContext?, clock: @escaping @Sendable () -> Int64 = MonotonicClock.nanoseconds
  ) async throws {
    loop = group.next()
    let (loop, workload) = (loop, try Workload(plan.workload))
    let pipe = try await LoopTickPipe.makePipe(on: loop)
    runner = try await loop.submit {
      var environment = LoopEnvironment.real(GatewayConnector(plan, tls, SessionCache()), try LoopTickPipe(pipe))
      environment.clock = clock
      let runner = LoopRunner(plan, workload, loop, plan.shares(of: 1)[0], environment)
      runner.openAll()
      return NIOLoopBound(runner, eventLoop: loop)
    }.get()
  }

  func look<Value: Sendable>(_ body: @escaping @Sendable (LoopRunner) -> Value) async throws -> Value {
    let runner = try #require(runner)
    return try await loop.submit { body(runner.value) }.get()
  }

  func end() async throws {
    try await look { $0.finish() }
    runner = nil
    try await group.shutdownGracefully()
  }
}
