/// A summary of a sample's values. Percentiles are nearest-rank: each is a value that occurred.
public struct Distribution: Sendable, Equatable, Codable {
  public var count: Int
  public var min: Double
  public var mean: Double
  public var p50: Double
  public var p95: Double
  public var max: Double

  package init(count: Int, min: Double, mean: Double, p50: Double, p95: Double, max: Double) {
    (self.count, self.min, self.mean, self.p50, self.p95, self.max) = (count, min, mean, p50, p95, max)
  }
}
