/// The mean of a time series, with a confidence interval that does not assume independent values.
///
/// Values of one run are correlated: a slow second follows a slow second, and the usual s/√n is too small by far. Few
/// and long batches hold most of the correlation inside them, so the series is cut into 10, and into 5, and the wider of
/// both Student's intervals counts. Even these are too narrow for a correlation that lasts for seconds in a short run,
/// which it cannot show: the interval is wider by 20 s over the run's length. (Batch means with a fixed number of
/// batches: Schmeiser, "Batch size effects in the analysis of simulation output", 1982.)
///
/// Simulated series of 16 to 600 s in values of 100 ms, nominally 95 %: it holds the true mean in at least 97 % of them
/// for AR(1) from value to value with φ 0 to 0.8; in at least 92 % of those that have one with φ up to 0.8 from second
/// to second, with and without noise on top; in at least 92 % when it stalls for 0.1 to 1 s at least three times in the
/// run. Rarer events cannot be covered by an interval within the run. The price is width: for independent values the
/// interval is wider than necessary, 3 times in 16 s, 1.9 times in 60 s, and 1.4 times in 600 s.
package struct BatchMeans: Sendable, Equatable {
  /// Why the interval is missing.
  package enum Problem: Error, Sendable, Equatable {
    /// Shorter than `shortestS`, or fewer than 20 values.
    case tooShort
    /// The series has a trend: neighbouring twentieths of it are nearly equal.
    case drifts
    /// A value is infinite or not a number.
    case notANumber
  }

  /// The shortest length with an interval, in seconds.
  package static let shortestS = 16.0
  /// The length, in seconds, at which the interval is twice as wide as that of its batches.
  private static let allowanceS = 20.0
  private static let batches = [10, 5]
  private static let twentieths = 20

  package let mean: Double
  /// The true mean is within this distance of `mean` with 95 % confidence.
  package let halfWidth: Double

  /// - Parameter secondsEach: how long each value is of.
  package init(_ values: [Double], secondsEach: Double) throws(Problem) {
    guard values.allSatisfy(\.isFinite), secondsEach.isFinite else { throw .notANumber }
    let length = Double(values.count) * secondsEach
    // A sum of tenths may be slightly less than the whole.
    guard length >= Self.shortestS - 1e-6, values.count >= Self.twentieths else { throw .tooShort }
    if Self.drifts(values) { throw .drifts }
    mean = Reporting.mean(values)
    // A burst at an end of the series is known to one value at best, however alike the batches are.
    let spread = (values.max() ?? 0) - (values.min() ?? 0)
    halfWidth = max(Self.halfWidth(values, length: length), spread / Double(values.count))
    guard mean.isFinite, halfWidth.isFinite else { throw .notANumber }
  }

  /// The half width for as few as ten values, without a check for a trend.
  static func halfWidth(_ values: [Double], length: Double) -> Double {
    batchedHalfWidth(values) * (1 + allowanceS / length)
  }

  /// The wider of both Student's intervals, without the allowance for short series.
  static func batchedHalfWidth(_ values: [Double]) -> Double {
    batches.map { count in
      let means = batched(values, count)
      let ofMean = variance(means, mean: Reporting.mean(means)) / Double(count)
      return Distributions.studentBound(0.95, degrees: count - 1) * ofMean.squareRoot()
    }.max() ?? .infinity
  }

  static func drifts(_ values: [Double]) -> Bool {
    values.count >= twentieths && neighbourCorrelation(batched(values, twentieths)) > 0.75
  }

  /// Means of this many batches of equal length. The remainder, fewer values than batches, is dropped at the beginning,
  /// where a series is least steady.
  private static func batched(_ values: [Double], _ count: Int) -> [Double] {
    let length = max(1, values.count / count)
    let first = max(0, values.count - length * count)
    return stride(from: first, to: values.count, by: length).map { start in
      Reporting.mean(values[start..<min(start + length, values.count)])
    }
  }

  /// The lag-1 autocorrelation; 0 for a constant series.
  private static func neighbourCorrelation(_ values: [Double]) -> Double {
    let mean = Reporting.mean(values)
    let square = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
    guard square > 0 else { return 0 }
    return zip(values, values.dropFirst()).reduce(0) { $0 + ($1.0 - mean) * ($1.1 - mean) } / square
  }
}
