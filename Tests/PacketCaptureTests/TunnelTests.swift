import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// Tunnels, tags and the link layers of other systems, alone and inside of each other.
struct TunnelTests {
  // MARK: layers

  typealias Wrap = @Sendable ([UInt8]) -> [UInt8]

  private static let tcp = PacketBuilder.tcp()
  static let ip = PacketBuilder.ipv4(tcp)
  static let ip6 = PacketBuilder.ipv6(tcp)
  static let frame = PacketBuilder.ethernet(ip)
  private static let frame6 = PacketBuilder.ethernet(ip6, type: [0x86, 0xdd])

  private static func u16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// A packet of the addresses of tunnels, so that those inside are seen to be others.
  private static func outer(_ payload: [UInt8], _ transport: UInt8) -> [UInt8] {
    var packet = PacketBuilder.ipv4(payload, transport: transport)
    packet.replaceSubrange(12..<20, with: [172, 31, 1, 4, 172, 31, 9, 9])
    return packet
  }

  private static func udp(_ payload: [UInt8], to port: Int, from source: Int = 49_152) -> [UInt8] {
    outer(u16(source) + u16(port) + u16(8 + payload.count) + [0, 0] + payload, 17)
  }

  private static func vxlan(_ frame: [UInt8]) -> [UInt8] { [8, 0, 0, 0, 0, 0, 42, 0] + frame }
  private static func gre(_ payload: [UInt8], type: Int, flags: Int = 0, fields: [UInt8] = []) -> [UInt8] {
    outer(u16(flags) + u16(type) + fields + payload, 47)
  }
  private static func gtp(_ payload: [UInt8], flags: UInt8 = 0x30, fields: [UInt8] = []) -> [UInt8] {
    udp([flags, 0xff] + u16(fields.count + payload.count) + [0, 0, 0, 7] + fields + payload, to: 2_152)
  }

  private static let erspan2: [UInt8] = [0x10, 1, 0x18, 5, 0, 0, 0, 0]
  private static func erspan3(_ last: Int) -> [UInt8] { [0x20, 1, 0, 5, 0, 0, 0, 1, 0, 0] + u16(last) }

