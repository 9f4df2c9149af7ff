import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// What is about time: when a run sends, waits, gives up and ends. The time is a number, so all of it is exact.
@Suite("Runs in simulated time")
struct SimulatedRunTests {
  // MARK: when

  @Test("Never more than are due at any moment, and what is due goes at once", arguments: [false, true])
  func schedule(isPoisson: Bool) throws {
    let run = try SimulatedRun {
      $0.count = nil
      $0.duration = .seconds(2)
      $0.pace = .scheduled(.constant(5_000), isPoisson: isPoisson)
      $0.connections.count = 4
      $0.threads = 2
    }
    var moments: [(time: Int64, written: Int)] = []
    let outcome = try run.run { moments.append(($0.environment.now, $0.runner.snapshot().sendings.written)) }
    expectBalance(outcome, run.environment.books)
    let (connect, measured) = try (
      #require(outcome.phases.first), #require(outcome.phases.first { $0.phase == .measured })
    )
    let began = 1e9 + connect.seconds * 1e9
    for moment in moments {
      let due = 5_000 * max(0, Double(moment.time) - began) / 1e9
      // Each of two loops has one that is due at once; chance stays within five standard deviations.
      let most = due + 2 + (isPoisson ? 5 * (due + 1).squareRoot() : 0)
      #expect(Double(moment.written) <= most, "after \(Double(moment.time) - began) ns")
    }
    #expect(moments.contains { $0.written > 0 && Double($0.time) < began + 50e6 })
    #expect(measured.seconds == 2)
    // To the last one: what would be due at the very end is not.
    #expect(abs(Double(outcome.books.generated) - 10_000) <= (isPoisson ? 500 : 0))
    #expect(outcome.books.accepted == outcome.books.generated)
    // A tick, and the socket's moment.
    #expect(measured.measurements.latency.sendLagUs.maximum <= 3_000)
  }

  @Test("A connection's lifetime ends it, and nothing is lost")
  func lifetimes() throws {
    let run = try SimulatedRun {
      $0.count = 2_000
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.connections.count = 2
      $0.connections.lifetime = .milliseconds(50)
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 2_000 && outcome.books.sendings.written == 2_000)
    let lives = outcome.timeline.spans.filter { $0.state == .up }
    #expect(lives.count >= 20)
    // But for the two that the end of the run ends.
    #expect(lives.count { $0.toS - $0.fromS < 0.05 } <= 2)
    // A tick, and the marker's way there and back.
    #expect(lives.allSatisfy { $0.toS - $0.fromS < 0.06 })
  }

  // MARK: trouble

  @Test("The gateway is started again in the middle of a run")
  func restart() throws {
    let run = try SimulatedRun {
      $0.count = 6_000
      $0.pace = .scheduled(.constant(3_000), isPoisson: false)
      $0.connections.count = 3
      $0.threads = 2
    }
    for time in [500, 1_100] {
      run.at(.milliseconds(time)) { $0.environment.goAway() }
      run.at(.milliseconds(time + 100)) { $0.environment.comeBack() }
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 6_000)
    // Those that may be why a connection broke are tried on connections of their own.
    #expect(outcome.books.opened >= 9)
  }

