import GatewaySimulator
import Measurement
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import LoadTest

/// Gateways over real sockets that go away, come back, or do nothing. How long anything takes is for `SimulatedRunTests`.
@Suite("Trouble")
struct TroubleTests {
  @Test("The gateway is started again in the middle of a run", arguments: [false, true])
  func restart(tls: Bool) async throws {
    let simulation = try await LoadSimulation(tls: tls)
    // It ends when this test says so: one of a fixed count could be over before a slow machine has stopped the gateway.
    let plan = simulation.plan {
      $0.count = nil
      $0.pace = .scheduled(.constant(3_000), isPoisson: false)
      $0.connections.count = 3
      $0.threads = 2
    }
    let runner = try simulation.runner(plan)
    async let running = runner.run()
    for _ in 0..<2 {
      let before = runner.snapshot()
      #expect(await eventually { runner.snapshot().sendings.written >= before.sendings.written + 500 })
      await simulation.stop()
      #expect(await eventually { runner.snapshot().connections.failed > before.connections.failed })
      try await simulation.start()
      #expect(await eventually { runner.snapshot().connections.opened > before.connections.opened })
    }
    runner.stop()
    let outcome = try await running
    let gateway = await simulation.books()
    expectBalance(outcome, gateway)
    #expect(gateway.accepted == outcome.books.accepted)
    #expect(outcome.books.accepted == outcome.books.generated)
    // One before, between and behind them; on a slow machine the others come up only then.
    #expect(outcome.books.opened >= 3)
  }

