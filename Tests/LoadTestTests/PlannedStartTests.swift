import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// A schedule that begins at a time of day, in a time that is a number.
@Suite("Planned starts")
struct PlannedStartTests {
  private static let second: Int64 = 1_000_000_000
  /// 2026-11-22T09:00:00Z is second 1 of the simulation's own clock, which begins there.
  private static let midday: Int64 = 1_795_338_000 * second

  /// A run whose clock shows `midday` when it begins.
  private func run(
    startsIn seconds: Double, _ late: PlannedStart.Late = .fail, _ change: (inout LoadPlan) -> Void = { _ in }
  ) throws -> SimulatedRun {
    let run = try SimulatedRun {
      $0.count = nil
      $0.duration = .seconds(4)
      $0.connections.count = 2
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      $0.start = PlannedStart(at: Self.midday + Int64(seconds * 1e9), late: late)
      change(&$0)
    }
    run.timeOfDay = { Self.midday + $0.environment.now - Self.second }
    run.clockState = SystemClockState(isSynchronised: true, maximumErrorS: 0.002)
    return run
  }

  private func result(_ outcome: LoadOutcome) -> RunResult { outcome.result(Environment()) }

  @Test("Connections are made before, and the schedule begins at its time", arguments: [0.3, 7, 65])
  func onTime(seconds: Double) throws {
    let run = try run(startsIn: seconds)
    var first: Int64?
    var openedBefore = 0
    let outcome = try run.run { run in
      if run.runner.snapshot().sendings.written > 0, first == nil { first = run.environment.now }
      if first == nil { openedBefore = run.runner.snapshot().connections.opened }
    }
    expectBalance(outcome, run.environment.books)
    #expect(openedBefore == 2)
    let wrote = Double(try #require(first) - Self.second) / 1e9
    #expect(wrote >= seconds && wrote < seconds + 0.02, "wrote after \(wrote) s")
    #expect(outcome.books.generated == 4_000 && outcome.books.accepted == 4_000 && outcome.books.skipped == 0)
    #expect(outcome.phase(.measured)?.seconds == 4)
    #expect(abs((outcome.phase(.connect)?.seconds ?? 0) - seconds) < 1e-6)
    let result = result(outcome)
    let start = try #require(result.start)
    #expect(start.planned == rfc3339(Self.midday + Int64(seconds * 1e9)))
    #expect(start.missed == 0 && start.clockSynchronised == true && start.clockErrorS == 0.002)
    #expect((start.lateS ?? 1) < 0.01)
    #expect(result.verdict.outcome == .proven && result.verdict.invariants.allSatisfy(\.holds))
    #expect(result.latency.sendLagUs.quantile(0.99) < 10_000)
  }

  @Test("A start that has passed ends the run before anything is sent, or connected", arguments: [-0.2, -3])
  func passed(seconds: Double) throws {
    let run = try run(startsIn: seconds)
    #expect(throws: LoadRunner.Failure.self) { _ = try run.run() }
    #expect(run.environment.books.connections == 0)
  }

  @Test("A gateway that takes too long to connect makes the run late")
  func slowConnections() throws {
    let run = try run(startsIn: 1) { $0.connections.connectTimeout = .seconds(300) }
    run.environment.door = .refusing
    run.at(.seconds(2)) { $0.environment.door = .open }
    #expect(throws: LoadRunner.Failure.self) { _ = try run.run() }
    #expect(run.environment.books.received == 0)
  }

  @Test("A run that is late skips what was due before, and counts it", arguments: [-0.5, -2, -3.7], [0.0, 1, 3])
  func skips(seconds: Double, warmUp: Double) throws {
    let run = try run(startsIn: seconds, .skip) { $0.warmUp = .seconds(warmUp) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = result(outcome)
    let start = try #require(result.start)
    let missed = try #require(start.missed)
    // Connecting takes some milliseconds on top.
    #expect(abs(Double(missed) + 1_000 * seconds) < 40, "\(missed) missed")
    #expect(outcome.books.generated + missed == Int(4_000 + 1_000 * warmUp))
    #expect(result.schedule.skipped == missed && outcome.books.unsent == 0)
    #expect(abs((start.lateS ?? 0) + seconds) < 0.04)
    // The run ends when it would have ended, and the warm-up with its time.
    let measured = try #require(outcome.phase(.measured))
    let lost = max(0, -seconds - warmUp)
    #expect(abs(measured.seconds - (4 - lost)) < 0.04, "measured \(measured.seconds) s")
    #expect((outcome.phase(.warmUp) != nil) == (warmUp > -seconds))
    #expect(outcome.phases.reduce(0) { $0 + $1.tally.skipped } == missed)
    #expect(result.verdict.outcome == .unproven)
    #expect(result.verdict.reasons?.contains { $0.contains("\(missed) notifications were due before the run") } == true)
    // Those that were never sent are late by the time since they were due.
    #expect(outcome.phases.contains { $0.measurements.latency.sendLagUs.maximum > 400_000 })
  }

  @Test("A run that is later than its schedule is long does not begin, even if it may skip")
  func over() throws {
    let run = try run(startsIn: -5, .skip)
    #expect(throws: LoadRunner.Failure.self) { _ = try run.run() }
  }

  @Test("Connections that the gateway closes while the run waits are opened again")
  func closedMeanwhile() throws {
    let run = try run(startsIn: 30)
    run.at(.seconds(5)) { $0.environment.goAway() }
    run.at(.seconds(8)) { $0.environment.comeBack() }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.opened >= 4 && outcome.books.accepted == 4_000)
    #expect(outcome.phase(.measured)?.seconds == 4)
  }

  @Test("An interruption while it waits ends the run, with nothing sent")
  func interrupted() throws {
    let run = try run(startsIn: 30)
    run.at(.seconds(3)) { $0.runner.stop() }
    let outcome = try run.run()
    let result = result(outcome)
    #expect(result.interrupted?.phase == .connect && outcome.books.generated == 0)
    #expect(result.start?.planned == rfc3339(Self.midday + 30 * Self.second) && result.start?.actual == nil)
    #expect(run.length < .seconds(4))
  }

  @Test("The clock is asked all the time: one that is set meanwhile moves the start")
  func clockIsSet() throws {
    let run = try run(startsIn: 30)
    run.timeOfDay = { run in
      let passed = run.environment.now - Self.second
      return Self.midday + passed + (passed > 3 * Self.second ? 20 * Self.second : 0)
    }
    let outcome = try run.run()
    #expect(abs((outcome.phase(.connect)?.seconds ?? 0) - 10) < 0.01)
    #expect(outcome.books.accepted == 4_000)
  }

  @Test("Who is ready in time and wakes a little late sends what was due meanwhile; who wakes much later is late")
  func wakesLate() throws {
    for (delay, isLate) in [(0.4, false), (2.0, true)] {
      let run = try run(startsIn: 3, isLate ? .skip : .fail)
      run.at(.milliseconds(2_990)) { $0.environment.stop(for: .seconds(delay)) }
      let outcome = try run.run()
      expectBalance(outcome, run.environment.books)
      let missed = outcome.books.skipped
      #expect(isLate ? missed > 1_900 : missed == 0, "\(missed) missed")
      #expect(outcome.books.generated + missed == 4_000)
    }
  }

  @Test("A clock that is not synchronised is a warning, and an unknown state is absent")
  func clockState() throws {
    for (state, isWarned) in [(SystemClockState(isSynchronised: false, maximumErrorS: 16), true), (nil, false)] {
      let run = try run(startsIn: 1)
      run.clockState = state
      let result = result(try run.run())
      #expect(result.start?.clockSynchronised == state?.isSynchronised && result.start?.clockErrorS == nil)
      #expect(result.warnings.contains { $0.contains("not synchronised") } == isWarned)
    }
  }
}
