import NIOCore
import TLSFoundation
import TestSupport
import Testing

@testable import TLSTransport

/// A version with a suite that goes with a kind of key.
struct Agreement: Sendable, CustomTestStringConvertible {
  var version: TLSVersion
  var suite: String
  var kind: KeyKind

  var testDescription: String { "\(version) \(suite) \(kind)" }

  static let all: [Agreement] =
    [TLSVersion.tls10, .tls11].flatMap { version in
      [
        Agreement(version: version, suite: "ECDHE-ECDSA-AES128-SHA", kind: .p256),
        Agreement(version: version, suite: "ECDHE-RSA-AES256-SHA", kind: .rsa2048),
        Agreement(version: version, suite: "AES128-SHA", kind: .rsa2048),
        Agreement(version: version, suite: "DHE-RSA-AES256-SHA", kind: .rsa2048),
      ]
    }
    + [
      ("ECDHE-ECDSA-AES128-GCM-SHA256", KeyKind.p256), ("ECDHE-ECDSA-AES256-GCM-SHA384", .p256),
      ("ECDHE-ECDSA-CHACHA20-POLY1305", .p256), ("ECDHE-ECDSA-AES128-SHA256", .p256), ("ECDHE-ECDSA-AES128-SHA", .p256),
      ("ECDHE-RSA-AES128-GCM-SHA256", .rsa2048), ("ECDHE-RSA-CHACHA20-POLY1305", .rsa2048),
      ("DHE-RSA-AES128-GCM-SHA256", .rsa2048), ("AES128-GCM-SHA256", .rsa2048), ("AES128-SHA256", .rsa2048),
      ("AES256-SHA", .rsa2048),
    ].map { Agreement(version: .tls12, suite: $0.0, kind: $0.1) }
    + KeyKind.allCases.flatMap { kind in
      ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"].map {
        Agreement(version: .tls13, suite: $0, kind: kind)
      }
    }

  /// One for each version.
  static let some = [TLSVersion.tls10, .tls11, .tls12, .tls13].compactMap { version in
    all.first { $0.version == version }
  }

  /// Only the client insists: the server is the one that takes everybody.
  func apply(to configuration: inout TLSConfiguration) {
    configuration.versions = version...version
    if version == .tls13 { configuration.cipherSuites = suite } else { configuration.cipherList = suite }
  }
}

@Suite("handshakes in memory")
struct HandshakeTests {
  static let sizes = [1, 16_383, 16_384, 16_385, 100_000]

  @Test("Every version and suite, with each rule for the peer's certificate", arguments: Agreement.all)
  func agreements(_ agreement: Agreement) throws {
    let credentials = TestCredentials.of(agreement.kind)
    for rule in [TLSConfiguration.PeerCertificate.required, .optional, .notAsked] {
      for showsCertificate in rule == .required ? [true] : [true, false] {
        let pair = try TLSPair(
          credentials.client {
            agreement.apply(to: &$0)
            if !showsCertificate { $0.identity = nil }
          }, credentials.server { $0.peerCertificate = rule })
        try pair.connect()
        let info = try #require(pair.server.observer.info, "\(rule) \(pair.server.observer.errorText)")
        #expect(info.version == agreement.version)
        #expect(info.cipherSuite == agreement.suite)
        #expect(info.serverName == "localhost")
        #expect(!info.isResumed)
        if rule != .notAsked, showsCertificate {
          #expect(info.peer?.subject == "UID=com.example.app,CN=Apple Push Services: com.example.app")
          #expect(info.peer?.topic == TestCredentials.topic)
        } else {
          #expect(info.peer == nil)
        }
        let theirs = try #require(pair.client.observer.info)
        #expect(theirs.version == agreement.version)
        #expect(theirs.cipherSuite == agreement.suite)
        #expect(theirs.peer == .init(subject: "CN=apnscope gateway", topic: nil))
        try expectEcho(pair, [1, 100])
      }
    }
  }

