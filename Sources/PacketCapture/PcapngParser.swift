import Bytes

/// pcapng: blocks of `type u32 | length u32 | body | length u32`, in sections that have their own byte order and
/// interfaces. Source: draft-ietf-opsawg-pcapng.
struct PcapngParser: CaptureParser {
  /// The block types that are parsed; all others are skipped.
  private enum BlockType {
    static let sectionHeader: UInt32 = 0x0a0d_0d0a
    static let interface: UInt32 = 1
    static let obsoletePacket: UInt32 = 2
    static let simplePacket: UInt32 = 3
    static let statistics: UInt32 = 5
    static let enhancedPacket: UInt32 = 6
    static let decryptionSecrets: UInt32 = 10
    /// Block types that are not packets, but have a frame number in Wireshark: systemd journal entries, custom blocks
    /// and system calls.
    static let numbered: Set<UInt32> = [9, 0xbad, 0x4000_0bad, 0x204, 0x208, 0x213, 0x216, 0x221]
  }

  private struct Interface {
    var linkType: LinkType
    var snapLength: Int
    var ticksPerSecond: UInt64 = 1_000_000
    var offsetSeconds: Int64 = 0
    var name: String?

    func time(_ high: UInt32, _ low: UInt32) -> Timestamp {
      .from(seconds: offsetSeconds, ticks: UInt64(high) << 32 | UInt64(low), ticksPerSecond: ticksPerSecond)
    }
  }

  /// Larger counts of packets are damage, and would overflow sums.
  private static let maximumPackets = 1 << 35
  /// Longer interface names are truncated.
  private static let longestName = 256

  private let options: CaptureOptions
  /// The byte order of the current section.
  private(set) var bigEndian = false
  private var interfaces: [Interface] = []
  private var number = 0
  private var secretsLength = 0
  private(set) var linkTypes = LinkTypeList()
  private(set) var secrets: [DecryptionSecrets] = []
  private(set) var warnings: [String] = []
  private(set) var losses = CaptureLosses()

  static func matches(_ header: RawSpan) -> Bool {
    header.byteCount >= 12 && header.uint32(at: 0) == BlockType.sectionHeader
      && [0x1a2b_3c4d, 0x4d3c_2b1a].contains(header.uint32(at: 8))
  }

  /// Throws if the version of the first section is not supported. A later section with such a version ends the reading.
  static func checkVersion(_ header: RawSpan) throws(CaptureError) {
    guard header.byteCount >= 14 else { return }
    let major = header.uint16(at: 12, bigEndian: header.uint32(at: 8) == 0x1a2b_3c4d)
    guard major == 1 else { throw CaptureError(.notACapture, "unsupported pcapng version \(major)") }
  }

  init(options: CaptureOptions) { self.options = options }

  mutating func next(in window: RawSpan, at offset: inout Int, position: Int) throws(CaptureError) -> CaptureStep {
    let available = window.byteCount - offset
    guard available >= 12 else { return .needs(12) }
    let type = window.uint32(at: offset, bigEndian: bigEndian)
    if type == BlockType.sectionHeader {
      switch window.uint32(at: offset + 8) {
      case 0x1a2b_3c4d: bigEndian = true
      case 0x4d3c_2b1a: bigEndian = false
      default: throw damaged("section header has no byte-order magic", position + offset)
      }
    }
    let length = Int(window.uint32(at: offset + 4, bigEndian: bigEndian))
    guard length >= 12 else { throw damaged("block has a length of \(length)", position + offset) }
    // Some writers store a length that is not a multiple of four, but write the padding nevertheless.
    let padded = (length + 3) & ~3
    switch type {
    case BlockType.sectionHeader, BlockType.interface, BlockType.obsoletePacket, BlockType.simplePacket,
      BlockType.enhancedPacket:
      guard length <= options.maximumBlockLength else {
        throw damaged("block of \(length) bytes exceeds the limit of \(options.maximumBlockLength)", position + offset)
      }
    case BlockType.decryptionSecrets where length <= options.maximumBlockLength: break
    case BlockType.statistics where length <= options.maximumBlockLength: break
    case BlockType.decryptionSecrets:
      warn("secrets block at offset \(position + offset) exceeds the limit of \(options.maximumBlockLength) bytes")
      return .skip(padded)
    default:
      if BlockType.numbered.contains(type) { number += 1 }
      return .skip(padded)
    }
    guard available >= padded else { return .needs(padded) }
    let body = offset + 8..<offset + length - 4
    let at = position + offset
    defer { offset += padded }
    switch type {
    case BlockType.sectionHeader:
      try readSection(window, body, at)
      return .other
    case BlockType.interface:
      try readInterface(window, body, at)
      return .other
    case BlockType.decryptionSecrets:
      readSecrets(window, body, at)
      return .other
    case BlockType.statistics:
      readStatistics(window, body)
      return .other
    default: return try readPacket(type, window, body, at)
    }
  }

