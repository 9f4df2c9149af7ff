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
    outcome.phases = [
      .init(name: "connect", seconds: 1, cpu: 1, tally: LoadTally(), measurements: LoadMeasurements()),
      .init(name: "measured", seconds: 10, cpu: cpu, tally: LoadTally(), measurements: measurements),
    ]
    return outcome
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
