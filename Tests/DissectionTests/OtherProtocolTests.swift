import Bytes
import PacketCapture
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// Connections that speak another protocol: they are named, and nothing is read out of them.
@Suite("Other protocols")
struct OtherProtocolTests {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// `length u24 | type | flags | stream u32 | …`
  private static func frame(_ type: UInt8, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, 0, 0, 0, 0, stream] + payload
  }

  private static let settings = frame(4, [0, 3, 0, 0, 3, 232])
  /// Its last stream and its error spell responses of this protocol: 8, status, identifier.
  private static let goAway = frame(7, [8, 8, 0, 0, 0, 1, 8, 7, 0, 0, 0, 2])

  @Test("HTTP/2 is named by the client's preface or the server's settings, on any port", arguments: [2195, 443, 9_000])
  func http2(port: UInt16) throws {
    for (tellsByClient, asksForGateway) in [(true, false), (true, true), (false, false), (false, true)] {
      var capture = CaptureBuilder()
      let line = capture.connect(to: port)
      if tellsByClient { capture.client(line, Self.preface + Self.settings) }
      capture.server(line, Self.settings)
      for stream in 1..<9 as Range<UInt8> {
        capture.client(line, Self.frame(1, stream: stream, [130, 132, 135]))
        capture.server(line, Self.goAway)
      }
      capture.finish(line)
      var options = DissectionOptions()
      if asksForGateway { options.ports[port] = .gateway }
      let seen = try capture.dissected(options)
      #expect(seen.connections.map(\.service) == [.other] && seen.connections.map(\.otherProtocol) == [.http2])
      #expect(seen.responses.isEmpty && seen.notifications.isEmpty && seen.gaps.isEmpty)
    }
  }

  @Test("A provider that writes this protocol to a server of HTTP/2: its notifications are read, no answer is")
  func answerOfHTTP2() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1) + push(2, device: 2))
    capture.server(line, Self.settings + Self.goAway)
    capture.server(line, Self.goAway)
    capture.finish(line, byServer: true)
    let seen = try capture.dissected()
    #expect(seen.notifications.count == 2 && seen.responses.isEmpty && seen.malformed.isEmpty)
    #expect(seen.connections.map(\.otherProtocol) == [.http2] && seen.connections[0].fates.unknown == 2)
  }

  @Test("Bytes that a capture begins in the middle of name nothing on a gateway's port")
  func middle() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(handshake: false)
    capture.client(line, Array("GET /".utf8) + push(1, device: 1) + push(2, device: 2))
    capture.client(line, push(3, device: 3))
    let seen = try capture.dissected()
    #expect(seen.connections.map(\.service) == [.gateway] && seen.notifications.count == 3)
  }

  // MARK: TLS

  /// A hello of TLS 1.2 with these protocols in its ALPN.
  private static func hello(_ protocols: [String], isClient: Bool) -> [UInt8] {
    func vector16(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes }
    let names = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    let extensions = protocols.isEmpty ? [] : [0, 16] + vector16(vector16(names))
    let suites: [UInt8] = isClient ? [0, 2, 0xc0, 0x2f, 1, 0] : [0xc0, 0x2f, 0]
    let body = [3, 3] + [UInt8](repeating: 5, count: 32) + [0] + suites + vector16(extensions)
    let message = [isClient ? 1 : 2, 0] + vector16(body)
    return [22, 3, 3] + vector16(message)
  }

  private func encrypted(_ offered: [String], _ chosen: [String], port: UInt16) throws -> ([ConnectionRecord], [String])
  {
    var capture = CaptureBuilder()
    let line = capture.connect(to: port)
    capture.client(line, Self.hello(offered, isClient: true))
    capture.server(line, Self.hello(chosen, isClient: false))
    for _ in 0..<3 {
      capture.client(line, [23, 3, 3, 0, 40] + [UInt8](repeating: 0x5a, count: 40))
      capture.server(line, [23, 3, 3, 0, 40] + [UInt8](repeating: 0xa5, count: 40))
    }
    capture.finish(line)
    let texts = try capture.inspected().findings.map { "\($0.kind.rawValue): \($0.text)" }
    return (try capture.dissected().connections, texts)
  }

  @Test(
    "What TLS agreed on names HTTP, and no key is asked for",
    arguments: [
      (["h2", "http/1.1"], ["h2"], OtherProtocol.http2), (["h2", "http/1.1"], ["http/1.1"], .http1),
      (["h2", "http/1.1"], [], .http2), (["http/1.1", "h2"], [], .http2), (["http/1.1"], [], .http1),
      (["http/1.1", "http/1.0"], [], .http1),
    ])
  func agreed(offered: [String], chosen: [String], kind: OtherProtocol) throws {
    for port in [443, 2195] as [UInt16] {
      let (connections, findings) = try encrypted(offered, chosen, port: port)
      #expect(connections.map(\.service) == [.other] && connections.map(\.otherProtocol) == [kind])
      #expect(findings.contains { $0.hasPrefix("other_protocol: 1 connection on port \(port) is \(kind.name);") })
      #expect(findings.contains { $0.contains("does not decode it") } == (kind == .http1), "\(findings)")
      #expect(!findings.contains { $0.hasPrefix("undecrypted_connection") })
    }
  }

  @Test("TLS that stays closed is a gateway's on its port, and only TLS where the port means nothing")
  func closed() throws {
    let (known, findings) = try encrypted([], [], port: 2195)
    #expect(known.map(\.service) == [.gateway] && known.map(\.otherProtocol) == [nil])
    #expect(findings.contains { $0.hasPrefix("undecrypted_connection: 1 of 1") })
    let (unknown, _) = try encrypted([], [], port: 8_443)
    #expect(unknown.map(\.service) == [.other] && unknown.map(\.otherProtocol) == [.tls])
    let (foreign, _) = try encrypted(["h2", "apns"], [], port: 8_443)
    #expect(foreign.map(\.otherProtocol) == [.tls])
  }
}
