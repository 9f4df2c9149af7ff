import Bytes
import PacketCapture

/// When notifications were written: one entry per packet that ended at least one, not one per notification.
///
/// It answers how long an error response took. The oldest entries are forgotten at the limit.
struct WriteTimes {
  private struct Entry {
    var firstIndex: Int
    var time: Timestamp
  }

  private let maximum: Int
  private var lastTime = Timestamp.none
  /// A ring once it is full.
  private var entries: [Entry] = []
  /// The oldest one.
  private var head = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  /// Begins to fetch where the next entry goes.
  @inline(__always)
  func prefetch() {
    let latest = entries.count < maximum ? entries.count - 1 : head
    entries.prefetch(latest..<latest + 1)
  }

  mutating func note(_ index: Int, _ time: Timestamp) {
    if time == lastTime && !entries.isEmpty { return }
    lastTime = time
    let entry = Entry(firstIndex: index, time: time)
    if entries.count < maximum { return entries.append(entry) }
    entries[head] = entry
    head = head + 1 == maximum ? 0 : head + 1
  }

  /// When notification `index` was written; `nil` when that is forgotten or has no time.
  func time(of index: Int) -> Timestamp? {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entry(middle).firstIndex <= index { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? entry(low - 1).time : nil
  }

  /// By age, the oldest first.
  private func entry(_ number: Int) -> Entry {
    let place = head + number
    return entries[place < entries.count ? place : place - entries.count]
  }
}
