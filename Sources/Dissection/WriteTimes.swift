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
  private var entries: [Entry] = []
  /// Entries before this one are forgotten.
  private var head = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  mutating func note(_ index: Int, _ time: Timestamp) {
    if time == lastTime && !entries.isEmpty { return }
    lastTime = time
    if entries.count - head >= maximum {
      head += 1
      if head >= maximum {
        entries.removeFirst(head)
        head = 0
      }
    }
    entries.append(Entry(firstIndex: index, time: time))
  }

  /// When notification `index` was written; `nil` when that is forgotten or has no time.
  func time(of index: Int) -> Timestamp? {
    var (low, high) = (head, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].firstIndex <= index { low = middle + 1 } else { high = middle }
    }
    return low > head ? entries[low - 1].time : nil
  }
}
