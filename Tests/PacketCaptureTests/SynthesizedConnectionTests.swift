import Bytes
import TestSupport
import Testing

@testable import PacketCapture

@Suite("Synthesized connections")
struct SynthesizedConnectionTests {
  /// The fields of a packet, read by the layouts of RFC 791, RFC 8200 and RFC 9293.
  private struct Fields: Equatable {
    var sequence: UInt32
    var acknowledgement: UInt32
    var flags: UInt8
    var payload: [UInt8]
  }

  private static let client = Endpoint("10.1.2.3:40000")
  private static let server = Endpoint("10.9.8.7:2195")

  private func connection(number: Int = 1, clientBytes: Int = 0, serverBytes: Int = 0) throws -> SynthesizedConnection {
    SynthesizedConnection(
      number: number, client: try #require(Self.client), server: try #require(Self.server), clientBytes: clientBytes,
      serverBytes: serverBytes)
  }

  /// Words of 16 bits summed with carry: 0xffff over anything with its checksum.
  private func sum(_ bytes: [UInt8]) -> UInt32 {
    let padded = bytes + [UInt8](repeating: 0, count: bytes.count % 2)
    var sum: UInt32 = 0
    for index in stride(from: 0, to: padded.count, by: 2) {
      sum += UInt32(padded[index]) << 8 | UInt32(padded[index + 1])
      if sum > 0xffff { sum -= 0xffff }
    }
    return sum
  }

  private func fields(_ packet: [UInt8]) throws -> Fields {
    let isV4 = packet[0] >> 4 == 4
    let start = isV4 ? 20 : 40
    let segment = Array(packet[start...])
    let addresses = Array(isV4 ? packet[12..<20] : packet[8..<40])
    let length = [UInt8(segment.count >> 8), UInt8(segment.count & 255)]
    try #require(sum(addresses + [0, 6] + length + segment) == 0xffff)
    if isV4 {
      try #require(sum(Array(packet[..<20])) == 0xffff)
      try #require(Int(packet[2]) << 8 | Int(packet[3]) == packet.count)
    } else {
      try #require(Int(packet[4]) << 8 | Int(packet[5]) == segment.count)
    }
    let span = segment.rawBytes
    return Fields(
      sequence: span.uint32(at: 4), acknowledgement: span.uint32(at: 8), flags: segment[13],
      payload: Array(segment[(Int(segment[12] >> 4) * 4)...]))
  }

