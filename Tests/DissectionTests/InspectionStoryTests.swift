import BinaryProtocol
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis

/// The stories that an inspection counts in one pass, beside the truth, and beside `follow`.
@Suite("Stories of an inspection")
struct InspectionStoryTests {
  private static let repeatAfter = StoryCollector.Options().repeatAfter

  @Test("An inspection counts the distinct notifications of an incident as they were", arguments: seeds(40, of: 300))
  func incidents(seed: UInt64) throws {
    let incident = Incident(seed: seed)
    // Each story by itself, which other tests hold against the truth.
    let (book, _) = try withTemporaryFile(incident.capture.bytes) { try tell($0) }
    let truth = book.stories
    let report = try incident.capture.inspected()
    func count(_ outcome: StoryOutcome) -> Int { truth.count { $0.outcome == outcome.name } }
    let stories = try #require(report.stories)
    for outcome in StoryOutcome.allCases { #expect(stories[outcome] == count(outcome), "\(outcome)") }
    #expect(stories.total == truth.count)
    let reasons = book.reasons.compactMap { $0 }
    #expect(stories.openReasons.byName == Dictionary(reasons.map { ($0.rawValue, 1) }, uniquingKeysWith: +))
    #expect(stories.window == nil && stories.notTracked == 0)
    let recoveries = truth.compactMap { $0.recoveredAfter.map { Double($0) / 1e9 } }.sorted()
    #expect(stories.recovery == RecoveryTimes(sortedSeconds: recoveries))
    func finding(_ kind: FindingKind) -> Int { report.findings.first { $0.kind == kind }?.count ?? 0 }
    #expect(finding(.neverResent) == count(.lost) && finding(.acceptedTwice) == count(.acceptedTwice))
    #expect(finding(.notSeenAgain) == truth.count { $0.outcome == "open" && $0.observedFor != nil })
    let sent = Dictionary(
      incident.sendings.map { ([$0.sending.connection, $0.sending.index], $0) }, uniquingKeysWith: { first, _ in first }
    )
    for error in report.errors {
      guard let named = error.notification, let (content, sending) = sent[[error.connection, named]] else { continue }
      guard sending.fate == .rejected else { continue }
      #expect(error.token == hexadecimal(content.token))
      let payload = String(decoding: content.payload, as: UTF8.self)
      #expect(error.payload == payload || payload.hasPrefix(error.payload?.dropLast().description ?? "none"))
    }
    expectOutcomesOfResponses(report, truth)
  }

  /// Each discarded sending is in the outcomes of one response of its connection.
  private func expectOutcomesOfResponses(_ report: InspectionReport, _ truth: [ToldStory]) {
    var outcomes: [Int: [String: Int]] = [:]
    for story in truth {
      for sending in story.sendings where sending.fate == .discarded {
        outcomes[sending.connection, default: [:]][story.outcome, default: 0] += 1
      }
    }
    let told = report.errors.reduce(into: [Int: [String: Int]]()) { sum, error in
      if let outcomes = error.outcomes {
        sum[error.connection, default: [:]].merge(outcomes.byName, uniquingKeysWith: +)
      }
    }
    #expect(told == outcomes)
  }

  @Test(
    "Several responses on a connection, in any order, say of each notification what its story says",
    arguments: [[2, 5, 8], [2, 8, 5], [5, 2, 8], [5, 8, 2], [8, 2, 5], [8, 5, 2], [5, 5, 5], [5, 2, 5]])
  func responses(named: [UInt32]) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 0...9 as ClosedRange<UInt32> { capture.client(line, push(number, device: UInt8(number))) }
    for number in named { capture.server(line, refusal(8, number)) }
    capture.finish(line, byServer: true)
    capture.observe()
    let truth = try withTemporaryFile(capture.bytes) { try tell($0).book.stories }
    let report = try capture.inspected()
    let stories = try #require(report.stories)
    for outcome in StoryOutcome.allCases {
      #expect(stories[outcome] == truth.count { $0.outcome == outcome.name }, "\(outcome)")
    }
    expectOutcomesOfResponses(report, truth)
  }