  private mutating func readSection(_ window: RawSpan, _ body: Range<Int>, _ at: Int) throws(CaptureError) {
    guard body.count >= 16 else { throw damaged("section header is too short", at) }
    let major = window.uint16(at: body.lowerBound + 4, bigEndian: bigEndian)
    guard major == 1 else { throw damaged("unsupported pcapng version \(major)", at) }
    interfaces = []
    losses.endSection()
  }

  private mutating func readInterface(_ window: RawSpan, _ body: Range<Int>, _ at: Int) throws(CaptureError) {
    guard body.count >= 8 else { throw damaged("interface block is too short", at) }
    var interface = Interface(
      linkType: LinkType(rawValue: window.uint16(at: body.lowerBound, bigEndian: bigEndian)),
      snapLength: Int(window.uint32(at: body.lowerBound + 4, bigEndian: bigEndian)))
    Self.forEachOption(window, from: body.lowerBound + 8, to: body.upperBound, bigEndian: bigEndian) {
      code, value, length in
      if code == 2 {
        let name = window.extracting(value..<value + min(length, Self.longestName))
        interface.name = String(decoding: Array(copying: name).prefix { $0 != 0 }, as: UTF8.self)
      } else if code == 9 && length >= 1 {
        let resolution = window.byte(at: value)
        if let ticks = Self.ticksPerSecond(resolution) {
          interface.ticksPerSecond = ticks
        } else {
          warn("interface \(interfaces.count): unsupported time resolution \(resolution); its times are wrong")
        }
      } else if code == 14 && length >= 8 {
        interface.offsetSeconds = Int64(bitPattern: window.uint64(at: value, bigEndian: bigEndian))
      }
    }
    guard interfaces.count < 65_536 else { throw damaged("more than 65,536 interfaces in a section", at) }
    interfaces.append(interface)
    let wasCut = linkTypes.isCut
    linkTypes.add(interface.linkType)
    if linkTypes.isCut && !wasCut {
      warn("interfaces have more than \(LinkTypeList.limit) link types; only the first 64 are listed")
    }
  }

  /// Calls `body` with each option: `code u16 | length u16 | value`, padded to four bytes; code 0 ends them.
  private static func forEachOption(
    _ window: RawSpan, from start: Int, to end: Int, bigEndian: Bool,
    _ body: (_ code: UInt16, _ value: Int, _ length: Int) -> Void
  ) {
    var offset = start
    while offset + 4 <= end {
      let code = window.uint16(at: offset, bigEndian: bigEndian)
      let length = Int(window.uint16(at: offset + 2, bigEndian: bigEndian))
      let value = offset + 4
      guard code != 0, value + length <= end else { return }
      body(code, value, length)
      offset = value + (length + 3) & ~3
    }
  }

  /// Interface statistics: `interface u32 | time 2 × u32 | options`. The counts are since the start of the capture.
  private mutating func readStatistics(_ window: RawSpan, _ body: Range<Int>) {
    guard body.count >= 12 else { return }
    let index = Int(window.uint32(at: body.lowerBound, bigEndian: bigEndian))
    guard index < interfaces.count else { return }
    let interface = interfaces[index]
    var loss = CaptureLoss(interface: interface.name)
    Self.forEachOption(window, from: body.lowerBound + 12, to: body.upperBound, bigEndian: bigEndian) {
      code, value, length in
      guard length >= 8 else { return }
      let count = min(Int(clamping: window.uint64(at: value, bigEndian: bigEndian)), Self.maximumPackets)
      switch code {
      case 2:
        loss.started = interface.time(
          window.uint32(at: value, bigEndian: bigEndian), window.uint32(at: value + 4, bigEndian: bigEndian))
      case 4: loss.received = count
      case 5: loss.interfaceDropped = count
      case 7: loss.systemDropped = count
      default: break
      }
    }
    losses.note(loss, of: index)
  }

