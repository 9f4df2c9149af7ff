import Bytes

/// Searches for the next record when the boundaries of records are unknown.
///
/// A header is five bytes that other bytes may resemble: only decrypting a candidate shows whether it is a record.
struct RecordSearch {
  /// Bytes in which a record is looked for.
  private(set) var collected: [UInt8] = []
  /// Bytes that `collected` must have before it is searched again.
  private(set) var wanted = 0
  /// The last bytes before the collected ones.
  private(set) var tail = RecordTail()

  init(collected: [UInt8] = []) { self.collected = collected }

  /// A position at which a complete record may begin.
  struct Candidate: Equatable {
    var header: RecordHeader
    var place: Range<Int>
  }

  enum Result: Equatable {
    case candidate(Candidate)
    /// There is no candidate. `passed` bytes are skipped; the rest is collected.
    case none(passed: Int)
  }

  /// Adds bytes. Returns whether there are enough to search.
  mutating func collect(_ bytes: RawSpan) -> Bool {
    collected.append(copying: bytes)
    return collected.count >= wanted
  }

  /// Removes and returns the collected bytes.
  mutating func takeCollected() -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &collected)
    wanted = 0
    return taken
  }

  /// Looks from `start` on for a place where a record may begin.
  ///
  /// - Parameters:
  ///   - beginning: of the bytes that are not passed over yet.
  ///   - isFinal: no more bytes follow, so a candidate that extends past them is not a record.
  mutating func candidate(
    in bytes: RawSpan, after beginning: Int, from start: Int, _ expectation: RecordExpectation, isFinal: Bool
  ) -> Result {
    var start = start
    while let place = Self.place(in: bytes, from: start, expectation) {
      let header = RecordHeader(bytes, at: place)
      let end = place + header.recordLength
      if end <= bytes.byteCount { return .candidate(Candidate(header: header, place: place..<end)) }
      if !isFinal {
        // Wait for the complete candidate record before validating it.
        return keep(bytes, from: place, after: beginning, wanted: header.recordLength)
      }
      start = place + 1
    }
    // The last bytes may begin a header.
    let kept = min(bytes.byteCount - beginning, RecordHeader.length - 1)
    return keep(bytes, from: bytes.byteCount - kept, after: beginning, wanted: 0)
  }

  /// The next place from `start` on where a record may begin.
  private static func place(in bytes: RawSpan, from start: Int, _ expectation: RecordExpectation) -> Int? {
    var place = start
    while place + RecordHeader.length <= bytes.byteCount {
      if 20...23 ~= bytes.byte(at: place), bytes.byte(at: place + 1) == 3 {
        let header = RecordHeader(bytes, at: place)
        if expectation.allows(header), header.fragmentLength > 0 { return place }
      }
      place += 1
    }
    return nil
  }

  private mutating func keep(_ bytes: RawSpan, from place: Int, after beginning: Int, wanted: Int) -> Result {
    pass(bytes.extracting(beginning..<place))
    collected = Array(copying: bytes.extracting(place..<bytes.byteCount))
    self.wanted = wanted
    return .none(passed: place - beginning)
  }

  /// Passes over bytes in which no record begins.
  mutating func pass(_ bytes: RawSpan) { tail.add(bytes) }
}

/// The last bytes that were skipped: TLS 1.0 needs their last cipher block, which a MAC may follow, to decrypt the next
/// record.
struct RecordTail: Equatable {
  private static let maximum = 64
  private(set) var bytes: [UInt8] = []

  mutating func add(_ passed: RawSpan) {
    let count = min(passed.byteCount, Self.maximum)
    bytes.append(copying: passed.extracting(passed.byteCount - count..<passed.byteCount))
    if bytes.count > Self.maximum { bytes.removeFirst(bytes.count - Self.maximum) }
  }
}
