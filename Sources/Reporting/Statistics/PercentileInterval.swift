import Measurement

/// Between which of n sorted values a percentile lies with 95 % confidence: those of the ranks nq ± 1.96 √(nq(1 − q)).
///
/// It takes nothing for granted about the distribution, but that the values are independent. (Le Boudec, "Performance
/// Evaluation of Computer and Communication Systems", theorem 2.1.)
public struct PercentileInterval: Sendable, Equatable {
  /// Ranks from 1; `nil` at an end that so few values do not have.
  public let lowerRank: Int?
  public let upperRank: Int?

  /// - Parameter quantile: between 0 and 1, both excluded.
  public init(count: Int, quantile: Double) {
    guard count > 0, quantile > 0, quantile < 1 else {
      (lowerRank, upperRank) = (nil, nil)
      return
    }
    let middle = Double(count) * quantile
    let reach = 1.96 * (middle * (1 - quantile)).squareRoot()
    let lower = Int((middle - reach).rounded(.down))
    let upper = Int((middle + reach).rounded(.up)) + 1
    lowerRank = lower >= 1 ? lower : nil
    upperRank = upper <= count ? upper : nil
  }
}

extension LatencyHistogram {
  /// The interval's ends as values; an end is `nil` when there are too few values to know it.
  public func interval(of quantile: Double) -> (lower: Int?, upper: Int?) {
    let ranks = PercentileInterval(count: count, quantile: quantile)
    return (ranks.lowerRank.map(value(ofRank:)), ranks.upperRank.map(value(ofRank:)))
  }

  private func value(ofRank rank: Int) -> Int {
    var seen = 0
    for (value, count) in counts {
      seen += count
      if seen >= rank { return value }
    }
    return maximum
  }
}

extension LatencyHistogram {
  /// So far from the mean the true one lies with 95 % confidence, in the histogram's unit as measured; `nil` with fewer
  /// than two values.
  ///
  /// Student's interval. Values that follow each other closely are more alike than it takes them to be.
  public var halfWidthOfMean: Double? {
    guard count >= 2 else { return nil }
    let mean = mean
    let squares = counts.reduce(0.0) { sum, pair in
      let difference = Double(pair.value) - mean
      return sum + difference * difference * Double(pair.count)
    }
    let variance = squares / Double(count - 1)
    return Distributions.studentBound(0.95, degrees: count - 1) * (variance / Double(count)).squareRoot()
  }
}
