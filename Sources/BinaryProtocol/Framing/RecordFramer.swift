import Bytes

/// Cuts one direction's bytes into records, and finds the next record after a gap or damage.
///
/// It receives the pieces of a stream in their order, each with a mark of the caller's choice (such as its packet), and
/// the lengths of gaps. While boundaries are known, records are returned as positions in the borrowed bytes; only a
/// record that is spread over several pieces is copied. Once boundaries are lost, it collects bytes until the grammar
/// is sure of a record. A header seen before a gap already shows where the next record starts; that position takes
/// precedence over a search.
///
/// `read`, `gap` with `readFound`, and `finish` with `readFound` are all that is needed. `next` and `nextFound` return
/// one result at a time. In this package, `endOfRecord`, `keepBeginning` and `completeBeginning` are cheaper paths
/// around `next`; each of them reports when it does not apply, and `next` then continues.
///
/// Memory: the longest record of the grammar's limits, and in a search at most 64 KiB more.
public struct RecordFramer<Grammar: RecordGrammar, Mark: Sendable>: Sendable {
  /// The next step in the stream.
  public enum Step {
    /// A record at this place of the bytes that are being read.
    case record(Range<Int>)
    /// A record that came in several pieces: `assembled`, which begins at `start`.
    case assembled
    /// A record that a search found.
    case recovered([UInt8], offset: Int, mark: Mark)
    case damage(StreamDamage<Mark>)
    /// All bytes are read or kept.
    case done
  }

  @usableFromInline
  enum State: Sendable {
    /// The next byte begins a record; nothing is kept.
    case between
    /// `kept` begins a record, which needs this many bytes before the next check; or the record is complete, as
    /// `assembled`, until it is dropped. The mark is the latest piece's.
    case within(needed: Int, mark: Mark)
    /// Boundaries are lost; `kept` is searched.
    indirect case searching(Search)
    /// Kept bytes were resolved; their results are handed out first.
    indirect case found(Findings, then: State)
  }

  @usableFromInline
  struct Search: Sendable {
    @usableFromInline var cause: DamageCause
    /// The first place in `kept` that is still to be looked at.
    @usableFromInline var cursor = 0
    /// The place in `kept`, or after it, where a header from before a gap says that a record starts.
    @usableFromInline var expected: Int?
    /// The marks of the pieces in `kept`, each with the stream offset at which its piece ends.
    @usableFromInline var marks: [(end: Int, mark: Mark)] = []

    @inlinable
    init(_ cause: DamageCause) { self.cause = cause }
  }

  /// The results for kept bytes, in order, from `head` on.
  @usableFromInline
  struct Findings: Sendable {
    @usableFromInline enum Element: Sendable {
      case record([UInt8], offset: Int, mark: Mark)
      case damage(StreamDamage<Mark>)
    }

    @usableFromInline var elements: [Element] = []
    @usableFromInline var head = 0

    @inlinable init() {}
    @inlinable var isEmpty: Bool { head == elements.count }

    @inlinable
    mutating func takeFirst() -> Step {
      defer { head += 1 }
      switch elements[head] {
      case .record(let bytes, let offset, let mark): return .recovered(bytes, offset: offset, mark: mark)
      case .damage(let damage): return .damage(damage)
      }
    }
  }

  @usableFromInline var heldGrammar: Grammar
  @usableFromInline var state: State
  /// Bytes not yet explained. Its memory is used again for the next record that comes in pieces.
  @usableFromInline var kept: [UInt8] = []
  @usableFromInline var keptStart = 0
  /// Nothing was damaged or missing since the captured beginning: records are taken by their lengths, as by the
  /// receiver, even if they look unlikely.
  @usableFromInline var isCertain: Bool
  @usableFromInline var sawUnreadable = false

  /// Makes a framer for a stream of which nothing was read.
  ///
  /// - Parameters:
  ///   - grammar: the properties of the records.
  ///   - isAligned: whether the first byte begins a record, because the beginning of the connection was captured.
  ///     Otherwise the framer searches for the first record.
  @inlinable
  public init(grammar: Grammar, isAligned: Bool) {
    heldGrammar = grammar
    state = isAligned ? .between : .searching(Search(.beforeStart))
    isCertain = isAligned
  }

