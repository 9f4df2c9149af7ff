import Bytes

/// A header, or a tag before one, that leads to a TCP segment: the table of what `PacketDecoder` decodes.
///
/// Each layer has a function that takes the bytes and the layer's place, and returns the next layer and its place.
/// Three tables map the values of fields to layers: `init(linkType:)`, `init(etherType:)` and `init(ipProtocol:)`. A
/// new layer needs a case, its function, its line in `read`, and its line in one of the tables.
enum Layer: UInt8, CaseIterable {
  // Link layers.
  case ethernet, null, linuxSLL, linuxSLL2, ppp, pppoe, nflog, cHDLC, frameRelay, pktap, pflog, enc, ipnet, slip
  case tokenRing, fddi, ipOverFC, firewire, llc
  // Wireless link layers.
  case radiotap, prism, avs, ppi, wlan
  // Tags between a link layer and its payload.
  case vlan, eTag, vnTag, ciscoMetaData, macsec, mpls, pbb, fabricPath, trill, nsh
  // Tunnels.
  case gre, erspan, erspan3, wccp, etherIP, vxlan, vxlanGPE, geneve, gtpU, ayiya, tzsp
  // The network layer and its payload.
  case ip, authentication, udp, tcp

  /// What follows a header.
  enum Step {
    case next(Layer)
    /// The header names a payload that is not decoded.
    case unread(UnreadProtocol)
    /// A fragment of a datagram, which begins at the place.
    case fragment(Fragment)
    /// Several frames in one, beginning at the place (802.11 A-MSDU).
    case aggregate
    /// The packet ends within a header, or the header contradicts itself.
    case incomplete
    /// A message of the protocol itself without a payload, such as a poll.
    case empty
  }

  struct Fragment {
    var identification: UInt32
    /// The offset of the fragment's bytes in the payload of the datagram.
    var offset: Int
    var isLast: Bool
    /// The protocol of the payload; in IPv6 only the first fragment has it.
    var nextHeader: UInt8
    var isV6: Bool
  }

  /// The extent of a layer in a packet, and the facts from the layers before it.
  struct Place {
    var start: Int
    /// The end of the layer on the wire. The captured bytes may end earlier, or later because of padding.
    var end: Int
    /// The addresses of the innermost IP header so far.
    var source = IPAddress(v4: 0)
    var destination = IPAddress(v4: 0)
    /// The number of tunnels so far.
    var depth = 0

    /// Moves the end forward, never back: an inner header cannot extend beyond the outer one.
    mutating func limit(to newEnd: Int) { if newEnd < end { end = newEnd } }
  }

  /// The settings of a decoder, which packets cannot tell.
  struct Settings {
    var maximumDepth = 16
    var vxlanPorts: [UInt16] = []
  }

  /// Decodes the layer at the place, and moves the place to what follows.
  ///
  /// Every step except `ip` moves the place by at least one byte, so that a walk ends.
  @inline(__always)
  func read(_ bytes: RawSpan, _ place: inout Place, _ settings: borrowing Settings) -> Step {
    switch self {
    case .ethernet: Self.ethernet(bytes, &place)
    case .ip: Self.ip(bytes, &place)
    case .vlan: Self.vlan(bytes, &place)
    // Decoded by `PacketDecoder` itself.
    case .tcp: .empty
    default: readRare(bytes, &place, settings)
    }
  }

  /// Like `read`, for the layers of uncommon packets: out of line, so that the common path stays short.
  @inline(never)
  private func readRare(_ bytes: RawSpan, _ place: inout Place, _ settings: borrowing Settings) -> Step {
    switch self {
    case .ethernet, .ip, .vlan, .tcp: .empty
    case .null: Self.step(over: 4, to: .ip, bytes, &place)
    case .linuxSLL: Self.linuxSLL(bytes, &place)
    case .linuxSLL2: Self.linuxSLL2(bytes, &place)
    case .ppp: Self.pointToPoint(bytes, &place)
    case .pppoe: Self.pppoe(bytes, &place)
    case .nflog: Self.nflog(bytes, &place)
    case .cHDLC: Self.cHDLC(bytes, &place)
    case .frameRelay: Self.frameRelay(bytes, &place)
    case .pktap: Self.pktap(bytes, &place)
    case .pflog: Self.pflog(bytes, &place)
    case .enc: Self.step(over: 12, to: .ip, bytes, &place)
    case .ipnet: Self.step(over: 24, to: .ip, bytes, &place)
    case .slip: Self.step(over: 16, to: .ip, bytes, &place)
    case .tokenRing: Self.tokenRing(bytes, &place)
    case .fddi: Self.step(over: 13, to: .llc, bytes, &place)
    case .ipOverFC: Self.step(over: 16, to: .llc, bytes, &place)
    case .firewire: Self.etherType(at: 16, bytes, &place)
    case .llc: Self.llc(bytes, &place)
    case .radiotap: Self.radiotap(bytes, &place)
    case .prism: Self.prism(bytes, &place)
    case .avs: Self.avs(bytes, &place)
    case .ppi: Self.ppi(bytes, &place)
    case .wlan: Self.wlan(bytes, &place)
    case .eTag, .ciscoMetaData: Self.etherType(at: 6, bytes, &place)
    case .vnTag: Self.etherType(at: 4, bytes, &place)
    case .macsec: Self.macsec(bytes, &place)
    case .mpls: Self.mpls(bytes, &place)
    case .pbb: Self.tunnel(over: 4, to: .ethernet, bytes, &place)
    case .fabricPath: Self.tunnel(over: 2, to: .ethernet, bytes, &place)
    case .trill: Self.trill(bytes, &place)
    case .nsh: Self.nsh(bytes, &place)
    case .gre: Self.gre(bytes, &place)
    case .erspan: Self.erspan(bytes, &place)
    case .erspan3: Self.erspan3(bytes, &place)
    case .wccp: Self.wccp(bytes, &place)
    case .etherIP: Self.step(over: 2, to: .ethernet, bytes, &place)
    case .vxlan: Self.vxlan(bytes, &place)
    case .vxlanGPE: Self.vxlanGPE(bytes, &place)
    case .geneve: Self.geneve(bytes, &place)
    case .gtpU: Self.gtpU(bytes, &place)
    case .ayiya: Self.ayiya(bytes, &place)
    case .tzsp: Self.tzsp(bytes, &place)
    case .authentication: Self.authentication(bytes, &place)
    case .udp: Self.udp(bytes, &place, settings.vxlanPorts)
    }
  }

