import Bytes

/// Finds the TCP segment in a packet: through the link layer, VLAN tags, PPPoE, MPLS, IPv4, IPv6 and fragments.
///
/// Checksums are not looked at: capturing hosts leave them to the network card. Lengths that contradict each other make
/// the packet carry nothing; they never reach beyond the captured bytes.
public struct PacketDecoder {
  private var fragments: FragmentReassembler

  public init(options: CaptureOptions = CaptureOptions()) {
    fragments = FragmentReassembler(maximumDatagrams: options.maximumFragmentedDatagrams)
  }

  /// Calls `body` with the packet's TCP segment and the captured part of its payload, if it carries one.
  public mutating func decode(_ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void) {
    // What the wire had after the captured bytes, so that a length can be checked against the whole packet.
    let cut = max(0, packet.originalLength - bytes.byteCount)
    guard let start = Self.networkLayer(packet.linkType, bytes) else { return }
    decodeIP(bytes, start, cut, packet, body)
  }

  // MARK: link layer

  private static func networkLayer(_ linkType: LinkType, _ bytes: RawSpan) -> Int? {
    switch linkType.rawValue {
    case 1: return bytes.byteCount >= 14 ? network(etherType: bytes.uint16(at: 12), bytes, 14) : nil
    case 113: return bytes.byteCount >= 16 ? network(etherType: bytes.uint16(at: 14), bytes, 16) : nil
    case 276: return bytes.byteCount >= 20 ? network(etherType: bytes.uint16(at: 0), bytes, 20) : nil
    case 12, 14, 101, 228, 229: return 0
    // The address family's number differs between systems; the IP version says the same everywhere.
    case 0, 108: return 4
    case 9, 50:
      let start = bytes.byteCount >= 2 && bytes.uint16(at: 0) == 0xff03 ? 2 : 0
      return pointToPoint(bytes, start)
    case 51: return pointToPoint(bytes, 6)
    case 239: return nflogPayload(bytes)
    default: return nil
    }
  }

  /// Follows tags and tunnels from an EtherType to the IP header.
  private static func network(etherType: UInt16, _ bytes: RawSpan, _ start: Int) -> Int? {
    var type = etherType
    var offset = start
    while true {
      switch type {
      case 0x0800, 0x86dd: return offset
      case 0x8100, 0x88a8, 0x9100, 0x9200:
        guard offset + 4 <= bytes.byteCount else { return nil }
        type = bytes.uint16(at: offset + 2)
        offset += 4
      case 0x8864: return pointToPoint(bytes, offset + 6)
      case 0x8847, 0x8848:
        while offset + 4 <= bytes.byteCount {
          offset += 4
          if bytes.byte(at: offset - 2) & 1 == 1 { return offset }
        }
        return nil
      default: return nil
      }
    }
  }

  /// PPP: a protocol number of two bytes, or of one when it is compressed; 0x21 is IPv4, 0x57 IPv6.
  private static func pointToPoint(_ bytes: RawSpan, _ start: Int) -> Int? {
    guard start + 2 <= bytes.byteCount else { return nil }
    let first = bytes.byte(at: start)
    if first == 0x21 || first == 0x57 { return start + 1 }
    let type = bytes.uint16(at: start)
    return type == 0x0021 || type == 0x0057 ? start + 2 : nil
  }

  /// NFLOG: four bytes, then `length u16 | type u16 | value` in the capturing host's byte order; type 9 is the packet.
  private static func nflogPayload(_ bytes: RawSpan) -> Int? {
    var offset = 4
    while offset + 4 <= bytes.byteCount {
      let length = Int(bytes.uint16(at: offset, bigEndian: false))
      guard length >= 4 else { return nil }
      if bytes.uint16(at: offset + 2, bigEndian: false) & 0x7fff == 9 { return offset + 4 }
      offset += (length + 3) & ~3
    }
    return nil
  }

  // MARK: network layer

  private mutating func decodeIP(
    _ bytes: RawSpan, _ start: Int, _ cut: Int, _ packet: Packet, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    guard start < bytes.byteCount else { return }
    switch bytes.byte(at: start) >> 4 {
    case 4: decodeIPv4(bytes, start, cut, packet, body)
    case 6: decodeIPv6(bytes, start, cut, packet, body)
    default: return
    }
  }

