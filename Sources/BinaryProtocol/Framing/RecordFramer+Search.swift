import Bytes

extension RecordFramer {
  /// A damaged region longer than this is reported in parts, so the memory of a search stays bounded.
  @inlinable static var longestRegion: Int { 1 << 16 }

  // MARK: gaps and the end

  /// Notes that `length` bytes from `offset` are missing; then `nextFound` returns the results for kept bytes.
  @inlinable
  public mutating func gap(at offset: Int, length: Int) { loseTrack(to: offset + length, .cut) }

  /// Bytes that it holds until more arrive, without memory that is kept ready for the next record.
  @inlinable
  package var heldBytes: Int {
    guard case .searching(let search) = state else { return kept.count }
    return kept.count + search.marks.count * MemoryLayout<(Int, Mark)>.stride
  }

  /// Frees memory that is ready for the next record.
  @inlinable
  package mutating func freeSpare() { if isStraight { kept = [] } }

  /// Gives up what has begun; then `nextFound` returns the results for kept bytes.
  @inlinable
  package mutating func drop() {
    guard !isStraight else { return }
    loseTrack(to: keptStart + kept.count, .dropped)
  }

  /// Kept bytes are resolved, and the stream goes on at `offset` without them.
  @inlinable
  mutating func loseTrack(to offset: Int, _ cause: DamageCause) {
    var findings = takeFindings()
    let next = nextBoundary
    explainRest(cause, into: &findings)
    keptStart = offset
    var search = Search(cause)
    search.expected = next.flatMap { $0 >= start ? $0 - start : nil }
    state = .searching(search)
    isCertain = false
    handOut(findings)
  }

  /// The stream offset at which a header that was seen says that the next record starts.
  @inlinable
  var nextBoundary: Int? {
    switch state {
    case .between, .found: return nil
    case .searching(let search): return search.expected.map { start + $0 }
    case .within:
      // A header that is itself incomplete does not show the record's length.
      guard case .incomplete(let total) = grammar.extent(kept.rawBytes, 0), isLengthKnown(total) else { return nil }
      return start + total
    }
  }

  /// Whether the bytes needed are the whole record and not just more of its header.
  @inlinable
  func isLengthKnown(_ total: Int) -> Bool {
    let filled = kept + [UInt8](repeating: 0xff, count: max(0, total - kept.count))
    if case .complete(let length) = grammar.extent(filled.rawBytes, 0) { return length == total }
    return false
  }

  /// Resolves kept bytes: complete records in them are still found, the rest is damage. Call `nextFound` afterwards.
  @inlinable
  public mutating func finish() {
    var findings = takeFindings()
    explainRest(.streamEnd, into: &findings)
    state = .searching(Search(.cut))
    isCertain = false
    handOut(findings)
  }

  /// Removes and returns the results that were not returned yet; the state is then the one after them.
  @inlinable
  mutating func takeFindings() -> Findings {
    guard case .found(let findings, let next) = state else { return Findings() }
    state = next
    return findings
  }

  /// Has findings handed out before the stream goes on in the state it is in.
  @inlinable
  mutating func handOut(_ findings: Findings) {
    if !findings.isEmpty { state = .found(findings, then: state) }
  }

  /// Leaves nothing kept.
  @inlinable
  mutating func explainRest(_ cause: DamageCause, into findings: inout Findings) {
    defer { kept = [] }
    let mark: Mark
    switch state {
    case .between, .found: return
    case .within(_, let latest):
      mark = latest
      // The length of the record may be damaged, so search for others inside it.
      var search = Search(cause)
      search.cursor = 1
      search.marks = [(start + kept.count, latest)]
      explain(search, atEnd: true, into: &findings)
    case .searching(let search):
      guard let latest = search.marks.last?.mark else { return }
      mark = latest
      explain(search, atEnd: true, into: &findings)
    }
    guard !kept.isEmpty else { return }
    // The cause that began the search is more informative than the one that ended it.
    var reported = cause
    if case .searching(let search) = state {
      if case .streamEnd = search.cause {} else { reported = search.cause }
    }
    findings.note(reported, start..<start + kept.count, kept[...], mark)
  }

  // MARK: searching

  @inlinable
  mutating func beginSearch(
    _ cause: DamageCause, _ bytes: RawSpan, _ position: inout Int, _ offset: Int, _ mark: Mark
  ) -> Step {
    isCertain = false
    sawUnreadable = true
    var search = Search(cause)
    search.cursor = 1
    return go(on: search, bytes, &position, offset, mark)
  }

  /// Adds all of `bytes` to the search, and returns the first result.
  @inlinable
  mutating func go(
    on search: Search, _ bytes: RawSpan, _ position: inout Int, _ offset: Int, _ mark: Mark
  ) -> Step {
    if kept.isEmpty { keptStart = offset + position }
    kept.append(copying: bytes.extracting(position..<bytes.byteCount))
    position = bytes.byteCount
    // The state's copy would have the array of marks copied.
    state = .between
    var search = search
    search.marks.append((offset + bytes.byteCount, mark))
    var findings = Findings()
    explain(search, atEnd: false, into: &findings)
    handOut(findings)
    return nextFound()
  }

