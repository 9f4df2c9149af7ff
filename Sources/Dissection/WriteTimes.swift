import Bytes
import PacketCapture
import Records

/// The times at which notifications were written: one entry per packet in which notifications end, or without packets
/// per time, not one per notification.
///
/// From these follow the latency of an error response, and the notifications that its packet acknowledges. At the limit
/// the oldest entries are overwritten.
struct WriteTimes {
  private struct Entry {
    var firstIndex: Int
    var time: Timestamp
    /// The sequence number after which the packet's notifications end; earlier entries' notifications end at or before
    /// it.
    var sequence: UInt32
  }

  /// The distance of sequence numbers from which on an acknowledgement is invalid.
  private static let farthest = 1 << 30

  private let maximum: Int
  private var last: (packet: Int, time: Timestamp)?
  /// A ring once it is full.
  private var entries: [Entry] = []
  /// The index of the oldest entry.
  private var head = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  /// Bytes of the entries.
  var heldBytes: Int { entries.count * MemoryLayout<Entry>.stride }

  /// Removes all times.
  mutating func forget() { self = WriteTimes(maximum: maximum) }

  /// Prefetches the place of the next entry.
  @inline(__always)
  func prefetch() {
    let latest = entries.count < maximum ? entries.count - 1 : head
    entries.prefetch(latest..<latest + 1)
  }

  /// - Parameter sequence: the sequence number of the first byte in which notification `index` may end.
  mutating func note(_ index: Int, _ mark: CapturePosition, _ sequence: UInt32) {
    if let last, last == (mark.packet, mark.time) { return }
    last = (mark.packet, mark.time)
    let entry = Entry(firstIndex: index, time: mark.time, sequence: sequence)
    if entries.count < maximum { return entries.append(entry) }
    entries[head] = entry
    head = head + 1 == maximum ? 0 : head + 1
  }

  /// The time at which notification `index` was written; `nil` if the time is overwritten or unknown.
  func time(of index: Int) -> Timestamp? {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entry(middle).firstIndex <= index { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? entry(low - 1).time : nil
  }

  /// The number of notifications that had arrived according to an acknowledgement. A partly acknowledged packet counts,
  /// because a capture may have larger segments than the network. `nil` if the number acknowledges no written byte, as
  /// in captures made without a TCP stack.
  func count(acknowledgedBy number: UInt32) -> Int? {
    func distance(_ position: Int) -> Int {
      SequenceNumber(rawValue: number).distance(from: SequenceNumber(rawValue: entry(position).sequence))
    }
    guard !entries.isEmpty, distance(entries.count - 1) < Self.farthest else { return nil }
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if distance(middle) > 0 { low = middle + 1 } else { high = middle }
    }
    if low == entries.count { return .max }
    return low > 0 || head > 0 || entries.count == maximum ? entry(low).firstIndex : nil
  }

  /// The entry of this age; 0: the oldest.
  private func entry(_ number: Int) -> Entry {
    let place = head + number
    return entries[place < entries.count ? place : place - entries.count]
  }
}
