import Measurement
import TestSupport
import Testing

@testable import Reporting

@Suite("Cost of a notification by seconds")
struct SecondsCostTests {
  /// Seconds of a generator with 12 µs a write and 1.5 µs a notification, and some noise.
  private static func series(
    _ random: inout SeededGenerator, sizes: ClosedRange<Double>, seconds: Int = 40, noise: Double = 0.03
  ) -> [RunResult.Sample] {
    (0..<seconds).map { second in
      var sample = RunResult.Sample()
      sample.tS = Double(second) * 1.004
      let share = Double(second) / Double(max(1, seconds - 1))
      let batch = sizes.lowerBound + (sizes.upperBound - sizes.lowerBound) * share
      let writes = random.number(2_000...4_000)
      sample.writes = writes
      sample.written = Int(Double(writes) * batch)
      let processor = Double(writes) * 12e-6 + Double(sample.written) * 1.5e-6
      sample.cpu = processor / 1.004 * (1 + Double.random(in: -noise...noise, using: &random))
      return sample
    }
  }

  private static func isNear(_ value: Double, _ expected: Double, _ share: Double) -> Bool {
    abs(value - expected) <= share * expected
  }

  @Test("Made seconds give F and V", arguments: 1...30 as ClosedRange<UInt64>)
  func recovered(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let costs = SecondsCost(Self.series(&random, sizes: 1...40), in: 0...100)
    #expect(costs.seconds.count == 40 && costs.omitted == 0)
    let fit = try #require(costs.fit)
    #expect(Self.isNear(fit.batch.perWrite, 12, 0.25) && Self.isNear(fit.batch.perNotification, 1.5, 0.05), "\(fit)")
    let exact = try #require(SecondsCost(Self.series(&random, sizes: 1...40, noise: 0), in: 0...100).fit)
    // Sizes are rounded to whole notifications, and the last second's length is not told.
    #expect(
      Self.isNear(exact.batch.perWrite, 12, 0.03) && Self.isNear(exact.batch.perNotification, 1.5, 0.01), "\(exact)")
  }

  @Test("Seconds with hardly any notifications change nothing, and are counted")
  func idle() throws {
    var random = SeededGenerator(seed: 5)
    var series = Self.series(&random, sizes: 1...40)
    let before = try #require(SecondsCost(series, in: 0...200).fit)
    for _ in 0..<60 {
      var sample = RunResult.Sample()
      sample.tS = Double(series.count) * 1.004
      (sample.written, sample.writes, sample.cpu) = (random.number(1...99), 1, 0.02)
      series.append(sample)
    }
    let costs = SecondsCost(series, in: 0...200)
    #expect(costs.omitted == 60 && costs.seconds.count == 40)
    let fit = try #require(costs.fit)
    #expect(Self.isNear(fit.batch.perWrite, before.batch.perWrite, 0.03))
  }

  @Test(
    "What goes on in each second whatever is sent is told from writes and notifications",
    arguments: 1...20 as ClosedRange<UInt64>)
  func rest(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var series = Self.series(&random, sizes: 1...40)
    for index in series.indices {
      var writes = try #require(series[index].writes)
      // Half of the seconds are almost idle.
      if index % 2 == 0 {
        let batch = Double(series[index].written) / Double(writes)
        writes = 50 + index
        series[index].writes = writes
        series[index].written = Int(Double(writes) * batch)
      }
      let processor = Double(writes) * 12e-6 + Double(series[index].written) * 1.5e-6 + 0.08
      series[index].cpu = processor / 1.004 * Double.random(in: 0.97...1.03, using: &random)
    }
    let fit = try #require(SecondsCost(series, in: 0...100).fit)
    #expect(Self.isNear(fit.perSecond, 80_000, 0.1), "\(fit)")
    #expect(Self.isNear(fit.batch.perWrite, 12, 0.25) && Self.isNear(fit.batch.perNotification, 1.5, 0.1), "\(fit)")
    #expect(fit.batch.rSquared > 0.8 && fit.isConclusive == (fit.batch.rSquared >= 0.9))
  }

  @Test("Sizes that are alike have a mean and no fit; two seconds of another size do not make them differ")
  func alike() throws {
    var random = SeededGenerator(seed: 5)
    let series = Self.series(&random, sizes: 20...25)
    let costs = SecondsCost(series, in: 0...100)
    #expect(costs.fit == nil)
    let mean = try #require(costs.mean)
    #expect((20...25).contains(mean.batch) && Self.isNear(mean.cost, 12 / mean.batch + 1.5, 0.03))
    var few = series
    for index in 0..<2 { few[index].writes = few[index].written }
    #expect(SecondsCost(few, in: 0...100).fit == nil)
    for index in 2..<3 { few[index].writes = few[index].written }
    #expect(SecondsCost(few, in: 0...100).fit != nil)
  }

  @Test("Only whole seconds of the range count, and none whose length nobody knows")
  func range() {
    var random = SeededGenerator(seed: 5)
    var series = Self.series(&random, sizes: 1...40, seconds: 10)
    #expect(SecondsCost(series, in: 2...6).seconds.map(\.begin) == [2, 3, 4, 5].map { $0 * 1.004 })
    series.remove(at: 4)
    #expect(SecondsCost(series, in: 0...100).seconds.map(\.begin) == [0, 1, 2, 5, 6, 7, 8, 9].map { $0 * 1.004 })
  }

  @Test(
    "Rates and costs are of the same seconds: a sample of unknown length has neither, one that is late or short too")
  func wholeSeconds() {
    func series(_ times: [Double]) -> [RunResult.Sample] {
      times.map { time in
        var sample = RunResult.Sample()
        (sample.tS, sample.written, sample.writes, sample.cpu) = (time, 1_000, 100, 0.5)
        return sample
      }
    }
    // Three seconds at 4, then a short one; a hole behind 9; the last is a second.
    let late = series([0, 1, 2.25, 3, 4, 7, 7.25, 8, 9, 20, 21])
    let range = 1.0...21.5
    let whole = WholeSeconds(late, in: range)
    #expect(whole.samples.map(\.sample.tS) == [1, 2.25, 3, 7.25, 8, 20])
    #expect(whole.samples.map(\.length) == [1.25, 0.75, 1, 0.75, 1, 1])
    #expect(whole.writtenPerSecond.map { $0.rounded() } == [800, 1_333, 1_000, 1_333, 1_000, 1_000])
    #expect(SecondsCost(late, in: range).seconds.map(\.begin) == whole.samples.map(\.sample.tS))
  }

  @Test("Documents without writes, and numbers that none can have, make no point")
  func nothing() {
    var random = SeededGenerator(seed: 5)
    var old = Self.series(&random, sizes: 1...40)
    for index in old.indices { old[index].writes = index % 2 == 0 ? nil : 0 }
    #expect(SecondsCost(old, in: 0...100).mean == nil && SecondsCost([], in: 0...1).fit == nil)
    var absurd = Self.series(&random, sizes: 1...40, seconds: 6)
    absurd[0].writes = .max
    (absurd[1].writes, absurd[1].written) = (-5, .min)
    absurd[2].cpu = .nan
    absurd[3].cpu = .infinity
    absurd[4].tS = .nan
    #expect(SecondsCost(absurd, in: 0...100).seconds.map(\.begin) == [absurd[5].tS])
    absurd[5].written = .max
    #expect(SecondsCost(absurd, in: 0...100).mean.map { $0.cost.isFinite } == true)
  }
}
