import Foundation
import TestSupport
import Testing

@testable import Reporting

@Suite("Mann-Whitney U")
struct MannWhitneyTests {
  /// Hollander and Wolfe, "Nonparametric Statistical Methods", 1973, p. 69: permeability of the human chorioamnion. R's
  /// wilcox.test gives W = 35 and p = 0.1272 of one side.
  @Test("The textbook's example without ties is exact")
  func chorioamnion() throws {
    let test = try MannWhitney(
      [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46], [1.15, 0.88, 0.90, 0.74, 1.21])
    #expect(test.u == 35)
    #expect(test.isExact)
    #expect(abs(test.p - 2 * 0.1272) < 1e-4)
  }

  /// Ozone in New York in May and August 1973 (Chambers et al., R's data set airquality): W = 127.5, p = 0.0001208 by
  /// the normal approximation with ties and continuity, as R's manual of wilcox.test shows.
  @Test("The textbook's example with ties is approximated")
  func ozone() throws {
    let may = [
      41.0, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37,
    ]
    let august = [
      39.0, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85,
    ]
    let test = try MannWhitney(may, august)
    #expect(test.u == 127.5)
    #expect(!test.isExact)
    #expect(abs(test.p - 0.000_120_8) < 5e-8)
  }

  @Test("Three a side can never differ at 5 %, four can: 2/20 and 2/70")
  func fewest() throws {
    #expect(abs(try MannWhitney([1, 2, 3], [4, 5, 6]).p - 0.1) < 1e-12)
    #expect(abs(try MannWhitney([5, 6, 7, 8], [1, 2, 3, 4]).p - 2.0 / 70) < 1e-12)
    let smallest: [(Int, Int, Double)] = [
      (3, 3, 0.1), (4, 4, 2.0 / 70), (5, 5, 2.0 / 252), (2, 9, 2.0 / 55), (0, 4, 1), (1, 1, 1),
    ]
    for (a, b, p) in smallest {
      #expect(abs(MannWhitney.smallest(a, b) - p) < 1e-12)
    }
  }

  @Test(
    "Which side comes first changes nothing but U, nor does any growing function",
    arguments: 1...100 as ClosedRange<UInt64>)
  func laws(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    func values() -> [Double] { (0..<random.number(1...9)).map { _ in Double(random.number(-6...12)) } }
    let (a, b) = (values(), values())
    let (test, swapped) = (try MannWhitney(a, b), try MannWhitney(b, a))
    #expect(test.u + swapped.u == Double(a.count * b.count))
    #expect(abs(test.p - swapped.p) < 1e-9)
    #expect((0...1).contains(test.p))
    let bent = try MannWhitney(a.map { $0 * $0 * $0 + 5 }, b.map { $0 * $0 * $0 + 5 })
    #expect(bent == test)
    // U counts pairs.
    let pairs = a.reduce(0.0) { sum, x in sum + b.reduce(0) { $0 + (x > $1 ? 1 : x == $1 ? 0.5 : 0) } }
    #expect(test.u == pairs)
  }

  @Test("Exact p is near that of the normal distribution where both are good", arguments: 1...10 as ClosedRange<UInt64>)
  func agreement(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let a = (0..<18).map { _ in Double.random(in: 0...1, using: &random) }
    let b = (0..<18).map { _ in Double.random(in: 0.2...1.2, using: &random) }
    let test = try MannWhitney(a, b)
    // Variance n₁n₂(n₁ + n₂ + 1)/12, without ties.
    let z = max(0, abs(test.u - 162) - 0.5) / (18.0 * 18 * 37 / 12).squareRoot()
    #expect(test.isExact)
    #expect(abs(test.p - erfc(z / 2.0.squareRoot())) < 0.01)
  }

  @Test("p is below 5 % in about 5 % of samples of the same distribution")
  func level() throws {
    var random = SeededGenerator(seed: 7)
    var hits = 0
    for _ in 0..<300 {
      func sample() -> [Double] { (0..<6).map { _ in Double.random(in: 0...1, using: &random) } }
      if try MannWhitney(sample(), sample()).p < 0.05 { hits += 1 }
    }
    #expect((5...26).contains(hits), "\(hits) of 300")
  }

  /// Holm's own rule: compare p(1) with α/k, p(2) with α/(k − 1), … and stop at the first that is larger.
  @Test("Holm's correction: worked by hand, in any order, and never above 1 or below one before it")
  func corrected() {
    let corrected = holm([0.04, 0.01, 0.03, 0.005])
    #expect(zip(corrected, [0.06, 0.03, 0.06, 0.02]).allSatisfy { abs($0 - $1) < 1e-12 }, "\(corrected)")
    #expect(holm([0.6, 0.7]) == [1, 1] && holm([]) == [] && holm([0.03]) == [0.03])
  }

  @Test("No values, and no numbers, are problems; equal values are no difference")
  func degenerate() throws {
    #expect(throws: MannWhitney.Problem.empty) { try MannWhitney([], [1]) }
    #expect(throws: MannWhitney.Problem.notANumber) { try MannWhitney([.nan], [1]) }
    #expect(try MannWhitney([2, 2, 2, 2], [2, 2, 2, 2]).p == 1)
    let many = [Double](repeating: 3, count: 40)
    #expect(try MannWhitney(many, many).p == 1)
  }
}
