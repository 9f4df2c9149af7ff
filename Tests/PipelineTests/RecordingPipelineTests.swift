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
import Testing

/// The bytes that a writer has written.
private final class Written {
  private(set) var bytes: [UInt8] = []
  func take(_ more: RawSpan) -> Bool {
    bytes.append(copying: more)
    return true
  }
}

/// A folder that is removed with its last user.
private final class Folder {
  let path = FileManager.default.temporaryDirectory.appending(path: "pipeline-\(UUID().uuidString)").path
  init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try Data(bytes).write(to: URL(filePath: path).appending(path: name))
    return "\(path)/\(name)"
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

  private static func lines(_ pipeline: inout RecordingPipeline, _ purpose: RecordingPipeline.Purpose) throws
    -> [UInt8]
  {
    let written = Written()
    let fates = try pipeline.prepare(purpose)
    let writer = JSONLinesWriter(fates: fates, judging: PayloadJudging(), output: written.take)
    _ = try pipeline.read(into: writer)
    return written.bytes
  }

  @Test("What is written of a trace is its baseline", arguments: names)
  func baseline(name: String) throws {
    var pipeline = Self.pipeline(name)
    let lines = try Self.lines(&pipeline, .writing(fates: nil))
    #expect(lines == Array(try Data(contentsOf: URL(filePath: Self.path(name + ".jsonl")))))
  }

  @Test("A sink that is given comes back with what it received", arguments: names)
  func sink(name: String) throws {
    var pipeline = Self.pipeline(name)
    _ = try pipeline.prepare(.counting)
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
      _ = try pipeline.prepare(.counting)
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

  @Test("Reading ends after a number of selected records")
  func limit() throws {
    var pipeline = Self.pipeline("plain-error.pcap")
    pipeline.selection.types = [.notification]
    pipeline.recordLimit = 3
    let lines = String(decoding: try Self.lines(&pipeline, .writing(fates: nil)), as: UTF8.self)
    #expect(lines.split(separator: "\n").filter { $0.contains(#""type":"notification""#) }.count == 3)
  }

  @Test("A token does not pass redaction on its way to the sink")
  func redaction() throws {
    var plain = Self.pipeline("plain-error.pcap")
    let shown = String(decoding: try Self.lines(&plain, .writing(fates: nil)), as: UTF8.self)
    let tokens = Set(
      shown.split(separator: "\n").compactMap { line in
        line.range(of: #"(?<="token":")[0-9a-f]{64}"#, options: .regularExpression).map { String(line[$0]) }
      })
    #expect(!tokens.isEmpty)
    var pipeline = Self.pipeline("plain-error.pcap")
    pipeline.redaction = try #require(Redaction(key: Array(repeating: 7, count: 32), keepsAddresses: false))
    let lines = String(decoding: try Self.lines(&pipeline, .writing(fates: nil)), as: UTF8.self)
    #expect(tokens.allSatisfy { !lines.contains($0) })
  }

  // MARK: inputs

  @Test("What cannot be read is named, and the rest is read")
  func failures() throws {
    let folder = try Folder()
    let text = try folder.file("a.txt", Array("no capture\n".utf8))
    let paths = ["\(folder.path)/missing.pcap", text, Self.path("plain-error.pcap")]
    let observer = ReadingRecorder()
    var pipeline = Self.pipeline(paths: paths, observer)
    let reading = try pipeline.read(into: Inspection()).reading
    #expect(observer.notices == ["failure \(paths[0]) cannotOpen", "failure \(text) notACapture"])
    guard case .input(let error) = reading.failure else {
      Issue.record("the first failure is not an input's")
      return
    }
    #expect(error.kind == .cannotOpen)
    #expect(reading.hasRead && reading.summary.notifications > 0)
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
    let folder = try Folder()
    let trace = Array(try Data(contentsOf: URL(filePath: Self.path("plain-error.pcap"))))
    for name in ["ring-10.pcap", "ring-9.pcap"] { _ = try folder.file(name, trace) }
    _ = try folder.file("notes.txt", Array("hello\n".utf8))
    let observer = ReadingRecorder()
    var pipeline = Self.pipeline(paths: [folder.path], observer)
    let whole = try pipeline.read(into: Inspection()).reading
    #expect(
      observer.notices == [
        "found notes.txt", "found ring-9.pcap", "found ring-10.pcap", "left out \(folder.path) [\"notes.txt\"]",
      ])
    #expect(whole.failure == nil && whole.hasRead)
  }

  @Test("A folder without captures cannot be read")
  func emptyFolder() throws {
    let folder = try Folder()
    let observer = ReadingRecorder()
    var pipeline = Self.pipeline(paths: [folder.path], observer)
    let reading = try pipeline.read(into: Inspection()).reading
    #expect(observer.notices == ["failure \(folder.path) notACapture"] && !reading.hasRead)
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

  private static func fifo(_ folder: Folder) throws -> String {
    let path = "\(folder.path)/pipe"
    try #require(unsafe mkfifo(path, 0o600) == 0)
    return path
  }

  private static func refusal(
    _ pipeline: RecordingPipeline, _ purpose: RecordingPipeline.Purpose
  ) -> ReadingRefusal? {
    var pipeline = pipeline
    do {
      _ = try pipeline.prepare(purpose)
      return nil
    } catch {
      return error as? ReadingRefusal
    }
  }

  @Test("A pipe with a name is refused where inputs are read twice")
  func pipes() throws {
    let folder = try Folder()
    let path = try Self.fifo(folder)
    let input = RecordingInput(path: path, name: path)
    var pipeline = Self.pipeline(paths: [path], ReadingRecorder())
    #expect(Self.refusal(pipeline, .writing(fates: true)) == .notRepeatable(input, for: .fates))
    #expect(Self.refusal(pipeline, .writing(fates: nil)) == nil)
    pipeline.selection.fates = [.discarded]
    #expect(Self.refusal(pipeline, .writing(fates: nil)) == .selectionOfPipe)
    #expect(Self.refusal(pipeline, .counting) == .notRepeatable(input, for: .selection))
  }

  @Test("Facts that come with the end of a recording are refused of an interface")
  func interfaces() throws {
    var pipeline = Self.pipeline(paths: [], ReadingRecorder())
    pipeline.interface = LiveCapture.Options(
      interface: "none", filter: nil, ring: nil, maximumBlockLength: 1 << 20, endingSignals: []
    ) { _ in }
    #expect(Self.refusal(pipeline, .writing(fates: true)) == .fatesOfInterface)
    #expect(Self.refusal(pipeline, .writing(fates: nil)) == nil)
    pipeline.selection.statuses = [8]
    #expect(Self.refusal(pipeline, .writing(fates: nil)) == .selectionOfInterface)
    #expect(Self.refusal(pipeline, .counting) == .selectionOfInterface)
  }

  @Test("Secrets are read once, and not before the inputs are known to be readable as asked")
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
    #expect(reads.count == 0)
    var used = ""
    pipeline.onUse = { used += $0 }
    _ = try Self.lines(&pipeline, .writing(fates: nil))
    #expect(reads.count == 1)
    // The first of two passes decrypts, too; what it used is reported once.
    let lines = used.split(separator: "\n")
    #expect(!lines.isEmpty && Set(lines).count == lines.count)
  }
}
