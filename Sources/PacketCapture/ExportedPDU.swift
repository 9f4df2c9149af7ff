import Bytes

/// Data that Wireshark exported ("Export PDUs to File"): tags in big-endian order, then the data.
///
/// ```
/// tag u16 | length u16 | value, to four bytes … | 0 u16 | 0 u16 | data
/// 12 dissector   14 table of dissectors   20 to 23 addresses   25, 26 ports u32   32 number in the table u32
/// ```
struct ExportedPDU {
  enum Layer { case network, transport, content }

  private(set) var layer = Layer.content
  private(set) var source: Endpoint?
  private(set) var destination: Endpoint?
  /// The offset of the data.
  private(set) var start = 0

  init?(_ bytes: RawSpan) {
    var addresses: (source: IPAddress?, destination: IPAddress?) = (nil, nil)
    var ports: (source: UInt16?, destination: UInt16?) = (nil, nil)
    var offset = 0
    while true {
      guard offset + 4 <= bytes.byteCount else { return nil }
      let tag = bytes.uint16(at: offset)
      let length = Int(bytes.uint16(at: offset + 2))
      let value = offset + 4
      guard value + length <= bytes.byteCount else { return nil }
      offset = value + (length + 3) & ~3
      switch tag {
      case 0:
        start = min(value + length, bytes.byteCount)
        // Without ports the data is a packet or a segment, which has ports of its own.
        if let address = addresses.source { source = Endpoint(address: address, port: ports.source ?? 0) }
        if let address = addresses.destination {
          destination = Endpoint(address: address, port: ports.destination ?? 0)
        }
        return
      case 12, 14:
        let name = String(
          decoding: Array(copying: bytes.extracting(value..<value + length)).filter { $0 > 0 }, as: UTF8.self)
        if ["ip", "ipv4", "ipv6"].contains(name) { layer = .network }
        if name == "tcp" || name == "ip.proto" { layer = .transport }
      case 20 where length == 4: addresses.source = IPAddress(v4: bytes.uint32(at: value))
      case 21 where length == 4: addresses.destination = IPAddress(v4: bytes.uint32(at: value))
      case 22 where length == 16:
        addresses.source = IPAddress(high: bytes.uint64(at: value), low: bytes.uint64(at: value + 8))
      case 23 where length == 16:
        addresses.destination = IPAddress(high: bytes.uint64(at: value), low: bytes.uint64(at: value + 8))
      case 25 where length == 4: ports.source = UInt16(truncatingIfNeeded: bytes.uint32(at: value))
      case 26 where length == 4: ports.destination = UInt16(truncatingIfNeeded: bytes.uint32(at: value))
      default: break
      }
    }
  }
}

/// Numbers the exported data of each direction so that they form a stream: the file has them in order.
struct ExportedPDUs {
  /// The most directions that are numbered; with more, all numbers restart.
  private static let most = 65_536

  private struct Way: Hashable {
    var source: Endpoint
    var destination: Endpoint
  }

  private var next: [Way: UInt32] = [:]

  mutating func segment(_ data: ExportedPDU, length: Int) -> TCPSegment? {
    guard let source = data.source, let destination = data.destination, source.port > 0, destination.port > 0,
      length > 0
    else { return nil }
    if next.count > Self.most { next.removeAll() }
    let way = Way(source: source, destination: destination)
    // After the number of a SYN.
    let sequence = next[way] ?? 1
    next[way] = sequence &+ UInt32(truncatingIfNeeded: length)
    let acknowledged = next[Way(source: destination, destination: source)] ?? 1
    return TCPSegment(
      source: source, destination: destination, sequence: SequenceNumber(rawValue: sequence),
      acknowledgement: SequenceNumber(rawValue: acknowledged), flags: .ack, payloadLength: length)
  }
}
