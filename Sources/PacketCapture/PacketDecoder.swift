import Bytes

/// Finds the TCP segment in a packet: through link layers, tags, tunnels, IPv4, IPv6 and fragments (`Layer`).
///
/// Of packets inside of packets the innermost counts. Checksums are not looked at: capturing hosts leave them to the
/// network card. Lengths that contradict each other make the packet carry nothing; they never reach beyond the captured
/// bytes.
public struct PacketDecoder {
  private var fragments: FragmentReassembler
  private var exported = ExportedPDUs()
  private let settings: Layer.Settings

  /// Fragments inside of fragments take a part of the stack each.
  private static let deepest = 255

  public init(options: CaptureOptions = CaptureOptions()) {
    fragments = FragmentReassembler(maximumDatagrams: options.maximumFragmentedDatagrams)
    settings = Layer.Settings(
      maximumDepth: min(options.maximumEncapsulation, Self.deepest), vxlanPorts: options.vxlanPorts)
  }

  /// Calls `body` with the packet's TCP segment and the captured part of its payload, if it carries one.
  ///
  /// A packet carries more than one where a wireless station has put several frames together.
  ///
  /// - Returns: what the packet carries that is not read, if that is not a segment; `nil` for a fragment too.
  @discardableResult
  public mutating func decode(
    _ packet: Packet, _ bytes: RawSpan, _ body: (TCPSegment, RawSpan) -> Void
  ) -> UnreadProtocol? {
    guard let layer = Layer(linkType: packet.linkType) else {
      return packet.linkType == .exportedPDU
        ? decodeExported(packet, bytes, body) : .linkType(packet.linkType)
    }
    // The wire may have had more than was captured: lengths are checked against the whole packet.
    let end = max(packet.originalLength, bytes.byteCount)
    var place = Layer.Place(start: 0, end: end)
    if Self.leadsToTCP(layer, bytes, &place) { return Self.decodeTCP(bytes, place, body) ? nil : .incomplete }
    return walk(from: layer, bytes, Layer.Place(start: 0, end: end), packet.time, body)
  }

  /// Data of a layer that Wireshark exported: a packet, a segment, or what TCP has carried.
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

  /// The usual way, TCP in IP in a frame or without one, step by step instead of by the table: that saves some forty
  /// instructions a packet.
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
      // A frame ends where the next one begins: else each of them could lead through all that follow.
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
    // Fragments of what is not read would take the room of others. IPv6's later ones do not know what they are of.
    if !fragment.isV6, Layer(ipProtocol: fragment.nextHeader) == nil { return .ipProtocol(fragment.nextHeader) }
    // A fragment that the snap length cut cannot complete a datagram.
    guard place.start <= place.end, place.end <= bytes.byteCount else { return .incomplete }
    let piece = FragmentReassembler.Piece(
      source: place.source, destination: place.destination, identification: fragment.identification,
      offset: fragment.offset, isLast: fragment.isLast, nextHeader: fragment.nextHeader, isV6: fragment.isV6, time: time
    )
    guard let datagram = fragments.add(piece, bytes.extracting(place.start..<place.end)) else { return nil }
    var inner = place
    (inner.start, inner.end) = (0, datagram.bytes.count)
    // Another fragment can only be in it behind a tunnel, so that this ends.
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

  /// ```
  /// source port u16 | destination port u16 | sequence u32 | acknowledgement u32
  /// header length/flags u16 | window u16 | checksum u16 | urgent u16 | options…
  /// ```
  ///
  /// - Returns: whether there is a whole header.
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

  /// Looks through options (`kind u8 | length u8 | …`, 0 ends them, 1 is padding) for that of the window scale, 3.
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
