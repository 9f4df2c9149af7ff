import Analysis
import Bytes
import Dissection
import Foundation
import Measurement
import PacketCapture
import Records
import TestSupport
import Testing

@testable import GatewayRecords
@testable import GatewaySimulator

/// What a simulator says of senders over HTTP/2, compared with what a capture of the same packets says.
@Suite("Records and verdict over HTTP/2")
struct HTTP2RecordsTests {
  private static let hour: Int64 = 3_600_000_000_000

  /// Fields that a recording has and the gateway does not, and the other way around.
  private static let different: Set<String> = ["packet", "first_packet", "packets", "opened"]

  /// In the order of each connection: a capture may end one later.
  private static func lines(_ bytes: [UInt8]) throws -> [NSDictionary] {
    let all: [NSDictionary] = try bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let record = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      // Deliveries are known to the gateway alone; input, totals and packets are of the recording.
      guard !["capture", "delivery", "summary"].contains(record["type"] as? String) else { return nil }
      return record.filter { !different.contains($0.key) } as NSDictionary
    }
    return Dictionary(grouping: all) { $0["connection"] as? Int ?? 0 }.sorted { $0.key < $1.key }.flatMap(\.value)
  }

  private static func observed(_ senders: MadeUpSenders, _ fates: FateNotation = .early) throws -> [NSDictionary] {
    let bytes = Output()
    let writer = JSONLinesWriter(fates: fates) { bytes.take($0) }
    var records = ObservedRecords(
      into: RecorderOutput(writer: writer) { nil }, source: "test", options: DissectionOptions())
    for event in senders.events { records.receive(.event(event)) }
    records.finish(observedUntil: .none, lost: 0)
    return try lines(bytes.bytes)
  }

  private static func decoded(_ capture: CaptureBuilder) throws -> [NSDictionary] {
    let bytes = Output()
    try withTemporaryFile(capture.bytes) { path in
      let writer = JSONLinesWriter(fates: .ranges) { bytes.take($0) }
      var dissection = Dissection(into: writer, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      writer.flush()
    }
    return try lines(bytes.bytes)
  }

  private final class Output {
    var bytes: [UInt8] = []
    func take(_ span: RawSpan) -> Bool {
      bytes.append(copying: span)
      return true
    }
  }

  @Test("Records are those of a capture of the same packets", arguments: seeds(12, of: 80), [false, true])
  func equalsDecode(seed: UInt64, isTame: Bool) throws {
    let senders = try MadeUpSenders(seed: seed, isTame: isTame)
    let (observed, decoded) = (try Self.observed(senders), try Self.decoded(senders.capture))
    #expect(observed.count == decoded.count)
    var shown = 0
    for (one, other) in zip(observed, decoded) where one != other && shown < 3 {
      shown += 1
      Issue.record("gateway: \(one)\n capture: \(other)")
    }
  }

  @Test("Records have the fates that the gateway's books have", arguments: seeds(12, of: 80))
  func equalsBooks(seed: UInt64) throws {
    let senders = try MadeUpSenders(seed: seed)
    let observed = try Self.observed(senders)
    func sum(_ name: String) -> Int {
      observed.filter { $0["type"] as? String == "connection" }.reduce(0) { $0 + ($1[name] as? Int ?? 0) }
    }
    let counts = senders.counts
    #expect(sum("accepted") == counts.accepted)
    #expect(sum("rejected") == counts.rejections)
    let discarded = sum("discarded") + sum("unknown")
    #expect(discarded >= counts.discarded + counts.incomplete)
    // The gateway reads nothing behind a broken rule, and no half of a frame or of a field block.
    let isCut = observed.contains { ($0["uncertain"] as? [String])?.contains("headers") == true }
    if !isCut, !senders.hasBrokenConnection, !observed.contains(where: { $0["type"] as? String == "gap" }) {
      #expect(discarded == counts.discarded + counts.incomplete)
    }
    let decided = senders.events.reduce(0) { sum, event in
      if case .received(_, let decision) = event.change { sum + decision.served.count } else { sum }
    }
    #expect(decided == counts.received)
  }

  @Test("Made-up senders show what records can have") func generator() throws {
    var types: [String: Int] = [:]
    var causes: [String: Int] = [:]
    for seed in 1...40 as ClosedRange<UInt64> {
      for record in try Self.observed(MadeUpSenders(seed: seed)) {
        types[record["type"] as? String ?? "", default: 0] += 1
        guard record["type"] as? String == "fate" else { continue }
        let word = [record["fate"], record["discarded_by"]].compactMap { $0 as? String }.joined(separator: " ")
        causes[word, default: 0] += 1
      }
    }
    for type in ["notification", "response", "fate", "goaway", "reset", "settings", "connection", "malformed"] {
      #expect(types[type, default: 0] > 5, "\(type)")
    }
    for cause in ["accepted", "rejected", "discarded refused_stream", "discarded incomplete"] {
      #expect(causes[cause, default: 0] > 5, "\(cause): \(causes)")
    }
  }

  // MARK: the verdict

  private static func verdict(
    of senders: MadeUpSenders, quietFor time: Int64 = hour, leftOut: ((inout ObservedRecords) -> Int)? = nil
  ) throws -> ProviderVerdict {
    let output = RecorderOutput(judging: ProviderInspection.Options())
    var records = ObservedRecords(into: output, source: "test", options: DissectionOptions())
    for event in senders.events { records.receive(.event(event)) }
    records.finish(observedUntil: Timestamp(nanoseconds: senders.now + time), lost: 0)
    return try #require(try output.verdict())
  }

  private static func follow(_ capture: CaptureBuilder) throws -> ProviderVerdict {
    var capture = capture
    capture.observe()
    let inspection = ProviderInspection(ProviderInspection.Options())
    try withTemporaryFile(capture.bytes) { path in
      var dissection = Dissection(into: inspection.trace, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
    }
    return try inspection.finish()
  }

  private static func withoutPackets(_ verdict: ProviderVerdict) -> ProviderVerdict {
    var verdict = verdict
    verdict.findings.removeAll { $0.kind == .unreadPackets || $0.kind == .outOfOrder }
    for index in verdict.findings.indices { verdict.findings[index].firstPacket = nil }
    return verdict
  }

  @Test("The verdict is that of a capture of the same packets", arguments: seeds(12, of: 80))
  func verdictEqualsFollow(seed: UInt64) throws {
    let senders = try MadeUpSenders(seed: seed, isTame: true)
    let verdict = Self.withoutPackets(try Self.verdict(of: senders))
    let followed = Self.withoutPackets(try Self.follow(senders.capture))
    #expect(verdict.sendings == followed.sendings)
    guard followed.stories.gaps == 0, followed.stories.openReasons[.uncertainFields] == nil else {
      // A gateway knows not to have accepted that of which it did not get the end: a capture may lack it.
      for outcome in StoryOutcome.allCases where outcome != .open {
        #expect(verdict.stories[outcome] >= followed.stories[outcome], "\(outcome)")
      }
      return
    }
    #expect(verdict.stories == followed.stories)
    #expect(verdict.discarded == followed.discarded && verdict.sentAgain == followed.sentAgain)
    #expect(verdict.connections == followed.connections)
    #expect(verdict.http2 == followed.http2)
    #expect(verdict.notificationsPerRead == followed.notificationsPerRead)
    for (one, other) in zip(verdict.findings, followed.findings) { #expect(one == other) }
    #expect(verdict == followed)
  }

  /// The verdict on the events of some providers, in the order of their times.
  private static func verdict(of events: [ObservedEvent], until end: Int64) throws -> ProviderVerdict {
    let output = RecorderOutput(judging: ProviderInspection.Options())
    var records = ObservedRecords(into: output, source: "test", options: DissectionOptions())
    for event in events.enumerated().sorted(by: { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }) {
      records.receive(.event(event.element))
    }
    records.finish(observedUntil: Timestamp(nanoseconds: end), lost: 0)
    return try #require(try output.verdict())
  }

  /// The same on other connections of the gateway.
  private static func moved(_ event: ObservedEvent, by count: UInt64) -> ObservedEvent {
    var change = event.change
    if case .devices(let outcomes) = change {
      change = .devices(
        outcomes.map {
          let origin = DeviceOutcome.Origin(connection: $0.origin.connection + count, index: $0.origin.index)
          return DeviceOutcome($0.kind, origin, token: $0.token, at: $0.time)
        })
    }
    let number = event.connection == 0 ? 0 : event.connection + count
    return ObservedEvent(connection: number, time: event.time, change: change)
  }

  @Test("The verdict on both protocols at once is that on each of them, added", arguments: seeds(12, of: 80))
  func bothProtocols(seed: UInt64) throws {
    // Tokens of their own: one notification to one device over both protocols is one story.
    let binary = JudgedProviders(seed: seed, provesAll: true, tokens: 101...130)
    let http2 = try MadeUpSenders(seed: seed, isTame: true)
    let end = max(binary.now, http2.now) + Self.hour
    let moved = http2.events.map { Self.moved($0, by: 1_000) }
    let one = try Self.verdict(of: binary.events, until: end)
    let other = try Self.verdict(of: moved, until: end)
    let both = try Self.verdict(of: binary.events + moved, until: end)
    for outcome in StoryOutcome.allCases {
      #expect(both.stories[outcome] == one.stories[outcome] + other.stories[outcome], "\(outcome)")
    }
    for path in [
      \ProviderVerdict.sendings, \.discarded, \.sentAgain, \.notSentAgain, \.connections.sending,
      \.connections.ofOneNotification,
    ] {
      #expect(both[keyPath: path] == one[keyPath: path] + other[keyPath: path], "\(path)")
    }
    #expect(both.http2 == other.http2 && one.http2 == nil)
    #expect(both.feedback == one.feedback)
    #expect(both.errors.map(\.status) == one.errors.map(\.status) && other.errors.isEmpty)
    #expect(both.mayBeLost == one.mayBeLost + other.mayBeLost)
  }

  // MARK: the history

  private static func recorder(keeping bytes: Int = 1 << 26) -> GatewayRecorder {
    var options = GatewayRecorder.Options()
    options.historyBytes = bytes
    return GatewayRecorder(into: nil, source: "test", options: options)
  }

  private struct Listed: Equatable {
    var number: Int
    var token: [UInt8]
    var topic: String?
    var fate: String
    var status: Int?
    var reason: String?
    var stream: Int
  }

  private static func list(_ recorder: GatewayRecorder, after number: Int = 0) -> [Listed] {
    var list: [Listed] = []
    _ = recorder.eachReceived(after: number) { facts, fields, bytes in
      list.append(
        Listed(
          number: facts.number, token: Array(copying: bytes.extracting(fields.token.range)), topic: facts.topic,
          fate: facts.fate.rawValue, status: facts.status, reason: facts.reason?.rawValue,
          stream: Int(fields.request?.stream ?? 0)))
      return true
    }
    return list
  }

  @Test("The list has each notification that the gateway decided on, with its decision", arguments: seeds(12, of: 80))
  func lists(seed: UInt64) async throws {
    let senders = try MadeUpSenders(seed: seed)
    let recorder = Self.recorder()
    for event in senders.events { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let list = Self.list(recorder)
    #expect(list.map(\.number) == Array(1..<list.count + 1))
    #expect(list.count == senders.counts.received)
    #expect(list.count { $0.fate == "accepted" } == senders.counts.accepted)
    #expect(list.count { $0.fate == "discarded" } == senders.counts.discarded)
    var reasons: [String: Int] = [:]
    for reason in list.compactMap(\.reason) { reasons[reason, default: 0] += 1 }
    let rejected = Dictionary(uniqueKeysWithValues: senders.counts.rejected.map { ($0.key.rawValue, $0.value) })
    #expect(reasons == rejected)
    #expect(list.allSatisfy { $0.topic?.hasPrefix("com.example.") == true && $0.stream % 2 == 1 })
    #expect(Self.list(recorder, after: list.count / 2) == Array(list.dropFirst(list.count / 2)))
    let verdict = try #require(
      try recorder.verdictSoFar(ProviderInspection.Options(), at: senders.now + Self.hour))
    #expect(verdict == (try Self.verdict(of: senders)))
    _ = recorder.finish(observedUntil: 0)
  }

  @Test(
    "After a reset, list and verdict are those of what follows, also on connections that stay open",
    arguments: seeds(12, of: 80))
  func reset(seed: UInt64) async throws {
    let senders = try MadeUpSenders(seed: seed)
    var random = SeededGenerator(seed: seed)
    let (whole, recorder) = (Self.recorder(), Self.recorder())
    let cut = senders.idle.randomElement(using: &random) ?? random.number(0...senders.events.count)
    let isIdle = senders.idle.contains(cut)
    for event in senders.events {
      whole.observer(event)
    }
    #expect(await whole.catchUp(within: .seconds(120)))
    for event in senders.events[..<cut] { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let before = recorder.range.last
    recorder.resetHistory()
    let wholeVerdict = try #require(
      try whole.verdictSoFar(ProviderInspection.Options(), at: senders.now + Self.hour))
    let empty = try #require(try recorder.verdictSoFar(ProviderInspection.Options(), at: senders.now))
    // Half of a request may be there that the sender goes on with.
    #expect(!isIdle || empty.sendings == 0 && empty.stories.total == 0 && empty.http2?.notifications ?? 0 == 0)
    #expect(empty.http2?.responses ?? 0 == 0)
    #expect(Self.list(recorder).isEmpty)
    for event in senders.events[cut...] { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    #expect(Self.list(recorder) == Self.list(whole, after: before))

    // No field is lost, although header tables were filled before.
    let verdict = try #require(
      try recorder.verdictSoFar(ProviderInspection.Options(), at: senders.now + Self.hour))
    #expect(verdict.notObserved == 0 && verdict.isCut == nil)
    let uncertain = verdict.stories.openReasons[.uncertainFields] ?? 0
    #expect(wholeVerdict.stories.openReasons[.uncertainFields] != nil || uncertain == 0)
    let later = senders.events[cut...].reduce(into: (accepted: 0, rejected: 0)) { sums, event in
      guard case .received(_, let decision) = event.change else { return }
      sums.accepted += decision.served.count { $0.fate == .accepted }
      sums.rejected += decision.served.count { $0.fate == .rejected }
    }
    // Those whose requests had begun by then are of before.
    let fates = verdict.http2?.fates ?? .init()
    #expect(fates.accepted <= later.accepted && fates.rejected <= later.rejected)
    if isIdle { #expect(fates.accepted == later.accepted && fates.rejected == later.rejected) }
    _ = recorder.finish(observedUntil: 0)
    _ = whole.finish(observedUntil: 0)
  }

  @Test("With less memory nothing is claimed that more memory refutes", arguments: seeds(12, of: 80))
  func forgets(seed: UInt64) async throws {
    let senders = try MadeUpSenders(seed: seed)
    var random = SeededGenerator(seed: seed)
    let recorder = Self.recorder(keeping: random.number(2_000...60_000))
    for event in senders.events { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let (range, list) = (recorder.range, Self.list(recorder))
    #expect(list.count == senders.counts.received - range.forgottenThrough)
    let verdict = try #require(
      try recorder.verdictSoFar(ProviderInspection.Options(), at: senders.now + Self.hour))
    let whole = try Self.verdict(of: senders)
    guard verdict.isCut == true else {
      #expect(verdict == whole)
      return
    }
    guard range.forgottenThrough > 0 else { return }
    #expect(verdict.notObserved >= range.forgottenThrough)
    for outcome in [StoryOutcome.lost, .rejected, .expired] { #expect(verdict.stories[outcome] == 0, "\(outcome)") }
    let fates = verdict.http2?.fates ?? .init()
    let known = whole.http2?.fates ?? .init()
    #expect(fates.accepted <= known.accepted && fates.rejected <= known.rejected)
    let uncertain = verdict.stories.openReasons[.uncertainFields] ?? 0
    #expect(whole.stories.openReasons[.uncertainFields] != nil || uncertain == 0)
    _ = recorder.finish(observedUntil: 0)
  }

  @Test("What is left out is a gap, counted, and changes no fate", arguments: seeds(12, of: 80))
  func leftOut(seed: UInt64) throws {
    let senders = try MadeUpSenders(seed: seed)
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
    for event in senders.events {
      queue.receive(event)
      if random.happens(oneIn: 10) { takeAll() }
    }
    queue.end()
    takeAll()
    records.finish(observedUntil: Timestamp(nanoseconds: senders.now + Self.hour), lost: queue.counts.unseenLost)
    let verdict = try #require(try output.verdict())
    #expect(queue.counts.received == senders.counts.received)
    guard queue.counts.lost > 0 else { return }
    for outcome in [StoryOutcome.lost, .rejected, .expired] { #expect(verdict.stories[outcome] == 0, "\(outcome)") }
    let fates = verdict.http2?.fates ?? .init()
    #expect(fates.accepted <= senders.counts.accepted && fates.rejected <= senders.counts.rejections)
  }
}
