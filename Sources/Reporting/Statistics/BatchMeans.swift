/// The mean of values that follow each other in time, with an interval that does not take neighbours for independent.
///
/// Values of one run are correlated: a slow second follows a slow second, and the usual s/√n is too small by far. The
/// series is cut into batches, of 1 value, then 2, 4, 8 …, until the means of neighbouring batches are no longer
/// correlated (lag-1 autocorrelation below 1.96/√k for k batches). These are as good as independent, so Student's t
/// tells what their mean is worth. (Law, "Simulation Modeling and Analysis", 9.5.3; the doubling is Fishman's.)
public struct BatchMeans: Sendable, Equatable {
  /// Why there is no interval.
  public enum Problem: Error, Sendable, Equatable {
    /// Fewer than `smallestCount` values.
    case tooFewValues
    /// One is infinite or no number.
    case notANumber
  }

  public static let smallestCount = 8
  /// Fewer batches than this do not show whether they are correlated.
  private static let fewestBatches = 16

  public let mean: Double
  /// The true mean is within this distance of `mean` with 95 % confidence.
  public let halfWidth: Double
  /// Values in each batch.
  public let batchLength: Int
  public let batches: Int
  /// How many independent values would tell as much: n_eff = s² / variance of the mean. Never more than there are.
  public let effectiveCount: Double
  /// The batches' means are uncorrelated. If not, the series is too short, and the interval too narrow.
  public let isIndependent: Bool

  public init(_ values: [Double]) throws(Problem) {
    guard values.allSatisfy(\.isFinite) else { throw .notANumber }
    guard values.count >= Self.smallestCount else { throw .tooFewValues }
    var length = 1
    var means = values
    while Self.areCorrelated(means), means.count / 2 >= Self.fewestBatches {
      length *= 2
      // Left over at the beginning, where a series is least steady.
      means = Self.halved(means)
    }
    let mean = Reporting.mean(means)
    let ofMean = variance(means, mean: mean) / Double(means.count)
    let ofValues = variance(values, mean: Reporting.mean(values))
    self.mean = mean
    halfWidth = Distributions.studentBound(0.95, degrees: means.count - 1) * ofMean.squareRoot()
    batchLength = length
    batches = means.count
    effectiveCount = ofMean > 0 ? min(Double(values.count), max(1, ofValues / ofMean)) : Double(values.count)
    isIndependent = !Self.areCorrelated(means)
  }

  private static func halved(_ values: [Double]) -> [Double] {
    stride(from: values.count % 2, to: values.count, by: 2).map { (index: Int) -> Double in
      values[index] / 2 + values[index + 1] / 2
    }
  }

  private static func areCorrelated(_ values: [Double]) -> Bool {
    let mean = Reporting.mean(values)
    let square = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
    guard square > 0 else { return false }
    let product = zip(values, values.dropFirst()).reduce(0) { $0 + ($1.0 - mean) * ($1.1 - mean) }
    return product / square > 1.96 / Double(values.count).squareRoot()
  }
}
