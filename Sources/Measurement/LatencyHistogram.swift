import Histogram

/// Counts of measured values, with three significant digits; histograms merge exactly.
///
/// Values are whole numbers, times in microseconds, from 0 to one hour; larger values are clamped to it. Recording
/// takes a few nanoseconds and allocates only when a value is larger than all before it. As JSON it is
/// `{"unit","count","min","mean","p50","p90","p99","p999","max","counts":[[value,count],…]}`, where milliseconds have
/// three decimals; `counts` alone is enough to restore the histogram.
public struct LatencyHistogram: Sendable {
  /// The unit of values when they are written; while they are measured, times are always in microseconds.
  public enum Unit: String, Sendable, Codable {
    case microseconds = "us"
    case milliseconds = "ms"
    case count, bytes

    /// Measured values in one unit of the JSON form.
    fileprivate var scale: Double { self == .milliseconds ? 1_000 : 1 }
  }

  /// The largest distinguishable value.
  package static let highest = 3_600_000_000

  /// The unit in which values are written; times are recorded in microseconds.
  public let unit: Unit
  private var histogram = Self.empty(upTo: 0)
  /// The exact sum of the values, before rounding to buckets: the order of merging makes no difference.
  private var sum: UInt128 = 0

  /// Empty histograms by the power of two of their largest value above 2,047: a copy of one is quicker than a new one,
  /// whose counts are set one by one, and costs nothing as long as nothing is recorded.
  private static let empty = (0...21).map { power in
    var histogram = Histogram<UInt64>(
      highestTrackableValue: 2_048 << power - 1, numberOfSignificantValueDigits: .three)
    histogram.autoResize = true
    return histogram
  }

  /// An empty histogram with room for values up to this one; it grows with larger ones, which takes longer.
  private static func empty(upTo value: Int) -> Histogram<UInt64> {
    let power = Int.bitWidth - value.leadingZeroBitCount - 11
    return empty[min(max(0, power), empty.count - 1)]
  }

  /// Makes an empty histogram.
  public init(_ unit: Unit) { self.unit = unit }

  /// Counts a value, clamped to 0 and to one hour in microseconds.
  ///
  /// - Parameters:
  ///   - value: the value; a time in microseconds.
  ///   - times: how often it was measured.
  /// - Complexity: O(1).
  @inline(__always)
  public mutating func record(_ value: Int, times: Int = 1) {
    guard times > 0 else { return }
    let value = UInt64(min(Self.highest, max(0, value)))
    histogram.record(value, count: UInt64(times))
    sum += UInt128(value) * UInt128(times)
  }

  /// Adds the counts of another histogram, which must have the same unit.
  public mutating func merge(_ other: LatencyHistogram) {
    precondition(unit == other.unit, "histograms of different units")
    guard other.count > 0 else { return }
    histogram.add(other.histogram)
    sum += other.sum
  }

  /// The number of recorded values.
  public var count: Int { Int(histogram.totalCount) }
  /// The smallest value; 0 if nothing was recorded, as for the following properties.
  public var minimum: Int { count == 0 ? 0 : Int(histogram.min) }
  /// The largest value.
  public var maximum: Int { count == 0 ? 0 : Int(histogram.maxRecorded) }
  /// The mean of the recorded values, not rounded to the histogram's precision.
  public var mean: Double { count == 0 ? 0 : Double(sum) / Double(count) }

  /// The value that the share `quantile` of all values does not exceed, with three significant digits.
  ///
  /// - Parameter quantile: a share from 0 to 1, such as 0.99.
  /// - Returns: the value in the unit of recording; 0 if nothing was recorded.
  public func quantile(_ quantile: Double) -> Int {
    count == 0 ? 0 : Int(min(histogram.maxRecorded, histogram.valueAtPercentile(quantile * 100)))
  }

  /// The recorded values, to the histogram's precision, with their counts.
  public var counts: [(value: Int, count: Int)] {
    histogram.recordedValues().map { (Int(histogram.lowestEquivalentForValue($0.value)), Int($0.count)) }
  }
}

extension LatencyHistogram: Equatable {
  public static func == (a: LatencyHistogram, b: LatencyHistogram) -> Bool {
    a.unit == b.unit && a.sum == b.sum && a.minimum == b.minimum && a.maximum == b.maximum
      && a.counts.elementsEqual(b.counts) { $0 == $1 }
  }
}

extension LatencyHistogram: Codable {
  private enum CodingKeys: String, CodingKey { case unit, count, min, mean, p50, p90, p99, p999, max, counts }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    let scale = unit.scale
    try container.encode(unit, forKey: .unit)
    try container.encode(count, forKey: .count)
    try container.encode(Double(minimum) / scale, forKey: .min)
    try container.encode(mean / scale, forKey: .mean)
    for (key, share) in [(CodingKeys.p50, 0.5), (.p90, 0.9), (.p99, 0.99), (.p999, 0.999)] {
      try container.encode(Double(quantile(share)) / scale, forKey: key)
    }
    try container.encode(Double(maximum) / scale, forKey: .max)
    try container.encode(counts.map { [Double($0.value) / scale, Double($0.count)] }, forKey: .counts)
  }

  /// Restores a histogram from `counts`, and from `min`, `max` and `mean` if they are present, since these are more
  /// precise.
  ///
  /// - Throws: if a value or count is negative or too large, or `counts` is not a list of pairs.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(try container.decode(Unit.self, forKey: .unit))
    let scale = unit.scale
    func corrupted(_ problem: String) -> DecodingError {
      .dataCorruptedError(forKey: .counts, in: container, debugDescription: problem)
    }
    func measured(_ shown: Double) -> Int { Int(min(Double(Self.highest), (shown * scale).rounded())) }
    var total = 0.0
    var pairs: [(value: Int, count: Int)] = []
    // Most of a document are these pairs, so that no array is made for each of them.
    var list = try container.nestedUnkeyedContainer(forKey: .counts)
    while !list.isAtEnd {
      var pair = try list.nestedUnkeyedContainer()
      guard pair.count == 2 else { throw corrupted("a pair of [value, count] has \(pair.count ?? 0) numbers") }
      let (value, count) = (try pair.decode(Double.self), try pair.decode(Double.self))
      guard value >= 0, count >= 0, count == count.rounded() else {
        throw corrupted("\([value, count]) is not [value, count]")
      }
      total += count
      guard total < 0x1p53 else { throw corrupted("too many values") }
      if count > 0 { pairs.append((measured(value), Int(count))) }
    }
    pairs.sort { $0.value < $1.value }
    guard let first = pairs.first, let last = pairs.last else { return }
    /// The minimum or maximum, which is known more precisely than its bucket's value.
    func end(_ key: CodingKeys, kept: Int) throws -> Int {
      guard let shown = try container.decodeIfPresent(Double.self, forKey: key) else { return kept }
      guard shown >= 0, histogram.valuesAreEquivalent(UInt64(measured(shown)), UInt64(kept)) else {
        throw corrupted("\(key.stringValue) \(shown) is not among the values")
      }
      return measured(shown)
    }
    pairs[0].value = try end(.min, kept: first.value)
    let largest = try end(.max, kept: last.value)
    histogram = Self.empty(upTo: largest)
    for (value, count) in pairs { record(value, times: count) }
    // Counts nothing, and makes the largest value known.
    histogram.record(UInt64(largest), count: 0)
    if let mean = try container.decodeIfPresent(Double.self, forKey: .mean), mean >= 0,
      mean * scale <= Double(Self.highest)
    {
      sum = UInt128((mean * scale * total).rounded())
    }
  }
}
