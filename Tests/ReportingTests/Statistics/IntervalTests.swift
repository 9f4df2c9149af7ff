import Foundation
import Measurement
import TestSupport
import Testing

@testable import Reporting

/// Intervals are right when they hold the truth as often as they say, and not by their formulas.
@Suite("Intervals")
struct IntervalTests {
  /// Lengths in seconds, and how many series of each.
  private static let lengths: [(seconds: Int, series: Int)] =
    TestRun.isWhole
    ? [(16, 1_500), (20, 1_500), (30, 1_000), (60, 600), (120, 400), (300, 150), (600, 100)]
    : [(16, 400), (30, 150), (120, 40)]

  @Test("The interval of a rate holds its mean in 90 of 100 series at least", arguments: SimulatedSeries.all)
  func rates(series: SimulatedSeries) throws {
    for (seconds, count) in Self.lengths {
      var random = SeededGenerator(seed: UInt64(seconds))
      var (given, held) = (0, 0)
      for _ in 0..<count {
        guard let means = try? BatchMeans(series.rates(seconds: seconds, &random), secondsEach: 0.1) else { continue }
        given += 1
        if abs(means.mean - series.mean) <= means.halfWidth { held += 1 }
      }
      #expect(held * 10 >= given * 9, "\(held) of \(given) in \(seconds) s")
      #expect(given * 2 >= count, "\(given) of \(count) in \(seconds) s")
    }
  }

  @Test("The interval is of some use: of independent values not four times as wide as one that knows that they are")
  func width() throws {
    var random = SeededGenerator(seed: 3)
    for (seconds, most) in [(16, 4.0), (60, 2.5), (600, 2)] {
      let widths = try (0..<(seconds > 100 ? 10 : 60)).map { _ in
        try BatchMeans(SimulatedSeries.correlated(0).rates(seconds: seconds, &random), secondsEach: 0.1).halfWidth
      }
      let least = 1.96 * 100 / (Double(seconds) * 10).squareRoot()
      let middle = try #require(median(widths))
      #expect((1...most).contains(middle / least), "\(middle / least) in \(seconds) s")
    }
  }

  @Test("Batch means: worked by hand")
  func byHand() throws {
    let values: [Double] = [1, 1, 3, 3, 1, 1, 3, 3, 1, 1, 3, 3, 1, 1, 3, 3, 1, 1, 13, 13]
    let means = try BatchMeans(values, secondsEach: 1)
    #expect(means.mean == 3.0)
    // Ten batches are 1 and 3 in turn and 13 at last: squares 5·4 + 100, √(s²/10) = 1.1547, t(9) = 2.262157. Five are 2
    // and at last 7: squares 4·1 + 16, √(s²/5) = 1, t(4) = 2.776445, which is more. Twice, as it is 20 s.
    #expect(abs(means.halfWidth - 2 * 2.776445) < 1e-5)
  }

