import Foundation
import NIOCore
import TLSFoundation
import Testing

@testable import TLSTransport

@Suite("handshakes that fail")
struct RefusalTests {
  static let versions = [TLSVersion.tls10, .tls11, .tls12, .tls13]

  /// Who ends as what: both have an error, both channels are closed, nobody got data.
  private func expectRefusal(
    _ pair: TLSPair, server: [String], client: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let (there, here) = (pair.server.observer, pair.client.observer)
    for text in server { #expect(there.errorText.contains(text), "\(there.errorText)", sourceLocation: sourceLocation) }
    for text in client { #expect(here.errorText.contains(text), "\(here.errorText)", sourceLocation: sourceLocation) }
    for side in [pair.server, pair.client] {
      #expect(side.observer.errors.count == 1, "\(side.observer.events)", sourceLocation: sourceLocation)
      #expect(side.wire.closes == [.all], sourceLocation: sourceLocation)
      #expect(side.observer.events.last == .inactive, sourceLocation: sourceLocation)
      #expect(side.observer.received == [], sourceLocation: sourceLocation)
      #expect(!side.channel.isActive, sourceLocation: sourceLocation)
    }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var identity: @Sendable () throws -> Identity?
    var reasons: [String]
    /// The client's side, up to TLS 1.2 and in 1.3.
    var alerts: (old: String, new: String)
    var testDescription: String { name }
  }

  static let cases = [
    Case(
      name: "no certificate", identity: { nil }, reasons: ["peer did not return a certificate"],
      alerts: ("alert handshake failure", "alert certificate required")),
    Case(
      name: "another authority", identity: { try TestCredentials.strangers.provider() },
      reasons: ["certificate verify failed", "unable to get local issuer certificate"],
      alerts: ("alert unknown ca", "alert unknown ca")),
    Case(
      name: "expired", identity: { try TestCredentials.p256.provider(.expired) },
      reasons: ["certificate verify failed", "certificate has expired"],
      alerts: ("alert certificate expired", "alert certificate expired")),
    Case(
      name: "revoked", identity: { try TestCredentials.p256.provider(.revoked) },
      reasons: ["certificate verify failed", "certificate revoked"],
      alerts: ("alert certificate revoked", "alert certificate revoked")),
  ]

  @Test("A client's certificate is refused, and both say why", arguments: cases, versions)
  func clientCertificate(_ case: Case, version: TLSVersion) throws {
    let pair = try TLSPair(
      TestCredentials.p256.client {
        $0.identity = try? `case`.identity()
        $0.versions = version...version
      }, TestCredentials.p256.server())
    try pair.connect()
    try expectRefusal(
      pair, server: ["TLS handshake failed: "] + `case`.reasons,
      client: [version == .tls13 ? `case`.alerts.new : `case`.alerts.old])
    #expect(pair.server.observer.errors.first?.kind == .handshake)
    #expect(pair.server.observer.info == nil)
    // A client of TLS 1.3 is done before the server has looked at its certificate.
    #expect((pair.client.observer.info != nil) == (version == .tls13))
    #expect(pair.client.observer.errors.first?.kind == (version == .tls13 ? .record : .handshake))
  }

  @Test("Without a revocation list a revoked certificate is as good as any") func noList() throws {
    let pair = try TLSPair(
      TestCredentials.p256.client { $0.identity = try? TestCredentials.p256.provider(.revoked) },
      TestCredentials.p256.server { $0.revocationListFile = nil })
    try pair.connect()
    #expect(pair.server.observer.info?.peer?.topic == TestCredentials.topic)
  }

  @Test("An optional certificate that is bad is refused") func optional() throws {
    let pair = try TLSPair(
      TestCredentials.p256.client { $0.identity = try? TestCredentials.p256.provider(.expired) },
      TestCredentials.p256.server { $0.peerCertificate = .optional })
    try pair.connect()
    try expectRefusal(pair, server: ["certificate has expired"], client: ["alert certificate expired"])
  }

  @Test("A server of another authority, or with another name", arguments: versions)
  func serverCertificate(version: TLSVersion) throws {
    let credentials = TestCredentials.p256
    func set(_ configuration: inout TLSConfiguration) { configuration.versions = version...version }
    let stranger = try TLSPair(
      credentials.client(set),
      credentials.server { $0.identity = try? TestCredentials.strangers.gateway() })
    try stranger.connect()
    try expectRefusal(
      stranger, server: ["alert unknown ca"],
      client: ["TLS handshake failed: certificate verify failed [unable to get local issuer certificate]"])

    for (name, text) in [
      ("gateway.push.apple.com", "hostname mismatch"), ("127.0.0.2", "IP address mismatch"),
    ] {
      let pair = try TLSPair(credentials.client(set), credentials.server(), serverName: name)
      try pair.connect()
      try expectRefusal(pair, server: ["alert"], client: ["certificate verify failed", text])

      let trusting = try TLSPair(credentials.client(set), credentials.server(), serverName: name, verifiesName: false)
      try trusting.connect()
      #expect(trusting.client.observer.info != nil)
    }

    let careless = try TLSPair(
      credentials.client {
        set(&$0)
        $0.peerCertificate = .notAsked
        $0.authorityFile = nil
      }, credentials.server { $0.identity = try? TestCredentials.strangers.gateway() }, verifiesName: false)
    try careless.connect()
    #expect(careless.client.observer.info != nil)
  }

  @Test("No version, suite or signature in common") func nothingInCommon() throws {
    let credentials = TestCredentials.p256
    let versions = try TLSPair(
      credentials.client { $0.versions = .tls10 ... .tls11 }, credentials.server { $0.versions = .tls12 ... .tls13 })
    try versions.connect()
    try expectRefusal(versions, server: ["unsupported protocol"], client: ["alert protocol version"])

    let suites = try TLSPair(
      credentials.client { Agreement(version: .tls12, suite: "ECDHE-RSA-AES128-SHA", kind: .p256).apply(to: &$0) },
      credentials.server())
    try suites.connect()
    try expectRefusal(suites, server: ["no shared cipher"], client: ["alert handshake failure"])

    let newSuites = try TLSPair(
      credentials.client {
        Agreement(version: .tls13, suite: "TLS_AES_128_GCM_SHA256", kind: .p256).apply(to: &$0)
      }, credentials.server { $0.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256" })
    try newSuites.connect()
    try expectRefusal(
      newSuites, server: ["no shared cipher"], client: ["alert"])
  }

  @Test(
    "A peer that speaks something else",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "http request"),
      ("CONNECT a:1 HTTP/1.1\r\n\r\n", "https proxy request"),
      (String(repeating: "\u{1}garbage", count: 100), "wrong version number"),
    ])
  func plainText(_ text: String, _ reason: String) throws {
    let pair = try TLSPair(TestCredentials.p256.client(), TestCredentials.p256.server())
    try pair.server.activate()
    pair.server.deliver(Array(text.utf8))
    #expect(pair.server.observer.errorText == "TLS handshake failed: \(reason)")
    #expect(pair.server.wire.closes == [.all])
    let client = pair.client
    try client.activate()
    _ = client.wire.takeSent()
    client.deliver(Array("220 mail.example.com ESMTP\r\n".utf8))
    #expect(client.observer.errorText == "TLS handshake failed: wrong version number")
    #expect(client.observer.errors.first?.kind == .handshake)
  }

  @Test("A frame of the protocol without TLS, shorter than a record's head and longer") func plainFrame() throws {
    let pair = try TLSPair(TestCredentials.p256.client(), TestCredentials.p256.server())
    try pair.server.activate()
    // The second command, 2 bytes of data.
    pair.server.deliver([2, 0, 0, 0])
    #expect(pair.server.observer.errors.isEmpty)
    pair.server.deliver([2, 0, 0])
    #expect(pair.server.observer.errors.count == 1)
    #expect(pair.server.wire.closes == [.all])
  }

  @Test("1 MB of garbage, in pieces: one error, nothing kept") func garbage() throws {
    let pair = try TLSPair(TestCredentials.p256.client(), TestCredentials.p256.server())
    try pair.server.activate()
    let piece = pattern(4_096)
    for _ in 0..<256 { pair.server.deliver(piece) }
    #expect(pair.server.observer.errors.count == 1)
    #expect(pair.server.observer.received == [])
  }

  @Test("A damaged record ends the connection with bad_record_mac", arguments: Agreement.some)
  func damaged(_ agreement: Agreement) throws {
    let pair = try TLSPair(TestCredentials.p256.client(agreement.apply), TestCredentials.p256.server())
    try pair.connect()
    pair.client.send(pattern(100))
    var bytes = pair.client.wire.takeSent().flatMap { Array($0.readableBytesView) }
    bytes[bytes.count - 1] ^= 1
    pair.server.deliver(bytes)
    #expect(pair.server.observer.errors == [TLSError(.record, "")])
    #expect(pair.server.observer.errorText.hasSuffix("decryption failed or bad record mac"))
    #expect(pair.server.wire.closes == [.all])
    pair.pump()
    #expect(pair.client.observer.errorText.contains("alert bad record mac"))
    #expect(pair.server.observer.received == [])
  }

  @Test("The alert is written before the close, and the error comes before it") func alertFirst() throws {
    let pair = try TLSPair(
      TestCredentials.p256.client { $0.versions = .tls12 ... .tls12 },
      TestCredentials.p256.server { $0.versions = .tls13 ... .tls13 })
    var sent: [Int] = []
    pair.server.observer.onError = { context in
      sent.append(pair.server.wire.sent.count)
      context.close(promise: nil)
    }
    try pair.connect()
    #expect(sent == [1])
    #expect(pair.client.observer.errorText.contains("alert protocol version"))
    #expect(pair.server.observer.events.last == .inactive)
  }

  @Test("Writes that waited for a handshake fail with its error") func waitingWrites() throws {
    let pair = try TLSPair(
      TestCredentials.p256.client { $0.versions = .tls12 ... .tls12 },
      TestCredentials.p256.server {
        $0.versions = .tls13 ... .tls13
      })
    try pair.server.activate()
    try pair.client.activate()
    let outcomes = [pair.client.write([1]), pair.client.send([2]), pair.client.write([3])].map(Outcome.init)
    let close = Outcome(pair.client.channel.close(mode: .output))
    pair.pump()
    for outcome in outcomes.prefix(2) {
      #expect((outcome.error as? TLSError)?.message.contains("alert protocol version") == true)
    }
    // It was never flushed.
    #expect(outcomes[2].error as? ChannelError == .outputClosed)
    #expect(close.error is TLSError)
  }

  // MARK: settings

  @Test("What OpenSSL does not take is said in its words") func settings() throws {
    let credentials = TestCredentials.p256
    let list = expectError(.configuration) { try credentials.client { $0.cipherList = "NOTHING-AT-ALL" } }
    #expect(list == "cipher list 'NOTHING-AT-ALL': no cipher match")
    let suites = expectError(.configuration) { try credentials.client { $0.cipherSuites = "TLS_NOTHING" } }
    #expect(suites.hasPrefix("TLS 1.3 cipher suites 'TLS_NOTHING': "))
    let nowhere = TestFolder.url.appending(path: "nowhere.pem").path
    let missing = expectError(.credentials) { try credentials.server { $0.authorityFile = nowhere } }
    #expect(missing.hasPrefix("\(nowhere): no trusted certificates: "))
    #expect(missing.contains("No such file or directory"))
    let list2 = expectError(.credentials) { try credentials.server { $0.revocationListFile = nowhere } }
    #expect(list2.contains("No such file or directory"))
    let empty = TestFolder.url.appending(path: "empty.pem").path
    try Data().write(to: URL(filePath: empty))
    expectError(.credentials) { try credentials.server { $0.authorityFile = empty } }
    expectError(.credentials) { try credentials.server { $0.revocationListFile = empty } }
    expectError(.configuration) { try credentials.server { $0.identity = nil } }
    let trust = expectError(.configuration) { try credentials.server { $0.authorityFile = nil } }
    #expect(trust == "a server that requires certificates needs a file with the authorities it trusts")
  }
}
