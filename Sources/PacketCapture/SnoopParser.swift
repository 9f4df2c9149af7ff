import Bytes

/// snoop version 2 (RFC 1761): 16 bytes of file header, then 24 bytes before each packet, all big-endian.
///
/// ```
/// "snoop\0\0\0" | version u32 | datalink u32
/// original u32 | captured u32 | record length u32 | drops u32 | seconds u32 | microseconds u32 | bytes and padding…
/// ```
struct SnoopParser: CaptureParser {
  private let maximumPacketLength: Int
  private var number = 0
  /// The packets dropped up to the latest one, as the file counts them.
  private(set) var dropped = 0
  let linkType: LinkType
  static let headerLength = 16
  private static let magic: UInt64 = 0x736e_6f6f_7000_0000

  init?(header: RawSpan, options: CaptureOptions) throws(CaptureError) {
    guard header.byteCount >= Self.headerLength, header.uint64(at: 0) == Self.magic else { return nil }
    let (version, datalink) = (header.uint32(at: 8), header.uint32(at: 12))
    guard version == 2 else { throw CaptureError(.notACapture, "unsupported snoop version \(version)") }
    guard datalink == 4 else {
      throw CaptureError(.notACapture, "unsupported snoop data link \(datalink); expected Ethernet")
    }
    linkType = .ethernet
    maximumPacketLength = options.maximumPacketLength
  }

  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep {
    let available = window.byteCount - offset
    guard available >= 24 else { return .needs(24) }
    let captured = Int(window.uint32(at: offset + 4))
    let length = Int(window.uint32(at: offset + 8))
    guard length <= maximumPacketLength, length >= 24 + captured else {
      throw CaptureError(
        .damaged, "packet \(number + 1) at offset \(position + offset) has a record length of \(length)")
    }
    guard available >= length else { return .needs(length) }
    number += 1
    dropped = Int(window.uint32(at: offset + 12))
    let nanoseconds =
      Int64(window.uint32(at: offset + 16)) * 1_000_000_000 + Int64(window.uint32(at: offset + 20)) * 1_000
    let packet = Packet(
      number: number, time: Timestamp(nanoseconds: nanoseconds), linkType: linkType,
      originalLength: Int(window.uint32(at: offset)), capturedLength: captured)
    let body = offset + 24
    offset += length
    return .packet(packet, body..<body + captured)
  }
}
