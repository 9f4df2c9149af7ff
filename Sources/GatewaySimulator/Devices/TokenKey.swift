import Bytes
import PushModel

/// A device token of a topic, as a key. Nearly all tokens have 32 bytes: such a key is made without allocating.
enum TokenKey: Hashable, Sendable {
  case usual(topic: UInt32, UInt64, UInt64, UInt64, UInt64)
  case other(topic: UInt32, [UInt8])

  init(topic: UInt32 = 0, _ token: RawSpan) {
    if token.byteCount == DeviceToken.usualLength {
      self = .usual(
        topic: topic, token.uint64(at: 0), token.uint64(at: 8), token.uint64(at: 16), token.uint64(at: 24))
    } else {
      self = .other(topic: topic, Array(copying: token))
    }
  }

  /// The bytes of the token.
  var token: [UInt8] {
    switch self {
    case .usual(_, let first, let second, let third, let fourth):
      var bytes = ByteWriter(capacity: DeviceToken.usualLength)
      for word in [first, second, third, fourth] { bytes.write(bigEndian: word) }
      return Array(copying: bytes.bytes)
    case .other(_, let token): return token
    }
  }

  /// The number of the token's bytes.
  var length: Int {
    switch self {
    case .usual: 32
    case .other(_, let token): token.count
    }
  }
}
