import Bytes

/// Finds the records in the bytes of one direction, also after gaps. Receives bytes, gaps and the end; returns records
/// and skipped regions.
///
/// ```
/// aligned   → inside      a gap ends in a record
/// aligned   → searching   a gap goes beyond a record, or bytes begin none
/// inside    → aligned     the record is over
/// inside    → searching   a gap goes beyond it
/// searching → aligned     a candidate is tried (`align`)
/// any       → failed      `fail`
/// ```
///
/// It has no keys: the caller tries to decrypt records, and passes the expected form of headers along with the bytes.
struct TLSRecordReader {
  enum State {
    /// The next byte continues this beginning of a record; if it is empty, the byte begins one.
    case aligned(partial: [UInt8])
    /// In a record cut by a gap: its remaining bytes.
    case inside(left: Int, RecordTail)
    /// The beginning of the next record is unknown.
    case searching(RecordSearch)
    /// Nothing more can be opened: bytes are only counted.
    case failed
  }

  enum Step: Equatable {
    /// A whole record is here in the bytes given.
    case record(RecordHeader, Range<Int>)
    /// A whole record has come in pieces: `takePartial` has it.
    case assembled(RecordHeader)
    /// A hello in SSL 2.0 format, which is not a record.
    case hello([UInt8])
    /// A record with a gap in it has ended, with these last bytes.
    case passed(RecordTail)
    /// No record begins here: call `collect` with the bytes from here on.
    case lost
    /// All bytes are used, or wait to be collected.
    case done
  }

  private let isFromClient: Bool
  private let maximumMissingRecords: Int
  private(set) var state = State.aligned(partial: [])
  /// Records that were read, including hellos in the format of SSL 2.0.
  var count = 0
  private(set) var hadGap = false
  /// The region between the last opened record and the next; `nil` if empty.
  var region: SkippedRegion?

  /// - Parameter maximumMissingRecords: the most records that may be missing before the capture.
  init(isFromClient: Bool, maximumMissingRecords: Int) {
    self.isFromClient = isFromClient
    self.maximumMissingRecords = maximumMissingRecords
  }

  var isAligned: Bool { if case .aligned = state { true } else { false } }
  var isSearching: Bool { if case .searching = state { true } else { false } }
  var hasFailed: Bool { if case .failed = state { true } else { false } }
  private var isInside: Bool { if case .inside = state { true } else { false } }
  private var hasPartial: Bool { if case .aligned(let partial) = state { !partial.isEmpty } else { false } }

  /// Bytes that are kept: the beginning of a record, or those in which one is searched for.
  var keptBytes: Int {
    switch state {
    case .aligned(let partial): partial.count
    case .searching(let search): search.collected.count
    case .inside, .failed: 0
    }
  }

  // MARK: bytes

  /// Advances to the bytes at `offset`, and past them.
  mutating func next(in bytes: RawSpan, at offset: inout Int, _ expectation: RecordExpectation) -> Step {
    while offset < bytes.byteCount {
      // Not a switch, which would copy the payload of the state instead of changing it in place.
      if hasPartial {
        if let step = complete(bytes, &offset, expectation) { return step }
      } else if isAligned {
        return begin(bytes, &offset, expectation)
      } else if isInside {
        if let step = passRest(bytes, &offset) { return step }
      } else if hasFailed {
        countUnread(bytes.byteCount - offset, expectation)
        offset = bytes.byteCount
      } else {
        return .done
      }
    }
    return .done
  }

  /// Reads what begins at `offset`, or keeps it.
  private mutating func begin(_ bytes: RawSpan, _ offset: inout Int, _ expectation: RecordExpectation) -> Step {
    let rest = bytes.extracting(offset..<bytes.byteCount)
    if let length = helloLength(rest) {
      if length <= rest.byteCount {
        offset += length
        return .hello(Array(copying: rest.extracting(0..<length)))
      }
    } else if rest.byteCount >= RecordHeader.length {
      let header = RecordHeader(rest, at: 0)
      guard expectation.allows(header) else {
        loseTrack([], expectation)
        return .lost
      }
      if header.recordLength <= rest.byteCount {
        let start = offset
        offset += header.recordLength
        return .record(header, start..<offset)
      }
    }
    var partial = takePartial()
    partial.append(copying: rest)
    returnPartial(partial)
    offset = bytes.byteCount
    return .done
  }

