/// The reason why a push was rejected, in the terms of its protocol.
public enum Rejection: Sendable, Hashable, Comparable {
  /// The status of a binary error response.
  case status(BinaryStatus)

  /// The status of the binary protocol.
  @inlinable public var status: BinaryStatus {
    switch self {
    case .status(let status): status
    }
  }

  /// The text under which rejections are counted in documents: a status number.
  public var key: String {
    switch self {
    case .status(let status): String(status.rawValue)
    }
  }

  /// The name in Apple's guide, such as `invalid token`.
  public var name: String {
    switch self {
    case .status(let status): status.description
    }
  }

  /// Whether the same push would be rejected again: its token belongs to no device, or the push itself is at fault.
  public var isPermanent: Bool {
    switch self {
    case .status(let status): status.isPermanent
    }
  }

  /// Orders rejections by their status numbers.
  public static func < (left: Rejection, right: Rejection) -> Bool {
    switch (left, right) {
    case (.status(let left), .status(let right)): left.rawValue < right.rawValue
    }
  }
}

/// The status of a binary error response. Undocumented codes are values, too.
///
/// 0 and 10 do not reject: mock servers acknowledge with 0, and 10 announces that the gateway goes away.
public struct BinaryStatus: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt8
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Sent by mock servers as an acknowledgement; the documented service never does.
  public static let noError = BinaryStatus(rawValue: 0)
  /// An error while processing the push, the only one that may pass.
  public static let processingError = BinaryStatus(rawValue: 1)
  /// The token is missing or empty.
  public static let missingDeviceToken = BinaryStatus(rawValue: 2)
  /// The certificate names no topic.
  public static let missingTopic = BinaryStatus(rawValue: 3)
  /// The payload is missing or empty.
  public static let missingPayload = BinaryStatus(rawValue: 4)
  /// The token has another length than allowed.
  public static let invalidTokenSize = BinaryStatus(rawValue: 5)
  /// The topic of the certificate has an invalid length.
  public static let invalidTopicSize = BinaryStatus(rawValue: 6)
  /// The payload is longer than allowed.
  public static let invalidPayloadSize = BinaryStatus(rawValue: 7)
  /// The token belongs to no device with the app, or to another environment or topic.
  public static let invalidToken = BinaryStatus(rawValue: 8)
  /// The gateway goes away for maintenance; the identifier names the *last accepted* notification.
  public static let shutdown = BinaryStatus(rawValue: 10)
  /// The frame could not be parsed (documented in 2018).
  public static let protocolError = BinaryStatus(rawValue: 128)
  /// No reason is known.
  public static let none = BinaryStatus(rawValue: 255)

  /// Whether Apple's documents have the status: 0 to 8, 10, 128, 255.
  @inlinable public var isDocumented: Bool { rawValue <= 8 || rawValue == 10 || rawValue == 128 || rawValue == 255 }

  /// Whether the push itself is at fault, as with every status from 2 to 8.
  public var isPermanent: Bool { (2...8).contains(rawValue) }

  /// The name in Apple's guide; `unknown` for an undocumented status.
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
