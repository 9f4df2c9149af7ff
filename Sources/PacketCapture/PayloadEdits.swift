import Bytes

/// Bytes of TCP payloads that are replaced in a copy of a capture: packets keep their lengths.
package struct PayloadEdits: Sendable {
  /// Bytes that replace as many.
  package struct Edit: Sendable {
    /// The offset of the first one in the packet's payload.
    package var offset: Int
    package var bytes: [UInt8]
    /// Whether they are zeros for what is not understood.
    package var isBlank: Bool

    package init(offset: Int, bytes: [UInt8], isBlank: Bool = false) {
      (self.offset, self.bytes, self.isBlank) = (offset, bytes, isBlank)
    }
  }

  /// A packet whose payload is known.
  package struct KnownPacket: Sendable {
    /// The payload's length: with another one it is not what is known.
    package var length = 0
    package var edits: [Edit] = []
    /// Whether all of its payload becomes zeros.
    package var isBlank = false

    package init() {}
  }

  private struct Ends: Sendable, Hashable {
    var source: Endpoint
    var destination: Endpoint
  }

  private var ends: Set<Ends> = []
  /// The packets between these ends that are known, by number. Payloads of all others become zeros.
  package var packets: [Int: KnownPacket] = [:]

  package init() {}

  /// Whether nothing is replaced.
  package var isEmpty: Bool { ends.isEmpty }

  /// Adds both directions between two endpoints.
  package mutating func add(_ client: Endpoint, _ server: Endpoint) {
    ends.insert(Ends(source: client, destination: server))
    ends.insert(Ends(source: server, destination: client))
  }

  /// What happened to a packet.
  package enum Outcome: Sendable {
    case copied, edited, blanked
  }

  /// Replaces bytes of a packet. `.blanked`: zeros are among them.
  ///
  /// - Parameters:
  ///   - packet: its number and lengths.
  ///   - bytes: its captured bytes.
  ///   - decoder: has decoded the packets before it.
  package func edit(_ packet: Packet, _ bytes: inout [UInt8], _ decoder: inout PacketDecoder) -> Outcome {
    if isEmpty { return .copied }
    var places: [(payload: Range<Int>, ends: Ends, length: Int)] = []
    var isWhole = true
    let unread = decoder.decode(packet, bytes.rawBytes) { segment, payload in
      guard segment.payloadLength > 0 || payload.byteCount > 0 else { return }
      let ends = Ends(source: segment.source, destination: segment.destination)
      guard let place = bytes.rawBytes.byteOffsets(of: payload) else {
        isWhole = false
        return
      }
      places.append((place, ends, segment.payloadLength))
    }
    // A fragment, or the last one of a datagram: where its payload is nobody says.
    if unread == nil && (places.isEmpty && isFragment(bytes, packet.linkType) || !isWhole) {
      return Self.blank(&bytes, Self.shortestHeaders(packet.linkType)..<bytes.count)
    }
    var outcome = Outcome.copied
    for (payload, ends, length) in places where self.ends.contains(ends) {
      guard let known = packets[packet.number], !known.isBlank, known.length == payload.count, places.count == 1 else {
        outcome = Self.blank(&bytes, payload)
        continue
      }
      for edit in known.edits where edit.offset + edit.bytes.count <= payload.count {
        let start = payload.lowerBound + edit.offset
        let sum = Self.sum(edit, in: bytes, payload.lowerBound)
        bytes.replaceSubrange(start..<start + edit.bytes.count, with: edit.bytes)
        // What is cut off is in no sum that could be right.
        if length == payload.count {
          Self.correct(
            &bytes, payload.lowerBound, ends.source.port, by: Self.sum(edit, in: bytes, payload.lowerBound), sum)
        }
        if outcome != .blanked { outcome = edit.isBlank ? .blanked : .edited }
      }
    }
    return outcome
  }

  private static func blank(_ bytes: inout [UInt8], _ range: Range<Int>) -> Outcome {
    guard !range.isEmpty else { return .copied }
    for place in range { bytes[place] = 0 }
    return .blanked
  }

  /// Whether a packet without a segment may be a part of one; pure acknowledgements have none, either.
  private func isFragment(_ bytes: [UInt8], _ linkType: LinkType) -> Bool {
    let start = Self.shortestHeaders(linkType) - 20
    guard bytes.count > start + 20 else { return false }
    // IPv4: version u4 … | more fragments, offset u13 at 6; IPv6 has a header of its own for it.
    if bytes[start] >> 4 == 4 { return bytes[start + 6] & 0x3f | bytes[start + 7] != 0 }
    return true
  }

  /// The bytes that precede every payload: the headers of the link and the shortest ones of IP.
  private static func shortestHeaders(_ linkType: LinkType) -> Int {
    switch linkType {
    case .ethernet: 34
    case .linuxSLL: 36
    case .null, .loop: 24
    default: 20
    }
  }

  // MARK: checksums

  /// The sum of the 16-bit words of the payload that an edit concerns.
  private static func sum(_ edit: Edit, in bytes: [UInt8], _ start: Int) -> UInt32 {
    var sum: UInt32 = 0
    for offset in edit.offset..<edit.offset + edit.bytes.count {
      // TCP headers have whole words, so the payload's first byte begins one.
      sum += UInt32(bytes[start + offset]) << (offset & 1 == 0 ? 8 : 0)
      sum = sum & 0xffff + sum >> 16
    }
    return sum
  }

  /// Corrects the checksum of a TCP header by the difference of two sums (RFC 1624): a wrong one stays wrong.
  private static func correct(_ bytes: inout [UInt8], _ payload: Int, _ port: UInt16, by new: UInt32, _ old: UInt32) {
    let header = stride(from: 20, through: 60, by: 4).first { length in
      let start = payload - length
      return start >= 0 && Int(bytes[start + 12] >> 4) * 4 == length
        && UInt16(bytes[start]) << 8 | UInt16(bytes[start + 1]) == port
    }
    guard let header else { return }
    let place = payload - header + 16
    let checksum = UInt32(bytes[place]) << 8 | UInt32(bytes[place + 1])
    var sum = (~checksum & 0xffff) + (~old & 0xffff) + new
    while sum > 0xffff { sum = sum & 0xffff + sum >> 16 }
    let corrected = ~UInt16(truncatingIfNeeded: sum)
    (bytes[place], bytes[place + 1]) = (UInt8(corrected >> 8), UInt8(corrected & 0xff))
  }
}