  /// Adds to the beginning of a record what `bytes` have of it; `nil` when there is more to add.
  private mutating func complete(
    _ bytes: RawSpan, _ offset: inout Int, _ expectation: RecordExpectation
  ) -> Step? {
    var partial = takePartial()
    if let wanted = helloLength(partial.rawBytes) {
      Self.fill(&partial, to: wanted, bytes, &offset)
      // The fifth byte shows whether it is a hello, and its length.
      guard let length = helloLength(partial.rawBytes) else {
        loseTrack(partial, expectation)
        return .lost
      }
      if partial.count == length { return .hello(partial) }
      returnPartial(partial)
      return nil
    }
    var wanted = RecordHeader.length
    if partial.count >= RecordHeader.length { wanted = RecordHeader(partial.rawBytes, at: 0).recordLength }
    Self.fill(&partial, to: wanted, bytes, &offset)
    guard partial.count == wanted else {
      returnPartial(partial)
      return nil
    }
    let header = RecordHeader(partial.rawBytes, at: 0)
    guard expectation.allows(header) else {
      loseTrack(partial, expectation)
      return .lost
    }
    let isWhole = partial.count == header.recordLength
    returnPartial(partial)
    return isWhole ? .assembled(header) : nil
  }

  /// Adds bytes until there are `count`, or no more.
  static func fill(_ partial: inout [UInt8], to count: Int, _ bytes: RawSpan, _ offset: inout Int) {
    let added = min(count - partial.count, bytes.byteCount - offset)
    guard added > 0 else { return }
    partial.append(copying: bytes.extracting(offset..<offset + added))
    offset += added
  }

  /// The length of a hello in SSL 2.0 format, which only the client's first bytes can be; 5 if more bytes are needed,
  /// `nil` if it is not one.
  private func helloLength(_ bytes: RawSpan) -> Int? {
    guard count == 0, isFromClient, !hadGap, bytes.byteCount > 0, bytes.byte(at: 0) & 0x80 != 0 else { return nil }
    if bytes.byteCount < 5 { return 5 }
    return SSL2Hello.begins(bytes) ? 2 + Int(bytes.uint16(at: 0) & 0x7fff) : nil
  }

  /// Removes and returns the beginning of a record, to be changed in place. Give it back with `returnPartial`.
  mutating func takePartial() -> [UInt8] {
    guard case .aligned(let partial) = state else { return [] }
    state = .aligned(partial: [])
    return partial
  }

  /// Exchanges the whole state, where speed matters: as nothing is released here, the compiler need not track the
  /// access to the object that holds the reader.
  mutating func exchange(_ other: inout State) { swap(&state, &other) }

  /// Keeps the beginning of a record. An empty one may return its memory for reuse.
  mutating func returnPartial(_ partial: consuming [UInt8]) {
    guard isAligned else { return }
    state = .aligned(partial: partial)
  }

  // MARK: gaps

  /// Passes over the rest of a record that a gap cut; `nil` when it is not over.
  private mutating func passRest(_ bytes: RawSpan, _ offset: inout Int) -> Step? {
    guard case .inside(let left, var tail) = state else { return nil }
    state = .failed
    let count = min(left, bytes.byteCount - offset)
    tail.add(bytes.extracting(offset..<offset + count))
    region?.captured += count
    offset += count
    if count == left {
      state = .aligned(partial: [])
      return .passed(tail)
    }
    state = .inside(left: left - count, tail)
    return nil
  }

  /// Notes that the beginning of the next record is unknown, though nothing is missing: none begins in `collected`.
  private mutating func loseTrack(_ collected: [UInt8], _ expectation: RecordExpectation) {
    if count == 0 && !hadGap {
      beginInside()
    } else if region == nil {
      region = SkippedRegion(isBeforeData: expectation.isBeforeData)
    }
    hadGap = true
    state = .searching(RecordSearch(collected: collected))
  }

  /// The capture began in the middle of this direction.
  mutating func beginInside() {
    region = .beforeCapture(maximumRecords: maximumMissingRecords)
    hadGap = true
  }

