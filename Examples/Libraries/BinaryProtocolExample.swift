import BinaryProtocol
import Bytes
import PushModel
import Testing

extension LibraryExamples {
  @Test("BinaryProtocol: frames are written and read, and a response settles a session")
  func protocolRules() throws {
    let (token, payload) = ([UInt8](repeating: 0xaa, count: 32), Array(#"{"aps":{"alert":"Hello"}}"#.utf8))
    var frames = ByteWriter()
    var session = BinarySession()
    for identifier: UInt32 in 1...5 {
      BinaryFrame.encodeFramed(
        token: token.rawBytes, payload: payload.rawBytes, identifier: identifier, expiration: nil, priority: 10,
        into: &frames)
      _ = session.write(identifier: identifier, isKnownBad: false)
    }
    var offset = 0
    let first = try Push(parsing: frames.bytes, at: &offset).identifier  // 1
    let verdict = session.receive(ErrorResponse(status: .invalidToken, identifier: 3))  // it names notification 2
    let fates = session.fates  // 2 accepted, 1 rejected, 2 discarded

    #expect(first == 1)
    #expect(verdict.notification == 2)
    #expect(fates.accepted == 2)
    #expect(fates.rejected == 1)
    #expect(fates.discarded == 2)
    #expect(fates.unknown == 0)
  }
}
