import BinaryProtocol
import PacketCapture
import PushModel
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// Fates as ranges, and the index of them.
@Suite("Fate ranges")
struct FateRangeTests {
  @Test(
    "A connection's ranges are in order, leave none out, and add up to its fates", arguments: TraceTests.baselines)
  func traces(name: String) throws {
    let seen = try dissect(Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path)
    try expectWhole(seen)
  }

  @Test("The same where a gateway answers many notifications, in any order", arguments: seeds(40, of: 300))
  func chance(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    try expectWhole(try CaptureBuilder.conversations(&random).dissected())
  }

  /// A session keeps 4,096 rejections; when it forgets the lowest, their fates have been told.
  @Test("Of more rejections than a session keeps none is lost") func many() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let count = 10_000
    var responses: [UInt8] = []
    for index in 0..<count {
      // Identifier 0 in a response names nothing.
      capture.client(line, push(UInt32(index + 1), device: 1))
      if index % 3 != 1 { responses += refusal(8, UInt32(index + 1)) }
      if responses.count >= 1_200 {
        capture.server(line, responses)
        responses = []
      }
    }
    capture.server(line, responses)
    capture.finish(line)
    let seen = try capture.dissected()
    try expectWhole(seen)
    #expect(fates(of: seen.connections[0]) == [3_333, 6_667, 0, 0])
    let rejected = seen.fates.filter { $0.fate == .rejected }.flatMap { Array($0.first...$0.last) }
    #expect(rejected == (0..<count).filter { $0 % 3 != 1 })
    let found = fateIndex(of: seen)
    #expect((0..<count).allSatisfy { found.range(of: $0, on: 1)?.fate == ($0 % 3 != 1 ? .rejected : .accepted) })
  }

  @Test("Either all or none of the ranges of a connection are kept") func limit() throws {
    var capture = CaptureBuilder()
    for number in 0..<3 {
      let line = capture.connect(from: UInt16(40_001 + number))
      for index in 0..<5 { capture.client(line, push(UInt32(index), device: 1)) }
      if number == 1 { capture.server(line, refusal(8, 2)) }
      capture.finish(line)
    }
    let seen = try capture.dissected()
    for (maximum, kept) in [(5, [1, 2, 3]), (4, [1, 2]), (3, [1, 3]), (2, [1, 3]), (1, [1])] {
      let found = fateIndex(of: seen, maximumRanges: maximum)
      #expect([1, 2, 3].filter { found.range(of: 0, on: $0) != nil } == kept, "\(maximum)")
      #expect(found.connectionsNotKept == 3 - kept.count)
    }
  }

  @Test("A notification without a kept fate has none") func unknown() {
    let found = FateIndex()
    #expect(found.range(of: 0, on: 0) == nil && found.range(of: 0, on: 1) == nil)
    #expect(found.range(of: -1, on: 1) == nil)
  }

  private func fateIndex(of seen: Collector, maximumRanges: Int = 1 << 20) -> FateIndex {
    var fates = FateIndex(maximumRanges: maximumRanges)
    for connection in seen.connections {
      for fate in seen.fates where fate.connection == connection.connection { fates.receive(fate) }
      fates.receive(connection)
    }
    return fates
  }

  private func expectWhole(_ seen: Collector) throws {
    let found = fateIndex(of: seen)
    for connection in seen.connections {
      var next = 0
      var counts: [Fate: Int] = [:]
      for range in seen.fates where range.connection == connection.connection {
        #expect(range.first == next && range.last >= range.first)
        next = range.last + 1
        counts[range.fate, default: 0] += range.last + 1 - range.first
        for index in [range.first, range.last] {
          #expect(found.range(of: index, on: range.connection)?.fate == range.fate)
        }
      }
      #expect(next == connection.notifications)
      #expect(found.range(of: next, on: connection.connection) == nil)
      #expect(Fate.allCases.map { counts[$0, default: 0] } == fates(of: connection))
      // What an error response says of its connection is said by the ranges, if it could wait for its final counts.
      guard connection.errorResponses <= DissectionOptions().maximumHeldResponses else { continue }
      for response in seen.responses where response.place.connection == connection.connection {
        guard let named = response.notification, let discarded = response.discarded else { continue }
        let fate = try #require(found.range(of: named, on: connection.connection)).fate
        #expect(fate == .accepted || fate == .rejected)
        #expect(discarded == 0 || discarded == counts[.discarded])
      }
    }
  }
}
