/// Older writes of a connection, packed: consecutive ones are one piece, and a piece takes a few bytes.
///
/// Positions, indexes and attempts stay exact. Of times, that of the first write of each block is kept.
struct PackedWrites {
  /// A piece is encoded as its distance from the end of the previous one and its count; other fields only when not 0:
  ///
  /// ```
  /// gap (zigzag) << 1 | has more    count    [attempt << 1 | is open  silences  alone  portion]     all as LEB128
  /// ```
  private struct Block {
    /// Of its first piece.
    var position: Int
    var index: Int
    /// Nanoseconds of the monotonic clock.
    var written: Int64
    var bytes: [UInt8]
  }

  private static let blockLength = 512
  /// Most that a piece takes.
  private static let longestPiece = 60

  private var blocks: [Block] = []
  /// Where the last packed piece ends.
  private var packedEnd = 0
  /// The last piece may still run on.
  private var last: (position: Int, piece: SentLog.Piece, written: Int64)?

  /// Bytes of memory it takes, about.
  var memory: Int { blocks.count * (Self.blockLength + Self.longestPiece + MemoryLayout<Block>.stride + 48) }

  mutating func append(_ piece: SentLog.Piece, position: Int, written: Int64) {
    if let last, last.piece.end == piece.index, last.piece.isLike(piece) {
      self.last?.piece.count += piece.count
      return
    }
    packLast()
    last = (position, piece, written)
  }

  private mutating func packLast() {
    guard let (position, piece, written) = last else { return }
    if blocks.last.map({ $0.bytes.count >= Self.blockLength }) ?? true {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Self.blockLength + Self.longestPiece)
      blocks.append(Block(position: position, index: piece.index, written: written, bytes: bytes))
      packedEnd = piece.index
    }
    let gap = piece.index - packedEnd
    let hasMore = piece.attempt != 0 || piece.silences != 0 || piece.alone != 0 || piece.portion != .max || piece.isOpen
    var words = [UInt64(bitPattern: Int64((gap << 1) ^ (gap >> 63))) << 1 | (hasMore ? 1 : 0), UInt64(piece.count)]
    if hasMore {
      words += [piece.attempt << 1 | (piece.isOpen ? 1 : 0), piece.silences, piece.alone, piece.portion].map {
        UInt64($0)
      }
    }
    for word in words {
      var rest = word
      while rest >= 0x80 {
        blocks[blocks.count - 1].bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      blocks[blocks.count - 1].bytes.append(UInt8(rest))
    }
    packedEnd = piece.end
  }

  /// When the notification at `position` was written, or one before it; `nil` if it is not in here.
  func written(at position: Int) -> Int64? {
    if let last, last.position <= position { return last.written }
    return block(at: position).map { blocks[$0].written }
  }

  /// Appends the writes from `position` on to `pieces`.
  func read(from position: Int, into pieces: inout [SentLog.Piece]) {
    func add(_ piece: SentLog.Piece, at place: Int) {
      let skipped = max(0, position - place)
      guard skipped < piece.count else { return }
      var piece = piece
      piece.index += skipped
      piece.count -= skipped
      pieces.append(piece)
    }
    for block in blocks[(block(at: position) ?? 0)...] {
      var (offset, place, end) = (0, block.position, block.index)
      while offset < block.bytes.count {
        let piece = Self.piece(block.bytes, &offset, behind: end)
        add(piece, at: place)
        (place, end) = (place + piece.count, piece.end)
      }
    }
    if let last { add(last.piece, at: last.position) }
  }

  private static func piece(_ bytes: [UInt8], _ offset: inout Int, behind end: Int) -> SentLog.Piece {
    func word() -> UInt64 {
      var (value, shift): (UInt64, UInt64) = (0, 0)
      while true {
        let byte = bytes[offset]
        offset += 1
        value |= UInt64(byte & 0x7f) << shift
        shift += 7
        if byte < 0x80 { return value }
      }
    }
    let head = word()
    let zigzag = Int64(bitPattern: head >> 1)
    let gap = Int((zigzag >> 1) ^ -(zigzag & 1))
    var piece = SentLog.Piece(index: end + gap, count: Int(word()), attempt: 0)
    if head & 1 == 1 {
      let attempt = word()
      (piece.attempt, piece.isOpen, piece.silences) = (Int(attempt >> 1), attempt & 1 == 1, Int(word()))
      (piece.alone, piece.portion) = (Int(word()), Int(word()))
    }
    return piece
  }

  /// The last block that begins at `position` or before it.
  private func block(at position: Int) -> Int? {
    var (low, high) = (0, blocks.count)
    while low < high {
      let middle = (low + high) / 2
      if blocks[middle].position <= position { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}
