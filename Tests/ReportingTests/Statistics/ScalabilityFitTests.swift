import Reporting
import TestSupport
import Testing

@Suite("Universal scalability law")
struct ScalabilityFitTests {
  typealias Point = ScalabilityFit.Point

  private static func law(_ gamma: Double, _ alpha: Double, _ beta: Double, _ count: Double) -> Double {
    gamma * count / (1 + alpha * (count - 1) + beta * count * (count - 1))
  }

  /// Gunther, "Guerrilla Capacity Planning", table 5.1 (ray tracer) and the SPEC SDM91 results of a SPARCcenter 2000; the
  /// answers are those that the R package usl 2 and later gives for these data (default method).
  @Test("Published data give the published parameters")
  func published() throws {
    let tracer = try ScalabilityFit(
      [
        (1, 20), (4, 78), (8, 130), (12, 170), (16, 190), (20, 200), (24, 210), (28, 230), (32, 260), (48, 280),
        (64, 310),
      ]
      .map { Point($0.0, $0.1) })
    #expect(abs(tracer.gamma - 21.848843) < 1e-4)
    #expect(abs(tracer.alpha - 0.057771) < 1e-6)
    #expect(tracer.beta == 0)
    #expect(tracer.peak == nil)
    #expect(tracer.rSquared > 0.97)

    let spec = try ScalabilityFit(
      [(1, 64.9), (18, 995.9), (36, 1652.4), (72, 1853.2), (108, 1828.9), (144, 1775.0), (216, 1702.2)]
        .map { Point($0.0, $0.1) })
    #expect(abs(spec.gamma - 89.9952) < 0.01)
    #expect(abs(spec.alpha - 0.0277285) < 1e-5)
    #expect(abs(spec.beta - 0.0001044) < 1e-7)
    #expect(!spec.hasFewPoints)
    // Errors of all three parameters, by the Jacobian at the solution (SciPy 1.17); α is held at 0 in the last.
    let close = try ScalabilityFit(
      [(1, 76_323.877), (2, 152_322.78), (4, 306_305.58), (8, 610_147.44)].map { Point($0.0, $0.1) })
    #expect(close.alpha == 0)
    for (error, expected) in [
      (tracer.betaError, 1.179_2e-4), (spec.gammaError, 14.213), (spec.alphaError, 0.009_121_7),
      (spec.betaError, 1.987_5e-5), (close.gammaError, 567.95), (close.alphaError, 0.004_593_5),
      (close.betaError, 4.571_7e-4),
    ] {
      let error = try #require(error)
      #expect(abs(error / expected - 1) < 0.002, "\(error), not \(expected)")
    }
    // With one degree of freedom t is 12.7; and β of 0.000055 is no reason to promise a peak at 135.
    let half = try #require(close.gammaHalfWidth)
    #expect(abs(half - 12.706 * 567.95) < 20)
    #expect(close.beta > 0 && close.peak == nil)
    // Its first point is far off the law: in proportion to throughput that is as much as β is.
    #expect(try #require(spec.betaHalfWidth) > spec.beta && spec.peak == nil)
  }

  @Test("A peak is told when β is clear of 0, and not beyond twice what was measured")
  func peaks() throws {
    // Fastest at √(0.95/0.002) = 21.8.
    func fit(_ counts: [Double], noise: Double = 0) throws -> ScalabilityFit {
      try ScalabilityFit(
        counts.enumerated().map { Point($1, Self.law(10, 0.05, 0.002, $1) * (1 + ($0 % 2 == 0 ? noise : -noise))) })
    }
    let counts = [1.0, 2, 4, 8, 16, 32]
    let peak = try #require(try fit(counts).peak)
    #expect(abs(peak - (0.95 / 0.002).squareRoot()) < 1e-3)
    #expect(try fit([1, 2, 4, 8, 11]).peak != nil)
    let short = try fit([1, 2, 4, 8, 10])
    #expect(abs(short.beta - 0.002) < 1e-6 && short.peak == nil)
    let noisy = try fit(counts, noise: 0.1)
    let halfWidth = try #require(noisy.betaHalfWidth)
    #expect(noisy.peak == nil && noisy.beta <= halfWidth)
  }