  @Test("Data of every size, in any pieces", arguments: some(8, of: Agreement.all)) func sizes(_ agreement: Agreement)
    throws
  {
    let credentials = TestCredentials.of(agreement.kind)
    let client = try credentials.client(agreement.apply)
    let server = try credentials.server()
    for delivery in [TLSPair.Delivery.asWritten, .joined, .pieces(1), .pieces(5), .pieces(4_096)] {
      let pair = try TLSPair(client, server)
      pair.delivery = delivery
      try pair.connect()
      try #require(pair.server.observer.info != nil && pair.client.observer.info != nil, "\(delivery)")
      if case .pieces = delivery { pair.delivery = .pieces(999) }
      try expectEcho(pair, Self.sizes)
      #expect(pair.server.observer.errors == [])
      #expect(pair.client.observer.errors == [])
    }
  }

  /// The server sends back what it gets.
  private func expectEcho(_ pair: TLSPair, _ sizes: [Int]) throws {
    pair.server.observer.onRead = { context, buffer in context.writeAndFlush(NIOAny(buffer), promise: nil) }
    var expected: [UInt8] = []
    for (index, size) in sizes.enumerated() {
      let bytes = pattern(size, index)
      expected += bytes
      pair.client.send(bytes)
      pair.pump()
    }
    #expect(pair.server.observer.received == expected)
    #expect(pair.client.observer.received == expected)
  }

  @Test("The highest version of both is used", arguments: [TLSVersion.tls10, .tls11, .tls12, .tls13])
  func versions(highest: TLSVersion) throws {
    let credentials = TestCredentials.p256
    let pair = try TLSPair(
      credentials.client { $0.versions = .tls10 ... .tls13 }, credentials.server { $0.versions = .tls10...highest })
    try pair.connect()
    #expect(pair.client.observer.info?.version == highest)
    #expect(pair.server.observer.info?.version == highest)
  }

  @Test("A server's name: none, an address, a name") func serverNames() throws {
    let credentials = TestCredentials.p256
    let (client, server) = (try credentials.client(), try credentials.server())
    for (name, seen) in [(nil, nil), ("127.0.0.1", nil), ("::1", nil), ("localhost", "localhost")]
      as [(String?, String?)]
    {
      let pair = try TLSPair(client, server, serverName: name, verifiesName: name != nil)
      try pair.connect()
      #expect(pair.server.observer.info?.serverName == seen)
      #expect(pair.client.observer.info != nil, "\(pair.client.observer.errorText)")
    }
  }

  @Test("The event comes once, before any data") func order() throws {
    let credentials = TestCredentials.p256
    for agreement in Agreement.some {
      let pair = try TLSPair(credentials.client(agreement.apply), credentials.server())
      pair.delivery = .joined
      try pair.server.activate()
      try pair.client.activate()
      pair.client.send([1, 2, 3])
      pair.pump()
      guard let info = pair.server.observer.info else { return #expect(Bool(false)) }
      #expect(pair.server.observer.events == [.active, .info(info), .read(3)])
    }
  }

  @Test("A handler that joins an active channel begins at once") func late() throws {
    let credentials = TestCredentials.p256
    let pair = try TLSPair(credentials.client(), credentials.server())
    try pair.server.activate()
    let other = try TLSPair.Side(TLSHandler(client: credentials.client(), serverName: "localhost"), pair.loop)
    #expect(other.wire.sent.isEmpty)
    try other.activate()
    #expect(other.wire.sent.count == 1)
    other.finish()
  }

  @Test("Who reads by hand gets the handshake, and bytes for each read") func readingByHand() throws {
    let credentials = TestCredentials.p256
    let pair = try TLSPair(credentials.client(), credentials.server())
    try pair.connect()
    let wire = pair.server.wire
    // It asked at its beginning, and again after each piece.
    #expect(wire.reads >= 2)
    let before = wire.reads
    pair.server.channel.read()
    #expect(wire.reads == before + 1)
    pair.client.send([1, 2, 3])
    pair.delivery = .pieces(10)
    pair.pump()
    // 25 bytes: two pieces make no plaintext yet, the third does.
    #expect(wire.reads == before + 3)
    #expect(pair.server.observer.received == [1, 2, 3])
  }

  @Test("A context of the wrong side is refused") func sides() throws {
    let credentials = TestCredentials.p256
    let (client, server) = (try credentials.client(), try credentials.server())
    expectError(.configuration) { try TLSHandler(server: client) }
    expectError(.configuration) { try TLSHandler(client: server, serverName: nil) }
  }
}
