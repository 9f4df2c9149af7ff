import Measurement

/// Counts the writes of one event loop in each tenth of a second of its schedule.
struct WriteBins: Sendable {
  /// Nanoseconds of a bin.
  private(set) var length: Int64 = 100_000_000
  private(set) var counts: [Int] = []
  private let most: Int

  init(most: Int = RunResult.Bins.most) { self.most = most }

  /// - Parameter time: nanoseconds since the schedule's begin.
  mutating func add(_ count: Int, at time: Int64) {
    guard time >= 0 else { return }
    while time / length >= Int64(most) { fold() }
    let index = Int(time / length)
    if index >= counts.count { counts.append(contentsOf: repeatElement(0, count: index + 1 - counts.count)) }
    counts[index] += count
  }

  /// Bins of twice the length.
  private mutating func fold() {
    length *= 2
    counts = stride(from: 0, to: counts.count, by: 2).map { counts[$0] + ($0 + 1 < counts.count ? counts[$0 + 1] : 0) }
  }

  /// Adds another loop's, in the longer bins of the two.
  mutating func merge(_ other: WriteBins) {
    var other = other
    while other.length < length { other.fold() }
    while length < other.length { fold() }
    if counts.count < other.counts.count {
      counts.append(contentsOf: repeatElement(0, count: other.counts.count - counts.count))
    }
    for (index, count) in other.counts.enumerated() { counts[index] += count }
  }
}
