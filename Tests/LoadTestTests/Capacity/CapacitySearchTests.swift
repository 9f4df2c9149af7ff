import LoadTest
import TestSupport
import Testing

@Suite("Capacity search")
struct CapacitySearchTests {
  typealias Trial = CapacitySearch.Trial

  /// Trials at a gateway that passes up to `limit`.
  private func run(_ search: inout CapacitySearch, limit: Double) -> [Trial] {
    var trials: [Trial] = []
    while let trial = search.next {
      trials.append(trial)
      search.note(trial.rate <= limit ? .passed : .failed)
    }
    return trials
  }

  @Test("The conversation with a gateway that does a little less than its burst")
  func conversation() {
    var search = CapacitySearch(near: 1_030, precision: 0.03)
    #expect(search.next == Trial(rate: 1_000, kind: .step))
    search.note(.failed)
    // Once more, before it bounds anything.
    #expect(search.next == Trial(rate: 1_000, kind: .step))
    search.note(.failed)
    #expect(search.next == Trial(rate: 1_000 / 1.06, kind: .step))
    search.note(.passed)
    // Between them, in logarithms.
    let middle = (1_000 * 1_000 / 1.06).squareRoot()
    #expect(search.next == Trial(rate: middle, kind: .step))
    search.note(.void)
    #expect(search.next == Trial(rate: middle, kind: .step))
    search.note(.failed)
    #expect(search.next == Trial(rate: middle, kind: .step))
    // The failure was not the gateway's.
    search.note(.passed)
    // A step apart: now for long.
    #expect(search.next == Trial(rate: middle, kind: .confirmation))
    search.note(.passed, held: 0.99 * middle)
    #expect(search.next == Trial(rate: middle * 1.03, kind: .above))
    search.note(.failed)
    #expect(search.next == Trial(rate: middle * 1.03, kind: .above) && search.ending == nil)
    search.note(.failed)
    #expect(search.next == nil)
    #expect(search.ending == .found(middle) && search.sustained == middle)
    #expect(search.trials == 9)
  }

  @Test("What failed once and then is void for good counts as what cannot be tried")
  func failedThenVoid() {
    var search = CapacitySearch(near: 1_030, precision: 0.03, retries: 1)
    for outcome in [CapacitySearch.Outcome.passed, .failed, .void, .void] { search.note(outcome) }
    let lower = (1_000 * 1_060.0).squareRoot()
    #expect(search.next == Trial(rate: lower, kind: .step))
  }

