import Measurement
import PacketCapture
import ProviderAPI
import PushModel
import TLSDecryption
import Testing

@testable import Analysis
@testable import Records

/// Keeps stories and tokens.
private final class KeptStories: StorySink {
  var stories: [StoryRecord] = []
  var sendings: [[SendingRecord]] = []
  var tokens: [TokenRecord] = []
  var isOpen: Bool { true }
  func receive(_ record: CaptureRecord) {}
  func begin(_ story: StoryRecord) {
    stories.append(story)
    sendings.append([])
  }
  func receive(_ sending: SendingRecord) { sendings[sendings.count - 1].append(sending) }
  func endStory() {}
  func receive(_ token: TokenRecord) { tokens.append(token) }
  func receive(_ summary: StorySummary) {}
  func flush() {}
}

/// Notifications over HTTP/2 through all of their sendings: by `follow`, and by an inspection.
@Suite("Stories over HTTP/2")
struct RequestStoryTests {
  private typealias Push = RequestPush

  /// What `follow` and an inspection say of the same recording, in the middle of ten minutes of others.
  private func told<Failure: Error>(
    _ selection: RecordSelection = RecordSelection(), _ make: (inout RequestRecording<Both>) throws(Failure) -> Void
  ) throws -> (kept: KeptStories, report: InspectionReport) {
    let kept = KeptStories()
    var options = StoryCollector.Options()
    options.selection = selection
    let collector = StoryCollector(options, into: kept)
    var recording = RequestRecording(Both(collector: collector))
    try make(&recording)
    recording.finish(at: 10_000, from: -1_000)
    try collector.write()
    return (kept, recording.sink.inspection.finish())
  }

  /// Passes records on to both.
  fileprivate struct Both: RecordSink {
    let collector: StoryCollector
    var inspection = Inspection()
    var isOpen: Bool { true }
    mutating func receive(_ record: CaptureRecord) {}
    mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {}
    mutating func receive(
      malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
    ) {}
    mutating func receive(_ record: ErrorResponseRecord) {}
    mutating func receive(_ record: borrowing FeedbackRecord) {}
    mutating func receive(_ record: MalformedRecord) {}
    mutating func opened(connection: Int, at time: Timestamp) {
      collector.opened(connection: connection, at: time)
      inspection.opened(connection: connection, at: time)
    }
    mutating func receive(_ record: borrowing ProviderNotificationRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ record: ProviderRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ record: FateRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ record: GapRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ record: ConnectionRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ record: SummaryRecord) {
      collector.receive(record)
      inspection.receive(record)
    }
    mutating func receive(_ outcome: CaptureOutcome) {
      collector.receive(outcome)
      inspection.receive(outcome)
    }
  }

  private func outcomes(_ told: (kept: KeptStories, report: InspectionReport)) -> [StoryOutcome] {
    let outcomes = told.kept.stories.map(\.outcome)
    for outcome in StoryOutcome.allCases {
      #expect(told.report.stories?[outcome] == outcomes.count { $0 == outcome }, "\(outcome)")
    }
    return outcomes
  }

  private func findings(_ told: (kept: KeptStories, report: InspectionReport), _ kind: FindingKind) -> Int {
    told.report.findings.first { $0.kind == kind }?.count ?? 0
  }

  @Test("A refused notification that is sent again on the same connection is recovered")
  func refused() throws {
    let told = try told {
      $0.send(on: 1, at: 1)
      $0.refuse(0, on: 1, at: 1.1)
      $0.send(on: 1, at: 1.2)
      $0.refuse(1, on: 1, at: 1.3)
      $0.send(on: 1, at: 1.4)
      $0.answer(2, on: 1, 200, at: 1.5)
      $0.end(1, at: 2)
    }
    #expect(outcomes(told) == [.recovered])
    #expect(findings(told, .requestsResent) == 1 && findings(told, .resent) == 0)
    let sendings = told.kept.sendings[0]
    #expect(sendings.map(\.cause) == [.refusedStream, .refusedStream, nil])
    #expect(sendings.map(\.relation) == [.first, .resendsDiscarded(count: 1), .resendsDiscarded(count: 1)])
    #expect(told.kept.stories[0].topic == "com.example.tide" && told.kept.stories[0].recoveredAfter == 400_000_000)
    #expect(told.report.http2?.discardedBy == ["refused_stream": 2])
  }

