import Bytes

@testable import PacketCapture

/// Packets from the inside out: a TCP segment, the IP header before it, the link layer before that.
enum PacketBuilder {
  static let data = Array("notification".utf8)
  static let v4: (source: UInt32, destination: UInt32) = (0x0a00_0001, 0x1100_0001)
  static let v6: (source: [UInt8], destination: [UInt8]) = (
    [0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [1], [0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [2]
  )

  static func tcp(_ data: [UInt8] = data, options: [UInt8] = []) -> [UInt8] {
    var header = FileBuilder(bigEndian: true)
    header.u16(50_000)
    header.u16(2_195)
    header.u32(1_000)
    header.u32(2_000)
    header.bytes += [UInt8((20 + options.count) / 4) << 4, 0x18]
    header.u16(0xffff)
    // A checksum that is certainly wrong: it is not to be looked at.
    header.u16(0xdead)
    header.u16(0)
    return header.bytes + options + data
  }

  static func ipv4(
    _ payload: [UInt8], total: Int? = nil, options: [UInt8] = [], identification: UInt16 = 7, fragment: UInt16 = 0,
    transport: UInt8 = 6
  ) -> [UInt8] {
    var header = FileBuilder(bigEndian: true)
    header.bytes += [0x45 + UInt8(options.count / 4), 0]
    header.u16(UInt16(total ?? 20 + options.count + payload.count))
    header.u16(identification)
    header.u16(fragment)
    header.bytes += [64, transport, 0xba, 0xad]
    header.u32(v4.source)
    header.u32(v4.destination)
    return header.bytes + options + payload
  }

  static func ipv6(_ payload: [UInt8], next: UInt8 = 6, declared: Int? = nil) -> [UInt8] {
    var header = FileBuilder(bigEndian: true)
    header.u32(0x6000_0000)
    header.u16(UInt16(declared ?? payload.count))
    header.bytes += [next, 64] + v6.source + v6.destination
    return header.bytes + payload
  }

  static func fragmentHeader(next: UInt8 = 6, offset: Int, more: Bool, identification: UInt32 = 9) -> [UInt8] {
    var header = FileBuilder(bytes: [next, 0], bigEndian: true)
    header.u16(UInt16(offset) | (more ? 1 : 0))
    header.u32(identification)
    return header.bytes
  }

  static func ethernet(_ payload: [UInt8], type: [UInt8] = [0x08, 0x00]) -> [UInt8] {
    [UInt8](repeating: 0x11, count: 12) + type + payload
  }
}

/// What a decoder finds in packets.
struct Decoded {
  struct Segment: Equatable {
    var source: String
    var destination: String
    var payloadLength: Int
    var payload: [UInt8]
  }

  private var decoder: PacketDecoder
  private(set) var segments: [Segment] = []
  /// What was found instead.
  private(set) var unread: [UnreadProtocol] = []
  private var number = 0

  /// The text of what the only segment carries.
  var text: String? { segments.count == 1 ? String(decoding: segments[0].payload, as: UTF8.self) : nil }

  init() { decoder = PacketDecoder() }

  init(
    _ bytes: [UInt8], _ linkType: LinkType = .ethernet, originalLength: Int? = nil,
    options: CaptureOptions = CaptureOptions()
  ) {
    decoder = PacketDecoder(options: options)
    add(bytes, linkType, originalLength: originalLength)
  }

  mutating func add(
    _ bytes: [UInt8], _ linkType: LinkType = .ethernet, originalLength: Int? = nil, seconds: Int64 = 0
  ) {
    number += 1
    let packet = Packet(
      number: number, time: Timestamp(nanoseconds: seconds * 1_000_000_000), linkType: linkType,
      originalLength: originalLength ?? bytes.count, capturedLength: bytes.count)
    var found: [Segment] = []
    let other = decoder.decode(packet, bytes.rawBytes) { segment, payload in
      found.append(
        Segment(
          source: "\(segment.source)", destination: "\(segment.destination)", payloadLength: segment.payloadLength,
          payload: Array(copying: payload)))
    }
    segments += found
    if let other { unread.append(other) }
  }
}