  @Test("Repeats beyond the window are not recognised, and the window is stated", arguments: [64, 4_096])
  func window(size: Int) throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    func send(_ numbers: Range<Int>) {
      for number in numbers { capture.client(line, push(UInt32(number), device: 1, "text \(number)")) }
    }
    send(0..<100)
    // The first comes again behind 99 others, the last one behind none.
    send(0..<1)
    send(99..<100)
    let packet = capture.packets
    capture.client(line, push(200, device: 9, "marker"))
    capture.server(line, refusal(8, 200))
    capture.finish(line, byServer: true)
    var limits = Inspection.Limits()
    limits.history = size
    let report = try capture.inspected(limits: limits)
    let stories = try #require(report.stories)
    let finding = report.findings.first { $0.kind == .acceptedTwice }
    #expect(finding?.firstPacket == (size == 64 ? packet : packet - 1))
    #expect(stories.acceptedTwice == (size == 64 ? 1 : 2))
    #expect(stories.window == (size == 64 ? 64 - SentHistory.lag : nil))
    #expect((stories.windowS ?? 0 > 0) == (size == 64))
  }

  @Test("A discarded notification is recognised however many come between") func distance() throws {
    var capture = CaptureBuilder()
    let first = capture.connect()
    for number in 1...4 as ClosedRange<UInt32> { capture.client(first, push(number, device: 2, "text \(number)")) }
    capture.server(first, refusal(8, 1))
    capture.finish(first, byServer: true)
    let second = capture.connect(from: 40_002)
    for number in 10..<400 as Range<UInt32> { capture.client(second, push(number, device: 3, "text \(number)")) }
    capture.client(second, push(500, device: 2, "text 3") + push(501, device: 4, "marker"))
    capture.server(second, refusal(8, 501))
    capture.finish(second, byServer: true)
    capture.observe()
    var limits = Inspection.Limits()
    limits.history = 16
    let report = try capture.inspected(limits: limits)
    let stories = try #require(report.stories)
    #expect((stories.lost, stories.recovered, stories.rejected) == (2, 1, 2))
    #expect(report.errors.map(\.outcomes) == [[.lost: 2, .recovered: 1], nil])
    #expect(report.errors.map(\.sentAgain) == [1, 0])
  }

  @Test("More repeats than are tracked are counted, and lost ones are tracked all the same") func flood() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 0..<200 as Range<UInt32> { capture.client(line, push(number, device: 1)) }
    for number in 200..<203 as Range<UInt32> { capture.client(line, push(number, device: 2, "text \(number)")) }
    capture.server(line, refusal(8, 200))
    capture.finish(line, byServer: true)
    let second = capture.connect(from: 40_002)
    capture.client(second, push(300, device: 2, "text 202") + push(301, device: 4, "marker"))
    capture.server(second, refusal(8, 301))
    capture.finish(second, byServer: true)
    capture.observe()
    var limits = Inspection.Limits()
    limits.remembered = 8
    let stories = try #require(try capture.inspected(limits: limits).stories)
    #expect((stories.lost, stories.recovered, stories.acceptedTwice) == (1, 1, 1))
    #expect(stories.notTracked == 200 - 1 - 8)
  }

  @Test("Expired notifications that are not followed are open, and take nothing from those that are repeated")
  func expired() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    for number in 0..<30 as Range<UInt32> {
      let late = written {
        BinaryFrame.encodeEnhanced(
          identifier: number, expiration: 1, token: [UInt8](repeating: UInt8(number), count: 32).rawBytes,
          payload: Array(#"{"aps":{"alert":"late"}}"#.utf8).rawBytes, into: &$0)
      }
      capture.client(line, late)
    }
    for number in 30..<32 as Range<UInt32> { capture.client(line, push(number, device: 99)) }
    capture.client(line, push(32, device: 98))
    capture.server(line, refusal(8, 32))
    capture.finish(line, byServer: true)
    capture.observe()
    var limits = Inspection.Limits()
    limits.remembered = 8
    let stories = try #require(try capture.inspected(limits: limits).stories)
    #expect((stories.expired, stories.acceptedTwice, stories.accepted, stories.rejected) == (8, 1, 0, 1))
    #expect(stories.openReasons[.notTracked] == 22)
  }

  @Test("Memory is bounded in a recording of one notification again and again") func repeats() throws {
    var tracked = TrackedNotifications(limit: 100)
    for index in 0..<10_000 {
      let sent = SentNotification(
        digest: 7, time: Timestamp(nanoseconds: Int64(index)), connection: 1, index: index, expiration: 0)
      tracked.addRepeat(sent, packet: index, after: index == 1 ? (sent, nil) : nil)
    }
    #expect(tracked.repeatsNotTracked == 10_000 - 1 - 100)
  }
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
