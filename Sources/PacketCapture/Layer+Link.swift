import Bytes

/// Link layers: the framing of a packet on its medium, and the pseudo headers that capturing systems write instead.
extension Layer {
  /// Ethernet: `destination 6 | source 6 | EtherType or length u16`
  @inline(__always)
  static func ethernet(_ bytes: RawSpan, _ place: inout Place) -> Step { etherType(at: 12, bytes, &place) }

  /// Linux cooked capture: `type u16 | hardware u16 | address length u16 | address 8 | protocol u16`. The protocol is
  /// an EtherType, or 1 for 802.3 without LLC, or 4 for 802.2.
  static func linuxSLL(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 16 <= bytes.byteCount else { return .incomplete }
    let hardware = bytes.uint16(at: place.start + 2)
    let type = bytes.uint16(at: place.start + 14)
    place.start += 16
    return cooked(type, hardware: hardware, &place)
  }

  /// Linux cooked capture, version 2: `protocol u16 | 0 u16 | interface u32 | hardware u16 | type u8 | address length
  /// u8 | address 8`
  static func linuxSLL2(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 20 <= bytes.byteCount else { return .incomplete }
    let type = bytes.uint16(at: place.start)
    let hardware = bytes.uint16(at: place.start + 8)
    place.start += 20
    return cooked(type, hardware: hardware, &place)
  }

  private static func cooked(_ type: UInt16, hardware: UInt16, _ place: inout Place) -> Step {
    switch (type, hardware) {
    // On a tunnel interface the protocol is that of the payload (hardware type 778: GRE over IP, 823: GRE over IPv6).
    case (4, _): .next(.llc)
    // 802.11 with a radiotap header, on a wireless interface in monitor mode.
    case (_, 803): .next(.radiotap)
    case (_, 801): .next(.wlan)
    case (0...1_500, _): .unread(.etherType(type))
    default: announced(by: type, &place)
    }
  }

  /// PPPoE: `version/type u8 | code u8 | session u16 | length u16 | PPP…`. The length excludes padding, even if the
  /// length of an IP header in the payload includes it.
  static func pppoe(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 6 <= bytes.byteCount else { return .incomplete }
    let length = Int(bytes.uint16(at: place.start + 4))
    place.start += 6
    // 0: filled in later by the network card, as in IPv4.
    if length > 0 { place.limit(to: place.start + length) }
    return .next(.ppp)
  }

  /// PPP: `ff 03` unless address and control are compressed, then a protocol number of two bytes, or of one byte if it
  /// is compressed.
  static func pointToPoint(_ bytes: RawSpan, _ place: inout Place) -> Step {
    var start = place.start
    if start + 2 <= bytes.byteCount, bytes.uint16(at: start) == 0xff03 { start += 2 }
    guard start + 2 <= bytes.byteCount else { return .incomplete }
    let first = bytes.byte(at: start)
    let isShort = first & 1 == 1
    place.start = start + (isShort ? 1 : 2)
    switch isShort ? UInt16(first) : bytes.uint16(at: start) {
    case 0x0021, 0x0057: return .next(.ip)
    case 0x0281, 0x0283: return .next(.mpls)
    // Bridged frames (RFC 3518): flags, MAC type 1, then the frame.
    case 0x0031: return step(over: 2, to: .ethernet, bytes, &place)
    case let other: return .unread(.pppProtocol(other))
    }
  }

  /// NFLOG: four bytes, then `length u16 | type u16 | value` in the capturing host's byte order; type 9 is the packet.
  static func nflog(_ bytes: RawSpan, _ place: inout Place) -> Step {
    var offset = place.start + 4
    while offset + 4 <= bytes.byteCount {
      let length = Int(bytes.uint16(at: offset, bigEndian: false))
      guard length >= 4 else { return .incomplete }
      if bytes.uint16(at: offset + 2, bigEndian: false) & 0x7fff == 9 {
        place.start = offset + 4
        return .next(.ip)
      }
      offset += (length + 3) & ~3
    }
    return .incomplete
  }

  /// Cisco HDLC: `address u8 (0f unicast, 8f multicast) | 0 u8 | EtherType u16`. A router may run PPP on the line
  /// instead.
  static func cHDLC(_ bytes: RawSpan, _ place: inout Place) -> Step {
    if place.start + 2 <= bytes.byteCount, bytes.uint16(at: place.start) == 0xff03 {
      return pointToPoint(bytes, &place)
    }
    return etherType(at: 2, bytes, &place)
  }

