/// Whether two sets of values differ, by their ranks alone: the U test of Mann and Whitney, two-sided.
///
/// The test assumes nothing about the distribution, and a single outlier cannot decide it. Up to 40 values p is exact,
/// ties included, from all ways to divide the ranks between both sides. Above, p is that of the normal distribution,
/// corrected for ties and continuity.
package struct MannWhitney: Sendable, Equatable {
  package enum Problem: Error, Sendable, Equatable {
    /// A side has no values.
    case empty
    case notANumber
  }

  /// Values in all up to which p is exact.
  package static let exactLimit = 40

  /// The smallest possible p of samples of these sizes: all values of one side exceed all values of the other.
  static func smallest(_ first: Int, _ second: Int) -> Double {
    let few = min(first, second)
    guard few > 0 else { return 1 }
    let ways = (1...few).reduce(1.0) { $0 * Double(first + second - few + $1) / Double($1) }
    return min(1, 2 / ways)
  }

  /// The number of pairs, one value from each side, in which the first side's is larger; a tie counts a half.
  package let u: Double
  package let p: Double
  package let isExact: Bool

  package init(_ first: [Double], _ second: [Double]) throws(Problem) {
    guard !first.isEmpty, !second.isEmpty else { throw .empty }
    guard !(first + second).contains(where: \.isNaN) else { throw .notANumber }
    let ranked = Ranks(first + second)
    let sum = ranked.doubled[..<first.count].reduce(0, +)
    let least = first.count * (first.count + 1) / 2
    u = Double(sum) / 2 - Double(least)
    isExact = first.count + second.count <= Self.exactLimit
    p =
      isExact
      ? Self.exact(ranked.doubled, count: first.count, sum: sum)
      : Self.approximate(u, first.count, second.count, ranked.tieTerm)
  }

  /// Ranks from 1, of equal values their mean; all doubled, so that they are whole numbers.
  private struct Ranks {
    var doubled: [Int]
    /// Σ(t³ − t) over groups of t equal values.
    var tieTerm = 0.0

    init(_ values: [Double]) {
      doubled = [Int](repeating: 0, count: values.count)
      let order = values.indices.sorted { values[$0] < values[$1] }
      var start = 0
      while start < order.count {
        var end = start + 1
        while end < order.count, values[order[end]] == values[order[start]] { end += 1 }
        for place in start..<end { doubled[order[place]] = start + 1 + end }
        let count = Double(end - start)
        tieTerm += count * count * count - count
        start = end
      }
    }
  }

  /// The share of all choices of `count` ranks whose sum is at least as extreme as this one, doubled for two sides.
  private static func exact(_ ranks: [Int], count: Int, sum: Int) -> Double {
    let width = ranks.reduce(0, +) + 1
    // ways[k * width + s]: how often k of the ranks so far have the sum s. Exact up to 2⁵³; beyond that it is a share.
    var ways = [Double](repeating: 0, count: (count + 1) * width)
    ways[0] = 1
    var largest = 0
    for (dealt, rank) in ranks.enumerated() {
      largest += rank
      for chosen in stride(from: min(count, dealt + 1), to: 0, by: -1) {
        for sum in stride(from: largest, through: rank, by: -1) {
          ways[chosen * width + sum] += ways[(chosen - 1) * width + sum - rank]
        }
      }
    }
    let last = ways[(count * width)...]
    let all = last.reduce(0, +)
    let below = last.prefix(sum + 1).reduce(0, +)
    let above = last.dropFirst(sum).reduce(0, +)
    return min(1, 2 * min(below, above) / all)
  }

  private static func approximate(_ u: Double, _ first: Int, _ second: Int, _ tieTerm: Double) -> Double {
    let (a, b) = (Double(first), Double(second))
    let all = a + b
    let variance = a * b / 12 * (all + 1 - tieTerm / (all * (all - 1)))
    guard variance > 0 else { return 1 }
    let distance = max(0, abs(u - a * b / 2) - 0.5)
    return min(1, 2 * Distributions.normal(below: -distance / variance.squareRoot()))
  }
}
