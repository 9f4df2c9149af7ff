/// The number of segments received by times of the reader's clock, to detect silent connections without a time for each
/// segment.
struct SilenceClock {
  private var moments: [(received: Int, time: ContinuousClock.Instant)] = []
  /// The number of segments received more than `linger` ago.
  private(set) var received = 0

  /// Notes the number of segments received so far.
  ///
  /// - Returns: whether any segment was received less than `linger` ago.
  mutating func note(_ received: Int, at now: ContinuousClock.Instant, linger: Duration) -> Bool {
    if received > (moments.last?.received ?? self.received) { moments.append((received, now)) }
    let passed = moments.prefix { $0.time.duration(to: now) >= linger }
    if let last = passed.last { self.received = last.received }
    moments.removeFirst(passed.count)
    return !moments.isEmpty
  }
}
