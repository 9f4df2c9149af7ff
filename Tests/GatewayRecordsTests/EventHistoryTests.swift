import Analysis
import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import PacketCapture
import PushModel
import Records
import TestSupport
import Testing

@testable import GatewayRecords
@testable import GatewaySimulator

/// What a recorder keeps of a run, and what it says of it while it goes on.
@Suite("Kept events", .waiting)
struct EventHistoryTests {
  private static let hour: Int64 = 3_600_000_000_000

  private struct Listed: Equatable {
    var number: Int
    var token: [UInt8]
    var fate: Fate
  }

  private static func recorder(keeping bytes: Int = 1 << 26) -> GatewayRecorder {
    var options = GatewayRecorder.Options()
    options.historyBytes = bytes
    options.plainTopic = "com.example.app"
    return GatewayRecorder(into: nil, source: "test", options: options)
  }

  private static func list(_ recorder: GatewayRecorder, after number: Int = 0) -> [Listed] {
    var list: [Listed] = []
    _ = recorder.eachReceived(after: number) { facts, fields, frame in
      list.append(
        Listed(number: facts.number, token: Array(copying: frame.extracting(fields.token.range)), fate: facts.fate))
      return true
    }
    return list
  }

  private static func verdict(_ recorder: GatewayRecorder, at time: Int64) throws -> ProviderVerdict {
    try #require(try recorder.verdictSoFar(ProviderInspection.Options(), at: time))
  }

  private static func whole(_ providers: JudgedProviders) throws -> ProviderVerdict {
    let output = RecorderOutput(judging: ProviderInspection.Options())
    var records = ObservedRecords(into: output, source: "test", options: .init())
    for event in providers.events { records.receive(.event(event)) }
    records.finish(observedUntil: Timestamp(nanoseconds: providers.now + hour), lost: 0)
    return try #require(try output.verdict())
  }

