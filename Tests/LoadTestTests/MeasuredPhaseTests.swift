import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// Rates and lags of runs whose truth is known, in simulated time.
@Suite("What the measured phase says")
struct MeasuredPhaseTests {
  private func run(
    _ behavior: SimulatedLink.GatewayBehavior = .init(), rate: Double = 5_000, seconds: Double = 4,
    poisson: Bool = false,
    seed: UInt64 = 1, _ change: (inout LoadPlan) -> Void = { _ in }
  ) throws -> SimulatedRun {
    try SimulatedRun(behavior, seed: seed) {
      ($0.count, $0.duration) = (nil, .seconds(seconds))
      $0.pace = .scheduled(.constant(rate), isPoisson: poisson)
      change(&$0)
    }
  }

  /// Its buffers are small: what it does not read is soon seen.
  private var small: SimulatedLink.GatewayBehavior {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.room, behavior.receiveBuffer) = (8_192, 8_192)
    return behavior
  }

  // MARK: windows

  @Test("A gateway that refuses in the warm-up alone: the measured phase has no errors, and all of it is accepted")
  func warmUpErrors() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.rejectsOneIn = 200
    let run = try run(behavior) { ($0.warmUp, $0.connections.count) = (.seconds(1), 2) }
    run.at(.milliseconds(990)) { $0.environment.isRefusing = false }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    let phases = Dictionary(uniqueKeysWithValues: result.phases.map { ($0.name, $0) })
    let (warmUp, measured) = try (#require(phases[.warmUp]), #require(phases[.measured]))
    #expect(warmUp.sendings.rejected > 0 && (warmUp.latency?.errorUs.count ?? 0) > 0)
    #expect(measured.sendings.rejected == 0 && measured.sendings.written >= 20_000)
    #expect(result.latency.errorUs.count == 0 && result.binary.lossWindow.count == 0)
    #expect(result.measuredS == 4 && result.measuredBy == 2 && result.rates.basis == .measured)
    #expect(result.rates.acceptedPerS == result.rates.writtenPerS)
    #expect(result.rates.acceptedPerS == Double(measured.sendings.accepted) / 4)
    // The whole run's counts are those of its phases.
    #expect(result.phases.reduce(0) { $0 + $1.sendings.accepted } == result.sendings.accepted)
    #expect(result.binary.errorResponses.values.reduce(0, +) > 0)
    #expect(warmUp.batches?.notifications.count ?? 0 > 0 && result.batches == measured.batches)
    let writes = result.phases.flatMap { $0.batches.map { Array($0.flushReasons.byName.values) } ?? [] }.reduce(0, +)
    #expect(result.batches.notifications.count == result.batches.flushReasons.byName.values.reduce(0, +))
    #expect(writes > result.batches.notifications.count)
  }

  @Test("A response that comes in the drain is of the phase in which its notification was written")
  func lateResponses() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.rejectsOneIn, behavior.answerDelay) = (1_500, 1_500_000_000...1_500_000_000)
    let run = try run(behavior, rate: 1_000, seconds: 2)
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    let measured = try #require(result.phase(.measured))
    #expect(measured.sendings.rejected >= 1 && measured.sendings.discarded > 0)
    #expect(result.latency.errorUs.count == measured.sendings.rejected && result.latency.errorUs.minimum >= 1_500_000)
    #expect(result.binary.lossWindow.count == result.latency.errorUs.count)
    #expect(measured.binary.errorResponses.isEmpty || result.phases.last?.binary.errorResponses.isEmpty == false)
  }

  @Test("A schedule ends exactly: what is due before its end is sent, to the last one", arguments: [1, 2, 3])
  func exactEnd(threads: Int) throws {
    for (rate, warmUp, length) in [(10.0, 0.0, 2.0), (1_000, 0.25, 1), (3_333, 0, 1.5), (777.7, 0.3, 0.9)] {
      let run = try run(rate: rate, seconds: length, seed: UInt64(threads)) {
        ($0.warmUp, $0.connections.count, $0.threads) = (.seconds(warmUp), threads, threads)
      }
      let outcome = try run.run()
      expectBalance(outcome, run.environment.books)
      #expect(outcome.books.generated == Int((rate * (warmUp + length)).rounded(.up)), "\(rate)/s, \(length) s")
      let result = outcome.result(Environment())
      #expect(abs(result.measuredS - length) < 1e-9)
      let bins = try #require(result.bins)
      #expect(bins.lengthS == 0.1 && bins.written.count <= Int(((warmUp + length) * 10).rounded(.up)))
      // But for what was written behind the end.
      let behind = result.phases.last?.sendings.written ?? 0
      #expect(bins.written.reduce(0, +) == result.sendings.written - behind)
      #expect(behind <= Int(rate * 0.002) + threads)
    }
  }

  @Test("What ends in its warm-up has nothing that was measured, and no threshold holds for that")
  func nothingMeasured() throws {
    let run = try run {
      ($0.count, $0.warmUp) = (100, .seconds(1))
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    #expect(result.measuredS == 0 && result.notifications.accepted == 100)
    let threshold = try Threshold("send_lag_p99<1s").judge(result)
    #expect(!threshold.passed && threshold.reason == "nothing was measured")
  }

  @Test(
    "A count that is reached where two phases meet leaves nothing out of the books",
    arguments: [5_000, 5_001, 5_020, 5_060])
  func countAtTheJoint(count: Int) throws {
    let run = try run { ($0.count, $0.warmUp) = (count, .seconds(1)) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.generated == count && outcome.books.accepted == count)
  }

  @Test("A count's measured phase ends with its last write, however much later that is seen")
  func countedEnd() throws {
    let result = try run(rate: 1_000) { $0.count = 1_000 }.run().result(Environment())
    #expect(abs(result.measuredS - 0.999) < 0.002)
    #expect(abs((result.rates.writtenPerS ?? 0) - 1_001) < 3 && result.rates.acceptedPerS == result.rates.writtenPerS)
  }

  @Test("As fast as possible, nothing new is made behind the end")
  func unlimitedEnd() throws {
    let run = try run(seconds: 0.02) { $0.pace = .unlimited }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.generated > 0)
    #expect(outcome.phase(.drain)?.tally.generated == 0)
  }

  // MARK: the accepted rate

  /// It read 8,000/s and was said to have accepted 17,560/s.
  @Test("What still lies in buffers at the end is not accepted per second: the drain that proves it counts")
  func saturated() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    // A frame of 250 bytes: 800/s. More than half as much again lies in the sockets' buffers.
    (behavior.bytesPerSecond, behavior.receiveBuffer, behavior.room) = (400_000, 200_000, 100_000)
    let run = try SimulatedRun(behavior, step: 200_000...200_000) {
      ($0.count, $0.duration, $0.drain, $0.markerTimeout) = (nil, .seconds(2), .seconds(60), .seconds(60))
      $0.workload.payload = .sizes(.init(189...189))
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    // Each step it reads from 0 to all that it can: half of it on average.
    let truth = 200_000.0 / 250
    #expect((result.rates.writtenPerS ?? 0) > 1.3 * truth, "\(result.rates)")
    #expect(result.rates.basis == .measuredAndDrain)
    #expect(abs((result.rates.acceptedPerS ?? 0) / truth - 1) < 0.06, "\(result.rates) of \(truth)")
    #expect(
      result.warnings.contains { $0.hasPrefix("the gateway settled the last notification of the measured phase ") })
    let both = result.phases.filter { $0.name == .measured || $0.name == .drain }
    let accepted = both.reduce(0) { $0 + $1.sendings.accepted }
    #expect(result.latency.drainUs.count > 0 && outcome.trial(result).behindMs != nil)
    #expect(result.rates.acceptedPerS == Double(accepted) / both.reduce(0) { $0 + $1.seconds })
  }

  // MARK: lag

  /// 73 % were never sent, and the p99 was 17 ms: no threshold saw it.
  @Test("A gateway that freezes for the rest of the run decides over send lag, and fails its thresholds")
  func frozen() throws {
    let run = try run(small, seconds: 6) { ($0.drain, $0.markerTimeout) = (.seconds(1), .seconds(1)) }
    run.at(.milliseconds(1_500)) { $0.environment.isReading = false }
    let outcome = try run.run()
    expectBalance(outcome, nil)
    let result = outcome.result(Environment())
    let lag = result.latency.sendLagUs
    #expect(result.schedule.unsent > 15_000 && lag.count >= 30_000)
    // What was due at 1.6 s waited until 100 ms behind the end.
    #expect((4_400_000...4_600_000).contains(lag.quantile(0.99)), "\(lag.quantile(0.99))")
    #expect((1_450_000...1_650_000).contains(lag.quantile(0.5)), "\(lag.quantile(0.5))")
    #expect((result.latency.sendLagOwnUs?.quantile(0.99) ?? .max) < 5_000)
    for expression in ["send_lag_p99<50ms", "send_lag_p50<50ms", "send_lag_max<3600s"] {
      #expect(try !Threshold(expression).judge(result).passed, "\(expression)")
    }
    let judged = try Threshold("send_lag_max<3600s").judge(result)
    #expect(judged.reason == "\(result.schedule.unsent) of \(lag.count) due notifications were never sent")
    // That it is more than some time is sure.
    #expect(try Threshold("send_lag_p99>1s").judge(result).passed)
  }

  @Test("What is skipped is late by what it was skipped for, and no threshold takes it for less")
  func skipped() throws {
    let run = try run(small, seconds: 3) { $0.behind = .skip }
    run.at(.milliseconds(1_000)) { $0.environment.isReading = false }
    run.at(.milliseconds(2_000)) { $0.environment.isReading = true }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    #expect(result.schedule.skipped > 3_000)
    #expect(result.latency.sendLagUs.quantile(0.99) >= 100_000)
    #expect(try !Threshold("send_lag_p99<10s").judge(result).passed)
  }

  @Test(
    "Of a gateway that stands still for a second, lag is that second's, at any spacing, and not the generator's own",
    arguments: [false, true])
  func gatewayStops(isPoisson: Bool) throws {
    let run = try run(small, rate: 10_000, seconds: 6, poisson: isPoisson)
    run.at(.milliseconds(2_000)) { $0.environment.isReading = false }
    run.at(.milliseconds(3_000)) { $0.environment.isReading = true }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let latency = outcome.result(Environment()).latency
    let lag = latency.sendLagUs
    // A sixth of all is late, evenly from 1 s to 0: what is due first waits longest.
    #expect(lag.maximum < 1_020_000 && lag.maximum > 950_000)
    #expect((860_000...1_000_000).contains(lag.quantile(0.99)), "\(lag.quantile(0.99))")
    #expect((300_000...500_000).contains(lag.quantile(0.9)), "\(lag.quantile(0.9))")
    #expect((70_000...95_000).contains(lag.mean), "\(lag.mean)")
    #expect((latency.sendLagOwnUs?.quantile(0.99) ?? .max) < 5_000)
    #expect((latency.sendLagGatewayUs?.quantile(0.99) ?? 0) > 850_000)
  }

  @Test("A batch's lag is spread over its notifications: at an even pace, half a tick on average")
  func spread() throws {
    let run = try SimulatedRun(step: 50_000...50_000) {
      ($0.count, $0.duration) = (nil, .seconds(2))
      $0.pace = .scheduled(.constant(50_000), isPoisson: false)
    }
    let lag = try run.run().result(Environment()).latency.sendLagUs
    // Due evenly in each millisecond, and written at its end.
    #expect((400...650).contains(lag.mean) && lag.maximum <= 1_100, "\(lag.mean), \(lag.maximum)")
    #expect((350...700).contains(lag.quantile(0.5)), "\(lag.quantile(0.5))")
  }

  // MARK: stalls

  @Test("A generator that stands still for 600 ms says so, and the lag is its own")
  func generatorStops() throws {
    let run = try run()
    run.at(.milliseconds(2_000)) { $0.environment.stop(for: .milliseconds(600)) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    let stalls = try #require(result.stalls)
    #expect(stalls.count == 1 && (590...605).contains(stalls.longestMs), "\(stalls)")
    #expect(abs(stalls.totalS - stalls.longestMs / 1e3) < 1e-9 && stalls.listed.count == 1)
    #expect(result.warnings.contains { $0.hasPrefix("the generator stalled for 6") }, "\(result.warnings)")
    #expect(result.resources.loopLagUs.quantile(0.99) > 500_000)
    #expect((result.latency.sendLagOwnUs?.quantile(0.99) ?? 0) > 500_000)
    #expect((result.latency.sendLagGatewayUs?.quantile(0.99) ?? .max) < 50_000)
    #expect(result.series.count { ($0.stalledMs ?? 0) > 0 } <= 2)
    #expect(abs(result.series.reduce(0) { $0 + ($1.stalledMs ?? 0) } - stalls.longestMs) < 1)
    // One that nobody stopped has none.
    let calm = try self.run().run().result(Environment())
    #expect(calm.stalls?.count == 0 && calm.warnings == [] && calm.series.allSatisfy { $0.stalledMs == 0 })
  }

  @Test("A stall while a trial settles is of the trial, though not of what it measures")
  func stallBefore() throws {
    let run = try run { $0.warmUp = .seconds(1) }
    run.at(.milliseconds(500)) { $0.environment.stop(for: .milliseconds(300)) }
    let outcome = try run.run()
    let result = outcome.result(Environment())
    #expect(result.stalls?.count == 0)
    let trial = outcome.trial(result)
    #expect((280...310).contains(trial.longestStallMs ?? 0) && (trial.stalledS ?? 0) > 0.28)
  }
}
