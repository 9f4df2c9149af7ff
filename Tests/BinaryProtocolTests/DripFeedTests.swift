import BinaryProtocol
import TestSupport
import Testing

/// The contract of every incremental decoder: bytes may come one at a time or all at once, and nothing else changes.
@Suite("Drip feed")
struct DripFeedTests {
  @Test("Every prefix of a record from the field asks for more", arguments: Vector.all)
  func vectorPrefixes(vector: Vector) {
    for place in vector.places { expectPrefixesAreIncomplete(vector.kind, Array(vector.bytes[place])) }
  }

  @Test(
    "Every prefix of a generated record asks for more", arguments: RecordKind.allCases, 1...20 as ClosedRange<UInt64>)
  func generatedPrefixes(kind: RecordKind, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<4 { expectPrefixesAreIncomplete(kind, random.record(kind)) }
  }

  @Test("Reading exactly what was asked for reaches the end of the record", arguments: RecordKind.allCases)
  func asking(kind: RecordKind) {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<50 {
      let record = random.record(kind)
      var given = 0
      var questions = 0
      while case .incomplete(let needed) = kind.extent(of: Array(record.prefix(given)), at: 0) {
        guard needed > given, needed <= record.count else {
          Issue.record("with \(given) of \(record.count) bytes \(needed) were asked for")
          return
        }
        given = needed
        questions += 1
      }
      #expect(kind.extent(of: Array(record.prefix(given)), at: 0) == .complete(record.count))
      #expect(given == record.count)
      // First byte, token length, payload length, end: no decoder asks for single bytes.
      #expect(questions <= 4)
    }
  }

  @Test(
    "A stream in pieces gives the records of the single ones", arguments: RecordKind.allCases,
    1...10 as ClosedRange<UInt64>)
  func joined(kind: RecordKind, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let single = (0..<30).map { _ in random.record(kind) }
    let records = try single.map { try kind.parse(whole: $0) }
    let stream = Array(single.joined())

    let (joined, consumed, error) = kind.parseAll(stream)
    #expect(joined == records)
    #expect(consumed == stream.count)
    #expect(error == nil)

    var buffer: [UInt8] = []
    var fed = 0
    var pieces: [CopiedRecord] = []
    while fed < stream.count {
      let piece = min(random.number(1...random.pick([1, 8, 300])), stream.count - fed)
      buffer += stream[fed..<fed + piece]
      fed += piece
      let (parsed, consumed, error) = kind.parseAll(buffer)
      #expect(error == nil || error == ParseError(.incomplete, at: 0))
      pieces += parsed
      buffer.removeFirst(consumed)
    }
    #expect(pieces == records)
    #expect(buffer.isEmpty)
  }

  /// Records that are wrong, each with the number of bytes after which that is known.
  static let malformed: [(kind: RecordKind, bytes: [UInt8], knownAfter: Int, problem: ParseError.Problem)] = [
    (.notification, Array(hex: "07"), 1, .unknownCommand(7)),
    (.notification, Array(hex: "ff 00 7f 03"), 1, .unknownCommand(255)),
    (.notification, Array(hex: "00 0401") + Array(repeating: 0, count: 1027), 3, .tokenTooLong(1025)),
    (.notification, Array(hex: "01 00000001 00000002 ffff 00"), 11, .tokenTooLong(65_535)),
    (.notification, Array(hex: "00 0000 0000"), 5, .emptyNotification),
    (.notification, Array(hex: "02 ffffffff 01"), 5, .frameTooLong(4_294_967_295)),
    (.response, Array(hex: "73 68 6f 72 74 21"), 2, .unknownResponse(command: 0x73, status: 0x68)),
    (.feedback, Array(hex: "5620f340 0401 00"), 6, .tokenTooLong(1025)),
  ]

  @Test("A malformed record is incomplete and then malformed, never complete", arguments: malformed.indices)
  func malformedPrefixes(index: Int) {
    let (kind, bytes, knownAfter, problem) = Self.malformed[index]
    for count in 0...bytes.count {
      let prefix = Array(bytes.prefix(count))
      switch kind.extent(of: prefix, at: 0) {
      case .complete: Issue.record("complete after \(count) bytes")
      case .incomplete(let needed): #expect(count < knownAfter && needed > count)
      case .malformed(let error): #expect(count >= knownAfter && error.problem == problem)
      }
      var offset = 0
      let error = #expect(throws: ParseError.self) { try kind.parse(prefix, at: &offset) }
      #expect(error?.problem == (count < knownAfter ? .incomplete : problem))
      #expect(offset == 0)
    }
  }

  /// Holds for `record` alone and behind other bytes.
  private func expectPrefixesAreIncomplete(_ kind: RecordKind, _ record: [UInt8]) {
    let before: [UInt8] = [0xff, 0x02, 0x00]
    for count in 0..<record.count {
      let prefix = before + record.prefix(count)
      guard case .incomplete(let needed) = kind.extent(of: prefix, at: before.count), needed > count,
        needed <= record.count
      else {
        Issue.record("\(count) of \(record.count) bytes: \(kind.extent(of: prefix, at: before.count))")
        return
      }
      var offset = before.count
      do {
        let parsed = try kind.parse(prefix, at: &offset)
        Issue.record("\(count) of \(record.count) bytes were parsed as \(parsed)")
        return
      } catch {
        guard error.problem == .incomplete, offset == before.count else {
          Issue.record("\(count) of \(record.count) bytes: \(error), offset moved to \(offset)")
          return
        }
      }
    }
    // The whole record is complete, and what stands behind it does not matter.
    for after in [[], [0x02], [0xff, 0xff, 0xff, 0xff, 0xff]] as [[UInt8]] {
      #expect(kind.extent(of: before + record + after, at: before.count) == .complete(record.count))
      var offset = before.count
      #expect(throws: Never.self) { try kind.parse(before + record + after, at: &offset) }
      #expect(offset == before.count + record.count)
    }
  }
}
