import Bytes

/// Finds the TCP segment in a packet: through the link layer, VLAN tags, PPPoE, MPLS, IPv4, IPv6 and fragments.
///
/// Checksums are not looked at: capturing hosts leave them to the network card. Lengths that contradict each other make
/// the packet carry nothing; they never reach beyond the captured bytes.
public struct PacketDecoder {
  private var fragments: FragmentReassembler
  private var exported = ExportedPDUs()

  public init(options: CaptureOptions = CaptureOptions()) {
    fragments = FragmentReassembler(maximumDatagrams: options.maximumFragmentedDatagrams)
  }

  /// Calls `body` with the packet's TCP segment and the captured part of its payload, if it carries one.
  public mutating func decode(_ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void) {
    if packet.linkType == .exportedPDU { return decodeExported(packet, bytes, body) }
    guard let network = Self.networkLayer(packet.linkType, bytes) else { return }
    // The wire may have had more than was captured: lengths are checked against the whole packet.
    let wireEnd = min(max(packet.originalLength, bytes.byteCount), network.end)
    guard network.start < min(wireEnd, bytes.byteCount) else { return }
    switch bytes.byte(at: network.start) >> 4 {
    case 4: decodeIPv4(bytes, network.start, wireEnd, packet, body)
    case 6: decodeIPv6(bytes, network.start, wireEnd, packet, body)
    default: return
    }
  }

  /// Data of a layer that Wireshark exported: a packet, a segment, or what TCP has carried.
  private mutating func decodeExported(
    _ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    guard let data = ExportedPDU(bytes) else { return }
    switch data.layer {
    case .network:
      guard data.start < bytes.byteCount else { return }
      let end = max(packet.originalLength, bytes.byteCount)
      switch bytes.byte(at: data.start) >> 4 {
      case 4: decodeIPv4(bytes, data.start, end, packet, body)
      case 6: decodeIPv6(bytes, data.start, end, packet, body)
      default: return
      }
    case .transport:
      guard let source = data.source?.address, let destination = data.destination?.address else { return }
      Self.decodeTCP(bytes, data.start, bytes.byteCount - data.start, source, destination, body)
    case .content:
      guard let segment = exported.segment(data, length: bytes.byteCount - data.start) else { return }
      body(segment, bytes.extracting(data.start..<bytes.byteCount))
    }
  }

  // MARK: link layer

  /// Where the IP header begins, and where the link layer says that its packet ends, if it does.
  private struct Network {
    var start: Int
    var end = Int.max
  }

  private static func networkLayer(_ linkType: LinkType, _ bytes: RawSpan) -> Network? {
    switch linkType.rawValue {
    case 1: return bytes.byteCount >= 14 ? network(etherType: bytes.uint16(at: 12), bytes, 14) : nil
    case 113: return bytes.byteCount >= 16 ? network(etherType: bytes.uint16(at: 14), bytes, 16) : nil
    case 276: return bytes.byteCount >= 20 ? network(etherType: bytes.uint16(at: 0), bytes, 20) : nil
    case 12, 14, 101, 228, 229: return Network(start: 0)
    // The address family's number differs between systems; the IP version says the same everywhere.
    case 0, 108: return Network(start: 4)
    case 9, 50:
      let start = bytes.byteCount >= 2 && bytes.uint16(at: 0) == 0xff03 ? 2 : 0
      return pointToPoint(bytes, start)
    case 51: return sessionPayload(bytes, 0)
    case 239: return nflogPayload(bytes)
    default: return nil
    }
  }

  /// Follows tags and tunnels from an EtherType to the IP header.
  private static func network(etherType: UInt16, _ bytes: RawSpan, _ start: Int) -> Network? {
    var type = etherType
    var offset = start
    while true {
      switch type {
      case 0x0800, 0x86dd: return Network(start: offset)
      case 0x8100, 0x88a8, 0x9100, 0x9200:
        guard offset + 4 <= bytes.byteCount else { return nil }
        type = bytes.uint16(at: offset + 2)
        offset += 4
      case 0x8864: return sessionPayload(bytes, offset)
      case 0x8847, 0x8848:
        while offset + 4 <= bytes.byteCount {
          offset += 4
          if bytes.byte(at: offset - 2) & 1 == 1 { return Network(start: offset) }
        }
        return nil
      default: return nil
      }
    }
  }