  private static let tunnels: [(String, [UInt8])] = [
    ("VXLAN", udp(vxlan(frame), to: 4_789)), ("VXLAN of flannel", udp(vxlan(frame), to: 8_472)),
    ("VXLAN with IPv6 inside", udp(vxlan(frame6), to: 4_789)),
    ("VXLAN with a group policy", udp([0x88, 0, 0, 9, 0, 0, 1, 0] + frame, to: 4_789)),
    ("VXLAN with a VLAN inside", udp(vxlan(PacketBuilder.ethernet([0, 5, 8, 0] + ip, type: [0x81, 0])), to: 4_789)),
    ("VXLAN-GPE, IPv4", udp([0x0c, 0, 0, 1, 0, 0, 1, 0] + ip, to: 4_790)),
    ("VXLAN-GPE, IPv6", udp([0x0c, 0, 0, 2, 0, 0, 1, 0] + ip6, to: 4_790)),
    ("VXLAN-GPE, a frame", udp([0x0c, 0, 0, 3, 0, 0, 1, 0] + frame, to: 4_789)),
    (
      "VXLAN-GPE, NSH",
      udp([0x0c, 0, 0, 4, 0, 0, 1, 0] + [0, 0x46, 1, 3, 0, 0, 1, 255] + zeros(16) + frame, to: 4_790)
    ),
    ("Geneve, a frame", udp([0, 0, 0x65, 0x58, 0, 0, 77, 0] + frame, to: 6_081)),
    ("Geneve with options", udp([3, 0x40, 0x65, 0x58, 0, 0, 77, 0] + [1, 8, 1, 2] + zeros(8) + frame, to: 6_081)),
    ("Geneve, IPv4", udp([2, 0, 8, 0, 0, 0, 77, 0] + zeros(8) + ip, to: 6_081)),
    ("Geneve, IPv6", udp([0, 0, 0x86, 0xdd, 0, 0, 77, 0] + ip6, to: 6_081)),
    ("GRE", gre(ip, type: 0x0800)), ("GRE, IPv6", gre(ip6, type: 0x86dd)),
    ("GRE with a key", gre(ip, type: 0x0800, flags: 0x2000, fields: [0, 0, 0, 9])),
    ("GRE with all", gre(ip, type: 0x0800, flags: 0xb000, fields: zeros(12))),
    ("GRE with routes", gre(ip, type: 0x0800, flags: 0x4000, fields: zeros(4) + [0, 2, 0, 4, 1, 2, 3, 4] + zeros(4))),
    ("GRE, a frame", gre(frame, type: 0x6558, flags: 0x3000, fields: zeros(8))),
    ("GRE, MPLS", gre([0, 1, 1, 64] + ip, type: 0x8847)),
    ("GRE in UDP", udp([0, 0, 8, 0] + ip, to: 4_754)),
    ("GRE of PPTP", gre([0xff, 3, 0, 0x21] + ip, type: 0x880b, flags: 0x3081, fields: zeros(12))),
    ("WCCP", gre(ip, type: 0x883e)), ("WCCP 2", gre([0, 0, 0, 0] + ip, type: 0x883e)),
    ("ERSPAN I", gre(frame, type: 0x88be)),
    ("ERSPAN II", gre(erspan2 + frame, type: 0x88be, flags: 0x1000, fields: zeros(4))),
    ("ERSPAN III", gre(erspan3(0) + frame, type: 0x22eb, flags: 0x1000, fields: zeros(4))),
    ("ERSPAN III, own part", gre(erspan3(1) + zeros(8) + frame, type: 0x22eb, flags: 0x1000, fields: zeros(4))),
    ("ERSPAN III, IP", gre(erspan3(2 << 10) + ip, type: 0x22eb, flags: 0x1000, fields: zeros(4))),
    ("IPv4 in IPv4", outer(ip, 4)), ("IPv6 in IPv4", outer(ip6, 41)),
    ("IPv4 in IPv6", PacketBuilder.ipv6(ip, next: 4)), ("IPv6 in IPv6", PacketBuilder.ipv6(ip6, next: 41)),
    ("IPv4 in IPv6 with options", PacketBuilder.ipv6([4, 0, 4, 1, 4, 1, 1, 0] + ip, next: 60)),
    ("MPLS in IP", outer([0, 1, 1, 64] + ip, 137)), ("EtherIP", outer([0x30, 0] + frame, 97)),
    ("Ethernet in IPv6", PacketBuilder.ipv6(frame, next: 143)),
    ("authentication header", outer([6, 4] + zeros(22) + tcp, 51)),
    // An address as identity, and a signature of five words.
    ("AYIYA", udp([0x41, 0x52, 0x11, 41, 0, 0, 0, 1] + zeros(36) + ip6, to: 5_072)),
    ("GTP-U", gtp(ip)), ("GTP-U, IPv6", gtp(ip6)),
    ("GTP-U with a sequence number", gtp(ip, flags: 0x32, fields: [0, 1, 0, 0])),
    ("GTP-U with extensions", gtp(ip, flags: 0x34, fields: [0, 0, 0, 0x85, 1, 0, 9, 0x85, 1, 0, 9, 0])),
    ("GTP-U, a frame", gtp(frame)),
    ("MPLS in UDP", udp([0, 1, 1, 64] + ip, to: 6_635)),
    ("TZSP", udp([1, 0, 0, 1, 10, 1, 9, 0, 1] + frame, to: 37_008)),
    (
      "over IPv6", PacketBuilder.ipv6(u16(1) + u16(4_789) + u16(8 + 8 + frame.count) + [0, 0] + vxlan(frame), next: 17)
    ),
  ]

  private static func llc(_ payload: [UInt8], organisation: [UInt8] = [0, 0, 0], type: [UInt8] = [8, 0]) -> [UInt8] {
    [0xaa, 0xaa, 3] + organisation + type + payload
  }
  private static func ethernet8023(_ payload: [UInt8]) -> [UInt8] {
    PacketBuilder.ethernet(payload + [0xff, 0xff], type: u16(payload.count))
  }
  private static let qos: [UInt8] = [0x88, 1] + [UInt8](repeating: 0, count: 22) + [0, 0]
  private static let radiotap: [UInt8] = [0, 0, 18, 0, 0x03, 0, 0, 0] + zeros(8) + [0x10, 0]
  private static let pktap: [UInt8] = [108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0] + zeros(96)
  private static let hdlc: [UInt8] = [0x0f, 0, 8, 0]

