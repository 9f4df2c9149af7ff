import Bytes

/// A copy of a capture as pcapng, with comments at packets.
///
/// Blocks of a pcapng file are copied unchanged, with these exceptions: packets that get a comment, or other bytes;
/// secrets that are left out; section headers that state the length of the section, which becomes unknown; and simple
/// packet blocks that get a comment, which become enhanced ones. Packets of pcap and snoop files become packets of one
/// interface, with times in nanoseconds.
package struct CommentedCopy {
  /// The number of packets copied and of comments written.
  package private(set) var packets = 0
  package private(set) var comments = 0
  /// Problems of the file. Everything before a damaged place is copied.
  package private(set) var warnings: [String] = []
  /// Whether the file has TLS secrets.
  package private(set) var holdsSecrets = false
  /// Blocks of TLS secrets that are not in the copy.
  package private(set) var droppedSecrets = 0
  /// Packets with other bytes in their payloads, and with zeros alone.
  package private(set) var edited = 0
  package private(set) var blanked = 0
  private let edits: PayloadEdits
  private let dropsSecrets: Bool
  private var decoder: PacketDecoder
  private let write: (RawSpan) -> Bool
  private let comment: (Int) -> String?

  /// Copies a file.
  ///
  /// - Parameters:
  ///   - edits: what is replaced in payloads.
  ///   - dropsSecrets: blocks of TLS secrets are left out.
  ///   - comment: returns the comment at a packet, by its number from 1.
  ///   - write: receives the copy piece by piece; `false` ends the copy.
  ///   - proceed: called after each block of the file with the bytes read, the size if it is known, and the number of
  ///     packets; `false` ends the copy.
  /// - Throws: a `CaptureError` if the file cannot be read or is not a packet capture.
  package init(
    of path: String, options: CaptureOptions, edits: PayloadEdits = PayloadEdits(), dropsSecrets: Bool = false,
    comment: @escaping (Int) -> String?, to write: @escaping (RawSpan) -> Bool,
    proceed: (_ bytesRead: Int, _ size: Int?, _ packets: Int) -> Bool
  ) throws(CaptureError) {
    self.comment = comment
    self.write = write
    (self.edits, self.dropsSecrets) = (edits, dropsSecrets)
    decoder = PacketDecoder(options: options)
    var input = try InputFile.opening(path)
    _ = try input.fill(atLeast: 24)
    guard try CaptureFile.recognises(input.window, options: options) else {
      throw CaptureError(.notACapture, "is not a packet capture")
    }
    if var pcap = try PcapParser(header: input.window, options: options) {
      input.consume(PcapParser.headerLength)
      if begin(pcap.linkType) { try convert(&input, &pcap, proceed) }
    } else if var snoop = try SnoopParser(header: input.window, options: options) {
      input.consume(SnoopParser.headerLength)
      if begin(snoop.linkType) { try convert(&input, &snoop, proceed) }
    } else {
      var pcapng = PcapngParser(options: options)
      try copy(&input, &pcapng, proceed)
      warnings += pcapng.warnings
    }
    if let warning = input.warning { warnings.append(warning) }
  }

  private mutating func text(at packet: Packet) -> String? {
    packets += 1
    guard let text = comment(packet.number) else { return nil }
    comments += 1
    return text
  }

  /// The packet's bytes, if some are replaced.
  private mutating func edited(_ packet: Packet, _ bytes: RawSpan) -> [UInt8]? {
    if edits.isEmpty { return nil }
    var copy = Array(copying: bytes)
    switch edits.edit(packet, &copy, &decoder) {
    case .copied: return nil
    case .edited: edited += 1
    case .blanked: blanked += 1
    }
    return copy
  }

  // MARK: pcap and snoop

  private func begin(_ linkType: LinkType) -> Bool {
    let interface = PcapngBlock.interface(linkType: linkType.rawValue, snapLength: 0, digits: 9)
    return write(PcapngBlock.section().rawBytes) && write(interface.rawBytes)
  }

  private mutating func convert(
    _ input: inout InputFile, _ parser: inout some CaptureParser, _ proceed: (Int, Int?, Int) -> Bool
  ) throws(CaptureError) {
    while true {
      var offset = 0
      switch try next(input.window, &offset, input.position, &parser) {
      case .packet(let packet, let range):
        let text = text(at: packet)
        let time = UInt64(bitPattern: packet.time.nanoseconds)
        let length = UInt32(clamping: packet.originalLength)
        let block =
          if let edited = edited(packet, input.window.extracting(range)) {
            PcapngBlock.packet(time: time, length: length, edited.rawBytes, comment: text)
          } else {
            PcapngBlock.packet(time: time, length: length, input.window.extracting(range), comment: text)
          }
        guard write(block.rawBytes) else { return }
      case .other: break
      case .needs(let count):
        guard proceed(input.bytesRead, input.size, packets), try fill(&input, count) else { return }
      case .skip(let count):
        guard try input.skip(count) else { return }
      case nil: return
      }
      input.consume(offset)
    }
  }

  // MARK: pcapng

  private mutating func copy(
    _ input: inout InputFile, _ parser: inout PcapngParser, _ proceed: (Int, Int?, Int) -> Bool
  ) throws(CaptureError) {
    while true {
      var offset = 0
      let step = try next(input.window, &offset, input.position, &parser)
      guard put(step, input.window.extracting(0..<offset), parser.bigEndian) else { return }
      switch step {
      case .packet, .other: break
      case .needs(let count):
        guard proceed(input.bytesRead, input.size, packets), try fill(&input, count) else { return }
      case .skip(let count):
        if noteSecrets(input.window, parser.bigEndian), dropsSecrets {
          guard drop(), try input.skip(count) else { return }
        } else {
          guard try pass(&input, count) else { return }
        }
      case nil: return
      }
      input.consume(offset)
    }
  }

  private mutating func put(_ step: CaptureStep?, _ block: RawSpan, _ bigEndian: Bool) -> Bool {
    switch step {
    case .packet(let packet, let range):
      guard let edited = edited(packet, block.extracting(range)) else { return put(packet, block, range, bigEndian) }
      var copy = Array(copying: block)
      copy.replaceSubrange(range, with: edited)
      return put(packet, copy.rawBytes, range, bigEndian)
    case .other: return noteSecrets(block, bigEndian) && dropsSecrets ? drop() : write(block: block)
    default: return true
    }
  }

  private mutating func put(_ packet: Packet, _ block: RawSpan, _ range: Range<Int>, _ bigEndian: Bool) -> Bool {
    guard let text = text(at: packet) else { return write(block) }
    return write(commented(block, packet, range, bigEndian, text).rawBytes)
  }

  private mutating func drop() -> Bool {
    droppedSecrets += 1
    return true
  }

  /// Whether a block has TLS secrets.
  private mutating func noteSecrets(_ block: RawSpan, _ bigEndian: Bool) -> Bool {
    guard block.byteCount >= 4, block.uint32(at: 0, bigEndian: bigEndian) == PcapngBlock.secretsType else {
      return false
    }
    holdsSecrets = true
    return true
  }

  private func commented(
    _ block: RawSpan, _ packet: Packet, _ range: Range<Int>, _ bigEndian: Bool, _ text: String
  ) -> [UInt8] {
    if block.uint32(at: 0, bigEndian: bigEndian) == PcapngBlock.simpleType {
      return PcapngBlock.packet(
        simple: block.extracting(range), length: UInt32(clamping: packet.originalLength), bigEndian: bigEndian,
        comment: text)
    }
    return PcapngBlock.packet(block, captured: range.count, bigEndian: bigEndian, comment: text)
  }

  /// Writes a block. Comments make a section longer than its header says, so the length in the header becomes unknown.
  private func write(block: RawSpan) -> Bool {
    guard block.uint32(at: 0) == PcapngBlock.sectionType, block.uint64(at: 16) != .max else { return write(block) }
    var header = Array(copying: block)
    for place in 16..<24 { header[place] = 0xff }
    return write(header.rawBytes)
  }

  /// Copies bytes without holding them all in memory.
  private mutating func pass(_ input: inout InputFile, _ length: Int) throws(CaptureError) -> Bool {
    var left = length
    while left > 0 {
      guard try fill(&input, 1) else { return false }
      let step = min(left, input.count)
      guard write(input.window.extracting(0..<step)) else { return false }
      input.consume(step)
      left -= step
    }
    return true
  }

  // MARK: damage

  /// The next record; `nil` if the file is damaged.
  private mutating func next(
    _ window: RawSpan, _ offset: inout Int, _ position: Int, _ parser: inout some CaptureParser
  ) throws(CaptureError) -> CaptureStep? {
    do throws(CaptureError) {
      return try parser.next(in: window, at: &offset, position: position)
    } catch {
      guard error.kind == .damaged else { throw error }
      warnings.append(error.message)
      return nil
    }
  }

  private mutating func fill(_ input: inout InputFile, _ count: Int) throws(CaptureError) -> Bool {
    let rest = input.count
    if try input.fill(atLeast: count) { return true }
    if rest > 0, input.warning == nil {
      warnings.append(
        "the file ends in the middle of a record, after packet \(packets); all complete records are copied")
    }
    return false
  }
}
