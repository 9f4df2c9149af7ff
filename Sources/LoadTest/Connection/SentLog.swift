import DequeModule

/// Which notifications a connection has carried, in the order they were written, by write and not one by one.
///
/// A position is a notification's number on its connection, an index its number in the run of its event loop; pieces of
/// both run in step. So what an error response leaves open is told in pieces, and is made again from them.
struct SentLog {
  /// Notifications with consecutive indexes.
  struct Piece: Equatable {
    var index: Int
    var count: Int
    /// How often each of them was written before.
    var attempt: Int
  }

  private struct Entry {
    var position: Int
    var piece: Piece
    /// Nanoseconds of the monotonic clock.
    var written: Int64
  }

  private var entries: Deque<Entry> = []
  /// Positions so far.
  private(set) var count = 0

  mutating func append(_ piece: Piece, written: Int64) {
    entries.append(Entry(position: count, piece: piece, written: written))
    count += piece.count
  }

  /// When the notification at `position` was written; `nil` when it was not.
  func written(at position: Int) -> Int64? { entry(at: position).map { entries[$0].written } }

  /// What was written from `position` on, in order.
  func pieces(from position: Int) -> [Piece] {
    guard position < count, let first = entry(at: max(0, position)) else { return [] }
    var pieces: [Piece] = []
    for entry in entries[first...] {
      let skipped = max(0, position - entry.position)
      var piece = entry.piece
      piece.index += skipped
      piece.count -= skipped
      pieces.append(piece)
    }
    return pieces
  }

  private func entry(at position: Int) -> Int? {
    guard position >= 0, position < count else { return nil }
    var (low, high) = (0, entries.count)
    while low + 1 < high {
      let middle = (low + high) / 2
      if entries[middle].position <= position { low = middle } else { high = middle }
    }
    return low < entries.count ? low : nil
  }
}
