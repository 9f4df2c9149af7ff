/// The reason why a packet has no decoded TCP segment: the field of its innermost header that names another payload.
public enum UnreadProtocol: Sendable, Hashable {
  /// A link type that is not decoded.
  case linkType(LinkType)
  /// An EtherType that is not decoded.
  case etherType(UInt16)
  /// A destination service access point (DSAP) of IEEE 802.2 LLC.
  case llc(UInt8)
  /// An organisation and its protocol, of IEEE 802.2 SNAP.
  case snap(UInt32, UInt16)
  /// An ISO network layer protocol identifier (NLPID), of Frame Relay.
  case nlpid(UInt8)
  /// A PPP protocol number.
  case pppProtocol(UInt16)
  /// An IP protocol number.
  case ipProtocol(UInt8)
  /// An IP version other than 4 and 6.
  case ipVersion(UInt8)
  /// A UDP port of a tunnel protocol.
  case udpPort(UInt16)
  /// A UDP port whose datagrams look like VXLAN.
  case perhapsVXLAN(UInt16)
  /// Encrypted data of 802.11.
  case encryptedWireless
  /// A fragment of an 802.11 frame.
  case fragmentedWireless
  /// A packet nested in more tunnels than are decoded (`CaptureOptions.maximumEncapsulation`).
  case tooDeep
  /// Headers that are truncated or contradict each other.
  case incomplete
  /// A protocol that is decoded, with a message that carries nothing.
  case nothing

  /// Whether the packet may contain TCP.
  public var mayHideTCP: Bool {
    switch self {
    case .linkType, .ipVersion, .udpPort, .perhapsVXLAN, .encryptedWireless, .fragmentedWireless, .tooDeep: true
    case .etherType(let type): Self.plainEtherTypes[type] == nil
    // Compressed or encrypted packets, and fragments. Numbers from 8000 on are control protocols of the link.
    case .pppProtocol(let number): number < 0x8000 && number != 0x0001
    case .ipProtocol(let number): Self.tunnels[number] != nil || number >= 146
    case .llc, .snap, .nlpid, .incomplete, .nothing: false
    }
  }

  /// The name of the protocol; `nil` if it is unknown.
  public var name: String? {
    switch self {
    case .linkType(let type): type.registeredName
    case .etherType(let type): Self.plainEtherTypes[type] ?? Self.etherTypes[type]
    case .llc(let point): Self.servicePoints[point & 0xfe]
    case .snap(let organisation, let type): organisation == 0x00000c ? Self.ciscoProtocols[type] ?? "Cisco" : nil
    case .pppProtocol(let number): Self.pppProtocols[number]
    case .ipProtocol(let number): Self.tunnels[number] ?? Self.plainProtocols[number]
    case .udpPort(let port): Self.tunnelPorts.first { $0.port == port }?.name
    case .perhapsVXLAN: "UDP in the form of VXLAN"
    case .encryptedWireless: "encrypted 802.11 data"
    case .fragmentedWireless: "fragments of 802.11 frames"
    case .tooDeep: "packets in more tunnels than are looked into"
    case .incomplete: "cut or damaged headers"
    case .nothing: "packets without contents of their protocol"
    case .nlpid, .ipVersion: nil
    }
  }

  /// The name with the field and its number: "ESP (IP protocol 50)".
  public var description: String {
    let field: String
    switch self {
    case .linkType(let type): field = "link type \(type.rawValue)"
    case .etherType(let type): field = "EtherType \(Self.hex(type, 4))"
    case .llc(let point): field = "LLC \(Self.hex(UInt16(point), 2))"
    case .snap(let organisation, let type):
      field = "SNAP \(Self.hex(organisation, 6)) \(Self.hex(type, 4))"
    case .nlpid(let number): field = "NLPID \(Self.hex(UInt16(number), 2))"
    case .pppProtocol(let number): field = "PPP protocol \(Self.hex(number, 4))"
    case .ipProtocol(let number): field = "IP protocol \(number)"
    case .ipVersion(let number): field = "IP version \(number)"
    case .udpPort(let port), .perhapsVXLAN(let port): field = "UDP port \(port)"
    case .encryptedWireless, .fragmentedWireless, .tooDeep, .incomplete, .nothing: return name ?? ""
    }
    return name.map { "\($0) (\(field))" } ?? field
  }

  /// Advice on how to read TCP in such packets; `nil` if there is nothing to do.
  public var wayOut: String? {
    switch self {
    case .linkType(let type):
      type.hasNoIP
        ? "record the network interface"
        : "'editcap -C BYTES -T ether' strips a header in front of Ethernet, with '-T rawip' in front of IP"
    case .etherType(0x88e5): "record behind MACsec, on its own interface"
    case .etherType, .ipVersion: mayHideTCP ? "'editcap -C OFFSET:BYTES' strips a header" : nil
    case .pppProtocol: mayHideTCP ? "record the ppp interface, where packets are whole and in clear" : nil
    case .ipProtocol(50), .udpPort(4_500): "record behind IPsec, or let Wireshark decrypt it"
    case .ipProtocol(108): "record behind the compression"
    case .ipProtocol: mayHideTCP ? "record behind the tunnel, or strip its header with 'editcap -C OFFSET:BYTES'" : nil
    case .udpPort(1_701): "record the interface inside of the tunnel"
    case .udpPort(5_246), .udpPort(5_247): "record behind the wireless controller"
    case .udpPort: "record the interface of the tunnel"
    case .perhapsVXLAN(let port): "--vxlan-port \(port) reads it"
    case .encryptedWireless: "decrypt it, e.g. with airdecap-ng, or record behind the access point"
    case .fragmentedWireless: "record behind the access point"
    case .tooDeep: "--max-encapsulation looks into more"
    case .llc, .snap, .nlpid, .incomplete, .nothing: nil
    }
  }

