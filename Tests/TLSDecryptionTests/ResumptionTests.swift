import TLSDecryption
import TestSupport
import Testing

/// Sessions that are resumed, with a key log and with no more than what the first connection taught.
@Suite struct ResumptionTests {
  struct ResumptionMethod: CustomTestStringConvertible, Sendable {
    var name: String
    var version: TLSConversation.Version
    var suite: String?
    var usesTickets: Bool
    var testDescription: String { name }
  }

  static let ways = [
    ResumptionMethod(name: "TLS 1.0 by id", version: .tls10, suite: "AES128-SHA", usesTickets: false),
    ResumptionMethod(name: "TLS 1.1 by ticket", version: .tls11, suite: "AES128-SHA", usesTickets: true),
    ResumptionMethod(name: "TLS 1.2 by id", version: .tls12, suite: "AES128-GCM-SHA256", usesTickets: false),
    ResumptionMethod(name: "TLS 1.2 by ticket", version: .tls12, suite: "AES256-SHA256", usesTickets: true),
    ResumptionMethod(
      name: "TLS 1.2 ECDHE by ticket", version: .tls12, suite: "ECDHE-RSA-AES128-GCM-SHA256", usesTickets: true),
    ResumptionMethod(name: "TLS 1.3 by ticket", version: .tls13, suite: nil, usesTickets: true),
    ResumptionMethod(name: "TLS 1.3 by identity", version: .tls13, suite: nil, usesTickets: false),
  ]

  private func conversations(_ way: ResumptionMethod) throws -> (
    first: RecordedConversation, second: RecordedConversation
  ) {
    var conversation = TLSConversation(version: way.version, suite: way.suite)
    conversation.usesTickets = way.usesTickets
    conversation.clientAuthentication = .given
    return try conversation.recordResumption(script: [
      .write(.client, [7, 8, 9]), .write(.server, [1]), .close(.client),
    ])
  }

  @Test("A resumed session is opened, and known as resumed", arguments: ways)
  func aResumedSessionIsOpenedAndKnownAsResumed(way: ResumptionMethod) throws {
    let (first, second) = try conversations(way)
    #expect(second.isResumed)
    let secrets = Secrets(keyLog: first.keyLogText + second.keyLogText)
    let runs = [first, second].map { StreamRun($0.arrivals, secrets: secrets) }
    for (run, recorded) in zip(runs, [first, second]) {
      #expect(run.client.plaintext == recorded.clientPlaintext)
      #expect(run.server.plaintext == recorded.serverPlaintext)
    }
    #expect(runs.map(\.summary.isResumed) == [false, true])
    // The certificate is presented once; it speaks for the session.
    #expect(runs[1].summary.clientSubject == runs[0].summary.clientSubject)
    #expect(runs[1].summary.clientSubject?.hasPrefix("UID=com.example.app") == true)
  }

  @Test("Without secrets the session's client is known where it stands in the clear", arguments: ways)
  func withoutSecretsTheSessionClientIsKnownWhereIt(way: ResumptionMethod)
    throws
  {
    let (first, second) = try conversations(way)
    let secrets = Secrets()
    let runs = [first, second].map { StreamRun($0.arrivals, secrets: secrets) }
    #expect(runs.allSatisfy { !$0.summary.isDecrypted })
    let expected = way.version != .tls13 ? "UID=com.example.app" : nil
    for run in runs {
      #expect(run.summary.clientSubject?.prefix(expected?.count ?? 0) == expected?[...])
      if way.version != .tls13 { #expect(run.summary.isResumed != nil) }
    }
  }

  @Test(
    "The server's key opens the first connection, and what it taught the resumed one",
    arguments: ways.filter { $0.version != .tls13 && $0.suite?.hasPrefix("ECDHE") != true })
  func theServerKeyOpensTheFirstConnectionAndWhatIt(way: ResumptionMethod) throws {
    let (first, second) = try conversations(way)
    let secrets = Secrets()
    secrets.add(try PrivateKey(pem: Array(TLSIdentity.rsaServer.pkcs8KeyPEM.utf8), passPhrase: nil))
    for recorded in [first, second] {
      let run = StreamRun(recorded.arrivals, secrets: secrets)
      #expect(run.client.plaintext == recorded.clientPlaintext)
      #expect(run.server.plaintext == recorded.serverPlaintext)
      // What is exported opens the same without the key.
      let again = StreamRun(recorded.arrivals, secrets: Secrets(keyLog: run.exportedKeys.joined()))
      #expect(again.client.plaintext == recorded.clientPlaintext)
    }
    let alone = Secrets()
    alone.add(try PrivateKey(pem: Array(TLSIdentity.rsaServer.pkcs8KeyPEM.utf8), passPhrase: nil))
    let run = StreamRun(second.arrivals, secrets: alone)
    #expect(run.summary.problem == "the session was resumed, and where it began is not in the capture")
  }
}
