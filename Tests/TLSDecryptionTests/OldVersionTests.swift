import TLSDecryption
import TestSupport
import Testing

/// What libssl no longer speaks: SSL 3.0, RC4, DES, hellos in SSL 2.0's form.
@Suite struct OldVersionTests {
  struct Kind: CustomTestStringConvertible, Sendable {
    var version: HandMadeTLS.Version
    var suite: HandMadeTLS.Suite
    var testDescription: String { "\(version) \(suite.name)" }
    var conversation: HandMadeTLS { HandMadeTLS(version: version, suite: suite) }
    var isRC4: Bool { suite.name.hasPrefix("RC4") }
  }

  static let kinds = HandMadeTLS.Version.allCases.flatMap { version in
    HandMadeTLS.Suite.all.map { Kind(version: version, suite: $0) }
  }

  private func check(_ run: StreamRun, _ recorded: RecordedConversation) {
    #expect(run.client.plaintext == recorded.clientPlaintext)
    #expect(run.server.plaintext == recorded.serverPlaintext)
    #expect(run.client.gaps.isEmpty && run.server.gaps.isEmpty)
    #expect(run.summary.problem == nil)
    #expect(run.summary.version?.rawValue == recorded.version)
    #expect(run.summary.suite?.code == recorded.suite)
  }

  @Test("A key log opens them, by client random or by encrypted premaster", arguments: some(7, of: kinds))
  func aKeyLogOpensThemByClientRandomOrByEncrypted(kind: Kind) throws {
    let recorded = try kind.conversation.record()
    #expect(recorded.keyLog.count == 2)
    for line in recorded.keyLog {
      for pieceLength in [Int.max, 1] {
        check(
          StreamRun(recorded.arrivals, secrets: Secrets(keyLog: line + "\n"), pieceLength: pieceLength), recorded)
      }
    }
  }

  @Test("The server's key opens them", arguments: kinds) func theServerKeyOpensThem(kind: Kind) throws {
    var conversation = kind.conversation
    conversation.givesClientCertificate = true
    let recorded = try conversation.record()
    for pem in [TLSIdentity.rsaServer.traditionalKeyPEM, TLSIdentity.rsaServer.pkcs8KeyPEM] {
      let secrets = Secrets()
      secrets.add(try PrivateKey(pem: Array(pem.utf8), passPhrase: nil))
      let run = StreamRun(recorded.arrivals, secrets: secrets)
      check(run, recorded)
      #expect(run.summary.clientSubject == "UID=com.example.app,CN=Apple Push Services: com.example.app")
    }
    let wrong = Secrets()
    wrong.add(try PrivateKey(pem: Array(TLSIdentity.rsaClient.pkcs8KeyPEM.utf8), passPhrase: nil))
    let run = StreamRun(recorded.arrivals, secrets: wrong)
    #expect(run.summary.problem == "wrong server key: it is not that of the server's certificate")
    #expect(!run.summary.isDecrypted)
  }

  @Test("Resumed sessions, hellos of SSL 2.0, fragments and long paddings", arguments: some(7, of: kinds))
  func resumedSessionsHellosOfSSL20FragmentsAndLong(kind: Kind) throws {
    var conversation = kind.conversation
    conversation.maxFragment = 100
    conversation.extraPaddingBlocks = kind.version > .ssl30 && !kind.isRC4 ? 3 : 0
    conversation.insertsEmptyFragments = true
    let (first, second) = try conversation.recordResumption()
    let secrets = Secrets()
    secrets.add(try PrivateKey(pem: Array(TLSIdentity.rsaServer.pkcs8KeyPEM.utf8), passPhrase: nil))
    for (recorded, isResumed) in [(first, false), (second, true)] {
      let run = StreamRun(recorded.arrivals, secrets: secrets)
      check(run, recorded)
      #expect(run.summary.isResumed == isResumed)
    }
    for challenge in [16, 20, 32] {
      var old = kind.conversation
      old.ssl2Challenge = challenge
      let recorded = try old.record()
      for pieceLength in [Int.max, 1, 3] { check(StreamRun(recorded, pieceLength: pieceLength), recorded) }
    }
  }

  @Test("A gap ends RC4, and nothing else", arguments: kinds) func aGapEndsRC4AndNothingElse(kind: Kind) throws {
    var conversation = kind.conversation
    conversation.script = (1...20).map { .write(.client, [UInt8](repeating: $0, count: 100)) }
    let recorded = try conversation.record()
    let records = HandshakeLossTests.records(recorded)
    let data = records.indices.filter { records[$0].side == .client && records[$0].bytes[0] == 23 }
    let arrivals: [Arrival] = records.indices.map { index in
      index == data[9] ? .gap(.client, records[index].bytes.count) : .bytes(records[index].side, records[index].bytes)
    }
    let run = StreamRun(arrivals, secrets: Secrets(keyLog: recorded.keyLogText))
    let before = Array(recorded.clientPlaintext[..<900])
    #expect(run.client.plaintext.starts(with: before))
    if kind.isRC4 {
      #expect(run.client.plaintext == before)
      #expect(run.summary.problem == "RC4 after a gap: the state of its key stream cannot be recovered")
      #expect(run.summary.isDecrypted)
      // The record that is missing, and the ten that cannot be opened; how long each part is can be told to a few bytes.
      #expect(run.client.gaps.map(\.reason) == [.lost, .undecrypted])
      #expect(abs(run.client.gaps.map(\.length).reduce(0, +) - 1_100) < 30)
    } else {
      #expect(run.summary.problem == nil)
      let lostHead = kind.version <= .tls10 ? kind.suite.name.contains("DES") ? 8 : 16 : 0
      #expect(run.client.plaintext == before + Array(recorded.clientPlaintext[(1_000 + lostHead)...]))
    }
  }
}
