import GatewaySimulator
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import LoadTest

extension Loopback {
  /// Gateways that go away, come back, or do nothing. Limits of time are far above what a run takes: they tell an end
  /// from none.
  @Suite("Trouble")
  struct TroubleTests {
    @Test("The gateway is started again in the middle of a run", .timeLimit(.minutes(2)), arguments: [false, true])
    func restart(tls: Bool) async throws {
      let simulation = try await LoadSimulation(tls: tls)
      let plan = simulation.plan {
        $0.count = 6_000
        $0.pace = .scheduled(.constant(3_000), isPoisson: false)
        $0.connections.count = 3
        $0.threads = 2
      }
      let runner = try simulation.runner(plan)
      async let running = runner.run()
      for _ in 0..<2 {
        try await Task.sleep(for: .milliseconds(500))
        await simulation.stop()
        try await simulation.start()
      }
      let outcome = try await running
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.accepted == 6_000)
      #expect(outcome.books.opened >= 6)
    }

    @Test("Connections are refused for five seconds", .timeLimit(.minutes(2)))
    func refused() async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = 5_000
        $0.pace = .scheduled(.constant(2_500), isPoisson: false)
        $0.connections.count = 2
        $0.connections.maximumBackoff = .milliseconds(300)
        $0.connections.giveUp = .seconds(20)
      }
      let runner = try simulation.runner(plan)
      async let running = runner.run()
      try await Task.sleep(for: .milliseconds(400))
      await simulation.stop()
      try await Task.sleep(for: .seconds(5))
      try await simulation.start()
      let outcome = try await running
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.accepted == 5_000)
      #expect(outcome.books.failed > 0)
      #expect(!outcome.wasCutOff)
    }

    @Test("A gateway that does not read for two seconds", .timeLimit(.minutes(2)))
    func stalled() async throws {
      let simulation = try await LoadSimulation { options in
        options.behavior.reading.pauseEvery = 3_000_000
        options.behavior.reading.pause = .seconds(2)
        options.behavior.reading.receiveBuffer = 16_384
      }
      let plan = simulation.plan { $0.count = 20_000 }
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.accepted == 20_000)
    }

    @Test("While nobody reads, what waits in this process does not grow", .timeLimit(.minutes(2)))
    func stalledForGood() async throws {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let server = try await ServerBootstrap(group: group)
        .childChannelOption(.autoRead, value: false)
        .serverChannelOption(.socketOption(.so_rcvbuf), value: 16_384)
        .bind(host: "127.0.0.1", port: 0).get()
      var plan = LoadPlan()
      plan.gateway.host = "127.0.0.1"
      plan.gateway.port = server.localAddress?.port ?? 0
      plan.duration = .seconds(3)
      plan.drain = .seconds(1)
      plan.threads = 1
      let outcome = try await LoadRunner(plan, tls: nil).run()
      expectBalance(outcome, nil)
      #expect(outcome.books.accepted == 0)
      #expect(outcome.books.abandoned == outcome.books.generated)
      // Socket buffers, and two batches in hand. A batch every five milliseconds would be 10 MB.
      #expect(outcome.books.writtenBytes < 4_000_000)
      try await server.close()
      try await group.shutdownGracefully()
    }

    @Test("Handshakes fail by chance", .timeLimit(.minutes(2)))
    func handshakes() async throws {
      let simulation = try await LoadSimulation(tls: true) { options in
        options.behavior.connection.handshakeFailure = 0.3
        options.behavior.rejections = [.init(.every(100))]
      }
      let plan = simulation.plan {
        $0.count = 3_000
        $0.connections.count = 3
        $0.connections.giveUp = .seconds(30)
        $0.connections.maximumBackoff = .milliseconds(200)
      }
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.accepted + outcome.books.rejected == 3_000)
      #expect(outcome.books.failed > 0)
      #expect(outcome.books.attempted == outcome.books.opened + outcome.books.failed)
    }

    @Test("Connections are accepted and closed by chance", .timeLimit(.minutes(2)), arguments: [false, true])
    func acceptThenClose(tls: Bool) async throws {
      let simulation = try await LoadSimulation(tls: tls) { options in
        options.behavior.connection.acceptThenClose = 0.3
        options.behavior.rejections = [.init(.every(200))]
      }
      let plan = simulation.plan {
        $0.count = 3_000
        $0.connections.count = 2
        $0.connections.maximumBackoff = .milliseconds(200)
      }
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.accepted + outcome.books.rejected + outcome.books.abandoned == 3_000)
      // One that met three of these alone cannot be told from one that is why.
      #expect(outcome.books.abandoned <= 100)
    }

    @Test("A gateway that closes all connections is not stormed", .timeLimit(.minutes(2)))
    func storm() async throws {
      let simulation = try await LoadSimulation { $0.behavior.connection.acceptThenClose = 1 }
      let plan = simulation.plan {
        $0.count = 100
        $0.duration = .seconds(3)
        $0.drain = .seconds(1)
        $0.connections.giveUp = .seconds(1)
      }
      do {
        let outcome = try await simulation.runner(plan).run()
        expectBalance(outcome, await simulation.books())
        #expect(outcome.books.accepted == 0)
        #expect(outcome.books.attempted < 100)
      } catch is LoadRunner.Failure {
        // It never saw one up.
        #expect(await simulation.books().connections < 100)
      }
    }

    @Test("Nobody listens", .timeLimit(.minutes(1)), arguments: [1, 4])
    func nobody(connections: Int) async throws {
      let simulation = try await LoadSimulation()
      await simulation.stop()
      let plan = simulation.plan {
        $0.connections.count = connections
        $0.connections.giveUp = .milliseconds(700)
        $0.threads = 2
      }
      let runner = try simulation.runner(plan)
      await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
    }

    @Test("A gateway that accepts and never speaks TLS is left after the handshake's time-out", .timeLimit(.minutes(1)))
    func silentAtTLS() async throws {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
      let simulation = try await LoadSimulation(tls: true)
      let plan = simulation.plan {
        $0.gateway.port = listener.localAddress?.port ?? 0
        $0.connections.handshakeTimeout = .milliseconds(100)
        $0.connections.giveUp = .seconds(1)
      }
      let runner = try simulation.runner(plan)
      let failure = await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
      #expect(failure?.description == "TLS handshake not finished after 100 ms")
      await simulation.stop()
      try await listener.close()
      try await group.shutdownGracefully()
    }

    @Test("A gateway that does not answer at TCP is left after the connection's time-out", .timeLimit(.minutes(1)))
    func silentAtTCP() async throws {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      // A kernel whose queue of connections to accept is full drops whoever comes.
      let listener = try await ServerBootstrap(group: group).serverChannelOption(.backlog, value: 0)
        .serverChannelOption(.autoRead, value: false).bind(host: "127.0.0.1", port: 0).get()
      let address = try #require(listener.localAddress)
      // One that is not answered in time may have met a pause of the machine; several in a row met the full queue.
      let filler = ClientBootstrap(group: group).connectTimeout(.milliseconds(300))
      var (unanswered, attempts) = (0, 0)
      while unanswered < 4 {
        attempts += 1
        try #require(attempts < 50, "the queue does not become full")
        unanswered = (try? await filler.connect(to: address).get()) == nil ? unanswered + 1 : 0
      }
      var plan = LoadPlan()
      // Should it get a connection after all, the test fails soon.
      (plan.duration, plan.drain) = (.seconds(2), .seconds(1))
      (plan.gateway.host, plan.gateway.port) = ("127.0.0.1", address.port ?? 0)
      plan.connections.connectTimeout = .milliseconds(100)
      plan.connections.giveUp = .seconds(1)
      let runner = try LoadRunner(plan, tls: nil)
      let failure = await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
      // A kernel that refuses instead is in order too.
      let reason = failure?.description ?? ""
      #expect(reason == "no answer in 100 ms" || reason.contains("refused"), "\(reason)")
      try await listener.close()
      try await group.shutdownGracefully()
    }

    @Test("The gateway goes away for good", .timeLimit(.minutes(1)))
    func goneForGood() async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = nil
        $0.duration = .seconds(50)
        $0.drain = .seconds(40)
        $0.pace = .scheduled(.constant(2_000), isPoisson: false)
        $0.connections.count = 2
        $0.connections.giveUp = .seconds(1)
      }
      let runner = try simulation.runner(plan)
      let began = ContinuousClock.now
      async let running = runner.run()
      try await Task.sleep(for: .milliseconds(500))
      await simulation.stop()
      let outcome = try await running
      #expect(outcome.wasCutOff)
      #expect(ContinuousClock.now - began < .seconds(30))
      expectBalance(outcome, await simulation.books())
    }

    @Test("A notification that cannot be answered is given up, and the others get through", .timeLimit(.minutes(2)))
    func silentCulprits() async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = 10_000
        $0.connections.count = 2
        $0.workload.commands = .init(0)
        $0.workload.faults = [.oversize: 0.0005]
      }
      let workload = try Workload(plan.workload)
      let bad = (0..<10_000).count { workload.fault(of: UInt64($0)) != nil }
      #expect(bad > 0)
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.abandoned == bad)
      #expect(outcome.books.accepted == 10_000 - bad)
    }

    @Test("A notification is not written more often than the plan says", .timeLimit(.minutes(2)))
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

    @Test("Several addresses and the second one listens", .timeLimit(.minutes(1)))
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
}