  /// Frame Relay: an address of two to four bytes, whose last bit is 1. Then, in RFC 2427, `03`, an optional pad of 0,
  /// and the NLPID of the payload; in Cisco's encapsulation, an EtherType.
  static func frameRelay(_ bytes: RawSpan, _ place: inout Place) -> Step {
    var start = place.start
    while start < bytes.byteCount, bytes.byte(at: start) & 1 == 0, start < place.start + 3 { start += 1 }
    start += 1
    guard start + 2 <= bytes.byteCount else { return .incomplete }
    guard bytes.byte(at: start) == 3 else {
      place.start = start
      return etherType(at: 0, bytes, &place)
    }
    start += 1
    if bytes.byte(at: start) == 0 { start += 1 }
    guard start < bytes.byteCount else { return .incomplete }
    place.start = start + 1
    switch bytes.byte(at: start) {
    case 0xcc, 0x8e: return .next(.ip)
    case 0x80: return snap(bytes, &place)
    case let other: return .unread(.nlpid(other))
    }
  }

  /// PKTAP of macOS, in the byte order of the capturing host: `length u32 | kind u32 (1: a packet) | link type u32 |
  /// interface 24 | …`; a packet of the link type follows.
  static func pktap(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 12 <= bytes.byteCount else { return .incomplete }
    // In the other byte order, the length is larger than that of any header.
    let bigEndian = bytes.uint32(at: start, bigEndian: false) > 0xffff
    let length = Int(bytes.uint32(at: start, bigEndian: bigEndian))
    guard length >= 12, length <= 1_024, bytes.uint32(at: start + 4, bigEndian: bigEndian) <= 1 else {
      return .unread(.linkType(LinkType(rawValue: 149)))
    }
    let inner = bytes.uint32(at: start + 8, bigEndian: bigEndian)
    guard start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    return packet(of: inner)
  }

  /// The step to a packet of another link type. A link type whose header again names a link type is not followed, so
  /// that a walk ends.
  static func packet(of number: UInt32) -> Step {
    let linkType = LinkType(rawValue: UInt16(clamping: number))
    guard let layer = Layer(linkType: linkType), layer != .pktap, layer != .ppi else {
      return .unread(.linkType(linkType))
    }
    return .next(layer)
  }

  /// PFLOG of BSD systems: `length u8 | …`, padded to a multiple of four.
  static func pflog(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start < bytes.byteCount else { return .incomplete }
    let length = Int(bytes.byte(at: place.start))
    // The shortest known header has 48 bytes; a much smaller length is not a PFLOG header.
    guard length >= 28 else { return .incomplete }
    return step(over: (length + 3) & ~3, to: .ip, bytes, &place)
  }

  /// Token Ring: `access u8 | frame control u8 | destination 6 | source 6 | route…`. The first bit of the source says
  /// whether there is a route, whose first byte has its length.
  static func tokenRing(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 16 <= bytes.byteCount else { return .incomplete }
    let hasRoute = bytes.byte(at: start + 8) & 0x80 != 0
    let route = hasRoute ? Int(bytes.byte(at: start + 14) & 0x1f) : 0
    return step(over: 14 + route, to: .llc, bytes, &place)
  }

  /// IEEE 802.2 LLC: `DSAP u8 | SSAP u8 | control u8`; SNAP follows `aa aa 03`.
  static func llc(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 3 <= bytes.byteCount else { return .incomplete }
    let (dsap, control) = (bytes.byte(at: start), bytes.byte(at: start + 2))
    place.start += 3
    guard control == 3 else { return .unread(.llc(dsap)) }
    switch dsap & 0xfe {
    case 0xaa: return snap(bytes, &place)
    case 0x06: return .next(.ip)
    // An ISO network layer protocol identifies itself with its first byte, the NLPID (RFC 2684 §5.1).
    case 0xfe where start + 3 < bytes.byteCount:
      switch bytes.byte(at: start + 3) {
      case 0xcc, 0x8e: return step(over: 1, to: .ip, bytes, &place)
      default: return .unread(.llc(dsap))
      }
    default: return .unread(.llc(dsap))
    }
  }

  /// SNAP: `organisation 3 | protocol u16`. The protocol is an EtherType if the organisation is 0, or 0000f8 (802.1H).
  static func snap(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 5 <= bytes.byteCount else { return .incomplete }
    let organisation = bytes.uint32(at: start) >> 8
    let type = bytes.uint16(at: start + 3)
    place.start += 5
    switch (organisation, type) {
    case (0, 0x0600...), (0x0000f8, 0x0600...): return announced(by: type, &place)
    // Bridged Ethernet, with and without a frame check sequence. ATM pads it by two bytes (RFC 2684 §5.2), with which
    // an Ethernet header does not begin.
    case (0x0080c2, 1), (0x0080c2, 7):
      let isPadded = start + 7 <= bytes.byteCount && bytes.uint16(at: start + 5) == 0
      return tunnel(over: isPadded ? 2 : 0, to: .ethernet, bytes, &place)
    default: return .unread(.snap(organisation, type))
    }
  }
}
