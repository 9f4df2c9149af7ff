import Measurement
import Reporting
import Testing

@Suite("Comparing runs")
struct ComparisonTests {
  /// A run of this rate in seconds since an hour's start.
  private func run(_ rate: Double, at second: Int = 0, _ change: (inout RunResult) -> Void = { _ in }) -> RunResult.Part
  {
    var result = RunResult()
    result.started = "2026-11-21T10:00:\(second < 10 ? "0" : "")\(second).000Z"
    result.environment.host = "one"
    result.measuredS = 10
    result.rates.acceptedPerS = rate
    result.latency.sendLagUs.record(Int(1e9 / rate))
    result.plan = ["seed": .number(1), "payload": .text("100..200")]
    change(&result)
    return RunResult.Part("run-\(second).json", result)
  }

  private func row(_ name: String, _ comparison: Comparison) throws -> Comparison.Row {
    try #require(comparison.rows.first { $0.figure == name })
  }

  @Test("Four runs that are all faster are better, by the ratio of the medians; less lag is better too")
  func better() throws {
    let comparison = Comparison(
      [run(100, at: 0), run(110, at: 3), run(90, at: 4), run(104, at: 7)],
      [run(200, at: 1), run(220, at: 2), run(208, at: 5), run(190, at: 6)])
    let rate = try row("accepted_per_s", comparison)
    #expect(rate.a.median == 102 && rate.b.median == 204 && rate.ratio == 2)
    #expect(rate.judgement == .better)
    #expect(try abs(#require(rate.p) - 2.0 / 70) < 1e-12)
    #expect(try row("send_lag_p99", comparison).judgement == .better)
    // No errors, so nothing that a latency of them could be of.
    #expect(!comparison.rows.contains { $0.figure == "error_p99" })
    #expect(comparison.differences.isEmpty && comparison.warnings.isEmpty)
    let back = Comparison(
      [run(200, at: 1), run(220, at: 2), run(208, at: 5), run(190, at: 6)],
      [run(100, at: 0), run(110, at: 3), run(90, at: 4), run(104, at: 7)])
    #expect(try row("accepted_per_s", back).judgement == .worse)
  }

  @Test("Runs that overlap are no difference, and three a side can show none")
  func same() throws {
    let mixed = Comparison(
      [run(100, at: 0), run(120, at: 3), run(140, at: 4), run(160, at: 7)],
      [run(110, at: 1), run(130, at: 2), run(150, at: 5), run(170, at: 6)])
    #expect(try row("accepted_per_s", mixed).judgement == .same)
    let few = Comparison([run(1), run(2), run(3)], [run(100), run(200), run(300)])
    #expect(try row("accepted_per_s", few).judgement == .tooFew)
    #expect(try row("accepted_per_s", few).p == nil)
    #expect(few.warnings.contains { $0.contains("need at least 4 runs a side") && $0.contains("3 and 3") })
  }

  @Test("What differs is named with its values, and warned of where it spoils the comparison")
  func differences() throws {
    let comparison = Comparison(
      [run(1), run(1)],
      [
        run(1) { $0.environment.host = "two" },
        run(1) {
          $0.plan["seed"] = .number(2)
          $0.plan["batch"] = .text("1")
          $0.verdict.limitedBy = .generator
        },
      ])
    #expect(comparison.differences.map(\.name) == ["host", "batch", "seed"])
    let host = comparison.differences[0]
    #expect(host.a == ["one"] && host.b == ["one", "two"])
    #expect(comparison.differences[1].a == ["-"] && comparison.differences[1].b == ["-", "1"])
    #expect(comparison.differences[2].b == ["1", "2"])
    #expect(comparison.warnings.contains { $0.contains("not made in the same place: host") })
    #expect(comparison.warnings.contains { $0.contains("same load: seed") })
    #expect(comparison.warnings.contains { $0.contains("among themselves") })
    #expect(comparison.warnings.contains { $0.contains("limited by the generator") })
  }

  @Test("One side after the other is warned of; in turn is not")
  func order() {
    let first = Comparison((0..<4).map { run(9, at: $0) }, (4..<8).map { run(9, at: $0) })
    #expect(first.warnings.contains { $0.contains("A B B A") })
    let turns = Comparison([0, 3, 4, 7].map { run(9, at: $0) }, [1, 2, 5, 6].map { run(9, at: $0) })
    #expect(turns.warnings.isEmpty)
  }

  @Test("A side without a figure is missing it, and a ratio to nothing is none")
  func missing() throws {
    let comparison = Comparison([run(1)], [run(1) { $0.lossWindow.record(7) }])
    let loss = try row("loss_window_p99", comparison)
    #expect(loss.judgement == .missing && loss.a.median == nil && loss.b.median == 7 && loss.ratio == nil)
  }
}
