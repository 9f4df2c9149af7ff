import Bytes
import TLSFoundation

/// The content type of a record.
struct ContentType: RawRepresentable, Equatable {
  var rawValue: UInt8
  static let changeCipherSpec = ContentType(rawValue: 20)
  static let alert = ContentType(rawValue: 21)
  static let handshake = ContentType(rawValue: 22)
  static let applicationData = ContentType(rawValue: 23)
}

/// The five bytes before each record: type u8 | version u16 | length u16.
struct RecordHeader: Equatable {
  static let length = 5
  /// Longest fragment of any version: 2^14 bytes and what sealing may add.
  static let maximumFragment = 16_384 + 2_048

  var type: ContentType
  var version: TLSVersion
  /// Bytes of the fragment that follows.
  var fragmentLength: Int

  @inline(__always)
  init(_ bytes: RawSpan, at offset: Int) {
    type = ContentType(rawValue: bytes.byte(at: offset))
    version = TLSVersion(rawValue: bytes.uint16(at: offset + 1))
    fragmentLength = Int(bytes.uint16(at: offset + 3))
  }

  /// Bytes of the record with its header.
  var recordLength: Int { Self.length + fragmentLength }

  /// Whether a record of SSL 3.0 or later may begin so.
  var isPlausible: Bool {
    20...23 ~= type.rawValue && version.rawValue >> 8 == 3 && version.rawValue & 0xff <= 4
      && fragmentLength <= Self.maximumFragment
  }
}

/// Whether bytes are TLS, as far as the first bytes of a direction show.
public enum TLSRecognition: Sendable {
  case yes, no, needsMore

  /// Whether the bytes begin a TLS record, or a hello in SSL 2.0 format, which old clients send for compatibility.
  ///
  /// At most the first six bytes are examined, or those of an SSL 2.0 hello's header.
  public static func begins(_ bytes: RawSpan) -> TLSRecognition {
    guard bytes.byteCount > 0 else { return .needsMore }
    let type = bytes.byte(at: 0)
    if 20...23 ~= type {
      // Up to the first byte of a handshake message, which shows the sending side.
      guard bytes.byteCount >= (type == 22 ? 6 : 3) else {
        return bytes.byteCount < 2 || bytes.byte(at: 1) == 3 ? .needsMore : .no
      }
      return bytes.byte(at: 1) == 3 && bytes.byte(at: 2) <= 4 ? .yes : .no
    }
    if type & 0x80 != 0 {
      guard bytes.byteCount >= 5 else { return .needsMore }
      return SSL2Hello.begins(bytes) ? .yes : .no
    }
    return .no
  }

  /// Whether a plausible record header is at the beginning; for a capture that begins inside a stream.
  public static func isRecord(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= RecordHeader.length && RecordHeader(bytes, at: 0).isPlausible
  }

  /// Whether the first bytes are those of a client; `nil` if they do not show it.
  public static func isFromClient(_ bytes: RawSpan) -> Bool? {
    if bytes.byteCount > 0, bytes.byte(at: 0) & 0x80 != 0 { return true }
    guard bytes.byteCount > 5, bytes.byte(at: 0) == 22 else { return nil }
    return bytes.byte(at: 5) == 1
  }
}
