import Bytes

/// What a file parser found at an offset.
enum CaptureStep {
  /// A packet whose bytes stand at this range of the window; the offset is behind its record.
  case packet(Packet, Range<Int>)
  /// Something else was read; the offset is behind it.
  case other
  /// This many bytes from the offset are needed.
  case needs(Int)
  /// This many bytes from the offset are to be passed over without being held.
  case skip(Int)
}

/// Walks the records of one capture file format.
protocol CaptureParser {
  /// Reads what stands at `offset`. `position` is the offset of the window in the file, for messages.
  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep
}

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

  /// Reads the file header; `nil` when the magic number is not pcap's.
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
    guard major == 2 else { throw CaptureError(.notACapture, "pcap version \(major) is not known") }
    // The upper bits tell the length of a frame check sequence, which a packet's own lengths already exclude.
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

  @inline(never)
  private func tooLong(_ length: Int, _ at: Int) -> CaptureError {
    CaptureError(
      .damaged, "packet \(number + 1) at offset \(at) claims \(length) bytes, over the limit of \(maximumPacketLength)")
  }
}

/// snoop version 2 (RFC 1761): 16 bytes of file header, then 24 bytes before each packet, all big-endian.
///
/// ```
/// "snoop\0\0\0" | version u32 | datalink u32
/// original u32 | captured u32 | record length u32 | drops u32 | seconds u32 | microseconds u32 | bytes and padding…
/// ```
struct SnoopParser: CaptureParser {
  private let maximumPacketLength: Int
  private var number = 0
  let linkType: LinkType
  static let headerLength = 16
  private static let magic: UInt64 = 0x736e_6f6f_7000_0000

  init?(header: RawSpan, options: CaptureOptions) throws(CaptureError) {
    guard header.byteCount >= Self.headerLength, header.uint64(at: 0) == Self.magic else { return nil }
    let (version, datalink) = (header.uint32(at: 8), header.uint32(at: 12))
    guard version == 2 else { throw CaptureError(.notACapture, "snoop version \(version) is not known") }
    guard datalink == 4 else { throw CaptureError(.notACapture, "snoop datalink \(datalink) is not Ethernet") }
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
