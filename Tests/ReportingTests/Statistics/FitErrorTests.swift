import Foundation
import Measurement
import TestSupport
import Testing

@testable import Reporting

/// Fits of points whose law is known and whose noise is not: what is printed as 95 % has to hold it nearly so often.
@Suite("Intervals of fitted laws")
struct FitErrorTests {
  /// How noise is spread over points.
  enum Noise: Sendable, CaseIterable { case equal, proportional }

  private static let seeds = 1...(TestRun.isWhole ? 1_000 : 80) as ClosedRange<UInt64>
  /// Of fits that are made at once.
  private static let manySeeds = 1...400 as ClosedRange<UInt64>

  private static func normal(_ random: inout SeededGenerator) -> Double {
    let radius = (-2 * log(Double.random(in: Double.leastNonzeroMagnitude...1, using: &random))).squareRoot()
    return radius * cos(2 * .pi * Double.random(in: 0...1, using: &random))
  }

  /// At least nine of ten of each parameter, by their names.
  private func expect(
    _ holding: [String: Int], of seeds: ClosedRange<UInt64> = seeds, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for (name, count) in holding {
      #expect(
        count * 10 >= seeds.count * 9, "\(name): \(count) of \(seeds.count)", sourceLocation: sourceLocation)
    }
  }

  @Test(
    "Scalability: intervals of γ, α and β hold them in nine of ten fits, also where α or β is held at 0",
    arguments: Noise.allCases, [(0, 0), (0.02, 0), (0.05, 0.002), (0, 0.000_5)])
  func scalability(noise: Noise, law: (alpha: Double, beta: Double)) throws {
    for counts in [[1, 2, 4, 8], [1, 2, 4, 8, 16, 32]] as [[Double]] {
      let truth = counts.map { 1e4 * $0 / (1 + law.alpha * ($0 - 1) + law.beta * $0 * ($0 - 1)) }
      let mean = truth.reduce(0, +) / Double(truth.count)
      var holding = ["γ": 0, "α": 0, "β": 0]
      for seed in Self.seeds {
        var random = SeededGenerator(seed: seed)
        let fit = try ScalabilityFit(
          zip(counts, truth).map { count, throughput in
            let size = noise == .equal ? mean : throughput
            return ScalabilityFit.Point(count, throughput + 0.02 * size * Self.normal(&random))
          })
        for (name, value, halfWidth, expected) in [
          ("γ", fit.gamma, fit.gammaHalfWidth, 1e4), ("α", fit.alpha, fit.alphaHalfWidth, law.alpha),
          ("β", fit.beta, fit.betaHalfWidth, law.beta),
        ] where abs(value - expected) <= (try #require(halfWidth)) { holding[name, default: 0] += 1 }
      }
      expect(holding)
    }
  }

  @Test("Batches: intervals of F and V hold them in nine of ten fits", arguments: [0.03, 0.1])
  func batches(noise: Double) throws {
    for sizes in [[1, 4, 16, 64], [1, 2, 4, 8, 16, 32, 64, 128]] as [[Double]] {
      for (write, each) in [(3.2, 0.21), (10, 0), (0, 1)] {
        var holding = ["F": 0, "V": 0]
        for seed in Self.manySeeds {
          var random = SeededGenerator(seed: seed)
          let fit = try BatchCost(
            sizes.map {
              BatchCost.Point(batch: $0, cost: (write / $0 + each) * max(0.1, 1 + noise * Self.normal(&random)))
            })
          if abs(fit.perWrite - write) <= (try #require(fit.perWriteHalfWidth)) { holding["F", default: 0] += 1 }
          if abs(fit.perNotification - each) <= (try #require(fit.perNotificationHalfWidth)) {
            holding["V", default: 0] += 1
          }
        }
        expect(holding, of: Self.manySeeds)
      }
    }
  }

  @Test(
    "Seconds: intervals of F and V hold them in nine of ten fits, however much goes on whatever is sent",
    arguments: [0.0, 3_000, 10_000, 80_000], [false, true])
  func seconds(rest: Double, hasIdleSeconds: Bool) throws {
    var holding = ["F": 0, "V": 0]
    for seed in Self.seeds {
      var random = SeededGenerator(seed: seed)
      let series = (0...40).map { second in
        var sample = RunResult.Sample()
        sample.tS = Double(second)
        let writes = hasIdleSeconds && second % 2 == 0 ? 50 + second : random.number(2_000...4_000)
        sample.writes = writes
        sample.written = Int(Double(writes) * (1 + 39 * Double(second) / 40))
        let processor = Double(writes) * 12 + Double(sample.written) * 1.5 + rest
        sample.cpu = processor * 1e-6 * (1 + Double.random(in: -0.1...0.1, using: &random))
        return sample
      }
      let fit = try #require(SecondsCost(series, in: 0...40).fit)
      if abs(fit.batch.perWrite - 12) <= (try #require(fit.batch.perWriteHalfWidth)) { holding["F", default: 0] += 1 }
      if abs(fit.batch.perNotification - 1.5) <= (try #require(fit.batch.perNotificationHalfWidth)) {
        holding["V", default: 0] += 1
      }
    }
    expect(holding)
  }
}
