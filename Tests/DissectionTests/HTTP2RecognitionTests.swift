import Bytes
import HTTP2
import ProviderAPI
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// What an HTTP/2 client and its server write.
struct HTTP2Line {
  static let token = String(repeating: "0f", count: 32)
  /// Its signature is a credential.
  static let signature = String(repeating: "Sig_nature-", count: 8)

  private var client = HPACKEncoder()
  private var server = HPACKEncoder()
  private(set) var words: [(isClient: Bool, bytes: [UInt8])] = []

  init() {
    write(true) {
      $0.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
      $0.writeSettings([Setting(.enablePush, 0)])
    }
    write(false) { $0.writeSettings([Setting(.maximumConcurrentStreams, 100)]) }
    write(true) { $0.writeSettingsAcknowledgement() }
    write(false) { $0.writeSettingsAcknowledgement() }
  }

  private mutating func write(_ isClient: Bool, _ body: (inout ByteWriter) -> Void) {
    var writer = ByteWriter(capacity: 512)
    body(&writer)
    words.append((isClient, Array(copying: writer.bytes)))
  }

  /// A request and its answer, which has an apns-id if it is of APNs.
  mutating func push(
    _ stream: UInt32, path: String = "/3/device/" + token, status: String = "200", isOfAPNs: Bool = true
  ) {
    var block = ByteWriter(capacity: 512)
    client.beginBlock(&block)
    let fields: [(String, String, HPACKEncoder.Indexing)] = [
      (":method", "POST", .incremental), (":scheme", "https", .incremental), (":path", path, .withoutIndexing),
      ("apns-topic", "com.example.tide", .incremental), ("apns-push-type", "alert", .incremental),
      ("authorization", "bearer e30.e30." + Self.signature, .neverIndexed),
    ]
    for (name, value, indexing) in fields {
      client.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, indexing, to: &block)
    }
    write(true) {
      $0.writeFrame(.headers, flags: .endHeaders, stream: stream, block.bytes)
      $0.writeFrame(.data, flags: .endStream, stream: stream, Array(#"{"aps":{"alert":"x"}}"#.utf8).rawBytes)
    }
    var answer = ByteWriter(capacity: 64)
    server.beginBlock(&answer)
    server.write(Array(":status".utf8).rawBytes, Array(status.utf8).rawBytes, .incremental, to: &answer)
    if isOfAPNs {
      let id = "eabeae54-14a8-11e5-b60b-1697f925ec7b"
      server.write(Array("apns-id".utf8).rawBytes, Array(id.utf8).rawBytes, .withoutIndexing, to: &answer)
    }
    write(false) { $0.writeFrame(.headers, flags: [.endHeaders, .endStream], stream: stream, answer.bytes) }
  }

  /// A request with content that has not ended.
  static func begun(content: Int) -> [UInt8] {
    var encoder = HPACKEncoder()
    var block = ByteWriter(capacity: 128)
    var output = ByteWriter(capacity: 128)
    encoder.beginBlock(&block)
    for (name, value) in [(":method", "POST"), (":path", "/3/device/" + token)] {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .withoutIndexing, to: &block)
    }
    output.writeFrame(.headers, flags: .endHeaders, stream: 1, block.bytes)
    output.writeFrame(.data, flags: [], stream: 1, Array(repeating: UInt8(ascii: "x"), count: content).rawBytes)
    return Array(copying: output.bytes)
  }

  static func pushes(_ count: Int, isOfAPNs: Bool = true) -> HTTP2Line {
    var line = HTTP2Line()
    for number in 0..<count { line.push(UInt32(2 * number + 1), isOfAPNs: isOfAPNs) }
    return line
  }
}

/// How connections over HTTP/2 are recognised: by their bytes, on any port.
@Suite("Recognition of HTTP/2")
struct HTTP2RecognitionTests {
  private static func read(
    _ words: [(isClient: Bool, bytes: [UInt8])], port: UInt16 = 443, size: Int = 1_000_000, isFromStart: Bool = true,
    _ options: DissectionOptions = DissectionOptions()
  ) throws -> Collector {
    var capture = CaptureBuilder()
    let line = capture.connect(to: port, handshake: isFromStart)
    for (isClient, bytes) in words {
      for start in stride(from: 0, to: bytes.count, by: size) {
        let piece = Array(bytes[start..<min(start + size, bytes.count)])
        if isClient { capture.client(line, piece) } else { capture.server(line, piece) }
      }
    }
    capture.finish(line)
    return try capture.dissected(options)
  }

