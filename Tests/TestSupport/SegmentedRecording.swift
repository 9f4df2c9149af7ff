/// A recorded conversation in the pieces a capture shows: segments in the order they were seen, some of them lost, out
/// of order or twice.
///
///     var pieces = SegmentedRecording(recorded)
///     pieces.cut(1...1_460, using: &random)
///     pieces.lose(700..<900, of: .client)
///     for event in pieces.events() { … }
public struct SegmentedRecording: Sendable {
  public typealias Side = RecordedConversation.Side

  /// Bytes of one side's stream as one segment has them.
  public struct Piece: Sendable, Equatable {
    public var side: Side
    /// Where in the side's stream the bytes stand; 0 is the first byte after the SYN.
    public var offset: Int
    public var bytes: [UInt8]

    public var range: Range<Int> { offset..<offset + bytes.count }

    public init(side: Side, offset: Int, bytes: [UInt8]) {
      self.side = side
      self.offset = offset
      self.bytes = bytes
    }

    func part(_ part: Range<Int>) -> Piece {
      let inside = bytes[part.lowerBound - offset..<part.upperBound - offset]
      return Piece(side: side, offset: part.lowerBound, bytes: Array(inside))
    }
  }

  /// What a reassembled stream hands on.
  public enum Event: Sendable, Equatable {
    case bytes(Side, offset: Int, [UInt8])
    /// Bytes that were sent and never seen.
    case gap(Side, offset: Int, count: Int)
    case end(Side)
  }

  public var pieces: [Piece] = []
  /// How many bytes each side sent, lost ones included.
  public let sent: [Side: Int]

  /// One piece for each flush.
  public init(_ recorded: RecordedConversation) {
    var next: [Side: Int] = [:]
    for step in recorded.steps {
      pieces.append(Piece(side: step.side, offset: next[step.side, default: 0], bytes: step.bytes))
      next[step.side, default: 0] += step.bytes.count
    }
    sent = next
  }

  // MARK: other segments

  /// Makes one piece of neighbours of one side that follow each other.
  public mutating func join() {
    var joined: [Piece] = []
    for piece in pieces {
      if let last = joined.last, last.side == piece.side, last.range.upperBound == piece.offset {
        joined[joined.count - 1].bytes += piece.bytes
      } else {
        joined.append(piece)
      }
    }
    pieces = joined
  }

  /// Cuts every piece into pieces of `size` bytes; the last has the rest.
  public mutating func cut(every size: Int) { cut { size } }

  /// Cuts every piece into pieces of random sizes.
  public mutating func cut(_ sizes: ClosedRange<Int>, using random: inout SeededGenerator) {
    cut { random.number(sizes) }
  }

  private mutating func cut(_ size: () -> Int) {
    pieces = pieces.flatMap { piece in
      var cut: [Piece] = []
      var offset = piece.offset
      while offset < piece.range.upperBound {
        let end = min(offset + max(1, size()), piece.range.upperBound)
        cut.append(piece.part(offset..<end))
        offset = end
      }
      return cut
    }
  }

  // MARK: what goes wrong

  /// The piece at `index` was not seen.
  public mutating func lose(at index: Int) { pieces.remove(at: index) }

  /// These bytes of one side's stream were not seen; pieces they stand in are cut.
  public mutating func lose(_ lost: Range<Int>, of side: Side) {
    pieces = pieces.flatMap { piece in
      guard piece.side == side, piece.range.overlaps(lost) else { return [piece] }
      var left: [Piece] = []
      if piece.offset < lost.lowerBound { left.append(piece.part(piece.offset..<lost.lowerBound)) }
      if piece.range.upperBound > lost.upperBound { left.append(piece.part(lost.upperBound..<piece.range.upperBound)) }
      return left
    }
  }

  /// The recording starts here: nothing before the piece at `index` was seen.
  public mutating func loseBeginning(before index: Int) { pieces.removeFirst(index) }

  /// One side was not recorded at all.
  public mutating func loseAll(of side: Side) { pieces.removeAll { $0.side == side } }

  /// The piece at `index` was seen after the one that follows it. If they are of different sides, the capture shows an
  /// answer before what it answers; tshark 4.0 does not decrypt on when that happens to a handshake.
  public mutating func swap(at index: Int) { pieces.swapAt(index, index + 1) }

  /// The piece at `index` was seen twice; the second time `later` pieces on.
  public mutating func duplicate(at index: Int, later: Int = 1) {
    pieces.insert(pieces[index], at: min(index + later, pieces.count))
  }

  // MARK: reassembled

  /// What a reassembler makes of the pieces: each side's bytes in order and once, a gap as soon as a piece after bytes
  /// that never come is seen. With `ends`, both streams end after the last piece.
  public func events(ends: Bool = true) -> [Event] {
    var events: [Event] = []
    var next: [Side: Int] = [:]
    var held: [Piece] = []
    for (index, piece) in pieces.enumerated() {
      let side = piece.side
      var position = next[side, default: 0]
      held.append(piece)
      while held.contains(where: { $0.side == side }) {
        if let found = held.firstIndex(where: { $0.side == side && $0.offset <= position }) {
          let ready = held.remove(at: found)
          guard ready.range.upperBound > position else { continue }
          events.append(.bytes(side, offset: position, ready.part(position..<ready.range.upperBound).bytes))
          position = ready.range.upperBound
        } else {
          let known = (held + pieces[(index + 1)...]).filter { $0.side == side && $0.range.upperBound > position }
          guard let nearest = known.map(\.offset).min(), nearest > position else { break }
          events.append(.gap(side, offset: position, count: nearest - position))
          position = nearest
        }
      }
      next[side] = position
    }
    guard ends else { return events }
    for side in Side.allCases {
      let position = next[side, default: 0]
      let count = sent[side, default: 0] - position
      if count > 0 { events.append(.gap(side, offset: position, count: count)) }
      events.append(.end(side))
    }
    return events
  }
}
