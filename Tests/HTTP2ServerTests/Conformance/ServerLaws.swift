import Bytes
import HTTP2
import HTTP2Server
import Testing

/// What holds for everything that a server writes, whatever its client does.
enum ServerLaws {
  /// The flags that each type of frame defines.
  private static let flags: [FrameType: UInt8] = [
    .data: 0x09, .headers: 0x2d, .reset: 0, .settings: 0x01, .ping: 0x01, .goAway: 0, .windowUpdate: 0,
    .continuation: 0x04,
  ]

  static func check(_ bytes: [UInt8]) {
    var (offset, last) = (0, UInt32.max)
    var (hasFailed, isFirst) = (false, true)
    while offset < bytes.count {
      guard let header = FrameHeader(parsing: bytes.rawBytes.extracting(offset..<bytes.count)),
        offset + header.frameLength <= bytes.count
      else {
        Issue.record("a frame that is cut at \(offset)")
        return
      }
      let payload = Array(bytes[(offset + FrameHeader.length)..<(offset + header.frameLength)])
      // 3.4: SETTINGS come first.
      if isFirst { #expect(header.type == .settings && !header.flags.contains(.acknowledgement)) }
      isFirst = false
      // 4.1: nothing is in reserved bits and undefined flags. 4.2: no frame is longer than any client reads.
      #expect(bytes[offset + 5] & 0x80 == 0)
      #expect(header.payloadLength <= 16_384)
      guard let defined = flags[header.type] else {
        // 5.3.2, 8.4: neither PRIORITY nor PUSH_PROMISE, and no other types.
        Issue.record("a frame of type \(header.type)")
        return
      }
      #expect(header.flags.rawValue & ~defined == 0, "\(header.type) with flags \(header.flags.rawValue)")
      // 5.1.1: a server that promises nothing has no streams of its own.
      #expect(header.stream == 0 || header.stream & 1 == 1)
      // 5.4.1: GOAWAY with an error is the last frame.
      #expect(!hasFailed, "a frame behind the last one")
      if header.type == .goAway {
        // 6.8: the last stream of a later GOAWAY is not a higher one.
        let stream = payload.rawBytes.uint32(at: 0)
        #expect(stream <= last)
        last = stream
        hasFailed = payload.rawBytes.uint32(at: 4) != 0
      }
      offset += header.frameLength
    }
  }
}