  @Test(
    "The preface is recognised on any port, in pieces of any size",
    arguments: [443, 2197, 2195, 2196, 5_000] as [UInt16],
    [1_000_000, 7, 1])
  func preface(port: UInt16, size: Int) throws {
    let seen = try Self.read(HTTP2Line.pushes(3).words, port: port, size: size)
    let connection = try #require(seen.connections.first)
    #expect(connection.service == .gateway && connection.otherProtocol == .http2)
    #expect((connection.notifications, connection.fates.accepted) == (3, 3))
    #expect(connection.http2?.responses == 3 && connection.http2?.firstStreamLimit == 100)
    #expect(seen.requests.map(\.index) == [0, 1, 2])
    #expect(seen.requests.allSatisfy { $0.token == HTTP2Line.token && $0.topic == "com.example.tide" })
    #expect(seen.gaps.isEmpty && seen.malformed.isEmpty)
  }

  @Test("It is recognised behind preambles", arguments: [1_000_000, 5])
  func preambles(size: Int) throws {
    for words: [(Bool, [UInt8])] in [
      [
        (true, Array("CONNECT api.push.apple.com:443 HTTP/1.1\r\n\r\n".utf8)),
        (false, Array("HTTP/1.1 200 OK\r\n\r\n".utf8)),
      ], [(true, Array("PROXY TCP4 192.0.2.1 192.0.2.2 40001 443\r\n".utf8))],
    ] {
      let seen = try Self.read(words.map { (isClient: $0.0, bytes: $0.1) } + HTTP2Line.pushes(2).words, size: size)
      #expect(seen.connections.first?.preamble != nil)
      #expect(seen.requests.count == 2 && seen.connections.first?.fates.accepted == 2)
    }
  }

  @Test(
    "The middle of a connection is recognised, and what needs what was before is uncertain", arguments: [443, 2195])
  func middle(port: UInt16) throws {
    let words = Array(HTTP2Line.pushes(6).words.dropFirst(8))
    let seen = try Self.read(words, port: port, isFromStart: false)
    let connection = try #require(seen.connections.first)
    #expect(connection.otherProtocol == .http2 && connection.service == .gateway)
    #expect(seen.requests.count == 4)
    #expect(seen.requests.allSatisfy { $0.token == HTTP2Line.token && $0.topic == nil })
    #expect(seen.requests.allSatisfy { $0.uncertain.contains("topic") && $0.uncertain.contains("push_type") })
    #expect(seen.answers.count == 4 && seen.answers.allSatisfy { $0.status == nil || $0.status == 200 })
    #expect(connection.fates.rejected == 0)
  }

  @Test("A port can be said to carry it, which the bytes of another protocol contradict")
  func told() throws {
    var options = DissectionOptions()
    options.http2Ports = [8_443]
    // A piece of a frame's payload alone, and then frames.
    let words = HTTP2Line.pushes(3).words
    let cut = [(isClient: true, bytes: Array(words[4].bytes.dropFirst(20)))] + words.dropFirst(6)
    let seen = try Self.read(Array(cut), port: 8_443, isFromStart: false, options)
    #expect(seen.connections.first?.otherProtocol == .http2)
    #expect(seen.requests.count >= 1)
    let frames = push(1, device: 1) + push(2, device: 2)
    let binary = try Self.read([(isClient: true, bytes: frames)], port: 2195, DissectionOptions())
    #expect(binary.connections.first?.service == .gateway && binary.notifications.count == 2)
  }

