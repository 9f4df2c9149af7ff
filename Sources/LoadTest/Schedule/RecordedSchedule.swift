/// When notifications of a trace are due: as they were recorded, or faster or slower by a factor.
///
/// A pure function like `Schedule`. Of the trace it has every `step`-th notification, beginning with number `first`,
/// for one of several senders of a load.
package struct RecordedSchedule: Sendable {
  private let replay: Replay
  private let first: Int
  private let step: Int
  /// Nanoseconds of the trace in a second.
  private let pace: Double
  /// Notifications in all.
  package let count: Int

  /// - Parameters:
  ///   - speed: more than 0; 2 is twice as fast as recorded.
  ///   - first: from 0.
  ///   - step: at least 1.
  package init(_ replay: Replay, speed: Double, first: Int = 0, step: Int = 1) {
    precondition(speed > 0 && speed.isFinite && first >= 0 && step >= 1, "not a schedule")
    self.replay = replay
    self.first = first
    self.step = step
    pace = 1e9 * speed
    count = max(0, (replay.count - first + step - 1) / step)
  }

  /// Seconds from the start until notification `index` (from 0) is due, at most thirty years; `nil` if it does not
  /// exist.
  package func time(of index: Int) -> Double? {
    guard index >= 0, index < count else { return nil }
    return min(1e9, Double(replay.time(of: first + index * step)) / pace)
  }

  /// The number of notifications with a due time not later than `time`.
  ///
  /// - Parameter known: the number known to be due; the search begins there.
  package func count(at time: Double, known: Int = 0) -> Int {
    func isDue(_ index: Int) -> Bool { self.time(of: index).map { $0 <= time } ?? false }
    var low = max(0, min(known, count))
    var width = 1
    while low + width <= count, isDue(low + width - 1) {
      low += width
      width *= 2
    }
    // The first that is not due is not further than this.
    var high = min(count, low + width - 1)
    while low < high {
      let middle = (low + high) / 2
      if isDue(middle) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
