import Measurement
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
}
