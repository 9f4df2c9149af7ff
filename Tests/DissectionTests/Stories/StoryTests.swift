import BinaryProtocol
import Bytes
import Foundation
import Measurement
import PacketCapture
import PushModel
import TestSupport
import Testing

@testable import Analysis
@testable import Records

/// Stories against incidents whose truth is known.
@Suite("Stories")
struct StoryTests {
  @Test("Stories and tokens of an incident are the truth, in memory and through files", arguments: seeds(40, of: 300))
  func incidents(seed: UInt64) throws {
    let incident = Incident(seed: seed)
    var options = StoryCollector.Options()
    if seed.isMultiple(of: 3) { options.repeatAfter = 60_000_000_000 }
    try withTemporaryFile(incident.capture.bytes) { path in
      for memory in [options.memory, 1 << 12] {
        options.memory = memory
        let (book, hasSpilled) = try tell(path, options)
        let truth = incident.stories(repeatAfter: options.repeatAfter)
        #expect(book.stories.count == truth.count)
        for (told, truth) in zip(book.stories, truth) {
          let isProven = incident.proves(told, of: truth, among: book.stories)
          #expect(isProven, "\(told.outcome), and \(truth.outcome) in truth")
        }
        #expect(book.tokens.sorted { $0.token.lexicographicallyPrecedes($1.token) } == incident.tokens)
        #expect(hasSpilled ? memory == 1 << 12 : memory > 1 << 12 || incident.sendings.count < 8)
        var onlyDead = options
        (onlyDead.writesOnlyDeadTokens, onlyDead.writesStories) = (true, false)
        let dead = try tell(path, onlyDead).book
        #expect(dead.tokens == book.tokens.filter(\.isDead) && dead.stories.isEmpty)
        #expect(dead.summaries.first?.tokens == dead.tokens.count)
        let summary = try #require(book.summaries.first)
        #expect(summary.sendings == summary.recording.notifications && summary.sendings == incident.sendings.count)
        #expect(summary.stories == truth.count && summary.tokens == incident.tokens.count)
        for outcome in StoryOutcome.allCases {
          #expect(summary[outcome] == book.stories.count { $0.outcome == outcome.name })
        }
      }
    }
  }

  @Test("Incidents have every outcome, loss, feedback and repeats") func generator() {
    var outcomes: [String: Int] = [:]
    var (listed, dead) = (0, 0)
    for seed in 1...40 as ClosedRange<UInt64> {
      let incident = Incident(seed: seed)
      for story in incident.stories(repeatAfter: 600_000_000_000) { outcomes[story.outcome, default: 0] += 1 }
      listed += incident.tokens.count { $0.sentAfterListed ?? 0 > 0 }
      dead += incident.tokens.count(where: \.isDead)
    }
    #expect(Set(outcomes.keys) == Set(StoryOutcome.allCases.map(\.name)), "\(outcomes)")
    #expect(outcomes.values.allSatisfy { $0 > 10 } && listed > 10 && dead > 10, "\(outcomes) \(listed) \(dead)")
  }

  @Test("A selection tells whole stories of which one sending matches", arguments: seeds(15, of: 100))
  func selections(seed: UInt64) throws {
    let incident = Incident(seed: seed)
    // What is said of a selected notification is what is said of it without a selection.
    let all = try withTemporaryFile(incident.capture.bytes) { try tell($0).book.stories }
    var random = SeededGenerator(seed: seed)
    let sending = random.pick(all.flatMap(\.sendings))
    let token = random.pick(all).token
    typealias Criterion = (change: (inout RecordSelection) -> Void, matches: (ToldStory, Incident.Sending) -> Bool)
    let criteria: [Criterion] = [
      ({ $0.from = .at(Timestamp(nanoseconds: sending.time)) }, { $1.time >= sending.time }),
      ({ $0.to = .at(Timestamp(nanoseconds: sending.time)) }, { $1.time < sending.time }),
      ({ $0.connections = [sending.connection...sending.connection] }, { $1.connection == sending.connection }),
      ({ $0.identifiers = [sending.identifier] }, { $1.identifier == sending.identifier }),
      ({ $0.fates = [sending.fate] }, { $1.fate == sending.fate }),
      ({ $0.statuses = [8] }, { $1.status == 8 }),
      (
        {
          $0.tokens = [RecordSelection.TokenPrefix("000000" + String(token[3], radix: 16).leftPadded)].compactMap { $0 }
        },
        { story, _ in story.token == token }
      ),
    ]
    try withTemporaryFile(incident.capture.bytes) { path in
      for count in 1...2 {
        var chosen = criteria
        chosen.shuffle(using: &random)
        var options = StoryCollector.Options()
        for criterion in chosen.prefix(count) { criterion.change(&options.selection) }
        let expected = all.filter { story in
          story.sendings.contains { sending in chosen.prefix(count).allSatisfy { $0.matches(story, sending) } }
        }
        let (book, _) = try tell(path, options)
        #expect(book.stories == expected, "\(options.selection.options)")
        #expect(book.captures.first?.selection == options.selection.options)
        let tokens = Set(expected.map(\.token))
        #expect(tokens.isSubset(of: book.tokens.map(\.token)), "\(options.selection.options)")
        options.outcomes = [random.pick(StoryOutcome.allCases)]
        let (some, _) = try tell(path, options)
        #expect(some.stories == expected.filter { $0.outcome == options.outcomes.first?.name })
      }
    }
  }

