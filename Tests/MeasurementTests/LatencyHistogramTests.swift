import Foundation
import Measurement
import TestSupport
import Testing

@Suite("Latency histograms")
struct LatencyHistogramTests {
  /// Values as latencies are: most of them small, some of them very large.
  static func values(_ random: inout SeededGenerator, _ count: Int) -> [Int] {
    (0..<count).map { _ in random.number(0...(1 << random.number(0...31))) }
  }

  static func histogram(_ values: [Int], _ unit: LatencyHistogram.Unit = .microseconds) -> LatencyHistogram {
    var histogram = LatencyHistogram(unit)
    for value in values { histogram.record(value) }
    return histogram
  }

  static func json(_ histogram: LatencyHistogram) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(histogram)
  }

  @Test("Quantiles are those of the sorted values within 0.1 %", arguments: seeds(8, of: 30))
  func quantiles(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let sorted = Self.values(&random, random.number(1...3_000)).sorted()
    let histogram = Self.histogram(sorted)
    #expect(histogram.count == sorted.count)
    #expect(histogram.minimum == sorted.first)
    #expect(histogram.maximum == sorted.last)
    #expect(histogram.mean == Double(sorted.reduce(0, +)) / Double(sorted.count))
    for share in [0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1]
      + (0..<20).map({ _ in Double.random(in: 0...1, using: &random) })
    {
      let rank = max(1, Int((share * Double(sorted.count)).rounded(.up)))
      let (exact, found) = (sorted[rank - 1], histogram.quantile(share))
      #expect(found >= exact && Double(found - exact) <= Double(exact) / 1_000, "\(share): \(found) for \(exact)")
    }
    // Told in order, the values are the sorted ones but for the last digits.
    let told = histogram.counts.flatMap { Array(repeating: $0.value, count: $0.count) }
    #expect(told.count == sorted.count)
    #expect(zip(told, sorted).allSatisfy { $0 <= $1 && Double($1 - $0) <= Double($1) / 1_000 })
  }

  @Test("A value that was measured no times is none")
  func never() throws {
    var histogram = LatencyHistogram(.microseconds)
    for value in [0, 7, 1 << 20] { histogram.record(value, times: 0) }
    #expect(histogram == LatencyHistogram(.microseconds))
    histogram.record(7, times: 3)
    for value in [0, 1 << 20] { histogram.record(value, times: 0) }
    #expect(histogram == Self.histogram([7, 7, 7]) && histogram.minimum == 7 && histogram.maximum == 7)
    #expect(try Self.json(histogram) == Self.json(Self.histogram([7, 7, 7])))
  }

  @Test("What is written has the quantiles by their names")
  func names() throws {
    let histogram = Self.histogram(Array(1...1_000))
    let fields = try #require(try JSONSerialization.jsonObject(with: Self.json(histogram)) as? [String: Any])
    let written = ["min", "p50", "p90", "p99", "p999", "max"].map { fields[$0] as? Double }
    #expect(written == [1, 500, 900, 990, 999, 1_000])
    #expect(fields["count"] as? Int == 1_000 && fields["mean"] as? Double == 500.5)
  }

  @Test("Merging parts, in any order, gives the whole", arguments: seeds(4, of: 20))
  func merging(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let values = Self.values(&random, 2_000)
    var parts = Array(repeating: [Int](), count: random.number(1...6))
    for value in values { parts[random.number(0...parts.count - 1)].append(value) }
    let whole = Self.histogram(values)
    for _ in 0..<3 {
      var merged = LatencyHistogram(.microseconds)
      for part in parts.shuffled(using: &random) { merged.merge(Self.histogram(part)) }
      #expect(merged == whole)
      #expect(try Self.json(merged) == Self.json(whole))
    }
    var (a, b) = (Self.histogram(parts[0]), Self.histogram(values))
    a.merge(b)
    b.merge(Self.histogram(parts[0]))
    #expect(a == b)
  }

  @Test("What is written is read again, to the last digit", arguments: seeds(4, of: 20))
  func roundTrip(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let histogram = Self.histogram(
      Self.values(&random, random.number(0...500)), random.pick([.bytes, .count, .milliseconds]))
    let json = try Self.json(histogram)
    let read = try JSONDecoder().decode(LatencyHistogram.self, from: json)
    #expect(read == histogram)
    #expect(try Self.json(read) == json)
    // And it goes on as if it had never been written.
    let more = Self.values(&random, 100)
    var (a, b) = (read, histogram)
    for value in more {
      a.record(value)
      b.record(value)
    }
    #expect(a == b)
  }

  @Test("The written form")
  func form() throws {
    var histogram = LatencyHistogram(.milliseconds)
    histogram.record(3, times: 3)
    histogram.record(5_001)
    let json = String(decoding: try Self.json(histogram), as: UTF8.self)
    #expect(
      json
        == #"{"count":4,"counts":[[0.003,3],[5,1]],"max":5.001,"mean":1.2525,"min":0.003,"p50":0.003,"p90":5.001,"p99":5.001,"p999":5.001,"unit":"ms"}"#
    )
    let empty = String(decoding: try Self.json(LatencyHistogram(.microseconds)), as: UTF8.self)
    #expect(
      empty == #"{"count":0,"counts":[],"max":0,"mean":0,"min":0,"p50":0,"p90":0,"p99":0,"p999":0,"unit":"us"}"#)
  }

  @Test("`counts` alone is enough")
  func countsAlone() throws {
    let read = try JSONDecoder().decode(
      LatencyHistogram.self, from: Data(#"{"unit":"us","counts":[[7,2],[1,1],[9,0]]}"#.utf8))
    #expect(read == Self.histogram([1, 7, 7]))
    #expect(read.mean == 5)
  }

  @Test(
    "What is no histogram is refused",
    arguments: [
      #"{"unit":"us","counts":[[-1,2]]}"#, #"{"unit":"us","counts":[[1,-2]]}"#, #"{"unit":"us","counts":[[1]]}"#,
      #"{"unit":"us","counts":[[1,2,3]]}"#, #"{"unit":"h","counts":[]}"#, #"{"counts":[]}"#, #"{"unit":"us"}"#,
      #"{"unit":"us","counts":[[1,9223372036854775807],[2,1]]}"#, #"{"unit":"us","counts":[[1,1]],"max":2}"#,
      #"{"unit":"us","counts":[[1,1]],"min":-1}"#,
    ])
  func refused(json: String) {
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(LatencyHistogram.self, from: Data(json.utf8)) }
  }

  @Test("Values out of range count as the nearest one")
  func limits() {
    var histogram = LatencyHistogram(.microseconds)
    histogram.record(-1)
    histogram.record(Int.min)
    histogram.record(Int.max)
    histogram.record(7, times: 0)
    histogram.record(7, times: -1)
    #expect(histogram.count == 3)
    #expect(histogram.minimum == 0)
    #expect(histogram.maximum == LatencyHistogram.highest)
    #expect(histogram.quantile(0.5) == 0)
    #expect(histogram.quantile(1) == LatencyHistogram.highest)
    #expect(histogram.quantile(-1) == 0)
    #expect(histogram.quantile(2) == LatencyHistogram.highest)

    var many = LatencyHistogram(.bytes)
    many.record(LatencyHistogram.highest, times: 1 << 60)
    many.record(LatencyHistogram.highest, times: 1 << 60)
    #expect(many.count == 1 << 61)
    #expect(many.mean == Double(LatencyHistogram.highest))
  }

  @Test("Nothing was recorded")
  func empty() {
    var histogram = LatencyHistogram(.microseconds)
    #expect(histogram.count == 0 && histogram.mean == 0 && histogram.quantile(0.99) == 0)
    #expect(histogram.minimum == 0 && histogram.maximum == 0 && histogram.counts.isEmpty)
    histogram.merge(LatencyHistogram(.microseconds))
    #expect(histogram.count == 0)
    histogram.merge(Self.histogram([3]))
    #expect(histogram == Self.histogram([3]))
  }

  private static func read(_ json: String) throws -> LatencyHistogram {
    try JSONDecoder().decode(LatencyHistogram.self, from: Data(json.utf8))
  }

  @Test("Histograms that differ in anything are not equal")
  func different() throws {
    let base = try Self.read(#"{"unit":"us","counts":[[5000,1],[9000,1]],"min":5000,"max":9000,"mean":7000}"#)
    #expect(base == Self.histogram([5_000, 9_000]))
    for other in [
      #"{"unit":"count","counts":[[5000,1],[9000,1]],"min":5000,"max":9000,"mean":7000}"#,
      #"{"unit":"us","counts":[[5000,1],[9000,1]],"min":5000,"max":9000,"mean":7000.5}"#,
      #"{"unit":"us","counts":[[5000,1],[9000,1]],"min":5001,"max":9000,"mean":7000}"#,
      #"{"unit":"us","counts":[[5000,1],[9000,1]],"min":5000,"max":9001,"mean":7000}"#,
      #"{"unit":"us","counts":[[5000,1],[6000,1],[9000,1]],"min":5000,"max":9000,"mean":4666.6666666}"#,
    ] {
      let other = try Self.read(other)
      #expect(other != base && base != other)
    }
  }

  @Test("Pairs may come in any order, also beside the ends that they stand for")
  func unordered() throws {
    let read = try Self.read(
      #"{"unit":"us","counts":[[9000,1],[5000,2],[7000,1]],"min":5001,"max":9001,"mean":6500.75}"#)
    #expect(read.count == 4 && read.minimum == 5_001 && read.maximum == 9_001 && read.mean == 6_500.75)
    #expect(read.counts.map(\.value) == [5_000, 7_000, 9_000])
  }

  @Test("Zero is a value, a mean that cannot be is passed over, and values have an end")
  func edges() throws {
    let zeros = try Self.read(#"{"unit":"us","counts":[[0,3]],"min":0,"max":0,"mean":0}"#)
    #expect(zeros == Self.histogram([0, 0, 0]))
    for mean in ["-1", "3600000001", "1e300"] {
      #expect(try Self.read(#"{"unit":"us","counts":[[8,2]],"mean":\#(mean)}"#).mean == 8)
    }
    // A mean is believed up to the largest value.
    #expect(try Self.read(#"{"unit":"us","counts":[[8,2]],"mean":3600000000}"#).mean == 3_600_000_000)
    let largest = try Self.read(#"{"unit":"ms","counts":[[4e9,1]],"max":5e9}"#)
    #expect(largest.maximum == LatencyHistogram.highest && largest.count == 1)
    let most = try Self.read(#"{"unit":"us","counts":[[1,9007199254740991]]}"#)
    #expect(most.count == 9_007_199_254_740_991)
    for counts in ["[[1,9007199254740992]]", "[[1,1.5]]", "[[-0.5,1]]"] {
      #expect(throws: DecodingError.self) { try Self.read(#"{"unit":"us","counts":\#(counts)}"#) }
    }
    for end in [#""min":9"#, #""max":9"#, #""max":-1"#] {
      #expect(throws: DecodingError.self) { try Self.read(#"{"unit":"us","counts":[[8,2]],\#(end)}"#) }
    }
    // Nothing was counted, whatever its ends are.
    #expect(try Self.read(#"{"unit":"us","counts":[[8,0]],"min":7,"max":9}"#) == LatencyHistogram(.microseconds))
  }
}
