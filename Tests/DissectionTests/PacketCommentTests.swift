import BinaryProtocol
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// What comments at packets say of notifications that were sent again, which no number of notifications between changes.
@Suite("Comments at packets")
struct PacketCommentTests {
  /// The comments at the packets of a capture.
  private static func comments(
    _ capture: CaptureBuilder, limit: Int = 1_000, memory: Int = 1 << 20
  ) throws -> (texts: [Int: String], omitted: Int) {
    try withTemporaryFile(capture.bytes) { path in
      func read(into sink: some RecordSink) throws {
        let options = DissectionOptions()
        var dissection = Dissection(into: sink, options: options)
        _ = try dissection.read(try .open(path, options: options.capture), source: path) { _ in true }
        dissection.finish()
      }
      let fates = SharedSink(FateIndex(maximumRanges: 1_000_000))
      try read(into: fates)
      let sendings = DiscardedNotifications(limit: limit)
      var options = StoryCollector.Options()
      (options.writesTokens, options.memory) = (false, memory)
      let collector = StoryCollector(options, into: sendings)
      try read(into: collector)
      try collector.write()
      let comments = PacketComments(fates: fates.sink, sendings: sendings, limit: limit)
      try read(into: comments)
      var texts: [Int: String] = [:]
      for packet in 1...capture.packets { texts[packet] = comments.comment(at: packet) }
      return (texts, comments.omitted)
    }
  }

  @Test("A notification that is sent again beyond the window of an inspection is recognised, through files as well")
  func beyondTheWindow() throws {
    var capture = CaptureBuilder()
    let first = capture.connect()
    capture.client(first, push(1, device: 1, "bad"))
    capture.client(first, push(2, device: 2, "again") + push(3, device: 2, "never"))
    let lost = capture.packets
    capture.server(first, refusal(8, 1))
    let refused = capture.packets
    capture.finish(first, byServer: true)
    let second = capture.connect(from: 40_002)
    let between = Inspection.Limits().history + 1_000
    for number in stride(from: 0, to: between, by: 500) {
      capture.client(second, (0..<500).flatMap { push(UInt32(10 + number + $0), device: 3, "text \(number + $0)") })
    }
    capture.client(second, push(9, device: 2, "again"))
    let again = capture.packets
    for memory in [1 << 28, 1 << 16] {
      let (texts, omitted) = try Self.comments(capture, memory: memory)
      #expect(
        texts[lost]
          == "#1 to #2 discarded after #0 (8 invalid token), 1 sent again in packet \(again), 1 not seen again")
      #expect(texts[again]?.hasSuffix(" repeats #1 of connection 1 (packet \(lost)), which was discarded") == true)
      #expect(
        texts[refused]
          == "error response 8 invalid token: #0 refused, 2 after it discarded, 1 of them not seen again: 2 open")
      #expect(texts.count == 4 && omitted == 0)
    }
  }

  /// The parts of comments that say what was sent again. Which response discarded something is not said when that has no
  /// comment itself.
  private static func again(_ text: String) -> [Substring] {
    text.split(separator: "\n").filter { $0.hasPrefix("#") }
      .flatMap { $0.matches(of: #/(?:[0-9]+ )?sent again.*|not seen again.*|repeats.*/#).map(\.output) }
  }

  @Test("With fewer comments each says the same of what was sent again", arguments: seeds(15, of: 80))
  func limit(seed: UInt64) throws {
    let capture = Incident(seed: seed).capture
    let (all, none) = try Self.comments(capture, limit: 100_000)
    #expect(none == 0)
    for limit in [1, 3, 10, 40] {
      let (some, omitted) = try Self.comments(capture, limit: limit)
      #expect(some.count <= limit && (omitted > 0 || some == all))
      for (packet, text) in some {
        let whole = Self.again(all[packet] ?? "")
        #expect(whole.starts(with: Self.again(text)), "\(limit): packet \(packet): \(text)")
      }
    }
  }

  @Test("Comments count what was sent again as stories do", arguments: seeds(15, of: 80))
  func counts(seed: UInt64) throws {
    let capture = Incident(seed: seed).capture
    let (texts, _) = try Self.comments(capture, limit: 100_000)
    let book = try withTemporaryFile(capture.bytes) { try tell($0).book }
    var expected = 0
    for story in book.stories {
      var relations = SendingRelations()
      for sending in story.sendings where relations.next(FateCode(sending.fate), on: sending.connection).resent > 0 {
        expected += 1
      }
    }
    let ranges = texts.values.flatMap { $0.split(separator: "\n") }.compactMap {
      $0.firstMatch(of: #/^#([0-9]+)(?: to #([0-9]+))? repeat/#)?.output
    }
    let found = ranges.reduce(0) { sum, range in
      let first = Int(range.1) ?? 0
      return sum + (range.2.flatMap { Int($0) } ?? first) - first + 1
    }
    #expect(found == expected)
  }
}
