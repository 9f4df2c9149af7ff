import BinaryProtocol
import DequeModule

/// The notifications that a connection has carried, in the order of writing, as writes and not individually.
///
/// A position is a notification's number on its connection, an index its number in the run of its event loop; within a
/// piece both increase together. So notifications to resend are described by pieces, and generated again from pieces.
///
/// A connection without errors receives no response, so all its writes stay unsettled and have to be kept. Old writes
/// are packed, without their times. The writes of the only connection of a loop are consecutive, and are joined: their
/// memory does not grow. With several connections a write takes about four bytes, until `isFull` causes a request for a
/// proof, which settles everything.
struct SentLog {
  /// Notifications with consecutive indexes.
  struct Piece: Equatable {
    var index: Int
    var count: Int
    /// How often each of the notifications was written before.
    var attempt: Int
    /// How many consecutive connections that carried the notifications ended without an error response.
    var silences = 0
    /// How many of these connections carried nothing else.
    var alone = 0
    /// How many suspects a connection takes.
    var portion = Int.max
    /// Whether the fate of an earlier sending of these notifications is unknown.
    var isOpen = false
    /// The due time of the first notification, for its first or its next sending; nanoseconds of the monotonic clock.
    var due: Int64?

    var end: Int { index + count }

    /// Whether two silent ends make chance unlikely. A rejected notification without identifier (command 0) ends each
    /// of its connections silently, and discards the notifications after it.
    var isSuspect: Bool { silences >= 2 }

    /// Notes that one of `count` notifications, of this piece and others, may have ended the connection. Next time
    /// fewer are sent together, in the end only one.
    mutating func suspect(among count: Int) {
      silences += 1
      if count == 1 { alone += 1 }
      portion = min(16_384, max(1, count / 8))
    }

    /// Whether the pieces are equal apart from index and count.
    func isLike(_ other: Piece) -> Bool {
      attempt == other.attempt && silences == other.silences && alone == other.alone && portion == other.portion
        && isOpen == other.isOpen && due == other.due
    }

    /// Pieces sorted by index, with consecutive ones joined. No notification is in two pieces.
    static func sorted(_ pieces: some Collection<Piece>) -> [Piece] {
      var joined: [Piece] = []
      // An array that is made of an empty deque writes its count into the runtime's only empty array: a race of two loops.
      if pieces.isEmpty { return joined }
      for piece in pieces.sorted(by: { $0.index < $1.index }) {
        if let last = joined.last, last.end == piece.index, last.isLike(piece) {
          joined[joined.count - 1].count += piece.count
        } else {
          joined.append(piece)
        }
      }
      return joined
    }
  }

  private struct Entry {
    var position: Int
    var piece: Piece
    /// Nanoseconds of the monotonic clock.
    var written: Int64
  }

  /// The last writes, at least `recent`; `old` has all writes before.
  private var entries: Deque<Entry> = []
  private var old = PackedWrites()
  private let recent: Int
  private let limit: Int
  /// Positions so far.
  private(set) var count = 0

  /// - Parameters:
  ///   - recent: how many writes' times are kept: an error response comes that late at most, if its latency is to be exact.
  ///   - limit: bytes of memory for older ones, about.
  init(recent: Int = 4_096, limit: Int = 1 << 20) {
    self.recent = recent
    self.limit = limit
  }

  /// Whether the older writes take the memory allowed.
  var isFull: Bool { old.memory >= limit }
  /// Approximate bytes of the older writes.
  var oldMemory: Int { old.memory }

  mutating func append(_ piece: Piece, written: Int64) {
    entries.append(Entry(position: count, piece: piece, written: written))
    count += piece.count
    guard entries.count >= 2 * recent else { return }
    for entry in entries.prefix(recent) {
      old.append(entry.piece, position: entry.position, written: entry.written)
    }
    entries.removeFirst(recent)
  }

  /// When the notification at `position` was written; `nil` when it was not. Of old ones, when one before it was.
  func written(at position: Int) -> Int64? {
    guard position >= 0, position < count else { return nil }
    return entry(at: position).map { entries[$0].written } ?? old.written(at: position)
  }

  /// The pieces written from `position` on, in order.
  func pieces(from position: Int) -> [Piece] {
    guard position < count else { return [] }
    var pieces: [Piece] = []
    let first = entry(at: position)
    if first == nil { old.read(from: position, into: &pieces) }
    for entry in entries[(first ?? 0)...] {
      let skipped = max(0, position - entry.position)
      var piece = entry.piece
      piece.index += skipped
      piece.count -= skipped
      pieces.append(piece)
    }
    return pieces
  }

  /// The pieces at these positions only.
  func pieces(in positions: Range<Int>) -> [Piece] {
    var pieces = pieces(from: positions.lowerBound)
    var over = count - positions.upperBound
    while over > 0, let last = pieces.last {
      if last.count > over { pieces[pieces.count - 1].count -= over } else { pieces.removeLast() }
      over -= last.count
    }
    return pieces
  }

  /// Which of the last writes it is in; `nil` when it is older.
  private func entry(at position: Int) -> Int? {
    guard let oldest = entries.first, oldest.position <= position else { return nil }
    var (low, high) = (0, entries.count)
    while low + 1 < high {
      let middle = (low + high) / 2
      if entries[middle].position <= position { low = middle } else { high = middle }
    }
    return low
  }
}

extension LoadPlan {
  /// A connection's share of the memory for unsettled notifications.
  var unsettledMemoryOfConnection: Int { max(4_096, unsettledMemory / max(1, connections.count)) }

  /// A connection's log. All logs together keep to what the plan allows, and to some megabytes of recent writes.
  func makeLog() -> SentLog {
    SentLog(recent: min(4_096, max(64, (1 << 16) / max(1, connections.count))), limit: unsettledMemoryOfConnection)
  }
}
