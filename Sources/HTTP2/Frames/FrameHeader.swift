import Bytes

/// The first nine bytes of a frame (RFC 9113 section 4.1).
///
/// ```
/// +-----------------------------------------------+
/// |                 Length (24)                   |
/// +---------------+---------------+---------------+
/// |   Type (8)    |   Flags (8)   |
/// +-+-------------+---------------+-------------------------------+
/// |R|                 Stream Identifier (31)                      |
/// +=+=============================================================+
/// |                   Payload (Length bytes) …
/// ```
public struct FrameHeader: Sendable, Hashable {
  /// The length of a header in bytes.
  public static let length = 9

  /// The length of the payload in bytes, at most 16,777,215.
  public var payloadLength: Int
  /// The type.
  public var type: FrameType
  /// The flags; bits that the type does not define have no meaning.
  public var flags: FrameFlags
  /// The stream, without the reserved bit; 0 for the connection.
  public var stream: UInt32

  /// Makes a header.
  ///
  /// - Parameters:
  ///   - type: the type.
  ///   - flags: the flags.
  ///   - stream: the stream, below 2³¹; 0 for the connection.
  ///   - payloadLength: the length of the payload in bytes, below 2²⁴.
  public init(_ type: FrameType, flags: FrameFlags = [], stream: UInt32 = 0, payloadLength: Int = 0) {
    (self.type, self.flags, self.stream, self.payloadLength) = (type, flags, stream, payloadLength)
  }

  /// Reads the header at `offset`; nine bytes must be there.
  @inlinable
  package init(_ bytes: RawSpan, at offset: Int) {
    payloadLength = Int(bytes.uint32(at: offset) >> 8)
    type = FrameType(rawValue: bytes.byte(at: offset + 3))
    flags = FrameFlags(rawValue: bytes.byte(at: offset + 4))
    stream = bytes.uint32(at: offset + 5) & 0x7fff_ffff
  }

  /// Reads the header at the beginning of bytes; `nil` if fewer than nine are there.
  public init?(parsing bytes: RawSpan) {
    guard bytes.byteCount >= Self.length else { return nil }
    self.init(bytes, at: 0)
  }

  /// The length of the frame in bytes, with its header.
  public var frameLength: Int { Self.length + payloadLength }
}

/// The type of a frame. Undefined types are values, too: an endpoint ignores their frames (RFC 9113 section 4.1).
public struct FrameType: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt8
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  public static let data = FrameType(rawValue: 0)
  public static let headers = FrameType(rawValue: 1)
  public static let priority = FrameType(rawValue: 2)
  public static let reset = FrameType(rawValue: 3)
  public static let settings = FrameType(rawValue: 4)
  public static let pushPromise = FrameType(rawValue: 5)
  public static let ping = FrameType(rawValue: 6)
  public static let goAway = FrameType(rawValue: 7)
  public static let windowUpdate = FrameType(rawValue: 8)
  public static let continuation = FrameType(rawValue: 9)

  private static let names = [
    "DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE",
    "CONTINUATION",
  ]

  /// Whether RFC 9113 defines the type.
  public var isDefined: Bool { rawValue <= Self.continuation.rawValue }

  /// Whether a frame of the type carries a part of a field block.
  public var carriesFields: Bool { self == .headers || self == .continuation || self == .pushPromise }

  /// The name in the RFC, such as `HEADERS`; the hexadecimal number of an undefined type.
  public var description: String { isDefined ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16) }
}

/// The flags of a frame. One bit has different names for different types.
public struct FrameFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt8
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The sender's last frame on the stream (DATA and HEADERS).
  public static let endStream = FrameFlags(rawValue: 0x01)
  /// An acknowledgement (SETTINGS and PING).
  public static let acknowledgement = FrameFlags(rawValue: 0x01)
  /// The last frame of a field block (HEADERS, PUSH_PROMISE and CONTINUATION).
  public static let endHeaders = FrameFlags(rawValue: 0x04)
  /// The payload begins with the length of the padding (DATA, HEADERS and PUSH_PROMISE).
  public static let padded = FrameFlags(rawValue: 0x08)
  /// A priority precedes the field block (HEADERS).
  public static let priority = FrameFlags(rawValue: 0x20)
}