  /// The grammar, with its state.
  @inlinable public var grammar: Grammar { heldGrammar }
  /// The stream offset of the first byte that is kept.
  @inlinable public var start: Int { keptStart }
  /// Whether bytes were found that are not a record where one was expected.
  @inlinable package var hasSeenUnreadable: Bool { sawUnreadable }

  /// Boundaries are known, nothing is kept and nothing waits to be handed out.
  @inlinable
  package var isStraight: Bool { if case .between = state { true } else { false } }

  // MARK: bytes

  /// The end of the record that begins at `position`, if boundaries are known and it is complete; otherwise `nil`, and
  /// `next` handles it. The hot path: no copy, and nothing is written.
  @inlinable @inline(__always)
  package mutating func endOfRecord(_ bytes: RawSpan, at position: Int) -> Int? {
    guard case .between = state, position < bytes.byteCount,
      case .complete(let length) = heldGrammar.extent(bytes, position)
    else { return nil }
    let end = position + length
    if !isCertain {
      let record = bytes.extracting(position..<end)
      guard heldGrammar.isTrustworthy(record, followedBy: bytes.extracting(end..<bytes.byteCount)) else { return nil }
    }
    heldGrammar.note(firstByte: bytes.byte(at: position))
    return end
  }

  /// Keeps the beginning of a record that is incomplete in `bytes`; `false` if there is none.
  @inlinable @inline(__always)
  package mutating func keepBeginning(_ bytes: RawSpan, at position: Int, offset: Int, mark: Mark) -> Bool {
    guard isStraight, case .incomplete(let needed) = heldGrammar.extent(bytes, position) else { return false }
    keptStart = offset + position
    kept.append(copying: bytes.extracting(position..<bytes.byteCount))
    state = .within(needed: needed, mark: mark)
    return true
  }

  /// Completes the record whose beginning is kept, and moves `position` after it; `false` if the bytes end before the
  /// record does, or if it is not credible: `next` handles both.
  @inlinable @inline(__always)
  package mutating func completeBeginning(_ bytes: RawSpan, _ position: inout Int) -> Bool {
    guard case .within(var needed, let mark) = state else { return false }
    while true {
      let take = needed - kept.count
      guard take <= bytes.byteCount - position else { return false }
      kept.append(copying: bytes.extracting(position..<position + take))
      position += take
      switch heldGrammar.extent(kept.rawBytes, 0) {
      case .incomplete(let more):
        needed = more
        state = .within(needed: more, mark: mark)
      case .malformed: return false
      case .complete:
        guard isBelieved(followedBy: bytes.extracting(position..<bytes.byteCount)) else { return false }
        return true
      }
    }
  }

  /// Whether the whole record in `kept` is to be believed; the grammar notes it then.
  @inlinable @inline(__always)
  mutating func isBelieved(followedBy rest: RawSpan) -> Bool {
    guard isCertain || heldGrammar.isTrustworthy(kept.rawBytes, followedBy: rest) else { return false }
    heldGrammar.note(firstByte: kept[0])
    return true
  }

  /// The next step in `bytes` from `position`, which moves past it; to be called until it returns `.done`.
  ///
  /// - Parameters:
  ///   - bytes: a piece of the stream, the same until `.done`.
  ///   - position: the offset in `bytes`, 0 at first.
  ///   - offset: the stream offset of the first byte of `bytes`.
  ///   - mark: the caller's mark of the piece.
  @inlinable
  public mutating func next(_ bytes: RawSpan, _ position: inout Int, at offset: Int, mark: Mark) -> Step {
    if let end = endOfRecord(bytes, at: position) {
      defer { position = end }
      return .record(position..<end)
    }
    return nextSlowly(bytes, &position, at: offset, mark)
  }

