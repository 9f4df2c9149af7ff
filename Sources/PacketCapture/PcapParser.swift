import Bytes

/// pcap: 24 bytes of file header, then 16 (Kuznetzov's variant: 24) bytes of header before each packet.
///
/// ```
/// magic u32 | version 2 × u16 | zone u32 | accuracy u32 | snap length u32 | link type u32
/// seconds u32 | fraction u32 | captured length u32 | original length u32 | bytes…
/// ```
struct PcapParser: CaptureParser {
  private let bigEndian: Bool
  private let nanosecondsPerTick: Int64
  private let recordHeaderLength: Int
  private let maximumPacketLength: Int
  private var number = 0
  let linkType: LinkType
  static let headerLength = 24

  /// Parses the file header; `nil` if the magic number is not that of pcap.
  ///
  /// - Throws: if the header is truncated, or of a major version other than 2.
  init?(header: RawSpan, options: CaptureOptions) throws(CaptureError) {
    guard header.byteCount >= 4 else { return nil }
    switch header.uint32(at: 0) {
    case 0xa1b2_c3d4: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (true, 1_000, 16)
    case 0xd4c3_b2a1: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (false, 1_000, 16)
    case 0xa1b2_3c4d: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (true, 1, 16)
    case 0x4d3c_b2a1: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (false, 1, 16)
    case 0xa1b2_cd34: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (true, 1_000, 24)
    case 0x34cd_b2a1: (bigEndian, nanosecondsPerTick, recordHeaderLength) = (false, 1_000, 24)
    default: return nil
    }
    guard header.byteCount >= Self.headerLength else {
      throw CaptureError(.notACapture, "the pcap header is cut short: \(header.byteCount) of 24 bytes")
    }
    let major = header.uint16(at: 4, bigEndian: bigEndian)
    guard major == 2 else { throw CaptureError(.notACapture, "unsupported pcap version \(major)") }
    // The upper bits are the length of a frame check sequence, which the lengths of packets already exclude.
    linkType = LinkType(rawValue: UInt16(truncatingIfNeeded: header.uint32(at: 20, bigEndian: bigEndian)))
    maximumPacketLength = options.maximumPacketLength
  }

  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep {
    let available = window.byteCount - offset
    guard available >= recordHeaderLength else { return .needs(recordHeaderLength) }
    let captured = Int(window.uint32(at: offset + 8, bigEndian: bigEndian))
    guard captured <= maximumPacketLength else { throw tooLong(captured, position + offset) }
    let length = recordHeaderLength + captured
    guard available >= length else { return .needs(length) }
    if captured == 0, Self.isBlank(window, offset) { throw blank(position + offset) }
    let seconds = Int64(window.uint32(at: offset, bigEndian: bigEndian))
    let fraction = Int64(window.uint32(at: offset + 4, bigEndian: bigEndian))
    number += 1
    let packet = Packet(
      number: number, time: Timestamp(nanoseconds: seconds * 1_000_000_000 + fraction * nanosecondsPerTick),
      linkType: linkType, originalLength: Int(window.uint32(at: offset + 12, bigEndian: bigEndian)),
      capturedLength: captured)
    let body = offset + recordHeaderLength
    offset += length
    return .packet(packet, body..<body + captured)
  }

  /// Whether a record consists of zeros: after a crash, a preallocated file has zeros after its last packet.
  @inline(never)
  private static func isBlank(_ window: RawSpan, _ offset: Int) -> Bool {
    window.uint64(at: offset) == 0 && window.uint64(at: offset + 8) == 0
  }

  @inline(never)
  private func blank(_ at: Int) -> CaptureError {
    CaptureError(.damaged, "zeros instead of a packet at offset \(at), after packet \(number)")
  }

  @inline(never)
  private func tooLong(_ length: Int, _ at: Int) -> CaptureError {
    CaptureError(
      .damaged, "packet \(number + 1) at offset \(at) claims \(length) bytes; the limit is \(maximumPacketLength)")
  }
}
