/// How many segments had come at which time of the reader's clock, so that a connection's silence can be told without a
/// time of each of its segments.
struct SilenceClock {
  private var moments: [(received: Int, time: ContinuousClock.Instant)] = []
  /// The segments that had come `linger` ago.
  private(set) var received = 0

  /// Notes the segments that have come so far.
  ///
  /// - Returns: there are some that came less than `linger` ago.
  mutating func note(_ received: Int, at now: ContinuousClock.Instant, linger: Duration) -> Bool {
    if received > (moments.last?.received ?? self.received) { moments.append((received, now)) }
    let passed = moments.prefix { $0.time.duration(to: now) >= linger }
    if let last = passed.last { self.received = last.received }
    moments.removeFirst(passed.count)
    return !moments.isEmpty
  }
}
