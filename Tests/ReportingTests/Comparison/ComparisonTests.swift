import Measurement
import Reporting
import Testing

@Suite("Comparing runs")
struct ComparisonTests {
  /// A run of this rate in seconds since an hour's start.
  private func run(_ rate: Double, at second: Int = 0, _ change: (inout RunResult) -> Void = { _ in }) -> RunResult.Part
  {
    var result = RunResult()
    result.measuredBy = RunResult.currentMeasure
    result.started = "2026-11-21T10:00:\(second < 10 ? "0" : "")\(second).000Z"
    result.environment.host = "one"
    result.measuredS = 10
    result.rates.acceptedPerS = rate
    result.rates.writtenPerS = rate
    result.rates.writtenBytesPerS = 0
    result.latency.sendLagUs.record(Int(1e9 / rate))
    result.plan = ["seed": .number(1), "payload": .text("100..200")]
    change(&result)
    return RunResult.Part("run-\(second).json", result)
  }

  /// Runs of these rates, at the times of one side of A B B A A B B A A B.
  private func side(_ rates: [Double], isFirst: Bool, _ change: (inout RunResult) -> Void = { _ in })
    -> [RunResult.Part]
  {
    zip(isFirst ? [0, 3, 4, 7, 8] : [1, 2, 5, 6, 9], rates).map { run($1, at: $0, change) }
  }

  private func row(_ name: String, _ comparison: Comparison) throws -> Comparison.Row {
    try #require(comparison.rows.first { $0.figure == name })
  }

  private let slow = [100.0, 110, 90, 104, 98]
  private let fast = [200.0, 220, 208, 190, 230]

  @Test("Five runs that are all faster are better, by the ratio of the medians; less lag is better too")
  func better() throws {
    let comparison = Comparison(side(slow, isFirst: true), side(fast, isFirst: false))
    let rate = try row("accepted_per_s", comparison)
    #expect(rate.a.median == 100 && rate.b.median == 208 && rate.ratio == 2.08)
    #expect(rate.judgement == .better)
    // Two figures have values, so the smaller p counts twice.
    #expect(try abs(#require(rate.p) - 2.0 / 252) < 1e-12)
    #expect(try abs(#require(rate.pHolm) - 4.0 / 252) < 1e-12)
    #expect(try row("send_lag_p99", comparison).judgement == .better)
    // No errors, so nothing that a latency of them could be of.
    #expect(!comparison.rows.contains { $0.figure == "error_p99" })
    #expect(comparison.differences.isEmpty && comparison.warnings.isEmpty)
    let back = Comparison(side(fast, isFirst: true), side(slow, isFirst: false))
    #expect(try row("accepted_per_s", back).judgement == .worse)
  }

