import BinaryProtocol
import PacketCapture
import TestSupport
import Testing

@testable import Dissection

/// Who is who on a connection, and what it is for.
@Suite("Connections")
struct ConnectionTests {
  // MARK: connections

  @Test("A new SYN on used ports is a new connection") func portReuse() throws {
    var capture = CaptureBuilder()
    let first = capture.connect()
    capture.client(first, push(1, device: 1))
    capture.finish(first)
    let second = capture.connect()
    capture.client(second, push(1, device: 2))
    capture.server(second, refusal(8, 1))
    let seen = try capture.dissected()
    #expect(seen.connections.map(\.connection).sorted() == [1, 2])
    #expect(seen.notifications.map(\.connection) == [1, 2])
    #expect(seen.notifications.map(\.index) == [0, 0])
    #expect(seen.notifications.map(\.offset) == [0, 0])
    let ordered = seen.connections.sorted { $0.connection < $1.connection }
    #expect(fates(of: ordered[0]) == [0, 0, 0, 1])
    #expect(fates(of: ordered[1]) == [0, 1, 0, 0])
    #expect(ordered[0].client == ordered[1].client)
    #expect(ordered[1].end == .captureEnd)
  }

  @Test("Connections are numbered by their first packets, however they end") func numbers() throws {
    var capture = CaptureBuilder()
    let lines = (0..<4).map { capture.connect(from: 40_001 + UInt16($0)) }
    for line in lines.reversed() {
      capture.client(line, push(UInt32(line), device: 1))
      capture.finish(line)
    }
    let seen = try capture.dissected()
    for record in seen.notifications {
      #expect(record.identifier == UInt32(record.connection - 1))
    }
    #expect(seen.connections.map { Int($0.client!.port) - 40_000 } == seen.connections.map(\.connection))
  }

  // MARK: ports

  @Test("On a port that says nothing, the bytes tell", arguments: [true, false])
  func sniffed(handshake: Bool) throws {
    var capture = CaptureBuilder()
    let gateway = capture.connect(to: 12_195, handshake: handshake)
    capture.client(gateway, push(1, device: 1) + push(2, device: 2))
    capture.server(gateway, refusal(8, 1))
    let feedback = capture.connect(from: 40_002, to: 12_196, handshake: handshake)
    let token = [UInt8](repeating: 3, count: 32)
    let tuple = written { FeedbackTuple(timestamp: 1_450_000_000, token: token.rawBytes).encode(into: &$0) }
    capture.server(feedback, tuple + tuple)
    let web = capture.connect(from: 40_003, to: 80, handshake: handshake)
    capture.client(web, Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
    capture.server(web, Array("HTTP/1.1 204 No Content\r\n\r\n".utf8))
    for line in [gateway, feedback, web] { capture.finish(line) }
    let seen = try capture.dissected()
    let ordered = seen.connections.sorted { $0.connection < $1.connection }
    #expect(ordered.map(\.service) == [.gateway, .feedback, .other])
    #expect(ordered.map(\.otherProtocol) == [nil, nil, .http1])
    #expect(ordered.map { $0.server?.port } == [12_195, 12_196, 80])
    #expect(ordered.map(\.notifications) == [2, 0, 0])
    #expect(ordered.map(\.feedbackTuples) == [0, 2, 0])
    #expect(seen.malformed.isEmpty)
    #expect(fates(of: ordered[0]) == [0, 1, 1, 0])
  }

  @Test("Without a SYN, the known port tells who the client is") func withoutSYN() throws {
    // The client's port is the lower one, which would otherwise be taken for the server's.
    var capture = CaptureBuilder()
    let line = capture.connect(from: 1_024, to: 2195, handshake: false)
    capture.server(line, refusal(8, 7))
    capture.client(line, push(7, device: 1))
    let seen = try capture.dissected()
    #expect(seen.connections[0].client?.port == 1_024)
    #expect(seen.connections[0].server?.port == 2195)
    #expect(seen.notifications.count == 1)
    #expect(seen.responses.count == 1)
  }

  @Test("--port overrides what is known, and makes other ports known") func ports() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 443)
    // Nothing tells these bytes from others: an empty token, an empty payload.
    capture.client(
      line,
      written {
        BinaryFrame.encodeEnhanced(
          identifier: 5, expiration: 0, token: [UInt8]().rawBytes, payload: [UInt8]().rawBytes, into: &$0)
      })
    capture.finish(line)
    let unknown = try capture.dissected()
    #expect(unknown.connections[0].service == .unknown)
    #expect(unknown.notifications.isEmpty)
    var options = DissectionOptions()
    options.ports[443] = .gateway
    let known = try capture.dissected(options)
    #expect(known.connections[0].service == .gateway)
    #expect(known.notifications.map(\.identifier) == [5])
  }

  // MARK: TLS

  private let clientHello: [UInt8] = [22, 3, 1, 0, 5, 1, 0, 0, 1, 0]

  @Test("TLS is recognised by its first bytes, even one by one", arguments: [2195, 2196, 443] as [UInt16], [1, 100])
  func tls(port: UInt16, piece: Int) throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: port)
    for start in stride(from: 0, to: clientHello.count, by: piece) {
      capture.client(line, Array(clientHello[start..<min(clientHello.count, start + piece)]))
    }
    capture.server(line, [22, 3, 3, 0, 2, 2, 0])
    capture.finish(line)
    let seen = try capture.dissected()
    let record = seen.connections[0]
    // Nothing was sealed, so nothing stayed closed.
    #expect(record.tls?.isDecrypted == true)
    #expect(record.tls?.problem == "the handshake was not finished")
    #expect(record.clientBytes == 0)
    #expect(record.serverBytes == 0)
    #expect(record.service == (port == 2195 ? .gateway : port == 2196 ? .feedback : .other))
    // Where TLS is what there should be, it is no other protocol.
    #expect(record.otherProtocol == (port == 443 ? .tls : nil))
    #expect(seen.malformed.isEmpty && seen.gaps.isEmpty)
    #expect(seen.summaries[0].undecryptedConnections == 0)
  }

  @Test("TLS whose beginning was not captured is recognised at a record, and its bytes are no damage")
  func tlsMidStream() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(handshake: false)
    var random = SeededGenerator(seed: 1)
    // The rest of a record, then whole ones.
    for _ in 0..<5 { capture.client(line, [23, 3, 3, 0, 200] + random.bytes(200)) }
    capture.finish(line)
    let seen = try capture.dissected()
    #expect(seen.connections[0].tls?.isDecrypted == false)
    #expect(seen.notifications.isEmpty)
    #expect(seen.malformed.isEmpty)
  }

  @Test("A notification that begins like TLS is none: 2 is a command, 20 to 23 are not") func notTLS() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, [22, 9, 9] + push(1, device: 1))
    capture.finish(line)
    let seen = try capture.dissected()
    #expect(seen.connections[0].tls == nil)
    #expect(seen.malformed.map(\.place.length) == [3])
    #expect(seen.notifications.map(\.offset) == [3])
  }
}
