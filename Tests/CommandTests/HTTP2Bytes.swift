/// Frames of HTTP/2 by hand.
enum HTTP2Bytes {
  static let token = String(repeating: "0f", count: 32)
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + settings
  static let settings = frame(4, 0, 0)
  static let acknowledgement = frame(4, 1, 0)

  /// - Parameters:
  ///   - type: 0 DATA, 1 HEADERS, 4 SETTINGS.
  ///   - flags: 1 END_STREAM, or ACK; 4 END_HEADERS.
  static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
  }

  /// Literals that are never indexed (RFC 7541 section 6.2.3).
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    func text(_ text: String) -> [UInt8] {
      let count = text.utf8.count
      let length = count < 127 ? [UInt8(count)] : [127, UInt8((count - 127) & 127 | 128), UInt8((count - 127) >> 7)]
      return length + Array(text.utf8)
    }
    return fields.flatMap { [0x10] + text($0.0) + text($0.1) }
  }

  /// A notification with these fields besides its path.
  static func push(
    _ stream: UInt8, _ fields: [(String, String)], path: String = "/3/device/" + token,
    payload: [UInt8] = Array(#"{"aps":{"alert":"x"}}"#.utf8)
  ) -> [UInt8] {
    let target = [(":method", "POST"), (":scheme", "https"), (":path", path)]
    return frame(1, 4, stream, block(target + fields)) + frame(0, 1, stream, payload)
  }

  static func answer(_ stream: UInt8, _ status: String = "200") -> [UInt8] {
    frame(1, 5, stream, block([(":status", status)]))
  }
}
