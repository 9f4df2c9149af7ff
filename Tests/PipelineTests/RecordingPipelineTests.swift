import Analysis
import Bytes
import Dissection
import Foundation
import Glibc
import InterfaceCapture
import Measurement
import PacketCapture
import Pipeline
import PushModel
import Records
import TLSDecryption
import TestSupport
import Testing

/// The bytes that a writer has written.
private final class Written {
  private(set) var bytes: [UInt8] = []
  func take(_ more: RawSpan) -> Bool {
    bytes.append(copying: more)
    return true
  }
}

@Suite("The way from recordings to a sink")
struct RecordingPipelineTests {
  private static let traces = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Traces")

  static let names =
    ((try? FileManager.default.contentsOfDirectory(atPath: traces.path)) ?? []).filter { $0.hasSuffix(".jsonl") }
    .map { String($0.dropLast(".jsonl".count)) }.sorted()

  private static func path(_ name: String) -> String { traces.appending(path: name).path }

  private static func secrets(of name: String) throws -> Secrets {
    let secrets = Secrets()
    let keys = path(name + ".keys")
    if FileManager.default.fileExists(atPath: keys) {
      secrets.add(try KeyLog(contentsOf: keys, maximumLength: 1 << 20, maximumLines: 1 << 12))
    }
    return secrets
  }

  private static func pipeline(
    _ name: String, _ observer: any ReadingObserver = ReadingRecorder()
  ) -> RecordingPipeline {
    RecordingPipeline(
      [RecordingInput(path: path(name), name: name)], DissectionOptions(), filter: nil,
      secrets: { try secrets(of: name) }, observer: observer)
  }

  private static func pipeline(paths: [String], _ observer: any ReadingObserver) -> RecordingPipeline {
    RecordingPipeline(
      paths.map { RecordingInput(path: $0, name: $0) }, DissectionOptions(), filter: nil, secrets: { Secrets() },
      observer: observer)
  }

  /// The records that `decode` writes.
  private static func lines(_ pipeline: inout RecordingPipeline) throws -> [UInt8] {
    let written = Written()
    let fates = try pipeline.prepareToWrite(fates: nil)
    let writer = JSONLinesWriter(fates: fates, judging: PayloadJudging(), output: written.take)
    _ = try pipeline.read(into: writer)
    return written.bytes
  }

  @Test("What is written of a trace is its baseline", arguments: names)
  func baseline(name: String) throws {
    var pipeline = Self.pipeline(name)
    let lines = try Self.lines(&pipeline)
    #expect(lines == Array(try Data(contentsOf: URL(filePath: Self.path(name + ".jsonl")))))
  }

  @Test("A sink that is given comes back with what it received", arguments: names)
  func sink(name: String) throws {
    var pipeline = Self.pipeline(name)
    var (inspection, reading) = try pipeline.read(into: Inspection())
    let report = inspection.finish()
    #expect(reading.hasRead)
    #expect(report.summary.notifications == reading.summary.notifications)
    #expect(report.summary.connections == reading.summary.connections)
    #expect(report.files.count == 1)
  }

  @Test("A selection that selects all counts what no selection counts", arguments: names)
  func selection(name: String) throws {
    // Connections without records are no part of a selection.
    func counts(_ selection: RecordSelection) throws -> [Int] {
      var pipeline = Self.pipeline(name)
      pipeline.selection = selection
      var inspection = try pipeline.read(into: Inspection()).sink
      let report = inspection.finish()
      return [
        report.summary.notifications, report.fates.accepted, report.fates.rejected, report.fates.discarded,
        report.fates.unknown, report.errorCount, report.feedbackTuples, report.malformed,
      ]
    }
    var all = RecordSelection()
    all.connections = [1...Int.max]
    #expect(try counts(all) == counts(RecordSelection()))
  }

  @Test("A selection of a fate counts the notifications with this fate, though nobody asked for a first pass")
  func fate() throws {
    func counts(_ fates: Set<Fate>) throws -> (notifications: Int, fates: InspectionReport.Fates) {
      var pipeline = Self.pipeline("plain-error.pcap")
      pipeline.selection.fates = fates
      var inspection = try pipeline.read(into: Inspection()).sink
      let report = inspection.finish()
      return (report.summary.notifications, report.fates)
    }
    let all = try counts([])
    for (fate, expected) in [
      (Fate.accepted, all.fates.accepted), (.rejected, all.fates.rejected),
      (.discarded, all.fates.discarded),
    ] {
      #expect(expected > 0)
      #expect(try counts([fate]).notifications == expected, "\(fate)")
    }
  }

