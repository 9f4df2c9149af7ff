import BinaryProtocol
import Bytes
import Foundation
import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

@Suite("A clear capture")
struct ClearCaptureTests {
  /// Undamaged connections that the capture begins within.
  private static let begunBefore: [String: Set<Int>] = ["mid-stream.pcap.zst": [0], "tls13-mid-session.pcap": [0]]

  @Test(
    "It has the redacted records of every undamaged connection of a trace",
    arguments: some(10, of: RecordingTests.traces))
  func traces(trace: String) throws {
    try ClearCopy(trace: trace).expectSameRecords(withoutBeginning: Self.begunBefore[trace] ?? [])
  }

  @Test(
    "The same of a trace in many files, one after the other and side by side",
    arguments: some(10, of: RecordingTests.traces))
  func files(trace: String) throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    let before = Self.begunBefore[trace] ?? []
    if capture.isOrdered {
      try ClearCopy(capture.pieces(of: 20), trace: trace).expectSameRecords(withoutBeginning: before)
    }
    if capture.isStrictlyOrdered {
      try ClearCopy(capture.queues(3), trace: trace).expectSameRecords(withoutBeginning: before)
    }
  }

  @Test(
    "The same of a shuffled trace that is read in the order of its times",
    arguments: some(10, of: RecordingTests.traces))
  func shuffled(trace: String) throws {
    let capture = try #require(try CutCapture(contentsOf: Folder.traces.appending(path: trace).path))
    guard capture.isStrictlyOrdered else { return }
    var random = SeededGenerator(seed: 6)
    var options = DissectionOptions()
    options.capture.reorderWindow = .max
    let order = capture.records.indices.shuffled(using: &random)
    let copy = try ClearCopy([capture.file(order)], trace: trace, options: options)
    try copy.expectSameRecords(withoutBeginning: Self.begunBefore[trace] ?? [])
    #expect(try copy.bytes == ClearCopy([capture.whole], trace: trace).bytes)
  }

  @Test(
    "What a trace lacks is counted by its reason",
    arguments: [
      ("items-that-do-not-fit.pcap", [4, 0, 4, 0, 0]), ("mid-stream.pcap.zst", [0, 0, 0, 1, 0]),
      ("snap-length-120.pcap", [0, 0, 2, 0, 0]), ("tls13-keys-missing.pcap", [2, 1, 0, 0, 0]),
      ("tls-without-keys.pcap", [0, 1, 0, 0, 0]), ("tls-gcm-loss.pcap", [0, 0, 1, 0, 0]),
      ("tls13-mid-session.pcap", [0, 0, 0, 1, 0]),
    ])
  func counts(trace: String, expected: [Int]) throws {
    let counts = try ClearCopy(trace: trace).counts
    #expect(
      [counts.connections, counts.notDecrypted, counts.damaged, counts.beginningMissing, counts.otherProtocols]
        == expected)
  }

  // MARK: made captures

  /// Connections of both services with everything that may happen to them, between few ports.
  private static func conversations(_ random: inout SeededGenerator) -> CaptureBuilder {
    var capture = CaptureBuilder()
    for _ in 0..<random.number(1...6) {
      let isFeedback = random.happens(oneIn: 4)
      let line = capture.connect(
        from: UInt16(40_001 + random.number(0...1)), to: isFeedback ? 2196 : 2195,
        handshake: !random.happens(oneIn: 8))
      if random.happens(oneIn: 12) { capture.client(line, Array("GET / HTTP/1.1\r\n\r\n".utf8)) }
      var written: UInt32 = 0
      for _ in 0..<random.number(0...20) {
        if isFeedback {
          capture.server(line, feedbackTuple(device: UInt8(random.number(0...9))))
        } else if written > 0, random.happens(oneIn: 5) {
          capture.server(line, refusal(random.pick([0, 1, 8, 10]), UInt32(random.number(1...Int(written + 1)))))
        } else {
          // Several in a packet, and one in several packets.
          var bytes: [UInt8] = []
          for _ in 0..<random.number(1...3) {
            written += 1
            bytes += push(written, device: UInt8(random.number(0...3)), "Hello \(written)")
          }
          let cut = random.number(0...bytes.count)
          if cut > 0 { capture.client(line, Array(bytes[..<cut])) }
          if random.happens(oneIn: 60) { capture.lose(line, 7) }
          if random.happens(oneIn: 60) { capture.client(line, [99, 98, 97]) }
          if cut < bytes.count { capture.client(line, Array(bytes[cut...])) }
        }
      }
      switch random.number(0...4) {
      case 0: capture.finish(line, byServer: random.happens(oneIn: 2))
      case 1:
        capture.reset(line, byServer: true)
        capture.client(line, push(written + 1, device: 1))
      case 2:
        capture.halfClose(line)
        // A gateway that says one thing may say it with another command byte.
        if written > 0 { capture.server(line, refusal(8, written, command: random.pick([8, 1]))) }
        capture.halfClose(line, byServer: true)
      case 3:
        capture.halfClose(line, byServer: true)
        capture.client(line, push(written + 1, device: 1))
        capture.reset(line)
      default: break
      }
    }
    return capture
  }

  private static func feedbackTuple(device: UInt8) -> [UInt8] {
    written {
      FeedbackTuple(timestamp: 1_450_000_000, token: [UInt8](repeating: device, count: 32).rawBytes).encode(into: &$0)
    }
  }

  /// Damage is told by records, but for a beginning that is missing: the captures are compared without it.
  private static func begunBefore(_ capture: CaptureBuilder) throws -> Set<Int> {
    let connections = try capture.dissected().connections
    return Set(connections.filter { !$0.outline.isFromBeginning }.map { $0.connection - 1 })
  }

  @Test("Random connections that share ports are told apart, and end as they did", arguments: seeds(30, of: 500))
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let capture = Self.conversations(&random)
    try ClearCopy([capture.bytes]).expectSameRecords(withoutBeginning: Self.begunBefore(capture), "seed \(seed)")
  }

  @Test("Packets that come late or twice change nothing", arguments: seeds(30, of: 500))
  func late(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let capture = CaptureBuilder.conversations(&random)
    let cut = try #require(CutCapture(capture.bytes))
    var order = Array(cut.records.indices)
    for index in order.indices.dropLast() where index % 4 == 3 && random.happens(oneIn: 2) {
      order.swapAt(index, index + 1)
    }
    for index in stride(from: 5, to: order.count, by: 9) { order.insert(order[index - 2], at: index) }
    try ClearCopy([cut.file(order)]).expectSameRecords("seed \(seed)")
  }

  @Test("What does not fit into memory is sorted in files, and the capture is the same")
  func spilled() throws {
    var random = SeededGenerator(seed: 1)
    var capture = CaptureBuilder.conversations(&random)
    let line = capture.connect(from: 50_000)
    for identifier in 1...3_000 { capture.client(line, push(UInt32(identifier), device: UInt8(identifier % 100))) }
    let small = try ClearCopy([capture.bytes], memory: 1 << 16)
    let large = try ClearCopy([capture.bytes], memory: 1 << 24)
    #expect(small.hasSpilled && !large.hasSpilled && small.bytes == large.bytes)
    try small.expectSameRecords()
  }

  @Test("A limit that was hit makes a connection damaged")
  func limit() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1))
    capture.client(capture.connect(from: 40_002), push(1, device: 1))
    var options = DissectionOptions()
    options.capture.reassembly.maximumConnections = 1
    let counts = try ClearCopy([capture.bytes], options: options).counts
    #expect(
      counts
        == {
          var it = ClearCounts()
          (it.connections, it.packets, it.withRecords, it.damaged) = (1, 4, 1, 1)
          return it
        }())
  }

  @Test("Bytes that were sent twice with different contents make a connection damaged")
  func conflict() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    let frame = push(1, device: 1)
    capture.client(line, frame)
    // Back by a frame.
    capture.lose(line, 1 << 32 - frame.count)
    capture.client(line, push(1, device: 2))
    let counts = try ClearCopy([capture.bytes]).counts
    #expect(counts.damaged == 1 && counts.connections == 0)
  }

  @Test("A connection begins before its data, also when a clock was set back after its SYN")
  func clock() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1))
    capture.server(line, refusal(8, 1))
    capture.finish(line, byServer: true)
    var records = try #require(CutCapture(capture.bytes)).records
    // The handshake is a minute late; seconds stand first.
    for index in 0..<3 { records[index][3] += 60 }
    let file = capture.bytes[..<24] + records.joined()
    var other = CaptureBuilder()
    other.client(other.connect(from: 50_000), push(1, device: 2))
    let copy = try ClearCopy([Array(file), other.bytes])
    try copy.expectSameRecords()
    #expect(copy.counts.connections == 2)
  }

  @Test("Bytes to a feedback service are no records, so its connection is left out")
  func feedbackClient() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 2196)
    capture.server(line, Self.feedbackTuple(device: 3))
    capture.client(line, [1, 2, 3])
    let counts = try ClearCopy([capture.bytes]).counts
    #expect(counts.damaged == 1 && counts.connections == 0)
  }

  @Test("A raw dump is named, and nothing is taken from it")
  func dump() throws {
    let capture = ClearCapture(ClearCapture.Options())
    let shared = SharedSink(capture)
    var dissection = Dissection(into: shared, options: DissectionOptions())
    let path = Folder.traces.appending(path: "garbage-inside.bin").path
    _ = try dissection.read(try .open(path, options: CaptureOptions()), source: "a dump") { _ in true }
    #expect(capture.dump == "a dump" && capture.counts == ClearCounts() && !capture.isOpen)
  }
}
