import Bytes

extension PushNotification {
  /// Writes a command-0 notification.
  ///
  /// Token and payload may hold at most 65,535 bytes each: the length fields have 16 bits. Longer ones trap.
  public static func encodeSimple(token: RawSpan, payload: RawSpan, into output: inout ByteWriter) {
    output.write(Command.simple.rawValue)
    output.write(bigEndian: UInt16(token.byteCount))
    output.write(token)
    output.write(bigEndian: UInt16(payload.byteCount))
    output.write(payload)
  }

  /// Writes a command-1 notification. Limits as for command 0.
  public static func encodeEnhanced(
    identifier: UInt32, expiration: UInt32, token: RawSpan, payload: RawSpan, into output: inout ByteWriter
  ) {
    output.write(Command.enhanced.rawValue)
    output.write(bigEndian: identifier)
    output.write(bigEndian: expiration)
    output.write(bigEndian: UInt16(token.byteCount))
    output.write(token)
    output.write(bigEndian: UInt16(payload.byteCount))
    output.write(payload)
  }

  /// Writes a command-2 notification with the items in the usual order 1, 2, 3, 4, 5; a `nil` item is left out.
  public static func encodeFramed(
    token: RawSpan, payload: RawSpan, identifier: UInt32?, expiration: UInt32?, priority: UInt8?,
    into output: inout ByteWriter
  ) {
    let length =
      3 + token.byteCount + 3 + payload.byteCount + (identifier == nil ? 0 : 7) + (expiration == nil ? 0 : 7)
      + (priority == nil ? 0 : 4)
    output.write(Command.framed.rawValue)
    output.write(bigEndian: UInt32(length))
    writeItemHeader(.deviceToken, token.byteCount, into: &output)
    output.write(token)
    writeItemHeader(.payload, payload.byteCount, into: &output)
    output.write(payload)
    if let identifier {
      writeItemHeader(.notificationIdentifier, 4, into: &output)
      output.write(bigEndian: identifier)
    }
    if let expiration {
      writeItemHeader(.expiration, 4, into: &output)
      output.write(bigEndian: expiration)
    }
    if let priority {
      writeItemHeader(.priority, 1, into: &output)
      output.write(priority)
    }
  }

  /// Writes a command-2 frame of any items in any order, unknown and repeated ones too.
  public static func encodeFramed(items: [FrameItem], into output: inout ByteWriter) {
    output.write(Command.framed.rawValue)
    output.write(bigEndian: UInt32(items.reduce(0) { $0 + 3 + $1.data.count }))
    for item in items {
      writeItemHeader(item.id, item.data.count, into: &output)
      output.write(item.data.rawBytes)
    }
  }

  private static func writeItemHeader(_ id: FrameItem.Identifier, _ length: Int, into output: inout ByteWriter) {
    output.write(id.rawValue)
    output.write(bigEndian: UInt16(length))
  }

  /// Writes this notification again as it was parsed, byte for byte.
  public func encode(into output: inout ByteWriter) {
    switch command {
    case .simple: Self.encodeSimple(token: token, payload: payload, into: &output)
    case .enhanced:
      Self.encodeEnhanced(
        identifier: identifier ?? 0, expiration: expiration ?? 0, token: token, payload: payload, into: &output)
    default: Self.encodeFramed(items: items, into: &output)
    }
  }
}