  @Test("Reading ends after a number of selected records")
  func limit() throws {
    var pipeline = Self.pipeline("plain-error.pcap")
    pipeline.selection.types = [.notification]
    pipeline.recordLimit = 3
    let lines = String(decoding: try Self.lines(&pipeline), as: UTF8.self)
    #expect(lines.split(separator: "\n").filter { $0.contains(#""type":"notification""#) }.count == 3)
  }

  @Test("A token does not pass redaction on its way to the sink")
  func redaction() throws {
    var plain = Self.pipeline("plain-error.pcap")
    let shown = String(decoding: try Self.lines(&plain), as: UTF8.self)
    let tokens = Set(
      shown.split(separator: "\n").compactMap { line in
        line.range(of: #"(?<="token":")[0-9a-f]{64}"#, options: .regularExpression).map { String(line[$0]) }
      })
    #expect(!tokens.isEmpty)
    var pipeline = Self.pipeline("plain-error.pcap")
    pipeline.redaction = try #require(Redaction(key: Array(repeating: 7, count: 32), keepsAddresses: false))
    let lines = String(decoding: try Self.lines(&pipeline), as: UTF8.self)
    #expect(tokens.allSatisfy { !lines.contains($0) })
  }

  // MARK: inputs

  @Test("What cannot be read is named, and the rest is read")
  func failures() throws {
    try withTemporaryFolder { folder in
      let text = folder.appending(path: "a.txt")
      try Data("no capture\n".utf8).write(to: text)
      let paths = ["\(folder.path)/missing.pcap", text.path, Self.path("plain-error.pcap")]
      let observer = ReadingRecorder()
      var pipeline = Self.pipeline(paths: paths, observer)
      let reading = try pipeline.read(into: Inspection()).reading
      #expect(observer.notices == ["failure \(paths[0]) cannotOpen", "failure \(paths[1]) notACapture"])
      guard case .input(let error) = reading.failure else {
        Issue.record("the first failure is not an input's")
        return
      }
      #expect(error.kind == .cannotOpen)
      #expect(reading.hasRead && reading.summary.notifications > 0)
    }
  }

  @Test("A reading that another one follows reports no fault of an input, and keeps the first")
  func quiet() throws {
    let observer = ReadingRecorder()
    var pipeline = Self.pipeline(paths: ["/nonexistent/a.pcap"], observer)
    let reading = try pipeline.read(into: Inspection(), isQuiet: true).reading
    #expect(observer.notices == [] && reading.failure != nil && !reading.hasRead)
  }

  @Test("A folder's captures are read, and its other files named")
  func folder() throws {
    try withTemporaryFolder { folder in
      let trace = try Data(contentsOf: URL(filePath: Self.path("plain-error.pcap")))
      for name in ["ring-10.pcap", "ring-9.pcap"] { try trace.write(to: folder.appending(path: name)) }
      try Data("hello\n".utf8).write(to: folder.appending(path: "notes.txt"))
      let observer = ReadingRecorder()
      var pipeline = Self.pipeline(paths: [folder.path], observer)
      let whole = try pipeline.read(into: Inspection()).reading
      #expect(
        observer.notices == [
          "found notes.txt", "found ring-9.pcap", "found ring-10.pcap", "left out \(folder.path) [\"notes.txt\"]",
        ])
      #expect(whole.failure == nil && whole.hasRead)
    }
  }

  @Test("A folder without captures cannot be read")
  func emptyFolder() throws {
    try withTemporaryFolder { folder in
      let observer = ReadingRecorder()
      var pipeline = Self.pipeline(paths: [folder.path], observer)
      let reading = try pipeline.read(into: Inspection()).reading
      #expect(observer.notices == ["failure \(folder.path) notACapture"] && !reading.hasRead)
    }
  }

