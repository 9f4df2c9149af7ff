import Bytes
import Foundation
import Measurement
import PacketCapture
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection

/// What is said of a notification when the recording shows less: whatever is taken away from a recording, nothing is said
/// that is not so in the whole. Only what is open may grow.
@Suite("Less of a recording proves nothing new")
struct RemovalLawTests {
  private static let claims: Set<String> = ["lost", "accepted_twice", "recovered", "rejected", "expired"]

  /// What is said of a notification, as often as it was sent on purpose.
  private struct Said {
    var outcomes: Set<String> = []
    var sendings: [Int64] = []
    var reasons: Set<OpenReason> = []
  }

  private struct Telling {
    var notifications: [[UInt8]: Said] = [:]
    /// The longest time after which anything was sent again.
    var longestResend: Int64 = 0
  }

  /// - Parameter memory: for what is not finished, which is looked at after every few packets; `nil`: as much as usual.
  private static func tell(_ bytes: [UInt8], keys: [String] = [], memory: Int? = nil) throws -> Telling {
    try withTemporaryFile(bytes) { path in
      let book = StoryBook()
      var usual = DissectionOptions()
      if let memory { (usual.maximumMemory, usual.capture.blockLength) = (memory, 700) }
      let secrets = Secrets()
      for text in keys { secrets.add(KeyLog(Array(text.utf8), maximumLines: 1_000)) }
      let collector = StoryCollector(StoryCollector.Options(), into: book)
      var dissection = Dissection(into: collector, options: usual, secrets: secrets)
      _ = try dissection.read(try CaptureInput.open(path, options: usual.capture), source: path) { _ in true }
      dissection.finish()
      try collector.write()
      var telling = Telling()
      for (story, reason) in zip(book.stories, book.reasons) {
        let content = story.token + [0xff] + story.payload
        telling.notifications[content, default: Said()].outcomes.insert(story.outcome)
        telling.notifications[content, default: Said()].sendings += story.sendings.map(\.time)
        if let reason { telling.notifications[content]?.reasons.insert(reason) }
        for (one, next) in zip(story.sendings, story.sendings.dropFirst()) where one.fate != .accepted {
          telling.longestResend = max(telling.longestResend, next.time - one.time)
        }
      }
      return telling
    }
  }

  /// What is said of a part and not of the whole. A sending later than the time in which providers send again, as far as
  /// the part shows it, refutes nothing: that time is stated.
  private static func refuted(_ part: Telling, by whole: Telling) -> [String] {
    part.notifications.flatMap { content, said in
      said.outcomes.intersection(claims).subtracting(whole.notifications[content]?.outcomes ?? []).filter { outcome in
        let within = max(part.longestResend, outcome == "lost" ? 60_000_000_000 : 0)
        let (first, last) = (said.sendings.min() ?? 0, said.sendings.max() ?? 0)
        let others = (whole.notifications[content]?.sendings ?? []).filter { !said.sendings.contains($0) }
        // The whole may leave it open because it shows that providers take longer.
        if others.isEmpty { return whole.longestResend == part.longestResend }
        return others.contains { $0 <= last + within && $0 >= first - within }
      }.map {
        "\($0), not \(whole.notifications[content]?.outcomes ?? []) \(whole.notifications[content]?.reasons ?? [])"
      }
    }
  }

  @Test("Packets and the tail of an incident", arguments: seeds(20, of: 150)) func incidents(seed: UInt64) throws {
    let incident = Incident(seed: seed)
    let capture = try #require(CutCapture(incident.capture.bytes))
    let whole = try Self.tell(capture.whole)
    var random = SeededGenerator(seed: seed)
    // A gap shows with the packets behind it: with the tail goes what shows that there is one.
    for round in 0..<8 where round % 4 != 1 || !incident.hasGaps {
      let kept = Self.part(round, of: capture.records.count, &random)
      let refuted = Self.refuted(try Self.tell(capture.file(kept)), by: whole)
      #expect(refuted.isEmpty, "round \(round): \(refuted.count): \(refuted.first ?? "")")
    }
  }

  @Test("Packets, the tail and the keys of a trace", arguments: some(15, of: TraceTests.baselines)) func traces(
    name: String
  ) throws {
    let path = Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path
    guard let capture = try CutCapture(contentsOf: path), !capture.records.isEmpty else { return }
    let log = FileManager.default.contents(atPath: path + ".keys").map { String(decoding: $0, as: UTF8.self) }
    let keys = (log ?? "").split(separator: "\n").map(String.init)
    // The incident's gateway has a port that says nothing.
    let whole = try Self.tell(capture.whole, keys: keys)
    var random = SeededGenerator(seed: UInt64(name.utf8.count))
    for round in 0..<(TestRun.isWhole ? 60 : 15) {
      let kept = round % 5 == 4 ? Array(capture.records.indices) : Self.part(round, of: capture.records.count, &random)
      let keys = keys.filter { _ in round % 5 < 3 || !random.happens(oneIn: 2) }
      let refuted = Self.refuted(try Self.tell(capture.file(kept), keys: keys), by: whole)
      #expect(refuted.isEmpty, "round \(round): \(refuted.count): \(refuted.first ?? "")")
    }
  }

  @Test("Memory for what is not finished, of an incident", arguments: seeds(20, of: 150))
  func memoryOfIncident(seed: UInt64) throws {
    let capture = Incident(seed: seed).capture
    let whole = try Self.tell(capture.bytes)
    for memory in [64, 1_000, 20_000] {
      let refuted = Self.refuted(try Self.tell(capture.bytes, memory: memory), by: whole)
      #expect(refuted.isEmpty, "\(memory) bytes: \(refuted.count): \(refuted.first ?? "")")
    }
  }

  @Test("Memory for what is not finished, of a trace", arguments: some(15, of: TraceTests.baselines))
  func memoryOfTrace(name: String) throws {
    let path = Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path
    guard let capture = try CutCapture(contentsOf: path), !capture.records.isEmpty else { return }
    let log = FileManager.default.contents(atPath: path + ".keys").map { String(decoding: $0, as: UTF8.self) }
    let keys = (log ?? "").split(separator: "\n").map(String.init)
    let whole = try Self.tell(capture.whole, keys: keys)
    for memory in [64, 1_000, 20_000] {
      let refuted = Self.refuted(try Self.tell(capture.whole, keys: keys, memory: memory), by: whole)
      #expect(refuted.isEmpty, "\(memory) bytes: \(refuted.count): \(refuted.first ?? "")")
    }
  }

  /// All but one packet, the first ones, most of them, or some.
  private static func part(_ round: Int, of count: Int, _ random: inout SeededGenerator) -> [Int] {
    switch round % 4 {
    case 0:
      let without = random.number(0...count - 1)
      return (0..<count).filter { $0 != without }
    case 1: return Array(0..<random.number(1...count))
    case 2: return (0..<count).filter { _ in !random.happens(oneIn: 20) }
    default: return (0..<count).filter { _ in !random.happens(oneIn: 3) }
    }
  }
}