  @Test("What is too short, drifts or is no number has no interval, and what never varies one of nothing")
  func none() throws {
    #expect(throws: BatchMeans.Problem.tooShort) {
      try BatchMeans([Double](repeating: 1, count: 159), secondsEach: 0.1)
    }
    #expect(try BatchMeans([Double](repeating: 4, count: 160), secondsEach: 0.1).halfWidth == 0)
    #expect(throws: BatchMeans.Problem.tooShort) { try BatchMeans([Double](repeating: 1, count: 19), secondsEach: 1) }
    #expect(throws: BatchMeans.Problem.tooShort) { try BatchMeans([], secondsEach: 1) }
    #expect(throws: BatchMeans.Problem.drifts) { try BatchMeans((0..<200).map(Double.init), secondsEach: 0.1) }
    for bad in [.nan, .infinity, 1e308] as [Double] {
      #expect(throws: BatchMeans.Problem.notANumber) {
        try BatchMeans([bad] + [Double](repeating: 3, count: 198) + [-bad], secondsEach: 1)
      }
    }
    #expect(throws: BatchMeans.Problem.notANumber) { try BatchMeans([1, 2], secondsEach: .nan) }
  }

  @Test(
    "The interval of a median of seconds holds it in 90 of 100 series at least", arguments: [0, 0.3, 0.6, 0.8],
    [0.0, 0.1])
  func medians(factor: Double, wild: Double) {
    // A share of the values is a hundred times as large, and so above the median.
    let rest = 0.5 / (1 - wild)
    // The normal distribution's 50 % and 55.6 %.
    let truth = exp(0.3 * (rest > 0.5 ? 0.139_71 : 0))
    for (seconds, count) in TestRun.isWhole ? [(28, 1_500), (60, 600), (600, 100)] : [(28, 500), (120, 60)] {
      var random = SeededGenerator(seed: 5)
      var (given, held) = (0, 0)
      for _ in 0..<count {
        let values = normals(factor, seconds, &random).map { value -> Double in
          let times: Double = wild > 0 && random.happens(oneIn: 10) ? 100 : 1
          return exp(0.3 * value) * times
        }
        guard let interval = MedianInterval(values) else { continue }
        given += 1
        if interval.bounds.contains(truth) { held += 1 }
      }
      #expect(held * 10 >= given * 9, "\(held) of \(given) in \(seconds) s")
      #expect(given * 10 >= count * 4, "\(given) of \(count) in \(seconds) s")
    }
  }

  @Test("The median of seconds: worked by hand, and none of less than half a minute")
  func medianByHand() throws {
    // Of 40 values in turn below and above, the share below is 0.5 in all batches of four and of eight.
    let turns = (0..<40).map { index -> Double in Double(index % 2 == 0 ? index : 100 + index) }
    let even = try #require(MedianInterval(turns))
    #expect(even.median == 69.5 && even.bounds == 38...101)
    #expect(MedianInterval([Double](repeating: 7, count: 30))?.bounds == 7...7)
    #expect(MedianInterval(Array(turns.prefix(27))) == nil)
    #expect(MedianInterval([Double](repeating: .nan, count: 40)) == nil)
    // What goes one way tells nothing of its middle.
    #expect(MedianInterval((0..<60).map(Double.init)) == nil)
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
    for (events, tries) in [(1, 0), (-1, 5), (6, 5), (.nan, 5), (1, .nan)] as [(Double, Double)] {
      #expect(EventShare.interval(events: events, of: tries) == nil)
    }
  }

  @Test(
    "The interval of a share holds it in 90 of 100 series at least, also when events come in bursts",
    arguments: [1, 5, 50])
  func bursts(size: Int) {
    for (seconds, bursts) in [(20, 10.0), (30, 60), (120, 20)] {
      var random = SeededGenerator(seed: 9)
      var (given, held) = (0, 0)
      for _ in 0..<(TestRun.isWhole ? 1_000 : 150) {
        let series = (0..<seconds).map { _ -> EventShare.Second in
          var events = 0
          // As good as Poisson.
          for _ in 0..<50 where Double.random(in: 0..<1, using: &random) < bursts / Double(seconds) / 50 {
            events += 1
            while size > 1, !random.happens(oneIn: size) { events += 1 }
          }
          return (Double(events), 5_000)
        }
        let events = Int(series.reduce(0) { $0 + $1.events })
        let interval = EventShare.interval(events: events, of: seconds * 5_000, seconds: series)
        guard let interval else { continue }
        given += 1
        if interval.contains(bursts * Double(size) / Double(seconds) / 5_000) { held += 1 }
      }
      #expect(held * 10 >= given * 9 && given > 100, "\(held) of \(given) in \(seconds) s")
    }
  }

  @Test("A share has no interval when its seconds are few, or tell of other events")
  func shareWithoutSeconds() {
    func interval(_ events: Int, _ seconds: [EventShare.Second]) -> ClosedRange<Double>? {
      EventShare.interval(events: events, of: 1_000, seconds: seconds)
    }
    let even = [EventShare.Second](repeating: (2, 50), count: 20)
    #expect(interval(40, even) != nil && interval(40, Array(even.dropLast())) == nil)
    #expect(interval(60, even) == nil && interval(0, even)?.lowerBound == 0)
    #expect(interval(40, [EventShare.Second](repeating: (2, 0), count: 20)) == nil)
    #expect(interval(40, [EventShare.Second](repeating: (.nan, 50), count: 20)) == nil)
    #expect(interval(-1, even) == nil && interval(1_001, even) == nil)
    #expect(EventShare.interval(events: .max, of: .max, seconds: even) == nil)
  }

  @Test("Of the bins those of the phase count that are whole, as rates")
  func bins() throws {
    var bins = RunResult.Bins()
    (bins.fromS, bins.written) = (0.25, (0..<100).map { $0 })
    let phase = try #require(WholeBins(bins, in: 1.0...2.0))
    // From 1.05 to 1.95.
    #expect(phase.length == 0.1)
    #expect(phase.rates.map { Int($0.rounded()) } == [80, 90, 100, 110, 120, 130, 140, 150, 160])
    // The last may be cut short.
    #expect(WholeBins(bins, in: 0...Double.infinity)?.rates.count == 99)
    #expect(WholeBins(bins, in: 50...60)?.rates.isEmpty == true)
    for length in [0, -1, .nan, .infinity] as [Double] {
      bins.lengthS = length
      #expect(WholeBins(bins, in: 0...10) == nil)
    }
    (bins.lengthS, bins.fromS, bins.written) = (0.1, 0, [.max, .min, 5])
    #expect(WholeBins(bins, in: 0...10)?.rates.count == 3)
    bins.fromS = .nan
    #expect(WholeBins(bins, in: 0...10) == nil)
  }

  @Test("Medians and ratios of nothing are nothing")
  func degenerate() {
    #expect(median([3, 1, 2]) == 2)
    #expect(median([4, 1, 2, 3]) == 2.5)
    #expect(median([]) == nil)
    #expect(median([1, .nan]) == nil)
    #expect(ratio(3, to: 2) == 1.5)
    #expect(ratio(3, to: 0) == nil)
  }
}
