import Bytes
import TLSDecryption
import TestSupport
import Testing

extension LibraryExamples {
  @Test("TLSDecryption: recorded records become plaintext")
  func decryption() throws {
    let recorded = try TLSConversation(version: .tls12, script: [.write(.client, Array("a push".utf8))]).record()
    let keyLog = Array(recorded.keyLogText.utf8)
    let pieces = recorded.steps.map { (side: $0.side == .client ? TLSSide.client : .server, bytes: $0.bytes) }

    let secrets = Secrets()
    secrets.add(KeyLog(keyLog, maximumLines: 1_000))
    let stream = TLSStream(secrets: secrets, limits: TLSLimits())
    var plaintext: [UInt8] = []
    for (number, piece) in pieces.enumerated() {
      stream.receive(piece.bytes.rawBytes, from: piece.side, at: CapturePoint(time: 0, packet: number)) {
        event, side, _, _ in
        if case .bytes(let bytes) = event, side == .client { plaintext.append(copying: bytes) }
      }
    }
    let summary = stream.summary  // its version, suite, and why anything could not be opened

    #expect(String(decoding: plaintext, as: UTF8.self) == "a push")
    #expect(summary.version == .tls12)
    #expect(summary.problem == nil)
  }
}
