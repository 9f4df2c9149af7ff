import Foundation
import Measurement
import Reporting
import TestSupport
import Testing

@Suite("Steady state and intervals")
struct SteadyStateTests {
  /// Twelve even ones are nearly a normal one, within six standard deviations.
  private static func nearlyNormal(_ random: inout SeededGenerator) -> Double {
    (0..<12).reduce(-6) { sum, _ in sum + Double.random(in: 0...1, using: &random) }
  }

  /// Box and Muller.
  private static func normal(_ random: inout SeededGenerator) -> Double {
    let (radius, turn) = (1 - Double.random(in: 0..<1, using: &random), Double.random(in: 0..<1, using: &random))
    return (-2 * log(radius)).squareRoot() * cos(2 * .pi * turn)
  }

  /// x ← φx + noise, whose mean is 0, and whose mean of n varies (1 + φ)/(1 − φ) times as much as that of independent ones.
  private static func correlated(_ factor: Double, _ count: Int, _ random: inout SeededGenerator) -> [Double] {
    var value = 0.0
    return (0..<count).map { _ in
      value = factor * value + normal(&random)
      return value
    }
  }

  @Test("Batch means of independent values are Student's interval: worked by hand")
  func byHand() throws {
    // Mean 5.5, s² = 55/6, neighbours not correlated upward, so the batches are of one; t of 9 degrees is 2.262157.
    let means = try BatchMeans([10, 1, 9, 2, 8, 3, 7, 4, 6, 5])
    #expect(means.mean == 5.5)
    #expect(means.batchLength == 1 && means.batches == 10 && means.isIndependent)
    #expect(abs(means.halfWidth - 2.262157 * (55.0 / 6 / 10).squareRoot()) < 1e-5)
    #expect(means.effectiveCount == 10)
  }

  @Test("The interval holds the mean in about 95 of 100 runs, however neighbours depend", arguments: [0, 0.5, 0.9])
  func coverage(factor: Double) throws {
    var random = SeededGenerator(seed: 11)
    var (hits, effective) = (0, 0.0)
    let runs = TestRun.isWhole ? 200 : 80
    for _ in 0..<runs {
      let means = try BatchMeans(Self.correlated(factor, 2_000, &random))
      if abs(means.mean) <= means.halfWidth { hits += 1 }
      effective += means.effectiveCount / Double(runs)
    }
    #expect(hits * 200 >= 176 * runs && hits < runs, "\(hits) of \(runs)")
    // n_eff is n (1 − φ)/(1 + φ).
    let expected = 2_000 * (1 - factor) / (1 + factor)
    #expect((0.6 * expected...1.9 * expected).contains(effective), "\(effective), not \(expected)")
  }

  @Test("A series that drifts is not called independent")
  func drift() throws {
    #expect(!(try BatchMeans((0..<64).map(Double.init)).isIndependent))
    #expect(try BatchMeans([Double](repeating: 4, count: 20)).halfWidth == 0)
    #expect(throws: BatchMeans.Problem.tooFewValues) { try BatchMeans([1, 2, 3]) }
    #expect(throws: BatchMeans.Problem.notANumber) { try BatchMeans([1, 2, 3, 4, 5, 6, 7, .nan]) }
  }

  /// By hand from the definition (White, Cobb and Spratt, 2000): the error of what is left, Σ(Z − Z̄)²/(m − d)², of the
  /// means 9, 9, then 18 that alternate between 1 and 3. From d = 2 it is 18/18² = 0.0556, from d = 4 it is 16/16²
  /// already larger, and with a 9 in it it is (18·48.9/19 …)/19² > 0.1.
  @Test("MSER-5 cuts where the definition says")
  func mser() {
    let groups = [9.0, 9] + (0..<18).map { $0 % 2 == 0 ? 1.0 : 3 }
    let values = groups.flatMap { value in [Double](repeating: value, count: 5) }
    #expect(WarmUp(values) == .settled(at: 10))
  }