  @Test(
    "A clear gateway is found within a step, from any burst, in few trials", arguments: 1...300 as ClosedRange<UInt64>)
  func clear(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let limit = random.pick([3, 1e3, 5e6]) * Double.random(in: 1...2, using: &random)
    let burst = limit * random.pick([0.3, 0.9, 1, 1.02, 1.1, 2, 30])
    let precision = random.pick([0.01, 0.02, 0.03, 0.05])
    var search = CapacitySearch(near: burst, precision: precision)
    let trials = run(&search, limit: limit)
    guard case .found(let rate) = search.ending else { return #expect(Bool(false), "\(search.ending as Any)") }
    #expect(rate <= limit)
    #expect(rate * (1 + precision) * 1.000_001 > limit)
    #expect(trials.count <= 36)
    #expect(trials.suffix(3).map(\.kind) == [.confirmation, .above, .above])
    // What passes is tried once, and what fails twice; then the confirmation.
    let tries = Dictionary(grouping: trials.filter { !$0.isLong }, by: \.rate)
    #expect(tries.allSatisfy { $0.value.count == ($0.key <= limit ? 1 : 2) })
    let range = try #require(search.range)
    #expect(range.lowerPerS <= limit && (range.upperPerS ?? 0) > limit)
    #expect((range.upperPerS ?? 0) / range.lowerPerS <= (1 + precision) * (1 + precision) * 1.000_001)
  }

  @Test("Noise, wrong verdicts and void trials do not lead it astray", arguments: 1...400 as ClosedRange<UInt64>)
  func noisy(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (limit, precision) = (1_000.0, random.pick([0.02, 0.03, 0.05]))
    var search = CapacitySearch(
      near: limit * Double.random(in: 0.8...1.3, using: &random), precision: precision, maximumTrials: 80)
    while let trial = search.next {
      if random.happens(oneIn: 10) {
        search.note(.void)
      } else if !trial.isLong, random.happens(oneIn: 20) {
        // Something else on the machine, or a gateway that was idle before.
        search.note(random.happens(oneIn: 2) ? .failed : .passed)
      } else {
        let noise = (trial.isLong ? 0.25 : 0.5) * precision
        search.note(trial.rate <= limit * Double.random(in: 1 - noise...1 + noise, using: &random) ? .passed : .failed)
      }
    }
    switch search.ending {
    // A step, and the noise on both sides of it.
    case .found(let rate), .generatorLimited(let rate):
      #expect(abs(rate / limit - 1) <= 1.3 * precision + 0.002, "\(rate) after \(search.trials)")
    default: #expect(Bool(false), "\(search.ending as Any)")
    }
    #expect(search.trials <= 60)
  }

  @Test("A generator that is too slow is told from a gateway that is", arguments: 1...100 as ClosedRange<UInt64>)
  func generator(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let most = Double.random(in: 100...1e6, using: &random)
    var search = CapacitySearch(near: most * Double.random(in: 0.7...1.4, using: &random), precision: 0.03)
    while let trial = search.next { search.note(trial.rate <= most ? .passed : .void) }
    guard case .generatorLimited(let rate) = search.ending else {
      return #expect(Bool(false), "\(search.ending as Any)")
    }
    #expect(rate <= most && rate * 1.03 * 1.000_001 > most)
  }

  @Test("It ends, whatever it is told", arguments: 1...200 as ClosedRange<UInt64>)
  func ends(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var search = CapacitySearch(near: 50, maximumTrials: 40)
    var asked = 0
    while let trial = search.next {
      asked += 1
      #expect(trial.rate > 0 && trial.rate.isFinite)
      search.note(random.pick([.passed, .failed, .void]))
    }
    #expect(asked <= 40 && asked == search.trials)
    #expect(search.ending != nil)
    let ending = search.ending
    search.note(.passed)
    #expect(search.ending == ending && search.trials == asked)
  }

  @Test("A gateway that fails at any rate, and one that is never too slow")
  func extremes() {
    var search = CapacitySearch(near: 1_000)
    _ = run(&search, limit: 0)
    #expect(search.ending == .nothingPassed)
    search = CapacitySearch(near: 1_000, maximumTrials: 12)
    _ = run(&search, limit: .infinity)
    guard case .unsettled(let rate?) = search.ending else { return #expect(Bool(false)) }
    #expect(rate > 10_000)
  }

  @Test("What passed so far is a rate that no two failures at it, or below, have contradicted")
  func passedSoFar() {
    var search = CapacitySearch(near: 1_030, precision: 0.03)
    #expect(search.passed == nil)
    for _ in 0..<2 { search.note(.failed) }
    search.note(.passed)
    let low = 1_000 / 1.06
    #expect(search.passed == low)
    search.note(.passed)
    let middle = (1_000 * low).squareRoot()
    #expect(search.next == Trial(rate: middle, kind: .confirmation) && search.passed == middle)
    // Once is made again, but not believed meanwhile; twice is a failure of it and of all above.
    search.note(.failed)
    #expect(search.next == Trial(rate: middle, kind: .confirmation) && search.passed == low)
    search.note(.failed)
    #expect(search.passed == low)
    // A step that passes and a confirmation that fails, below what passed before: that did not pass either.
    while let trial = search.next, trial.kind == .step { search.note(trial.rate <= 950 ? .passed : .failed) }
    while let trial = search.next, trial.rate > 0.9 * low { search.note(trial.isLong ? .failed : .passed) }
    #expect(search.passed.map { $0 < 0.97 * low } ?? true)
    // What trials ran out with is the same.
    var short = CapacitySearch(near: 1_030, precision: 0.03, maximumTrials: 6)
    for outcome in [CapacitySearch.Outcome.failed, .failed, .passed, .passed, .failed, .failed] { short.note(outcome) }
    #expect(short.ending == .unsettled(low) && short.sustained == low)
  }

  @Test("The estimate is what an ordinary search takes")
  func estimate() {
    let (short, long) = CapacitySearch.estimate(precision: 0.03)
    #expect((3...9).contains(short) && long == 3)
  }
}