  @inlinable @inline(never)
  mutating func nextSlowly(_ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: Mark) -> Step {
    switch state {
    case .found: return nextFound()
    case .between:
      guard position < bytes.byteCount else { return .done }
      if keepBeginning(bytes, at: position, offset: offset, mark: mark) {
        position = bytes.byteCount
        return .done
      }
      let cause: DamageCause =
        if case .malformed(let error) = heldGrammar.extent(bytes, position) { .malformed(error.problem) } else {
          .malformed(.incomplete)
        }
      return beginSearch(cause, bytes, &position, offset, mark)
    case .within(var needed, _):
      while true {
        let take = min(needed - kept.count, bytes.byteCount - position)
        kept.append(copying: bytes.extracting(position..<position + take))
        position += take
        state = .within(needed: needed, mark: mark)
        if kept.count < needed { return .done }
        switch heldGrammar.extent(kept.rawBytes, 0) {
        case .incomplete(let more): needed = more
        case .malformed(let error): return beginSearch(.malformed(error.problem), bytes, &position, offset, mark)
        case .complete:
          guard isBelieved(followedBy: bytes.extracting(position..<bytes.byteCount)) else {
            return beginSearch(.malformed(.incomplete), bytes, &position, offset, mark)
          }
          return .assembled
        }
      }
    case .searching(let search):
      guard position < bytes.byteCount else { return .done }
      return go(on: search, bytes, &position, offset, mark)
    }
  }

  /// The record of the step `.assembled`, until `dropAssembled()`.
  public var assembled: RawSpan {
    @_lifetime(borrow self)
    @inlinable
    get { kept.rawBytes }
  }

  /// Drops the record in `assembled`; the next one begins after it.
  @inlinable
  public mutating func dropAssembled() {
    kept.removeAll(keepingCapacity: true)
    state = .between
  }

  /// The next result of a gap or the end; `.done` after the last.
  @inlinable
  public mutating func nextFound() -> Step {
    guard case .found(var findings, let next) = state else { return .done }
    let first = findings.takeFirst()
    state = findings.isEmpty ? next : .found(findings, then: next)
    return first
  }

  // MARK: unreadable streams

  /// All bytes of the stream so far, if it has exactly this many and none belongs to a record.
  @inlinable
  package func unreadable(ofLength length: Int) -> (bytes: [UInt8], mark: Mark)? {
    guard case .searching(let search) = state, start == 0, kept.count == length, let mark = search.marks.last?.mark
    else { return nil }
    return (kept, mark)
  }

  /// Drops the bytes that `unreadable` returned: the caller has read them.
  @inlinable
  package mutating func dropUnreadable() { kept = [] }
}

extension RecordFramer {
  /// Reads all of `bytes`, and calls the closures in stream order; for streams where speed does not matter.
  ///
  /// - Parameters:
  ///   - bytes: the next piece of the stream.
  ///   - offset: the stream offset of its first byte.
  ///   - mark: the caller's mark of the piece.
  ///   - record: receives a record, borrowed for the call, its stream offset, and the mark of the piece with its last
  ///     byte.
  ///   - damage: receives bytes that belong to no complete record.
  /// - Complexity: O(*n*) in the length of `bytes`; a search after damage may read up to 64 KiB of kept bytes again.
  @inlinable
  public mutating func read(
    _ bytes: RawSpan, at offset: Int, mark: Mark, _ record: (RawSpan, _ offset: Int, Mark) -> Void,
    damage: (StreamDamage<Mark>) -> Void
  ) {
    var position = 0
    while true {
      switch next(bytes, &position, at: offset, mark: mark) {
      case .record(let range): record(bytes.extracting(range), offset + range.lowerBound, mark)
      case .assembled:
        record(assembled, start, mark)
        dropAssembled()
      case .recovered(let bytes, let offset, let mark): record(bytes.rawBytes, offset, mark)
      case .damage(let found): damage(found)
      case .done: return
      }
    }
  }

  /// Reads the results of a gap or the end, and calls the closures in stream order.
  @inlinable
  public mutating func readFound(
    _ record: (RawSpan, _ offset: Int, Mark) -> Void, damage: (StreamDamage<Mark>) -> Void
  ) {
    while true {
      switch nextFound() {
      case .recovered(let bytes, let offset, let mark): record(bytes.rawBytes, offset, mark)
      case .damage(let found): damage(found)
      case .record, .assembled, .done: return
      }
    }
  }
}
