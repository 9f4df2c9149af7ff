import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// What a report of a trace says of stories.
@Suite("Stories in a report")
struct StoryTallyTests {
  @Test(
    "A report counts stories, losses of connections, refusals, recovery and tokens truly", arguments: seeds(20, of: 120)
  )
  func incidents(seed: UInt64) throws {
    let incident = Incident(seed: seed)
    // Each story by itself, which other tests hold against the truth.
    let truth = try withTemporaryFile(incident.capture.bytes) { try tell($0).book.stories }
    let tally = StoryTally(listed: 1_000)
    try withTemporaryFile(incident.capture.bytes) { path in
      let collector = StoryCollector(StoryCollector.Options(), into: tally)
      let sink = TraceInspection(limits: TraceInspection.Limits(), stories: collector)
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      try collector.write()
    }
    let stories = tally.stories
    #expect(stories.count == truth.count)
    for outcome in stories.outcomes { #expect(outcome.count == truth.count { $0.outcome == outcome.name }) }
    var losses: [Int: [String: Int]] = [:]
    var refusals: [String] = []
    for story in truth {
      for sending in story.sendings {
        if sending.fate == .discarded { losses[sending.connection, default: [:]][story.outcome, default: 0] += 1 }
        if sending.fate == .rejected { refusals.append("\(sending.connection) \(sending.index) \(hex(story.token))") }
      }
    }
    #expect(stories.losses.map(\.connection) == losses.keys.sorted())
    for loss in stories.losses {
      #expect(losses[loss.connection] == Dictionary(uniqueKeysWithValues: loss.outcomes.map { ($0.name, $0.count) }))
    }
    #expect(stories.refusals.map { "\($0.connection) \($0.notification) \($0.token)" }.sorted() == refusals.sorted())
    #expect(stories.refusals.allSatisfy { $0.payload.hasPrefix(#"{"aps":{"alert":""#) })
    let recovered = truth.compactMap(\.recoveredAfter).sorted().map { Double($0) / 1e9 }
    if recovered.isEmpty {
      #expect(stories.recovery == nil)
    } else {
      // The smallest value that this share of all does not exceed.
      func quantile(_ percent: Int) -> Double? {
        recovered.first { value in
          100 * recovered.count { $0 <= value } >= percent * recovered.count
        }
      }
      #expect(stories.recovery?.p50S == quantile(50) && stories.recovery?.p99S == quantile(99))
      #expect(stories.recovery?.maxS == recovered.last)
    }
    func cost(_ token: ToldToken) -> Int { token.rejected + max(token.sentAfterListed ?? 0, token.sentAfterGone ?? 0) }
    let costs = incident.tokens.map(cost).filter { $0 > 0 }.sorted(by: >).prefix(20)
    #expect(stories.worstTokens.map { $0.rejected + $0.sentInVain } == Array(costs))
    for row in stories.worstTokens {
      let token = try #require(incident.tokens.first { hex($0.token) == row.token })
      #expect(row.sent == token.sent && row.rejected == token.rejected && row.status != nil || row.rejected == 0)
    }
  }

  private func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

  @Test("A loss says when the first and the last of its notifications was sent again", arguments: 1...3)
  func resent(count: Int) throws {
    var capture = CaptureBuilder()
    let bad = capture.connect(from: 40_001)
    for number in [9, 1, 2, 3] as [UInt8] { capture.client(bad, push(UInt32(number), device: number)) }
    capture.server(bad, refusal(8, 9))
    let response = capture.milliseconds
    capture.finish(bad, byServer: true)
    let good = capture.connect(from: 40_002)
    var times: [Double] = []
    for number in 1...UInt8(count) {
      capture.milliseconds += 2_000
      capture.client(good, push(UInt32(number), device: number))
      times.append(Double(capture.milliseconds - response) / 1_000)
    }
    capture.finish(good)
    let tally = StoryTally(listed: 10)
    try withTemporaryFile(capture.bytes) { path in
      let collector = StoryCollector(StoryCollector.Options(), into: tally)
      var dissection = Dissection(into: collector, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      try collector.write()
    }
    let loss = try #require(tally.stories.losses.first)
    #expect(tally.stories.losses.count == 1 && loss.sentAgain == count)
    #expect(loss.firstResentS == times.first && loss.lastResentS == times.last)
  }

  @Test("No more refusals and connections are listed than the limit") func limit() throws {
    let tally = StoryTally(listed: 1)
    var story = StoryRecord(
      outcome: .rejected, seen: .rejected, token: [1], payload: nil, topic: nil, isMalformed: false, sent: 2,
      firstSent: .none,
      lastSent: .none, recoveredAfter: nil, observedFor: nil)
    var row = StoryRow(.sending, connection: 1, index: 0)
    for connection in 1...3 {
      row.connection = connection
      story.token = [UInt8(connection)]
      tally.begin(story)
      for (fate, relation) in [(FateCode.rejected, SendingRelation.first), (.discarded, .retriesRejected)] {
        row.fate = fate
        tally.receive(SendingRecord(row, relation, reasons: []))
      }
      tally.endStory()
    }
    #expect(tally.stories.refusals.map(\.token) == ["01"])
    #expect(tally.stories.losses.map(\.connection) == [1])
  }
}
