import Bytes

/// The gateway's answer to a bad notification: `08 | status u8 | identifier 4 bytes`, after which it closes.
///
/// Nothing is answered for an accepted notification. Source: Apple's guide of 2015-09-16.
public struct ErrorResponse: Sendable, Hashable {
  /// Bytes on the wire.
  public static let length = 6
  /// The command byte the documented service uses.
  public static let documentedCommand: UInt8 = 8

  /// 8 from the documented service; mock servers were seen to use others.
  public var command: UInt8
  public var status: Status
  /// The four bytes of the notification it names, read as a big-endian number.
  public var identifier: UInt32

  public init(command: UInt8 = documentedCommand, status: Status, identifier: UInt32) {
    self.command = command
    self.status = status
    self.identifier = identifier
  }

  /// How far the response at `offset` reaches. Another command byte than 8 is taken when the status is a known one.
  @inlinable
  public static func extent(of bytes: RawSpan, at offset: Int) -> RecordExtent {
    let available = bytes.byteCount - offset
    if available >= 2 {
      let command = bytes.byte(at: offset)
      let status = Status(rawValue: bytes.byte(at: offset + 1))
      if command != documentedCommand && !status.isDocumented {
        return .malformed(ParseError(.unknownResponse(command: command, status: status.rawValue), at: 0))
      }
    }
    return available >= length ? .complete(length) : .incomplete(needed: length)
  }

  /// Parses the response at `offset` and moves `offset` behind it; throws `.incomplete` below six bytes.
  @inlinable
  public init(parsing bytes: RawSpan, at offset: inout Int) throws(ParseError) {
    switch Self.extent(of: bytes, at: offset) {
    case .incomplete(let needed): throw ParseError(.incomplete, at: needed)
    case .malformed(let error): throw error
    case .complete: break
    }
    self.init(
      command: bytes.byte(at: offset), status: Status(rawValue: bytes.byte(at: offset + 1)),
      identifier: bytes.uint32(at: offset + 2))
    offset += Self.length
  }

  public func encode(into output: inout ByteWriter) {
    output.write(command)
    output.write(status.rawValue)
    output.write(bigEndian: identifier)
  }
}

extension ErrorResponse {
  /// Why a notification was refused. Codes outside the documented ones are values too.
  public struct Status: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Sent by mock servers as an acknowledgement; the documented service never does.
    public static let noError = Status(rawValue: 0)
    public static let processingError = Status(rawValue: 1)
    public static let missingDeviceToken = Status(rawValue: 2)
    public static let missingTopic = Status(rawValue: 3)
    public static let missingPayload = Status(rawValue: 4)
    public static let invalidTokenSize = Status(rawValue: 5)
    public static let invalidTopicSize = Status(rawValue: 6)
    public static let invalidPayloadSize = Status(rawValue: 7)
    public static let invalidToken = Status(rawValue: 8)
    /// The gateway goes away for maintenance; the identifier names the *last accepted* notification.
    public static let shutdown = Status(rawValue: 10)
    /// The frame could not be parsed (documented in 2018).
    public static let protocolError = Status(rawValue: 128)
    public static let none = Status(rawValue: 255)

    @inlinable public var isDocumented: Bool { rawValue <= 8 || rawValue == 10 || rawValue == 128 || rawValue == 255 }

    public var description: String {
      switch self {
      case .noError: "no error"
      case .processingError: "processing error"
      case .missingDeviceToken: "missing device token"
      case .missingTopic: "missing topic"
      case .missingPayload: "missing payload"
      case .invalidTokenSize: "invalid token size"
      case .invalidTopicSize: "invalid topic size"
      case .invalidPayloadSize: "invalid payload size"
      case .invalidToken: "invalid token"
      case .shutdown: "shutdown"
      case .protocolError: "protocol error"
      case .none: "none (unknown)"
      default: "unknown"
      }
    }
  }
}