  /// Resolves as much of `kept` as possible, and sets the state for the rest, which stays in `kept`.
  @inlinable
  mutating func explain(_ begun: Search, atEnd: Bool, into findings: inout Findings) {
    let (buffer, marks) = (kept, begun.marks)
    func mark(endingAt end: Int) -> Mark? { (marks.first { $0.end >= end } ?? marks.last)?.mark }
    /// `nil` while boundaries are known.
    var search: Search? = begun
    /// The length of the incomplete record at `position`.
    var needed: Int?
    var position = 0
    while position < buffer.count {
      if var current = search {
        let place = findRecord(buffer.rawBytes, from: position, &current, atEnd: atEnd)
        search = place == nil ? current : nil
        // A long search is reported in parts.
        let stop = place ?? (current.cursor - position > Self.longestRegion ? current.cursor : position)
        if stop > position, let mark = mark(endingAt: start + stop) {
          findings.note(current.cause.insideRecords, start + position..<start + stop, buffer[position...], mark)
          position = stop
        }
        guard place != nil else { break }
      }
      switch grammar.extent(buffer.rawBytes, position) {
      case .incomplete(let more):
        if !atEnd { needed = more } else { search = lost(.streamEnd, after: position) }
      case .malformed(let error):
        search = lost(.malformed(error.problem), after: position)
        sawUnreadable = true
      case .complete(let length):
        let end = position + length
        let record = buffer.rawBytes.extracting(position..<end)
        guard grammar.isTrustworthy(record, followedBy: buffer.rawBytes.extracting(end..<buffer.count)),
          let mark = mark(endingAt: start + end)
        else {
          search = lost(.malformed(.incomplete), after: position)
          continue
        }
        findings.elements.append(.record(Array(copying: record), offset: start + position, mark: mark))
        heldGrammar.note(firstByte: record.byte(at: 0))
        position = end
      }
      if needed != nil { break }
    }
    keep(buffer, from: position, search, needed: needed, marks)
  }

  /// Boundaries are lost at a position in `kept` that is not the beginning of a record.
  @inlinable
  func lost(_ cause: DamageCause, after position: Int) -> Search {
    var search = Search(cause)
    search.cursor = position + 1
    return search
  }

  /// Drops resolved bytes, and sets the state for the rest.
  @inlinable
  mutating func keep(
    _ buffer: [UInt8], from position: Int, _ search: Search?, needed: Int?, _ marks: [(end: Int, mark: Mark)]
  ) {
    if position > 0 { kept = Array(buffer[position...]) }
    keptStart += position
    if var search {
      search.cursor = max(0, search.cursor - position)
      search.expected = search.expected.map { $0 - position }
      search.marks = marks.filter { $0.end > start }
      state = .searching(search)
    } else if let needed, let mark = marks.last?.mark {
      state = .within(needed: needed, mark: mark)
    } else {
      state = .between
    }
  }

  /// The offset in `buffer` at which the next record starts, with `from` the first unexplained byte; `nil` if none is
  /// certain yet: then the search's cursor is the first offset that is still undecided.
  @inlinable
  func findRecord(_ buffer: RawSpan, from: Int, _ search: inout Search, atEnd: Bool) -> Int? {
    if let place = search.expected {
      switch grammar.canStart(buffer, min(place, buffer.byteCount), atEnd: atEnd) {
      case .needsMore: return nil
      case .yes:
        search.expected = nil
        return place
      case .no:
        search.expected = nil
        // The stream ends exactly where the truncated record ends: nothing else can begin before.
        if atEnd && place == buffer.byteCount { search.cursor = buffer.byteCount }
      }
    }
    // The bytes before `from` belong to records and are not searched.
    let region = buffer.extracting(from..<buffer.byteCount)
    let beginsBetween = search.cause.beginsBetween
    var candidate = max(search.cursor, from)
    defer { search.cursor = candidate }
    while candidate < buffer.byteCount {
      switch grammar.probe(region, candidate - from, beginsBetween: beginsBetween, atEnd: atEnd) {
      case .yes: return candidate
      case .no: candidate += 1
      case .needsMore: return nil
      }
    }
    return nil
  }
}

extension RecordFramer.Findings {
  /// Bytes of a damaged region that are shown.
  @inlinable static var shownBytes: Int { 64 }

  @inlinable
  mutating func note(_ cause: DamageCause, _ range: Range<Int>, _ bytes: ArraySlice<UInt8>, _ mark: Mark) {
    let shown = Array(bytes.prefix(min(range.count, Self.shownBytes)))
    elements.append(
      .damage(StreamDamage(cause: cause, offset: range.lowerBound, length: range.count, bytes: shown, mark: mark)))
  }
}

extension DamageCause {
  /// The cause as it reads when whole records follow: the end of the stream did not cut this then.
  @inlinable
  var insideRecords: DamageCause { if case .streamEnd = self { .malformed(.incomplete) } else { self } }

  /// The search began at the end of a record: only a gap, or the captured beginning, cuts records.
  @inlinable
  var beginsBetween: Bool {
    switch self {
    case .malformed, .streamEnd: true
    case .cut, .beforeStart, .dropped: false
    }
  }
}
