import Measurement
import NIOCore
import NIOEmbedded
import Testing

@testable import LoadTest

@Suite("A loop and its connections")
struct LoopRunnerTests {
  @Test("Timers alone bring no further burst: that waits until the loop has come to its sockets")
  func bursts() throws {
    let run = try FreeRun { $0.batching.notifications = 1 }
    for visit in 1...20 {
      let written = run.written
      for _ in 0..<50 { run.tick() }
      #expect(run.written == written, "visit \(visit): 50 ms of timers")
      #expect(run.waiting.count == 1, "it is asked for once")
      run.visit()
      #expect((1...64).contains(run.written - written), "visit \(visit): a burst")
    }
    try run.end()
  }

  @Test("Connections that are free take turns, however many there are and however little is due", arguments: 1...6)
  func turns(count: Int) throws {
    let run = try FreeRun {
      $0.connections.count = count
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
    }
    for _ in 0..<60 { run.tick() }
    let carried = run.runner.connections.map(\.unsettled)
    #expect(carried.allSatisfy { abs($0 - 60 / count) <= 1 }, "\(carried)")
    try run.end()
  }

  @Test("What is sent again is late since it came back, each piece since its own time")
  func lagOfAgain() throws {
    let run = try FreeRun {
      $0.connections.count = 1
      $0.pace = .scheduled(.constant(0.1), isPoisson: false)
    }
    run.tick()
    run.visit()
    _ = run.runner.books.takeMeasurements()
    for index in [0, 10] {
      run.runner.putBack([SentLog.Piece(index: index, count: 3, attempt: 1)])
      for _ in 0..<5 { run.tick() }
    }
    run.visit()
    let lag = run.runner.books.takeMeasurements()[RunPhase.measured.index].latency.sendLagUs
    #expect(lag.count == 6 && run.runner.tally.sendings.resent == 6)
    #expect((4_990...5_010).contains(lag.minimum) && (9_990...10_010).contains(lag.maximum))
    try run.end()
  }
}

/// A load over sockets that take whatever they are given, which never brings a loop to an end of itself.
private final class FreeRun {
  private(set) var runner: LoopRunner
  private let environment: UnlimitedEnvironment

  /// What waits until the loop comes to its sockets.
  var waiting: [() -> Void] { environment.waiting }
  var written: Int { runner.tally.sendings.written }

  init(_ change: (inout LoadPlan) -> Void) throws {
    var plan = LoadPlan()
    plan.connections.count = 4
    plan.connections.stagger = .zero
    change(&plan)
    let environment = UnlimitedEnvironment()
    self.environment = environment
    runner = LoopRunner(
      plan, try Workload(plan.workload), environment.loop, plan.shares(of: 1)[0],
      LoopEnvironment(
        clock: { environment.now }, processor: { 0 }, jitter: 1, hasInput: { _ in false },
        afterSockets: { environment.waiting.append($0) },
        connect: { environment.connect($0) }))
    runner.openAll()
    environment.loop.run()
    runner.begin(Beginning(environment.now))
  }

  /// A millisecond in which only timers come.
  func tick() {
    environment.now += 1_000_000
    environment.loop.advanceTime(by: .milliseconds(1))
    runner.tick()
  }

  func visit() {
    let bodies = environment.waiting
    environment.waiting = []
    for body in bodies { body() }
  }

  func end() throws {
    runner.finish()
    try environment.loop.syncShutdownGracefully()
  }
}

private final class UnlimitedEnvironment {
  let loop = EmbeddedEventLoop()
  var now: Int64 = 1_000_000_000
  var waiting: [() -> Void] = []
  private var links: [SimulatedLink] = []

  func connect(_ connection: ProviderConnection) {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.room = .max
    do {
      let link = try SimulatedLink(behavior, loop: loop)
      try link.channel.pipeline.syncOperations.addHandler(ProviderHandler(connection, usesTLS: false))
      links.append(link)
      link.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 2195), promise: nil)
    } catch {
      connection.failedToOpen(attempt: connection.attempt)
    }
  }
}