  /// PPPoE session: `version/type u8 | code u8 | session u16 | length u16 | PPP…`. Its length excludes padding, even
  /// where an IP header in it includes it.
  private static func sessionPayload(_ bytes: RawSpan, _ start: Int) -> Network? {
    guard start + 6 <= bytes.byteCount, var network = pointToPoint(bytes, start + 6) else { return nil }
    let length = Int(bytes.uint16(at: start + 4))
    // 0: left to the network card, as in IPv4.
    if length > 0 { network.end = start + 6 + length }
    return network
  }

  /// PPP: a protocol number of two bytes, or of one when it is compressed; 0x21 is IPv4, 0x57 IPv6.
  private static func pointToPoint(_ bytes: RawSpan, _ start: Int) -> Network? {
    guard start + 2 <= bytes.byteCount else { return nil }
    let first = bytes.byte(at: start)
    if first == 0x21 || first == 0x57 { return Network(start: start + 1) }
    let type = bytes.uint16(at: start)
    return type == 0x0021 || type == 0x0057 ? Network(start: start + 2) : nil
  }

  /// NFLOG: four bytes, then `length u16 | type u16 | value` in the capturing host's byte order; type 9 is the packet.
  private static func nflogPayload(_ bytes: RawSpan) -> Network? {
    var offset = 4
    while offset + 4 <= bytes.byteCount {
      let length = Int(bytes.uint16(at: offset, bigEndian: false))
      guard length >= 4 else { return nil }
      if bytes.uint16(at: offset + 2, bigEndian: false) & 0x7fff == 9 { return Network(start: offset + 4) }
      offset += (length + 3) & ~3
    }
    return nil
  }

  // MARK: network layer

  /// ```
  /// version/length u8 | service u8 | total length u16 | id u16 | flags/offset u16 | ttl u8 | protocol u8 | sum u16
  /// source 4 | destination 4 | options…
  /// ```
  private mutating func decodeIPv4(
    _ bytes: RawSpan, _ start: Int, _ wireEnd: Int, _ packet: Packet, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    let available = bytes.byteCount - start
    guard available >= 20 else { return }
    let headerLength = Int(bytes.byte(at: start) & 15) * 4
    let total = Int(bytes.uint16(at: start + 2))
    guard headerLength >= 20, total == 0 || total >= headerLength else { return }
    guard bytes.byte(at: start + 9) == 6 else { return }
    // Total length 0: the network card was left to fill it in. Below the packet's length: Ethernet padding.
    let wireLength = total == 0 ? wireEnd - start : min(total, wireEnd - start)
    let source = IPAddress(v4: bytes.uint32(at: start + 12))
    let destination = IPAddress(v4: bytes.uint32(at: start + 16))
    let payload = start + headerLength
    let length = wireLength - headerLength
    guard length >= 0, payload <= bytes.byteCount else { return }

    let fragment = bytes.uint16(at: start + 6)
    if fragment & 0x3fff != 0 {
      let piece = FragmentReassembler.Piece(
        source: source, destination: destination, identification: UInt32(bytes.uint16(at: start + 4)),
        offset: Int(fragment & 0x1fff) * 8, isLast: fragment & 0x2000 == 0, nextHeader: 6, time: packet.time)
      addFragment(piece, bytes, payload, length, packet, body)
      return
    }
    Self.decodeTCP(bytes, payload, length, source, destination, body)
  }