  @Test("The verdict so far is the one at the end, and each notification is listed once", arguments: seeds(20, of: 200))
  func equalsEnd(seed: UInt64) async throws {
    let providers = JudgedProviders(seed: seed, provesAll: true)
    let recorder = Self.recorder()
    for event in providers.events { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let verdict = try Self.verdict(recorder, at: providers.now + Self.hour)
    let whole = try Self.whole(providers)
    #expect(verdict == whole)

    let list = Self.list(recorder)
    #expect(list.map(\.number) == Array(1..<list.count + 1))
    #expect(list.count == whole.sendings)
    #expect(list.count { $0.fate == .discarded } == whole.discarded)
    // A list goes on where another ended.
    let middle = list.count / 2
    #expect(Self.list(recorder, after: middle) == Array(list.dropFirst(middle)))
    _ = recorder.finish(observedUntil: 0)
  }

  @Test("With less memory nothing is claimed that more memory refutes", arguments: seeds(40, of: 400))
  func forgets(seed: UInt64) async throws {
    let providers = JudgedProviders(seed: seed, provesAll: true)
    var random = SeededGenerator(seed: seed)
    let recorder = Self.recorder(keeping: random.number(2_000...60_000))
    for event in providers.events { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let verdict = try Self.verdict(recorder, at: providers.now + Self.hour)
    let whole = try Self.whole(providers)
    let range = recorder.range
    #expect(verdict.notObserved == range.forgottenThrough)
    #expect(verdict.sendings + verdict.notObserved == whole.sendings)
    let list = Self.list(recorder)
    #expect(list.count == whole.sendings - range.forgottenThrough && list.first.map(\.number) ?? 1 <= range.last + 1)
    guard verdict.isCut == true else {
      #expect(verdict == whole && verdict.notObserved == 0)
      return
    }
    guard verdict.notObserved > 0 else {
      // Only connections without notifications are forgotten.
      #expect(verdict.stories == whole.stories && verdict.discarded == whole.discarded)
      return
    }
    // What is forgotten may be an accepted sending of any of them.
    for outcome in [StoryOutcome.lost, .rejected, .expired] { #expect(verdict.stories[outcome] == 0, "\(outcome)") }
    var (ledger, wholeLedger) = (Ledger(), Ledger())
    (ledger.verdict, wholeLedger.verdict) = (verdict, whole)
    for text in ["lost<=0", "lost<=1", "accepted_twice<=0", "open<=0", "discarded<=3", "sent_again>=1"] {
      guard let condition = try? Expectation(text) else { continue }
      let passed = condition.judge(ledger).passed
      #expect(!passed || condition.judge(wholeLedger).passed, "\(text) passes and is refuted")
    }
    _ = recorder.finish(observedUntil: 0)
  }

  @Test(
    "After a reset the verdict is that of what follows, also on connections that stay open",
    arguments: seeds(20, of: 200))
  func reset(seed: UInt64) async throws {
    let providers = JudgedProviders(seed: seed, provesAll: true)
    var random = SeededGenerator(seed: seed)
    let recorder = Self.recorder()
    let events = providers.events
    let cut = random.number(0...events.count)
    for event in events[..<cut] { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    recorder.resetHistory()
    for event in events[cut...] { recorder.observer(event) }
    #expect(await recorder.catchUp(within: .seconds(120)))
    let verdict = try Self.verdict(recorder, at: providers.now + Self.hour)

    // The same notifications alone, counted by hand.
    var (received, accepted, rejected) = (0, 0, 0)
    for event in events[cut...] {
      guard case .received(_, let decision) = event.change else { continue }
      received += decision.received
      accepted += decision.accepted
      rejected += decision.rejects ? 1 : 0
    }
    #expect(verdict.notObserved == 0 && verdict.isCut == nil)
    #expect(verdict.sendings == received)
    #expect(verdict.discarded == received - accepted - rejected)
    let list = Self.list(recorder)
    #expect(list.count == received)
    #expect(list.count { $0.fate == .accepted } == accepted && list.count { $0.fate == .rejected } == rejected)
    let range = recorder.range
    #expect(range.lastAtReset == range.forgottenThrough && range.last - range.lastAtReset == received)
    // Numbers go on.
    #expect(list.first.map { $0.number == range.lastAtReset + 1 } ?? true)
    _ = recorder.finish(observedUntil: 0)
  }

  @Test("Memory stays within its limit, however many small reads there are") func memory() async throws {
    let recorder = Self.recorder(keeping: 100_000)
    var frame = ByteWriter(capacity: 64)
    BinaryFrame.encodeFramed(
      token: [UInt8](repeating: 1, count: 32).rawBytes, payload: Array("{}".utf8).rawBytes, identifier: 1,
      expiration: nil, priority: nil, into: &frame)
    let bytes = Array(copying: frame.bytes)
    recorder.observer(
      ObservedEvent(
        connection: 1, time: 1,
        change: .opened(.init(service: .gateway, client: "127.0.0.1:1", server: "127.0.0.1:2", tls: nil))))
    var decision = ObservedEvent.Decision()
    (decision.received, decision.accepted) = (1, 1)
    for number in 1...5_000 {
      decision.acceptedInAll = number
      // A slice of a read buffer keeps all of it.
      var buffer = ByteBufferAllocator().buffer(capacity: 16_384)
      buffer.writeBytes(bytes)
      recorder.observer(
        ObservedEvent(connection: 1, time: Int64(number), change: .received(buffer, decision)))
      if number % 100 == 0 { #expect(await recorder.catchUp(within: .seconds(60))) }
    }
    #expect(await recorder.catchUp(within: .seconds(60)))
    let range = recorder.range
    #expect(range.last == 5_000)
    // Each needs its bytes, and 256.
    let kept = range.last - range.forgottenThrough
    #expect(kept > 100 && kept <= 100_000 / 256)
    #expect(Self.list(recorder).count == kept)
    _ = recorder.finish(observedUntil: 0)
    #expect(await recorder.catchUp(within: .seconds(60)) == false)
  }

  @Test("Entries in chunks are those of a list, from every number on", arguments: seeds(10, of: 100))
  func chunks(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (log, list, last): (EntryLog, [EventHistory.Entry], Int) = (EntryLog(), [], 0)
    var copies: [(log: EntryLog, numbers: [Int])] = []
    for _ in 0..<3_000 {
      if random.happens(oneIn: 3) {
        let entry = log.popFirst()
        #expect(entry?.bytes == list.first?.bytes && entry?.first == list.first?.first)
        if !list.isEmpty { list.removeFirst() }
      } else {
        var entry = EventHistory.Entry(item: .request {}, bytes: random.number(100...2_000))
        if random.happens(oneIn: 2) {
          entry.count = random.number(1...5)
          entry.first = last + 1
          last += entry.count
        }
        log.append(entry)
        list.append(entry)
      }
      #expect(log.count == list.count)
      if random.happens(oneIn: 300) { copies.append((log, list.map(\.bytes))) }
    }
    func bytes(_ log: EntryLog, after number: Int? = nil) -> [Int] {
      var bytes: [Int] = []
      log.each(after: number) {
        bytes.append($0.bytes)
        return true
      }
      return bytes
    }
    for _ in 0..<50 {
      let number = random.number(0...last + 1)
      let later = list.filter { $0.count > 0 && $0.first + $0.count - 1 > number }
      #expect(bytes(log, after: number) == later.map(\.bytes))
    }
    #expect(bytes(log) == list.map(\.bytes))
    // What somebody holds does not change.
    for copy in copies { #expect(bytes(copy.log) == copy.numbers) }
  }
}