  @Test("What GOAWAY excludes and nobody sends again is lost, with nothing that could hold it")
  func lost() throws {
    func told(_ change: (inout RequestRecording<Both>) -> Void) throws -> (kept: KeptStories, report: InspectionReport)
    {
      try self.told { recording in
        recording.send(on: 1, at: 500)
        recording.goAway(0, on: 1, at: 501)
        recording.decide(0, on: 1, .discarded, .goAway)
        change(&recording)
        recording.end(1, at: 502)
      }
    }
    let lost = try told { _ in }
    #expect(outcomes(lost) == [.lost] && findings(lost, .neverResent) == 1)
    let gap = try told { $0.gap(.client, on: 1, at: 501.5) }
    #expect(outcomes(gap) == [.open] && gap.kept.stories[0].openReason == .gap)
    // Anything may be a sending of it that has lost its fields.
    let uncertain = try told { $0.send(Push().of(topic: nil, .topic), on: 1, at: 501.5) }
    #expect(outcomes(uncertain) == [.open, .open])
    #expect(uncertain.kept.stories.map(\.openReason) == [.uncertainFields, .unanswered])
    let undecrypted = try told { recording in
      recording.open(2, at: 501)
      recording.end(2, at: 502) { record in
        var tls = TLSSummary()
        (tls.isDecrypted, tls.isWhole) = (false, false)
        (record.tls, record.http2) = (tls, nil)
      }
    }
    #expect(outcomes(undecrypted) == [.open] && undecrypted.kept.stories[0].openReason == .undecrypted)
  }

  @Test("A retry of 429 is a sending of the same notification")
  func retried() throws {
    let told = try told {
      $0.send(on: 1, at: 1)
      $0.answer(0, on: 1, 429, "TooManyRequests", at: 1.1)
      $0.send(on: 1, at: 30)
      $0.answer(1, on: 1, 503, "ServiceUnavailable", at: 30.1)
      $0.send(on: 1, at: 90)
      $0.answer(2, on: 1, 200, at: 90.1)
      $0.send(Push().of(payload: "{}"), on: 1, at: 95)
      $0.answer(3, on: 1, 500, at: 95.1)
      $0.end(1, at: 99)
    }
    #expect(outcomes(told) == [.recovered, .rejected])
    #expect(told.kept.sendings[0].map(\.status) == [429, 503, nil])
    #expect(told.kept.sendings[0].map(\.reason) == ["TooManyRequests", "ServiceUnavailable", nil])
    #expect(told.kept.sendings[0].map(\.relation) == [.first, .retriesRejected, .retriesRejected])
    let answers = try #require(told.report.http2?.answers)
    #expect(answers.map(\.status) == [200, 429, 500, 503] && answers.allSatisfy { $0.count == 1 })
    #expect(answers.map(\.reason) == [nil, "TooManyRequests", nil, "ServiceUnavailable"])
  }

  @Test("A notification that got no answer and is sent again may be delivered twice")
  func unanswered() throws {
    let told = try told {
      $0.send(on: 1, at: 1)
      $0.end(1, at: 2)
      $0.send(on: 2, at: 3)
      $0.answer(0, on: 2, 200, at: 3.1)
      $0.end(2, at: 4)
    }
    #expect(outcomes(told) == [.open])
    #expect(told.kept.stories[0].openReason == .unanswered)
    #expect(findings(told, .possibleDuplicates) == 1 && findings(told, .unanswered) == 1)
    #expect(findings(told, .unknownFate) == 0 && findings(told, .acceptedTwice) == 0)
  }

  @Test("Token, payload and topic distinguish notifications; nothing else does")
  func identity() throws {
    func count(_ other: Push) throws -> Int {
      try told {
        $0.send(on: 1, at: 1)
        $0.answer(0, on: 1, 200, at: 1.1)
        $0.send(other, on: 1, at: 2)
        $0.answer(1, on: 1, 200, at: 2.1)
        $0.end(1, at: 3)
      }.kept.stories.count
    }
    #expect(try count(Push()) == 1)
    #expect(try count(Push().of(priority: 5)) == 1)
    #expect(try count(Push().of(payload: "{}")) == 2)
    #expect(try count(Push().of(topic: "com.example.other", [])) == 2)
    #expect(try count(Push().of(token: [1])) == 2)
    #expect(try count(Push().of(token: nil, .token)) == 2)
  }

