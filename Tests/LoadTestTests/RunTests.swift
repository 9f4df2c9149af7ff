import Foundation
import GatewaySimulator
import Measurement
import NIOCore
import NIOPosix
import TLSTransport
import Testing

@testable import LoadTest

/// How runs begin and end over real sockets when nothing is wrong. When they do is for `SimulatedRunTests`.
@Suite("Runs")
struct RunTests {
  @Test("As many as were asked for, each once", arguments: [1, 2, 7, 1_000], [1, 3])
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

  @Test("A schedule is kept: all of it is sent, and nothing before its time", arguments: [false, true])
  func schedule(isPoisson: Bool) async throws {
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.count = 1_000
      $0.pace = .scheduled(.constant(5_000), isPoisson: isPoisson)
      $0.connections.count = 4
      $0.threads = 2
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.accepted == 1_000)
    // Each loop's last of 500 is due 499 intervals after its first. By chance a tenth less is 2.2 standard deviations,
    // and half of it is more than ten.
    let seconds = outcome.phases.first { $0.phase == .measured }?.seconds ?? 0
    #expect(seconds >= 499 / 2_500 * (isPoisson ? 0.5 : 1))
  }

  @Test("Without markers it ends in good order, and calls open what is open", arguments: [false, true])
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
    #expect(outcome.books.sendings.proofsAsked == 0)
  }

  @Test("Lifetimes make connections again, and nothing is lost")
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

  @Test("Stopped in the middle, it ends with balanced books")
  func stop() async throws {
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.count = nil
      $0.pace = .scheduled(.constant(5_000), isPoisson: false)
      $0.connections.count = 4
      $0.threads = 2
    }
    let runner = try simulation.runner(plan)
    async let running = runner.run()
    #expect(await eventually { runner.snapshot().sendings.written > 100 })
    runner.stop()
    let outcome = try await running
    let gateway = await simulation.books()
    expectBalance(outcome, gateway)
    #expect(gateway.accepted == outcome.books.accepted)
    #expect(outcome.interruption?.phase == .measured)
  }

  @Test("Stopped before it began, it sends nothing")
  func stopBefore() async throws {
    let simulation = try await LoadSimulation()
    let runner = try simulation.runner(simulation.plan())
    runner.stop()
    let outcome = try await runner.run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.interruption?.phase == .connect)
    #expect(outcome.books.sendings.written == 0)
  }

  @Test("Stopped while nobody answers")
  func stopUnanswered() async throws {
    let simulation = try await LoadSimulation(isListening: false)
    let runner = try simulation.runner(simulation.plan())
    async let running = runner.run()
    #expect(await eventually { runner.snapshot().connections.failed > 0 })
    runner.stop()
    let outcome = try await running
    expectBalance(outcome, nil)
    #expect(outcome.books.generated == 0)
  }

  @Test("What was open when a gateway was gone is left open if that is wanted")
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

  /// In a process of its own: other tests have descriptors and threads as well.
  @Test("No descriptor and no thread is left after runs")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      let simulation = try await LoadSimulation(tls: true) { $0.behavior.rejections = [.init(.every(50))] }
      let plan = simulation.plan {
        $0.count = 300
        $0.connections.count = 3
        $0.threads = 2
      }
      _ = try await simulation.runner(plan).run()
      // The gateway's own ends linger, so it is only the process without it that can be looked at.
      await simulation.stop()
      let before = (entries("/proc/self/fd"), entries("/proc/self/task"))
      for _ in 0..<10 {
        try await simulation.start()
        _ = try await simulation.runner(plan).run()
        await simulation.stop()
      }
      let runner = try simulation.runner(simulation.plan { $0.connections.giveUp = .milliseconds(50) })
      await #expect(throws: LoadRunner.Failure.self) { try await runner.run() }
      // Threads of Swift's own come as they are needed; others are a moment about their end.
      let isClean = await eventually {
        entries("/proc/self/fd") <= before.0 + 4 && entries("/proc/self/task") <= before.1 + 8
      }
      try #require(isClean, "\(entries("/proc/self/fd")) and \(entries("/proc/self/task")), before \(before)")
    }
  }

  /// Looked at on the loop only.
  private final class ResourceObserver: @unchecked Sendable {
    // Safe: written on one event loop, and read when that is gone.
    weak var runner: LoopRunner?
    weak var connection: ProviderConnection?
  }

  @Test("Runner and connections are freed when they are over", arguments: [true, false])
  func freed(isListening: Bool) async throws {
    let simulation = try await LoadSimulation(isListening: isListening) {
      $0.behavior.rejections = [.init(.every(50))]
    }
    let load = try await simulation.loop(simulation.plan { $0.connections.count = 3 })
    let remains = ResourceObserver()
    try await load.look { runner in
      remains.runner = runner
      remains.connection = runner.connections.first
    }
    #expect(try await eventually { try await load.look { isListening ? $0.tally.up == 3 : $0.tally.failed > 0 } })
    try await load.look { $0.begin(Beginning(MonotonicClock.nanoseconds())) }
    if isListening { #expect(try await eventually { try await load.look { $0.tally.rejected > 0 } }) }
    try await load.end()
    #expect(await eventually { remains.runner == nil && remains.connection == nil })
  }
}

private func entries(_ path: String) -> Int {
  (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
}