  @Test("A notification with an empty token, or of which the items do not fit, is a story; an empty token is no token")
  func unusual() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let token = [UInt8](repeating: 9, count: 32)
    // The last item is longer than the rest of its frame.
    let items = [1, 0, 32] + token + [2, 0, 9, 1]
    for _ in 0..<2 { capture.client(line, [2, 0, 0, 0, UInt8(items.count)] + items) }
    capture.client(
      line,
      written {
        BinaryFrame.encodeEnhanced(
          identifier: 7, expiration: 0, token: [UInt8]().rawBytes, payload: [UInt8]().rawBytes, into: &$0)
      })
    capture.server(line, refusal(2, 7))
    capture.finish(line, byServer: true)
    let (book, _) = try withTemporaryFile(capture.bytes) { try tell($0) }
    #expect(book.stories.map(\.sendings.count) == [2, 1])
    #expect(book.stories.map(\.token) == [token, []])
    #expect(book.stories.last?.outcome == "rejected" && book.stories.last?.sendings.first?.status == 2)
    #expect(book.tokens.map(\.token) == [token] && book.tokens.map(\.sent) == [2])
  }

  /// What clients send to learn what was accepted, behind an error.
  @Test(
    "A discarded notification without a token loses nothing, one that does not fit its frame may",
    arguments: [true, false])
  func discardedWithoutToken(fits: Bool) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(3, device: 3))
    let items: [UInt8] = fits ? [1, 0, 0, 2, 0, 2, 123, 125] : [1, 0, 0, 2, 0, 9, 123]
    capture.client(line, [2, 0, 0, 0, UInt8(items.count)] + items)
    capture.server(line, refusal(8, 3))
    capture.finish(line, byServer: true)
    capture.observe()
    let (book, _) = try withTemporaryFile(capture.bytes) { try tell($0) }
    let discarded = book.stories.first { $0.sendings.map(\.fate) == [.discarded] }
    #expect(discarded?.outcome == (fits ? "rejected" : "lost"), "\(book.stories)")
  }

  @Test("The sendings of all stories are all notifications of a trace", arguments: TraceTests.baselines)
  func books(name: String) throws {
    let path = Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path
    let (book, _) = try tell(path)
    let seen = try dissect(path)
    let places = book.stories.flatMap(\.sendings).map { "\($0.connection) \($0.index) \($0.identifier)" }
    #expect(places.sorted() == seen.notifications.map { "\($0.connection) \($0.index) \($0.identifier ?? 0)" }.sorted())
    var fates = FateCounts()
    for record in seen.connections {
      fates.accepted += record.fates.accepted
      fates.rejected += record.fates.rejected
    }
    #expect(book.stories.flatMap(\.sendings).count { $0.fate == .accepted } == fates.accepted)
    #expect(book.stories.flatMap(\.sendings).count { $0.fate == .rejected } == fates.rejected)
  }

  @Test("Times to recovery are the values that half and 99 % do not exceed", arguments: [1, 2, 99, 100, 101, 200, 250])
  func recovery(count: UInt32) throws {
    var capture = CaptureBuilder()
    let bad = capture.connect(from: 40_001)
    capture.client(bad, push(count + 1, device: 99))
    for number in 1...count { capture.client(bad, push(number, device: 1, "number \(number)")) }
    capture.server(bad, refusal(8, count + 1))
    capture.finish(bad, byServer: true)
    let good = capture.connect(from: 40_002)
    // The last ones first, so that each takes another time.
    for number in (1...count).reversed() { capture.client(good, push(number, device: 1, "number \(number)")) }
    capture.client(good, push(count + 1, device: 99))
    capture.server(good, refusal(8, count + 1))
    capture.finish(good, byServer: true)
    capture.observe()
    let book = try withTemporaryFile(capture.bytes) { try tell($0).book }
    let times = book.stories.compactMap(\.recoveredAfter).sorted()
    #expect(times.count == Int(count) && Set(times).count == times.count)
    let recovery = try #require(book.summaries.first?.recovery)
    #expect(recovery.max == times.last)
    for (value, share) in [(recovery.p50, 50), (recovery.p99, 99)] {
      // The least value that so many do not exceed.
      let least = times.first { time in times.count { $0 <= time } * 100 >= share * times.count }
      #expect(value == least, "\(share) %")
    }
  }
}

extension String {
  fileprivate var leftPadded: String { count < 2 ? "0" + self : self }
}
