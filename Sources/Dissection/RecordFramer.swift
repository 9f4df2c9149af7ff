import APNSProtocol
import Bytes
import PacketCapture

/// The packet that brought certain bytes, and its time.
struct Mark {
  var time: Timestamp
  var packet: Int
}

/// Why bytes were passed over.
enum DamageCause {
  /// They are no record.
  case malformed(ParseError.Problem)
  /// They belong to a record of which other bytes are missing from the capture.
  case cut
  /// They end a record that began before the capture did.
  case beforeCapture
  /// They begin a record that the capture does not end.
  case captureEnd
}

/// Bytes that belong to no whole record.
struct Damage {
  var cause: DamageCause
  var offset: Int
  var length: Int
  /// The first ones.
  var bytes: [UInt8]
  var mark: Mark
}

/// Cuts one direction's bytes into records, and finds the next record after a gap or damage.
///
/// While boundaries are known (aligned), records are handed out as places in the borrowed bytes; only a record that is
/// spread over several pieces is copied. After damage it searches: it collects bytes until the grammar is sure of a
/// record. A header seen before a gap already tells where the next record starts; that place is believed before any
/// search.
struct RecordFramer<Grammar: RecordGrammar> {
  /// What comes next in the stream.
  enum Step {
    /// A record at this place of the bytes that are being read.
    case record(Range<Int>)
    /// A record that came in several pieces: `assembled`, which begins at `start`.
    case assembled
    /// A record that a search found.
    case recovered([UInt8], offset: Int, mark: Mark)
    case damage(Damage)
    /// All bytes are read or kept.
    case done
  }

  private enum Mode {
    case aligned
    case searching(DamageCause)
  }

  /// What a search found, until it is asked for.
  private enum Found {
    case record([UInt8], offset: Int, mark: Mark)
    case damage(Damage)
  }

  /// Bytes of a damaged region that are shown.
  private static var shownBytes: Int { 64 }
  /// A damaged region longer than this is reported in parts.
  private static var longestRegion: Int { 1 << 16 }

  private(set) var grammar: Grammar
  private var mode: Mode
  /// Bytes not yet explained: a record's beginning (aligned), or what is searched.
  private var pending: [UInt8] = []
  /// `pending` has bytes. A flag, because it is asked for every record.
  private var hasPending = false
  /// Boundaries are known, nothing is kept and nothing waits to be handed out.
  private(set) var isStraight: Bool
  /// Nothing was damaged or missing since the captured beginning: a record is what its lengths say, as it is for whoever
  /// receives the stream, however unlikely it looks.
  private var isCertain: Bool
  /// Bytes came that are no record where one was expected.
  private(set) var hasSeenUnreadable = false
  /// A search has found something that was not handed out yet.
  private(set) var hasFound = false
  /// Stream offset of `pending[0]`.
  private(set) var start = 0
  /// Aligned: bytes the record in `pending` needs before it is worth looking again.
  private var needed = 0
  /// Searching: the first place in `pending` that is still to be looked at, and the place where a record is expected.
  private var cursor = 0
  private var expected: Int?
  /// Searching: which packet brought `pending` up to which stream offset.
  private var marks: [(end: Int, mark: Mark)] = []
  private var latest = Mark(time: .none, packet: 0)
  private var found: [Found] = []
  private var foundHead = 0

  /// - Parameter isAligned: the first byte begins a record, because the connection's beginning was captured.
  init(grammar: Grammar, isAligned: Bool) {
    self.grammar = grammar
    mode = isAligned ? .aligned : .searching(.beforeCapture)
    isStraight = isAligned
    isCertain = isAligned
  }

  private mutating func updateStraight() { isStraight = isAligned && !hasPending && !hasFound }

  // MARK: bytes

  /// The end of the record that begins at `position`, if boundaries are known and it is there whole; otherwise `nil`,
  /// and `next` tells what is the matter. It is the hot path: no enum, no copy.
  @inline(__always)
  mutating func endOfRecord(_ bytes: RawSpan, at position: Int) -> Int? {
    guard isStraight, position < bytes.byteCount, case .complete(let length) = grammar.extent(bytes, position) else {
      return nil
    }
    let end = position + length
    if !isCertain {
      let record = bytes.extracting(position..<end)
      guard grammar.isTrustworthy(record, followedBy: bytes.extracting(end..<bytes.byteCount)) else { return nil }
    }
    grammar.note(firstByte: bytes.byte(at: position))
    return end
  }

