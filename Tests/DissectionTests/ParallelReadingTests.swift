import BinaryProtocol
import Bytes
import Dispatch
import Foundation
import PacketCapture
import Synchronization
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// The law of threads: the same bytes for any number of them.
@Suite("Reading on several threads")
struct ParallelReadingTests {
  /// At most so many: one shares the thread that reads.
  static let counts: [DissectionOptions.Threads] = [.exactly(2), .exactly(3), .exactly(8), .upTo(2), .upTo(3)]

  /// Small blocks, so that a small recording has many batches, and threads for the least of them.
  private static func options(
    threads: DissectionOptions.Threads = .exactly(1), blockLength: Int = 700, memory: Int? = nil
  ) -> DissectionOptions {
    var options = DissectionOptions()
    if let memory { options.maximumMemory = memory }
    options.threads = threads
    options.leastWeightForThreads = 1
    options.capture.blockLength = blockLength
    return options
  }

  private static let traces = Folder.names(in: Folder.traces, ending: ".jsonl").map { $0.dropLast(".jsonl".count) }
    .map(String.init)

  @Test("A trace has the same records, table and inspection", arguments: some(12, of: traces))
  func trace(name: String) throws {
    let path = Folder.traces.appending(path: name).path
    let variants: [(DissectionOptions.Threads, Int)] = [
      (.exactly(2), 200), (.exactly(3), 700), (.exactly(8), 4_000), (.upTo(2), 300),
    ]
    for (threads, blockLength) in variants {
      let expected = try Outputs(path, Self.options(blockLength: blockLength))
      let options = Self.options(threads: threads, blockLength: blockLength)
      #expect(try Outputs(path, options).differences(from: expected).joined() == "")
    }
  }

  @Test("Incidents have the same records, table and inspection", arguments: seeds(8, of: 80))
  func incident(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let capture = random.happens(oneIn: 2) ? Incident(seed: seed).capture : .conversations(&random)
    try withTemporaryFile(capture.bytes) { path in
      let expected = try Outputs(path, Self.options())
      for threads in Self.counts {
        #expect(try Outputs(path, Self.options(threads: threads)).differences(from: expected).joined() == "")
      }
    }
  }

  @Test("What is given up for lack of memory is the same", arguments: seeds(6, of: 50))
  func memory(seed: UInt64) throws {
    let capture = Incident(seed: seed).capture
    try withTemporaryFile(capture.bytes) { path in
      for memory in [64, 2_000] {
        let expected = try Outputs(path, Self.options(memory: memory))
        for threads in Self.counts {
          let outputs = try Outputs(path, Self.options(threads: threads, memory: memory))
          #expect(outputs.differences(from: expected).joined() == "", "\(memory)")
        }
      }
    }
  }

  @Test("Connections that go on for many batches are read by other threads, until something happens on them")
  func ahead() throws {
    var capture = CaptureBuilder()
    let lines = (0..<3).map { capture.connect(from: UInt16(40_001 + $0)) }
    for round in 0..<400 {
      for line in lines {
        let number = UInt32(round * 3 + line)
        // Two notifications to three packets: beginnings and ends are in different ones.
        let frames = push(number, device: UInt8(round % 200), "text \(number)") + push(number + 5_000, device: 1)
        let cut = frames.count / 3
        capture.client(line, Array(frames[..<cut]))
        if round == 200 && line == 1 { capture.lose(line, 40) }
        capture.client(line, Array(frames[cut..<2 * cut]))
        capture.client(line, Array(frames[(2 * cut)...]))
        if round % 90 == 50 && line == 2 { capture.server(line, refusal(10, number)) }
      }
    }
    capture.finish(lines[0])
    try withTemporaryFile(capture.bytes) { path in
      let expected = try Outputs(path, Self.options())
      #expect(expected.lines.split(separator: "\n").count > 2_300)
      for threads in Self.counts {
        #expect(try Outputs(path, Self.options(threads: threads)).differences(from: expected).joined() == "")
      }
      let (ahead, left) = try Self.shares(path, Self.options(threads: .exactly(4)), Collector())
      #expect(ahead > 1_500 && left < ahead / 4, "\(ahead) events were read ahead, \(left) were left")
      let shared = try Self.shares(path, Self.options(threads: .upTo(2)), Inspection())
      #expect(shared.ahead > 500, "\(shared.ahead) events were read ahead on the thread that reads")
      let few = try Self.shares(path, Self.options(threads: .upTo(2)), Collector())
      #expect(few == (0, 0), "for a sink that does little with a notification a second thread is not worth it")
    }
  }