  @Test("Connections are refused for five seconds")
  func refused() throws {
    let run = try SimulatedRun(step: 500_000...1_000_000) {
      $0.count = 5_000
      $0.pace = .scheduled(.constant(2_500), isPoisson: false)
      $0.connections.count = 2
      $0.connections.maximumBackoff = .milliseconds(300)
    }
    run.at(.milliseconds(400)) { $0.environment.goAway() }
    run.at(.milliseconds(5_400)) { $0.environment.comeBack() }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 5_000)
    // Two connections, which wait for 150 to 300 ms at last.
    #expect((2 * 16...2 * 45).contains(outcome.books.failed))
    #expect(outcome.givenUp == nil)
    #expect(run.length > .milliseconds(5_400) && run.length < .milliseconds(6_000))
  }

  @Test("A gateway that does not read for two seconds is waited for")
  func stalled() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.receiveBuffer = 16_384
    let run = try SimulatedRun(behavior) { $0.count = 20_000 }
    var written: [Int] = []
    run.at(.milliseconds(20)) { $0.environment.isReading = false }
    for time in [1_000, 2_000] { run.at(.milliseconds(time)) { written.append($0.runner.snapshot().sendings.written) } }
    run.at(.milliseconds(2_020)) { $0.environment.isReading = true }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 20_000)
    #expect(written.count == 2 && written.first == written.last && (1..<20_000).contains(written.last ?? 0))
  }

  @Test("While nobody reads, what waits in this process does not grow")
  func stalledForGood() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.receiveBuffer, behavior.room) = (16_384, 32_768)
    let run = try SimulatedRun(behavior, step: 500_000...1_000_000) {
      $0.count = nil
      ($0.duration, $0.drain) = (.seconds(3), .seconds(1))
    }
    run.environment.isReading = false
    let outcome = try run.run()
    expectBalance(outcome, nil)
    #expect(outcome.books.accepted == 0)
    #expect(outcome.books.abandoned == outcome.books.generated)
    // Both sockets, and two batches in hand. A batch every five milliseconds would be 10 MB.
    #expect(outcome.books.writtenBytes < 200_000)
  }

  @Test("Handshakes fail by chance", arguments: seeds(3, of: 30))
  func handshakes(seed: UInt64) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.rejectsOneIn = 100
    let run = try SimulatedRun(behavior, seed: seed) {
      $0.count = 3_000
      $0.connections.count = 3
      $0.connections.maximumBackoff = .milliseconds(200)
    }
    run.environment.refusesOneIn = 3
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted + outcome.books.rejected == 3_000)
    #expect(outcome.books.failed > 0)
    #expect(outcome.books.attempted == outcome.books.opened + outcome.books.failed)
  }

  @Test("Connections are accepted and closed by chance", arguments: seeds(3, of: 30))
  func acceptThenClose(seed: UInt64) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.closesOneIn, behavior.rejectsOneIn) = (3, 200)
    let run = try SimulatedRun(behavior, seed: seed) {
      $0.count = 3_000
      $0.connections.count = 2
      $0.connections.maximumBackoff = .milliseconds(200)
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted + outcome.books.rejected + outcome.books.abandoned == 3_000)
    // One that met three of these alone cannot be told from one that is why.
    #expect(outcome.books.abandoned <= 100)
  }

  @Test("A gateway that closes all connections is not stormed", arguments: seeds(2, of: 20))
  func storm(seed: UInt64) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.closesOneIn = 1
    let run = try SimulatedRun(behavior, seed: seed) {
      ($0.count, $0.duration, $0.drain) = (100, .seconds(3), .seconds(1))
      $0.connections.giveUp = .seconds(1)
    }
    do {
      let outcome = try run.run()
      expectBalance(outcome, run.environment.books)
      #expect(outcome.books.accepted == 0)
    } catch is LoadRunner.Failure {
      // It never saw one up.
    }
    #expect((1..<100).contains(run.environment.books.connections))
  }

  // MARK: giving up

  @Test("When nobody listens, the run gives up at its time and says why", arguments: [1, 4])
  func nobody(connections: Int) throws {
    let run = try SimulatedRun {
      $0.connections.count = connections
      $0.connections.giveUp = .milliseconds(700)
      $0.threads = 2
    }
    run.environment.door = .refusing
    let failure = #expect(throws: LoadRunner.Failure.self) { try run.run() }
    #expect(failure?.description == "Connection refused")
    #expect(run.length > .milliseconds(700) && run.length < .milliseconds(710))
  }

  @Test("When nobody answers, attempts end after the connection's time-out")
  func silent() throws {
    let run = try SimulatedRun {
      $0.connections.connectTimeout = .milliseconds(100)
      $0.connections.giveUp = .seconds(1)
    }
    run.environment.door = .silent
    let failure = #expect(throws: LoadRunner.Failure.self) { try run.run() }
    #expect(failure?.description == "no answer in 100 ms")
    #expect(run.length > .seconds(1) && run.length < .milliseconds(1_010))
  }

  @Test("When the gateway goes away for good, the run ends after the time to give up, and not before")
  func goneForGood() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration, $0.drain) = (nil, .seconds(50), .seconds(40))
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.connections.count = 2
      $0.connections.giveUp = .seconds(1)
    }
    run.at(.milliseconds(500)) { $0.environment.goAway() }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.givenUp == .lost(lastError: "Connection refused"))
    #expect(
      outcome.result(Environment()).verdict.reasons?.first
        == "gave up: no connection could be established for 1 s: Connection refused")
    #expect(run.length > .milliseconds(1_500) && run.length < .milliseconds(1_530))
  }

  /// `kill -STOP` of a load for 11 s, at every point of it.
  @Test("A load that was stopped for longer than the time to give up goes on, with its connections up")
  func stopped() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (2_000, .seconds(10_000))
      $0.pace = .scheduled(.constant(2), isPoisson: false)
      $0.connections.count = 2
    }
    var stops = 0
    let outcome = try run.run(longest: .seconds(10_000)) { run in
      guard run.environment.links.count == 2, run.environment.accepted.isEmpty, stops < 100 else { return }
      stops += 1
      run.environment.stop(for: .seconds(11))
    }
    #expect(stops == 100)
    #expect(outcome.givenUp == nil)
    #expect(outcome.books.accepted == 2_000)
    expectBalance(outcome, run.environment.books)
  }

  @Test("Time in which a load was stopped is not time in which it could not connect")
  func stoppedWhileConnecting() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (2_000, .seconds(50))
      $0.pace = .scheduled(.constant(500), isPoisson: false)
      $0.connections.giveUp = .seconds(2)
    }
    run.at(.milliseconds(500)) { $0.environment.goAway() }
    run.at(.milliseconds(700)) { $0.environment.stop(for: .seconds(5)) }
    run.at(.milliseconds(900)) { $0.environment.comeBack() }
    let outcome = try run.run()
    #expect(outcome.givenUp == nil)
    #expect(outcome.books.accepted == 2_000)
    expectBalance(outcome, run.environment.books)
  }

  @Test("A load that is stopped before its first connection is up goes on, too")
  func stoppedBeforeTheFirst() throws {
    let run = try SimulatedRun { $0.count = 100 }
    run.environment.door = .refusing
    run.at(.milliseconds(500)) { $0.environment.stop(for: .seconds(20)) }
    run.at(.milliseconds(1_000)) { $0.environment.comeBack() }
    #expect(try run.run().books.accepted == 100)
  }

  @Test("A notification that cannot be answered is given up, and the others get through")
  func silentCulprits() throws {
    let run = try SimulatedRun {
      $0.count = 10_000
      $0.connections.count = 2
      $0.workload.commands = .init(0)
      $0.workload.faults = [.oversize: 0.0005]
    }
    let workload = try Workload(run.plan.workload)
    let bad = (0..<10_000).count { workload.fault(of: UInt64($0)) != nil }
    #expect(bad > 0)
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.abandoned == bad)
    #expect(outcome.books.accepted == 10_000 - bad)
  }

  @Test("A marker's answer is waited for as long as the plan says")
  func markerTimeout() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.answerDelay = 20_000_000_000...20_000_000_000
    let run = try SimulatedRun(behavior) {
      ($0.count, $0.duration, $0.drain) = (50, .seconds(1), .seconds(2))
      $0.markerTimeout = .milliseconds(300)
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.accepted == 0 && outcome.books.abandoned == 50)
    let lives = outcome.timeline.spans.filter { $0.state == .up }
    #expect(lives.count >= 2)
    // But for the last, which the end of the run ends.
    // And the first waits until the run has seen that all is sent.
    for life in lives.dropLast() { #expect((0.3...0.33).contains(life.toS - life.fromS)) }
  }

  // MARK: the end

  @Test("Stopped at any time, it ends with balanced books", arguments: [0, 1, 3, 20, 99, 110, 200, 600])
  func stop(milliseconds: Int) throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (nil, .seconds(50))
      $0.pace = .scheduled(.constant(5_000), isPoisson: false)
      $0.connections.count = 4
      $0.connections.stagger = .milliseconds(100)
    }
    if milliseconds == 0 { run.runner.stop() }
    run.at(.milliseconds(milliseconds)) { $0.runner.stop() }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(run.environment.books.accepted == outcome.books.accepted)
    // The last connection is opened after 75 ms.
    #expect(outcome.interruption?.phase == (milliseconds < 75 ? .connect : .measured))
    #expect((outcome.books.sendings.written > 0) == (milliseconds > 75))
    #expect(run.length < .milliseconds(milliseconds + 50))
  }

  @Test(
    "Stopped while nobody answers, it ends at once",
    arguments: [SimulatedEnvironment.ConnectResponse.refusing, .silent])
  func stopUnanswered(door: SimulatedEnvironment.ConnectResponse) throws {
    let run = try SimulatedRun { $0.connections.giveUp = .seconds(50) }
    run.environment.door = door
    run.at(.milliseconds(200)) { $0.runner.stop() }
    let outcome = try run.run()
    expectBalance(outcome, nil)
    #expect(outcome.books.generated == 0)
    // An attempt that is on its way has until its time-out.
    #expect(run.length < (door == .silent ? .seconds(6) : .milliseconds(300)))
  }

  @Test("The end has a deadline")
  func deadline() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.answerDelay = 20_000_000_000...20_000_000_000
    let run = try SimulatedRun(behavior) {
      $0.drain = .seconds(1)
      $0.markerTimeout = .seconds(30)
    }
    let outcome = try run.run()
    expectBalance(outcome, nil)
    #expect(outcome.books.abandoned == 2_000)
    let drain = try #require(outcome.phases.last)
    #expect(drain.phase == .drain && (1...1.01).contains(drain.seconds))
  }

  @Test("What was open when a gateway was gone is left open if that is wanted")
  func leaveUnknown() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.rejectsOneIn, behavior.ending) = (500, .fin)
    let run = try SimulatedRun(behavior) { $0.resendsUnknown = false }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.unknown > 0)
    #expect(outcome.books.sendings.resent == 0)
  }

  // MARK: the series

  @Test("There is a sample a second, and seconds' writes and causes of closing are parts of the run's")
  func series() throws {
    let run = try SimulatedRun {
      ($0.count, $0.duration) = (nil, .milliseconds(3_500))
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.connections.count = 2
      $0.connections.notifications = 500
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    #expect(result.series.count == 3)
    for (index, sample) in result.series.enumerated() {
      // Each is taken within one of the steps that look for it.
      #expect(sample.tS >= Double(index) && sample.tS < Double(index) + 0.02)
      let (causes, writes) = try (#require(sample.closedByCause), #require(sample.writes))
      #expect(causes.byName.values.reduce(0, +) == sample.closed)
      #expect(!causes.byName.values.contains { $0 <= 0 })
      #expect((1...sample.written).contains(writes))
      #expect(abs(sample.written - 2_000) < 60)
    }
    #expect(result.series.contains { $0.closedByCause?[.lifetime] != nil })
    let flushes = result.batches.flushReasons.byName.values.reduce(0, +)
    let writes = result.series.reduce(0) { $0 + ($1.writes ?? 0) }
    let missing = result.sendings.written - result.series.reduce(0) { $0 + $1.written }
    // A write holds one notification at least.
    #expect(writes <= flushes && flushes - writes <= missing)
    for (cause, count) in result.connections.closed.byName {
      #expect(result.series.reduce(0) { $0 + ($1.closedByCause?.byName[cause] ?? 0) } <= count)
    }
  }

  @Test("A gateway that reads slowly leaves a backlog, which is told")
  func backlog() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.bytesPerSecond, behavior.receiveBuffer, behavior.room) = (20_000, 4_096, 8_192)
    let run = try SimulatedRun(behavior) {
      ($0.count, $0.duration, $0.drain) = (nil, .milliseconds(2_500), .zero)
      $0.pace = .scheduled(.constant(20_000), isPoisson: false)
      $0.connections.count = 2
    }
    let result = try run.run().result(Environment())
    #expect(result.series.count == 2)
    #expect(result.series.reduce(0) { $0 + $1.written } <= result.sendings.written)
    // What goes now was due long ago.
    #expect(result.series.contains { $0.sendLagP99Us > 100_000 })
    // Nearly all of it: two times 20 000 bytes are some hundreds.
    #expect((38_000...40_000).contains(result.series.last?.backlog ?? 0))
    // What was due and never went is told, and is not the schedule's doing.
    #expect((48_000...50_500).contains(result.schedule.unsent))
    #expect(result.verdict.limitedBy != .schedule)
  }
}
