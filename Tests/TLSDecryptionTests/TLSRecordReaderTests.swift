import Bytes
import TLSFoundation
import Testing

@testable import TLSDecryption

/// The record layer of one direction, without keys: pieces, gaps and ends in, records and what was passed over out.
@Suite struct TLSRecordReaderTests {
  /// A reader, and whoever asks it.
  struct Direction {
    enum Heard: Equatable {
      case record([UInt8])
      case hello([UInt8])
      case passed(tail: [UInt8])
      case lost
    }

    var reader: TLSRecordReader
    var expectation = RecordExpectation(keyVersion: nil, isBeforeData: false)

    init(isFromClient: Bool = true) {
      reader = TLSRecordReader(isFromClient: isFromClient, maximumMissingRecords: 100)
    }

    /// Reads bytes as a stream does, up to where it would search.
    mutating func receive(_ bytes: [UInt8]) -> [Heard] {
      var heard: [Heard] = []
      var offset = 0
      while true {
        switch reader.next(in: bytes.rawBytes, at: &offset, expectation) {
        case .record(let header, let place):
          #expect(place.count == header.recordLength)
          heard.append(.record(Array(bytes[place])))
          reader.count += 1
        case .assembled(let header):
          var record = reader.takePartial()
          #expect(record.count == header.recordLength)
          // A copy: whoever keeps the record itself keeps its memory.
          heard.append(.record(Array(copying: record.rawBytes)))
          record.removeAll(keepingCapacity: true)
          reader.returnPartial(record)
          reader.count += 1
        case .hello(let hello):
          heard.append(.hello(hello))
          reader.count += 1
        case .passed(let tail): heard.append(.passed(tail: tail.bytes))
        case .lost:
          _ = reader.collect(bytes.rawBytes.extracting(offset..<bytes.count))
          return heard + [.lost]
        case .done:
          #expect(offset == bytes.count || reader.isSearching)
          return heard
        }
      }
    }

    mutating func lose(_ length: Int) { reader.gap(length, .lost, expectation) }

    mutating func collect(_ bytes: [UInt8]) -> Bool { reader.collect(bytes.rawBytes) }

    /// The first candidate in what is collected, with the bytes that were searched.
    mutating func search(from start: Int = 0, isFinal: Bool = false) -> (RecordSearch.Candidate?, [UInt8]) {
      let bytes = reader.takeCollected()
      let found = reader.candidate(in: bytes.rawBytes, after: 0, from: start, expectation, isFinal: isFinal)
      return (found, bytes)
    }
  }

  static func record(_ content: Int, filled: UInt8 = 0) -> [UInt8] {
    SealedConversation.record(23, [UInt8](repeating: filled, count: content))
  }

  // MARK: aligned

  @Test("Records in one piece are given out where they stand") func recordsInOnePiece() {
    var direction = Direction()
    let records = [Self.record(20), Self.record(0), Self.record(3)]
    #expect(direction.receive(Array(records.joined())) == records.map { .record($0) })
    #expect(direction.reader.isAligned)
    #expect(direction.reader.keptBytes == 0)
    #expect(direction.reader.region == nil)
  }

