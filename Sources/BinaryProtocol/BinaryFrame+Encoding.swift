import Bytes
import PushModel

extension BinaryFrame {
  /// Writes a notification of command 0.
  ///
  /// The length fields have 16 bits: a token or payload of more than 65,535 bytes traps.
  public static func encodeSimple(token: RawSpan, payload: RawSpan, into output: inout ByteWriter) {
    encodeUnframed(
      numbers: nil, tokenLength: checked(token), payloadLength: checked(payload), into: &output,
      token: { $0.write(token) }, payload: { $0.write(payload) })
  }

  /// Writes a notification of command 1. The limits are those of command 0.
  ///
  /// - Parameters:
  ///   - identifier: returned by an error response about the notification.
  ///   - expiration: UNIX seconds UTC; 0: not stored.
  ///   - token: the device token, at most 65,535 bytes.
  ///   - payload: the payload, at most 65,535 bytes.
  ///   - output: the writer to which the frame is appended.
  public static func encodeEnhanced(
    identifier: UInt32, expiration: UInt32, token: RawSpan, payload: RawSpan, into output: inout ByteWriter
  ) {
    encodeUnframed(
      numbers: (identifier, expiration), tokenLength: checked(token), payloadLength: checked(payload), into: &output,
      token: { $0.write(token) }, payload: { $0.write(payload) })
  }

  /// Writes a notification of command 2, with the items in the usual order 1, 2, 3, 4, 5; an item that is `nil` is left
  /// out.
  ///
  /// - Parameters:
  ///   - token: the device token, at most 65,535 bytes.
  ///   - payload: the payload, at most 65,535 bytes.
  ///   - identifier: returned by an error response about the notification.
  ///   - expiration: UNIX seconds UTC; 0: not stored.
  ///   - priority: 10 or 5, as documented; any value is written.
  ///   - output: the writer to which the frame is appended.
  public static func encodeFramed(
    token: RawSpan, payload: RawSpan, identifier: UInt32?, expiration: UInt32?, priority: UInt8?,
    into output: inout ByteWriter
  ) {
    encodeFramed(
      tokenLength: checked(token), payloadLength: checked(payload), identifier: identifier, expiration: expiration,
      priority: priority, into: &output, token: { $0.write(token) }, payload: { $0.write(payload) })
  }

  /// Writes a frame of command 2 with any items in any order, including unknown and repeated ones. Item data of more
  /// than 65,535 bytes traps.
  public static func encodeFramed(items: [FrameItem], into output: inout ByteWriter) {
    writeFrameHeader(length: items.reduce(0) { $0 + FrameItem.headerLength + $1.data.count }, into: &output)
    for item in items {
      writeItemHeader(item.id, length: checked(item.data.rawBytes), into: &output)
      output.write(item.data.rawBytes)
    }
  }

  private static func checked(_ field: RawSpan) -> Int { Int(UInt16(field.byteCount)) }
}

extension Push {
  /// Writes the notification as it was parsed, byte for byte.
  public func encode(into output: inout ByteWriter) {
    switch command {
    case .simple: BinaryFrame.encodeSimple(token: token, payload: payload, into: &output)
    case .enhanced:
      BinaryFrame.encodeEnhanced(
        identifier: identifier ?? 0, expiration: expiration ?? 0, token: token, payload: payload, into: &output)
    default: BinaryFrame.encodeFramed(items: items, into: &output)
    }
  }
}

/// Encoding for a caller that writes token and payload directly into the output. The caller states their lengths
/// beforehand, at most 65,535 each, and must write exactly as many bytes.
///
/// All of it is inlined, closures too: a load makes millions of notifications a second.
extension BinaryFrame {
  /// Writes a notification of command 1, or of command 0 without identifier and expiration.
  @inlinable @inline(always)
  package static func encodeUnframed(
    numbers: (identifier: UInt32, expiration: UInt32)?, tokenLength: Int, payloadLength: Int,
    into output: inout ByteWriter, token: (inout ByteWriter) -> Void, payload: (inout ByteWriter) -> Void
  ) {
    if let numbers {
      output.write(BinaryCommand.enhanced.rawValue)
      output.write(bigEndian: numbers.identifier)
      output.write(bigEndian: numbers.expiration)
    } else {
      output.write(BinaryCommand.simple.rawValue)
    }
    output.write(bigEndian: UInt16(truncatingIfNeeded: tokenLength))
    token(&output)
    output.write(bigEndian: UInt16(truncatingIfNeeded: payloadLength))
    payload(&output)
  }

  /// Writes a command-2 notification; an item that is `nil` is left out.
  @inlinable @inline(always)
  package static func encodeFramed(
    tokenLength: Int?, payloadLength: Int?, identifier: UInt32?, expiration: UInt32?, priority: UInt8?,
    into output: inout ByteWriter, token: (inout ByteWriter) -> Void, payload: (inout ByteWriter) -> Void
  ) {
    let header = FrameItem.headerLength
    var length = 0
    if let tokenLength { length += header + tokenLength }
    if let payloadLength { length += header + payloadLength }
    if identifier != nil { length += header + 4 }
    if expiration != nil { length += header + 4 }
    if priority != nil { length += header + 1 }
    writeFrameHeader(length: length, into: &output)
    if let tokenLength {
      writeItemHeader(.deviceToken, length: tokenLength, into: &output)
      token(&output)
    }
    if let payloadLength {
      writeItemHeader(.payload, length: payloadLength, into: &output)
      payload(&output)
    }
    if let identifier, let expiration, let priority {
      // The usual rest in three words instead of nine.
      output.write(bigEndian: 0x03_0004_0000_0000_04 | UInt64(identifier) << 8)
      output.write(bigEndian: 0x0004_0000_0000_05_00 | UInt64(expiration) << 16)
      output.write(bigEndian: 0x01_00 | UInt16(priority))
      return
    }
    if let identifier {
      writeItemHeader(.notificationIdentifier, length: 4, into: &output)
      output.write(bigEndian: identifier)
    }
    if let expiration {
      writeItemHeader(.expiration, length: 4, into: &output)
      output.write(bigEndian: expiration)
    }
    if let priority {
      writeItemHeader(.priority, length: 1, into: &output)
      output.write(priority)
    }
  }

  /// Writes the header of a command-2 frame whose items have the given total length.
  @inlinable @inline(always)
  package static func writeFrameHeader(length: Int, into output: inout ByteWriter) {
    output.write(BinaryCommand.framed.rawValue)
    output.write(bigEndian: UInt32(truncatingIfNeeded: length))
  }

  /// Writes the header of an item with data of the given length.
  @inlinable @inline(always)
  package static func writeItemHeader(_ id: FrameItem.Identifier, length: Int, into output: inout ByteWriter) {
    output.write(id.rawValue)
    output.write(bigEndian: UInt16(truncatingIfNeeded: length))
  }
}
