import Bytes

/// Finds the TCP segment in a packet: through link layers, tags, tunnels, IPv4, IPv6 and fragments (`Layer`).
///
/// With packets inside packets the innermost counts. Checksums are ignored, because capturing hosts leave them to the
/// network card. A packet whose lengths contradict each other has no segment; lengths never extend a layer beyond the
/// captured bytes.
///
/// Fragments wait in the decoder, so the packets of a capture have to be decoded by one decoder, in order.
public struct PacketDecoder {
  private var fragments: FragmentReassembler
  private var exported = ExportedPDUs()
  private let settings: Layer.Settings

  /// A limit on the recursion for fragments inside fragments, each of which needs stack space.
  private static let deepest = 255

  /// Makes a decoder that holds no fragments.
  ///
  /// - Parameter options: the limits on fragments and nested tunnels, and the ports of VXLAN.
  public init(options: CaptureOptions = CaptureOptions()) {
    fragments = FragmentReassembler(maximumDatagrams: options.maximumFragmentedDatagrams)
    settings = Layer.Settings(
      maximumDepth: min(options.maximumEncapsulation, Self.deepest), vxlanPorts: options.vxlanPorts)
  }

  /// Calls `body` with the TCP segment of the packet and the captured part of its payload, if it has a segment.
  ///
  /// The payload is borrowed for the call. A packet has more than one segment if a wireless station aggregated several
  /// frames.
  ///
  /// - Returns: the reason if the packet has no decoded segment; `nil` for a segment, and for a fragment that is held.
  /// - Complexity: O(*h*) in the number of headers; the payload is copied only to reassemble fragments.
  @discardableResult
  public mutating func decode(
    _ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    guard let layer = Layer(linkType: packet.linkType) else {
      return packet.linkType == .exportedPDU
        ? decodeExported(packet, bytes, body) : .linkType(packet.linkType)
    }
    // The packet may have been longer on the wire: lengths are checked against the original length.
    let end = max(packet.originalLength, bytes.byteCount)
    var place = Layer.Place(start: 0, end: end)
    if Self.leadsToTCP(layer, bytes, &place) { return Self.decodeTCP(bytes, place, body) ? nil : .incomplete }
    return walk(from: layer, bytes, Layer.Place(start: 0, end: end), packet.time, body)
  }

  /// Decodes data that Wireshark exported: a packet, a segment, or the payload of TCP.
  private mutating func decodeExported(
    _ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    guard let data = ExportedPDU(bytes), data.start < bytes.byteCount else { return .incomplete }
    var place = Layer.Place(start: data.start, end: max(packet.originalLength, bytes.byteCount))
    switch data.layer {
    case .network: return walk(from: .ip, bytes, place, packet.time, body)
    case .transport:
      guard let source = data.source?.address, let destination = data.destination?.address else { return .incomplete }
      (place.source, place.destination) = (source, destination)
      return Self.decodeTCP(bytes, place, body) ? nil : .incomplete
    case .content:
      guard let segment = exported.segment(data, length: bytes.byteCount - data.start) else { return .incomplete }
      body(segment, bytes.extracting(data.start..<bytes.byteCount))
      return nil
    }
  }

  /// The common path, TCP over IP in a frame or without one, step by step instead of by the table: it saves about forty
  /// instructions per packet.
  @inline(__always)
  private static func leadsToTCP(_ layer: Layer, _ bytes: RawSpan, _ place: inout Layer.Place) -> Bool {
    let link: Layer.Step
    switch layer {
    case .ethernet: link = Layer.ethernet(bytes, &place)
    case .null: link = Layer.step(over: 4, to: .ip, bytes, &place)
    case .linuxSLL: link = Layer.linuxSLL(bytes, &place)
    case .linuxSLL2: link = Layer.linuxSLL2(bytes, &place)
    case .ip: link = .next(.ip)
    default: return false
    }
    guard case .next(.ip) = link, case .next(.tcp) = Layer.ip(bytes, &place) else { return false }
    return true
  }

  @inline(never)
  private mutating func walk(
    from first: Layer, _ bytes: RawSpan, _ beginning: Layer.Place, _ time: Timestamp,
    _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    var layer = first
    var place = beginning
    while true {
      switch layer.read(bytes, &place, settings) {
      case .next(.tcp):
        return Self.decodeTCP(bytes, place, body) ? nil : .incomplete
      case .next(let next):
        layer = next
        if place.depth > settings.maximumDepth { return .tooDeep }
      case .unread(let other): return other
      case .incomplete: return .incomplete
      case .empty: return .nothing
      case .fragment(let fragment): return addFragment(fragment, bytes, place, time, body)
      case .aggregate: return walkAggregate(bytes, place, time, body)
      }
    }
  }

