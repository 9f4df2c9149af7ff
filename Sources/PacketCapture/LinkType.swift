/// The format of the first bytes of a captured packet: a LINKTYPE value as registered by the Tcpdump Group.
public struct LinkType: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt16
  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// BSD loopback: a four-byte address family in the byte order of the capturing host.
  public static let null = LinkType(rawValue: 0)
  /// Ethernet.
  public static let ethernet = LinkType(rawValue: 1)
  /// PPP, with or without address and control.
  public static let ppp = LinkType(rawValue: 9)
  /// PPP in HDLC-like framing (RFC 1662), or Cisco HDLC.
  public static let pppHDLC = LinkType(rawValue: 50)
  /// PPPoE session packets (RFC 2516).
  public static let pppEthernet = LinkType(rawValue: 51)
  /// Raw IP; its first four bits are the version. Some systems write 12 or 14 for it.
  public static let raw = LinkType(rawValue: 101)
  /// OpenBSD loopback: the address family in network byte order.
  public static let loop = LinkType(rawValue: 108)
  /// Linux cooked capture, version 1, as older versions of `tcpdump -i any` write it.
  public static let linuxSLL = LinkType(rawValue: 113)
  /// Raw IPv4.
  public static let ipv4 = LinkType(rawValue: 228)
  /// Raw IPv6.
  public static let ipv6 = LinkType(rawValue: 229)
  /// Linux netfilter log: the packet is one entry in a list of type-length-value entries.
  public static let nflog = LinkType(rawValue: 239)
  /// Data that Wireshark exported from packets ("Export PDUs to File").
  public static let exportedPDU = LinkType(rawValue: 252)
  /// Linux cooked capture, version 2, as `tcpdump -i any` writes it.
  public static let linuxSLL2 = LinkType(rawValue: 276)

  /// The registered name without `LINKTYPE_`; the number for a type that is not decoded.
  public var description: String { isSupported ? registeredName ?? "\(rawValue)" : "\(rawValue)" }

  /// Whether `PacketDecoder` decodes it.
  public var isSupported: Bool { self == .exportedPDU || Layer(linkType: self) != nil }

  /// The registered name without `LINKTYPE_`; `nil` for an unusual type.
  public var registeredName: String? {
    switch rawValue {
    case 12, 14: "RAW"
    case 147...162: rawValue == 149 ? "PKTAP" : "USER\(rawValue - 147)"
    default: Self.names[rawValue]
    }
  }

  /// Whether packets of the type are not from a network with IP.
  var hasNoIP: Bool {
    switch rawValue {
    case 177, 186, 187, 189, 190, 195, 201, 209, 210, 215, 220, 227, 230, 231, 237, 248, 249, 251, 253, 254, 255, 266,
      272, 278, 283, 292:
      true
    default: false
    }
  }

  private static let names: [UInt16: String] = [
    0: "NULL", 1: "EN10MB", 3: "AX25", 6: "IEEE802_5", 7: "ARCNET_BSD", 8: "SLIP", 9: "PPP", 10: "FDDI", 50: "PPP_HDLC",
    51: "PPP_ETHER", 99: "SYMANTEC_FIREWALL", 100: "ATM_RFC1483", 101: "RAW", 104: "C_HDLC", 105: "IEEE802_11",
    106: "ATM_CLIP", 107: "FRELAY", 108: "LOOP", 109: "ENC", 113: "LINUX_SLL", 114: "LTALK", 116: "IPFILTER",
    117: "PFLOG", 118: "CISCO_IOS", 119: "IEEE802_11_PRISM", 120: "IEEE802_11_AIRONET", 122: "IP_OVER_FC",
    123: "SUNATM", 127: "IEEE802_11_RADIOTAP", 129: "ARCNET_LINUX", 130: "JUNIPER_MLPPP", 131: "JUNIPER_MLFR",
    132: "JUNIPER_ES", 133: "JUNIPER_GGSN", 134: "JUNIPER_MFR", 135: "JUNIPER_ATM2", 136: "JUNIPER_SERVICES",
    137: "JUNIPER_ATM1", 138: "APPLE_IP_OVER_IEEE1394", 139: "MTP2_WITH_PHDR", 140: "MTP2", 141: "MTP3", 142: "SCCP",
    143: "DOCSIS", 144: "LINUX_IRDA", 163: "IEEE802_11_AVS", 164: "JUNIPER_MONITOR", 165: "BACNET_MS_TP",
    166: "PPP_PPPD", 167: "JUNIPER_PPPOE", 169: "GPRS_LLC", 170: "GPF_T", 171: "GPF_F", 172: "GCOM_T1E1",
    177: "LINUX_LAPD", 178: "JUNIPER_ETHER", 179: "JUNIPER_PPP", 180: "JUNIPER_FRELAY", 181: "JUNIPER_CHDLC",
    182: "MFR", 187: "BLUETOOTH_HCI_H4", 189: "USB_LINUX", 192: "PPI", 195: "IEEE802_15_4_WITHFCS", 196: "SITA",
    197: "ERF", 201: "BLUETOOTH_HCI_H4_WITH_PHDR", 203: "LAPD", 204: "PPP_WITH_DIR", 205: "C_HDLC_WITH_DIR",
    206: "FRELAY_WITH_DIR", 209: "IPMB_LINUX", 210: "FLEXRAY", 212: "LIN", 215: "IEEE802_15_4_NONASK_PHY",
    220: "USB_LINUX_MMAPPED", 224: "FC_2", 226: "IPNET", 227: "CAN_SOCKETCAN", 228: "IPV4", 229: "IPV6",
    230: "IEEE802_15_4_NOFCS", 231: "DBUS", 235: "DVB_CI", 237: "STANAG_5066_D_PDU", 239: "NFLOG",
    240: "NETANALYZER", 241: "NETANALYZER_TRANSPARENT", 242: "IPOIB", 243: "MPEG_2_TS", 246: "PFSYNC",
    247: "INFINIBAND", 248: "SCTP", 249: "USBPCAP", 251: "BLUETOOTH_LE_LL", 252: "WIRESHARK_UPPER_PDU", 253: "NETLINK",
    254: "BLUETOOTH_LINUX_MONITOR", 255: "BLUETOOTH_BREDR_BB", 256: "BLUETOOTH_LE_LL_WITH_PHDR", 258: "PKTAP",
    259: "EPON", 264: "ISO_14443", 266: "USB_DARWIN", 271: "VSOCK", 272: "NORDIC_BLE", 273: "DOCSIS31_XRA31",
    274: "ETHERNET_MPACKET", 275: "DISPLAYPORT_AUX", 276: "LINUX_SLL2", 278: "OPENVIZSLA", 279: "EBHSCR",
    281: "BROADCOM_TAG", 282: "DSA_TAG_BRCM_PREPEND", 283: "IEEE802_15_4_TAP", 284: "DSA_TAG_DSA",
    285: "DSA_TAG_EDSA", 290: "ATSC_ALP", 291: "ETW", 292: "Z_WAVE_SERIAL",
  ]
}

/// The first link types of a file: a hostile file may have all 65,536 of them, repeatedly.
struct LinkTypeList {
  static let limit = 64

  private(set) var all: [LinkType] = []
  /// Whether there were more than the listed ones.
  private(set) var isCut = false

  /// Adds a link type unless it is listed. The search is limited to `limit` entries.
  @inline(__always)
  mutating func add(_ linkType: LinkType) {
    if all.last != linkType { addSlowly(linkType) }
  }

  @inline(never)
  private mutating func addSlowly(_ linkType: LinkType) {
    guard !all.contains(linkType) else { return }
    if all.count < Self.limit { all.append(linkType) } else { isCut = true }
  }
}