  @Test("TLS records are read by other threads up to one that is not data, with the topic of the certificate")
  func sealed() throws {
    var capture = CaptureBuilder()
    let subjects = [
      [("UID", "com.example.app.voip"), ("CN", "VoIP Services: com.example.app")], TLSIdentity.providerSubject,
      [("UID", "com.example.other.voip"), ("CN", "VoIP Services: com.example.other")],
    ]
    let lines = try subjects.enumerated().map { number, subject in
      let certificate = try TLSIdentity(.ec, subject: subject).certificateDER
      return SealedLine(&capture, from: UInt16(40_001 + number), certificate: certificate)
    }
    for round in 0..<300 {
      for (number, line) in lines.enumerated() {
        func next(_ part: UInt32) -> [UInt8] {
          let frame = silentPush(UInt32(round) * 4 + part, device: UInt8(round % 200))
          return line.data(frame)
        }
        switch round * 3 + number {
        // Data, something else, and data again, in one segment and perhaps a record of two segments.
        case let turn where turn % 37 == 0: capture.client(line.line, next(0) + next(1) + line.alert() + next(2))
        case let turn where turn % 53 == 0:
          let records = next(0) + line.data([]) + next(1)
          capture.client(line.line, Array(records[..<70]))
          capture.client(line.line, Array(records[70...]))
        case let turn where turn % 71 == 0:
          var damaged = next(1)
          damaged[damaged.count - 1] ^= 1
          capture.client(line.line, next(0) + damaged + next(2) + next(3))
        default: capture.client(line.line, next(0) + next(1))
        }
      }
    }
    try withTemporaryFile(capture.bytes) { path in
      let keyLog = path + ".keys"
      try Data(lines.map(\.keyLogLine).joined().utf8).write(to: URL(filePath: keyLog))
      defer { try? FileManager.default.removeItem(atPath: keyLog) }
      for blockLength in [900, 6_000] {
        let expected = try Outputs(path, Self.options(blockLength: blockLength))
        #expect(expected.lines.split(separator: "\n").count > 1_700)
        #expect(expected.lines.contains(#""kind":"voip""#) && expected.lines.contains(#""kind":"background""#))
        for threads in Self.counts {
          let options = Self.options(threads: threads, blockLength: blockLength)
          #expect(try Outputs(path, options).differences(from: expected).joined() == "")
        }
      }
      let (ahead, left) = try Self.shares(path, Self.options(threads: .exactly(4)), Collector())
      #expect(ahead > 500 && left < ahead / 2, "\(ahead) events were read ahead, \(left) were left")
    }
  }

  /// Of the events of other threads' connections, how many these read, and how many they left.
  private static func shares(
    _ path: String, _ options: DissectionOptions, _ sink: some RecordSink
  ) throws -> (ahead: Int, left: Int) {
    let shared = SharedSink(sink)
    var dissection = Dissection(into: shared, options: options, secrets: try secrets(beside: path))
    _ = try dissection.read(try CaptureInput.open(path, options: options.capture), source: path) { _ in true }
    return dissection.readAhead
  }

  @Test("The packets of a pipe are read when they come, however many threads there are", .timeLimit(.minutes(5)))
  func pipe() throws {
    var capture = CaptureBuilder()
    let lines = (0..<4).map { capture.connect(from: UInt16(40_001 + $0)) }
    for round in 0..<100 { for line in lines { capture.client(line, push(UInt32(round), device: UInt8(line))) } }
    let bytes = capture.bytes
    for threads in [.upTo(2), .exactly(3)] as [DissectionOptions.Threads] {
      try withTemporaryFile([]) { path in
        let path = path + ".pipe"
        // Safe: the path is a string of its own for the call.
        try #require(unsafe mkfifo(path, 0o600) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let hasRead = DispatchSemaphore(value: 0)
        let wasInTime = Mutex(false)
        let writer = DispatchQueue(label: "writer")
        writer.async {
          guard let pipe = try? FileHandle(forWritingTo: URL(filePath: path)) else { return }
          try? pipe.write(contentsOf: Data(bytes))
          let result = hasRead.wait(timeout: .now() + 120)
          wasInTime.withLock { $0 = result == .success }
          try? pipe.close()
        }
        let options = Self.options(threads: threads)
        let shared = SharedSink(Inspection())
        var dissection = Dissection(into: shared, options: options)
        dissection.onProgress = { summary in if summary.notifications == 400 { hasRead.signal() } }
        _ = try dissection.read(try CaptureInput.open(path, options: options.capture), source: path) { _ in true }
        writer.sync {}
        #expect(dissection.summary.notifications == 400)
        #expect(wasInTime.withLock { $0 }, "some notifications waited for more packets")
      }
    }
  }

