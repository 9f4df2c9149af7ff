import BinaryProtocol
import Bytes
import LoadTest
import PushModel

/// A notification as it was read from the wire, copied.
struct ReadNotification: Equatable {
  var command: UInt8
  var identifier: UInt32?
  var expiration: UInt32?
  var priority: UInt8?
  var token: [UInt8]
  var payload: [UInt8]
  var isUsual: Bool

  /// Long enough for the longest token with the longest payload in one frame.
  static let limits = ProtocolLimits(maximumFrameLength: 1 << 18, maximumTokenLength: 65_535)

  init(_ notification: borrowing Push) {
    command = notification.command.rawValue
    identifier = notification.identifier
    expiration = notification.expiration
    priority = notification.priority
    token = Array(copying: notification.token)
    payload = Array(copying: notification.payload)
    isUsual = !notification.fields.binary.hasUnknownItems && !notification.fields.binary.hasUnusualItemOrder
  }

  /// Reads bytes that are notifications and nothing else.
  static func all(in bytes: [UInt8]) throws -> [ReadNotification] {
    var all: [ReadNotification] = []
    var offset = 0
    while offset < bytes.count {
      all.append(ReadNotification(try Push(parsing: bytes.rawBytes, at: &offset, limits: limits)))
    }
    return all
  }
}

extension Workload {
  /// The bytes of these notifications, one behind the other.
  func bytes(_ numbers: some Sequence<UInt64>) -> [UInt8] {
    var output = ByteWriter()
    for number in numbers { encode(number, into: &output) }
    return Array(copying: output.bytes)
  }

  func bytes(_ number: UInt64) -> [UInt8] { bytes(CollectionOfOne(number)) }

  func read(_ numbers: some Sequence<UInt64>) throws -> [ReadNotification] {
    try ReadNotification.all(in: bytes(numbers))
  }
}

extension [UInt8] {
  var isJSON: Bool { JSONText.scan(rawBytes) != .invalid }
  var text: String { String(decoding: self, as: UTF8.self) }
}
