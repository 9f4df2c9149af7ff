import Foundation
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
      ("recover_max<1.5m", 9e7), ("error_p50<500ns", 0.5), ("max_rss_bytes<64kB", 64_000), ("unknown<3K", 3_000),
    ])
  func bounds(expression: String, bound: Double) throws {
    #expect(abs(try Threshold(expression).bound - bound) <= 1e-9 * bound)
  }

  @Test("A condition that ends the run keeps its word apart")
  func aborts() throws {
    let threshold = try Threshold("rejected_rate<1%, abort")
    #expect(threshold.aborts && threshold.expression == "rejected_rate<1%" && threshold.bound == 0.01)
    #expect(try threshold.argument == "rejected_rate<1%,abort" && Threshold(threshold.argument) == threshold)
    #expect(try !Threshold("rejected_rate<1%").aborts)
    #expect(throws: Threshold.SyntaxError.self) { try Threshold("rejected_rate<1%,abort,abort") }
    #expect(throws: Threshold.SyntaxError.self) { try Threshold("rejected_rate<1%,end") }
  }

  @Test(
    "What is no condition is refused with the reason",
    arguments: [
      ("send_lag_p99<5", "takes a time such as 500us, 5ms or 2s; '5' has no unit"),
      ("send_lag_p99<5%", "'5%' is not one"), ("accepted_per_s>5ms", "takes a rate"),
      ("rejected_rate<1k", "takes a share"),
      ("unknown<1s", "takes a count"), ("max_rss_bytes<many", "takes bytes"),
      ("send_lag_p99<nan", "takes a time such as 500us, 5ms or 2s; 'nan' is not a number"),
      ("unknown<inf", "takes a count"), ("unknown<", "takes a count"),
      ("send_lag_p99<5ms,accepted_per_s>900", "is more than one condition"), ("a<1", "unknown metric 'a'"),
      ("send_lag_p99=5ms", "= is for counts; this takes < or >"), ("send_lag_p99", "has no <, > or ="),
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
    result.interrupted = .init(phase: .warmUp, afterS: 1)
    for expression in ["send_lag_p99<5ms", "written_per_s<1k"] {
      let judged = try Threshold(expression).judge(result)
      #expect(!judged.passed && judged.value == nil && judged.reason == "nothing was measured")
    }
    // Of the whole run, however long.
    #expect(try Threshold("unknown<1").judge(result).passed)
    result.measuredS = 1
    let empty = try Threshold("send_lag_p99<5ms").judge(result)
    #expect(!empty.passed && empty.value == nil && empty.reason == "nothing was due or written")
    result.latency.sendLagUs.record(4_999)
    #expect(
      try Threshold("send_lag_p99<5ms").judge(result)
        == .init(expression: "send_lag_p99<5ms", value: 4_999, passed: true))
  }

  @Test("What did not happen has no value: it is below every bound, and above none")
  func nothingToMeasure() throws {
    var result = RunResult()
    result.measuredS = 1
    for name in ["error_max", "recover_p99", "tcp_connect_p50", "loss_window_max", "rejected_rate"] {
      let bound = name == "loss_window_max" || name == "rejected_rate" ? "1" : "1ms"
      let below = try Threshold("\(name)<\(bound)").judge(result)
      #expect(below.passed && below.value == nil && below.reason == nil, "\(name)")
      let above = try Threshold("\(name)>\(bound)").judge(result)
      #expect(!above.passed && above.value == nil && above.reason == "there was none to measure", "\(name)")
    }
    // A count of nothing is 0.
    #expect(try Threshold("unknown<1").judge(result).value == 0)
    result.sendings.written = 4
    #expect(try Threshold("rejected_rate<1%").judge(result).value == 0)
  }

  @Test("A document has no value where there is none, and that of 0.1.0, which has 0, is read so")
  func document() throws {
    typealias Judged = RunResult.Verdict.Threshold
    let none = Judged(expression: "error_max<1s", value: nil, passed: true)
    let text = String(decoding: try JSONEncoder().encode(none), as: UTF8.self)
    #expect(!text.contains("value"))
    func read(_ json: String) throws -> Judged { try JSONDecoder().decode(Judged.self, from: Data(json.utf8)) }
    #expect(try read(text) == none)
    let old = try read(#"{"expression":"a<1","value":0,"passed":false,"reason":"nothing was measured"}"#)
    #expect(old == Judged(expression: "a<1", value: nil, passed: false, reason: "nothing was measured"))
    let measured = try read(#"{"expression":"a<1","value":0,"passed":true}"#)
    #expect(measured == Judged(expression: "a<1", value: 0, passed: true))
  }

  @Test("What was never sent is later than all that was: a quantile among it is below no bound")
  func neverSent() throws {
    var result = RunResult()
    (result.measuredBy, result.measuredS) = (2, 1)
    result.latency.sendLagUs.record(1_000, times: 990)
    result.latency.sendLagUs.record(2_000, times: 10)
    (result.schedule.unsent, result.schedule.skipped) = (6, 4)
    func passes(_ expression: String) throws -> Bool { try Threshold(expression).judge(result).passed }
    #expect(try passes("send_lag_p99<5ms") && passes("send_lag_p50<=5ms"))
    #expect(try !passes("send_lag_p999<5ms") && !passes("send_lag_max<=3600s"))
    #expect(try passes("send_lag_max>1ms"))
    result.schedule.unsent = 7
    let judged = try Threshold("send_lag_p99<5ms").judge(result)
    #expect(!judged.passed && judged.reason == "11 of 1000 due notifications were never sent")
    // Of 0.1.0 send lag does not have them.
    result.measuredBy = nil
    #expect(try Threshold("send_lag_p99<5ms").judge(result).reason == "11 of 1011 due notifications were never sent")
  }

  @Test("Times of connecting are of the whole run, for most connections are made before the measured phase")
  func connecting() throws {
    var result = RunResult()
    (result.measuredBy, result.measuredS) = (2, 1)
    var (connect, measured) = (RunResult.Phase(), RunResult.Phase())
    (connect.latency, measured.latency) = (.init(), .init())
    connect.latency?.tlsHandshakeUs.record(9_000)
    measured.latency?.tlsHandshakeUs.record(1_000)
    result.phases = [connect, measured]
    result.latency = measured.latency ?? .init()
    #expect(try Threshold("tls_handshake_max<5ms").judge(result).value == 9_000)
    // In documents of 0.1.0 latencies are of the whole run.
    result.measuredBy = nil
    #expect(try Threshold("tls_handshake_max<5ms").judge(result).value == 1_000)
  }

  @Test("Each metric is of its own field")
  func metrics() throws {
    var result = RunResult()
    (result.measuredBy, result.measuredS) = (2, 1)
    (result.rates.writtenPerS, result.rates.acceptedPerS, result.rates.writtenBytesPerS) = (11, 12, 13)
    result.sendings.written = 100
    (result.sendings.rejected, result.sendings.discarded, result.sendings.resent) = (1, 2, 3)
    (result.notifications.unknown, result.notifications.abandoned) = (21, 22)
    (result.schedule.skipped, result.schedule.unsent) = (23, 24)
    (result.connections.failed, result.resources.maxRssBytes) = (25, 26)
    let (latency, ofWhole) =
      ([\.sendLagUs, \.errorUs, \.drainUs, \.recoverUs], [\.tcpConnectUs, \.tlsHandshakeUs])
      as (
        [WritableKeyPath<RunResult.Latency, LatencyHistogram>], [WritableKeyPath<RunResult.Latency, LatencyHistogram>]
      )
    for (path, value) in zip(latency + ofWhole + [\.tlsResumedUs], 1...) {
      result.latency[keyPath: path].record(value * 100)
      result.latency[keyPath: path].record(value * 10_000 + 1)
    }
    result.binary.lossWindow.record(7)
    var phase = RunResult.Phase()
    (phase.name, phase.latency) = (.measured, result.latency)
    result.phases = [phase]
    var values: [String: Double] = [
      "written_per_s": 11, "accepted_per_s": 12, "written_bytes_per_s": 13, "rejected_rate": 0.01,
      "discarded_rate": 0.02, "resent_rate": 0.03, "unknown": 21, "abandoned": 22, "skipped": 23, "unsent": 24,
      "connections_failed": 25, "max_rss_bytes": 26,
    ]
    let names = ["send_lag", "error", "drain", "recover", "tcp_connect", "tls_handshake", "tls_resumed"]
    for (name, value) in zip(names, 1...) {
      values["\(name)_p50"] = Double(value * 100)
      for rest in ["p90", "p99", "p999", "max"] { values["\(name)_\(rest)"] = Double(value * 10_000 + 1) }
    }
    for rest in ["p50", "p90", "p99", "p999", "max"] { values["loss_window_\(rest)"] = 7 }
    #expect(Set(values.keys) == Set(Threshold.names.keys))
    for (name, value) in values { #expect(Threshold.names[name]?(result) == value, "\(name)") }
  }

  @Test("At its bound a condition holds when that says so")
  func comparisons() throws {
    var result = RunResult()
    result.notifications.unknown = 5
    for (condition, passed) in [
      ("<5", false), ("<=5", true), (">5", false), (">=5", true), ("<6", true), ("<=4", false), (">4", true),
      (">=6", false),
    ] {
      #expect(try Threshold("unknown\(condition)").judge(result).passed == passed, "\(condition)")
    }
  }

  @Test(
    "A run without an answered marker has no drain; a document without phases does not say that it measured nothing")
  func withoutDrain() throws {
    var result = RunResult()
    #expect(result.reasonForNoRates == nil)
    #expect(try Threshold("written_per_s<1").judge(result).passed)
    #expect(try Threshold("drain_max<1s").judge(result).reason == "no marker was answered")
    result.phases = [RunResult.Phase()]
    #expect(result.reasonForNoRates == "nothing was measured")
    #expect(try Threshold("drain_max<1s").judge(result).reason == "nothing was measured")
    result.measuredS = 1
    #expect(result.reasonForNoRates == nil)
    result.latency.drainUs.record(9)
    #expect(try Threshold("drain_max<1s").judge(result) == .init(expression: "drain_max<1s", value: 9, passed: true))
    (result.measuredS, result.phases, result.interrupted) = (0, [], .init(phase: .connect, afterS: 1))
    #expect(result.reasonForNoRates == "nothing was measured")
    result.merged = .init()
    #expect(result.reasonForNoRates == "nothing was measured")
    result.merged?.together = false
    #expect(result.reasonForNoRates == "the segments did not run together")
  }

  @Test("What was skipped before the measured phase does not make its send lag uncertain")
  func skippedBefore() throws {
    var result = RunResult()
    (result.measuredBy, result.measuredS) = (2, 1)
    result.latency.sendLagUs.record(1_000, times: 100)
    result.schedule.skipped = 50
    #expect(try !Threshold("send_lag_p99<5ms").judge(result).passed)
    var phase = RunResult.Phase()
    (phase.name, phase.skipped) = (.measured, 1)
    result.phases = [phase]
    #expect(try Threshold("send_lag_p99<=5ms").judge(result).passed)
    #expect(try Threshold("send_lag_max<5ms").judge(result).reason == "1 of 100 due notifications were never sent")
    result.phases[0].skipped = 2
    #expect(try !Threshold("send_lag_p99<5ms").judge(result).passed)
    // Others are not concerned, nor is a lower bound.
    result.latency.errorUs.record(1)
    #expect(try Threshold("error_max<5ms").judge(result).passed)
    #expect(try Threshold("send_lag_max>=1ms").judge(result).passed)
    // In 0.1.0 they are those of the whole run.
    result.measuredBy = nil
    #expect(try Threshold("send_lag_p50<5ms").judge(result).passed)
    #expect(try Threshold("send_lag_p90<5ms").judge(result).reason == "50 of 150 due notifications were never sent")
  }

  @Test("A time of the whole run is of those phases that have it")
  func phasesWithout() {
    var result = RunResult()
    result.measuredBy = 2
    result.latency.tcpConnectUs.record(77)
    let without = RunResult.Phase()
    var (with, other) = (without, without)
    (with.latency, other.latency) = (.init(), .init())
    with.latency?.tcpConnectUs.record(5)
    other.latency?.tcpConnectUs = LatencyHistogram(.bytes)
    other.latency?.tcpConnectUs.record(6)
    result.phases = [without, with, other]
    let whole = result.ofWholeRun(\.tcpConnectUs)
    #expect(whole.count == 1 && whole.maximum == 5 && whole.unit == .milliseconds)
  }
}