  /// ```
  /// version/length u8 | service u8 | total length u16 | id u16 | flags/offset u16 | ttl u8 | protocol u8 | sum u16
  /// source 4 | destination 4 | options…
  /// ```
  private mutating func decodeIPv4(
    _ bytes: RawSpan, _ start: Int, _ cut: Int, _ packet: Packet, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    let available = bytes.byteCount - start
    guard available >= 20 else { return }
    let headerLength = Int(bytes.byte(at: start) & 15) * 4
    let total = Int(bytes.uint16(at: start + 2))
    guard headerLength >= 20, total == 0 || total >= headerLength else { return }
    guard bytes.byte(at: start + 9) == 6 else { return }
    // Total length 0: the network card was left to fill it in. Below the packet's length: Ethernet padding.
    let wireLength = total == 0 ? available + cut : min(total, available + cut)
    let source = IPAddress(v4: bytes.uint32(at: start + 12))
    let destination = IPAddress(v4: bytes.uint32(at: start + 16))
    let payload = start + headerLength
    let length = wireLength - headerLength
    guard length >= 0, payload <= bytes.byteCount else { return }

    let fragment = bytes.uint16(at: start + 6)
    if fragment & 0x3fff != 0 {
      let piece = FragmentReassembler.Piece(
        source: source, destination: destination, identification: UInt32(bytes.uint16(at: start + 4)),
        offset: Int(fragment & 0x1fff) * 8, isLast: fragment & 0x2000 == 0)
      addFragment(piece, bytes, payload, length, packet, body)
      return
    }
    Self.decodeTCP(bytes, payload, length, source, destination, body)
  }

  /// ```
  /// version/class/label u32 | payload length u16 | next header u8 | hop limit u8 | source 16 | destination 16
  /// ```
  private mutating func decodeIPv6(
    _ bytes: RawSpan, _ start: Int, _ cut: Int, _ packet: Packet, _ body: (TCPSegment, RawSpan) -> Void
  ) {
    let available = bytes.byteCount - start
    guard available >= 40 else { return }
    let declared = Int(bytes.uint16(at: start + 4))
    var length = declared == 0 ? available + cut - 40 : min(declared, available + cut - 40)
    let source = IPAddress(high: bytes.uint64(at: start + 8), low: bytes.uint64(at: start + 16))
    let destination = IPAddress(high: bytes.uint64(at: start + 24), low: bytes.uint64(at: start + 32))
    var next = bytes.byte(at: start + 6)
    var offset = start + 40
    while next != 6 {
      guard offset + 8 <= bytes.byteCount else { return }
      let extensionLength: Int
      switch next {
      case 0, 43, 60, 135, 139, 140: extensionLength = (Int(bytes.byte(at: offset + 1)) + 1) * 8
      case 51: extensionLength = (Int(bytes.byte(at: offset + 1)) + 2) * 4
      case 44:
        extensionLength = 8
        let place = bytes.uint16(at: offset + 2)
        // An "atomic" fragment is the whole datagram.
        if place & 0xfff9 != 0 {
          guard bytes.byte(at: offset) == 6 else { return }
          let piece = FragmentReassembler.Piece(
            source: source, destination: destination, identification: bytes.uint32(at: offset + 4),
            offset: Int(place & 0xfff8), isLast: place & 1 == 0)
          addFragment(piece, bytes, offset + 8, length - 8, packet, body)
          return
        }
      default: return
      }
      next = bytes.byte(at: offset)
      offset += extensionLength
      length -= extensionLength
    }
    guard length >= 0, offset <= bytes.byteCount else { return }
    Self.decodeTCP(bytes, offset, length, source, destination, body)
  }

  private mutating func addFragment(
    _ piece: FragmentReassembler.Piece, _ bytes: RawSpan, _ payload: Int, _ length: Int, _ packet: Packet,
    _ body: (TCPSegment, RawSpan) -> Void
  ) {
    // A fragment that the snap length cut cannot complete a datagram.
    guard length >= 0, payload + length <= bytes.byteCount else { return }
    guard let datagram = fragments.add(piece, bytes.extracting(payload..<payload + length)) else { return }
    Self.decodeTCP(datagram.rawBytes, 0, datagram.count, piece.source, piece.destination, body)
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
    let payload = min(start + headerLength, bytes.byteCount)
    body(segment, bytes.extracting(payload..<min(start + length, bytes.byteCount)))
  }
}
