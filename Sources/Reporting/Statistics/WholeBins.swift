import Measurement

/// The rates written in the short bins that lie completely within a phase.
struct WholeBins: Equatable {
  /// Notifications per second.
  let rates: [Double]
  /// Seconds of each.
  let length: Double

  /// - Parameter range: the phase, by its times since the run's start. Without an end it is the whole run, and the last
  ///   bin, which may be cut short, is left out.
  /// - Returns: `nil` if their length is 0.
  init?(_ bins: RunResult.Bins, in range: ClosedRange<Double>) {
    guard bins.lengthS.isFinite, bins.lengthS > 1e-3, bins.fromS.isFinite, bins.written.count <= RunResult.Bins.most
    else { return nil }
    let slack = bins.lengthS / 20
    let last = range.upperBound.isFinite ? bins.written.count : bins.written.count - 1
    rates = (0..<max(0, last)).compactMap { index in
      let begin = bins.fromS + Double(index) * bins.lengthS
      guard begin >= range.lowerBound - slack, begin + bins.lengthS <= range.upperBound + slack else { return nil }
      return Double(bins.written[index]) / bins.lengthS
    }
    length = bins.lengthS
  }
}