  @Test("A handshake, data of both ends and their FINs have the numbers that TCP gives them")
  func conversation() throws {
    var connection = try connection(number: 7, clientBytes: 5, serverBytes: 3)
    let handshake = try connection.handshake().map(fields)
    let (client, server) = (handshake[0].sequence, handshake[1].sequence)
    #expect(client != server)
    #expect(
      handshake == [
        Fields(sequence: client, acknowledgement: 0, flags: 0x02, payload: []),
        Fields(sequence: server, acknowledgement: client &+ 1, flags: 0x12, payload: []),
        Fields(sequence: client &+ 1, acknowledgement: server &+ 1, flags: 0x10, payload: []),
      ])
    let sent = try connection.data([1, 2, 3, 4, 5].rawBytes, at: 0, fromClient: true).map(fields)
    #expect(
      sent == [Fields(sequence: client &+ 1, acknowledgement: server &+ 1, flags: 0x18, payload: [1, 2, 3, 4, 5])])
    #expect(
      try fields(connection.closing(fromClient: true, isReset: false))
        == Fields(sequence: client &+ 6, acknowledgement: server &+ 1, flags: 0x11, payload: []))
    let answer = try connection.data([8, 8, 8].rawBytes, at: 0, fromClient: false).map(fields)
    // The FIN counts as one byte.
    #expect(answer == [Fields(sequence: server &+ 1, acknowledgement: client &+ 7, flags: 0x18, payload: [8, 8, 8])])
    #expect(
      try fields(connection.closing(fromClient: false, isReset: true))
        == Fields(sequence: server &+ 4, acknowledgement: client &+ 7, flags: 0x14, payload: []))
  }

  @Test("Bytes behind a gap are not acknowledged before it is filled, and a RST stands at the gap")
  func gap() throws {
    var connection = try connection(clientBytes: 9)
    let start = try fields(connection.handshake()[0]).sequence &+ 1
    func acknowledged() throws -> UInt32 {
      try fields(connection.closing(fromClient: false, isReset: true)).acknowledgement &- start
    }
    _ = connection.data([1, 2, 3].rawBytes, at: 6, fromClient: true)
    #expect(try acknowledged() == 0)
    _ = connection.data([1].rawBytes, at: 0, fromClient: true)
    #expect(try acknowledged() == 1)
    #expect(try fields(connection.closing(fromClient: true, isReset: true)).sequence == start &+ 1)
    _ = connection.closing(fromClient: true, isReset: false)
    #expect(try acknowledged() == 1)
    let last = try connection.data([2, 3, 4, 5, 6].rawBytes, at: 1, fromClient: true).map(fields)
    #expect(last.first?.sequence == start &+ 1)
    #expect(try acknowledged() == 10)
  }

  @Test("More than fits into a packet is sent in segments, the last of them pushed")
  func segments() throws {
    var connection = try connection(clientBytes: 200_000)
    let bytes = (0..<140_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let packets = connection.data(bytes.rawBytes, at: 60_000, fromClient: true)
    #expect(packets.map(\.count) == [65_535, 65_535, 9_050])
    let all = try packets.map(fields)
    #expect(all.flatMap(\.payload) == bytes && all.map(\.flags) == [0x10, 0x10, 0x18])
    #expect(all[1].sequence == all[0].sequence &+ 65_495 && all[2].sequence == all[1].sequence &+ 65_495)
    #expect(connection.data([UInt8]().rawBytes, at: 0, fromClient: true).isEmpty)
  }

  @Test("IPv6 has its own header, also when one end is of IPv4", arguments: ["[2001:db8::7]:40000", "10.1.2.3:40000"])
  func v6(client: String) throws {
    let ends = (try #require(Endpoint(client)), try #require(Endpoint("[2001:db8::1]:2195")))
    var connection = SynthesizedConnection(
      number: 1, client: ends.0, server: ends.1, clientBytes: 65_495, serverBytes: 0)
    let packet = connection.data([UInt8](repeating: 3, count: 65_495).rawBytes, at: 0, fromClient: true)[0]
    #expect(packet[0] == 0x60 && packet[6] == 6 && packet.count == 40 + 20 + 65_495)
    #expect(try fields(packet).payload.count == 65_495)
  }

  @Test("Later connections between the same ends have other sequence numbers")
  func numbers() throws {
    let initial = try (1...5_000).map { try fields(connection(number: $0).handshake()[0]).sequence }
    #expect(Set(initial).count == 5_000)
    // None is near the one before it, as the next byte of that connection would be.
    for (one, next) in zip(initial, initial.dropFirst()) {
      #expect(min(next &- one, one &- next) > 1 << 24)
    }
  }

  @Test("A connection that is written down and read again makes the same packets") func parsed() throws {
    var writer = ByteWriter()
    let (client, server) = (try #require(Self.client), try #require(Endpoint("[2001:db8::1]:2195")))
    SynthesizedConnection.write(client: client, server: server, clientBytes: 4, serverBytes: 6, into: &writer)
    #expect(writer.count == SynthesizedConnection.writtenLength)
    var one = SynthesizedConnection(number: 3, client: client, server: server, clientBytes: 4, serverBytes: 6)
    let read = SynthesizedConnection(number: 3, parsing: writer.bytes)
    var other = try #require(read)
    #expect(one.handshake() == other.handshake())
    for fromClient in [true, false] {
      #expect(
        one.closing(fromClient: fromClient, isReset: false) == other.closing(fromClient: fromClient, isReset: false))
    }
    let cut = SynthesizedConnection(number: 3, parsing: writer.bytes.extracting(0..<51))
    #expect(cut == nil)
  }
}
