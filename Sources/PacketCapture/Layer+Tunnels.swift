import Bytes

/// Tunnels: a packet or a frame inside another packet, as port mirroring and virtual networks send them.
extension Layer {
  /// GRE (RFC 2784, 2890; version 1 is PPTP's, RFC 2637):
  /// ```
  /// flags and version u16 | EtherType u16
  /// checksum u16, offset u16: flag 8000 or 4000 | key u32: 2000 | sequence number u32: 1000 | acknowledgement u32: 0080
  /// routes, with flag 4000: family u16 | offset u8 | length u8 | …, up to one of family and length 0
  /// ```
  static func gre(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 4 <= bytes.byteCount else { return .incomplete }
    let flags = bytes.uint16(at: start)
    let type = bytes.uint16(at: start + 2)
    guard flags & 7 <= 1 else { return .unread(.ipProtocol(47)) }
    var length = 4
    if flags & 0xc000 != 0 { length += 4 }
    if flags & 0x2000 != 0 { length += 4 }
    if flags & 0x1000 != 0 { length += 4 }
    if flags & 7 == 1, flags & 0x0080 != 0 { length += 4 }
    if flags & 0x4000 != 0 {
      while true {
        guard start + length + 4 <= bytes.byteCount else { return .incomplete }
        let (family, size) = (bytes.uint16(at: start + length), Int(bytes.byte(at: start + length + 3)))
        length += 4 + size
        if family == 0 && size == 0 { break }
      }
    }
    guard start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    place.depth += 1
    // ERSPAN type I has neither a header of its own nor sequence numbers.
    if type == 0x88be && flags & 0x1000 == 0 { return .next(.ethernet) }
    // A keep-alive: it asks for an answer and carries no protocol.
    if type == 0 { return .empty }
    return announced(by: type, &place)
  }

  /// ERSPAN type II: `version 4 bits, VLAN u16 | class, cut, session u16 | index u32`, then a frame. Some senders use
  /// its EtherType for type III, and some send type I with sequence numbers.
  static func erspan(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start < bytes.byteCount else { return .incomplete }
    switch bytes.byte(at: place.start) >> 4 {
    case 1: return step(over: 8, to: .ethernet, bytes, &place)
    case 2: return erspan3(bytes, &place)
    default: return .next(.ethernet)
    }
  }

  /// ERSPAN type III:
  /// ```
  /// version 4 bits, VLAN u16 | class, cut, session u16 | time u32 | security group u16
  /// kind of frame 5 bits at bit 10, platform's own part follows at bit 0, u16 | that part 8
  /// ```
  static func erspan3(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 12 <= bytes.byteCount else { return .incomplete }
    let kinds = bytes.uint16(at: place.start + 10)
    let length = kinds & 1 == 1 ? 20 : 12
    switch kinds >> 10 & 0x1f {
    case 2: return step(over: length, to: .ip, bytes, &place)
    default: return step(over: length, to: .ethernet, bytes, &place)
    }
  }

  /// Redirection of WCCP: IP; in version 2, four bytes that do not begin like an IP header come first.
  static func wccp(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start < bytes.byteCount else { return .incomplete }
    let hasHeader = bytes.byte(at: place.start) >> 4 != 4
    return step(over: hasHeader ? 4 : 0, to: .ip, bytes, &place)
  }

  // MARK: over UDP

