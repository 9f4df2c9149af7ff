import Bytes
import PacketCapture
import TestSupport
import Testing

/// Recordings of which nothing, or not all, can be read: the findings say so and why.
@Suite("What was not read")
struct UnreadTests {
  private let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
  private let response = Array("HTTP/1.0 200 OK\r\n\r\n<html>".utf8)

  private let httpOnGatewayPort =
    "other_protocol: 1 connection on port 2195 is HTTP; apnscope does not decode it, Wireshark does"

  private func findings(_ capture: CaptureBuilder) throws -> [String] {
    try capture.inspected().findings.map { "\($0.kind.rawValue): \($0.text)" }
  }

  /// `inspect` and `report` of README's trace without its keys: "nothing was lost".
  @Test("An encrypted connection without keys is a finding, and that nothing was read")
  func encrypted() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    var random = SeededGenerator(seed: 1)
    capture.client(line, [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
    for _ in 0..<5 { capture.client(line, [23, 3, 3, 0, 200] + random.bytes(200)) }
    capture.finish(line)
    #expect(
      try findings(capture) == [
        "nothing_read: no notifications or feedback found in 1 connection",
        "undecrypted_connection: 1 of 1 connections is encrypted; give --keys with the secrets",
      ])
    // Something else is read beside it.
    let open = capture.connect(from: 40_002)
    capture.client(open, push(1, device: 1))
    #expect(
      try findings(capture).prefix(1) == [
        "undecrypted_connection: 1 of 2 connections is encrypted; give --keys with the secrets"
      ])
  }

  /// `inspect` of five connections to a web server: "findings none".
  @Test("Connections that speak HTTP are said to, with their port", arguments: [true, false])
  func http(tellsByRequest: Bool) throws {
    var capture = CaptureBuilder()
    for port in 0..<5 as Range<UInt16> {
      let line = capture.connect(from: 40_001 + port, to: 8080)
      if tellsByRequest { capture.client(line, request) } else { capture.server(line, response) }
      capture.finish(line)
    }
    #expect(
      try findings(capture) == [
        "nothing_read: no notifications or feedback found in 5 connections",
        "other_protocol: 5 connections on port 8080 are HTTP; apnscope does not decode it, Wireshark does",
      ])
    let seen = try capture.dissected()
    #expect(seen.connections.allSatisfy { $0.service == .other && $0.otherProtocol == .http1 })
    #expect(seen.malformed.isEmpty && seen.gaps.isEmpty)
    #expect(seen.summaries[0].hasRead == false)
  }

  @Test("HTTP on a gateway's port is told, whatever else was read; on other ports it is none of our business then")
  func stranger() throws {
    var capture = CaptureBuilder()
    let good = capture.connect()
    capture.client(good, push(1, device: 1))
    let web = capture.connect(from: 40_002, to: 8080)
    capture.client(web, request)
    #expect(try findings(capture) == [])
    let wrong = capture.connect(from: 40_003)
    capture.client(wrong, request)
    #expect(try findings(capture).contains(httpOnGatewayPort))
    let seen = try capture.dissected().connections.sorted { $0.connection < $1.connection }
    #expect(seen.map(\.service) == [.gateway, .other, .other])
    #expect(seen.map(\.otherProtocol) == [nil, .http1, .http1])
  }

  @Test("TLS on a port of neither service is another protocol, whether or not anything in it is encrypted")
  func tlsElsewhere() throws {
    var capture = CaptureBuilder()
    var random = SeededGenerator(seed: 2)
    let web = capture.connect(to: 443)
    capture.client(web, [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
    for _ in 0..<3 { capture.client(web, [23, 3, 3, 0, 200] + random.bytes(200)) }
    capture.finish(web)
    let refused = capture.connect(from: 40_002, to: 443)
    capture.client(refused, [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
    capture.finish(refused)
    let seen = try capture.dissected().connections
    #expect(seen.map(\.service) == [.other, .other] && seen.map(\.otherProtocol) == [.tls, .tls])
    #expect(
      try findings(capture) == [
        "nothing_read: no notifications or feedback found in 2 connections",
        "undecrypted_connection: 1 of 2 connections is encrypted; give --keys with the secrets",
        "other_protocol: 1 connection on port 443 is TLS",
      ])
  }

  @Test("What is not known at all comes with the option that would read it; silent connections are told")
  func unknown() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 9_000)
    capture.client(line, Array("hello there, nothing that is known".utf8))
    capture.finish(line)
    let silent = capture.connect(from: 40_002, to: 9_000)
    capture.finish(silent)
    let texts = try findings(capture)
    #expect(
      texts.contains(
        "other_protocol: 1 connection on port 9000 uses no protocol that is known here; --port 9000=gateway reads it as a gateway's"
      ))
    #expect(texts.contains("empty_connection: 1 of 2 connections carried no data"))
  }

  @Test("Without a packet, or without a connection, the findings are not empty either")
  func empty() throws {
    #expect(
      try findings(CaptureBuilder()) == ["nothing_read: no notifications or feedback found: there are no packets"])
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.finish(line)
    #expect(try findings(capture).first?.hasPrefix("nothing_read: ") == true)
    // An empty list that was read is an answer.
    var feedback = CaptureBuilder()
    let list = feedback.connect(to: 2196)
    feedback.finish(list, byServer: true)
    #expect(try findings(feedback) == [])
  }

  /// Each was once a list that was read: no finding, "loss: none", and 0 with --strict.
  @Test("A feedback port at which nobody answered, or something else, is no list that was read", arguments: [0, 1, 2])
  func feedbackWithoutAnswer(kind: Int) throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 2196)
    switch kind {
    case 0: break
    case 1: capture.reset(line, byServer: true)
    default:
      capture.server(line, Array("220 mail.example.com ESMTP\r\n".utf8))
      capture.finish(line)
    }
    #expect(try findings(capture).first?.hasPrefix("nothing_read: ") == true)
    #expect(try capture.dissected().summaries[0].hasRead == false)
  }

  /// The first four bytes of a tuple are a time: "PUT " is a second of 2012-09-16.
  @Test("A feedback list whose first time spells a method of HTTP is a list")
  func feedbackOfASecond() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 2196)
    capture.server(line, Array("PUT ".utf8) + [0, 32] + [UInt8](repeating: 7, count: 32))
    capture.finish(line, byServer: true)
    #expect(try findings(capture) == [])
  }

  @Test("A provider that speaks this protocol to an HTTP server is told so by the answer")
  func httpAnswer() throws {
    var capture = CaptureBuilder()
    let line = capture.connect()
    capture.client(line, push(1, device: 1))
    capture.server(line, response)
    capture.finish(line, byServer: true)
    #expect(try findings(capture).contains(httpOnGatewayPort))
  }

  @Test("Of many ports a few are listed, and all are counted")
  func manyPorts() throws {
    var capture = CaptureBuilder()
    for port in 0..<2_000 as Range<UInt16> {
      let line = capture.connect(to: 10_000 + port)
      capture.client(line, request)
    }
    let rows = try capture.inspected().findings.filter { $0.kind == .otherProtocol }
    #expect(rows.count == 6)
    #expect(rows.map(\.count).reduce(0, +) == 2_000)
  }
}
