import Testing

@testable import PacketCapture

/// Every link layer leads to the IP header.
struct LinkLayerTests {
  private static let ip = PacketBuilder.ipv4(PacketBuilder.tcp())
  private static let ip6 = PacketBuilder.ipv6(PacketBuilder.tcp())
  private static let zeros = [UInt8](repeating: 0, count: 20)
  private static let expected = Decoded.Segment(
    source: "10.0.0.1:50000", destination: "17.0.0.1:2195", payloadLength: 12, payload: PacketBuilder.data)

  /// PPPoE's header and PPP's protocol number, which its length counts.
  private static func session(_ length: UInt8) -> [UInt8] { [0x11, 0, 0, 9, 0, length, 0, 0x21] }

  private static let packets: [(String, LinkType, [UInt8])] = [
    ("Ethernet", .ethernet, PacketBuilder.ethernet(ip)),
    ("VLAN", .ethernet, PacketBuilder.ethernet([0, 5, 8, 0] + ip, type: [0x81, 0])),
    ("QinQ", .ethernet, PacketBuilder.ethernet([0, 5, 0x81, 0, 0, 6, 8, 0] + ip, type: [0x88, 0xa8])),
    ("QinQ of old", .ethernet, PacketBuilder.ethernet([0, 5, 0x81, 0, 0, 6, 8, 0] + ip, type: [0x91, 0])),
    ("MPLS", .ethernet, PacketBuilder.ethernet([0, 1, 0, 64, 0, 2, 1, 64] + ip, type: [0x88, 0x47])),
    ("PPPoE", .ethernet, PacketBuilder.ethernet(session(UInt8(ip.count + 2)) + ip, type: [0x88, 0x64])),
    ("PPPoE without a length", .ethernet, PacketBuilder.ethernet(session(0) + ip, type: [0x88, 0x64])),
    ("NULL", .null, [2, 0, 0, 0] + ip),
    ("LOOP", .loop, [0, 0, 0, 2] + ip),
    ("RAW", .raw, ip),
    ("RAW of BSD", LinkType(rawValue: 12), ip),
    ("RAW of OpenBSD", LinkType(rawValue: 14), ip),
    ("IPV4", .ipv4, ip),
    ("SLL", .linuxSLL, zeros[..<14] + [8, 0] + ip),
    ("SLL with VLAN", .linuxSLL, zeros[..<14] + [0x81, 0, 0, 5, 8, 0] + ip),
    ("SLL2", .linuxSLL2, [8, 0] + zeros[..<18] + ip),
    ("PPP", .ppp, [0xff, 3, 0, 0x21] + ip),
    ("PPP with compressed header", .ppp, [0x21] + ip),
    ("PPP without address", .ppp, [0, 0x21] + ip),
    ("PPP in HDLC", .pppHDLC, [0xff, 3, 0, 0x21] + ip),
    ("PPP_ETHER", .pppEthernet, session(UInt8(ip.count + 2)) + ip),
    ("NFLOG", .nflog, [2, 0, 0, 0] + [5, 0, 10, 0, 65, 0, 0, 0] + [UInt8(4 + ip.count), 0, 9, 0] + ip),
  ]

  @Test("The segment is found", arguments: packets) func theSegmentIsFound(
    name: String, linkType: LinkType, bytes: [UInt8]
  ) {
    #expect(Decoded(bytes, linkType).segments == [Self.expected])
    #expect(linkType.isSupported)
  }

  @Test("Every prefix is read or left", arguments: packets) func everyPrefixIsReadOrLeft(
    name: String, linkType: LinkType, bytes: [UInt8]
  ) {
    for end in 0..<bytes.count {
      // The packet had all its bytes on the wire: what is left of the payload is reported with its full length.
      let decoded = Decoded(Array(bytes[..<end]), linkType, originalLength: bytes.count)
      if end >= bytes.count - PacketBuilder.data.count { #expect(decoded.segments.count == 1) }
      for segment in decoded.segments {
        #expect(segment.payloadLength == 12)
        #expect(segment.payload == Array(PacketBuilder.data.prefix(segment.payload.count)))
        #expect(segment.payload.count == max(0, end - (bytes.count - 12)))
      }
      // And without a wire length that helps.
      for segment in Decoded(Array(bytes[..<end]), linkType).segments { #expect(segment.payload.count <= 12) }
    }
  }

  @Test("IPv6 is found where it is named or seen") func ipv6IsFoundWhereItIsNamedOrSeen() {
    let packets: [(LinkType, [UInt8])] = [
      (.ethernet, PacketBuilder.ethernet(Self.ip6, type: [0x86, 0xdd])), (.raw, Self.ip6), (.ipv6, Self.ip6),
      (.null, [30, 0, 0, 0] + Self.ip6), (.null, [0, 0, 0, 24] + Self.ip6), (.ppp, [0xff, 3, 0, 0x57] + Self.ip6),
      (.linuxSLL2, [0x86, 0xdd] + Self.zeros[..<18] + Self.ip6),
    ]
    for (linkType, bytes) in packets {
      let decoded = Decoded(bytes, linkType)
      #expect(decoded.text == "notification", "\(linkType)")
      #expect(decoded.segments.first?.source == "[fe80::1]:50000")
    }
  }

  @Test("Other protocols are left") func otherProtocolsAreLeft() {
    #expect(Decoded(PacketBuilder.ethernet(Self.ip, type: [0x08, 0x06])).segments.isEmpty)
    #expect(Decoded(Self.ip, LinkType(rawValue: 147)).segments.isEmpty)
    #expect(!LinkType(rawValue: 147).isSupported)
    #expect(Decoded([0xc0, 0x21] + Self.ip, .ppp).segments.isEmpty)
    #expect(Decoded(PacketBuilder.ipv4(PacketBuilder.tcp(), transport: 17), .raw).segments.isEmpty)
  }

  @Test("PPPoE padding is not payload even if the IP header counts it")
  func pppoePaddingIsNotPayloadEvenIfTheIPHeaderCountsIt() {
    let empty = PacketBuilder.ipv4(PacketBuilder.tcp([]), total: 46)
    let padded = Self.session(42) + empty + [UInt8](repeating: 0, count: 6)
    let packet = PacketBuilder.ethernet(padded, type: [0x88, 0x64])
    #expect(Decoded(packet).segments.map(\.payloadLength) == [0])
  }
}
