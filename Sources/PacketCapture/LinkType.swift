/// The format of a captured packet's first bytes: a LINKTYPE value as registered by the Tcpdump Group.
public struct LinkType: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: UInt16
  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// BSD loopback: a four-byte address family in the byte order of the capturing host.
  public static let null = LinkType(rawValue: 0)
  public static let ethernet = LinkType(rawValue: 1)
  public static let ppp = LinkType(rawValue: 9)
  public static let pppHDLC = LinkType(rawValue: 50)
  public static let pppEthernet = LinkType(rawValue: 51)
  /// Raw IP, version from the first nibble. 12 and 14 are the values some systems write for it.
  public static let raw = LinkType(rawValue: 101)
  /// OpenBSD loopback: the family in network order.
  public static let loop = LinkType(rawValue: 108)
  /// Linux "cooked" capture, `tcpdump -i any` of older days.
  public static let linuxSLL = LinkType(rawValue: 113)
  public static let ipv4 = LinkType(rawValue: 228)
  public static let ipv6 = LinkType(rawValue: 229)
  /// Linux netfilter log: the packet is one of a list of type-length-value entries.
  public static let nflog = LinkType(rawValue: 239)
  /// Data that Wireshark has exported, each with its addresses and ports in tags (`WIRESHARK_UPPER_PDU`).
  public static let exportedPDU = LinkType(rawValue: 252)
  public static let linuxSLL2 = LinkType(rawValue: 276)

  /// The name the registry gives it, without `LINKTYPE_`; the number for a type that is not read here.
  public var description: String {
    switch rawValue {
    case 0: "NULL"
    case 1: "EN10MB"
    case 9: "PPP"
    case 12, 14, 101: "RAW"
    case 50: "PPP_HDLC"
    case 51: "PPP_ETHER"
    case 108: "LOOP"
    case 113: "LINUX_SLL"
    case 228: "IPV4"
    case 229: "IPV6"
    case 239: "NFLOG"
    case 252: "WIRESHARK_UPPER_PDU"
    case 276: "LINUX_SLL2"
    default: "\(rawValue)"
    }
  }

  /// Whether `PacketDecoder` finds IP in it.
  public var isSupported: Bool { Int(description) == nil }
}

/// The link types of a file, the first few: a hostile one names all 65,536, over and over.
struct LinkTypeList {
  static let limit = 64

  private(set) var all: [LinkType] = []
  /// There were more than are listed.
  private(set) var isCut = false

  /// Takes one; those that it has are looked through, which are `limit` at most.
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
