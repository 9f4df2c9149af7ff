import Bytes

/// A pcap file of recorded conversations: raw IPv4 between 10.0.0.5 (client) and 10.0.0.9 (server), one millisecond from
/// packet to packet. A piece that was lost is simply not there; sequence numbers go on as if it had been.
public struct RecordingCapture: ~Copyable {
  public typealias Side = RecordedConversation.Side

  private var output = ByteWriter()
  private var milliseconds = 0

  public init() {
    output.write(bigEndian: UInt32(0xa1b2_c3d4))
    output.write(bigEndian: UInt32(0x0002_0004))
    output.write(bigEndian: UInt64(0))
    output.write(bigEndian: UInt32(262_144))
    output.write(bigEndian: UInt32(101))
  }

  /// The file so far.
  public var bytes: [UInt8] { [UInt8](copying: output.bytes) }

  /// A file of one conversation.
  public static func file(
    of recording: SegmentedRecording, clientPort: UInt16 = 40_001, serverPort: UInt16 = 2195, connects: Bool = true,
    finishes: Bool = true
  ) -> [UInt8] {
    var capture = RecordingCapture()
    capture.append(
      recording, clientPort: clientPort, serverPort: serverPort, connects: connects, finishes: finishes)
    return capture.bytes
  }

  /// Adds a conversation. With `connects` the TCP handshake was seen, with `finishes` the FINs of both sides.
  /// `firstSequence` is the client's first byte's; the server's is half a million more.
  public mutating func append(
    _ recording: SegmentedRecording, clientPort: UInt16 = 40_001, serverPort: UInt16 = 2195, connects: Bool = true,
    finishes: Bool = true, firstSequence: UInt32 = 1_000_003
  ) {
    var line = Line(clientPort: clientPort, serverPort: serverPort, firstSequence: firstSequence)
    if connects {
      packet(line, .client, offset: -1, flags: 0x02)
      packet(line, .server, offset: -1, flags: 0x12)
      packet(line, .client, offset: 0, flags: 0x10)
    }
    for piece in recording.pieces {
      // What an IPv4 packet cannot hold goes into several.
      for start in stride(from: piece.offset, to: piece.range.upperBound, by: 65_000) {
        let part = piece.part(start..<min(start + 65_000, piece.range.upperBound))
        packet(line, part.side, offset: part.offset, flags: 0x18, part.bytes)
        line.seen[part.side] = max(line.seen[part.side, default: 0], part.range.upperBound)
      }
    }
    guard finishes else { return }
    line.seen = recording.sent
    packet(line, .client, offset: recording.sent[.client, default: 0], flags: 0x11)
    line.seen[.client, default: 0] += 1
    packet(line, .server, offset: recording.sent[.server, default: 0], flags: 0x11)
    line.seen[.server, default: 0] += 1
    packet(line, .client, offset: recording.sent[.client, default: 0] + 1, flags: 0x10)
  }

  private struct Line {
    var clientPort: UInt16
    var serverPort: UInt16
    var firstSequence: UInt32
    /// How far each side's stream is known to the other.
    var seen: [Side: Int] = [:]

    func port(_ side: Side) -> UInt16 { side == .client ? clientPort : serverPort }

    func sequence(_ side: Side, _ offset: Int) -> UInt32 {
      firstSequence &+ (side == .client ? 0 : 500_000) &+ UInt32(truncatingIfNeeded: offset)
    }
  }

  private mutating func packet(_ line: Line, _ side: Side, offset: Int, flags: UInt8, _ data: [UInt8] = []) {
    milliseconds += 1
    let length = 40 + data.count
    output.write(bigEndian: UInt32(1_450_000_000 + milliseconds / 1_000))
    output.write(bigEndian: UInt32(milliseconds % 1_000 * 1_000))
    output.write(bigEndian: UInt32(length))
    output.write(bigEndian: UInt32(length))
    output.write(bigEndian: UInt16(0x4500))
    output.write(bigEndian: UInt16(length))
    output.write(bigEndian: UInt32(0))
    output.write(bigEndian: UInt32(0x4006_0000))
    output.write(bigEndian: UInt32(side == .client ? 0x0a00_0005 : 0x0a00_0009))
    output.write(bigEndian: UInt32(side == .client ? 0x0a00_0009 : 0x0a00_0005))
    output.write(bigEndian: line.port(side))
    output.write(bigEndian: line.port(side.peer))
    output.write(bigEndian: line.sequence(side, offset))
    output.write(bigEndian: flags & 0x10 == 0 ? 0 : line.sequence(side.peer, line.seen[side.peer, default: 0]))
    output.write(UInt8(0x50))
    output.write(flags)
    output.write(bigEndian: UInt16(0xffff))
    output.write(bigEndian: UInt32(0))
    output.write(data.rawBytes)
  }
}