  /// ```
  /// version/class/label u32 | payload length u16 | next header u8 | hop limit u8 | source 16 | destination 16
  /// ```
  private mutating func decodeIPv6(
    _ bytes: RawSpan, _ start: Int, _ wireEnd: Int, _ packet: Packet, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    let available = bytes.byteCount - start
    guard available >= 40 else { return }
    let declared = Int(bytes.uint16(at: start + 4))
    // 0: a jumbogram, or left to the network card.
    let end = declared == 0 ? wireEnd : min(start + 40 + declared, wireEnd)
    let source = IPAddress(high: bytes.uint64(at: start + 8), low: bytes.uint64(at: start + 16))
    let destination = IPAddress(high: bytes.uint64(at: start + 24), low: bytes.uint64(at: start + 32))
    var next = bytes.byte(at: start + 6)
    var offset = start + 40
    Self.passExtensions(bytes, &next, &offset)
    guard next == 44 else {
      guard next == 6, offset <= bytes.byteCount else { return }
      return Self.decodeTCP(bytes, offset, end - offset, source, destination, body)
    }
    // next header u8 | 0 u8 | offset 13 bits, 0, "more follow" | identification u32
    guard offset + 8 <= bytes.byteCount else { return }
    let place = bytes.uint16(at: offset + 2)
    let piece = FragmentReassembler.Piece(
      source: source, destination: destination, identification: bytes.uint32(at: offset + 4),
      offset: Int(place & 0xfff8), isLast: place & 1 == 0, nextHeader: bytes.byte(at: offset), time: packet.time)
    // An "atomic" fragment is the whole datagram.
    if place & 0xfff9 != 0 { return addFragment(piece, bytes, offset + 8, end - offset - 8, packet, body) }
    next = piece.nextHeader
    offset += 8
    Self.passExtensions(bytes, &next, &offset)
    guard next == 6, offset <= bytes.byteCount else { return }
    Self.decodeTCP(bytes, offset, end - offset, source, destination, body)
  }

  /// Passes over extension headers: hop-by-hop, routing, destination options, mobility, HIP, shim6, authentication.
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

  private mutating func addFragment(
    _ piece: FragmentReassembler.Piece, _ bytes: RawSpan, _ payload: Int, _ length: Int, _ packet: Packet,
    _ body: (TCPSegment, RawSpan) -> Void
  ) {
    // A fragment that the snap length cut cannot complete a datagram.
    guard length >= 0, payload + length <= bytes.byteCount else { return }
    guard let datagram = fragments.add(piece, bytes.extracting(payload..<payload + length)) else { return }
    var next = datagram.nextHeader
    var offset = 0
    Self.passExtensions(datagram.bytes.rawBytes, &next, &offset)
    guard next == 6, offset <= datagram.bytes.count else { return }
    Self.decodeTCP(
      datagram.bytes.rawBytes, offset, datagram.bytes.count - offset, piece.source, piece.destination, body)
  }

  // MARK: transport layer

  /// ```
  /// source port u16 | destination port u16 | sequence u32 | acknowledgement u32
  /// header length/flags u16 | window u16 | checksum u16 | urgent u16 | options…
  /// ```
  private static func decodeTCP(
    _ bytes: RawSpan, _ start: Int, _ length: Int, _ source: IPAddress, _ destination: IPAddress,
    _ body: (TCPSegment, RawSpan) -> Void
  ) {
    guard length >= 20, start + 20 <= bytes.byteCount else { return }
    let headerLength = Int(bytes.byte(at: start + 12) >> 4) * 4
    guard headerLength >= 20, headerLength <= length else { return }
    let segment = TCPSegment(
      source: Endpoint(address: source, port: bytes.uint16(at: start)),
      destination: Endpoint(address: destination, port: bytes.uint16(at: start + 2)),
      sequence: SequenceNumber(rawValue: bytes.uint32(at: start + 4)),
      acknowledgement: SequenceNumber(rawValue: bytes.uint32(at: start + 8)),
      flags: TCPSegment.Flags(rawValue: bytes.byte(at: start + 13)), payloadLength: length - headerLength)
    let payloadStart = min(start + headerLength, bytes.byteCount)
    let payload = bytes.extracting(payloadStart..<min(start + length, bytes.byteCount))
    body(segment, payload)
  }
}