  // MARK: the tables

  /// The outermost layer of packets with a link type; `nil` if it is not decoded.
  init?(linkType: LinkType) {
    switch linkType.rawValue {
    // The number of the address family differs between systems; the IP version does not.
    case 0, 108: self = .null
    case 1: self = .ethernet
    case 6: self = .tokenRing
    case 8: self = .slip
    case 9, 50, 166: self = .ppp
    case 10: self = .fddi
    case 12, 14, 101, 228, 229: self = .ip
    case 51: self = .pppoe
    case 100: self = .llc
    case 104: self = .cHDLC
    case 105: self = .wlan
    case 107: self = .frameRelay
    case 109: self = .enc
    case 113: self = .linuxSLL
    case 117: self = .pflog
    case 119: self = .prism
    case 122: self = .ipOverFC
    case 127: self = .radiotap
    case 138: self = .firewire
    // Link type 149 is for private use, and macOS wrote PKTAP with it for years. The header shows whether it is PKTAP.
    case 149, 258: self = .pktap
    case 163: self = .avs
    case 192: self = .ppi
    case 226: self = .ipnet
    case 239: self = .nflog
    case 276: self = .linuxSLL2
    default: return nil
    }
  }

  /// The layer of an EtherType; `nil` if it is not decoded.
  @inline(__always)
  init?(etherType: UInt16) {
    switch etherType {
    case 0x0800, 0x86dd: self = .ip
    case 0x8100, 0x88a8, 0x9100, 0x9200, 0x9300: self = .vlan
    default: self.init(rareEtherType: etherType)
    }
  }

  @inline(never)
  private init?(rareEtherType: UInt16) {
    switch rareEtherType {
    case 0x6558: self = .ethernet
    case 0x880b: self = .ppp
    case 0x8847, 0x8848: self = .mpls
    case 0x8864: self = .pppoe
    case 0x8870: self = .llc
    case 0x8903: self = .fabricPath
    case 0x8909: self = .ciscoMetaData
    case 0x8926: self = .vnTag
    case 0x893f: self = .eTag
    case 0x894f: self = .nsh
    case 0x88be: self = .erspan
    case 0x22eb: self = .erspan3
    case 0x22f3: self = .trill
    case 0x883e: self = .wccp
    case 0x88e5: self = .macsec
    case 0x88e7: self = .pbb
    default: return nil
    }
  }

  /// The layer of an IP protocol number; `nil` if it is not decoded.
  @inline(__always)
  init?(ipProtocol: UInt8) {
    switch ipProtocol {
    case 6: self = .tcp
    case 17: self = .udp
    case 4, 41, 94: self = .ip
    case 47: self = .gre
    case 51: self = .authentication
    case 97: self = .etherIP
    case 137: self = .mpls
    // SRv6 (RFC 8986): a frame.
    case 143: self = .ethernet
    default: return nil
    }
  }

  // MARK: steps

  /// The step to a layer after bytes that are skipped.
  static func step(over length: Int, to layer: Layer, _ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    return .next(layer)
  }

  /// Like `step`, for a header whose payload is a packet or a frame inside another.
  static func tunnel(over length: Int, to layer: Layer, _ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    place.depth += 1
    return .next(layer)
  }

  /// The step to the layer of the EtherType at an offset from here; the layer follows the EtherType.
  @inline(__always)
  static func etherType(at offset: Int, _ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + offset + 2 <= bytes.byteCount else { return .incomplete }
    let type = bytes.uint16(at: place.start + offset)
    place.start += offset + 2
    return announced(by: type, &place)
  }

  /// The layer of an EtherType, or of a length in its place (IEEE 802.3: up to 1500).
  @inline(__always)
  static func announced(by type: UInt16, _ place: inout Place) -> Step {
    guard let layer = Layer(etherType: type) else { return rarely(announced: type, &place) }
    return .next(layer)
  }

  @inline(never)
  private static func rarely(announced type: UInt16, _ place: inout Place) -> Step {
    guard type <= 1_500 else { return .unread(.etherType(type)) }
    // Padding follows the given length.
    if type > 0 { place.limit(to: place.start + Int(type)) }
    return .next(.llc)
  }
}
