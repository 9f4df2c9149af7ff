import BinaryProtocol
import Bytes
import PushModel
import TestSupport
import Testing

/// That what is written is read as what it was, VectorTests and RoundTripTests show.
@Suite("Frames from lengths, and from what writes their fields")
struct EncodingTests {
  private func bytes(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

  @Test("A frame is that of its items, whichever are left out", arguments: 0..<32)
  func framed(present: Int) {
    func item<Value>(_ bit: Int, _ value: Value) -> Value? { present & 1 << bit != 0 ? value : nil }
    var random = SeededGenerator(seed: UInt64(present))
    let token = item(0, random.bytes(random.number(0...100)))
    let payload = item(1, random.bytes(random.number(0...2_048)))
    let (identifier, expiration) = (item(2, random.uint32()), item(3, random.uint32()))
    let priority = item(4, random.bytes(1)[0])
    // Neither is asked for where it is absent.
    let (tokenBytes, payloadBytes) = (token ?? [1], payload ?? [2])
    let frame = written {
      BinaryFrame.encodeFramed(
        tokenLength: token?.count, payloadLength: payload?.count, identifier: identifier, expiration: expiration,
        priority: priority, into: &$0, token: { $0.write(tokenBytes.rawBytes) },
        payload: { $0.write(payloadBytes.rawBytes) })
    }
    let data: [(FrameItem.Identifier, [UInt8]?)] = [
      (.deviceToken, token), (.payload, payload), (.notificationIdentifier, identifier.map(bytes)),
      (.expiration, expiration.map(bytes)), (.priority, priority.map { [$0] }),
    ]
    let items = data.compactMap { id, data in data.map { FrameItem(id: id, data: $0) } }
    #expect(frame == written { BinaryFrame.encodeFramed(items: items, into: &$0) })
  }

  @Test("Commands 0 and 1 differ by the numbers of the latter")
  func unframed() {
    let (token, payload): ([UInt8], [UInt8]) = ([7, 8], [9])
    func frame(_ numbers: (identifier: UInt32, expiration: UInt32)?) -> [UInt8] {
      written {
        BinaryFrame.encodeUnframed(
          numbers: numbers, tokenLength: 2, payloadLength: 1, into: &$0, token: { $0.write(token.rawBytes) },
          payload: { $0.write(payload.rawBytes) })
      }
    }
    #expect(frame(nil) == [0, 0, 2, 7, 8, 0, 1, 9])
    #expect(frame((0x0102_0304, 5)) == [1, 1, 2, 3, 4, 0, 0, 0, 5, 0, 2, 7, 8, 0, 1, 9])
  }

  @Test("The known-bad frame is pushy's, byte for byte")
  func knownBad() throws {
    let frame = BinaryFrame.knownBadFrame(identifier: 0xffff_ffff)
    #expect(
      frame == [
        0x02, 0, 0, 0, 24, 0x01, 0, 0, 0x02, 0, 0, 0x03, 0, 4, 0xff, 0xff, 0xff, 0xff, 0x04, 0, 4, 0, 0, 0, 0, 0x05, 0,
        1, 10,
      ])
    let fields = try PushFields(parsing: frame.rawBytes)
    #expect(fields.isKnownBad && fields.identifier == 0xffff_ffff)
    // A gateway refuses it for its token.
    var session = GatewaySession()
    let consumed = session.receive(frame.rawBytes) { _ in nil }
    #expect(consumed == frame.count && session.ending?.status == .missingDeviceToken)
  }
}