  @Test("What was read ahead when reading is stopped is in the records, and counted") func stopped() throws {
    var capture = CaptureBuilder()
    let lines = (0..<4).map { capture.connect(from: UInt16(40_001 + $0)) }
    for round in 0..<500 { for line in lines { capture.client(line, push(UInt32(round), device: UInt8(line))) } }
    try withTemporaryFile(capture.bytes) { path in
      for threads in [1, 2, 4] {
        let options = Self.options(threads: .exactly(threads))
        let shared = SharedSink(Collector())
        var dissection = Dissection(into: shared, options: options)
        var calls = 0
        _ = try dissection.read(try CaptureInput.open(path, options: options.capture), source: path) { _ in
          calls += 1
          return calls < 20
        }
        dissection.finish()
        let seen = shared.sink
        #expect(seen.notifications.count > 20 && seen.notifications.count < 2_000)
        #expect(seen.connections.map(\.notifications).reduce(0, +) == seen.notifications.count)
        #expect(seen.summaries.map(\.notifications) == [seen.notifications.count])
        #expect(seen.summaries.map(\.packets) == seen.outcomes.map(\.packets))
      }
    }
  }
}

/// What is written of a recording in every way that threads take part in.
private struct Outputs {
  var lines: String
  private var others: [(name: String, text: String)]

  init(_ path: String, _ options: DissectionOptions) throws {
    func read<Sink: RecordSink>(_ sink: Sink) throws -> Sink {
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: options, secrets: try secrets(beside: path))
      _ = try dissection.read(try CaptureInput.open(path, options: options.capture), source: "a") { _ in true }
      dissection.finish()
      shared.sink.pause()
      return shared.sink
    }
    func written(_ make: (@escaping RecordOutput) throws -> some RecordSink) throws -> String {
      var bytes: [UInt8] = []
      let sink = try make {
        bytes.append(copying: $0)
        return true
      }
      _ = try read(sink)
      return String(decoding: bytes, as: UTF8.self)
    }
    func writtenFiles() throws -> String {
      let files = Mutex<[RecordType: [UInt8]]>([:])
      let writer = RecordFilesWriter { type in
        JSONLinesWriter(fates: fates, judging: judging) { bytes in
          files.withLock { $0[type, default: []].append(copying: bytes) }
          return true
        }
      }
      _ = try read(writer)
      return files.withLock { $0 }.sorted { $0.key.rawValue < $1.key.rawValue }
        .map { String(decoding: $0.value, as: UTF8.self) }.joined()
    }
    let fates = FateNotation.each(try read(FateIndex()))
    let judging = PayloadJudging()
    let some = try #require(FieldSelection(["time", "token", "kind", "reason", "fate"]))
    lines = try written { JSONLinesWriter(fates: fates, judging: judging, output: $0) }
    let redaction = try #require(Redaction(key: Array(repeating: 7, count: 32), keepsAddresses: false))
    var inspected = try read(Inspection())
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    others = [
      ("csv", try written { CSVWriter(fates: .ranges, judging: judging, output: $0) }),
      (
        "some of jsonl",
        try written { JSONSomeFieldsWriter(some, fates: fates, judging: judging, output: $0) }
      ),
      ("some of csv", try written { SomeColumnsWriter(some, fates: fates, judging: judging, output: $0) }),
      ("table", try written { TableWriter(fates: fates, judging: judging, output: $0) }),
      ("files", try writtenFiles()),
      (
        "redacted",
        try written { RedactedRecords(JSONLinesWriter(fates: fates, judging: judging, output: $0), redaction) }
      ),
      ("inspection", String(decoding: try encoder.encode(inspected.finish(withCounts: true)), as: UTF8.self)),
    ]
  }

  /// The first line that differs of each output that does.
  func differences(from other: Outputs) -> [String] {
    let pairs = zip([("jsonl", lines)] + others, [("jsonl", other.lines)] + other.others)
    return pairs.filter { $0.1 != $1.1 }.map { own, other in
      let lines = zip(own.1.split(separator: "\n"), other.1.split(separator: "\n")).first { $0 != $1 }
      return "\(own.0): \(lines?.0 ?? "more or fewer lines"), not \(lines?.1 ?? "")"
    }
  }
}
