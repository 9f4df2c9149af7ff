import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// Filter expressions are libpcap's, for every link type they meet.
struct PacketFilterTests {
  private static let segment = PacketBuilder.ipv4(PacketBuilder.tcp())

  private func matches(_ expression: String, _ bytes: [UInt8], _ linkType: LinkType) throws -> Bool {
    let packet = Packet(
      number: 1, time: .none, linkType: linkType, originalLength: bytes.count, capturedLength: bytes.count)
    return try PacketFilter(expression).matches(packet, bytes.rawBytes)
  }

  @Test(
    "Expressions choose packets",
    arguments: [
      ("tcp port 2195", true), ("tcp port 2196", false), ("host 10.0.0.1", true), ("host 10.0.0.2", false),
      ("src host 10.0.0.1 and dst port 2195", true), ("dst host 10.0.0.1", false), ("udp", false), ("ip", true),
      ("ip6", false), ("not tcp port 2195", false), ("", true),
    ])
  func expressionsChoosePackets(expression: String, isWanted: Bool) throws {
    #expect(try matches(expression, PacketBuilder.ethernet(Self.segment), .ethernet) == isWanted)
    #expect(try matches(expression, Self.segment, .raw) == isWanted)
    #expect(try matches(expression, Self.segment, LinkType(rawValue: 12)) == isWanted)
    #expect(try matches(expression, [UInt8](repeating: 0, count: 14) + [8, 0] + Self.segment, .linuxSLL) == isWanted)
    #expect(try matches(expression, [8, 0] + [UInt8](repeating: 0, count: 18) + Self.segment, .linuxSLL2) == isWanted)
    #expect(try matches(expression, [2, 0, 0, 0] + Self.segment, .null) == isWanted)
  }

  @Test("The length on the wire counts") func theLengthOnTheWireCounts() throws {
    let bytes = PacketBuilder.ethernet(Self.segment)
    let packet = Packet(number: 1, time: .none, linkType: .ethernet, originalLength: 1_000, capturedLength: bytes.count)
    #expect(try PacketFilter("greater 1000").matches(packet, bytes.rawBytes))
    #expect(try !PacketFilter("less 999").matches(packet, bytes.rawBytes))
  }

  @Test(
    "A bad expression is refused in libpcap's words",
    arguments: [("tcp prot 2195", "syntax error"), ("port banana", "banana"), ("(tcp", "syntax error")])
  func aBadExpressionIsRefusedInLibpcapsWords(expression: String, words: String) {
    #expect {
      try PacketFilter(expression)
    } throws: { error in
      guard let error = error as? CaptureError else { return false }
      return error.kind == .badFilter && error.message.contains(words) && error.message.contains(expression)
    }
  }

  @Test("An expression without meaning for a link type is refused there")
  func anExpressionWithoutMeaningForALinkTypeIsRefusedThere() throws {
    let filter = try PacketFilter("ether host 11:11:11:11:11:11")
    let bytes = PacketBuilder.ethernet(Self.segment)
    let packet = Packet(number: 1, time: .none, linkType: .raw, originalLength: 52, capturedLength: 52)
    #expect { try filter.matches(packet, bytes.rawBytes) } throws: { ($0 as? CaptureError)?.kind == .badFilter }
  }

  @Test("A filtered capture has the streams of its packets") func aFilteredCaptureHasTheStreamsOfItsPackets() throws {
    var file = PcapBuilder(linkType: 101)
    file.packet(Self.segment)
    file.packet(PacketBuilder.ipv6(PacketBuilder.tcp()))
    try withFile(file.bytes) { path in
      let contents = try CaptureContents(of: path, filter: PacketFilter("ip6"))
      #expect(contents.packets.map(\.number) == [2])
      #expect(contents.streams.connections.map { "\($0.flow.low)" } == ["[fe80::1]:50000"])
    }
  }
}