  private static func hex(_ number: some FixedWidthInteger, _ digits: Int) -> String {
    let text = String(number, radix: 16)
    return "0x" + String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  // MARK: names

  /// UDP ports of tunnels that are not decoded.
  private static let tunnelPorts: [(port: UInt16, name: String)] = [
    (1_701, "L2TP"), (4_500, "IPsec through NAT"), (5_246, "CAPWAP control"), (5_247, "CAPWAP"), (51_820, "WireGuard"),
    // Of these protocols one version is decoded, and in it the packets of users.
    (2_152, "GTP-U of another version"), (4_790, "VXLAN-GPE of another protocol"), (6_081, "Geneve of another version"),
    (37_008, "TZSP of another protocol"),
  ]

  static func isTunnel(port: UInt16) -> Bool {
    switch port {
    case 1_701, 4_500, 5_246, 5_247, 51_820: true
    default: false
    }
  }

  /// IP protocols that carry packets and are not decoded.
  private static let tunnels: [UInt8: String] = [
    47: "GRE of another version", 50: "ESP", 53: "SWIPE", 55: "MOBILE (minimal encapsulation)", 98: "ENCAP",
    99: "private encryption", 108: "IPComp", 115: "L2TPv3",
  ]

  private static let plainProtocols: [UInt8: String] = [
    1: "ICMP", 2: "IGMP", 17: "UDP", 33: "DCCP", 46: "RSVP", 58: "ICMPv6", 88: "EIGRP", 89: "OSPF", 103: "PIM",
    112: "VRRP", 132: "SCTP", 136: "UDPLite",
  ]

  /// EtherTypes that do not carry IP.
  private static let plainEtherTypes: [UInt16: String] = [
    0x0806: "ARP", 0x0842: "Wake-on-LAN", 0x22f0: "AVTP", 0x22ea: "MSRP", 0x6002: "MOP", 0x6003: "DECnet",
    0x8035: "RARP", 0x809b: "AppleTalk", 0x80f3: "AARP", 0x8137: "IPX", 0x8138: "IPX", 0x8808: "Ethernet flow control",
    0x8809: "LACP and other slow protocols", 0x8863: "PPPoE discovery", 0x888e: "EAPOL", 0x8892: "PROFINET",
    0x88a2: "ATA over Ethernet", 0x88a4: "EtherCAT", 0x88b8: "GOOSE", 0x88cc: "LLDP", 0x88d9: "LLTD",
    0x88e1: "HomePlug", 0x88f7: "PTP", 0x8902: "CFM", 0x8906: "FCoE", 0x8914: "FCoE initialization", 0x8915: "RoCE",
    0x892f: "HSR supervision", 0x9000: "Ethernet loopback", 0x2000: "CDP",
  ]

  private static let etherTypes: [UInt16: String] = [
    0x88e5: "MACsec", 0x88b5: "local experiment", 0x88b6: "local experiment", 0x88fb: "PRP", 0x892f: "HSR",
    0x8847: "MPLS", 0x88dc: "WSMP", 0x894f: "NSH of another protocol", 0x6559: "raw frame relay", 0x8103: "SLPP",
    0x8917: "802.21", 0x88ca: "TIPC", 0x4305: "batman-adv", 0xdada: "Ethernet DSA tag",
  ]

  private static let servicePoints: [UInt8: String] = [
    0x00: "null", 0x42: "STP", 0x80: "XNS", 0xaa: "SNAP", 0xe0: "IPX", 0xf0: "NetBIOS", 0xf4: "IBM management",
    0xfe: "ISO network layer, e.g. IS-IS",
  ]

  private static let ciscoProtocols: [UInt16: String] = [
    0x2000: "CDP", 0x2003: "VTP", 0x2004: "DTP", 0x0111: "UDLD", 0x010b: "PVST+", 0x0104: "PAgP",
  ]

  private static let pppProtocols: [UInt16: String] = [
    0x002d: "compressed TCP/IP (Van Jacobson)", 0x002f: "TCP/IP beside compressed (Van Jacobson)", 0x003d: "multilink",
    0x0053: "encrypted", 0x00fb: "compressed multilink", 0x00fd: "compressed", 0x8021: "IPCP", 0x8057: "IPv6CP",
    0x80fd: "CCP", 0xc021: "LCP", 0xc023: "PAP", 0xc025: "LQR", 0xc223: "CHAP",
  ]
}

extension UnreadProtocol: CustomStringConvertible {}
