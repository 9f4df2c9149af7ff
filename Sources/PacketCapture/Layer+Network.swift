import Bytes

/// IPv4 and IPv6, also nested in each other.
extension Layer {
  /// IP; the version is in its first four bits.
  @inline(__always)
  static func ip(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start < bytes.byteCount else { return .incomplete }
    switch bytes.byte(at: place.start) >> 4 {
    case 4: return ipv4(bytes, &place)
    case 6: return ipv6(bytes, &place)
    case let version: return .unread(.ipVersion(version))
    }
  }

  /// IPv4 (RFC 791):
  /// ```
  /// version/length u8 | service u8 | total length u16 | id u16 | flags/offset u16 | ttl u8 | protocol u8 | sum u16
  /// source 4 | destination 4 | options…
  /// ```
  @inline(__always)
  private static func ipv4(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 20 <= bytes.byteCount else { return .incomplete }
    let headerLength = Int(bytes.byte(at: start) & 15) * 4
    let total = Int(bytes.uint16(at: start + 2))
    guard headerLength >= 20, total == 0 || total >= headerLength else { return .incomplete }
    // Total length 0: left to the network card to fill in. Below the length of the packet: Ethernet padding follows.
    if total != 0 { place.limit(to: start + total) }
    let payload = start + headerLength
    guard place.end >= payload, payload <= bytes.byteCount else { return .incomplete }
    place.start = payload
    place.source = IPAddress(v4: bytes.uint32(at: start + 12))
    place.destination = IPAddress(v4: bytes.uint32(at: start + 16))
    let next = bytes.byte(at: start + 9)
    let fragment = bytes.uint16(at: start + 6)
    if fragment & 0x3fff != 0 {
      return .fragment(
        Fragment(
          identification: UInt32(bytes.uint16(at: start + 4)), offset: Int(fragment & 0x1fff) * 8,
          isLast: fragment & 0x2000 == 0, nextHeader: next, isV6: false))
    }
    return next == 6 ? .next(.tcp) : carried(next, &place)
  }

  /// IPv6 (RFC 8200):
  /// ```
  /// version/class/label u32 | payload length u16 | next header u8 | hop limit u8 | source 16 | destination 16
  /// ```
  @inline(__always)
  private static func ipv6(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 40 <= bytes.byteCount else { return .incomplete }
    let declared = Int(bytes.uint16(at: start + 4))
    // Length 0: a jumbogram, or left to the network card to fill in.
    if declared != 0 { place.limit(to: start + 40 + declared) }
    place.source = IPAddress(high: bytes.uint64(at: start + 8), low: bytes.uint64(at: start + 16))
    place.destination = IPAddress(high: bytes.uint64(at: start + 24), low: bytes.uint64(at: start + 32))
    place.start = start + 40
    let next = bytes.byte(at: start + 6)
    return next == 6 ? .next(.tcp) : extensions(bytes, &place, next)
  }

  /// The payload of an IPv6 header: extension headers, then a fragment or a transport protocol.
  @inline(never)
  static func extensions(_ bytes: RawSpan, _ place: inout Place, _ first: UInt8) -> Step {
    var next = first
    passExtensions(bytes, &next, &place.start)
    guard place.start <= bytes.byteCount else { return .incomplete }
    guard next == 44 else { return carried(next, &place) }
    // next header u8 | 0 u8 | offset 13 bits, 0, "more follow" | identification u32
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    let offset = place.start
    let position = bytes.uint16(at: offset + 2)
    next = bytes.byte(at: offset)
    place.start += 8
    // An "atomic" fragment (RFC 6946) is a whole datagram.
    if position & 0xfff9 != 0 {
      return .fragment(
        Fragment(
          identification: bytes.uint32(at: offset + 4), offset: Int(position & 0xfff8), isLast: position & 1 == 0,
          nextHeader: next, isV6: true))
    }
    passExtensions(bytes, &next, &place.start)
    guard place.start <= bytes.byteCount else { return .incomplete }
    return carried(next, &place)
  }

  /// Skips extension headers: hop-by-hop, routing, destination options, mobility, HIP, shim6, authentication.
  private static func passExtensions(_ bytes: RawSpan, _ next: inout UInt8, _ offset: inout Int) {
    while next != 6, offset + 8 <= bytes.byteCount {
      let length = Int(bytes.byte(at: offset + 1))
      let step: Int
      switch next {
      case 0, 43, 60, 135, 139, 140: step = (length + 1) * 8
      case 51: step = (length + 2) * 4
      default: return
      }
      next = bytes.byte(at: offset)
      offset += step
    }
  }

  /// The authentication header of IPsec (RFC 4302) after IPv4: `next header u8 | length in words, minus 2 u8 | …`
  static func authentication(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let length = (Int(bytes.byte(at: start + 1)) + 2) * 4
    guard start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    return carried(bytes.byte(at: start), &place)
  }

  /// The layer of an IP protocol number. A packet in a packet counts as a tunnel.
  static func carried(_ number: UInt8, _ place: inout Place) -> Step {
    guard let layer = Layer(ipProtocol: number) else { return number == 59 ? .empty : .unread(.ipProtocol(number)) }
    switch layer {
    case .tcp, .udp, .gre, .authentication: break
    default: place.depth += 1
    }
    return .next(layer)
  }
}
