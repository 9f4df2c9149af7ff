import Bytes
import Measurement
import TestSupport
import Testing

@testable import Dissection
@testable import Records

/// What proxies, balancers and other protocols say before the first record.
@Suite("Preambles")
struct PreambleTests {
  /// What client and server say before the first frame, in order.
  struct Opening: CustomTestStringConvertible {
    var kind: Preamble
    var words: [(isClient: Bool, bytes: [UInt8])]
    var port: UInt16 = 3128
    var testDescription: String { "\(kind.rawValue), \(words.count)" }

    static func text(_ kind: Preamble, port: UInt16 = 3128, _ words: (Bool, String)...) -> Opening {
      Opening(kind: kind, words: words.map { ($0.0, Array($0.1.utf8)) }, port: port)
    }
  }

  private static let connect =
    "CONNECT gateway.push.apple.com:2195 HTTP/1.1\r\nHost: gateway.push.apple.com:2195\r\n\r\n"
  private static let established = "HTTP/1.1 200 Connection established\r\nVia: squid\r\n\r\n"
  private static let request5: [UInt8] = [5, 1, 0, 3, 4] + Array("gate".utf8) + [8, 0x93]

  static let openings: [Opening] = [
    .text(.httpConnect, (true, connect), (false, established)),
    .text(.httpConnect, (true, "CONNECT a:2195 HTTP/1.0\n\n"), (false, "HTTP/1.0 200 OK\n\n")),
    .text(
      .httpConnect, (true, connect),
      (false, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nhello"), (true, connect),
      (false, established)),
    Opening(
      kind: .socks4,
      words: [(true, [4, 1, 8, 0x93, 10, 0, 0, 9] + Array("me\0".utf8)), (false, [0, 0x5a, 0, 0, 0, 0, 0, 0])]),
    Opening(
      kind: .socks4,
      words: [(true, [4, 1, 8, 0x93, 0, 0, 0, 1, 0] + Array("gate\0".utf8)), (false, [0, 0x5a, 0, 0, 0, 0, 0, 0])]),
    Opening(
      kind: .socks5,
      words: [(true, [5, 1, 0]), (false, [5, 0]), (true, request5), (false, [5, 0, 0, 1, 10, 0, 0, 1, 0, 80])]),
    Opening(
      kind: .socks5,
      words: [
        (true, [5, 2, 0, 2]), (false, [5, 2]), (true, [1, 2, 0x6d, 0x65, 1, 0x78]), (false, [1, 0]),
        (true, [5, 1, 0, 4] + [UInt8](repeating: 1, count: 16) + [8, 0x93]),
        (false, [5, 0, 0, 4] + [UInt8](repeating: 1, count: 16) + [8, 0x93]),
      ]),
    .text(.proxyV1, port: 9_000, (true, "PROXY TCP4 192.0.2.1 192.0.2.2 40001 2195\r\n")),
    .text(.proxyV1, port: 2195, (true, "PROXY UNKNOWN\r\n")),
    Opening(
      kind: .proxyV2,
      words: [
        (
          true,
          Array("\r\n\r\n\0\r\nQUIT\n".utf8) + [0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x41, 8, 0x93]
        )
      ], port: 9_000),
    .text(
      .startTLS, port: 2195, (false, "220 mail.example.com ESMTP\r\n"), (true, "EHLO a\r\n"),
      (false, "250 STARTTLS\r\n"),
      (true, "STARTTLS\r\n"), (false, "220 go ahead\r\n")),
    .text(.text, port: 2195, (false, "* ready\r\n")), .text(.text, port: 2195, (true, "hello\n")),
  ]

  private static let frames = push(1, device: 1) + push(2, device: 2) + push(3, device: 3)

  /// A capture in which every direction's bytes come in pieces of `size`.
  private static func capture(_ opening: Opening, size: Int, _ words: [(isClient: Bool, bytes: [UInt8])])
    -> CaptureBuilder
  {
    var capture = CaptureBuilder()
    let line = capture.connect(to: opening.port)
    for (isClient, bytes) in opening.words + words {
      for start in stride(from: 0, to: bytes.count, by: size) {
        let piece = Array(bytes[start..<min(start + size, bytes.count)])
        if isClient { capture.client(line, piece) } else { capture.server(line, piece) }
      }
    }
    capture.finish(line)
    return capture
  }

  @Test("Frames behind a preamble are read, and it is named", arguments: openings, [1_000_000, 7, 1])
  func frames(opening: Opening, size: Int) throws {
    let capture = Self.capture(opening, size: size, [(true, Self.frames), (false, refusal(8, 2))])
    let seen = try capture.dissected()
    let connection = try #require(seen.connections.first)
    #expect(connection.preamble == opening.kind)
    #expect(connection.service == .gateway && connection.otherProtocol == nil)
    #expect(seen.malformed.isEmpty && seen.gaps.isEmpty)
    #expect(connection.notifications == 3 && connection.errorResponses == 1)
    #expect([connection.fates.accepted, connection.fates.rejected, connection.fates.discarded] == [1, 1, 1])
    // The preamble counts as nothing.
    #expect(connection.clientBytes == Self.frames.count && connection.serverBytes == 6)
    let report = try capture.inspected()
    #expect(!report.findings.contains { $0.kind == .otherProtocol || $0.kind == .malformed })
    #expect(report.connections.first?.preamble == opening.kind.rawValue)
  }

  @Test("TLS behind a preamble is encrypted and nothing else", arguments: openings, [1_000_000, 7])
  func tls(opening: Opening, size: Int) throws {
    let hello: [UInt8] =
      [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0, 5, 1, 0]
    let capture = Self.capture(
      opening, size: size, [(true, hello + [23, 3, 3, 0, 40] + [UInt8](repeating: 9, count: 40))])
    let seen = try capture.dissected()
    let connection = try #require(seen.connections.first)
    #expect(connection.preamble == opening.kind)
    #expect(connection.tls?.isDecrypted == false && connection.otherProtocol != .http1)
    #expect(seen.malformed.isEmpty)
    #expect(try capture.inspected().findings.contains { $0.kind == .undecryptedConnection })
  }

  @Test("A proxy that refuses is HTTP, and other protocols stay what they are")
  func others() throws {
    let refused = Opening.text(.httpConnect, (true, Self.connect), (false, "HTTP/1.1 403 Forbidden\r\n\r\n"))
    let connection = try #require(try Self.capture(refused, size: 1_000, []).dissected().connections.first)
    #expect(connection.preamble == .httpConnect && connection.otherProtocol == .http1 && connection.service == .other)
    for text in ["GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n"] {
      let plain = Opening.text(.text, port: 2195, (true, text))
      let connection = try #require(try Self.capture(plain, size: 1_000, []).dissected().connections.first)
      #expect(connection.preamble == nil && connection.otherProtocol != nil)
    }
    // Text that nothing follows, or JSON, is damage as before.
    for text in ["hello\r\n", "{\"aps\":1}\n"] {
      var capture = CaptureBuilder()
      let line = capture.connect()
      capture.client(line, Array(text.utf8) + (text.hasPrefix("{") ? Self.frames : []))
      capture.finish(line)
      let seen = try capture.dissected()
      #expect(seen.connections.first?.preamble == nil && seen.malformed.count == 1)
    }
  }

  @Test("The port of devices is a finding, and no reason to give keys")
  func devices() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 5223)
    capture.client(line, [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
    for _ in 0..<3 { capture.client(line, [23, 3, 3, 0, 200] + [UInt8](repeating: 3, count: 200)) }
    capture.finish(line)
    let report = try capture.inspected()
    let finding = try #require(report.findings.first { $0.kind == .devicePort })
    #expect(finding.count == 1 && finding.text.contains("5223") && finding.text.contains("device"))
    #expect(!report.findings.contains { $0.kind == .undecryptedConnection })
  }
}
