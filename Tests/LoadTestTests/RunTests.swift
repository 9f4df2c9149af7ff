import Foundation
import GatewaySimulator
import NIOCore
import NIOPosix
import TLSTransport
import Testing

@testable import LoadTest

extension Loopback {
  /// How runs begin and end when nothing is wrong.
  @Suite("Runs")
  struct RunTests {
    @Test("As many as were asked for, each once", .timeLimit(.minutes(1)), arguments: [1, 2, 7, 1_000], [1, 3])
    func count(count: Int, connections: Int) async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = count
        $0.connections.count = connections
        $0.threads = 2
      }
      let outcome = try await simulation.runner(plan).run()
      let gateway = await simulation.books()
      expectBalance(outcome, gateway)
      #expect(outcome.books.generated == count)
      #expect(outcome.books.sendings.written == count)
      #expect(gateway.accepted == count)
    }

    @Test("Never more than are due", .timeLimit(.minutes(1)), arguments: [false, true])
    func schedule(isPoisson: Bool) async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = nil
        $0.duration = .seconds(2)
        $0.pace = .scheduled(.constant(5_000), isPoisson: isPoisson)
        $0.connections.count = 4
        $0.threads = 2
      }
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      let seconds = outcome.phases.first { $0.name == "measured" }?.seconds ?? 0
      // Five standard deviations, and what is due between the last look and the end of the phase.
      let due = 5_000 * (seconds + 0.1)
      #expect(Double(outcome.books.sendings.written) <= due + 2 + (isPoisson ? 5 * due.squareRoot() : 0))
      #expect(outcome.books.sendings.written > 0)
    }

    @Test(
      "Without markers it ends in good order, and calls open what is open", .timeLimit(.minutes(1)),
      arguments: [false, true])
    func withoutMarkers(tls: Bool) async throws {
      let simulation = try await LoadSimulation(tls: tls) { options in
        // So much is unsent when it ends that a close would lose some.
        options.behavior.reading.bytesPerSecond = 2_000_000
        options.behavior.reading.receiveBuffer = 16_384
      }
      let plan = simulation.plan {
        $0.count = 5_000
        $0.usesMarkers = false
        $0.connections.count = 2
      }
      let outcome = try await simulation.runner(plan).run()
      let gateway = await simulation.books()
      expectBalance(outcome, gateway)
      #expect(gateway.accepted == 5_000)
      #expect(outcome.books.unknown == 5_000)
      #expect(outcome.books.sendings.written == 5_000)
      #expect(outcome.books.sendings.markers == 0)
    }

    @Test("Lifetimes make connections again, and nothing is lost", .timeLimit(.minutes(1)))
    func lifetimes() async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.connections.notifications = 50
        $0.connections.count = 2
      }
      let outcome = try await simulation.runner(plan).run()
      let gateway = await simulation.books()
      expectBalance(outcome, gateway)
      #expect(outcome.books.accepted == 2_000)
      #expect(outcome.books.sendings.written == 2_000)
      // None carries more than it may.
      #expect(outcome.books.opened >= 2_000 / 50)
    }

    @Test("Stopped at any time, it ends with balanced books", .timeLimit(.minutes(1)), arguments: [0, 3, 20, 200, 600])
    func stop(milliseconds: Int) async throws {
      let simulation = try await LoadSimulation()
      let plan = simulation.plan {
        $0.count = nil
        $0.duration = .seconds(50)
        $0.pace = .scheduled(.constant(5_000), isPoisson: false)
        $0.connections.count = 4
        $0.connections.stagger = .milliseconds(100)
      }
      let runner = try simulation.runner(plan)
      async let running = runner.run()
      try await Task.sleep(for: .milliseconds(milliseconds))
      runner.stop()
      let outcome = try await running
      let gateway = await simulation.books()
      expectBalance(outcome, gateway)
      #expect(gateway.accepted == outcome.books.accepted)
      if milliseconds == 0 { #expect(outcome.books.sendings.written == 0) }
    }

    @Test("Stopped while nobody answers", .timeLimit(.minutes(1)))
    func stopUnanswered() async throws {
      let simulation = try await LoadSimulation()
      await simulation.stop()
      let plan = simulation.plan { $0.connections.giveUp = .seconds(50) }
      let runner = try simulation.runner(plan)
      async let running = runner.run()
      try await Task.sleep(for: .milliseconds(200))
      runner.stop()
      let outcome = try await running
      expectBalance(outcome, nil)
      #expect(outcome.books.generated == 0)
    }

    @Test("The end has a deadline", .timeLimit(.minutes(1)))
    func deadline() async throws {
      let simulation = try await LoadSimulation { $0.behavior.response.delay = .seconds(20) ... .seconds(20) }
      let plan = simulation.plan {
        $0.drain = .seconds(1)
        $0.markerTimeout = .seconds(30)
      }
      let began = ContinuousClock.now
      let outcome = try await simulation.runner(plan).run()
      #expect(ContinuousClock.now - began < .seconds(15))
      expectBalance(outcome, nil)
      #expect(outcome.books.abandoned == 2_000)
    }

    @Test("What was open when a gateway was gone is left open if that is wanted", .timeLimit(.minutes(1)))
    func leaveUnknown() async throws {
      let simulation = try await LoadSimulation { options in
        options.behavior.rejections = [.init(.every(500))]
        options.behavior.response.ending = .fin
      }
      let plan = simulation.plan { $0.resendsUnknown = false }
      let outcome = try await simulation.runner(plan).run()
      expectBalance(outcome, await simulation.books())
      #expect(outcome.books.unknown > 0)
      #expect(outcome.books.sendings.resent == 0)
    }

    @Test("No descriptor and no thread is left after runs", .timeLimit(.minutes(2)))
    func descriptors() async throws {
      let simulation = try await LoadSimulation(tls: true) { $0.behavior.rejections = [.init(.every(50))] }
      let plan = simulation.plan {
        $0.count = 300
        $0.connections.count = 3
        $0.threads = 2
      }
      _ = try await simulation.runner(plan).run()
      // The gateway's own ends linger, so it is only the process without it that can be looked at.
      await simulation.stop()
      let before = (Self.descriptors, Self.threads)
      for _ in 0..<10 {
        try await simulation.start()
        _ = try await simulation.runner(plan).run()
        await simulation.stop()
      }
      let runner = try simulation.runner(simulation.plan { $0.connections.giveUp = .milliseconds(50) })
      await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
      #expect(Self.descriptors <= before.0 + 4)
      // Threads of Swift's own come as they are needed.
      #expect(Self.threads <= before.1 + 8)
    }

    private static var descriptors: Int { entries("/proc/self/fd") }
    private static var threads: Int { entries("/proc/self/task") }
    private static func entries(_ path: String) -> Int {
      (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }

    /// Looked at on the loop only.
    private final class Remains: @unchecked Sendable {
      // Safe: written and read on one event loop.
      weak var runner: LoopRunner?
      weak var connection: ProviderConnection?
    }

    @Test("Runner and connections are freed when they are over", .timeLimit(.minutes(1)), arguments: [true, false])
    func freed(isListening: Bool) async throws {
      let simulation = try await LoadSimulation { $0.behavior.rejections = [.init(.every(50))] }
      if !isListening { await simulation.stop() }
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let loop = group.next()
      let plan = simulation.plan { $0.connections.count = 3 }
      let workload = try Workload(plan.workload)
      let pipe = try await SocketTurn.makePipe(on: loop)
      let remains = Remains()
      var bound: NIOLoopBound<LoopRunner>? = try await loop.submit {
        let runner = LoopRunner(
          plan, workload, loop, part: 0, of: 1,
          .real(GatewayConnector(plan, nil, SessionCache()), try SocketTurn(pipe)))
        remains.runner = runner
        runner.openAll([0, 1, 2], of: 3)
        remains.connection = runner.connections.first
        return NIOLoopBound(runner, eventLoop: loop)
      }.get()
      try await Task.sleep(for: .milliseconds(100))
      try await loop.submit { [bound] in bound?.value.begin(at: Clock.nanoseconds()) }.get()
      try await Task.sleep(for: .milliseconds(100))
      try await loop.submit { [bound] in bound?.value.finish() }.get()
      bound = nil
      try await group.shutdownGracefully()
      #expect(remains.runner == nil)
      #expect(remains.connection == nil)
    }
  }
}