  /// UDP: `source port u16 | destination port u16 | length u16 | checksum u16`. The ports identify the payload, the
  /// destination port first, since the source port is usually arbitrary.
  static func udp(_ bytes: RawSpan, _ place: inout Place, _ vxlanPorts: [UInt16]) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let ports = (bytes.uint16(at: start), bytes.uint16(at: start + 2))
    let length = Int(bytes.uint16(at: start + 4))
    // 0: left to the network card to fill in, or a jumbogram.
    if length >= 8 { place.limit(to: start + length) }
    place.start += 8
    if let layer = Layer(port: ports.1, vxlanPorts) ?? Layer(port: ports.0, vxlanPorts) {
      // Counts the tunnel of MPLS over UDP here, since UDP itself is none; the tunnel of a VXLAN frame is counted when
      // it is decoded.
      if layer == .mpls { place.depth += 1 }
      return .next(layer)
    }
    if UnreadProtocol.isTunnel(port: ports.1) { return .unread(.udpPort(ports.1)) }
    if UnreadProtocol.isTunnel(port: ports.0) { return .unread(.udpPort(ports.0)) }
    return looksLikeVXLAN(bytes, place.start) ? .unread(.perhapsVXLAN(ports.1)) : .unread(.ipProtocol(17))
  }

  /// The layer that UDP carries from or to a port; `nil` if it is not decoded.
  private init?(port: UInt16, _ vxlanPorts: [UInt16]) {
    if vxlanPorts.contains(port) {
      self = .vxlan
      return
    }
    switch port {
    case 2_152: self = .gtpU
    // The assigned port, and the port that Linux used before it was assigned.
    case 4_789, 8_472: self = .vxlan
    case 4_790: self = .vxlanGPE
    case 4_754: self = .gre
    case 5_072: self = .ayiya
    case 6_081: self = .geneve
    case 6_635: self = .mpls
    case 37_008: self = .tzsp
    default: return nil
    }
  }

  /// Whether the bytes look like a VXLAN header with only its flag and network set, and a frame with IP after it.
  private static func looksLikeVXLAN(_ bytes: RawSpan, _ start: Int) -> Bool {
    guard start + 23 <= bytes.byteCount, bytes.uint32(at: start) == 0x0800_0000, bytes.byte(at: start + 7) == 0 else {
      return false
    }
    let version = bytes.byte(at: start + 22) >> 4
    switch bytes.uint16(at: start + 20) {
    case 0x0800: return version == 4
    case 0x86dd: return version == 6
    case 0x8100, 0x88a8: return true
    default: return false
    }
  }

  /// VXLAN (RFC 7348): `flags u8 | 0 u24 | network u24 | 0 u8`, then a frame. Flag 04 denotes the generic protocol
  /// extension.
  static func vxlan(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    if bytes.byte(at: place.start) & 0x04 != 0 { return vxlanGPE(bytes, &place) }
    return tunnel(over: 8, to: .ethernet, bytes, &place)
  }

  /// VXLAN-GPE, the generic protocol extension: `flags u8 | 0 u16 | next protocol u8 | network u24 | 0 u8`
  static func vxlanGPE(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    let hasNext = bytes.byte(at: place.start) & 0x04 != 0
    let next = bytes.byte(at: place.start + 3)
    place.depth += 1
    return following(hasNext ? next : 3, over: 8, bytes, &place) ?? .unread(.udpPort(4_790))
  }

  /// Geneve (RFC 8926): `version 2 bits, options length in words 6 bits u8 | flags u8 | EtherType u16 | network u24 | 0 u8
  /// | options…`
  static func geneve(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    let first = bytes.byte(at: place.start)
    guard first >> 6 == 0 else { return .unread(.udpPort(6_081)) }
    let length = 8 + Int(first & 0x3f) * 4
    let type = bytes.uint16(at: place.start + 2)
    guard place.start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    place.depth += 1
    return announced(by: type, &place)
  }

  /// GTP-U (3GPP TS 29.281):
  /// ```
  /// version 3 bits, GTP 1 bit, 0, extension, sequence number, N-PDU number u8 | kind u8 | length u16 | tunnel u32
  /// with any of the last three: sequence number u16 | N-PDU number u8 | kind of extension u8
  /// extensions: length in words u8 | … | kind of the next one u8
  /// ```
  static func gtpU(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let flags = bytes.byte(at: start)
    guard flags >> 4 == 3 else { return .unread(.udpPort(2_152)) }
    // Other message types than a user packet (G-PDU) are echoes, errors and the end of a tunnel.
    guard bytes.byte(at: start + 1) == 0xff else { return .empty }
    place.limit(to: start + 8 + Int(bytes.uint16(at: start + 2)))
    var length = 8
    if flags & 7 != 0 {
      length += 4
      guard start + length <= bytes.byteCount else { return .incomplete }
      var next = flags & 4 != 0 ? bytes.byte(at: start + length - 1) : 0
      while next != 0 {
        guard start + length < bytes.byteCount else { return .incomplete }
        let words = Int(bytes.byte(at: start + length))
        length += words * 4
        guard words > 0, start + length <= bytes.byteCount else { return .incomplete }
        next = bytes.byte(at: start + length - 1)
      }
    }
    guard start + length < bytes.byteCount else { return .incomplete }
    place.start += length
    place.depth += 1
    // A session may carry IP or Ethernet, which the header does not say.
    switch bytes.byte(at: place.start) >> 4 {
    case 4 where !isFrame(bytes, place.start), 6 where !isFrame(bytes, place.start): return .next(.ip)
    default: return isFrame(bytes, place.start) ? .next(.ethernet) : .unread(.udpPort(2_152))
    }
  }

  /// AYIYA, of tunnel brokers (draft-massar-v6ops-ayiya): `length of the identity as a power of two 4 bits, its kind 4
  /// bits u8 | length of the signature in words 4 bits, hash 4 bits u8 | authentication 4 bits, operation 4 bits u8 |
  /// next header u8 | time u32 | identity | signature`
  static func ayiya(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let length = 8 + 1 << Int(bytes.byte(at: start) >> 4) + Int(bytes.byte(at: start + 1) >> 4) * 4
    // Operations other than forwarding a packet are queries to the broker.
    guard bytes.byte(at: start + 2) & 0x0f == 1 else { return .empty }
    guard [4, 41].contains(bytes.byte(at: start + 3)) else { return .unread(.udpPort(5_072)) }
    return tunnel(over: length, to: .ip, bytes, &place)
  }

  /// TZSP, with which routers mirror traffic: `version u8 | kind u8 (0, 1: a packet) | protocol u16 | tags…`. Tag 0 is
  /// padding, tag 1 the end; other tags have a length.
  static func tzsp(_ bytes: RawSpan, _ place: inout Place) -> Step {
    var offset = place.start + 4
    guard offset < bytes.byteCount else { return .incomplete }
    let (kind, type) = (bytes.byte(at: place.start + 1), bytes.uint16(at: place.start + 2))
    guard kind <= 1 else { return .empty }
    while offset < bytes.byteCount, bytes.byte(at: offset) != 1 {
      guard bytes.byte(at: offset) != 0 else {
        offset += 1
        continue
      }
      guard offset + 2 <= bytes.byteCount else { return .incomplete }
      offset += 2 + Int(bytes.byte(at: offset + 1))
    }
    guard offset + 1 <= bytes.byteCount else { return .incomplete }
    place.start = offset + 1
    place.depth += 1
    switch type {
    case 1: return .next(.ethernet)
    case 18: return .next(.wlan)
    case 119: return .next(.prism)
    case 127: return .next(.avs)
    default: return .unread(.udpPort(37_008))
    }
  }
}
