import Bytes
import PushModel

extension Push {
  /// A frame that cannot be accepted because its token is empty.
  ///
  /// Clients send one on purpose as the last of a connection: its rejection proves everything before it accepted.
  @inlinable public var isKnownBad: Bool { fields.isKnownBad }
}

extension PushFields {
  /// The token is empty.
  @inlinable public var isKnownBad: Bool { token.length == 0 }
}

extension BinaryFrame {
  /// A frame that cannot be accepted, as pushy writes it: token and payload are empty, it never expires, and its priority is 10.
  package static func knownBadFrame(identifier: UInt32) -> [UInt8] {
    var output = ByteWriter(capacity: 64)
    encodeFramed(
      tokenLength: 0, payloadLength: 0, identifier: identifier, expiration: 0, priority: 10, into: &output,
      token: { _ in }, payload: { _ in })
    return Array(copying: output.bytes)
  }
}