  @Test("Points of a law give that law", arguments: 1...300 as ClosedRange<UInt64>)
  func exact(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let gamma = random.pick([0.5, 12, 3e5, 9e9])
    let alpha = random.happens(oneIn: 4) ? 0 : Double.random(in: 0...0.5, using: &random)
    let beta = random.happens(oneIn: 3) ? 0 : random.pick([1e-6, 1e-4, 1e-2])
    let counts = [1.0, 2, 3, 4, 8, 16, 32, 64].prefix(random.number(4...8))
    let fit = try ScalabilityFit(counts.map { Point($0, Self.law(gamma, alpha, beta, $0)) })
    #expect(abs(fit.gamma - gamma) <= 1e-6 * gamma)
    #expect(abs(fit.alpha - alpha) <= 1e-6)
    #expect(abs(fit.beta - beta) <= 1e-7)
    #expect(fit.rSquared > 0.999_999)
  }

  @Test("No step away from a fit makes it better", arguments: 1...100 as ClosedRange<UInt64>)
  func isLeast(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (gamma, alpha, beta) = (100.0, Double.random(in: 0...0.2, using: &random), random.pick([0, 1e-4, 3e-3]))
    let points = [1.0, 2, 4, 8, 12, 16, 24, 32].map {
      Point($0, Self.law(gamma, alpha, beta, $0) * Double.random(in: 0.9...1.1, using: &random))
    }
    let fit = try ScalabilityFit(points)
    func error(_ gamma: Double, _ alpha: Double, _ beta: Double) -> Double {
      points.reduce(0) {
        let difference = $1.throughput - Self.law(gamma, alpha, beta, $1.count)
        return $0 + difference * difference
      }
    }
    let least = error(fit.gamma, fit.alpha, fit.beta)
    #expect(fit.alpha >= 0 && fit.beta >= 0)
    for (a, b, c) in [(1e-3, 0, 0), (-1e-3, 0, 0), (0, 1e-4, 0), (0, -1e-4, 0), (0, 0, 1e-6), (0, 0, -1e-6)] {
      let (alpha, beta) = (fit.alpha + b, fit.beta + c)
      guard alpha >= 0, beta >= 0 else { continue }
      #expect(error(fit.gamma * (1 + a), alpha, beta) >= least * (1 - 1e-9))
    }
  }

  @Test("It tells nothing beyond twice what was measured, and warns of few points")
  func limits() throws {
    let fit = try ScalabilityFit([1, 2, 4, 8].map { Point($0, Self.law(10, 0.05, 0.001, $0)) })
    #expect(fit.hasFewPoints)
    let predicted = try #require(fit.throughput(at: 16))
    #expect(abs(predicted - Self.law(10, 0.05, 0.001, 16)) < 1e-6)
    #expect(fit.throughput(at: 16.1) == nil)
    #expect(fit.throughput(at: 0.5) == nil)
    let three = try ScalabilityFit([1, 2, 4].map { Point($0, Self.law(10, 0.05, 0.001, $0)) })
    #expect(three.gammaError == nil && three.betaHalfWidth == nil && three.peak == nil)
  }

  @Test("What cannot be fitted is refused, and never a number that is none")
  func refused() throws {
    #expect(throws: ScalabilityFit.Problem.tooFewPoints) { try ScalabilityFit([]) }
    #expect(throws: ScalabilityFit.Problem.tooFewPoints) {
      try ScalabilityFit([Point(1, 2), Point(1, 3), Point(2, 4), Point(2, 5)])
    }
    for bad in [Point(0, 1), Point(2, 0), Point(2, .nan), Point(.nan, 1), Point(2, .infinity)] {
      #expect(throws: ScalabilityFit.Problem.badPoint) {
        try ScalabilityFit([Point(1, 1), Point(2, 2), Point(3, 3), bad])
      }
    }
    // Faster than in line, falling at once, all the same, one far out: each has a best law within the bounds.
    for rates in [[1, 3, 9, 27], [8, 4, 2, 1], [5, 5, 5, 5], [1, 1, 1e6, 1]] as [[Double]] {
      let fit = try ScalabilityFit(zip([1, 2, 4, 8], rates).map { Point($0, $1) })
      #expect((fit.gamma + fit.alpha + fit.beta + fit.rSquared).isFinite)
      #expect(fit.gamma > 0 && fit.alpha >= 0 && fit.beta >= 0)
    }
  }
}
