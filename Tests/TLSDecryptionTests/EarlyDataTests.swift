import TLSDecryption
import TestSupport
import Testing

@Suite struct EarlyDataTests {
  static let early = Array("early words".utf8)

  private func conversation(rejects: Bool) throws -> RecordedConversation {
    var conversation = TLSConversation(version: .tls13, suite: "TLS_AES_128_GCM_SHA256")
    conversation.earlyData = Self.early
    conversation.rejectsEarlyData = rejects
    return try conversation.recordResumption(
      script: [.write(.client, Array("later words".utf8)), .write(.server, [1]), .close(.client)]
    ).second
  }

  @Test("Early data is part of what the client said") func earlyDataIsPartOfWhatTheClientSaid() throws {
    let recorded = try conversation(rejects: false)
    #expect(recorded.isEarlyDataAccepted == true)
    for pieceLength in [Int.max, 1] {
      let run = StreamRun(recorded, pieceLength: pieceLength)
      #expect(run.client.plaintext == Self.early + Array("later words".utf8))
      #expect(run.summary.isResumed == true)
      #expect(run.client.gaps.isEmpty)
    }
  }

  @Test("Early data without its secret is a gap of its length, and the rest is opened")
  func earlyDataWithoutItsSecretIsAGapOfItsLength() throws {
    let recorded = try conversation(rejects: false)
    let keyLog = recorded.keyLog.filter { !$0.hasPrefix("CLIENT_EARLY") }.map { $0 + "\n" }.joined()
    let run = StreamRun(recorded.arrivals, secrets: Secrets(keyLog: keyLog))
    #expect(run.client.pieces == [.gap(Self.early.count, .undecrypted), .bytes(Array("later words".utf8))])
    #expect(run.server.plaintext == recorded.serverPlaintext)
  }

  @Test("Early data that the server did not take was not said") func earlyDataThatTheServerDidNotTakeWasNotSaid() throws
  {
    let recorded = try conversation(rejects: true)
    #expect(recorded.isEarlyDataAccepted == false)
    let run = StreamRun(recorded)
    #expect(run.client.pieces == [.bytes(Array("later words".utf8))])
  }
}
