import BinaryProtocol
import Bytes
import TestSupport
import Testing

@testable import LoadTest

/// The list of a poll, however it comes.
@Suite("Lists of polls")
struct FeedbackListReaderTests {
  static let registered: UInt32 = 1_700_000_000

  /// Tuples of every kind, and what they count as.
  private static func list(_ workload: Workload, _ generator: inout SeededGenerator) -> (bytes: [UInt8], FeedbackCounts)
  {
    var counts = FeedbackCounts()
    var output = ByteWriter()
    for _ in 0..<generator.number(0...60) {
      counts.tuples += 1
      let time = registered &+ generator.pick([0, 1, 100, UInt32.max - 10])
      let isAfter = time > registered
      guard !generator.happens(oneIn: 3) else {
        counts.unknown += 1
        FeedbackTuple(timestamp: time, token: generator.bytes(generator.pick([0, 32, 1_024])).rawBytes)
          .encode(into: &output)
        continue
      }
      if isAfter { counts.listed += 1 } else { counts.registeredSince += 1 }
      FeedbackTuple(timestamp: time, token: workload.token(UInt64(generator.number(0...999))).rawBytes)
        .encode(into: &output)
    }
    return (Array(copying: output.bytes), counts)
  }

  private static func workload() throws -> Workload {
    var plan = WorkloadPlan()
    plan.tokens = 1_000
    return try Workload(plan)
  }

  private func reader(_ workload: Workload, limit: Int = 1_000, tuples: Int = 1_000) -> FeedbackListReader {
    FeedbackListReader(workload, ListedTokens(limit: limit), registered: Self.registered, maximumTuples: tuples)
  }

  @Test("Any division into pieces has the same tuples", arguments: seeds(30, of: 300))
  func pieces(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let workload = try Self.workload()
    let (bytes, counts) = Self.list(workload, &generator)
    var reader = reader(workload)
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = rest.prefix(generator.number(1...generator.pick([1, 7, 500])))
      try reader.receive(Array(piece))
      rest = rest.dropFirst(piece.count)
    }
    #expect(reader.counts == counts && reader.isBetweenTuples)
    #expect(reader.received == bytes.count)
    #expect(reader.tokens.listedCount <= counts.listed)
  }

  @Test("A list that ends within a tuple does not end between tuples")
  func cut() throws {
    let workload = try Self.workload()
    var output = ByteWriter()
    for number in 0..<3 {
      FeedbackTuple(timestamp: Self.registered + 1, token: workload.token(UInt64(number)).rawBytes)
        .encode(into: &output)
    }
    let bytes = Array(copying: output.bytes)
    for length in 0...bytes.count {
      var reader = reader(workload)
      try reader.receive(Array(bytes[..<length]))
      #expect(reader.counts.tuples == length / 38)
      #expect(reader.isBetweenTuples == (length % 38 == 0))
    }
  }

  @Test("A token longer than any, too many tuples, and a full table are told")
  func limits() throws {
    let workload = try Self.workload()
    var output = ByteWriter()
    for number in 0..<5 {
      FeedbackTuple(timestamp: Self.registered + 1, token: workload.token(UInt64(number)).rawBytes)
        .encode(into: &output)
    }
    let bytes = Array(copying: output.bytes)
    var many = reader(workload, tuples: 4)
    #expect(throws: FeedbackListReader.Problem.tooLong(4)) { try many.receive(bytes) }
    var exact = reader(workload, tuples: 5)
    #expect(throws: Never.self) { try exact.receive(bytes) }
    var long = reader(workload)
    #expect(throws: FeedbackListReader.Problem.malformed) { try long.receive([0, 0, 0, 1, 0xff, 0xff]) }
    var full = reader(workload, limit: 2)
    try full.receive(bytes + bytes)
    #expect(full.counts.listed == 4 && full.counts.notRemembered == 6)
    #expect(full.tokens.listedCount == 2)
  }
}

extension Workload {
  /// The bytes of a token of the plan.
  func token(_ number: UInt64) -> [UInt8] {
    var output = ByteWriter()
    writeToken(numbered: number, length: tokenLength, isInvalid: false, into: &output)
    return Array(copying: output.bytes)
  }
}
