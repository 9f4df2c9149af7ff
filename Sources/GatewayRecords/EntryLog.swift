import DequeModule

/// The entries of a history, the oldest first.
///
/// They are in chunks: while somebody reads a copy, the next append copies a chunk and not all entries. A chunk is given
/// up as a whole, so up to one chunk more than what is left is held.
struct EntryLog: Sendable {
  private struct Chunk: Sendable {
    var entries: [EventHistory.Entry] = []
    var bytes = 0
    /// The number of the latest notification, here or in an earlier chunk.
    var last = 0
  }

  /// A chunk has no more entries than this, and none is added to one with this many bytes.
  private static let maximumEntries = 256
  private static let maximumBytes = 128 << 10

  private var chunks: Deque<Chunk> = []
  /// Entries of the first chunk that were removed.
  private var removed = 0
  private(set) var count = 0

  mutating func append(_ entry: EventHistory.Entry) {
    let isFull = chunks.last.map { $0.entries.count >= Self.maximumEntries || $0.bytes >= Self.maximumBytes } ?? true
    if isFull { chunks.append(Chunk(last: chunks.last?.last ?? 0)) }
    let place = chunks.count - 1
    chunks[place].entries.append(entry)
    chunks[place].bytes += entry.bytes
    if entry.count > 0 { chunks[place].last = entry.first + entry.count - 1 }
    count += 1
  }

  mutating func popFirst() -> EventHistory.Entry? {
    guard let first = chunks.first else { return nil }
    let entry = first.entries[removed]
    removed += 1
    count -= 1
    if removed == first.entries.count {
      chunks.removeFirst()
      removed = 0
    }
    return entry
  }

  /// Shows entries, until `body` returns `false`.
  ///
  /// - Parameter number: only entries with a notification after this one; `nil`: all entries.
  func each(after number: Int? = nil, _ body: (EventHistory.Entry) -> Bool) {
    var start = 0
    if let number {
      // The first chunk with a later notification.
      var end = chunks.count
      while start < end {
        let middle = (start + end) / 2
        if chunks[middle].last > number { end = middle } else { start = middle + 1 }
      }
    }
    for place in start..<chunks.count {
      for entry in chunks[place].entries[(place == 0 ? removed : 0)...] {
        if let number, entry.count == 0 || entry.first + entry.count - 1 <= number { continue }
        guard body(entry) else { return }
      }
    }
  }
}
