import Analysis
import Dissection
import Measurement
import PacketCapture
import Records
import TestSupport
import Testing

@testable import GatewayRecords
@testable import GatewaySimulator

/// A gateway's verdict on providers, compared with the outcomes of a capture of the same run.
@Suite("Verdict on providers")
struct VerdictTests {
  private static let hour: Int64 = 3_600_000_000_000

  /// The gateway's verdict, when it goes on for some time without a notification.
  private static func verdict(
    of providers: JudgedProviders, quietFor time: Int64 = hour, memory: Int? = nil
  ) throws -> ProviderVerdict {
    var options = ProviderInspection.Options()
    if let memory { options.stories.memory = memory }
    let output = RecorderOutput(judging: options)
    var records = ObservedRecords(into: output, source: "test", options: DissectionOptions())
    for event in providers.events { records.receive(.event(event)) }
    records.finish(observedUntil: Timestamp(nanoseconds: providers.now + time), lost: 0)
    return try #require(try output.verdict())
  }

  /// The same of a capture.
  private static func follow(_ capture: CaptureBuilder) throws -> ProviderVerdict {
    let inspection = ProviderInspection(ProviderInspection.Options())
    try withTemporaryFile(capture.bytes) { path in
      var dissection = Dissection(into: inspection.trace, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
    }
    return try inspection.finish()
  }

  /// A verdict without what only captures have: packets, and the datagrams around it, the first of which comes last.
  private static func withoutPackets(_ verdict: ProviderVerdict) -> ProviderVerdict {
    var verdict = verdict
    for index in verdict.errors.indices { verdict.errors[index].packet = nil }
    verdict.findings.removeAll { $0.kind == .unreadPackets || $0.kind == .outOfOrder }
    for index in verdict.findings.indices { verdict.findings[index].firstPacket = nil }
    return verdict
  }

  /// Field by field, for shorter messages.
  private static func expectEqual(_ verdict: ProviderVerdict, _ followed: ProviderVerdict) {
    #expect(verdict.stories == followed.stories)
    #expect(verdict.sendings == followed.sendings)
    #expect(verdict.discarded == followed.discarded && verdict.sentAgain == followed.sentAgain)
    #expect(verdict.resend == followed.resend && verdict.reconnect == followed.reconnect)
    #expect(verdict.connections == followed.connections)
    #expect(verdict.notificationsPerRead == followed.notificationsPerRead)
    #expect(verdict.feedback == followed.feedback)
    #expect(verdict.errors.count == followed.errors.count)
    for (one, other) in zip(verdict.errors, followed.errors) { #expect(one == other) }
    #expect(verdict.findings.map(\.kind) == followed.findings.map(\.kind))
    for (one, other) in zip(verdict.findings, followed.findings) { #expect(one == other) }
    #expect(verdict == followed)
  }

  @Test("The verdict is that of a capture which proves each fate", arguments: seeds(40, of: 200))
  func equalsCapture(seed: UInt64) throws {
    let providers = JudgedProviders(seed: seed, provesAll: true)
    var capture = providers.capture
    capture.observe()
    let verdict = try Self.verdict(of: providers)
    let followed = try Self.follow(capture)
    Self.expectEqual(Self.withoutPackets(verdict), Self.withoutPackets(followed))
    #expect(verdict.stories.open == 0)
    // In files instead of memory.
    #expect(try Self.verdict(of: providers, memory: 1 << 12) == verdict)
  }

  @Test("What a capture proves, the gateway says too", arguments: seeds(40, of: 200))
  func exceedsCapture(seed: UInt64) throws {
    let providers = JudgedProviders(seed: seed, provesAll: false)
    let verdict = try Self.verdict(of: providers, quietFor: 0)
    let followed = try Self.follow(providers.capture)
    #expect(verdict.sendings == followed.sendings)
    for outcome in StoryOutcome.allCases where outcome != .open {
      #expect(verdict.stories[outcome] >= followed.stories[outcome], "\(outcome)")
    }
    #expect(verdict.stories.openReasons.sum == verdict.stories.open)
    #expect(verdict.stories.openReasons[.unknownFate] == nil)
  }

  @Test("Providers have every outcome but the open one, and send again in time and late") func generator() throws {
    var outcomes: [StoryOutcome: Int] = [:]
    var (discarded, sentAgain, reconnects) = (0, 0, 0)
    for seed in 1...40 as ClosedRange<UInt64> {
      let verdict = try Self.verdict(of: JudgedProviders(seed: seed, provesAll: true))
      for outcome in StoryOutcome.allCases { outcomes[outcome, default: 0] += verdict.stories[outcome] }
      (discarded, sentAgain) = (discarded + verdict.discarded, sentAgain + verdict.sentAgain)
      reconnects += verdict.errors.count { $0.reconnectedS != nil }
    }
    for outcome in StoryOutcome.allCases where outcome != .open {
      #expect(outcomes[outcome, default: 0] > 10, "\(outcome)")
    }
    #expect(sentAgain > 100 && discarded > sentAgain && reconnects > 100)
  }

  @Test("What was left out is open, and nothing of it is lost", arguments: seeds(40, of: 200))
  func leftOut(seed: UInt64) throws {
    let providers = JudgedProviders(seed: seed, provesAll: true)
    let whole = try Self.verdict(of: providers)
    var random = SeededGenerator(seed: seed)
    let queue = EventQueue(maximumBytes: random.number(1_000...20_000))
    let output = RecorderOutput(judging: ProviderInspection.Options())
    var records = ObservedRecords(into: output, source: "test", options: DissectionOptions())
    var items: [EventQueue.Item] = []
    func takeAll() {
      _ = queue.take(&items, within: .milliseconds(0))
      for item in items { records.receive(item) }
      queue.release(items)
    }
    for event in providers.events {
      queue.receive(event)
      if random.happens(oneIn: 10) { takeAll() }
    }
    queue.end()
    takeAll()
    records.finish(
      observedUntil: Timestamp(nanoseconds: providers.now + Self.hour), lost: queue.counts.unseenLost)
    let verdict = try #require(try output.verdict())
    #expect(verdict.sendings + queue.counts.lost == whole.sendings)
    if queue.counts.lost > 0 {
      for outcome in [StoryOutcome.lost, .rejected, .recovered, .expired] { #expect(verdict.stories[outcome] == 0) }
    } else {
      // Answers may be missing.
      #expect(verdict.stories == whole.stories)
    }
  }
}