  @Test("What starts far off settles near where it does", arguments: 1...100 as ClosedRange<UInt64>)
  func settles(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let start = random.number(2...30) * WarmUp.group
    let values = (0..<400).map { index in
      Self.nearlyNormal(&random) + (index < start ? 40 * Double(start - index) / Double(start) + 10 : 0)
    }
    guard case .settled(let at) = WarmUp(values) else { return #expect(Bool(false), "never settles") }
    #expect(at >= start && at <= start + 100, "settled at \(at), steady from \(start)")
  }

  @Test("What grows all the time never settles, and little is too short")
  func neverSettles() {
    #expect(WarmUp((0..<200).map { Double($0 * $0) }) == .neverSettles)
    #expect(WarmUp((0..<49).map(Double.init)) == .tooShort)
    #expect(WarmUp([Double](repeating: .nan, count: 100)) == .tooShort)
    #expect(WarmUp([Double](repeating: 3, count: 100)) == .settled(at: 0))
  }

  /// Le Boudec, "Performance Evaluation of Computer and Communication Systems", appendix A: of 100 values the median is
  /// between the 40th and the 61st.
  @Test("Percentile intervals are the textbook's ranks")
  func ranks() {
    let median = PercentileInterval(count: 100, quantile: 0.5)
    #expect(median.lowerRank == 40 && median.upperRank == 61)
    // 99th of 1,000: 990 ± 6.17.
    let high = PercentileInterval(count: 1_000, quantile: 0.99)
    #expect(high.lowerRank == 983 && high.upperRank == 998)
    // Too few to know what lies above.
    let few = PercentileInterval(count: 100, quantile: 0.99)
    #expect(few.lowerRank == 97 && few.upperRank == nil)
    for (count, quantile) in [(0, 0.5), (10, 0), (10, 1), (10, .nan)] as [(Int, Double)] {
      #expect(PercentileInterval(count: count, quantile: quantile).lowerRank == nil)
    }
    var histogram = LatencyHistogram(.count)
    for value in 1...100 { histogram.record(value) }
    #expect(histogram.interval(of: 0.5) == (40, 61))
  }

  @Test("Nothing in n tries is less than 3/n")
  func events() {
    #expect(EventShare(events: 0, of: 1_500) == .lessThan(0.002))
    #expect(EventShare(events: 3, of: 1_500) == .measured(0.002))
    #expect(EventShare(events: 0, of: 2) == .lessThan(1))
    #expect(EventShare(events: 0, of: 0) == .unknown)
  }

  @Test("Wilson's interval: worked by hand, and within 0 and 1 at the ends")
  func shares() throws {
    let ten = try #require(EventShare.interval(events: 1, of: 10))
    #expect(abs(ten.lowerBound - 0.017_876) < 1e-5 && abs(ten.upperBound - 0.404_15) < 1e-5)
    #expect(EventShare.interval(events: 0, of: 10)?.lowerBound == 0)
    #expect(EventShare.interval(events: 10, of: 10)?.upperBound == 1)
    for (events, tries) in [(1, 0), (-1, 5), (6, 5)] { #expect(EventShare.interval(events: events, of: tries) == nil) }
    #expect(EventShare.interval(events: .max, of: .max) != nil)
  }

  @Test("The interval of a histogram's mean is Student's: worked by hand, and holds it in about 95 of 100")
  func means() throws {
    var histogram = LatencyHistogram(.count)
    histogram.record(4)
    #expect(histogram.halfWidthOfMean == nil)
    histogram.record(8)
    // t(1) = 12.706, s = 2.828, of two.
    #expect(abs(try #require(histogram.halfWidthOfMean) - 12.706 * 2) < 1e-2)
    var random = SeededGenerator(seed: 3)
    let holding = (0..<400).count { _ in
      var sample = LatencyHistogram(.count)
      for _ in 0..<20 { sample.record(random.number(0...20)) }
      return abs(sample.mean - 10) <= sample.halfWidthOfMean ?? 0
    }
    #expect((364...396).contains(holding), "\(holding)")
  }

  @Test("Medians and ratios of nothing are nothing")
  func medians() {
    #expect(median([3, 1, 2]) == 2)
    #expect(median([4, 1, 2, 3]) == 2.5)
    #expect(median([]) == nil)
    #expect(median([1, .nan]) == nil)
    #expect(ratio(3, to: 2) == 1.5)
    #expect(ratio(3, to: 0) == nil)
  }
}
