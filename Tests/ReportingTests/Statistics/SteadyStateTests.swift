import Reporting
import TestSupport
import Testing

@Suite("Steady state")
struct SteadyStateTests {
  /// Twelve even ones are nearly a normal one, within six standard deviations.
  private static func nearlyNormal(_ random: inout SeededGenerator) -> Double {
    (0..<12).reduce(-6) { sum, _ in sum + Double.random(in: 0...1, using: &random) }
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
    // The same of times of 100 ms.
    #expect(WarmUp(rates: (0..<200).map { Double($0 * $0) }, secondsEach: 0.1) == .neverSettles)
    #expect(WarmUp(rates: (0..<300).map { 1_000 + Double($0) }, secondsEach: 0.1) == .neverSettles)
    #expect(WarmUp(rates: [Double](repeating: 3, count: 99), secondsEach: 0.1) == .tooShort)
    #expect(WarmUp(rates: [Double](repeating: 3, count: 100), secondsEach: 0.1) == .settled(at: 0))
    #expect(WarmUp(rates: [Double](repeating: .infinity, count: 100), secondsEach: 0.1) == .tooShort)
    #expect(WarmUp(rates: [], secondsEach: .nan) == .tooShort)
  }

  @Test(
    "A series that is steady from the first on has no warm-up in 9 of 10 cases at least",
    arguments: [
      SimulatedSeries.correlated(0), .correlated(0.8), .bySecond(0.6, noise: 1),
      .stalls(gap: 3, 0.2...0.6, correlated: 0),
      .stalls(gap: 5, 0.1...1, correlated: 0), .stallsCaughtUp(gap: 3, 0.2...0.6), .even,
    ])
  func steady(series: SimulatedSeries) {
    for seconds in [10, 30, 60] {
      var random = SeededGenerator(seed: 2)
      let count = TestRun.isWhole ? 400 : 2_400 / seconds
      let steady = (0..<count).count { _ in
        WarmUp(rates: series.rates(seconds: seconds, &random), secondsEach: 0.1) == .settled(at: 0)
      }
      #expect(steady * 10 >= count * 9, "\(steady) of \(count) in \(seconds) s")
    }
  }

  @Test("A run that begins at half its rate is said to settle near where it does, in most cases", arguments: [2.0, 5])
  func warmsUp(length: Double) {
    for (seconds, share) in [(10, 0.5), (30, 0.75)] {
      var random = SeededGenerator(seed: 4)
      let found = (0..<60).count { _ in
        let rates = normals(0.3, seconds * 10, &random).enumerated().map { index, noise -> Double in
          let missing = 0.5 * max(0, 1 - Double(index) / 10 / length)
          return 1_000 * (1 - missing) * (1 + 0.05 * noise)
        }
        guard case .settled(let at) = WarmUp(rates: rates, secondsEach: 0.1) else { return false }
        return Double(at) / 10 >= length / 2 && Double(at) / 10 <= length + 2
      }
      #expect(Double(found) >= 60 * share, "\(found) of 60 in \(seconds) s")
    }
  }
}
