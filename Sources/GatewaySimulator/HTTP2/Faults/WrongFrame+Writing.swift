import Bytes
import HTTP2

extension ByteWriter {
  /// Writes a frame that no server may send.
  ///
  /// - Parameters:
  ///   - stream: that of the notification.
  ///   - highest: the highest stream that the client has opened.
  mutating func write(_ wrong: WrongFrame, stream: UInt32, highest: UInt32) {
    func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    func write(_ type: FrameType, _ flags: FrameFlags = [], on stream: UInt32 = 0, payload: [UInt8]) {
      writeFrame(type, flags: flags, stream: stream, payload.rawBytes)
    }
    // `:status 200`, from the static table.
    let success: [UInt8] = [0x88]
    switch wrong {
    case .unknownType: write(FrameType(rawValue: 0x42), on: stream, payload: zeros(4))
    case .longFrame: write(.data, on: stream, payload: zeros(16_385))
    // Streams are below 2³¹; a client that has used them all gets the highest.
    case .idleStream: write(.data, on: min(highest + 2, 0x7fff_ffff), payload: zeros(1))
    case .streamZero: write(.headers, [.endHeaders, .endStream], payload: success)
    case .padding: write(.data, .padded, on: stream, payload: [9, 0])
    case .settingsValue: writeSettings([Setting(.initialWindowSize, 0x8000_0000)])
    case .pushPromise: write(.pushPromise, .endHeaders, on: stream, payload: [0, 0, 0, 2, 0x82])
    case .pingLength: write(.ping, payload: zeros(7))
    case .windowZero: writeWindowUpdate(0)
    case .windowOverflow: for _ in 0..<2 { writeWindowUpdate(0x7fff_ffff) }
    case .continuation: write(.continuation, .endHeaders, on: stream, payload: success)
    case .secondAnswer: write(.headers, [.endHeaders, .endStream], on: stream, payload: success)
    // A field `x: 1`, and no other one.
    case .noStatus: write(.headers, [.endHeaders, .endStream], on: stream, payload: [0, 1, 0x78, 1, 0x31])
    // Index 126 of a table to which nothing was added.
    case .table: write(.headers, [.endHeaders, .endStream], on: stream, payload: [0xfe])
    case .upperCase: break
    }
  }
}
