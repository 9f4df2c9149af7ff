import Measurement
import Testing

@testable import LoadTest

/// What a run counted, and what its document says of it.
@Suite("Books and results of a load")
struct LoadResultTests {
  // MARK: tallies

  /// Every counter has a number of its own.
  private static func tally(_ factor: Int) -> LoadTally {
    var tally = LoadTally()
    for (path, number) in zip(LoadTally.counters, 1...) { tally[keyPath: path] = number * factor }
    for (reason, number) in zip(Measurement.FlushReason.allCases, 101...) {
      tally.flushReasons[reason] = number * factor
    }
    for (cause, number) in zip(ConnectionEnd.ofLoads, 201...) { tally.closed[cause] = number * factor }
    tally.errorResponses = [8: 301 * factor, 10: 302 * factor]
    tally.suites = ["TLS 1.2 A": 401 * factor]
    for _ in 0..<factor { tally.countFailure("refused") }
    tally.failed -= factor
    return tally
  }

  /// The numbers of a tally, wherever they stand.
  private static func numbers(_ value: Any) -> [Int] {
    if let number = value as? Int { return [number] }
    if let counts = value as? [UInt8: Int] { return counts.sorted { $0.key < $1.key }.map(\.value) }
    if let counts = value as? [String: Int] { return counts.sorted { $0.key < $1.key }.map(\.value) }
    if let counts = value as? [ConnectionEnd: Int] {
      return counts.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value)
    }
    return Mirror(reflecting: value).children.flatMap { numbers($0.value) }
  }

  @Test("Every number of a tally is added and taken away")
  func sums() {
    let (one, two) = (Self.tally(1), Self.tally(2))
    #expect(Self.numbers(LoadTally()).allSatisfy { $0 == 0 } && Self.numbers(LoadTally()).count > 30)
    #expect(Set(Self.numbers(one)).count == Self.numbers(one).count - 1, "the first counter and a failure are 1")
    var sum = one
    sum += two
    #expect(Self.numbers(sum) == Self.numbers(one).map { 3 * $0 })
    #expect(Self.numbers(sum - one) == Self.numbers(two))
    #expect(two.flushReasons.total == 2 * (101 + 102 + 103 + 104))
  }

  @Test("Reasons of failures are kept by name up to a number, and are gone when all are taken away")
  func failures() {
    var tally = LoadTally()
    for number in 0..<20 { tally.countFailure("reason \(number)") }
    tally.countFailure("reason 3")
    #expect(tally.failed == 21 && tally.failures.count == 17)
    #expect(tally.failures["other reasons"] == 4 && tally.failures["reason 15"] == 1 && tally.failures["reason 3"] == 2)
    let earlier = tally.failures
    tally.countFailure("reason 0")
    #expect(tally.failures["reason 0"] == 2)
    tally.subtractFailures(earlier)
    #expect(tally.failures == ["reason 0": 1])
  }

  @Test("An answer of any kind proves that there is a gateway")
  func proof() {
    #expect(!LoadTally().hasProof)
    for path in [\.accepted, \.rejected, \.sendings.proofs] as [WritableKeyPath<LoadTally, Int>] {
      var tally = LoadTally()
      tally[keyPath: path] = 1
      #expect(tally.hasProof)
    }
    var tally = LoadTally()
    tally.errorResponses = [8: 1]
    #expect(tally.hasProof)
    for path in [\.opened, \.sendings.written, \.strayBytes, \.unknown] as [WritableKeyPath<LoadTally, Int>] {
      var other = LoadTally()
      other[keyPath: path] = 1
      #expect(!other.hasProof)
    }
  }

  // MARK: results

  private static func outcome(
    _ phases: [(phase: RunPhase, seconds: Double, tally: LoadTally)],
    _ change: (inout LoadPlan) -> Void = { _ in }
  ) -> LoadOutcome {
    var plan = LoadPlan()
    change(&plan)
    var outcome = LoadOutcome(plan: plan)
    outcome.phases = phases.map { phase, seconds, tally in
      var part = LoadOutcome.Phase(phase, seconds: seconds)
      part.tally = tally
      return part
    }
    return outcome
  }

  @Test("Each figure of the document is that of the tally")
  func figures() {
    let tally = Self.tally(1)
    var outcome = Self.outcome([(.connect, 1, LoadTally()), (.measured, 10, tally), (.drain, 2, Self.tally(2))]) {
      $0.connections.count = 77
    }
    (outcome.processor, outcome.maximumMemory, outcome.started) = ((3, 4), 5, "today")
    outcome.phases[1].measurements.latency.errorUs.record(9)
    outcome.phases[1].measurements.batchBytes.record(8)
    outcome.phases[1].measurements.batchNotifications.record(7)
    outcome.phases[1].measurements.lossWindow.record(6)
    outcome.phases[1].measurements.loopLag.record(5)
    let result = outcome.result(Environment())
    var all = tally
    all += Self.tally(2)
    for (figure, counted) in [
      (result.notifications.generated, all.generated), (result.notifications.accepted, all.accepted),
      (result.notifications.rejected, all.rejected), (result.notifications.unknown, all.unknown),
      (result.notifications.abandoned, all.abandoned),
      (result.notifications.unproven, all.unknown + all.abandonedOpen + all.prunedOpen),
      (result.sendings.written, all.sendings.written), (result.sendings.resent, all.sendings.resent),
      (result.sendings.accepted, all.sendings.accepted), (result.sendings.rejected, all.sendings.rejected),
      (result.sendings.discarded, all.sendings.discarded), (result.sendings.unknown, all.sendings.unknown),
      (result.sendings.binary.markers, all.sendings.proofsAsked),
      (result.sendings.binary.markersAnswered, all.sendings.proofs),
      (result.schedule.skipped, all.skipped), (result.schedule.unsent, all.unsent),
      (result.connections.asked, 77), (result.connections.everUp, all.everUp),
      (result.connections.attempted, all.attempted), (result.connections.opened, all.opened),
      (result.connections.resumed, all.resumed), (result.connections.failed, all.failed),
      (result.binary.answers.unresolved, all.unresolvedResponses), (result.binary.answers.strayBytes, all.strayBytes),
    ] as [(Int?, Int)] {
      #expect(figure == counted && counted > 0)
    }
    #expect(result.connections.closed.byName.count == 7 && result.connections.closed[.rejected] == 603)
    #expect(result.connections.closed[.local] == 621 && result.connections.failures == ["refused": 3])
    #expect(result.connections.suites == ["TLS 1.2 A": 1_203] && result.binary.errorResponses == ["8": 903, "10": 906])
    #expect(result.measuredS == 10 && result.measuredBy == 2 && result.started == "today")
    #expect(result.rates.writtenPerS == Double(tally.sendings.written) / 10)
    #expect(result.rates.acceptedPerS == Double(tally.sendings.accepted) / 10 && result.rates.basis == .measured)
    #expect(result.rates.writtenBytesPerS == Double(tally.writtenBytes) / 10)
    #expect(result.latency.errorUs.maximum == 9 && result.batches.bytes.maximum == 8)
    #expect(result.batches.notifications.maximum == 7 && result.binary.lossWindow.maximum == 6)
    #expect(result.batches.flushReasons == [.full: 101, .linger: 102, .idle: 103, .drain: 104])
    #expect(result.resources.loopLagUs.maximum == 5 && result.resources.cpuUserS == 3)
    #expect(result.resources.cpuSystemS == 4 && result.resources.maxRssBytes == 5)
    #expect(result.phases.map(\.name) == [.connect, .measured, .drain] && result.phases.map(\.seconds) == [1, 10, 2])
    #expect(result.phases[1].sendings == tally.sendings.result && result.phases[1].skipped == tally.skipped)
    #expect(
      result.phases[1].binary.errorResponses == ["8": 301, "10": 302] && result.phases[1].latency == result.latency)
    #expect(result.phases[1].rates?.writtenPerS == result.rates.writtenPerS)
    #expect(
      result.phases[1].batches == result.batches && result.phases[1].binary.lossWindow == result.binary.lossWindow)
    #expect(result.phases[2].rates?.writtenPerS == Double(all.sendings.written - tally.sendings.written) / 2)
  }

  @Test("A phase that took no time has no rates, and a run without phases no figures")
  func withoutTime() {
    let result = Self.outcome([(.measured, 0, Self.tally(1))]).result(Environment())
    #expect(result.rates == RunResult.Rates() && result.phases[0].rates == RunResult.Rates())
    var empty = Self.outcome([])
    empty.started = "today"
    #expect(empty.result(Environment()).measuredBy == nil && empty.result(Environment()).started == "today")
  }

  @Test("A gateway that settles the last notification later than a fiftieth of the phase after it has another rate")
  func behind() {
    var (measured, drain) = (LoadTally(), LoadTally())
    (measured.sendings.accepted, drain.sendings.accepted) = (900, 60)
    for (after, basis, rate) in [(0.2, .measured, 90), (0.21, .measuredAndDrain, 80)]
      as [(Double, RunResult.Rates.Basis, Double)]
    {
      var outcome = Self.outcome([(.measured, 10, measured), (.drain, 2, drain)])
      outcome.phases[0].settledAfter = after
      let result = outcome.result(Environment())
      #expect(result.rates.basis == basis && result.rates.acceptedPerS == rate)
      let warned = result.warnings.contains {
        $0.hasPrefix("the gateway settled the last notification of the measured phase 210 ms after its end")
      }
      #expect(warned == (basis != .measured))
    }
  }

  // MARK: limits

  private static func limit(
    _ change: (inout LoadOutcome) -> Void, pace: LoadPlan.Pace = .scheduled(.constant(100), isPoisson: false)
  ) -> RunResult.Verdict.Limit {
    var tally = LoadTally()
    tally.generated = 1_000
    var outcome = outcome([(.measured, 10, tally)]) { $0.pace = pace }
    change(&outcome)
    return outcome.result(Environment()).verdict.limitedBy
  }

  @Test("Who was the limit: the schedule, as long as it was kept")
  func limits() {
    func lag(_ all: Int, own: Int, gateway: Int) -> (inout LoadOutcome) -> Void {
      {
        $0.phases[0].measurements.latency.sendLagUs.record(all)
        $0.phases[0].measurements.latency.sendLagOwnUs?.record(own)
        $0.phases[0].measurements.latency.sendLagGatewayUs?.record(gateway)
      }
    }
    #expect(Self.limit { _ in } == .schedule)
    #expect(Self.limit(lag(50_000, own: 50_000, gateway: 0)) == .schedule)
    #expect(Self.limit(lag(50_100, own: 50_000, gateway: 100)) == .generator)
    #expect(Self.limit(lag(60_000, own: 30_000, gateway: 30_000)) == .generator)
    #expect(Self.limit(lag(60_000, own: 29_000, gateway: 31_000)) == .gateway)
    // A twentieth of what was generated may be left over.
    #expect(Self.limit { $0.phases[0].tally.unsent = 50 } == .schedule)
    #expect(Self.limit { $0.phases[0].tally.unsent = 51 } == .gateway)
    // Processor time of one thread, for there is one connection.
    #expect(Self.limit { ($0.phases[0].tally.unsent, $0.phases[0].cpu) = (51, 9.1) } == .generator)
    #expect(Self.limit { ($0.phases[0].tally.unsent, $0.phases[0].cpu) = (51, 9) } == .gateway)
    #expect(Self.limit { $0.phases[0].cpu = 9.5 } == .schedule)
    #expect(Self.limit({ $0.phases[0].cpu = 9.5 }, pace: .unlimited) == .generator)
    #expect(Self.limit({ $0.phases[0].cpu = 9 }, pace: .unlimited) == .gateway)
  }

  @Test("Stalls are warned of instead of a late clock, and a late clock where the processor was free")
  func stalls() {
    func warnings(stalled: Double, longest: Double, lag: Int) -> [String] {
      var tally = LoadTally()
      (tally.generated, tally.accepted, tally.everUp) = (1, 1, 1)
      var outcome = Self.outcome([(.measured, 10, tally)])
      (outcome.stalls.totalS, outcome.stalls.longestMs) = (stalled, longest)
      outcome.phases[0].measurements.loopLag.record(lag)
      return outcome.result(Environment()).warnings
    }
    #expect(warnings(stalled: 0.1, longest: 50, lag: 10_000) == [])
    #expect(
      warnings(stalled: 0.25, longest: 40, lag: 20_000) == [
        "the generator stalled for 250 ms of 10 s, at most 40 ms at a time: lags include its stalls"
      ])
    #expect(
      warnings(stalled: 1.25, longest: 1_000, lag: 0) == [
        "the generator stalled for 1.3 s of 10 s, at most 1.0 s at a time: lags include its stalls"
      ])
    #expect(
      warnings(stalled: 0, longest: 0, lag: 12_000) == [
        "the generator's clock was late by 12 ms (p99 of loop lag): too little processor time, so latencies include its delays"
      ])
  }

  // MARK: words of the verdict

  private static func judged(
    _ tally: LoadTally, plan: (inout LoadPlan) -> Void = { _ in }, run: (inout LoadOutcome) -> Void = { _ in }
  ) -> [String] {
    var outcome = outcome([(.measured, 10, tally)], plan)
    run(&outcome)
    let (standing, reasons) = outcome.judge(tally)
    return [standing.rawValue] + reasons
  }

  private static func sent(_ change: (inout LoadTally) -> Void = { _ in }) -> LoadTally {
    var tally = LoadTally()
    (tally.generated, tally.accepted, tally.everUp, tally.opened) = (10, 10, 1, 1)
    (tally.sendings.written, tally.sendings.proofsAsked, tally.sendings.proofs) = (10, 1, 1)
    change(&tally)
    return tally
  }

  @Test("What is open makes a run unproven, and is counted")
  func doubts() {
    #expect(Self.judged(Self.sent()) == ["proven"])
    for (change, reason) in [
      (
        { ($0.unknown, $0.abandonedOpen, $0.abandoned, $0.sendings.proofsAsked) = (2, 1, 1, 4) },
        "the fate of 3 of 10 notifications is unknown; 3 of 4 markers got no answer"
      ),
      (
        { $0.abandoned = 2 },
        "2 notifications were abandoned: discarded, or not written before the end of the run"
      ),
      ({ $0.unsent = 3 }, "3 notifications were due and not sent within 100 ms of the schedule's end"),
      ({ $0.skipped = 4 }, "4 notifications were due and skipped, because they would have been late"),
      (
        { $0.foreignAnswers = 1 }, "1 connections were closed because of bytes that are not an error response"
      ),
    ] as [((inout LoadTally) -> Void, String)] {
      #expect(Self.judged(Self.sent(change)) == ["unproven", reason])
    }
    #expect(
      Self.judged(Self.sent { $0.unsent = 3 }, run: { $0.interruption = .init(phase: .measured, afterS: 1) })
        == ["unproven", "3 notifications were due and not sent when it was interrupted"])
    #expect(
      Self.judged(LoadTally(), run: { $0.interruption = .init(phase: .connect, afterS: 1) })
        == ["unproven", "nothing was sent"])
    #expect(
      Self.judged(Self.sent { ($0.accepted, $0.unknown) = (0, 10) }, plan: { $0.usesMarkers = false })
        == ["unproven", "written, not proven: without markers the fate of 10 of 10 notifications is unknown"])
  }

  @Test("A run in which nothing was accepted has failed, with the likely cause")
  func failed() {
    for (change, reasons) in [
      ({ $0.accepted = 0 }, ["nothing was accepted"]),
      ({ ($0.accepted, $0.rejected) = (0, 10) }, ["nothing was accepted: all 10 were rejected"]),
      ({ ($0.accepted, $0.rejected) = (0, 9) }, ["nothing was accepted"]),
      ({ ($0.accepted, $0.generated) = (0, 0) }, ["nothing was sent: nothing was due"]),
      ({ ($0.accepted, $0.generated, $0.unsent) = (0, 0, 7) }, ["nothing was sent: 7 were due"]),
      ({ $0.everUp = 0 }, ["0 of 1 connections came up"]),
      (
        {
          $0.everUp = 0
          $0.countFailure("no route")
        }, ["0 of 1 connections came up: no route"]
      ),
      (
        { ($0.accepted, $0.sendings.proofsAsked, $0.sendings.proofs) = (0, 2, 0) },
        [
          "nothing was accepted: none of 2 markers was answered within 10 s; give --markers off for a gateway that answers none"
        ]
      ),
      (
        { ($0.accepted, $0.sendings.proofs, $0.errorResponses) = (0, 0, [8: 1]) }, ["nothing was accepted"]
      ),
    ] as [((inout LoadTally) -> Void, [String])] {
      #expect(Self.judged(Self.sent(change), plan: { $0.markerTimeout = .seconds(10) }) == ["failed"] + reasons)
    }
  }

  @Test("Connections that end at once, more than half of them, are a gateway that closes")
  func silent() {
    func silent(_ change: (inout LoadTally) -> Void) -> Bool {
      let tally = Self.sent {
        ($0.accepted, $0.sendings.proofs) = (0, 0)
        change(&$0)
      }
      return Self.judged(tally).contains { $0.contains("connections were closed") }
    }
    #expect(silent { ($0.opened, $0.endedSilently) = (3, 2) })
    #expect(!silent { ($0.opened, $0.endedSilently) = (4, 2) })
    #expect(!silent { ($0.opened, $0.endedSilently, $0.failed) = (3, 2, 2) })
    #expect(silent { ($0.opened, $0.endedSilently, $0.failed) = (3, 2, 1) })
    #expect(!silent { ($0.opened, $0.endedSilently, $0.rejected) = (3, 2, 1) })
    // Without markers it takes two for each connection, and none that came to anything.
    func withoutMarkers(_ opened: Int, _ ended: Int, local: Int) -> Bool {
      let tally = Self.sent {
        ($0.accepted, $0.sendings.proofsAsked, $0.sendings.proofs) = (0, 0, 0)
        ($0.opened, $0.endedSilently) = (opened, ended)
        $0.closed[.local] = local
      }
      return Self.judged(tally, plan: { ($0.usesMarkers, $0.connections.count) = (false, 2) })[0] == "failed"
    }
    #expect(withoutMarkers(4, 4, local: 0) && withoutMarkers(6, 4, local: 2) && !withoutMarkers(6, 4, local: 1))
    #expect(!withoutMarkers(3, 3, local: 0) && !withoutMarkers(5, 4, local: 0))
  }

  @Test("Giving up is the first reason, and an obstacle the only one")
  func givenUp() {
    let nothing = Self.sent { ($0.generated, $0.accepted, $0.everUp, $0.opened) = (0, 0, 0, 0) }
    #expect(
      Self.judged(
        nothing, plan: { $0.connections.giveUp = .milliseconds(1_500) },
        run: { $0.givenUp = .lost(lastError: "refused") }) == [
          "failed", "gave up: no connection could be established for 1.5 s: refused",
          "nothing was sent: nothing was due", "0 of 1 connections came up",
        ])
    #expect(
      Self.judged(nothing, run: { $0.givenUp = .permanentFailure("unknown host") }) == ["failed", "unknown host"])
    let closed = Self.sent {
      ($0.accepted, $0.sendings.proofs, $0.opened, $0.endedSilently) = (0, 0, 5, 5)
    }
    // The gateway took connections: the next attempt was not due yet, whatever ended the last one.
    for error in [nil, "Connection reset by peer"] {
      #expect(
        Self.judged(
          closed, plan: { $0.connections.giveUp = .seconds(1) }, run: { $0.givenUp = .lost(lastError: error) }
        ).contains("gave up: no connection was up for 1 s: the gateway had closed all 5 of them"))
    }
    let said = Self.judged(
      closed, plan: { $0.connections.giveUp = .milliseconds(500) }, run: { $0.givenUp = .useless(opened: 4) })
    #expect(
      said.contains(
        "gave up: for 500 ms the gateway closed every connection, 4 of them, before anything was proven accepted"))
    // While it was still connecting, connections that did not come up say nothing.
    let early = Self.judged(nothing, run: { $0.interruption = .init(phase: .connect, afterS: 1) })
    #expect(early == ["unproven", "nothing was sent"])
  }
}
