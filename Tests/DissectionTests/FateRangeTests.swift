import APNSProtocol
import PacketCapture
import TestSupport
import Testing

@testable import Dissection

/// Fates as ranges, and what a book of them knows.
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
    var capture = CaptureBuilder()
    for number in 0..<random.number(1...4) {
      let line = capture.connect(from: UInt16(40_001 + number))
      var written: UInt32 = 0
      for _ in 0..<random.number(1...60) {
        if written > 0, random.happens(oneIn: random.pick([2, 9])) {
          let status = random.pick([0, 0, 1, 8, 8, 10, 255] as [UInt8])
          capture.server(line, refusal(status, UInt32(random.number(1...Int(written + 1)))))
        } else {
          written += 1
          capture.client(line, push(random.happens(oneIn: 9) ? 1 : written, device: UInt8(random.number(0...3))))
        }
      }
      if random.happens(oneIn: 2) { capture.finish(line, byServer: random.happens(oneIn: 2)) }
    }
    try expectWhole(try capture.dissected())
  }

  /// A session keeps 4,096 rejections; when it forgets the lowest, their fates have been told.
  @Test("Of more rejections than a session keeps none is lost") func many() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let count = 10_000
    var responses: [UInt8] = []
    for index in 0..<count {
      capture.client(line, push(UInt32(index), device: 1))
      if index % 3 != 1 { responses += refusal(8, UInt32(index)) }
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
    let book = book(of: seen)
    #expect((0..<count).allSatisfy { book.range(of: $0, on: 1)?.fate == ($0 % 3 != 1 ? .rejected : .accepted) })
  }

  @Test("A book keeps the ranges of a connection all or not at all") func limit() throws {
    var capture = CaptureBuilder()
    for number in 0..<3 {
      let line = capture.connect(from: UInt16(40_001 + number))
      for index in 0..<5 { capture.client(line, push(UInt32(index), device: 1)) }
      if number == 1 { capture.server(line, refusal(8, 2)) }
      capture.finish(line)
    }
    let seen = try capture.dissected()
    for (maximum, kept) in [(5, [1, 2, 3]), (4, [1, 2]), (3, [1, 3]), (2, [1, 3]), (1, [1])] {
      let book = book(of: seen, maximumRanges: maximum)
      #expect([1, 2, 3].filter { book.range(of: 0, on: $0) != nil } == kept, "\(maximum)")
      #expect(book.connectionsNotKept == 3 - kept.count)
    }
  }

  @Test("A book knows nothing of what is not in it") func unknown() {
    let book = FateBook()
    #expect(book.range(of: 0, on: 0) == nil && book.range(of: 0, on: 1) == nil)
    #expect(book.range(of: -1, on: 1) == nil)
  }

  private func book(of seen: Collector, maximumRanges: Int = 1 << 20) -> FateBook {
    var book = FateBook(maximumRanges: maximumRanges)
    for connection in seen.connections {
      for fate in seen.fates where fate.connection == connection.connection { book.receive(fate) }
      book.receive(connection)
    }
    return book
  }

  private func expectWhole(_ seen: Collector) throws {
    let book = book(of: seen)
    for connection in seen.connections {
      var next = 0
      var counts: [ProviderSession.Fate: Int] = [:]
      for range in seen.fates where range.connection == connection.connection {
        #expect(range.first == next && range.last >= range.first)
        next = range.last + 1
        counts[range.fate, default: 0] += range.last + 1 - range.first
        for index in [range.first, range.last] {
          #expect(book.range(of: index, on: range.connection)?.fate == range.fate)
        }
      }
      #expect(next == connection.notifications)
      #expect(book.range(of: next, on: connection.connection) == nil)
      #expect(ProviderSession.Fate.allCases.map { counts[$0, default: 0] } == fates(of: connection))
      // What an error response says of its connection is said by the ranges, if it could wait for its final counts.
      guard connection.errorResponses <= DissectionOptions().maximumHeldResponses else { continue }
      for response in seen.responses where response.place.connection == connection.connection {
        guard let named = response.notification, let discarded = response.discarded else { continue }
        let fate = try #require(book.range(of: named, on: connection.connection)).fate
        #expect(fate == .accepted || fate == .rejected)
        #expect(discarded == 0 || discarded == counts[.discarded])
      }
    }
  }
}
