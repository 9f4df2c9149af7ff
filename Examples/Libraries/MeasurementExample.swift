import Measurement
import Testing

extension LibraryExamples {
  @Test("Measurement: histograms of two loops merge, and a threshold judges a result")
  func measurement() throws {
    var (first, second) = (LatencyHistogram(.microseconds), LatencyHistogram(.microseconds))
    for value in 1...980 { first.record(value) }
    second.record(20_000, times: 20)
    first.merge(second)
    let median = first.quantile(0.5)  // 500
    let tail = first.quantile(0.99)  // 20 ms, with three significant digits
    var result = RunResult()
    result.latency.sendLagUs = first
    let verdict = try Threshold("send_lag_p99<5ms").judge(result)  // passed: false, value: 20_000

    #expect(median == 500)
    #expect((20_000...20_020).contains(tail))
    #expect(!verdict.passed)
    #expect(verdict.value == Double(tail))
  }
}
