import BinaryProtocol
import Bytes
import TestSupport

/// What a random notification was made of, beside its bytes: the parser must find exactly this.
struct RandomNotification: Sendable {
  var command: UInt8
  var identifier: UInt32?
  var expiration: UInt32?
  var priority: UInt8?
  var token: [UInt8]?
  var payload: [UInt8]?
  var bytes: [UInt8]
}

extension SeededGenerator {
  /// Lengths as clients send them: 32 mostly, sometimes none, short, or the 100 of later devices.
  mutating func token() -> [UInt8] {
    bytes(happens(oneIn: 3) ? pick([0, 1, 5, 7, 8, 31, 33, 54, 68, 80, 100]) : 32)
  }

  mutating func payload() -> [UInt8] { bytes(happens(oneIn: 8) ? 0 : number(1...120)) }

  /// A notification of any command as a client of the documented service would write it.
  mutating func notification() -> RandomNotification {
    let command = UInt8(number(0...2))
    let (token, payload) = (token(), payload())
    let (identifier, expiration, priority) = (uint32(), uint32(), UInt8(number(0...255)))
    var made = RandomNotification(command: command, token: token, payload: payload, bytes: [])
    switch command {
    case 0:
      // Five zero bytes are padding, not a notification.
      if token.isEmpty && payload.isEmpty { made.payload = [0x7b, 0x7d] }
      made.bytes = written {
        BinaryFrame.encodeSimple(token: token.rawBytes, payload: made.payload!.rawBytes, into: &$0)
      }
    case 1:
      made.identifier = identifier
      made.expiration = expiration
      made.bytes = written {
        BinaryFrame.encodeEnhanced(
          identifier: identifier, expiration: expiration, token: token.rawBytes, payload: payload.rawBytes, into: &$0)
      }
    default:
      made.identifier = happens(oneIn: 4) ? nil : identifier
      made.expiration = happens(oneIn: 4) ? nil : expiration
      made.priority = happens(oneIn: 4) ? nil : priority
      made.bytes = written {
        BinaryFrame.encodeFramed(
          token: token.rawBytes, payload: payload.rawBytes, identifier: made.identifier, expiration: made.expiration,
          priority: made.priority, into: &$0)
      }
    }
    return made
  }

  /// Items as nobody sends them: any order, unknown ids, repeated ids, lengths that do not belong to the id.
  mutating func items() -> [FrameItem] {
    (0..<number(0...9)).map { _ in
      let id = FrameItem.Identifier(rawValue: happens(oneIn: 4) ? UInt8(number(0...255)) : UInt8(number(1...5)))
      let usual = id == .priority ? 1 : id == .notificationIdentifier || id == .expiration ? 4 : number(0...40)
      return FrameItem(id: id, data: bytes(happens(oneIn: 4) ? number(0...8) : usual))
    }
  }

  mutating func response() -> ErrorResponse {
    ErrorResponse(status: .init(rawValue: UInt8(number(0...255))), identifier: uint32())
  }

  /// The wire bytes of one record of `kind`.
  mutating func record(_ kind: RecordKind) -> [UInt8] {
    switch kind {
    case .notification:
      guard happens(oneIn: 3) else { return notification().bytes }
      let items = items()
      return written { BinaryFrame.encodeFramed(items: items, into: &$0) }
    case .response:
      let response = response()
      return written { response.encode(into: &$0) }
    case .feedback:
      let (timestamp, token) = (uint32(), token())
      return written { FeedbackTuple(timestamp: timestamp, token: token.rawBytes).encode(into: &$0) }
    }
  }
}