  @Test("A request to stop ends the reading, and what was read is reported")
  func stop() throws {
    let observer = ReadingRecorder()
    observer.batches = 1
    let path = Self.path("plain-error.pcap")
    var pipeline = RecordingPipeline(
      [path, path].map { RecordingInput(path: $0, name: $0) }, DissectionOptions(), filter: nil,
      secrets: { Secrets() }, observer: observer)
    pipeline.isSeparate = true
    let reading = try pipeline.read(into: Inspection()).reading
    var alone = Self.pipeline("plain-error.pcap")
    let one = try alone.read(into: Inspection()).reading
    #expect(reading.hasRead)
    #expect(reading.summary.packets <= one.summary.packets)
  }

  @Test("A request to stop before the first input leaves the sink empty")
  func stopBefore() throws {
    let observer = ReadingRecorder()
    observer.stop()
    var pipeline = Self.pipeline("plain-error.pcap", observer)
    var (inspection, reading) = try pipeline.read(into: Inspection())
    #expect(!reading.hasRead && inspection.finish().files.isEmpty)
  }

  // MARK: refusals

  private static func refusal(_ body: () throws -> Void) -> ReadingRefusal? {
    do {
      try body()
      return nil
    } catch {
      return error as? ReadingRefusal
    }
  }

  private static func refusal(ofWriting pipeline: RecordingPipeline, fates: Bool?) -> ReadingRefusal? {
    var pipeline = pipeline
    return refusal { _ = try pipeline.prepareToWrite(fates: fates) }
  }

  private static func refusal(ofCounting pipeline: RecordingPipeline) -> ReadingRefusal? {
    var pipeline = pipeline
    return refusal { _ = try pipeline.read(into: Inspection()) }
  }

  @Test("A pipe with a name is refused where inputs are read twice, before secrets are read")
  func pipes() throws {
    try withTemporaryFolder { folder in
      let path = "\(folder.path)/pipe"
      try #require(unsafe mkfifo(path, 0o600) == 0)
      let input = RecordingInput(path: path, name: path)
      var pipeline = RecordingPipeline(
        [input], DissectionOptions(), filter: nil,
        secrets: {
          Issue.record("secrets are read")
          return Secrets()
        }, observer: ReadingRecorder())
      #expect(Self.refusal(ofWriting: pipeline, fates: true) == .notRepeatable(input, for: .fates))
      #expect(Self.refusal(ofWriting: pipeline, fates: nil) == nil)
      pipeline.selection.fates = [.discarded]
      #expect(Self.refusal(ofWriting: pipeline, fates: nil) == .selectionOfPipe)
      #expect(Self.refusal(ofCounting: pipeline) == .notRepeatable(input, for: .selection))
    }
  }

  @Test("Facts that come with the end of a recording are refused of an interface")
  func interfaces() throws {
    var pipeline = Self.pipeline(paths: [], ReadingRecorder())
    pipeline.interface = LiveCapture.Options(
      interface: "none", filter: nil, ring: nil, maximumBlockLength: 1 << 20, endingSignals: []
    ) { _ in }
    #expect(Self.refusal(ofWriting: pipeline, fates: true) == .fatesOfInterface)
    #expect(Self.refusal(ofWriting: pipeline, fates: nil) == nil)
    pipeline.selection.statuses = [8]
    #expect(Self.refusal(ofWriting: pipeline, fates: nil) == .selectionOfInterface)
    #expect(Self.refusal(ofCounting: pipeline) == .selectionOfInterface)
  }

  @Test("Secrets are read once, and what both passes used is reported once")
  func secrets() throws {
    final class Reads { var count = 0 }
    let reads = Reads()
    let name = "tls-gateway.pcap"
    var pipeline = RecordingPipeline(
      [RecordingInput(path: Self.path(name), name: name)], DissectionOptions(), filter: nil,
      secrets: {
        reads.count += 1
        return try Self.secrets(of: name)
      }, observer: ReadingRecorder())
    var used = ""
    pipeline.onUse = { used += $0 }
    _ = try Self.lines(&pipeline)
    #expect(reads.count == 1)
    // The first of two passes decrypts, too; what it used is reported once.
    let lines = used.split(separator: "\n")
    #expect(!lines.isEmpty && Set(lines).count == lines.count)
  }
}
