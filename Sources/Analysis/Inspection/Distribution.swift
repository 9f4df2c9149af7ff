import Measurement
import PacketCapture

/// Counts of whole numbers, most of which are small.
///
/// Each value up to `highest` has its place in a list. Larger ones are rare, and counted by value until there are
/// `mostLarge` different ones; a further one is counted as a smaller value, by less than 0.2 %. Sum and maximum are
/// exact.
struct Counts {
  /// Different values above `highest` that are counted as what they are.
  static let mostLarge = 1 << 14
  private var counts: [Int]
  /// Values above `highest`.
  private var large: [Int: Int] = [:]
  private(set) var total = 0
  private var sum = 0
  private var largest = 0

  init(highest: Int) { counts = [Int](repeating: 0, count: highest + 1) }

  @inline(__always)
  mutating func add(_ value: Int) {
    if value < counts.count { counts[value] += 1 } else { addLarge(value, count: 1) }
    total += 1
    sum += value
    if value > largest { largest = value }
  }

  @inline(never)
  private mutating func addLarge(_ value: Int, count: Int) {
    var value = value
    if large.count >= Self.mostLarge, large[value] == nil {
      // Ten significant bits are left, so there are some thousand further values at most.
      let cut = max(0, Int.bitWidth - 10 - value.leadingZeroBitCount)
      value = max((value >> cut) << cut, counts.count)
    }
    large[value, default: 0] += count
  }

  /// Everything that was counted.
  var values: InspectionReport.Values {
    let all = all
    return InspectionReport.Values(values: all.map(\.value), counts: all.map(\.count), sum: sum, max: largest)
  }

  mutating func add(_ others: InspectionReport.Values) {
    for (value, count) in zip(others.values, others.counts) where value >= 0 && count > 0 {
      if value < counts.count { counts[value] += count } else { addLarge(value, count: count) }
      total += count
      largest = max(largest, value)
    }
    sum += others.sum ?? 0
    largest = max(largest, others.max ?? 0)
  }

  /// Values that occurred, and how often; in ascending order.
  private var all: [(value: Int, count: Int)] {
    let small: [(value: Int, count: Int)] = counts.indices.filter { counts[$0] > 0 }.map { ($0, counts[$0]) }
    let sorted: [(value: Int, count: Int)] = large.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    var all = small + sorted
    // The largest of all is what it is, also where it is counted as a smaller one.
    if let last = all.last, last.value < largest {
      all[all.count - 1].count -= 1
      if last.count == 1 { all.removeLast() }
      all.append((largest, 1))
    }
    return all
  }

  /// Values that occurred, and how often.
  var buckets: [TraceReport.Bucket] { all.map { TraceReport.Bucket($0.value, $0.count) } }

  var distribution: Distribution? {
    guard total > 0 else { return nil }
    let all = all
    func value(_ quantile: Double) -> Double {
      let rank = Swift.max(1, Int((quantile * Double(total)).rounded(.up)))
      var seen = 0
      for (value, count) in all {
        seen += count
        if seen >= rank { return Double(value) }
      }
      return Double(largest)
    }
    return Distribution(
      count: total, min: value(0), mean: Double(sum) / Double(total), p50: value(0.5), p95: value(0.95),
      max: Double(largest))
  }
}

/// Values kept one by one: the first million.
struct Samples {
  private var values: [Double] = []

  mutating func add(_ value: Double) { if values.count < 1 << 20 { values.append(value) } }

  var sorted: [Double] { values.sorted() }

  var distribution: Distribution? {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    func value(_ quantile: Double) -> Double {
      sorted[Swift.max(0, Int((quantile * Double(sorted.count)).rounded(.up)) - 1)]
    }
    return Distribution(
      count: sorted.count, min: sorted[0], mean: sorted.reduce(0, +) / Double(sorted.count), p50: value(0.5),
      p95: value(0.95), max: sorted[sorted.count - 1])
  }
}

/// The number of events in each second of the capture's clock; seconds without events are not kept.
struct PerSecond {
  private static let maximumSeconds = 1 << 20
  private var counts: [Int64: Int] = [:]
  private var second = Int64.min
  private var count = 0
  private var end = Int64.min

  @inline(__always)
  mutating func add(_ events: Int, at time: Timestamp) {
    // Within the current second nothing is divided or looked up.
    if time.nanoseconds >= second && time.nanoseconds < end {
      count += events
    } else {
      change(to: time)
      count = events
    }
  }

  /// Takes back an event that was added.
  mutating func remove(at time: Timestamp) {
    store()
    let key = Self.second(of: time)
    guard let count = counts[key] else { return }
    counts[key] = count > 1 ? count - 1 : nil
  }

  /// The beginning of a time's second.
  private static func second(of time: Timestamp) -> Int64 {
    let floor = time.nanoseconds / 1_000_000_000 - (time.nanoseconds % 1_000_000_000 < 0 ? 1 : 0)
    return floor &* 1_000_000_000
  }

  @inline(never)
  private mutating func change(to time: Timestamp) {
    store()
    second = Self.second(of: time)
    end = second &+ 1_000_000_000
  }

  private mutating func store() {
    guard count > 0, counts.count < Self.maximumSeconds || counts[second] != nil else { return }
    counts[second, default: 0] += count
    count = 0
  }

  /// Counts by second since 1970.
  mutating func values() -> InspectionReport.Values {
    store()
    let sorted = counts.sorted { $0.key < $1.key }
    return InspectionReport.Values(
      values: sorted.map { Int($0.key / 1_000_000_000) }, counts: sorted.map(\.value))
  }

  mutating func add(_ others: InspectionReport.Values) {
    store()
    for (value, count) in zip(others.values, others.counts) {
      let (key, isOver) = Int64(value).multipliedReportingOverflow(by: 1_000_000_000)
      guard !isOver, count > 0, counts.count < Self.maximumSeconds || counts[key] != nil else { continue }
      counts[key, default: 0] += count
    }
  }

  /// Over the seconds in which anything happened.
  mutating func distribution() -> Distribution? {
    store()
    var samples = Samples()
    for count in counts.values { samples.add(Double(count)) }
    return samples.distribution
  }

  /// The distribution of counts per minute.
  mutating func perMinute() -> Distribution? {
    store()
    var minutes: [Int64: Int] = [:]
    for (second, count) in counts { minutes[second / 60_000_000_000, default: 0] += count }
    var samples = Samples()
    for count in minutes.values { samples.add(Double(count)) }
    return samples.distribution
  }
}
