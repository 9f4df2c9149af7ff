import DequeModule

/// Pieces that are written again, before all new notifications.
struct Resends {
  private var queue: Deque<SentLog.Piece> = []
  /// Whether `queue` is sorted. Several connections may add pieces in any order, so the queue is sorted before reading.
  private var isSorted = true
  /// Pieces with a notification suspected of silently ending connections. They are sent on separate connections.
  private var suspects: Deque<SentLog.Piece> = []

  var isEmpty: Bool { queue.isEmpty && suspects.isEmpty }
  /// Whether there are pieces that any connection may send.
  var hasNext: Bool { !queue.isEmpty }
  var hasSuspects: Bool { !suspects.isEmpty }
  /// The number of notifications.
  var count: Int { queue.reduce(0) { $0 + $1.count } + suspects.reduce(0) { $0 + $1.count } }
  /// All pieces, suspects last.
  ///
  /// Not made by `Array.init`, as in `SentLog.Piece.sorted`.
  var pieces: [SentLog.Piece] { queue.map { $0 } + suspects.map { $0 } }

  mutating func add(_ piece: SentLog.Piece) {
    if piece.isSuspect { suspects.append(piece) } else { queue.append(piece) }
    isSorted = false
  }

  /// The first of the pieces that any connection may send.
  mutating func next() -> SentLog.Piece? {
    if !isSorted { sort() }
    return queue.first
  }

  private mutating func sort() {
    queue = Deque(SentLog.Piece.sorted(queue))
    suspects = Deque(SentLog.Piece.sorted(suspects))
    isSorted = true
  }

  /// Takes so many of the first piece.
  mutating func take(_ count: Int) {
    let first = queue.startIndex
    queue[first].index += count
    queue[first].count -= count
    if queue[first].count == 0 { queue.removeFirst() }
  }

  /// Takes the suspects that go over a connection of their own.
  mutating func takeSuspects() -> [SentLog.Piece] {
    guard let first = suspects.first else { return [] }
    var portion = first.portion
    var taken: [SentLog.Piece] = []
    while portion > 0, var piece = suspects.popFirst() {
      portion = min(portion, piece.portion)
      let count = min(portion, piece.count)
      if count < piece.count {
        var rest = piece
        rest.index += count
        rest.count -= count
        suspects.prepend(rest)
        piece.count = count
      }
      if count > 0 { taken.append(piece) }
      portion -= count
    }
    return taken
  }
}
