import Foundation
import TestSupport
import Testing

/// HTTP/2 in TLS that was made here: trust by a certificate, what the bytes say against what was negotiated, secrets.
@Suite("HTTP/2 in TLS", .waiting)
struct HTTP2TLSTests {
  private static let jwt =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ.eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0IjoxNzk1NTc4NTUxfQ."
    + String(repeating: "Sig_nature-", count: 8)

  /// A provider that sends one notification, and its answer.
  private static func script(authorization: String?) -> [TLSConversation.Action] {
    let fields =
      [("apns-topic", "com.example.tide")] + (authorization.map { [("authorization", $0)] } ?? [])
    return [
      .write(.client, HTTP2Bytes.preface), .write(.server, HTTP2Bytes.settings),
      .write(.client, HTTP2Bytes.acknowledgement + HTTP2Bytes.push(1, fields)),
      .write(.server, HTTP2Bytes.acknowledgement + HTTP2Bytes.answer(1)), .close(.client), .close(.server),
    ]
  }

  private static func record(
    _ script: [TLSConversation.Action], _ client: TLSConversation.ClientAuthentication = .none,
    _ alpn: [String] = ["h2"],
    in command: Command, port: UInt16 = 443
  ) throws {
    var conversation = TLSConversation(version: .tls12, suite: "ECDHE-RSA-AES128-GCM-SHA256", script: script)
    (conversation.clientAuthentication, conversation.applicationProtocols) = (client, alpn)
    let recording = try conversation.record()
    try command.write(RecordingCapture.file(of: SegmentedRecording(recording), serverPort: port), "capture.pcap")
    try command.write(Array((recording.keyLog.joined(separator: "\n") + "\n").utf8), "keys.log")
  }

  private func records(_ type: String, in command: Command) throws -> [[String: Any]] {
    let outcome = try command.run("decode", "--keys", "keys.log", "--type", type, "capture.pcap")
    return try outcome.lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }.filter { $0["type"] as? String == type }
  }

  @Test(
    "Trust is by the certificate that TLS shows, also with an authorization that is no token, else that is uncertain",
    arguments: [
      (TLSConversation.ClientAuthentication.given, nil, "certificate"), (.given, "Basic eDp5", "certificate"),
      (.given, "bearer " + jwt, "token"), (.none, nil, "none"), (.none, "Basic eDp5", nil),
      (.none, "bearer " + jwt, "token"),
    ] as [(TLSConversation.ClientAuthentication, String?, String?)])
  func trust(client: TLSConversation.ClientAuthentication, authorization: String?, trust: String?) throws {
    try Command.inFolder { command in
      try Self.record(Self.script(authorization: authorization), client, in: command)
      let notification = try #require(try records("notification", in: command).first)
      #expect(notification["trust"] as? String == trust)
      let uncertain = notification["uncertain"] as? [String] ?? []
      #expect(uncertain.contains("trust") == (trust == nil), "\(uncertain)")
    }
  }

  @Test("Bytes of the binary protocol are that, whatever ALPN negotiated", arguments: [443, 2195] as [UInt16])
  func bytesFirst(port: UInt16) throws {
    try Command.inFolder { command in
      let payload = Array(#"{"aps":{"alert":"x"}}"#.utf8)
      let pushes = (1...3).map { number -> [UInt8] in
        let head: [UInt8] = [1, 0, 0, 0, UInt8(number), 0x7f, 0, 0, 0, 0, 32]
        return head + Array(repeating: UInt8(number), count: 32) + [0, UInt8(payload.count)] + payload
      }
      try Self.record(
        pushes.map { .write(.client, $0) } + [.close(.client), .close(.server)], in: command, port: port)
      let connection = try #require(try records("connection", in: command).first)
      #expect(connection["service"] as? String == "gateway" && connection["protocol"] == nil)
      #expect(connection["notifications"] as? Int == 3)
      // It is negotiated here: the record of a connection over HTTP/2 says it.
      try Self.record(Self.script(authorization: nil), in: command, port: port)
      let other = try #require(try records("connection", in: command).first)
      #expect((other["tls"] as? [String: Any])?["alpn"] as? String == "h2" && other["protocol"] as? String == "http2")
    }
  }

  @Test(
    "A copy of a capture with TLS secrets has none, if they open provider tokens",
    .enabled(if: ExternalTool.isInstalled("editcap")))
  func secrets() throws {
    try Command.inFolder { command in
      try Self.record(Self.script(authorization: "bearer " + Self.jwt), in: command)
      let injected = try command.shell("editcap --inject-secrets tls,keys.log capture.pcap secrets.pcapng")
      #expect(injected.status == 0, "\(injected.errors)")
      let copied = try command.run("annotate", "secrets.pcapng", "--output", "copy.pcapng")
      #expect(copied.status == 0 && copied.errors.contains("TLS secrets are left out"), "\(copied.errors)")
      #expect(try command.run("decode", "secrets.pcapng").output.contains(HTTP2Bytes.token))
      #expect(!(try command.run("decode", "copy.pcapng").output.contains(HTTP2Bytes.token)))
      // With the key log the copy is read as before.
      #expect(try command.run("decode", "--keys", "keys.log", "copy.pcapng").output.contains(HTTP2Bytes.token))
      let bytes = try Data(contentsOf: command.folder.appending(path: "copy.pcapng"))
      #expect(bytes.range(of: Data("CLIENT_".utf8)) == nil)
      // Of the binary protocol they stay.
      try command.trace("tls-known-bad.pcapng")
      let binary = try command.run("annotate", "tls-known-bad.pcapng", "--output", "binary.pcapng")
      #expect(binary.status == 0 && !binary.errors.contains("secrets"))
      #expect(try command.run("decode", "binary.pcapng").output.contains(#""type":"notification""#))
    }
  }
}
