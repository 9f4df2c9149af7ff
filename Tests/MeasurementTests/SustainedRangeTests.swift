import Measurement
import TestSupport
import Testing

@Suite("Range of a sustained rate")
struct SustainedRangeTests {
  private typealias Evidence = SustainedRange.Evidence

  private func passed(_ rate: Double, held: Double? = nil, isLong: Bool = false) -> SustainedRange.Evidence {
    Evidence(offeredPerS: rate, heldPerS: held ?? rate, isLong: isLong, hasPassed: true)
  }

  private func failed(_ rate: Double, isLong: Bool = false) -> SustainedRange.Evidence {
    Evidence(offeredPerS: rate, heldPerS: rate, isLong: isLong, hasPassed: false)
  }

  private func expect(
    _ range: SustainedRange?, _ lower: Double, _ upper: Double?, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let range = try #require(range)
    #expect(abs(range.lowerPerS - lower) < 1e-6, sourceLocation: sourceLocation)
    if let upper {
      #expect(abs((range.upperPerS ?? .infinity) - upper) < 1e-6, sourceLocation: sourceLocation)
    } else {
      #expect(range.upperPerS == nil, sourceLocation: sourceLocation)
    }
  }

  @Test("Trials that agree: what the best of them proved, up to the least that failed, and half a step on either side")
  func clear() throws {
    let evidence = [
      passed(900), failed(1_030), failed(1_030), passed(1_000), passed(1_000, held: 990, isLong: true),
      failed(1_030, isLong: true), failed(1_030, isLong: true),
    ]
    try expect(
      SustainedRange(evidence, around: 1_000, step: 0.03, isBounded: true), 990 / 1.015, 1_030 * 1.015)
  }

  @Test("One trial that contradicts the others widens it to where they are as many")
  func contradicted() throws {
    // One that failed at the rate found: the two that passed there outweigh it by no more than a trial.
    let evidence = [
      passed(900), failed(1_000), passed(1_000), passed(1_000), failed(1_030, isLong: true),
      failed(1_030, isLong: true),
    ]
    try expect(SustainedRange(evidence, around: 1_000, step: 0.03, isBounded: true), 900 / 1.015, 1_030 * 1.015)
    let confirmed = evidence + [passed(1_000, isLong: true)]
    try expect(SustainedRange(confirmed, around: 1_000, step: 0.03, isBounded: true), 1_000 / 1.015, 1_030 * 1.015)
  }

  @Test("An end beyond which no trial was made is a step away, or open when the search found no rate that fails")
  func ends() throws {
    let evidence = [passed(1_000)]
    try expect(SustainedRange(evidence, around: 1_000, step: 0.1, isBounded: false), 1_000 / 1.1 / 1.05, nil)
    try expect(
      SustainedRange(evidence, around: 1_000, step: 0.1, isBounded: true), 1_000 / 1.1 / 1.05, 1_000 * 1.1 * 1.05)
    // One that failed once may be a disturbance.
    try expect(
      SustainedRange(
        evidence + [passed(1_000, isLong: true), failed(1_100)], around: 1_000, step: 0.1, isBounded: false),
      1_000 / 1.05, nil)
    #expect(SustainedRange([], around: 1_000, step: 0.1, isBounded: true) == nil)
  }

  @Test("The answer of the search is in the range, whatever its trials say")
  func aroundAnswer() throws {
    let range = try #require(SustainedRange([failed(5), failed(6)], around: 1_000, step: 0.1, isBounded: true))
    #expect(range.lowerPerS < 5 && (range.upperPerS ?? 0) > 1_000)
  }

  @Test("A trial proves what it was offered over the time until its last answer")
  func held() throws {
    var trial = CapacityTrial()
    #expect(trial.heldPerS == nil)
    trial.offeredPerS = 1_000
    #expect(trial.heldPerS == 1_000)
    (trial.settleS, trial.measuredS, trial.drainS) = (2, 7, 1)
    #expect(trial.heldPerS == 900)
  }

  /// The range by its definition: limits are tried one after the other.
  private func defined(
    _ evidence: [Evidence], around sustained: Double, step: Double, isBounded: Bool
  ) -> (lower: Double, upper: Double?) {
    func edge(_ one: Evidence) -> Double { one.hasPassed ? one.heldPerS : one.offeredPerS }
    func weight(_ one: Evidence) -> Int {
      let failures = evidence.count { !$0.hasPassed && $0.offeredPerS == one.offeredPerS }
      if !one.hasPassed, !isBounded, failures == 1 { return 1 }
      return one.isLong ? 2 : 1
    }
    let edges = Set(evidence.map(edge)).sorted()
    // A limit is as good as the edge below it.
    let limits = [0] + edges
    let against = limits.map { limit in
      evidence.map { one in (one.hasPassed ? limit < one.heldPerS : limit >= one.offeredPerS) ? weight(one) : 0 }
        .reduce(0, +)
    }
    let good = limits.indices.filter { against[$0] <= against.min()! + 1 }
    let lower = good[0] > 0 ? edges[good[0] - 1] : edges[0] / (1 + step)
    let last = good[good.count - 1]
    let upper = last < edges.count ? edges[last] : isBounded ? edges[edges.count - 1] * (1 + step) : nil
    return (min(lower, sustained) / (1 + step / 2), upper.map { max($0, sustained) * (1 + step / 2) })
  }

  @Test("Whatever the trials are, the range is that of its definition", arguments: seeds(200, of: 2_000))
  func definition(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let evidence = (0..<random.number(1...8)).map { _ in
      let rate = Double(900 + 30 * random.number(0...5))
      return Evidence(
        offeredPerS: rate, heldPerS: rate - Double(random.number(0...2) * 10), isLong: random.happens(oneIn: 3),
        hasPassed: random.happens(oneIn: 2))
    }
    let isBounded = random.happens(oneIn: 2)
    let sustained = Double(random.number(880...1_100))
    let expected = defined(evidence, around: sustained, step: 0.03, isBounded: isBounded)
    try expect(
      SustainedRange(evidence, around: sustained, step: 0.03, isBounded: isBounded), expected.lower, expected.upper)
  }

  @Test("Nobody holds more than was offered")
  func heldMore() {
    #expect(Evidence(offeredPerS: 5, heldPerS: 9, isLong: false, hasPassed: true).heldPerS == 5)
  }
}