  @Test("A dump of one direction is recognised by its first bytes", arguments: [true, false])
  func dump(isClient: Bool) throws {
    let bytes = HTTP2Line.pushes(2).words.filter { $0.isClient == isClient }.flatMap(\.bytes)
    #expect(DumpGuess.http2(bytes.rawBytes) == (isClient ? .http2 : .http2Responses))
    let seen = try withTemporaryFile(bytes) { try dissect($0, DissectionOptions()) }
    #expect(seen.summaries.map(\.responses) == [isClient ? 0 : 2])
    #expect(seen.requests.count == 2)
    #expect(seen.requests.allSatisfy { ($0.token == nil) != isClient })
  }

  @Test("Answers of another service are answers, and no notifications")
  func otherService() throws {
    let bytes = HTTP2Line.pushes(2, isOfAPNs: false).words.filter { !$0.isClient }.flatMap(\.bytes)
    let seen = try withTemporaryFile(bytes) { try dissect($0, DissectionOptions()) }
    #expect(seen.summaries.map(\.responses) == [2])
    #expect(seen.requests.isEmpty && seen.connections.first?.fates.accepted ?? 0 == 0)
  }

  @Test("No record of damage has the bytes of a header field")
  func damage() throws {
    var words = HTTP2Line.pushes(3).words
    // The length of a frame's payload is wrong: what follows is no frame.
    words[6].bytes[2] &-= 9
    let seen = try Self.read(words)
    #expect(seen.malformed.allSatisfy { $0.bytes.isEmpty })
    #expect(seen.connections.first?.otherProtocol == .http2)
  }

  @Test(
    "A connection whose first segments are lost is recognised by what follows", arguments: [443, 2195] as [UInt16],
    [true, false])
  func lostBeginning(port: UInt16, losesServer: Bool) throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: port)
    for (place, word) in HTTP2Line.pushes(4).words.enumerated() {
      if place < 4, word.isClient || losesServer {
        capture.lose(line, word.bytes.count, fromServer: !word.isClient)
      } else if word.isClient {
        capture.client(line, word.bytes)
      } else {
        capture.server(line, word.bytes)
      }
    }
    capture.finish(line)
    let seen = try capture.dissected()
    let connection = try #require(seen.connections.first)
    #expect(connection.otherProtocol == .http2 && connection.service == .gateway)
    #expect(seen.requests.count == 4 && seen.requests.allSatisfy { $0.token == HTTP2Line.token })
    #expect(seen.notifications.isEmpty && seen.malformed.isEmpty)
    #expect(seen.gaps.first { $0.direction == .client }?.place.offset == 0)
    #expect(connection.fates.accepted == 4 || losesServer)
  }

  @Test("A binary connection whose first segment is lost is read as before")
  func lostBinaryBeginning() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.lose(line, 100)
    for number in 1...5 { capture.client(line, push(UInt32(number), device: 1)) }
    capture.server(line, refusal(8, 5))
    capture.finish(line)
    let seen = try capture.dissected()
    #expect(seen.notifications.map(\.identifier) == [1, 2, 3, 4, 5])
    #expect(seen.gaps.map(\.place.offset) == [0] && seen.gaps.map(\.place.length) == [100])
    #expect(seen.connections.first?.fates.rejected == 1)
  }

  @Test("What a connection gives up shows in a record")
  func givenUp() throws {
    var capture = CaptureBuilder()
    var lines: [Int] = []
    for number in 0..<40 {
      let line = capture.connect(from: UInt16(40_001 + number), to: 443)
      lines.append(line)
      for word in HTTP2Line.pushes(0).words {
        word.isClient ? capture.client(line, word.bytes) : capture.server(line, word.bytes)
      }
      // Content of 8,000 bytes that does not end.
      let begun = HTTP2Line.begun(content: 8_000)
      for start in stride(from: 0, to: begun.count, by: 1_000) {
        capture.client(line, Array(begun[start..<min(start + 1_000, begun.count)]))
      }
    }
    var options = DissectionOptions()
    (options.maximumMemory, options.capture.blockLength) = (300_000, 4_000)
    let seen = try capture.dissected(options)
    let limited = Set(seen.connections.filter { $0.limits == [.memory] }.map(\.connection))
    #expect(limited.count > 10)
    #expect(Set(seen.gaps.filter { $0.reason == .givenUp }.map(\.place.connection)) == limited)
  }
}