  private static let tagged: [(String, [UInt8], [UInt8])] = [
    ("E-tag", [0x89, 0x3f], [0, 1, 0, 2, 0, 0, 8, 0] + ip), ("VN-tag", [0x89, 0x26], [0, 1, 0, 2, 8, 0] + ip),
    ("E-tag, VLAN", [0x89, 0x3f], [0, 1, 0, 2, 0, 0, 0x81, 0, 0, 5, 8, 0] + ip),
    ("PBB", [0x88, 0xe7], [0, 0, 1, 1] + frame),
    ("B-tag and PBB", [0x88, 0xa8], [0, 5, 0x88, 0xe7, 0, 0, 1, 1] + frame),
    ("PBB with a VLAN", [0x88, 0xe7], [0, 0, 1, 1] + PacketBuilder.ethernet([0, 5, 8, 0] + ip, type: [0x81, 0])),
    ("Cisco MetaData", [0x89, 0x09], [1, 1, 0, 1, 0, 9, 8, 0] + ip),
    ("MACsec in clear", [0x88, 0xe5], [0x20, 0, 0, 0, 0, 1] + zeros(8) + [8, 0] + ip + zeros(16)),
    ("Ethernet over MPLS", [0x88, 0x47], [0, 1, 1, 64] + frame),
    ("Ethernet over MPLS, address like IP", [0x88, 0x47], [0, 1, 1, 64, 0x4c] + frame[1...]),
    ("Ethernet over MPLS, control word", [0x88, 0x47], [0, 1, 1, 64, 0, 0, 0, 0] + frame),
    ("FabricPath", [0x89, 0x03], [0, 1] + frame), ("TRILL", [0x22, 0xf3], [0, 0x43, 0, 1, 0, 2] + zeros(4) + frame),
    ("NSH", [0x89, 0x4f], [0, 0x02, 2, 1, 0, 0, 1, 255] + ip), ("jumbo LLC", [0x88, 0x70], llc(ip)),
    ("VLAN and SNAP", [0x81, 0], [0, 5] + u16(llc(ip).count) + llc(ip)),
  ]