  @Test("Figures that are not asked for stand behind the others, without p and verdict, however far they are apart")
  func chosen() throws {
    let (a, b) = (side(slow, isFirst: true), side(fast, isFirst: false))
    let main = Comparison(a, b)
    #expect(main.judged == Comparison.mainFigures)
    #expect(
      main.rows.map(\.figure) == [
        "accepted_per_s", "send_lag_p99", "written_per_s", "written_bytes_per_s", "send_lag_p50",
      ])
    let written = try row("written_per_s", main)
    #expect(written.judgement == .notJudged && written.p == nil && written.pHolm == nil && written.ratio == 2.08)
    let one = Comparison(a, b, judging: ["written_per_s"])
    #expect(one.rows.map(\.figure).first == "written_per_s" && one.judged == ["written_per_s"])
    #expect(try row("written_per_s", one).judgement == .better)
    // Alone it needs no correction.
    #expect(try row("written_per_s", one).pHolm == row("written_per_s", one).p)
    #expect(try row("accepted_per_s", one).judgement == .notJudged)
  }

  @Test("Runs that overlap are no difference, and four a side can show none")
  func same() throws {
    let mixed = Comparison(
      side([100, 120, 140, 160, 180], isFirst: true), side([110, 130, 150, 170, 190], isFirst: false))
    #expect(try row("accepted_per_s", mixed).judgement == .same)
    let few = Comparison(
      Array(side(slow, isFirst: true).dropLast()), Array(side(fast, isFirst: false).dropLast()))
    #expect(try row("accepted_per_s", few).judgement == .tooFew)
    #expect(try row("accepted_per_s", few).p == nil)
    #expect(few.warnings.contains { $0.contains("at least 5 runs of each side") && $0.contains("4 and 4") })
    // Five on one side alone, or five of which one has no value.
    let uneven = Comparison(Array(side(slow, isFirst: true).dropLast()), side(fast, isFirst: false))
    #expect(try row("accepted_per_s", uneven).judgement == .tooFew)
    var holed = side(fast, isFirst: false)
    holed[2].result.measuredS = 0
    #expect(try row("accepted_per_s", Comparison(side(slow, isFirst: true), holed)).judgement == .tooFew)
  }

  @Test("Below 15 % there is no verdict however sure the difference is, in both directions alike")
  func floor() throws {
    func judged(_ factor: Double) throws -> [Comparison.Judgement] {
      let a: [Double] = [1_000, 1_001, 1_002, 1_003, 1_004]
      let b = a.map { value -> Double in 1_002 * factor + value - 1_002 }
      return [
        try row("accepted_per_s", Comparison(side(a, isFirst: true), side(b, isFirst: false))).judgement,
        try row("accepted_per_s", Comparison(side(b, isFirst: true), side(a, isFirst: false))).judgement,
      ]
    }
    #expect(try judged(1.14) == [.small, .small])
    #expect(try judged(1.16) == [.better, .worse])
    #expect(try judged(1) == [.same, .same])
  }

  @Test("A figure that is 0 on one side differs by more than 15 %; 0 on both is no difference")
  func zero() throws {
    func rejecting(_ count: Int) -> (inout RunResult) -> Void {
      {
        $0.sendings.written = 1_000_000
        $0.sendings.rejected = count
      }
    }
    let none = side(slow, isFirst: true, rejecting(0))
    let some = Comparison(none, side(slow, isFirst: false, rejecting(2)))
    let rate = try row("rejected_rate", some)
    #expect(rate.judgement == .worse && rate.ratio == nil)
    #expect(try row("rejected_rate", Comparison(none, side(slow, isFirst: false, rejecting(0)))).judgement == .same)
  }

  @Test("So many figures of so few runs that none can differ are warned of")
  func tooMany() {
    func full(_ result: inout RunResult) {
      for _ in 0..<3 {
        result.latency.errorUs.record(10)
        result.latency.recoverUs.record(10)
        result.binary.lossWindow.record(10)
      }
    }
    let (a, b) = (side(slow, isFirst: true, full), side(fast, isFirst: false, full))
    let names = ["accepted_per_s", "written_per_s", "error_p50", "error_p99", "recover_p50", "recover_p99"]
    #expect(Comparison(a, b, judging: names).warnings.isEmpty)
    let many = Comparison(a, b, judging: names + ["loss_window_p50"])
    #expect(many.warnings.contains { $0.hasPrefix("7 figures are judged, too many") })
    #expect(!many.rows.contains { [.better, .worse].contains($0.judgement) })
  }

  @Test("Runs whose figures are computed in different ways are shown and not judged, on one side or on both")
  func measures() throws {
    let (a, b) = (side(slow, isFirst: true), side(fast, isFirst: false))
    let old = side(fast, isFirst: false) { $0.measuredBy = nil }
    for (first, second) in [(a, old), (old, a), (a, Array(b.dropLast()) + old.suffix(1))] {
      let mixed = Comparison(first, second)
      let rate = try row("accepted_per_s", mixed)
      #expect(rate.judgement == .notComparable && rate.p == nil && rate.ratio != nil)
      #expect(mixed.warnings.contains { $0.contains("apnscope 0.1.0 (run-") && $0.contains("0.2.0 or later (run-") })
      #expect(mixed.differences.contains { $0.name == "measured_by" })
    }
    // Old ones are judged among themselves.
    let olds = Comparison(side(slow, isFirst: true) { $0.measuredBy = nil }, old)
    #expect(try row("accepted_per_s", olds).judgement == .better)
    #expect(olds.warnings.isEmpty)
  }

  @Test("A figure that was asked for and that no run has is told, and not left out")
  func noneHasIt() {
    let comparison = Comparison([run(1), run(1)], [run(1), run(1)], judging: ["error_p99"])
    #expect(comparison.rows.first?.figure == "error_p99" && comparison.rows.first?.judgement == .missing)
    #expect(comparison.warnings.contains("error_p99: no run has it"))
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
          $0.environment.commit = "1234567"
        },
      ])
    #expect(comparison.differences.map(\.name) == ["host", "apnscope", "batch", "seed"])
    let host = comparison.differences[0]
    #expect(host.a == ["one"] && host.b == ["one", "two"])
    #expect(comparison.differences[2].a == ["-"] && comparison.differences[2].b == ["-", "1"])
    #expect(comparison.differences[3].b == ["1", "2"])
    #expect(comparison.warnings.contains { $0.contains("made on different machines: host") })
    #expect(comparison.warnings.contains { $0.contains("same load: seed") })
    #expect(comparison.warnings.contains { $0.contains("of the same side differ") })
    #expect(comparison.warnings.contains { $0.contains("limited by the generator") })
  }

  @Test("One side after the other is warned of; in turn is not")
  func order() {
    let first = Comparison((0..<5).map { run(9, at: $0) }, (5..<10).map { run(9, at: $0) })
    #expect(first.warnings.contains { $0.contains("A B B A") })
    let same = [Double](repeating: 9, count: 5)
    #expect(Comparison(side(same, isFirst: true), side(same, isFirst: false)).warnings.isEmpty)
  }

  @Test("A side without a figure is missing it, and a ratio to nothing is none")
  func missing() throws {
    let comparison = Comparison([run(1)], [run(1) { $0.binary.lossWindow.record(7) }], judging: ["loss_window_p99"])
    let loss = try row("loss_window_p99", comparison)
    #expect(loss.judgement == .missing && loss.a.median == nil && loss.b.median == 7 && loss.ratio == nil)
  }
}
