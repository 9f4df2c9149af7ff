/// Sorts packets by time within a window: a packet waits until the latest time is later than its own by more than the
/// window.
///
/// A binary heap with the earliest packet first; equal times in the order of arrival.
struct PacketOrder {
  private struct Entry {
    var held: HeldPacket
    var time: Timestamp
    var serial: Int
    /// The bytes counted against the limit.
    var cost: Int { held.bytes.count + PacketOrder.overhead }

    func precedes(_ other: Entry) -> Bool {
      time != other.time ? time < other.time : serial < other.serial
    }
  }

  /// The memory that a waiting packet needs in addition to its bytes.
  private static let overhead = 112

  private let window: Int64
  private let maximumBytes: Int
  private var heap: [Entry] = []
  private var bytes = 0
  private var serial = 0
  private var latest = Timestamp.none
  /// Whether packets were returned too early because the limit was reached.
  private(set) var wasFull = false

  init(window: Int64, maximumBytes: Int) {
    self.window = window
    self.maximumBytes = maximumBytes
  }

  var isEmpty: Bool { heap.isEmpty }

  mutating func add(_ held: HeldPacket) {
    // A packet without a time gets the latest time, so it keeps its position.
    let time = held.packet.time.isKnown ? held.packet.time : latest
    latest = max(latest, time)
    serial += 1
    let entry = Entry(held: held, time: time, serial: serial)
    bytes += entry.cost
    heap.append(entry)
    rise(from: heap.count - 1)
  }

  /// Removes and returns the earliest packet if it no longer has to wait, or, with `isLast`, in any case.
  mutating func next(isLast: Bool) -> HeldPacket? {
    guard let first = heap.first else { return nil }
    if !isLast {
      let isFull = bytes > maximumBytes
      let isDue = window < .max && latest.nanoseconds(since: first.time).map { $0 > window } ?? true
      guard isDue || isFull else { return nil }
      if !isDue { wasFull = true }
    }
    bytes -= first.cost
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    return first.held
  }

  private mutating func rise(from start: Int) {
    var place = start
    while place > 0 {
      let parent = (place - 1) / 2
      guard heap[place].precedes(heap[parent]) else { return }
      heap.swapAt(place, parent)
      place = parent
    }
  }

  private mutating func sink() {
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count && heap[child].precedes(heap[least]) {
        least = child
      }
      if least == place { return }
      heap.swapAt(place, least)
      place = least
    }
  }
}