  /// if_tsresol: a negative power of 10, or of 2 if the highest bit is set; `nil` if the ticks per second exceed 64
  /// bits.
  private static func ticksPerSecond(_ resolution: UInt8) -> UInt64? {
    let exponent = Int(resolution & 0x7f)
    if resolution & 0x80 != 0 { return exponent < 64 ? 1 << UInt64(exponent) : nil }
    return exponent < 20 ? (0..<exponent).reduce(1) { value, _ in value * 10 } : nil
  }

  private mutating func readSecrets(_ window: RawSpan, _ body: Range<Int>, _ at: Int) {
    guard body.count >= 8 else { return warn("secrets block at offset \(at) is too short") }
    let type = window.uint32(at: body.lowerBound, bigEndian: bigEndian)
    let length = Int(window.uint32(at: body.lowerBound + 4, bigEndian: bigEndian))
    guard length <= body.count - 8 else { return warn("secrets at offset \(at) extend past the end of their block") }
    guard length > 0 else { return }
    // An array needs more memory than its bytes.
    let cost = length + 64
    guard secretsLength + cost <= options.maximumSecretsLength else {
      return warn("secrets block at offset \(at) exceeds the limit of \(options.maximumSecretsLength) bytes in all")
    }
    secretsLength += cost
    let start = body.lowerBound + 8
    secrets.append(DecryptionSecrets(type: type, data: Array(copying: window.extracting(start..<start + length))))
  }

  private mutating func readPacket(
    _ type: UInt32, _ window: RawSpan, _ body: Range<Int>, _ at: Int
  ) throws(CaptureError) -> CaptureStep {
    number += 1
    let start = body.lowerBound
    let fixed = type == BlockType.simplePacket ? 4 : 20
    guard body.count >= fixed else { throw damaged("packet \(number): block is too short", at) }
    let index =
      switch type {
      case BlockType.enhancedPacket: Int(window.uint32(at: start, bigEndian: bigEndian))
      case BlockType.obsoletePacket: Int(window.uint16(at: start, bigEndian: bigEndian))
      default: 0
      }
    guard index < interfaces.count else {
      warn("packet \(number) at offset \(at) names interface \(index), which its section does not declare")
      return .other
    }
    let interface = interfaces[index]
    let room = body.count - fixed
    var time = Timestamp.none
    let captured: Int
    let original: Int
    if type == BlockType.simplePacket {
      original = Int(window.uint32(at: start, bigEndian: bigEndian))
      captured = min(original, interface.snapLength == 0 ? room : min(room, interface.snapLength))
    } else {
      time = interface.time(
        window.uint32(at: start + 4, bigEndian: bigEndian), window.uint32(at: start + 8, bigEndian: bigEndian))
      captured = Int(window.uint32(at: start + 12, bigEndian: bigEndian))
      original = Int(window.uint32(at: start + 16, bigEndian: bigEndian))
      guard captured <= room else { throw damaged("packet \(number) extends past the end of its block", at) }
    }
    let packet = Packet(
      number: number, time: time, linkType: interface.linkType, originalLength: original, capturedLength: captured)
    return .packet(packet, start + fixed..<start + fixed + captured)
  }

  @inline(never)
  private func damaged(_ what: String, _ at: Int) -> CaptureError {
    CaptureError(.damaged, "\(what) (offset \(at), after packet \(number))")
  }

  /// Adds a warning, up to 100: a file can repeat the same mistake a million times.
  private mutating func warn(_ text: String) {
    if warnings.count < 100 { warnings.append(text) }
  }
}

/// The contents of a pcapng Decryption Secrets Block.
public struct DecryptionSecrets: Sendable {
  /// The type of an NSS key log, "TLSK".
  public static let tlsKeyLog: UInt32 = 0x544c_534b
  /// The type of the secrets, `tlsKeyLog` or another registered value.
  public var type: UInt32
  /// The secrets in the format of the type.
  public var data: [UInt8]
}
