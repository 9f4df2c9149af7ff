import Foundation
import LoadTest
import Measurement
import TestSupport
import Testing

/// Searches for the limit of a gateway that is known, by trials that are not: the stated range has to hold it.
@Suite("Capacity search with noise")
struct NoisySearchTests {
  /// How trials differ from what they should say.
  struct Noise: Sendable, CustomTestStringConvertible {
    /// Standard deviation of the limit from one short trial to the next; of long ones it is less.
    var spread: Double
    /// Share of trials that fail whatever the rate; of long ones it is more.
    var falseFailures: Double
    /// Share in which the generator stood still.
    var voids: Double
    /// How much more than its limit a gateway takes for a trial's time, as its buffers and the lag that is allowed hide.
    var hidden: Double

    var testDescription: String {
      "limit ± \(spread), \(falseFailures) fail, \(voids) void, \(hidden) hidden"
    }
  }

  static let levels = [
    Noise(spread: 0, falseFailures: 0, voids: 0, hidden: 0), Noise(spread: 0, falseFailures: 0, voids: 0, hidden: 0.01),
    Noise(spread: 0.005, falseFailures: 0.05, voids: 0.05, hidden: 0.01),
    Noise(spread: 0.01, falseFailures: 0.1, voids: 0.1, hidden: 0.01),
    Noise(spread: 0.02, falseFailures: 0.1, voids: 0.1, hidden: 0.01),
    Noise(spread: 0.03, falseFailures: 0.1, voids: 0.1, hidden: 0.01),
    Noise(spread: 0, falseFailures: 0.2, voids: 0.3, hidden: 0.01),
  ]

  private static func search(_ noise: Noise, limit: Double, _ random: inout SeededGenerator) -> CapacitySearch {
    let burst = limit * Double.random(in: 0.8...1.3, using: &random)
    var search = CapacitySearch(near: burst, precision: 0.03, maximumTrials: 60)
    while let trial = search.next {
      let (spread, often, hidden) = trial.isLong ? (0.58, 1.5, 0.4) : (1, 1, 1)
      if Double.random(in: 0..<1, using: &random) < noise.voids {
        search.note(.void)
      } else if Double.random(in: 0..<1, using: &random) < often * noise.falseFailures {
        search.note(.failed)
      } else {
        let limit = limit * (1 + spread * noise.spread * normal(&random))
        let isPassed = trial.rate <= limit * (1 + hidden * noise.hidden)
        // What was hidden takes its time behind the trial, and is proven then.
        search.note(isPassed ? .passed : .failed, held: isPassed ? min(trial.rate, limit) : nil)
      }
    }
    return search
  }

  private static func normal(_ random: inout SeededGenerator) -> Double {
    let radius = (-2 * log(Double.random(in: Double.leastNonzeroMagnitude...1, using: &random))).squareRoot()
    return radius * cos(2 * .pi * Double.random(in: 0...1, using: &random))
  }

  @Test("Nine of ten ranges hold the limit, and most are no wider than they need to be", arguments: levels)
  func coverage(noise: Noise) throws {
    let count: UInt64 = TestRun.isWhole ? 2_000 : 200
    var (holding, found, widths) = (0, 0, [Double]())
    for seed in 1...count {
      var random = SeededGenerator(seed: seed)
      let search = Self.search(noise, limit: 20_000, &random)
      guard let range = search.range, let sustained = search.sustained else { continue }
      #expect(range.lowerPerS < sustained && (range.upperPerS ?? .infinity) > sustained)
      if case .found = search.ending { found += 1 }
      if range.lowerPerS <= 20_000, (range.upperPerS ?? .infinity) >= 20_000 { holding += 1 }
      widths.append((range.upperPerS ?? .infinity) / range.lowerPerS - 1)
    }
    #expect(holding * 10 >= Int(count) * 9, "\(holding) of \(count)")
    #expect(found * 10 >= Int(count) * 9, "\(found) of \(count) came to an end")
    // A step, and half a step on either side.
    let median = widths.sorted()[widths.count / 2]
    #expect(median <= 0.065, "\(median)")
  }

  @Test("A generator that stands still in every trial finds nothing, and blames nobody")
  func allVoid() {
    var search = CapacitySearch(near: 20_000)
    while search.next != nil { search.note(.void) }
    #expect(search.ending == .unsettled(nil) && search.range == nil)
  }
}
