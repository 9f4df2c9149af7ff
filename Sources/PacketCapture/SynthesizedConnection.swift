import Bytes

/// Makes the packets of a TCP connection from the bytes of its endpoints: IP and TCP headers with sequence numbers and
/// checksums, without a link layer (`LinkType.raw`).
///
/// Bytes may be passed in any order, as in the packets of a capture. An endpoint acknowledges what it has received
/// without a gap, or the number of bytes that the caller gives.
package struct SynthesizedConnection: Sendable {
  /// The largest payload of a packet: with its headers it fills an IPv4 packet. It is the MSS of both endpoints.
  package static let segmentLength = 65_495

  /// One endpoint, and the bytes it has sent.
  private struct End: Sendable {
    var endpoint: Endpoint
    /// The sequence number of the SYN.
    var initial: UInt32
    /// The number of bytes that it sends in total; its FIN follows them.
    var total: Int
    /// The number of bytes sent without a gap, and the ranges after a gap, sorted.
    var next = 0
    var later: [Range<Int>] = []
    var hasFIN = false

    func sequence(at offset: Int) -> UInt32 { initial &+ 1 &+ UInt32(truncatingIfNeeded: offset) }
    /// The next sequence number that the peer expects.
    var expected: UInt32 { sequence(at: next) &+ (hasFIN && next >= total ? 1 : 0) }

    mutating func note(_ range: Range<Int>) {
      let place = later.firstIndex { $0.lowerBound > range.lowerBound } ?? later.count
      later.insert(range, at: place)
      let passed = later.prefix { range in
        guard range.lowerBound <= next else { return false }
        next = max(next, range.upperBound)
        return true
      }
      later.removeFirst(passed.count)
    }
  }

  private struct Flags {
    static let fin: UInt8 = 0x01
    static let syn: UInt8 = 0x02
    static let reset: UInt8 = 0x04
    static let push: UInt8 = 0x08
    static let acknowledgement: UInt8 = 0x10
  }

  private var client: End
  private var server: End

  /// - Parameters:
  ///   - number: determines the initial sequence numbers, so that connections between the same endpoints differ.
  ///   - clientBytes: the number of bytes that the client sends in total.
  ///   - serverBytes: the number of bytes that the server sends in total.
  package init(number: Int, client: Endpoint, server: Endpoint, clientBytes: Int, serverBytes: Int) {
    // The factor is odd, so no two 32-bit numbers have the same product.
    let initial = UInt32(truncatingIfNeeded: number) &* 0x9e37_79b1
    self.client = End(endpoint: client, initial: initial, total: clientBytes)
    self.server = End(endpoint: server, initial: initial &+ 0x8000_0000, total: serverBytes)
  }

  // MARK: packets

  /// The SYN, SYN-ACK and ACK.
  package func handshake() -> [[UInt8]] {
    [
      packet(fromClient: true, sequence: client.initial, acknowledging: nil, Flags.syn),
      packet(
        fromClient: false, sequence: server.initial, acknowledging: client.sequence(at: 0),
        Flags.syn | Flags.acknowledgement),
      packet(
        fromClient: true, sequence: client.sequence(at: 0), acknowledging: server.sequence(at: 0),
        Flags.acknowledgement),
    ]
  }

  /// The packets with bytes of one endpoint.
  ///
  /// - Parameter acknowledged: the number of bytes of the other endpoint to acknowledge; `nil`: those without a gap.
  package mutating func data(
    _ bytes: RawSpan, at offset: Int, fromClient: Bool, acknowledging acknowledged: Int? = nil
  ) -> [[UInt8]] {
    let peer = fromClient ? server : client
    let number = acknowledged.map { peer.sequence(at: $0) } ?? peer.expected
    var packets: [[UInt8]] = []
    var start = 0
    while start < bytes.byteCount {
      let end = min(start + Self.segmentLength, bytes.byteCount)
      let sender = fromClient ? client : server
      packets.append(
        packet(
          fromClient: fromClient, sequence: sender.sequence(at: offset + start),
          acknowledging: number, Flags.acknowledgement | (end == bytes.byteCount ? Flags.push : 0),
          bytes.extracting(start..<end)))
      start = end
    }
    if bytes.byteCount > 0 {
      let range = offset..<offset + bytes.byteCount
      if fromClient { client.note(range) } else { server.note(range) }
    }
    return packets
  }

  /// A FIN after all bytes of an endpoint, or a RST after the bytes it has sent.
  package mutating func closing(fromClient: Bool, isReset: Bool) -> [UInt8] {
    let sender = fromClient ? client : server
    if !isReset {
      if fromClient { client.hasFIN = true } else { server.hasFIN = true }
    }
    return packet(
      fromClient: fromClient, sequence: isReset ? sender.expected : sender.sequence(at: sender.total),
      acknowledging: (fromClient ? server : client).expected,
      Flags.acknowledgement | (isReset ? Flags.reset : Flags.fin))
  }

  /// - Parameter number: the sequence number to acknowledge.
  private func packet(
    fromClient: Bool, sequence: UInt32, acknowledging number: UInt32?, _ flags: UInt8, _ payload: RawSpan = RawSpan()
  ) -> [UInt8] {
    let (source, destination) = fromClient ? (client.endpoint, server.endpoint) : (server.endpoint, client.endpoint)
    // MSS, no-operation, window scale: no more is ever sent than the window allows.
    let options: [UInt8] =
      flags & Flags.syn == 0
      ? [] : [2, 4, UInt8(Self.segmentLength >> 8), UInt8(Self.segmentLength & 0xff), 1, 3, 3, 14]
    let length = 20 + options.count + payload.byteCount
    // source port u16 | destination port u16 | sequence u32 | acknowledgement u32 | header length u4, flags | window u16
    // | checksum u16 | urgent u16 | options
    var segment = ByteWriter(capacity: length)
    segment.write(bigEndian: source.port)
    segment.write(bigEndian: destination.port)
    segment.write(bigEndian: sequence)
    segment.write(bigEndian: number ?? 0)
    segment.write(UInt8(truncatingIfNeeded: (20 + options.count) << 2))
    segment.write(flags)
    segment.write(bigEndian: UInt16.max)
    segment.write(bigEndian: UInt32(0))
    segment.write(options.rawBytes)
    segment.write(payload)
    let isV4 = source.address.isV4 && destination.address.isV4
    var packet = isV4 ? Self.header(v4: source, destination, length) : Self.header(v6: source, destination, length)
    let place = packet.count + 16
    // The pseudo header: addresses, protocol, length.
    let pseudo = Self.sum(packet.rawBytes.extracting(isV4 ? 12..<20 : 8..<40), 6 + UInt64(length))
    let checksum = Self.checksum(segment.bytes, pseudo)
    packet.append(copying: segment.bytes)
    packet.replaceSubrange(place..<place + 2, with: [UInt8(checksum >> 8), UInt8(checksum & 0xff)])
    return packet
  }

  /// The IPv4 header: version, length, don't fragment, 64 hops, TCP.
  private static func header(v4 source: Endpoint, _ destination: Endpoint, _ length: Int) -> [UInt8] {
    var header = ByteWriter(capacity: 64)
    header.write(bigEndian: UInt16(0x4500))
    header.write(bigEndian: UInt16(truncatingIfNeeded: 20 + length))
    header.write(bigEndian: UInt32(0x4000))
    header.write(bigEndian: UInt16(0x4006))
    header.write(bigEndian: UInt16(0))
    header.write(bigEndian: UInt32(truncatingIfNeeded: source.address.low))
    header.write(bigEndian: UInt32(truncatingIfNeeded: destination.address.low))
    var bytes = Array(copying: header.bytes)
    let checksum = checksum(header.bytes, 0)
    bytes.replaceSubrange(10..<12, with: [UInt8(checksum >> 8), UInt8(checksum & 0xff)])
    return bytes
  }

  private static func header(v6 source: Endpoint, _ destination: Endpoint, _ length: Int) -> [UInt8] {
    var header = ByteWriter(capacity: 64)
    header.write(bigEndian: UInt32(0x6000_0000))
    header.write(bigEndian: UInt16(truncatingIfNeeded: length))
    header.write(bigEndian: UInt16(0x0640))
    for end in [source, destination] {
      header.write(bigEndian: end.address.high)
      header.write(bigEndian: end.address.low)
    }
    return Array(copying: header.bytes)
  }

  // MARK: checksums

  /// The sum of 16-bit words; an odd last byte is the high byte of a word.
  private static func sum(_ bytes: RawSpan, _ sum: UInt64) -> UInt64 {
    var sum = sum
    var offset = 0
    while offset + 2 <= bytes.byteCount {
      sum += UInt64(bytes.uint16(at: offset))
      offset += 2
    }
    return offset < bytes.byteCount ? sum + UInt64(bytes.byte(at: offset)) << 8 : sum
  }

  /// The Internet checksum (RFC 1071).
  private static func checksum(_ bytes: RawSpan, _ start: UInt64) -> UInt16 {
    var sum = sum(bytes, start)
    while sum > 0xffff { sum = (sum & 0xffff) + sum >> 16 }
    return ~UInt16(truncatingIfNeeded: sum)
  }
}