  /// Walks through each frame of an aggregate.
  private mutating func walkAggregate(
    _ bytes: RawSpan, _ beginning: Layer.Place, _ time: Timestamp, _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    var place = beginning
    place.depth += 1
    if place.depth > settings.maximumDepth { return .tooDeep }
    var unread: UnreadProtocol?
    while let inner = Layer.frame(ofAggregate: bytes, &place) {
      // A frame ends where the next one begins: otherwise each frame could lead through all the following ones.
      let frame = bytes.extracting(0..<min(inner.end, bytes.byteCount))
      let other = walk(from: .llc, frame, inner, time, body)
      if unread == nil { unread = other }
    }
    return unread
  }

  @inline(never)
  private mutating func addFragment(
    _ fragment: Layer.Fragment, _ bytes: RawSpan, _ place: Layer.Place, _ time: Timestamp,
    _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    // Fragments of protocols that are not decoded would use the room of others. In IPv6 only the first fragment has the
    // protocol.
    if !fragment.isV6, Layer(ipProtocol: fragment.nextHeader) == nil { return .ipProtocol(fragment.nextHeader) }
    // A fragment that the snap length truncated cannot complete a datagram.
    guard place.start <= place.end, place.end <= bytes.byteCount else { return .incomplete }
    let piece = FragmentReassembler.Piece(
      source: place.source, destination: place.destination, identification: fragment.identification,
      offset: fragment.offset, isLast: fragment.isLast, nextHeader: fragment.nextHeader, isV6: fragment.isV6, time: time
    )
    guard let datagram = fragments.add(piece, bytes.extracting(place.start..<place.end)) else { return nil }
    var inner = place
    (inner.start, inner.end) = (0, datagram.bytes.count)
    // Another fragment can be inside only after a tunnel, so the recursion ends.
    let payload = datagram.bytes.rawBytes
    let step =
      fragment.isV6
      ? Layer.extensions(payload, &inner, datagram.nextHeader) : Layer.carried(datagram.nextHeader, &inner)
    switch step {
    case .next(.tcp): return Self.decodeTCP(payload, inner, body) ? nil : .incomplete
    case .next(let layer):
      return inner.depth > settings.maximumDepth ? .tooDeep : walk(from: layer, payload, inner, time, body)
    case .unread(let other): return other
    case .fragment, .aggregate, .incomplete: return .incomplete
    case .empty: return .nothing
    }
  }

  // MARK: transport layer

  /// Decodes a TCP header, and passes the segment to `body`.
  ///
  /// ```
  /// source port u16 | destination port u16 | sequence u32 | acknowledgement u32
  /// header length/flags u16 | window u16 | checksum u16 | urgent u16 | options…
  /// ```
  ///
  /// - Returns: whether the header is complete.
  @inline(__always)
  private static func decodeTCP(
    _ bytes: RawSpan, _ place: Layer.Place, _ body: (TCPSegment, RawSpan) -> Void
  ) -> Bool {
    let start = place.start
    let length = place.end - start
    guard length >= 20, start + 20 <= bytes.byteCount else { return false }
    let headerLength = Int(bytes.byte(at: start + 12) >> 4) * 4
    guard headerLength >= 20, headerLength <= length else { return false }
    var segment = TCPSegment(
      source: Endpoint(address: place.source, port: bytes.uint16(at: start)),
      destination: Endpoint(address: place.destination, port: bytes.uint16(at: start + 2)),
      sequence: SequenceNumber(rawValue: bytes.uint32(at: start + 4)),
      acknowledgement: SequenceNumber(rawValue: bytes.uint32(at: start + 8)),
      flags: TCPSegment.Flags(rawValue: bytes.byte(at: start + 13)), payloadLength: length - headerLength)
    segment.window = bytes.uint16(at: start + 14)
    if segment.flags.contains(.syn) { segment.windowScale = windowScale(bytes, start + 20..<start + headerLength) }
    let payloadStart = min(start + headerLength, bytes.byteCount)
    let payload = bytes.extracting(payloadStart..<min(start + length, bytes.byteCount))
    body(segment, payload)
    return true
  }

  /// Searches the options (`kind u8 | length u8 | …`, 0 ends them, 1 is padding) for the window scale, 3.
  @inline(never)
  private static func windowScale(_ bytes: RawSpan, _ options: Range<Int>) -> UInt8? {
    var offset = options.lowerBound
    let end = min(options.upperBound, bytes.byteCount)
    while offset + 2 < end {
      switch bytes.byte(at: offset) {
      case 0: return nil
      case 1: offset += 1
      case 3: return min(bytes.byte(at: offset + 2), 14)
      default: offset += max(2, Int(bytes.byte(at: offset + 1)))
      }
    }
    return nil
  }
}
