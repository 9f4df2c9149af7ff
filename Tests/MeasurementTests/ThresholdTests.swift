import Measurement
import Testing

@Suite("Thresholds")
struct ThresholdTests {
  @Test(
    "A bound is in the unit of what it bounds",
    arguments: [
      ("send_lag_p99<5ms", 5_000), ("error_max <= 2s", 2e6), ("drain_p50<250us", 250), ("recover_p99<0", 0),
      ("rejected_rate<0.1%", 0.001), ("resent_rate<1e-4", 1e-4), ("accepted_per_s>100k", 1e5),
      ("accepted_per_s>=1.5M/s", 1.5e6), ("written_bytes_per_s>10MB/s", 1e7), ("max_rss_bytes<64MiB", 67_108_864),
      ("max_rss_bytes<1G", 1e9), ("loss_window_p99<500", 500), ("unknown<1", 1), ("abandoned<2k", 2_000),
    ])
  func bounds(expression: String, bound: Double) throws {
    #expect(abs(try Threshold(expression).bound - bound) <= 1e-9 * bound)
  }

  @Test(
    "What is no condition is refused with the reason",
    arguments: [
      ("send_lag_p99<5", "takes a time, as 500us, 5ms or 2s; '5' has no unit"),
      ("send_lag_p99<5%", "'5%' is none"), ("accepted_per_s>5ms", "takes a rate"),
      ("rejected_rate<1k", "takes a share"),
      ("unknown<1s", "takes a count"), ("max_rss_bytes<many", "takes bytes"),
      ("send_lag_p99<nan", "takes a time, as 500us, 5ms or 2s; 'nan' is no number"),
      ("unknown<inf", "takes a count"), ("unknown<", "takes a count"),
      ("send_lag_p99<5ms,accepted_per_s>900", "is more than one condition"), ("a<1", "'a' is nothing that is measured"),
      ("send_lag_p99=5ms", "has no < or >"),
    ])
  func refused(expression: String, reason: String) {
    do {
      _ = try Threshold(expression)
      Issue.record("taken")
    } catch {
      #expect(error.description.contains(reason), "\(error)")
    }
  }

  @Test("What was not measured keeps no threshold on it, and says why")
  func nothingMeasured() throws {
    var result = RunResult()
    result.interrupted = .init(phase: "warm-up", afterS: 1)
    for expression in ["send_lag_p99<5ms", "written_per_s<1k"] {
      let judged = try Threshold(expression).judge(result)
      #expect(!judged.passed && judged.reason == "nothing was measured")
    }
    // Of the whole run, however long.
    #expect(try Threshold("unknown<1").judge(result).passed)
    result.measuredS = 1
    #expect(
      try Threshold("send_lag_p99<5ms").judge(result) == .init(expression: "send_lag_p99<5ms", value: 0, passed: true))
  }
}
