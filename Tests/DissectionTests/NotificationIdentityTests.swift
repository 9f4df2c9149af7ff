import Bytes
import PushModel
import TestSupport
import Testing

@testable import Analysis

/// When two sendings are one notification, by both digests of an identity.
@Suite("The identity of a notification")
struct NotificationIdentityTests {
  /// What a frame holds; `nil`: nothing of it.
  private struct Content: Hashable {
    var token: [UInt8]?
    var payload: [UInt8]?
    var isMalformed = false

    /// The digests of its identity.
    var digests: (digest: UInt64, key: ContentKey, isRecognisable: Bool) {
      let frame = [2] + (token ?? []) + (payload ?? [])
      var fields = PushFields(.binary(BinaryDetail(.framed)))
      let count = token?.count ?? 0
      if token != nil { fields.token = ByteField(offset: 1, length: count) }
      if let payload { fields.payload = ByteField(offset: 1 + count, length: payload.count) }
      fields.expiration = UInt32(frame.count)
      let identity = NotificationIdentity(fields, frame.rawBytes, isMalformed: isMalformed)
      return (identity.digest, identity.keys.notification, identity.isRecognisable)
    }
  }

  @Test("Identities are equal if and only if token, payload and form are", arguments: seeds(20, of: 200))
  func equality(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var contents: Set<Content> = []
    for _ in 0..<60 {
      var content = Content(
        token: random.bytes(random.pick([1, 8, 32, 100])), payload: random.bytes(random.pick([1, 16, 300])))
      contents.insert(content)
      content.isMalformed = true
      contents.insert(content)
      content.isMalformed = false
      content.payload = []
      contents.insert(content)
      content.payload = nil
      contents.insert(content)
      // A byte that moves from the payload to the token.
      content = Content(token: (content.token ?? []) + [1], payload: [2])
      contents.insert(content)
      content = Content(token: content.token?.dropLast(), payload: [1, 2])
      contents.insert(content)
    }
    let all = contents.map(\.digests)
    #expect(Set(all.map(\.digest)).count == contents.count && Set(all.map(\.key)).count == contents.count)
    #expect(all.allSatisfy { $0.isRecognisable && $0.digest != 0 })
    for (content, known) in zip(contents, all) {
      let again = content.digests
      #expect(again.digest == known.digest && again.key == known.key)
    }
  }

  @Test("A notification without a token, and a malformed frame without one of the two, is not recognised again")
  func notRecognisable() {
    let missing: [Content] = [
      Content(token: nil, payload: [1]), Content(token: [], payload: [1]), Content(token: [], payload: nil),
      Content(token: [1], payload: nil, isMalformed: true), Content(token: [1], payload: [], isMalformed: true),
      Content(token: [], payload: [1], isMalformed: true),
    ]
    for content in missing {
      #expect(!content.digests.isRecognisable && content.digests.digest == 0)
    }
    // Their keys are told apart all the same, because a story lists every sending.
    #expect(Set(missing.map(\.digests.key)).count == missing.count)
  }
}
