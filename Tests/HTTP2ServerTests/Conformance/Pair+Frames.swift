import Bytes
import HTTP2
import HTTP2Server
import Testing

extension Pair {
  /// Sends one frame.
  func frame(_ type: FrameType, _ flags: FrameFlags = [], _ stream: UInt32 = 0, _ payload: [UInt8] = []) {
    send { $0.writeFrame(type, flags: flags, stream: stream, payload.rawBytes) }
  }

  /// Sends one frame of undefined flags, or with other bits.
  func raw(_ type: FrameType, flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
    frame(type, FrameFlags(rawValue: flags), stream, payload)
  }

  /// Sends HEADERS with exactly these fields.
  func headers(_ stream: UInt32, _ fields: [(String, String)], ends: Bool = true) {
    frame(.headers, ends ? [.endHeaders, .endStream] : .endHeaders, stream, block(fields))
  }

  /// Whether the latest event is a rule that the client has broken on a stream.
  var isMistakeTold: Bool {
    switch events.last {
    case .violated, .abandoned(_, _, by: .violation): true
    default: false
    }
  }

  /// The frames that the session has written.
  var frames: [(header: FrameHeader, payload: [UInt8])] {
    var (offset, frames) = (0, [(header: FrameHeader, payload: [UInt8])]())
    while let header = FrameHeader(parsing: written.rawBytes.extracting(offset..<written.count)) {
      frames.append((header, Array(written[(offset + FrameHeader.length)..<(offset + header.frameLength)])))
      offset += header.frameLength
    }
    return frames
  }

  func frames(_ type: FrameType) -> [(header: FrameHeader, payload: [UInt8])] {
    frames.filter { $0.header.type == type }
  }
}
