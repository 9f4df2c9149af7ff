import BinaryProtocol
import Bytes
import PushModel

/// Everything a parsed notification says, copied out of the borrowed bytes so that it can be compared.
struct CopiedNotification: Equatable, Sendable {
  var frame: [UInt8]
  var command: UInt8
  var identifier: UInt32?
  var expiration: UInt32?
  var priority: UInt8?
  /// `nil` when the frame has no such field; an empty field is `[]`.
  var token: [UInt8]?
  var payload: [UInt8]?
  var items: [FrameItem]
  var unknownItems: [FrameItem]
  var hasUnknownItems: Bool
  var hasUnusualItemOrder: Bool
  var isKnownBad: Bool

  init(_ notification: borrowing Push) {
    frame = Array(copying: notification.bytes)
    command = notification.command.rawValue
    identifier = notification.identifier
    expiration = notification.expiration
    priority = notification.priority
    token = notification.fields.token.isPresent ? Array(copying: notification.token) : nil
    payload = notification.fields.payload.isPresent ? Array(copying: notification.payload) : nil
    items = notification.items
    unknownItems = notification.unknownItems
    hasUnknownItems = notification.fields.binary.hasUnknownItems
    hasUnusualItemOrder = notification.fields.binary.hasUnusualItemOrder
    isKnownBad = notification.isKnownBad
  }
}

/// A record of any of the three streams, copied.
enum CopiedRecord: Equatable, Sendable {
  case notification(CopiedNotification)
  case response(ErrorResponse)
  case feedback(timestamp: UInt32, token: [UInt8])
}

/// The three decoders behind one face, so that a law all of them obey is written once.
enum RecordKind: String, CaseIterable, Sendable {
  case notification = "gateway_c2s"
  case response = "gateway_s2c"
  case feedback = "feedback_s2c"

  func extent(of bytes: [UInt8], at offset: Int, limits: ProtocolLimits = ProtocolLimits()) -> RecordExtent {
    switch self {
    case .notification: BinaryFrame.extent(of: bytes.rawBytes, at: offset, limits: limits)
    case .response: ErrorResponse.extent(of: bytes.rawBytes, at: offset)
    case .feedback: FeedbackTuple.extent(of: bytes.rawBytes, at: offset, limits: limits)
    }
  }

  func parse(
    _ bytes: [UInt8], at offset: inout Int, limits: ProtocolLimits = ProtocolLimits()
  ) throws(ParseError) -> CopiedRecord {
    switch self {
    case .notification:
      let notification = try Push(parsing: bytes.rawBytes, at: &offset, limits: limits)
      return .notification(CopiedNotification(notification))
    case .response:
      return .response(try ErrorResponse(parsing: bytes.rawBytes, at: &offset))
    case .feedback:
      let tuple = try FeedbackTuple(parsing: bytes.rawBytes, at: &offset, limits: limits)
      return .feedback(timestamp: tuple.timestamp, token: Array(copying: tuple.token))
    }
  }

  /// Parses bytes that must be exactly one record.
  func parse(whole bytes: [UInt8], limits: ProtocolLimits = ProtocolLimits()) throws(ParseError) -> CopiedRecord {
    var offset = 0
    return try parse(bytes, at: &offset, limits: limits)
  }

  /// Parses one record after the other until the bytes end or an error stops it.
  func parseAll(_ bytes: [UInt8]) -> (records: [CopiedRecord], consumed: Int, error: ParseError?) {
    var records: [CopiedRecord] = []
    var offset = 0
    while offset < bytes.count {
      do {
        records.append(try parse(bytes, at: &offset))
      } catch {
        return (records, offset, error)
      }
    }
    return (records, offset, nil)
  }

  /// Parses a record and writes it again.
  func reencode(_ bytes: [UInt8]) throws(ParseError) -> [UInt8] {
    var output = ByteWriter()
    var offset = 0
    switch self {
    case .notification: try Push(parsing: bytes.rawBytes, at: &offset).encode(into: &output)
    case .response: try ErrorResponse(parsing: bytes.rawBytes, at: &offset).encode(into: &output)
    case .feedback: try FeedbackTuple(parsing: bytes.rawBytes, at: &offset).encode(into: &output)
    }
    return Array(copying: output.bytes)
  }
}

extension CopiedRecord {
  var notification: CopiedNotification? {
    if case .notification(let notification) = self { notification } else { nil }
  }
}

/// The bytes that `write` writes.
func written(capacity: Int = 64, _ write: (inout ByteWriter) -> Void) -> [UInt8] {
  var output = ByteWriter(capacity: capacity)
  write(&output)
  return Array(copying: output.bytes)
}

extension [UInt8] {
  /// Bytes from pairs of hexadecimal digits; spaces are for the reader.
  init(hex: String) {
    let digits = hex.filter { $0 != " " }.map { $0.hexDigitValue! }
    precondition(digits.count % 2 == 0)
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