  private static let links: [(String, UInt16, [UInt8])] = [
    ("SNAP", 1, ethernet8023(llc(ip))), ("SNAP of 802.1H", 1, ethernet8023(llc(ip, organisation: [0, 0, 0xf8]))),
    ("SNAP, IPv6", 1, ethernet8023(llc(ip6, type: [0x86, 0xdd]))),
    ("SNAP, VLAN", 1, ethernet8023(llc([0, 5, 8, 0] + ip, type: [0x81, 0]))),
    ("LLC", 1, ethernet8023([6, 6, 3] + ip)),
    ("bridged", 1, ethernet8023(llc(frame, organisation: [0, 0x80, 0xc2], type: [0, 7]))),
    ("SLL, LLC", 113, zeros(14) + [0, 4] + llc(ip)),
    ("SLL of a GRE interface", 113, [0, 0, 3, 10] + zeros(10) + [8, 0] + ip),
    ("PKTAP", 258, pktap + frame), ("PKTAP of old", 149, pktap + frame),
    ("PKTAP, loopback", 258, pktap[..<8] + [0, 0, 0, 0] + pktap[12...] + [2, 0, 0, 0] + ip),
    ("PKTAP, raw", 258, pktap[..<8] + [12, 0, 0, 0] + pktap[12...] + ip6),
    ("PKTAP of a big-endian host", 258, [0, 0, 0, 108, 0, 0, 0, 1, 0, 0, 0, 1] + zeros(96) + frame),
    ("PFLOG", 117, [61, 2, 0, 0] + zeros(60) + ip), ("PFLOG of FreeBSD", 117, [69, 2, 0, 0] + zeros(68) + ip),
    ("PFLOG, IPv6", 117, [100, 24, 0, 0] + zeros(96) + ip6),
    ("ENC", 109, [2, 0, 0, 0] + zeros(8) + ip), ("ENC, IP in IP", 109, [2, 0, 0, 0] + zeros(8) + outer(ip, 4)),
    ("C_HDLC", 104, hdlc + ip), ("C_HDLC, MPLS", 104, [0x0f, 0, 0x88, 0x47, 0, 1, 1, 64] + ip6),
    ("C_HDLC, PPP", 104, [0xff, 3, 0, 0x21] + ip), ("IPNET", 226, [1, 2] + zeros(4) + u16(ip.count) + zeros(16) + ip),
    ("FRELAY", 107, [0x18, 0x41, 3, 0xcc] + ip), ("FRELAY, SNAP", 107, [0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0] + ip),
    ("FRELAY of Cisco", 107, [0x18, 0x41, 8, 0] + ip),
    ("FDDI", 10, [0x50] + zeros(12) + llc(ip)), ("token ring", 6, [0x10, 0x40] + zeros(12) + llc(ip)),
    ("token ring with a route", 6, [0x10, 0x40] + zeros(6) + [0x80] + zeros(5) + [6, 0, 1, 2, 3, 4] + llc(ip)),
    ("ATM", 100, llc(ip)), ("IP over FC", 122, zeros(16) + llc(ip)), ("FireWire", 138, zeros(16) + [8, 0] + ip),
    ("SLIP", 8, zeros(16) + ip), ("PPP of bridged frames", 9, [0xff, 3, 0, 0x31, 0, 1] + frame),
    ("802.11", 105, [8, 1] + zeros(22) + llc(ip)), ("802.11, four addresses", 105, [8, 3] + zeros(28) + llc(ip)),
    ("802.11, QoS", 105, qos + llc(ip)), ("802.11, QoS and HT", 105, [0x88, 0x81] + zeros(28) + llc(ip)),
    ("radiotap", 127, radiotap + qos + llc(ip) + zeros(4)),
    ("radiotap, padded", 127, [0, 0, 9, 0, 2, 0, 0, 0, 0x20] + qos + [0, 0] + llc(ip)),
    ("radiotap with more words", 127, [0, 0, 13, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0] + qos + llc(ip)),
    ("Prism", 119, [0, 0, 0, 0x44, 144, 0, 0, 0] + zeros(136) + qos + llc(ip)),
    ("AVS under Prism", 119, [0x80, 0x21, 0x10, 1, 0, 0, 0, 64] + zeros(56) + qos + llc(ip)),
    ("AVS", 163, [0x80, 0x21, 0x10, 1, 0, 0, 0, 64] + zeros(56) + qos + llc(ip)),
    ("PPI", 192, [0, 0, 8, 0, 105, 0, 0, 0] + qos + llc(ip)), ("PPI, Ethernet", 192, [0, 0, 8, 0, 1, 0, 0, 0] + frame),
  ]

  static let packets: [(String, LinkType, [UInt8])] =
    tunnels.map { ($0.0, .raw, $0.1) } + tagged.map { ($0.0, .ethernet, PacketBuilder.ethernet($0.2, type: $0.1)) }
    + links.map { ($0.0, LinkType(rawValue: $0.1), $0.2) }

  private static let v4 = Decoded.Segment(
    source: "10.0.0.1:50000", destination: "17.0.0.1:2195", payloadLength: 12, payload: PacketBuilder.data)
  private static let v6 = Decoded.Segment(
    source: "[fe80::1]:50000", destination: "[fe80::2]:2195", payloadLength: 12, payload: PacketBuilder.data)

  @Test("The segment inside is found", arguments: packets) func segmentInsideIsFound(
    name: String, linkType: LinkType, bytes: [UInt8]
  ) {
    let decoded = Decoded(bytes, linkType)
    #expect(decoded.segments == [Self.v4] || decoded.segments == [Self.v6] || name == "authentication header")
    #expect(decoded.segments.count == 1 && decoded.text == "notification")
    #expect(decoded.unread == [])
    #expect(linkType.isSupported)
  }

