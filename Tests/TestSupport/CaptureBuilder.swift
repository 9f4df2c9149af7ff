import Bytes

/// A pcap file made packet by packet: raw IPv4, one millisecond from packet to packet.
package struct CaptureBuilder {
  /// One TCP connection between 10.0.0.5, or another host, and 10.0.0.9.
  private struct Line {
    var clientHost: UInt8
    var clientPort: UInt16
    var serverPort: UInt16
    var clientNext: UInt32
    var serverNext: UInt32
  }

  package private(set) var bytes: [UInt8]
  package private(set) var packets = 0
  package var milliseconds = 0
  private var lines: [Line] = []

  package init() {
    bytes = written { output in
      output.write(bigEndian: UInt32(0xa1b2_c3d4))
      output.write(bigEndian: UInt32(0x0002_0004))
      output.write(bigEndian: UInt64(0))
      output.write(bigEndian: UInt32(262_144))
      output.write(bigEndian: UInt32(101))
    }
  }

  /// A connection; its SYN, SYN-ACK and ACK are recorded when `handshake`.
  package mutating func connect(
    from clientPort: UInt16 = 40_001, of clientHost: UInt8 = 5, to serverPort: UInt16 = 2195, handshake: Bool = true
  ) -> Int {
    let start = UInt32(lines.count + 1) &* 1_000_003
    lines.append(
      Line(
        clientHost: clientHost, clientPort: clientPort, serverPort: serverPort, clientNext: start,
        serverNext: start &+ 500_000))
    if handshake {
      packet(lines.count - 1, false, 0x02)
      packet(lines.count - 1, true, 0x12)
      packet(lines.count - 1, false, 0x10)
    }
    return lines.count - 1
  }

  package mutating func client(_ line: Int, _ data: [UInt8]) { packet(line, false, 0x18, data) }
  package mutating func server(_ line: Int, _ data: [UInt8]) { packet(line, true, 0x18, data) }
  package mutating func finish(_ line: Int, byServer: Bool = false) {
    packet(line, byServer, 0x11)
    packet(line, !byServer, 0x11)
  }
  /// One end has sent everything; the other may send on.
  package mutating func halfClose(_ line: Int, byServer: Bool = false) { packet(line, byServer, 0x11) }
  package mutating func reset(_ line: Int, byServer: Bool = false) { packet(line, byServer, 0x14) }

  /// The recording goes on for an hour before and after: a datagram of somebody else, which no record shows.
  package mutating func observe() {
    for milliseconds in [-3_600_000, milliseconds + 3_600_000] {
      packets += 1
      let time = 1_450_000_000_000 + milliseconds
      bytes += written { output in
        output.write(bigEndian: UInt32(time / 1_000))
        output.write(bigEndian: UInt32(time % 1_000 * 1_000))
        output.write(bigEndian: UInt32(28))
        output.write(bigEndian: UInt32(28))
        output.write(bigEndian: UInt32(0x4500_001c))
        output.write(bigEndian: UInt32(0))
        output.write(bigEndian: UInt32(0x4011_0000))
        output.write(bigEndian: UInt64(0x0a00_0063_0a00_0064))
        output.write(bigEndian: UInt64(0x0035_0035_0008_0000))
      }
    }
  }

  /// Bytes that were sent and not recorded.
  package mutating func lose(_ line: Int, _ count: Int, fromServer: Bool = false) {
    if fromServer { lines[line].serverNext &+= UInt32(count) } else { lines[line].clientNext &+= UInt32(count) }
  }

  private mutating func packet(_ number: Int, _ fromServer: Bool, _ flags: UInt8, _ data: [UInt8] = []) {
    let line = lines[number]
    let (sequence, acknowledged) =
      fromServer ? (line.serverNext, line.clientNext) : (line.clientNext, line.serverNext)
    milliseconds += 1
    packets += 1
    let time = milliseconds
    bytes += written { output in
      output.write(bigEndian: UInt32(1_450_000_000 + time / 1_000))
      output.write(bigEndian: UInt32(time % 1_000 * 1_000))
      output.write(bigEndian: UInt32(40 + data.count))
      output.write(bigEndian: UInt32(40 + data.count))
      output.write(bigEndian: UInt16(0x4500))
      output.write(bigEndian: UInt16(40 + data.count))
      output.write(bigEndian: UInt32(0))
      output.write(bigEndian: UInt32(0x4006_0000))
      let client = 0x0a00_0000 | UInt32(line.clientHost)
      output.write(bigEndian: UInt32(fromServer ? 0x0a00_0009 : client))
      output.write(bigEndian: UInt32(fromServer ? client : 0x0a00_0009))
      output.write(bigEndian: fromServer ? line.serverPort : line.clientPort)
      output.write(bigEndian: fromServer ? line.clientPort : line.serverPort)
      output.write(bigEndian: sequence)
      output.write(bigEndian: flags & 0x10 == 0 ? 0 : acknowledged)
      output.write(UInt8(0x50))
      output.write(flags)
      output.write(bigEndian: UInt16(0xffff))
      output.write(bigEndian: UInt32(0))
      output.write(data.rawBytes)
    }
    let advance = UInt32(data.count) + (flags & 0x03 != 0 ? 1 : 0)
    if fromServer { lines[number].serverNext &+= advance } else { lines[number].clientNext &+= advance }
  }
}

/// The bytes that are written.
package func written(_ body: (inout ByteWriter) -> Void) -> [UInt8] {
  var writer = ByteWriter(capacity: 256)
  body(&writer)
  return Array(copying: writer.bytes)
}