extension SynthesizedConnection {
  /// The number of bytes that `write` writes.
  package static let writtenLength = 52

  /// Writes the endpoints and their numbers of bytes, before anything is sent.
  package static func write(
    client: Endpoint, server: Endpoint, clientBytes: Int, serverBytes: Int, into output: inout ByteWriter
  ) {
    for end in [client, server] {
      output.write(bigEndian: end.address.high)
      output.write(bigEndian: end.address.low)
      output.write(bigEndian: end.port)
    }
    output.write(bigEndian: clientBytes)
    output.write(bigEndian: serverBytes)
  }

  /// Reads what `write` wrote; `nil` if there are fewer bytes.
  package init?(number: Int, parsing bytes: RawSpan) {
    guard bytes.byteCount >= Self.writtenLength else { return nil }
    func endpoint(at offset: Int) -> Endpoint {
      Endpoint(
        address: IPAddress(high: bytes.uint64(at: offset), low: bytes.uint64(at: offset + 8)),
        port: bytes.uint16(at: offset + 16))
    }
    self.init(
      number: number, client: endpoint(at: 0), server: endpoint(at: 18),
      clientBytes: Int(truncatingIfNeeded: bytes.uint64(at: 36)),
      serverBytes: Int(truncatingIfNeeded: bytes.uint64(at: 44)))
  }
}