  @Test("An uncertain topic makes notifications neither equal nor different")
  func uncertainTopic() throws {
    let told = try told {
      $0.send(on: 1, at: 1)
      $0.answer(0, on: 1, 500, at: 1.1)
      $0.send(Push().of(topic: nil, .topic), on: 1, at: 2)
      $0.answer(1, on: 1, 200, at: 2.1)
      $0.end(1, at: 3)
    }
    // Perhaps recovered, perhaps two.
    #expect(outcomes(told) == [.open, .accepted])
    #expect(told.kept.stories[0].openReason == .uncertainFields)
  }

  @Test("A token is dead after 410, not after BadDeviceToken, and lives after it was accepted")
  func dead() throws {
    let told = try told {
      let tokens: [[UInt8]] = [[1], [2], [3]]
      for (index, token) in tokens.enumerated() { $0.send(Push().of(token: token), on: 1, at: Double(index)) }
      $0.answer(0, on: 1, 410, "Unregistered", at: 4)
      $0.answer(1, on: 1, 400, "BadDeviceToken", at: 4)
      $0.answer(2, on: 1, 410, "ExpiredToken", at: 4)
      $0.send(Push().of(token: [3]), on: 1, at: 5)
      $0.answer(3, on: 1, 200, at: 5.1)
      $0.end(1, at: 6)
    }
    #expect(told.kept.tokens.map(\.isDead) == [true, false, false])
    #expect(told.kept.tokens.map(\.reason) == ["Unregistered", "BadDeviceToken", "ExpiredToken"])
    #expect(told.kept.tokens.map(\.status) == [410, 400, 410])
  }

  @Test("Figures that were not measured are absent")
  func absent() throws {
    let told = try told {
      $0.send(Push().of(limit: nil), on: 1, at: 1)
      $0.answer(0, on: 1, 200, at: 2)
      $0.end(1, at: 3)
    }
    let requests = try #require(told.report.http2)
    #expect(requests.latency == nil && requests.streamLimitLowest == nil && requests.tokenAgeLeastS == nil)
    #expect(requests.openStreams?.maximum == 1 && requests.headerBytes?.maximum == 68)
    #expect(requests.perConnection?.maximum == 1 && requests.channelRequests == nil)
  }

  @Test("Reports over HTTP/2 add up")
  func merging() throws {
    func report(_ numbers: ClosedRange<Int>) -> InspectionReport {
      var recording = RequestRecording(Inspection())
      for number in numbers {
        let at = Double(number)
        recording.send(on: number, at: at)
        recording.answer(0, on: number, number % 2 == 0 ? 200 : 503, at: at + 0.5, latency: at / 100)
        recording.goAway(1, on: number, at: at + 0.6, reason: "Shutdown")
        recording.end(number, at: at + 1)
      }
      recording.finish(at: 100)
      return recording.sink.finish(withCounts: true)
    }
    let whole = report(1...9)
    let merged = try InspectionReport.merging([.init("a", report(1...4)), .init("b", report(5...9))]).report
    #expect(merged.http2 == whole.http2)
    let (ours, theirs) = (merged.findings, whole.findings)
    #expect(ours.first { $0.kind == .goAway }?.text == theirs.first { $0.kind == .goAway }?.text)
    #expect(whole.http2?.latency?.count == 9 && whole.http2?.latency?.maximum == 90_000)
  }

  @Test("A selection by topic is of each notification's own")
  func selection() throws {
    var selection = RecordSelection()
    selection.topics = ["com.example.other"]
    let told = try told(selection) {
      $0.send(on: 1, at: 1)
      $0.send(Push().of(topic: "com.example.other", []), on: 1, at: 1)
      $0.answer(0, on: 1, 200, at: 2)
      $0.answer(1, on: 1, 200, at: 2)
      $0.end(1, at: 3)
    }
    #expect(told.kept.stories.map(\.topic) == ["com.example.other"])
  }
}

extension RequestPush {
  fileprivate func of(topic: String?, _ uncertain: ProviderRequest.Uncertain) -> Self {
    var push = self
    (push.topic, push.uncertain) = (topic, uncertain)
    return push
  }

  fileprivate func of(token: [UInt8]?, _ uncertain: ProviderRequest.Uncertain = []) -> Self {
    var push = self
    (push.token, push.uncertain) = (token, uncertain)
    return push
  }

  fileprivate func of(payload: String) -> Self {
    var push = self
    push.payload = payload
    return push
  }

  fileprivate func of(priority: UInt8) -> Self {
    var push = self
    push.priority = priority
    return push
  }

  fileprivate func of(limit: Int?) -> Self {
    var push = self
    push.streamLimit = limit
    return push
  }
}
