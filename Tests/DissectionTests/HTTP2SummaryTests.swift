import Bytes
import HTTP2
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// The counts of a connection over HTTP/2 that no other record has.
@Suite("Summaries of HTTP/2 connections")
struct HTTP2SummaryTests {
  private enum Step {
    case ping(UInt64)
    case answer(UInt64)
    /// A PING of the gateway.
    case serverPing(UInt64)
    case priority(isOfClient: Bool)
    case wait(Int)
    case lose(fromServer: Bool)
  }

  private static func frame(_ type: FrameType, flags: FrameFlags = [], stream: UInt32 = 0, data: [UInt8]) -> [UInt8] {
    var writer = ByteWriter(capacity: 32)
    writer.writeFrame(type, flags: flags, stream: stream, data.rawBytes)
    return Array(copying: writer.bytes)
  }

  private static func bytes(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }

  /// The summary of two notifications, the steps, and one more.
  private static func summary(_ steps: [Step]) throws -> HTTP2Summary {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 443)
    let words = HTTP2Line.pushes(3).words
    func send(_ words: ArraySlice<(isClient: Bool, bytes: [UInt8])>) {
      for (isClient, bytes) in words {
        if isClient { capture.client(line, bytes) } else { capture.server(line, bytes) }
      }
    }
    send(words.prefix(8))
    for step in steps {
      switch step {
      case .ping(let data): capture.client(line, frame(.ping, data: bytes(data)))
      case .answer(let data): capture.server(line, frame(.ping, flags: .acknowledgement, data: bytes(data)))
      case .serverPing(let data): capture.server(line, frame(.ping, data: bytes(data)))
      case .priority(true): capture.client(line, frame(.priority, stream: 9, data: [0, 0, 0, 0, 7]))
      case .priority(false): capture.server(line, frame(.priority, stream: 9, data: [0, 0, 0, 0, 7]))
      case .wait(let milliseconds): capture.milliseconds += milliseconds
      case .lose(let fromServer): capture.lose(line, 30, fromServer: fromServer)
      }
    }
    send(words.dropFirst(8))
    capture.finish(line)
    let seen = try capture.dissected()
    return try #require(seen.connections.first?.http2)
  }

  @Test("Each PING has the time to the answer with its data")
  func pings() throws {
    let summary = try Self.summary([
      .ping(1), .ping(2), .wait(50), .answer(2), .serverPing(1), .wait(100), .answer(1), .answer(3), .ping(4),
    ])
    let pings = summary.pings
    #expect(pings.sent == 3 && pings.answered == 2)
    let (least, greatest) = (try #require(pings.leastNanoseconds), try #require(pings.greatestNanoseconds))
    // A packet is a few milliseconds after the one before.
    #expect((50_000_000...60_000_000).contains(least) && (150_000_000...165_000_000).contains(greatest))
    #expect(pings.lastAnswer.isKnown)
  }

  @Test("The same data twice are answered in their order")
  func sameData() throws {
    let pings = try Self.summary([.ping(7), .wait(40), .ping(7), .wait(40), .answer(7), .answer(7)]).pings
    #expect(pings.answered == 2)
    #expect((80_000_000...90_000_000).contains(try #require(pings.greatestNanoseconds)))
    #expect((40_000_000...50_000_000).contains(try #require(pings.leastNanoseconds)))
  }

  @Test("After a loss no answer is known to be of the PING before it", arguments: [true, false])
  func losses(fromServer: Bool) throws {
    let pings = try Self.summary([
      .ping(7), .wait(20), .answer(7), .lose(fromServer: fromServer), .ping(7), .wait(300), .answer(7),
    ]).pings
    #expect(pings.sent == 2 && pings.answered == 1)
    #expect(try #require(pings.greatestNanoseconds) < 40_000_000)
    #expect(pings.lastAnswer.isKnown)
  }

  @Test("Without PING frames a connection has no counts of them")
  func none() throws {
    #expect(try Self.summary([]).pings == HTTP2Summary.Pings())
  }

  @Test("PRIORITY frames of the client are counted")
  func priority() throws {
    #expect(try Self.summary([.priority(isOfClient: true), .priority(isOfClient: false)]).priorityFrames == 1)
  }

  @Test("Provider tokens in full are counted with their coded bytes")
  func literalTokens() throws {
    let summary = try Self.summary([])
    var encoder = HPACKEncoder()
    func length(_ value: String) -> Int {
      var block = ByteWriter(capacity: 256)
      encoder.beginBlock(&block)
      encoder.write(Array("authorization".utf8).rawBytes, Array(value.utf8).rawBytes, .neverIndexed, to: &block)
      return block.bytes.byteCount
    }
    // The name is an index of the static table, as with an empty value, whose length is a byte.
    let coded = length("bearer e30.e30." + HTTP2Line.signature) - length("") + 1
    #expect((summary.literalTokens, summary.literalTokenBytes) == (3, 3 * coded))
  }
}
