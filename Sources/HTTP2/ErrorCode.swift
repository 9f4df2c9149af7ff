/// The reason of a RST_STREAM or GOAWAY frame (RFC 9113 section 7). Undefined codes are values, too.
public struct ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt32
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Not an error, as in a graceful shutdown.
  public static let noError = ErrorCode(rawValue: 0)
  /// An unspecific breach of the protocol.
  public static let protocolError = ErrorCode(rawValue: 1)
  /// An unexpected fault of the endpoint.
  public static let internalError = ErrorCode(rawValue: 2)
  /// The peer broke the flow control.
  public static let flowControlError = ErrorCode(rawValue: 3)
  /// SETTINGS were not acknowledged in time.
  public static let settingsTimeout = ErrorCode(rawValue: 4)
  /// A frame arrived on a stream that its sender had closed.
  public static let streamClosed = ErrorCode(rawValue: 5)
  /// A frame of an invalid size.
  public static let frameSizeError = ErrorCode(rawValue: 6)
  /// The stream was not processed; its request may be repeated.
  public static let refusedStream = ErrorCode(rawValue: 7)
  /// The stream is no longer needed.
  public static let cancel = ErrorCode(rawValue: 8)
  /// The header compression state is lost.
  public static let compressionError = ErrorCode(rawValue: 9)
  /// The connection of a CONNECT request was reset.
  public static let connectError = ErrorCode(rawValue: 10)
  /// The peer generates excessive load.
  public static let enhanceYourCalm = ErrorCode(rawValue: 11)
  /// The properties of the transport are not secure enough.
  public static let inadequateSecurity = ErrorCode(rawValue: 12)
  /// The endpoint wants HTTP/1.1.
  public static let http11Required = ErrorCode(rawValue: 13)

  private static let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
  ]

  /// The name in the RFC, such as `REFUSED_STREAM`; the hexadecimal number of an undefined code.
  public var description: String {
    rawValue < Self.names.count ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
  }
}
