import Bytes
import Foundation
import Records
import Testing

@testable import Analysis

private final class CountedStories: StorySink {
  var sendings = 0

  func receive(_ record: CaptureRecord) {}
  func begin(_ story: StoryRecord) {}
  func receive(_ sending: SendingRecord) { sendings += 1 }
  func endStory() {}
  func receive(_ token: TokenRecord) {}
  func receive(_ summary: StorySummary) {}
  func flush() {}
  var isOpen: Bool { true }
}

/// What analyses records takes them from a file of JSON Lines: no capture is read here, and `Dissection` is not linked.
@Suite("Analyses of recorded records")
struct RecordedAnalysisTests {
  private static let traces = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Traces")

  static let baselines =
    ((try? FileManager.default.contentsOfDirectory(atPath: traces.path)) ?? []).filter { $0.hasSuffix(".jsonl") }
    .sorted()

  private static func lines(of name: String) throws -> [[UInt8]] {
    try String(contentsOf: traces.appending(path: name), encoding: .utf8).split(separator: "\n").map { Array($0.utf8) }
  }

  private static func read(_ lines: [[UInt8]], into sink: any RecordSink) throws {
    var reader = RecordReader()
    var sink = sink
    for line in lines { reader.scan(line.rawBytes) }
    for line in lines { try reader.read(line.rawBytes, into: &sink) }
    reader.finish(into: &sink)
  }

  private static func count(_ lines: [[UInt8]], _ type: String, _ more: String = "") -> Int {
    let beginning = Array("{\"type\":\"\(type)\"".utf8)
    return lines.count { line in
      line.starts(with: beginning) && (more.isEmpty || String(decoding: line, as: UTF8.self).contains(more))
    }
  }

  @Test("An inspection counts the lines that it was read from", arguments: baselines)
  func inspection(name: String) throws {
    let lines = try Self.lines(of: name)
    let counted = SharedSink(Inspection())
    try Self.read(lines, into: counted)
    let report = counted.sink.finish()
    #expect(report.summary.notifications == Self.count(lines, "notification"))
    #expect(report.errorCount == Self.count(lines, "error_response"))
    #expect(report.summary.connections == Self.count(lines, "connection"))
    let fates = ["accepted", "rejected", "discarded", "unknown"].map {
      Self.count(lines, "notification", ",\"fate\":\"\($0)\",")
    }
    #expect(
      [report.fates.accepted, report.fates.rejected, report.fates.discarded, report.fates.unknown] == fates, "\(name)")
  }

  @Test("Stories of notifications have every sending once", arguments: baselines)
  func stories(name: String) throws {
    let lines = try Self.lines(of: name)
    let tally = CountedStories()
    let collector = StoryCollector(StoryCollector.Options(), into: tally)
    try Self.read(lines, into: collector)
    try collector.tell()
    #expect(tally.sendings == Self.count(lines, "notification"))
  }

  @Test("A redaction in between changes no count, and passes no token", arguments: baselines)
  func redacted(name: String) throws {
    let lines = try Self.lines(of: name)
    let (plain, hidden) = (SharedSink(Inspection()), SharedSink(Inspection()))
    try Self.read(lines, into: plain)
    let redaction = try #require(Redaction(key: [UInt8](repeating: 7, count: 32), keepsAddresses: false))
    try Self.read(lines, into: RedactedRecords(hidden, redaction))
    let (open, closed) = (plain.sink.finish(), hidden.sink.finish())
    #expect(open.summary == closed.summary && open.fates == closed.fates)
    let tokens = Set(open.errors.compactMap(\.token).filter { !$0.isEmpty })
    #expect(tokens.isDisjoint(with: closed.errors.compactMap(\.token)))
  }
}