  /// Keeps the beginning of a record that `bytes` do not end; `false` when that is not what stands there.
  @inline(__always)
  mutating func keepBeginning(_ bytes: RawSpan, at position: Int, offset: Int, mark: Mark) -> Bool {
    guard isStraight, case .incomplete(let more) = grammar.extent(bytes, position) else { return false }
    start = offset + position
    needed = more
    pending.append(copying: bytes.extracting(position..<bytes.byteCount))
    hasPending = true
    isStraight = false
    latest = mark
    return true
  }

  /// Completes the record of which the beginning is kept, and moves `position` behind it; `false` when the bytes end
  /// before it does, or it is not to be believed: `next` deals with both.
  @inline(__always)
  mutating func completeBeginning(_ bytes: RawSpan, _ position: inout Int) -> Bool {
    guard hasPending, !hasFound, isAligned else { return false }
    while true {
      let take = needed - pending.count
      guard take <= bytes.byteCount - position else { return false }
      pending.append(copying: bytes.extracting(position..<position + take))
      position += take
      switch grammar.extent(pending.rawBytes, 0) {
      case .incomplete(let more): needed = more
      case .malformed: return false
      case .complete:
        let rest = bytes.extracting(position..<bytes.byteCount)
        guard isCertain || grammar.isTrustworthy(pending.rawBytes, followedBy: rest) else { return false }
        grammar.note(firstByte: pending[0])
        return true
      }
    }
  }

  /// The next thing in `bytes` from `position` on, which moves behind it; call it until it is `.done`.
  ///
  /// - Parameter offset: stream offset of the first of `bytes`.
  mutating func next(_ bytes: RawSpan, _ position: inout Int, at offset: Int, mark: Mark) -> Step {
    if let end = endOfRecord(bytes, at: position) {
      defer { position = end }
      return .record(position..<end)
    }
    let step = nextSlowly(bytes, &position, at: offset, mark)
    updateStraight()
    return step
  }

  @inline(never)
  private mutating func nextSlowly(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: Mark
  ) -> Step {
    latest = mark
    if hasFound { return handOutFound() }
    guard position < bytes.byteCount || hasPending else { return .done }
    guard case .aligned = mode else {
      return position < bytes.byteCount ? search(bytes, &position, offset, mark) : .done
    }
    if !hasPending {
      switch grammar.extent(bytes, position) {
      case .incomplete(let more):
        start = offset + position
        needed = more
        pending.append(copying: bytes.extracting(position..<bytes.byteCount))
        hasPending = true
        position = bytes.byteCount
        return .done
      case .malformed(let error): return beginSearch(.malformed(error.problem), bytes, &position, offset, mark)
      case .complete: return beginSearch(.malformed(.incomplete), bytes, &position, offset, mark)
      }
    }
    while true {
      let take = min(needed - pending.count, bytes.byteCount - position)
      pending.append(copying: bytes.extracting(position..<position + take))
      position += take
      if pending.count < needed { return .done }
      switch grammar.extent(pending.rawBytes, 0) {
      case .incomplete(let more): needed = more
      case .malformed(let error): return beginSearch(.malformed(error.problem), bytes, &position, offset, mark)
      case .complete:
        let rest = bytes.extracting(position..<bytes.byteCount)
        guard isCertain || grammar.isTrustworthy(pending.rawBytes, followedBy: rest) else {
          return beginSearch(.malformed(.incomplete), bytes, &position, offset, mark)
        }
        grammar.note(firstByte: pending[0])
        return .assembled
      }
    }
  }

  /// The record after `.assembled`, until `dropAssembled`.
  var assembled: RawSpan {
    @_lifetime(borrow self)
    get { pending.rawBytes }
  }

  mutating func dropAssembled() {
    pending.removeAll(keepingCapacity: true)
    hasPending = false
    updateStraight()
  }

  private mutating func handOutFound() -> Step {
    let next = found[foundHead]
    foundHead += 1
    if foundHead == found.count {
      found = []
      foundHead = 0
      hasFound = false
    }
    switch next {
    case .record(let bytes, let offset, let mark): return .recovered(bytes, offset: offset, mark: mark)
    case .damage(let damage): return .damage(damage)
    }
  }

