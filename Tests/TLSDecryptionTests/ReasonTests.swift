import TLSDecryption
import TestSupport
import Testing

/// What is said in words: alerts, and why a connection stays closed.
@Suite struct ReasonTests {
  @Test(
    "A handshake that is refused shows its alert, and nothing stays closed",
    arguments: [TLSConversation.Version.tls12, .tls13])
  func aHandshakeThatIsRefusedShowsItsAlertAnd(version: TLSConversation.Version) throws {
    var conversation = TLSConversation(version: version)
    conversation.clientAuthentication = .missing
    conversation.mayFail = true
    conversation.script = []
    let recorded = try conversation.record()
    let run = StreamRun(recorded)
    #expect(run.client.plaintext.isEmpty && run.server.plaintext.isEmpty)
    #expect(run.client.gaps.isEmpty && run.server.gaps.isEmpty)
    #expect(run.summary.alert?.hasSuffix(" from the server") == true, "\(run.summary.alert ?? "no alert")")
    #expect(run.summary.isDecrypted)
    #expect(run.summary.clientSubject == nil)
  }

  @Test("An alert in the middle of the data is shown, and the data before it")
  func anAlertInTheMiddleOfTheDataIsShownAndTheData() throws {
    var conversation = TLSConversation(version: .tls12, suite: "ECDHE-RSA-AES128-GCM-SHA256")
    conversation.mayFail = true
    conversation.script = [.write(.client, [1, 2, 3]), .writeTampered(.client, [4, 5, 6])]
    let run = StreamRun(try conversation.record())
    #expect(run.client.plaintext == [1, 2, 3])
    #expect(run.summary.alert == "bad_record_mac from the server")
    // The record that was damaged on its way cannot be verified.
    #expect(run.client.gaps.map(\.length) == [3])
    #expect(run.client.gaps.map(\.reason) == [.undecrypted])
  }

  /// A ServerHello that names something else, and what is said of the connection.
  @Test(
    "What the server chose may be out of reach",
    arguments: [
      (0, [0xc0, 0x86], "cipher suite not supported: TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_GCM_SHA256"),
      (0, [0xab, 0xcd], "cipher suite not supported: unknown suite 0xabcd"),
      (2, [0x01], "TLS compression (DEFLATE) is not supported"),
    ] as [(Int, [UInt8], String)])
  func whatTheServerChoseMayBeOutOfReach(offset: Int, bytes: [UInt8], problem: String) throws {
    let recorded = try TLSConversation(version: .tls12, suite: "AES128-SHA").record()
    var arrivals: [Arrival] = []
    for record in HandshakeLossTests.records(recorded) {
      var record = record
      if record.side == .server && record.bytes[0] == 22 && record.bytes[5] == 2 {
        // header 5 | type, length 4 | version 2 | random 32 | session id | suite 2 | compression 1
        let place = 44 + Int(record.bytes[43]) + offset
        record.bytes.replaceSubrange(place..<place + bytes.count, with: bytes)
      }
      arrivals.append(.bytes(record.side, record.bytes))
    }
    let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
    #expect(run.summary.problem == problem)
    #expect(!run.summary.isDecrypted)
    #expect(run.client.plaintext.isEmpty)
  }

  @Test("A server's key is told what it cannot do") func aServerKeyIsToldWhatItCannotDo() throws {
    let key = try PrivateKey(pem: Array(TLSIdentity.rsaServer.pkcs8KeyPEM.utf8), passPhrase: nil)
    for (version, suite, problem) in [
      (
        TLSConversation.Version.tls12, "ECDHE-RSA-AES128-GCM-SHA256",
        "a server key does not open ECDHE_RSA key exchange; a key log does"
      ),
      (.tls13, nil, "a server key opens no TLS 1.3; a key log does"),
    ] as [(TLSConversation.Version, String?, String)] {
      let secrets = Secrets()
      secrets.add(key)
      let run = StreamRun(try TLSConversation(version: version, suite: suite).record().arrivals, secrets: secrets)
      #expect(run.summary.problem == problem)
    }
  }

  @Test("The last line for a client random is tried first, and all are")
  func theLastLineForAClientRandomIsTriedFirstAnd() throws {
    let recorded = try TLSConversation(version: .tls12, suite: "AES128-SHA").record()
    let line = recorded.keyLogText
    let wrong = String(line.prefix(14 + 64 + 1)) + String(repeating: "00", count: 48) + "\n"
    for keyLog in [wrong + line, line + wrong, wrong + line + wrong] {
      #expect(
        StreamRun(recorded.arrivals, secrets: Secrets(keyLog: keyLog)).client.plaintext == recorded.clientPlaintext)
    }
  }
}
