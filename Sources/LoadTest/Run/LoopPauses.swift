import DequeModule

/// The times in which an event loop did not poll its work although something may have been due.
///
/// A loop polls every millisecond, and whenever a socket becomes writable. A longer time between polls is a pause: no
/// processor was free, the process was stopped, or the loop was busy. Another pause is the time until the loop returns
/// to work that it left although a socket was writable.
struct LoopPauses {
  private struct Pause {
    var from: Int64
    var to: Int64
    /// Nanoseconds of all pauses up to its end.
    var total: Int64
  }

  /// Usual nanoseconds between two polls: a timer's millisecond, and its lateness.
  private static let usual: Int64 = 2_000_000
  /// Older pauses are dropped.
  private static let most = 4_096

  private var last: Int64?
  private var beforeLast: Int64?
  private var recent: Deque<Pause> = []
  /// Whether the loop has left work that could be done until the next poll.
  var isBusy = false

  /// The loop polls its work.
  mutating func notePoll(at now: Int64) {
    defer { (beforeLast, last, isBusy) = (last, now, false) }
    guard let last, now - last > Self.usual || isBusy && now > last else { return }
    if let newest = recent.last, newest.to == last {
      recent[recent.count - 1].to = now
      recent[recent.count - 1].total += now - last
      return
    }
    recent.append(Pause(from: last, to: now, total: (recent.last?.total ?? 0) + now - last))
    if recent.count > Self.most { recent.removeFirst() }
  }

  /// How much of the time from `due` until `now` the loop did not run: all of it, if it was written at the first poll
  /// after `due`; otherwise the pauses in it.
  func share(from due: Int64, to now: Int64) -> Int64 {
    guard now > due else { return 0 }
    guard let beforeLast, due <= beforeLast else { return now - due }
    guard let newest = recent.last, newest.to > due else { return 0 }
    // The first that ends after it.
    var (low, high) = (0, recent.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if recent[middle].to > due { high = middle } else { low = middle + 1 }
    }
    let first = recent[low]
    let inFirst = first.to - max(first.from, due)
    return min(now - due, newest.total - first.total + inFirst)
  }
}
