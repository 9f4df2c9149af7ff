import Bytes

/// Frames are written to the end of a `ByteWriter`.
extension ByteWriter {
  /// The connection preface, which precedes the client's first frame (RFC 9113 section 3.4).
  package static let http2Preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// Writes the header of a frame, whose payload is to follow.
  public mutating func write(_ header: FrameHeader) {
    write(bigEndian: UInt32(truncatingIfNeeded: header.payloadLength) << 8 | UInt32(header.type.rawValue))
    write(header.flags.rawValue)
    write(bigEndian: header.stream)
  }

  /// Writes a frame.
  ///
  /// - Parameters:
  ///   - type: the type.
  ///   - flags: the flags.
  ///   - stream: the stream; 0 for the connection.
  ///   - payload: the payload, below 2²⁴ bytes.
  public mutating func writeFrame(_ type: FrameType, flags: FrameFlags = [], stream: UInt32 = 0, _ payload: RawSpan) {
    write(FrameHeader(type, flags: flags, stream: stream, payloadLength: payload.byteCount))
    write(payload)
  }

  /// Writes SETTINGS.
  public mutating func writeSettings(_ settings: [Setting]) {
    write(FrameHeader(.settings, payloadLength: settings.count * Setting.length))
    for setting in settings {
      write(bigEndian: setting.name.rawValue)
      write(bigEndian: setting.value)
    }
  }

  /// Writes an acknowledgement of SETTINGS.
  public mutating func writeSettingsAcknowledgement() { write(FrameHeader(.settings, flags: .acknowledgement)) }

  /// Writes RST_STREAM.
  public mutating func writeReset(_ code: ErrorCode, stream: UInt32) {
    write(FrameHeader(.reset, stream: stream, payloadLength: 4))
    write(bigEndian: code.rawValue)
  }

  /// Writes PING.
  public mutating func writePing(_ data: UInt64, isAcknowledgement: Bool = false) {
    write(FrameHeader(.ping, flags: isAcknowledgement ? .acknowledgement : [], payloadLength: 8))
    write(bigEndian: data)
  }

  /// Writes GOAWAY.
  ///
  /// - Parameters:
  ///   - lastStream: the highest stream that is or was processed.
  ///   - code: the reason.
  ///   - debugData: text for the other side's log.
  public mutating func writeGoAway(lastStream: UInt32, _ code: ErrorCode, debugData: [UInt8] = []) {
    write(FrameHeader(.goAway, payloadLength: 8 + debugData.count))
    write(bigEndian: lastStream)
    write(bigEndian: code.rawValue)
    write(debugData.rawBytes)
  }

  /// Writes WINDOW_UPDATE.
  public mutating func writeWindowUpdate(_ increment: UInt32, stream: UInt32 = 0) {
    write(FrameHeader(.windowUpdate, stream: stream, payloadLength: 4))
    write(bigEndian: increment)
  }
}