  // MARK: gaps and the end

  /// Notes that `length` bytes from `offset` are missing; then `nextFound` tells what became of what was kept.
  mutating func gap(at offset: Int, length: Int) {
    var next: Int?
    if case .aligned = mode, !pending.isEmpty, case .incomplete(let total) = grammar.extent(pending.rawBytes, 0) {
      next = start + total
      // A header that is cut short itself tells nothing about the record's length.
      if !isLengthKnown(total) { next = nil }
    }
    if case .searching = mode, let expected { next = start + expected }
    explainRest(.cut)
    mode = .searching(.cut)
    isCertain = false
    start = offset + length
    expected = next.flatMap { $0 >= start ? $0 - start : nil }
    updateStraight()
  }

  /// Whether the bytes needed are the whole record and not just more of its header.
  private func isLengthKnown(_ total: Int) -> Bool {
    var filled = pending
    filled.append(contentsOf: [UInt8](repeating: 0xff, count: max(0, total - pending.count)))
    if case .complete(let length) = grammar.extent(filled.rawBytes, 0) { return length == total }
    return false
  }

  /// All that the stream has held so far, if that is so many bytes and none of them belongs to a record.
  func unreadable(ofLength length: Int) -> (bytes: [UInt8], mark: Mark)? {
    start == 0 && pending.count == length && !hasFound && !isAligned ? (pending, latest) : nil
  }

  /// Drops the bytes that `unreadable` returned: the caller has read them.
  mutating func dropUnreadable() { pending = [] }

  /// Explains what is left: whole records inside it are still found, the rest is named. Then ask `nextFound`.
  mutating func finish() {
    explainRest(.captureEnd)
    mode = .searching(.cut)
    isCertain = false
    updateStraight()
  }

  /// What a gap or the end made known; `.done` when that is all.
  mutating func nextFound() -> Step { hasFound ? handOutFound() : .done }

  private mutating func explainRest(_ cause: DamageCause) {
    defer {
      pending = []
      hasPending = false
      marks = []
      expected = nil
      cursor = 0
    }
    guard !pending.isEmpty else { return }
    if case .aligned = mode {
      // The record's length may be what is damaged, so look for others inside it.
      mode = .searching(cause)
      cursor = 1
    }
    work(atEnd: true)
    guard !pending.isEmpty else { return }
    // What began the search says more than what ended it.
    var reported = cause
    if case .searching(let earlier) = mode {
      if case .captureEnd = earlier {} else { reported = earlier }
    }
    note(reported, start..<start + pending.count, pending[...], latest)
  }

  // MARK: searching

  private mutating func beginSearch(
    _ cause: DamageCause, _ bytes: RawSpan, _ position: inout Int, _ offset: Int, _ mark: Mark
  ) -> Step {
    if !hasPending { start = offset + position }
    mode = .searching(cause)
    isCertain = false
    hasSeenUnreadable = true
    cursor = 1
    expected = nil
    marks = hasPending ? [(start + pending.count, mark)] : []
    return search(bytes, &position, offset, mark)
  }

  private mutating func search(_ bytes: RawSpan, _ position: inout Int, _ offset: Int, _ mark: Mark) -> Step {
    if !hasPending { start = offset + position }
    pending.append(copying: bytes.extracting(position..<bytes.byteCount))
    hasPending = true
    position = bytes.byteCount
    marks.append((offset + bytes.byteCount, mark))
    work(atEnd: false)
    return nextFound()
  }

  private mutating func note(_ cause: DamageCause, _ range: Range<Int>, _ bytes: ArraySlice<UInt8>, _ mark: Mark) {
    let shown = Array(bytes.prefix(min(range.count, Self.shownBytes)))
    found.append(
      .damage(Damage(cause: cause, offset: range.lowerBound, length: range.count, bytes: shown, mark: mark)))
    hasFound = true
  }