  /// Handles a gap. Drops bytes of an unfinished search, which must have been searched completely.
  mutating func gap(_ length: Int, _ reason: PlaintextGapReason, _ expectation: RecordExpectation) {
    var region = region ?? SkippedRegion(isBeforeData: expectation.isBeforeData)
    region.missing += length
    region.reason = reason
    hadGap = true
    switch state {
    case .failed: break
    case .inside(let left, _): state = Self.state(left: left - length, &region)
    case .aligned(let partial) where partial.count >= RecordHeader.length:
      region.addRecord(captured: partial.count)
      let left = RecordHeader(partial.rawBytes, at: 0).recordLength - partial.count
      state = Self.state(left: left - length, &region)
    case .aligned, .searching:
      region.add(unplaced: keptBytes)
      region.unplaced += length
      state = .searching(RecordSearch())
    }
    self.region = region
  }

  /// The state after a gap in a record with `left` bytes left; negative if the gap extends beyond the record.
  private static func state(left: Int, _ region: inout SkippedRegion) -> State {
    if left > 0 { return .inside(left: left, RecordTail()) }
    if left == 0 { return .aligned(partial: []) }
    region.unplaced -= left
    return .searching(RecordSearch())
  }

  // MARK: searching

  /// Adds to the bytes in which a record is looked for. Returns whether there are enough to search.
  mutating func collect(_ bytes: RawSpan) -> Bool {
    guard var search = takeSearch() else { return false }
    defer { state = .searching(search) }
    return search.collect(bytes)
  }

  /// Removes and returns the collected bytes.
  mutating func takeCollected() -> [UInt8] {
    guard var search = takeSearch() else { return [] }
    defer { state = .searching(search) }
    return search.takeCollected()
  }

  /// Searches for a position where a record may begin; `nil` if there is none. See `RecordSearch.candidate`.
  mutating func candidate(
    in bytes: RawSpan, after beginning: Int, from start: Int, _ expectation: RecordExpectation, isFinal: Bool
  ) -> RecordSearch.Candidate? {
    guard var search = takeSearch() else { return nil }
    defer { state = .searching(search) }
    switch search.candidate(in: bytes, after: beginning, from: start, expectation, isFinal: isFinal) {
    case .candidate(let candidate): return candidate
    case .none(let passed):
      region?.add(unplaced: passed)
      return nil
    }
  }

  /// Reads on after `before`, as if a record began there. Returns the last bytes before it.
  ///
  /// When the record does not open, the reader as it was is put back.
  mutating func align(after before: RawSpan, shortestRecord: Int) -> RecordTail {
    guard var search = takeSearch() else { return RecordTail() }
    search.pass(before)
    region?.add(unplaced: before.byteCount)
    region?.place(shortestRecord: shortestRecord)
    state = .aligned(partial: [])
    return search.tail
  }

  /// Removes and returns the search, to be changed in place: nothing else refers to its bytes.
  private mutating func takeSearch() -> RecordSearch? {
    guard case .searching(let search) = state else { return nil }
    state = .failed
    return search
  }

  // MARK: ends

  /// Notes that no more bytes come. Returns the region after the last opened record.
  ///
  /// - Parameter countsPartial: kept bytes are part of a record that is incomplete in the capture.
  mutating func end(
    countsPartial: Bool, shortestRecord: Int, _ expectation: RecordExpectation
  ) -> SkippedRegion? {
    let kept = keptBytes
    if kept > 0 && countsPartial { countUnread(kept, expectation) }
    _ = takePartial()
    _ = takeCollected()
    region?.place(shortestRecord: shortestRecord)
    return takeRegion()
  }

  /// Nothing more can be opened.
  mutating func fail() { state = .failed }

  // MARK: skipped regions

  /// Counts bytes in which no record is looked for.
  mutating func countUnread(_ count: Int, _ expectation: RecordExpectation) {
    if region == nil { region = SkippedRegion(isBeforeData: expectation.isBeforeData) }
    region?.add(unplaced: count)
  }

  /// Counts a record that no keys open.
  mutating func countUnopened(_ header: RecordHeader, isBeforeData: Bool) {
    if region == nil { region = SkippedRegion(isBeforeData: isBeforeData) }
    region?.addRecord(captured: header.recordLength)
  }

  /// Ends the region: a record was opened after it.
  mutating func takeRegion() -> SkippedRegion? {
    defer { region = nil }
    return region
  }
}