  @Test("While nobody reads, what waits in this process does not grow")
  func stalledForGood() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let server = try await ServerBootstrap(group: group)
      .childChannelOption(.autoRead, value: false)
      .serverChannelOption(.socketOption(.so_rcvbuf), value: 16_384)
      .bind(host: "127.0.0.1", port: 0).get()
    var plan = LoadPlan()
    (plan.gateway.host, plan.gateway.port) = ("127.0.0.1", server.localAddress?.port ?? 0)
    // The load's time passes as this test says, the sockets' as it does.
    let clock = Time()
    let load = try await LoopbackLoad(plan, tls: nil, clock: { clock.now })
    #expect(try await eventually { try await load.look { $0.tally.up == 1 } })
    try await load.look { $0.begin(Beginning(clock.now)) }
    #expect(try await eventually { try await load.look { $0.connections.first?.isWritable == false } })
    for _ in 0..<3_000 {
      clock.pass(.milliseconds(1))
      try await load.look { $0.tick() }
    }
    let (isWritable, written) = try await load.look { ($0.connections.first?.isWritable, $0.tally.writtenBytes) }
    #expect(isWritable == false)
    // Socket buffers, and two batches in hand. A batch every five milliseconds would be 10 MB.
    #expect(written < 4_000_000)
    try await load.end()
    try await server.close()
    try await group.shutdownGracefully()
  }

  @Test("Handshakes fail by chance")
  func handshakes() async throws {
    let simulation = try await LoadSimulation(tls: true) { options in
      options.behavior.connection.handshakeFailure = 0.3
      options.behavior.rejections = [.init(.every(100))]
    }
    let plan = simulation.plan {
      $0.count = 3_000
      $0.connections.count = 3
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.accepted + outcome.books.rejected == 3_000)
    #expect(outcome.books.failed > 0)
    #expect(outcome.books.attempted == outcome.books.opened + outcome.books.failed)
  }

  @Test("Connections are accepted and closed by chance", arguments: [false, true])
  func acceptThenClose(tls: Bool) async throws {
    let simulation = try await LoadSimulation(tls: tls) { options in
      options.behavior.connection.acceptThenClose = 0.3
      options.behavior.rejections = [.init(.every(200))]
    }
    let plan = simulation.plan {
      $0.count = 3_000
      $0.connections.count = 2
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.accepted + outcome.books.rejected + outcome.books.abandoned == 3_000)
    #expect(outcome.books.accepted > 0)
  }

  @Test("Where nobody listens the run fails", arguments: [1, 4])
  func nobody(connections: Int) async throws {
    let simulation = try await LoadSimulation(isListening: false)
    let plan = simulation.plan {
      $0.connections.count = connections
      $0.connections.giveUp = .milliseconds(100)
      $0.threads = 2
    }
    let runner = try simulation.runner(plan)
    await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
  }

  @Test("A gateway that accepts and never speaks TLS is left after the handshake's time-out")
  func silentAtTLS() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    let simulation = try await LoadSimulation(tls: true, isListening: false)
    let plan = simulation.plan {
      $0.gateway.port = listener.localAddress?.port ?? 0
      $0.connections.handshakeTimeout = .milliseconds(100)
    }
    let load = try await simulation.loop(plan)
    #expect(try await eventually { try await load.look { $0.tally.failed > 0 } })
    try #expect(await load.look { $0.books.lastError } == "TLS handshake not completed within 100 ms")
    try await load.end()
    try await listener.close()
    try await group.shutdownGracefully()
  }

  @Test("A gateway that does not answer at TCP is left after the connection's time-out")
  func silentAtTCP() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    // A kernel whose queue of connections to accept is full drops whoever comes.
    let listener = try await ServerBootstrap(group: group).serverChannelOption(.backlog, value: 0)
      .serverChannelOption(.autoRead, value: false).bind(host: "127.0.0.1", port: 0).get()
    var plan = LoadPlan()
    (plan.gateway.host, plan.gateway.port) = ("127.0.0.1", listener.localAddress?.port ?? 0)
    plan.connections.connectTimeout = .milliseconds(100)
    // One or two fill the queue, the others are not answered.
    plan.connections.count = 8
    let load = try await LoopbackLoad(plan, tls: nil)
    #expect(try await eventually { try await load.look { $0.tally.failed > 0 } })
    // A kernel that refuses instead is in order too.
    let reason = try await load.look { $0.books.lastError }
    #expect(reason == "no answer in 100 ms" || reason.contains("refused"), "\(reason)")
    try await load.end()
    try await listener.close()
    try await group.shutdownGracefully()
  }

  @Test("The gateway goes away for good")
  func goneForGood() async throws {
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.count = nil
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.connections.count = 2
      $0.connections.giveUp = .seconds(1)
    }
    let runner = try simulation.runner(plan)
    async let running = runner.run()
    #expect(await eventually { runner.snapshot().sendings.written > 0 })
    await simulation.stop()
    let outcome = try await running
    #expect(outcome.givenUp != nil)
    expectBalance(outcome, await simulation.books())
  }

  @Test("A notification that cannot be answered is given up, and the others get through")
  func silentCulprits() async throws {
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.connections.count = 2
      $0.workload.commands = .init(0)
      $0.workload.faults = [.oversize: 0.002]
    }
    let workload = try Workload(plan.workload)
    let bad = (0..<2_000).count { workload.fault(of: UInt64($0)) != nil }
    #expect(bad > 0)
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.abandoned == bad)
    #expect(outcome.books.accepted == 2_000 - bad)
  }

  @Test("A notification is not written more often than the plan says")
  func attempts() async throws {
    let simulation = try await LoadSimulation { $0.behavior.rejections = [.init(.every(20))] }
    let plan = simulation.plan {
      $0.maximumAttempts = 2
      $0.batching.notifications = 100
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.sendings.written <= 2 * 2_000)
    #expect(outcome.books.abandoned > 0)
  }

  @Test("Several addresses and the second one listens")
  func localhost() async throws {
    let simulation = try await LoadSimulation { $0.behavior.rejections = [.init(.every(300))] }
    let plan = simulation.plan {
      $0.gateway.host = "localhost"
      $0.connections.count = 3
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.accepted + outcome.books.rejected == 2_000)
  }
}

/// Nanoseconds that pass when they are told to.
private final class Time: Sendable {
  private let nanoseconds = Atomic<Int64>(1_000_000_000)

  var now: Int64 { nanoseconds.load(ordering: .relaxed) }

  func pass(_ time: Duration) { nanoseconds.add(time.nanoseconds, ordering: .relaxed) }
}