  /// Explains as much of `pending` as can be; what remains is left in `pending` with everything else set for it.
  private mutating func work(atEnd: Bool) {
    let buffer = pending
    let count = buffer.count
    var position = 0
    defer { forget(position, of: buffer) }
    while position < count {
      switch mode {
      case .searching(let cause):
        let found = findRecord(buffer.rawBytes, from: position, atEnd: atEnd)
        // A long search is reported in parts, so that what it holds stays bounded.
        let stop = found ?? (cursor - position > Self.longestRegion ? cursor : position)
        if stop > position {
          note(
            cause.insideRecords, start + position..<start + stop, buffer[position...], mark(endingAt: start + stop))
          position = stop
        }
        guard found != nil else { return }
        mode = .aligned
      case .aligned:
        switch grammar.extent(buffer.rawBytes, position) {
        case .incomplete(let more):
          guard atEnd else {
            needed = more
            return
          }
          mode = .searching(.captureEnd)
          cursor = position + 1
        case .malformed(let error):
          mode = .searching(.malformed(error.problem))
          hasSeenUnreadable = true
          cursor = position + 1
        case .complete(let length):
          let end = position + length
          let record = buffer.rawBytes.extracting(position..<end)
          guard grammar.isTrustworthy(record, followedBy: buffer.rawBytes.extracting(end..<count)) else {
            mode = .searching(.malformed(.incomplete))
            cursor = position + 1
            continue
          }
          found.append(
            .record(Array(copying: record), offset: start + position, mark: mark(endingAt: start + end)))
          hasFound = true
          grammar.note(firstByte: record.byte(at: 0))
          position = end
        }
      }
    }
  }

  /// Drops the first bytes of `pending`, which are explained.
  private mutating func forget(_ count: Int, of buffer: [UInt8]) {
    guard count > 0 || isAligned else { return }
    pending = Array(buffer[count...])
    hasPending = !pending.isEmpty
    start += count
    cursor = max(0, cursor - count)
    expected = expected.map { $0 - count }
    if isAligned { marks = [] } else { marks.removeAll { $0.end <= start } }
  }

  private var isAligned: Bool { if case .aligned = mode { true } else { false } }

  /// Where in `buffer` the next record starts, `from` being the first unexplained byte; `nil` when none is sure yet,
  /// and `cursor` is then the first place that is still to be looked at.
  private mutating func findRecord(_ buffer: RawSpan, from: Int, atEnd: Bool) -> Int? {
    if let place = expected {
      switch grammar.canStart(buffer, min(place, buffer.byteCount), atEnd: atEnd) {
      case .needsMore: return nil
      case .yes:
        expected = nil
        return place
      case .no:
        expected = nil
        // The stream ends exactly where the cut record ends: nothing else can begin before.
        if atEnd && place == buffer.byteCount { cursor = buffer.byteCount }
      }
    }
    // The bytes before `from` belong to records and are no part of what is searched.
    let region = buffer.extracting(from..<buffer.byteCount)
    var candidate = max(cursor, from)
    defer { cursor = candidate }
    while candidate < buffer.byteCount {
      switch grammar.probe(region, candidate - from, beginsBetween: beginsBetween, atEnd: atEnd) {
      case .yes: return candidate
      case .no: candidate += 1
      case .needsMore: return nil
      }
    }
    return nil
  }

  /// What is searched began where a record ended: only a gap, or the capture's beginning, cuts records.
  private var beginsBetween: Bool {
    switch mode {
    case .aligned, .searching(.malformed), .searching(.captureEnd): true
    case .searching(.cut), .searching(.beforeCapture): false
    }
  }

  private func mark(endingAt end: Int) -> Mark { marks.first { $0.end >= end }?.mark ?? latest }
}

extension RecordFramer {
  /// Reads all of `bytes`, for streams in which speed does not matter.
  mutating func read(
    _ bytes: RawSpan, at offset: Int, mark: Mark, _ record: (RawSpan, _ offset: Int, Mark) -> Void,
    damage: (Damage) -> Void
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

  /// Takes what a gap or the end made known.
  mutating func readFound(_ record: (RawSpan, _ offset: Int, Mark) -> Void, damage: (Damage) -> Void) {
    while true {
      switch nextFound() {
      case .recovered(let bytes, let offset, let mark): record(bytes.rawBytes, offset, mark)
      case .damage(let found): damage(found)
      default: return
      }
    }
  }
}

extension DamageCause {
  /// The cause as it reads when whole records follow: the end of the capture did not cut this then.
  fileprivate var insideRecords: DamageCause {
    if case .captureEnd = self { .malformed(.incomplete) } else { self }
  }
}
