import Foundation
import Measurement
import Reporting
import TestSupport
import Testing

/// How often a comparison accuses runs that are all alike, and how often it finds one that is not.
@Suite("False alarms of comparisons")
struct FalseAlarmTests {
  /// A run on a machine that other work shares: rates and processor time differ by 12 %, lags by much more, and
  /// errors are few, so that many runs have as many; what costs time makes the lag larger.
  private static func run(_ random: inout SeededGenerator, faster factor: Double = 1) -> RunResult.Part {
    var result = RunResult()
    let slowness = exp(0.12 * normal(&random)) / factor
    result.measuredBy = RunResult.currentMeasure
    result.measuredS = 10
    result.sendings.written = Int(100_000 / slowness)
    result.rates.writtenPerS = Double(result.sendings.written) / 10
    result.rates.acceptedPerS = result.rates.writtenPerS
    let lag = 2_000 * slowness * exp(0.6 * normal(&random))
    result.latency.sendLagUs.record(Int(lag))
    for _ in 0..<6 where random.happens(oneIn: 2) { result.sendings.rejected += 1 }
    result.resources.cpuUserS = 0.5 * exp(0.12 * normal(&random))
    result.resources.maxRssBytes = random.number(40...44) << 20
    for _ in 0..<max(1, result.sendings.rejected) {
      result.latency.errorUs.record(random.number(200...2_000))
      result.latency.recoverUs.record(random.number(400...4_000))
      result.binary.lossWindow.record(random.number(0...60))
    }
    return RunResult.Part("run", result)
  }

  private static func accuses(_ comparison: Comparison) -> Bool {
    comparison.rows.contains { [.better, .worse, .different].contains($0.judgement) }
  }

  /// Twenty that are each judged by themselves at 5 % accuse in 36 to 47 % of them.
  @Test(
    "Twenty equal runs that are dealt to two sides by chance are told apart in 5 % of the cases at most",
    arguments: seeds(1, of: 6))
  func alike(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let runs = (0..<20).map { _ in Self.run(&random) }
    let splits = TestRun.isWhole ? 400 : 120
    var (accused, corrected, raw) = (0, 0, 0)
    for _ in 0..<splits {
      let dealt = runs.shuffled(using: &random)
      let comparison = Comparison(Array(dealt[..<10]), Array(dealt[10...]))
      #expect(comparison.rows.compactMap(\.p).count == 4)
      if Self.accuses(comparison) { accused += 1 }
      if comparison.rows.contains(where: { $0.pHolm ?? 1 < 0.05 }) { corrected += 1 }
      if comparison.rows.contains(where: { $0.p ?? 1 < 0.05 }) { raw += 1 }
    }
    // Few splits leave room for chance.
    #expect(accused * 100 <= splits * (TestRun.isWhole ? 5 : 8), "\(accused) of \(splits)")
    // Without the help of the floor, too, as far as so many splits can tell; and it is the correction that does it.
    #expect(corrected * 100 <= splits * 8, "\(corrected) of \(splits)")
    #expect(raw * 10 > splits, "\(raw) of \(splits)")
  }

  @Test("Runs that are 30 % faster are found by ten a side in most cases, and 60 % faster ones by five")
  func different() {
    var random = SeededGenerator(seed: 8)
    for (count, factor) in [(10, 1.3), (5, 1.6)] {
      let found = (0..<20).count { _ in
        let comparison = Comparison(
          (0..<count).map { _ in Self.run(&random) }, (0..<count).map { _ in Self.run(&random, faster: factor) })
        return comparison.rows.first?.judgement == .better
      }
      #expect(found >= 15, "\(found) of 20 with \(count) a side")
    }
  }
}