  @Test("Every prefix is read or left", arguments: packets) func everyPrefixIsReadOrLeft(
    name: String, linkType: LinkType, bytes: [UInt8]
  ) {
    for end in 0..<bytes.count {
      for segment in Decoded(Array(bytes[..<end]), linkType, originalLength: bytes.count).segments {
        #expect(segment.payloadLength == 12)
        #expect(segment.payload == Array(PacketBuilder.data.prefix(segment.payload.count)))
      }
      for segment in Decoded(Array(bytes[..<end]), linkType).segments { #expect(segment.payload.count <= 12) }
    }
  }

  @Test("Every byte may be any", arguments: packets) func everyByteMayBeAny(
    name: String, linkType: LinkType, bytes: [UInt8]
  ) {
    for place in bytes.indices {
      for value: UInt8 in [0, 1, 4, 0x0f, 0x40, 0x45, 0x60, 0x7f, 0x80, 0xff] {
        var damaged = bytes
        damaged[place] = value
        for segment in Decoded(damaged, linkType).segments { #expect(segment.payload.count <= segment.payloadLength) }
      }
    }
  }

  // MARK: depth

  /// Any layer that has a packet of IP inside, around another.
  private static let wraps: [Wrap] = [
    { udp(vxlan(PacketBuilder.ethernet($0)), to: 4_789) },
    { udp([2, 0, 8, 0, 0, 0, 77, 0] + zeros(8) + $0, to: 6_081) },
    { gre($0, type: 0x0800, flags: 0x2000, fields: zeros(4)) }, { outer($0, 4) }, { gtp($0) },
    { gre(erspan2 + PacketBuilder.ethernet($0), type: 0x88be, flags: 0x1000, fields: zeros(4)) },
    { PacketBuilder.ipv6($0, next: 4) },
  ]

  @Test("Tunnels in tunnels are read to a depth, and no further", arguments: seeds(30, of: 500))
  func depth(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let depth = random.number(1...9)
    var bytes = Self.ip
    var isV6 = false
    for _ in 0..<depth {
      // What is inside of most is announced as IPv4.
      if isV6 {
        bytes = PacketBuilder.ethernet(bytes, type: [0x86, 0xdd])
        bytes = Self.udp(Self.vxlan(bytes), to: 4_789)
        isV6 = false
      } else {
        let which = random.number(0...Self.wraps.count - 1)
        bytes = Self.wraps[which](bytes)
        isV6 = which == Self.wraps.count - 1
      }
    }
    var options = CaptureOptions()
    for limit in 1...9 {
      options.maximumEncapsulation = limit
      let decoded = Decoded(bytes, .raw, options: options)
      #expect(decoded.text == (limit >= depth ? "notification" : nil), "\(depth) tunnels, \(limit) read")
      #expect(decoded.unread == (limit >= depth ? [] : [.tooDeep]))
    }
  }

  @Test("A tunnel whose packets are fragments is put together") func fragments() {
    let whole = Array(Self.udp(Self.vxlan(Self.frame), to: 4_789)[20...])
    for isSwapped in [false, true] {
      var decoded = Decoded()
      let pieces = [
        PacketBuilder.ipv4(Array(whole[..<48]), fragment: 0x2000, transport: 17),
        PacketBuilder.ipv4(Array(whole[48...]), fragment: 6, transport: 17),
      ]
      for piece in isSwapped ? pieces.reversed() : pieces { decoded.add(piece, .raw) }
      #expect(decoded.segments == [Self.v4] && decoded.unread == [])
    }
    // With IPv6 outside, and fragments inside as well.
    var decoded = Decoded()
    let inner = [(0, 16, UInt16(0x2000)), (16, Self.tcp.count, 2)].map {
      PacketBuilder.ipv4(Array(Self.tcp[$0.0..<$0.1]), fragment: $0.2)
    }
    for (number, packet) in inner.enumerated() {
      for (start, end) in [(16, packet.count), (0, 16)] {
        let header = PacketBuilder.fragmentHeader(
          next: 4, offset: start, more: end < packet.count, identification: UInt32(number))
        decoded.add(PacketBuilder.ipv6(header + packet[start..<end], next: 44), .raw)
      }
    }
    #expect(decoded.segments == [Self.v4])
  }

  @Test("Datagrams of two protocols have the same identification") func fragmentsOfProtocols() {
    var decoded = Decoded()
    decoded.add(PacketBuilder.ipv4(Array(Self.tcp[..<16]), fragment: 0x2000), .raw)
    decoded.add(PacketBuilder.ipv4(Self.zeros(16), fragment: 0x2000, transport: 17), .raw)
    decoded.add(PacketBuilder.ipv4(Array(Self.tcp[16...]), fragment: 2), .raw)
    #expect(decoded.segments == [Self.v4])
  }

  @Test("Each frame of a wireless aggregate is read") func aggregate() {
    func part(_ contents: [UInt8]) -> [UInt8] {
      let part = Self.zeros(12) + Self.u16(contents.count) + contents
      return part + Self.zeros((4 - part.count % 4) % 4)
    }
    let header: [UInt8] = [0x88, 1] + Self.zeros(22) + [0x80, 0]
    let bytes = header + part(Self.llc(Self.ip)) + part(Self.llc(Self.ip6, type: [0x86, 0xdd]))
    #expect(Decoded(bytes, LinkType(rawValue: 105)).segments == [Self.v4, Self.v6])
    for end in 0..<bytes.count { #expect(Decoded(Array(bytes[..<end]), LinkType(rawValue: 105)).segments.count <= 2) }
  }

  @Test("A port that is told carries VXLAN") func vxlanPort() {
    let bytes = Self.udp(Self.vxlan(Self.frame), to: 5_000)
    #expect(Decoded(bytes, .raw).unread == [.perhapsVXLAN(5_000)])
    var options = CaptureOptions()
    options.vxlanPorts = [6_000, 5_000]
    #expect(Decoded(bytes, .raw, options: options).segments == [Self.v4])
  }

  // MARK: what is not read

  private static let unread: [(LinkType, [UInt8], UnreadProtocol, String)] = [
    (.raw, outer(zeros(40), 50), .ipProtocol(50), "ESP (IP protocol 50)"),
    (.raw, outer(zeros(40), 200), .ipProtocol(200), "IP protocol 200"),
    (.ethernet, PacketBuilder.ethernet(zeros(40), type: [0x12, 0x34]), .etherType(0x1234), "EtherType 0x1234"),
    (
      .ethernet, PacketBuilder.ethernet([0x2c] + zeros(40), type: [0x88, 0xe5]), .etherType(0x88e5),
      "MACsec (EtherType 0x88e5)"
    ),
    (LinkType(rawValue: 189), zeros(40), .linkType(LinkType(rawValue: 189)), "USB_LINUX (link type 189)"),
    (
      LinkType(rawValue: 258), pktap[..<8] + [250, 0, 0, 0] + pktap[12...] + zeros(40),
      .linkType(LinkType(rawValue: 250)), "link type 250"
    ),
    (.ppp, [0xff, 3, 0, 0xfd] + zeros(40), .pppProtocol(0xfd), "compressed (PPP protocol 0x00fd)"),
    (.raw, udp(zeros(40), to: 5_247), .udpPort(5_247), "CAPWAP (UDP port 5247)"),
    (LinkType(rawValue: 105), [8, 0x41] + zeros(40), .encryptedWireless, "encrypted 802.11 data"),
  ]

  @Test("What may hold TCP and is not read is named by name and number", arguments: unread)
  func namedByNameAndNumber(linkType: LinkType, bytes: [UInt8], content: UnreadProtocol, text: String) {
    #expect(Decoded(bytes, linkType).unread == [content])
    #expect("\(content)" == text)
    #expect(content.mayHideTCP && content.wayOut != nil)
  }

  @Test("What holds no TCP is not said to") func plain() {
    let packets: [(LinkType, [UInt8], UnreadProtocol)] = [
      (.raw, Self.outer(Self.zeros(40), 1), .ipProtocol(1)), (.raw, Self.udp(Self.zeros(40), to: 53), .ipProtocol(17)),
      (.ethernet, PacketBuilder.ethernet(Self.zeros(28), type: [8, 6]), .etherType(0x0806)),
      (.ethernet, Self.ethernet8023([0x42, 0x42, 3] + Self.zeros(35)), .llc(0x42)),
      (.ethernet, Self.ethernet8023(Self.llc([], organisation: [0, 0, 12], type: [0x20, 0])), .snap(12, 0x2000)),
      (LinkType(rawValue: 105), [0x80, 0] + Self.zeros(40), .nothing),
      (.ppp, [0xff, 3, 0xc0, 0x21], .pppProtocol(0xc021)),
      (.ethernet, Self.zeros(10), .incomplete),
    ]
    for (linkType, bytes, content) in packets {
      #expect(Decoded(bytes, linkType).unread == [content])
      #expect(!content.mayHideTCP && content.wayOut == nil, "\(content)")
    }
  }

  @Test("Of thousands of protocols some are counted apart, and all are counted") func bounded() {
    var traffic = UnreadTraffic()
    for number in 0..<1_000 { traffic.note(.etherType(UInt16(0x3000 + number)), packet: number + 1) }
    for _ in 0..<5 { traffic.note(.ipProtocol(17), packet: 2_000) }
    traffic.note(.etherType(0x3002), packet: 3_000)
    #expect(traffic.rows.count == 64 && traffic.hidingPackets == 1_001)
    #expect(traffic.furtherPackets == 941 && traffic.furtherHiding == 936)
    let texts = traffic.descriptions(all: false)
    #expect(texts.first?.hasPrefix("2 packets, from packet 3 on: EtherType 0x3002; ") == true)
    #expect(texts.count == 9 && texts.last == "992 further packets")
  }

  // MARK: mirrors

  /// What a capture holds when each packet of IP is read as it is, and copies of it in tunnels.
  private static func streams(of capture: String, copies: Int, delay: Int64) throws -> StreamLog {
    let input = try CaptureInput.open(OwnTraces.folder + "/" + capture, options: CaptureOptions())
    guard case .packets(var file) = consume input else { return StreamLog() }
    var (decoder, reassembler, log) = (PacketDecoder(), TCPReassembler(), StreamLog())
    try file.forEachPacket { packet, bytes, _ in
      for copy in 0...copies {
        var packet = packet
        var copied = Array(copying: bytes)
        if packet.time.isKnown { packet.time = Timestamp(nanoseconds: packet.time.nanoseconds + Int64(copy) * delay) }
        if copy > 0, packet.linkType == .ethernet {
          copied = copy == 1 ? udp(vxlan(copied), to: 4_789) : gre(copied, type: 0x6558)
          let around = copied.count - packet.capturedLength
          // The packet around has the length that it had on the wire.
          copied.replaceSubrange(2..<4, with: [0, 0])
          if copy == 1 { copied.replaceSubrange(24..<26, with: [0, 0]) }
          (packet.originalLength, packet.capturedLength) = (packet.originalLength + around, copied.count)
          packet.linkType = .raw
        }
        decoder.decode(packet, copied.rawBytes) { segment, payload in
          reassembler.receive(segment, payload, time: packet.time, packet: packet.number) { log.consume($0, at: $1) }
        }
      }
      return true
    }
    reassembler.finish { log.consume($0, at: $1) }
    log.checkAllClosed()
    return log
  }

  private static func contents(_ log: StreamLog) -> [String] {
    log.connections.map {
      "\($0.ends.sorted()) \($0.low.bytes) \($0.low.gaps) \($0.high.bytes) \($0.high.gaps) "
        + "\($0.closings.map { "\($0)" }) \($0.conflicts.map { "\($0)" }) \($0.views.count)"
    }
  }

  @Test(
    "A packet that is mirrored once or twice, in tunnels beside it or without one, is one",
    arguments: OwnTraces.captures)
  func mirrors(capture: String) throws {
    let expected = Self.contents(try Self.streams(of: capture, copies: 0, delay: 0))
    for copies in 1...2 {
      let mirrored = try Self.streams(of: capture, copies: copies, delay: 40_000)
      #expect(Self.contents(mirrored) == expected)
      #expect(mirrored.violations == [])
    }
  }
}
