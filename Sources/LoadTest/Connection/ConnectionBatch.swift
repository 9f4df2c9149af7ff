import Bytes

/// The notifications that a connection collects for its next write.
///
/// The buffer stays for the next batch, so collecting allocates nothing.
struct ConnectionBatch: ~Copyable {
  /// Most bytes and notifications of a batch.
  struct Limits {
    var bytes: Int
    var notifications: Int
  }

  let limits: Limits
  private(set) var bytes = ByteWriter(capacity: 20_000)
  private(set) var pieces: [(piece: SentLog.Piece, due: DueTimes)] = []
  private(set) var count = 0
  /// When its first notification came, nanoseconds of the monotonic clock.
  private(set) var began: Int64 = 0
  /// Where each notification begins, if their times are written into them later; empty otherwise.
  private var starts: [Int] = []
  /// The next notification would have made it longer than it may be.
  private var isOutOfRoom = false

  init(_ limits: Limits) { self.limits = limits }

  /// - Parameter room: how many more notifications its connection takes at all.
  func isFull(room: Int) -> Bool { isOutOfRoom || bytes.count >= limits.bytes || count >= most(room) }

  private func most(_ room: Int) -> Int { min(limits.notifications, room) }

  /// Encodes as many of the piece as fit, and returns how many. One that makes the batch longer than it may be goes into
  /// the next, unless it is alone.
  ///
  /// - Parameters:
  ///   - encode: writes the notification with that offset in the piece.
  ///   - keep: is called when it stays.
  @inline(__always)
  mutating func collect<Note>(
    _ piece: SentLog.Piece, room: Int, now: Int64, encode: (_ offset: Int, inout ByteWriter) -> Note,
    keep: (Note) -> Void, due: (_ taken: Int) -> DueTimes
  ) -> Int {
    if count == 0 { began = now }
    let wanted = min(piece.count, most(room) - count)
    var taken = 0
    while taken < wanted, bytes.count < limits.bytes {
      let length = bytes.count
      let note = encode(taken, &bytes)
      if bytes.count > limits.bytes, count + taken > 0 {
        bytes.truncate(to: length)
        isOutOfRoom = true
        break
      }
      keep(note)
      taken += 1
    }
    if taken > 0 {
      var part = piece
      part.count = taken
      pieces.append((part, due(taken)))
      count += taken
    }
    return taken
  }

  /// Notes where the notifications that were collected last begin.
  mutating func noteStarts(_ more: [Int]) { starts += more }

  /// Writes the times of all notifications into those of their payloads that have some.
  ///
  /// - Parameters:
  ///   - written: UNIX nanoseconds.
  ///   - due: returns when the notification at a place of a piece was due, in UNIX nanoseconds; 0: it is not known.
  mutating func stamp(written: Int64, due: (SentLog.Piece, DueTimes, _ place: Int) -> Int64) {
    var first = 0
    for (piece, times) in pieces {
      for place in 0..<piece.count where first + place < starts.count {
        let end = first + place + 1 < starts.count ? starts[first + place + 1] : bytes.count
        bytes.stamp(starts[first + place]..<end, due: due(piece, times, place), written: written)
      }
      first += piece.count
    }
  }

  mutating func removeAll() {
    bytes.removeAll()
    starts.removeAll(keepingCapacity: true)
    pieces.removeAll(keepingCapacity: true)
    count = 0
    isOutOfRoom = false
  }

  /// Its pieces, to be written elsewhere.
  var unwritten: [SentLog.Piece] {
    pieces.map { piece, due in
      var piece = piece
      piece.due = due.first
      return piece
    }
  }
}
