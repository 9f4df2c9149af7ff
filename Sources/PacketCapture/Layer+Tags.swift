import Bytes

/// Tags and labels that network equipment inserts between a link layer and its payload.
extension Layer {
  /// IEEE 802.1Q and 802.1ad, any number of them: `priority and VLAN u16 | EtherType u16`
  @inline(__always)
  static func vlan(_ bytes: RawSpan, _ place: inout Place) -> Step { etherType(at: 2, bytes, &place) }

  /// MACsec (IEEE 802.1AE): `flags u8 | short length u8 | packet number u32 | channel 8, with flag 20`, then the
  /// EtherType, unless the payload is encrypted (flags 08, 04).
  static func macsec(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start < bytes.byteCount else { return .incomplete }
    let flags = bytes.byte(at: place.start)
    if flags & 0x0c != 0 { return .unread(.etherType(0x88e5)) }
    return etherType(at: flags & 0x20 != 0 ? 14 : 6, bytes, &place)
  }

  /// MPLS: labels of four bytes, the last of which has bit 0 of its third byte set; then IP, or a frame with or without
  /// a control word (RFC 4448), which begins with 0.
  static func mpls(_ bytes: RawSpan, _ place: inout Place) -> Step {
    while place.start + 4 <= bytes.byteCount {
      place.start += 4
      guard bytes.byte(at: place.start - 2) & 1 == 1 else { continue }
      guard place.start < bytes.byteCount else { return .incomplete }
      // The destination address of a frame may begin like an IP header, but an IP header has no EtherType of IP at that
      // offset.
      if isFrame(bytes, place.start) { return tunnel(over: 0, to: .ethernet, bytes, &place) }
      switch bytes.byte(at: place.start) >> 4 {
      case 4, 6: return .next(.ip)
      case 0: return tunnel(over: 4, to: .ethernet, bytes, &place)
      // The associated channel of the tunnel (RFC 4385).
      case 1: return .empty
      default: return tunnel(over: 0, to: .ethernet, bytes, &place)
      }
    }
    return .incomplete
  }

  /// Whether a frame that carries IP or has a VLAN tag seems to begin here.
  static func isFrame(_ bytes: RawSpan, _ start: Int) -> Bool {
    guard start + 15 <= bytes.byteCount else { return false }
    let version = bytes.byte(at: start + 14) >> 4
    switch bytes.uint16(at: start + 12) {
    case 0x0800: return version == 4
    case 0x86dd: return version == 6
    case 0x8100, 0x88a8: return true
    default: return false
    }
  }

  /// TRILL (RFC 6325): `version, options length in words 5 bits, hops u16 | egress u16 | ingress u16 | options…`, then
  /// a frame.
  static func trill(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 6 <= bytes.byteCount else { return .incomplete }
    let words = Int(bytes.uint16(at: place.start) >> 6 & 0x1f)
    return tunnel(over: 6 + words * 4, to: .ethernet, bytes, &place)
  }

  /// NSH (RFC 8300): `version, hops, length in words 6 bits u16 | kind u8 | next protocol u8 | path u32 | context…`
  static func nsh(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    let words = Int(bytes.uint16(at: place.start) & 0x3f)
    guard words >= 2 else { return .incomplete }
    place.depth += 1
    let next = bytes.byte(at: place.start + 3)
    return following(next, over: words * 4, bytes, &place) ?? .unread(.etherType(0x894f))
  }

  /// The layer of a next protocol number of NSH and VXLAN-GPE: 1 and 2 IP, 3 a frame, 4 NSH, 5 MPLS; `nil` for others.
  static func following(_ next: UInt8, over length: Int, _ bytes: RawSpan, _ place: inout Place) -> Step? {
    switch next {
    case 1, 2: step(over: length, to: .ip, bytes, &place)
    case 3: step(over: length, to: .ethernet, bytes, &place)
    case 4: step(over: length, to: .nsh, bytes, &place)
    case 5: step(over: length, to: .mpls, bytes, &place)
    default: nil
    }
  }
}
