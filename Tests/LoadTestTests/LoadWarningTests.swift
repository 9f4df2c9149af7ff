import Measurement
import Testing

@testable import LoadTest

@Suite("Warnings of a result")
struct LoadWarningTests {
  /// Ten measured seconds of one event loop.
  private func outcome(cpu: Double, loopLag: Int) -> LoadOutcome {
    var outcome = LoadOutcome(plan: LoadPlan())
    var measurements = LoadMeasurements()
    measurements.loopLag.record(loopLag, times: 1_000)
    var tally = LoadTally()
    (tally.generated, tally.accepted, tally.everUp) = (1, 1, 1)
    outcome.phases = [.init(.connect, seconds: 1), .init(.measured, seconds: 10)]
    (outcome.phases[0].tally, outcome.phases[1].cpu) = (tally, cpu)
    outcome.phases[1].measurements = measurements
    return outcome
  }

  @Test("What was interrupted says where, and has nothing of a phase that it did not come to")
  func interrupted() {
    var short = outcome(cpu: 1, loopLag: 0)
    short.interruption = .init(phase: .measured, afterS: 10)
    #expect(short.result(Environment()).warnings == ["interrupted after 10 s of 60 s"])
    var plan = LoadPlan()
    (plan.count, plan.duration, plan.warmUp) = (5_000, .seconds(86_400), .seconds(5))
    var counted = LoadOutcome(plan: plan)
    counted.phases = short.phases
    counted.phases[1].tally.generated = 1_233
    counted.interruption = .init(phase: .measured, afterS: 2.04)
    #expect(
      counted.result(Environment()).warnings == ["interrupted after 2.0 s, with 1234 of 5000 notifications generated"])
    counted.phases[1].phase = .warmUp
    counted.phases[1].measurements.latency.sendLagUs.record(5)
    counted.interruption = .init(phase: .warmUp, afterS: 1)
    let result = counted.result(Environment())
    #expect(
      result.warnings.count == 1 && result.warnings[0].hasPrefix("interrupted in the warm-up, after 1.0 s of 5.0 s"))
    #expect(result.measuredS == 0 && result.latency.sendLagUs.count == 0 && result.rates == RunResult.Rates())
    #expect(result.interrupted == .init(phase: .warmUp, afterS: 1))
  }

  @Test("A generator that is at its limit says so")
  func limits() {
    #expect(outcome(cpu: 8.9, loopLag: 10_000).result(Environment()).warnings == [])
    let busy = outcome(cpu: 9.1, loopLag: 0).result(Environment())
    #expect(busy.warnings.count == 1 && busy.warnings[0].contains("90 %"))
    #expect(busy.verdict.limitedBy == .generator)
    let late = outcome(cpu: 1, loopLag: 20_000).result(Environment())
    #expect(late.warnings.count == 1 && late.warnings[0].contains("20 ms"))
    #expect(late.resources.loopLagUs.count == 1_000)
  }
}