  @Test("Records are the same in pieces of any length", arguments: [1, 2, 4, 5, 6, 24, 25, 26, 1_000])
  func recordsInPieces(pieces: Int) {
    var direction = Direction()
    let records = (0..<40).map { Self.record($0 * 7 % 50, filled: UInt8($0)) }
    let bytes = Array(records.joined())
    var heard: [Direction.Heard] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      heard += direction.receive(Array(bytes[start..<min(start + pieces, bytes.count)]))
    }
    #expect(heard == records.map { .record($0) })
    #expect(direction.reader.keptBytes == 0)
    #expect(!direction.reader.hadGap)
  }

  @Test("The memory of a record in pieces serves the next one") func memoryServesTheNextRecord() {
    var direction = Direction()
    let record = Self.record(2_000)
    #expect(direction.receive(Array(record.prefix(10))).isEmpty)
    #expect(direction.receive(Array(record.dropFirst(10))) == [.record(record)])
    #expect(direction.receive([23, 3]).isEmpty)
    let partial = direction.reader.takePartial()
    #expect(partial == [23, 3])
    #expect(partial.capacity >= record.count)
  }

  @Test("A partial record that is taken out leaves none until it is brought back") func partialIsTakenOut() {
    var direction = Direction()
    _ = direction.receive([23, 3, 3])
    var partial = direction.reader.takePartial()
    #expect(direction.reader.isAligned)
    #expect(direction.reader.keptBytes == 0)
    partial.append(0)
    direction.reader.returnPartial(partial)
    #expect(direction.reader.keptBytes == 4)
    #expect(direction.receive([1, 9]) == [.record([23, 3, 3, 0, 1, 9])])
  }

  @Test("A partial record is brought back to an aligned reader only") func partialIsNotBroughtBackAnywhere() {
    var direction = Direction()
    direction.lose(7)
    #expect(direction.reader.takePartial().isEmpty)
    direction.reader.returnPartial([1, 2, 3])
    #expect(direction.reader.isSearching)
    direction.reader.fail()
    direction.reader.returnPartial([1, 2, 3])
    #expect(direction.reader.hasFailed)
  }

  // MARK: a hello in SSL 2.0's form

  static let oldHello =
    [0x80, 44, 1, 3, 3, 0, 3, 0, 0, 0, 32, 0, 0, 0x9c] as [UInt8] + [UInt8](repeating: 0xc1, count: 32)

  @Test("A hello in SSL 2.0's form may be a client's first bytes", arguments: [1, 3, 5, 6, 46, 100])
  func oldHelloInPieces(pieces: Int) {
    var direction = Direction()
    let bytes = Self.oldHello + Self.record(4)
    var heard: [Direction.Heard] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      heard += direction.receive(Array(bytes[start..<min(start + pieces, bytes.count)]))
    }
    #expect(heard == [.hello(Self.oldHello), .record(Self.record(4))])
  }

  @Test("A hello in SSL 2.0's form comes first, from the client and after no gap") func oldHelloComesFirst() {
    var server = Direction(isFromClient: false)
    #expect(server.receive(Self.oldHello) == [.lost])
    var later = Direction()
    #expect(later.receive(Self.record(4) + Self.oldHello) == [.record(Self.record(4)), .lost])
    var cut = Direction()
    #expect(cut.receive([0x80]).isEmpty)
    cut.lose(1)
    #expect(cut.reader.isSearching)
    #expect(cut.collect(Self.oldHello) == true)
  }

  @Test("The fifth byte shows that old bytes are no hello") func fifthByteShowsThatItIsNoHello() {
    var direction = Direction()
    #expect(direction.receive([0x80, 44, 1]).isEmpty)
    #expect(direction.receive([9]).isEmpty)
    #expect(direction.receive([9, 9]) == [.lost])
    #expect(direction.reader.keptBytes == 6)
  }

  // MARK: gaps

  @Test("The rest of a record that a gap cut is passed over") func restOfACutRecord() {
    var direction = Direction()
    let record = Self.record(20, filled: 7)
    let next = Self.record(2)
    #expect(direction.receive(Array(record.prefix(10))).isEmpty)
    direction.lose(5)
    guard case .inside(left: 10, let tail) = direction.reader.state else {
      Issue.record("\(direction.reader.state)")
      return
    }
    #expect(tail.bytes.isEmpty)
    #expect(direction.receive(Array(record[15..<18])).isEmpty)
    #expect(
      direction.receive(Array(record[18...]) + next)
        == [.passed(tail: [UInt8](repeating: 7, count: 10)), .record(next)])
    #expect(direction.reader.isAligned)
    let region = direction.reader.takeRegion()
    #expect(region?.missing == 5)
    #expect(region?.captured == 20)
    #expect(region?.lowest == 1)
    #expect(region?.isExact == true)
    #expect(direction.reader.region == nil)
  }

  @Test("A second gap in a cut record shortens its rest, ends it or goes beyond it", arguments: [4, 15, 16])
  func secondGapInACutRecord(length: Int) {
    var direction = Direction()
    _ = direction.receive(Array(Self.record(20).prefix(6)))
    direction.lose(4)
    direction.lose(length)
    switch direction.reader.state {
    case .inside(let left, _): #expect((length, left) == (4, 11))
    case .aligned(let partial): #expect(length == 15 && partial.isEmpty)
    case .searching: #expect(length == 16 && direction.reader.region?.unplaced == 1)
    case .failed: Issue.record("failed")
    }
    #expect(direction.reader.region?.missing == 4 + length)
    #expect(direction.reader.region?.isExact == (length < 16))
  }

  @Test("A gap beyond a record, or in a header, begins a search", arguments: [0, 1, 4, 5, 24])
  func gapBeyondARecord(kept: Int) {
    var direction = Direction()
    #expect(direction.receive(Array(Self.record(20).prefix(kept))).isEmpty)
    direction.lose(100)
    #expect(direction.reader.isSearching)
    #expect(direction.reader.keptBytes == 0)
    let region = direction.reader.region
    #expect(region?.missing == 100)
    #expect(region?.captured == kept)
    // Of a record whose header is there the end is known.
    #expect(region?.lowest == (kept < 5 ? 0 : 1))
    #expect(region?.unplaced == (kept < 5 ? kept + 100 : 100 - (25 - kept)))
  }

  @Test("A gap says whether data had come before it", arguments: [false, true])
  func gapBeforeData(isBeforeData: Bool) {
    var direction = Direction()
    direction.expectation.isBeforeData = isBeforeData
    direction.reader.gap(9, .truncated, direction.expectation)
    #expect(direction.reader.hadGap)
    #expect(direction.reader.region?.isBeforeData == isBeforeData)
    #expect(direction.reader.region?.reason == .truncated)
    // A region keeps what it began with.
    direction.expectation.isBeforeData.toggle()
    direction.lose(9)
    #expect(direction.reader.region?.isBeforeData == isBeforeData)
    #expect(direction.reader.region?.missing == 18)
  }

  // MARK: bytes without records

  @Test("First bytes that begin no record were sent before the capture") func firstBytesBeginNoRecord() {
    var direction = Direction()
    #expect(direction.receive([1, 2, 3, 4, 5, 6]) == [.lost])
    #expect(direction.reader.isSearching)
    #expect(direction.reader.hadGap)
    #expect(direction.reader.keptBytes == 6)
    #expect(direction.reader.region?.isBeforeCapture == true)
    #expect(direction.reader.region?.highest == 100)
  }

  @Test("Later bytes that begin no record are a region of their own", arguments: [1, 100])
  func laterBytesBeginNoRecord(pieces: Int) {
    var direction = Direction()
    let bytes = Self.record(3) + [9, 9, 9, 9, 9]
    var heard: [Direction.Heard] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      heard += direction.receive(Array(bytes[start..<min(start + pieces, bytes.count)]))
    }
    #expect(heard == [.record(Self.record(3)), .lost])
    #expect(direction.reader.keptBytes == 5)
    #expect(direction.reader.region?.isBeforeCapture == false)
    #expect(direction.reader.region?.missing == 0)
  }

  @Test("A header must have the version of the keys")
  func headerHasTheVersionOfTheKeys() {
    for (key, header, isAllowed) in [
      (TLSVersion.tls12, UInt16(0x0303), true), (.tls12, 0x0302, false), (.tls10, 0x0301, true), (.tls13, 0x0303, true),
      (.tls13, 0x0301, true), (.tls13, 0x0304, false), (nil, 0x0304, true), (nil, 0x0205, false),
    ] as [(TLSVersion?, UInt16, Bool)] {
      var direction = Direction()
      direction.expectation.keyVersion = key
      let record = SealedConversation.record(23, [1], version: header)
      #expect(direction.receive(record) == [isAllowed ? .record(record) : .lost])
    }
  }

  // MARK: searching

  @Test("A record is found when it is there to its end") func recordIsFoundWhenItIsWhole() {
    var direction = Direction()
    direction.lose(50)
    let record = Self.record(20)
    #expect(direction.receive([1, 2]).isEmpty)
    #expect(direction.collect([1, 2, 3] + record.prefix(6)) == true)
    #expect(direction.search().0 == nil)
    // From the header on it is kept; what came before it is passed over.
    #expect(direction.reader.keptBytes == 6)
    #expect(direction.reader.region?.captured == 3)
    #expect(direction.reader.region?.unplaced == 53)
    #expect(direction.collect(Array(record[6..<24])) == false)
    #expect(direction.collect(Array(record[24...]) + [8]) == true)
    let (candidate, bytes) = direction.search()
    #expect(candidate?.place == 0..<25)
    #expect(bytes == record + [8])
    #expect(direction.reader.isSearching)
    #expect(direction.reader.keptBytes == 0)

    #expect(direction.reader.align(after: RawSpan(), shortestRecord: 22).bytes == [1, 2, 3])
    #expect(direction.reader.isAligned)
    let region = direction.reader.region
    #expect(region?.unplaced == 0)
    #expect(region?.lowest == 1)
    #expect(region?.highest == 2)
  }

  @Test("At the end of the bytes what would reach beyond them is no record") func recordReachesBeyondTheEnd() {
    var direction = Direction()
    direction.lose(50)
    let inner = Self.record(3)
    #expect(direction.collect(Array(Self.record(1_000).prefix(5)) + inner + [23, 3]) == true)
    let (candidate, bytes) = direction.search(isFinal: true)
    #expect(candidate?.place == 5..<13)
    #expect(candidate?.header.fragmentLength == 3)
    // It does not open; the last bytes may begin a header.
    #expect(
      direction.reader.candidate(in: bytes.rawBytes, after: 0, from: 6, direction.expectation, isFinal: true) == nil)
    #expect(direction.reader.keptBytes == 4)
    #expect(direction.reader.region?.captured == bytes.count - 4)
  }

  @Test("A candidate that does not open leaves the search as it was") func candidateDoesNotOpen() {
    var direction = Direction()
    direction.lose(50)
    #expect(direction.collect([5, 6, 7] + Self.record(3)) == true)
    let (candidate, bytes) = direction.search()
    #expect(candidate?.place == 3..<11)
    let searching = direction.reader
    let tail = direction.reader.align(after: bytes.rawBytes.extracting(0..<3), shortestRecord: 22)
    #expect(tail.bytes == [5, 6, 7])
    #expect(direction.reader.region?.captured == 3)
    direction.reader = searching
    #expect(direction.reader.isSearching)
    #expect(direction.reader.region?.captured == 0)
    #expect(direction.reader.region?.unplaced == 50)
    #expect(
      direction.reader.candidate(in: bytes.rawBytes, after: 0, from: 4, direction.expectation, isFinal: false) == nil)
    #expect(direction.reader.region?.captured == bytes.count - 4)
  }

  @Test("Of what is passed over the last bytes are kept", arguments: [1, 63, 64, 65, 1_000])
  func lastBytesAreKept(pieces: Int) {
    var tail = RecordTail()
    let bytes = (0..<1_000).map { UInt8($0 & 0xff) }
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      tail.add(bytes.rawBytes.extracting(start..<min(start + pieces, bytes.count)))
      #expect(tail.bytes.count <= 64)
    }
    #expect(tail.bytes == Array(bytes.suffix(64)))
  }

  @Test("A gap gives up what is collected") func gapGivesUpWhatIsCollected() {
    var direction = Direction()
    direction.lose(50)
    #expect(direction.collect([1, 2, 3]) == true)
    direction.lose(10)
    #expect(direction.reader.isSearching)
    #expect(direction.reader.keptBytes == 0)
    let region = direction.reader.region
    #expect(region?.missing == 60)
    #expect(region?.captured == 3)
    #expect(region?.unplaced == 63)
  }

  // MARK: ends

  @Test("At the end a record that is not whole counts", arguments: [false, true]) func endInARecord(isSealed: Bool) {
    var direction = Direction()
    #expect(direction.receive(Array(Self.record(20).prefix(9))).isEmpty)
    let region = direction.reader.end(countsPartial: isSealed, shortestRecord: 22, direction.expectation)
    #expect(region?.captured == (isSealed ? 9 : nil))
    #expect(region?.lowest == (isSealed ? 1 : nil))
    #expect(direction.reader.keptBytes == 0)
    #expect(direction.reader.region == nil)
  }

  @Test("An end between records leaves nothing") func endBetweenRecords() {
    var direction = Direction()
    #expect(direction.receive(Self.record(20)).count == 1)
    #expect(direction.reader.end(countsPartial: true, shortestRecord: 22, direction.expectation) == nil)
  }

  // MARK: failure

  @Test("What comes after a failure is counted and not read") func failureOnlyCounts() {
    var direction = Direction()
    #expect(direction.receive(Self.record(20)).count == 1)
    direction.reader.fail()
    #expect(direction.receive(Self.record(20)).isEmpty)
    direction.lose(7)
    #expect(direction.receive([1, 2, 3]).isEmpty)
    #expect(direction.reader.hasFailed)
    #expect(direction.reader.keptBytes == 0)
    #expect(direction.collect([1]) == false)
    let region = direction.reader.end(countsPartial: true, shortestRecord: 22, direction.expectation)
    #expect(region?.captured == 28)
    #expect(region?.missing == 7)
  }
}
