import Bytes
import Glibc

/// A packet capture (pcap, pcapng, snoop; gzip or zstd recognised by content), read from front to back once.
///
/// libpcap is not used for files: it has no access to secrets blocks, refuses mixed link types, cuts nanoseconds and
/// reads nothing compressed. Memory is one block of 512 KiB, or the largest packet.
public struct CaptureFile: ~Copyable, Sendable {
  private enum Parser {
    case pcap(PcapParser)
    case pcapng(PcapngParser)
    case snoop(SnoopParser)
  }

  private var input: InputFile
  private var parser: Parser
  private var readingWarnings: [String] = []
  /// Secrets that batches have taken.
  private var handedSecrets = 0
  /// The data that ended the last batch.
  private var unmet = Unmet()
  /// A packet that was read ahead and is the next one.
  private(set) var held: HeldPacket?
  /// The last reading ended because no input came within `patience`: more may come.
  private(set) var isQuiet = false
  /// How long to wait for input that a pipe does not have yet; `nil`: as long as it takes.
  /// How long reading has waited for a pipe in all.
  var waited: Duration { input.waited }

  var patience: Duration? {
    get { input.patience }
    set { input.patience = newValue }
  }

  private struct Unmet {
    var needs = 0
    var skip = 0
  }

  /// The path it was opened with; `-` is standard input.
  public var path: String { input.path }
  public let format: CaptureFormat
  /// Packets read so far.
  public private(set) var packetCount = 0

  /// What was done to read it, in words: an archive was unpacked, text was passed over.
  public var notes: [String] { input.notes }

  /// Bytes on disk, `nil` for a pipe; and how many of them were read, for progress.
  public var size: Int? { input.size }
  public var bytesRead: Int { input.bytesRead }

  /// Whether a file that begins with these bytes (24, if it has them) is a capture. Throws on a header that is damaged.
  static func recognises(_ header: RawSpan, options: CaptureOptions) throws(CaptureError) -> Bool {
    if PcapngParser.matches(header) {
      try PcapngParser.checkVersion(header)
      return true
    }
    if try PcapParser(header: header, options: options) != nil { return true }
    return try SnoopParser(header: header, options: options) != nil
  }

  /// Takes over a file whose first bytes it recognises.
  init(_ input: consuming InputFile, options: CaptureOptions) throws(CaptureError) {
    if let pcap = try PcapParser(header: input.window, options: options) {
      (parser, format) = (.pcap(pcap), .pcap)
      input.consume(PcapParser.headerLength)
    } else if let snoop = try SnoopParser(header: input.window, options: options) {
      (parser, format) = (.snoop(snoop), .snoop)
      input.consume(SnoopParser.headerLength)
    } else {
      (parser, format) = (.pcapng(PcapngParser(options: options)), .pcapng)
    }
    self.input = input
  }

  /// Link types in the order they appeared, 64 at most; complete when the file has been read.
  public var linkTypes: [LinkType] {
    switch parser {
    case .pcap(let parser): [parser.linkType]
    case .snoop(let parser): [parser.linkType]
    case .pcapng(let parser): parser.linkTypes.all
    }
  }

  /// Embedded TLS secrets; complete when the file has been read, since they may come after the packets they open.
  public var secrets: [DecryptionSecrets] {
    if case .pcapng(let parser) = parser { parser.secrets } else { [] }
  }

  /// The secrets of a whole file, including those after the packets they decrypt: reads it again from its beginning.
  ///
  /// - Returns: nothing for formats other than pcapng, for pipes, and for unreadable files.
  package static func secrets(in path: String, options: CaptureOptions) -> [DecryptionSecrets] {
    // Standard input can be read again only if it is a file.
    let name = path == "-" ? "/dev/stdin" : path
    var status = stat()
    guard unsafe stat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      case .packets(var file)? = try? CaptureInput.open(name, options: options), file.format == .pcapng
    else { return [] }
    // Everything before the damage is valid.
    try? file.forEachPacket { _, _, _ in true }
    return file.secrets
  }

  /// Packets that the capture lost, by interface; complete when the file has been read.
  public var losses: [CaptureLoss] {
    switch parser {
    case .pcap: []
    case .snoop(let parser): parser.dropped > 0 ? [CaptureLoss(systemDropped: parser.dropped)] : []
    case .pcapng(let parser): parser.losses.all
    }
  }

  /// Warnings about the file. Everything before the damage was read.
  public var warnings: [String] {
    var warnings = readingWarnings
    if case .pcapng(let parser) = parser { warnings += parser.warnings }
    if let warning = input.warning { warnings.append(warning) }
    return warnings
  }

  /// Calls `body` with every packet from here to the end, or until it returns `false`.
  ///
  /// The bytes are borrowed for the call. Damage ends the reading and becomes a warning; only a failing read, or what
  /// `body` throws, is thrown.
  public mutating func forEachPacket(_ body: (Packet, RawSpan, _ bytesRead: Int) throws -> Bool) throws {
    // The parser is taken out for the time, so that the window may borrow from `input` alone.
    var counter = packetCount
    defer { packetCount = counter }
    let warning: String?
    switch parser {
    case .pcap(var pcap):
      defer { parser = .pcap(pcap) }
      warning = try Self.read(&input, &pcap, &counter, body)
    case .snoop(var snoop):
      defer { parser = .snoop(snoop) }
      warning = try Self.read(&input, &snoop, &counter, body)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      warning = try Self.read(&input, &pcapng, &counter, body)
    }
    if let warning { readingWarnings.append(warning) }
  }

  /// How a walk over one window ended.
  private enum Walk {
    /// The receiver wants no more.
    case stopped
    case damaged(CaptureError)
    case needs(Int)
    case skip(Int)
  }

  /// Returns what ended the reading before the end of the file, if anything did.
  private static func read(
    _ input: inout InputFile, _ parser: inout some CaptureParser, _ packetCount: inout Int,
    _ body: (Packet, RawSpan, Int) throws -> Bool
  ) throws -> String? {
    while true {
      var offset = 0
      let end = try walk(
        input.window, at: &offset, position: input.position, bytesRead: input.bytesRead, &parser, &packetCount, body)
      input.consume(offset)
      let rest = input.count
      switch end {
      case .stopped: return nil
      case .damaged(let error): return error.message
      case .skip(let count):
        if try !input.skip(count) { return input.warning == nil ? cutShort(packetCount) : nil }
      case .needs(let count):
        if try !input.fill(atLeast: count) { return rest > 0 && input.warning == nil ? cutShort(packetCount) : nil }
      }
    }
  }

  private static func walk(
    _ window: RawSpan, at offset: inout Int, position: Int, bytesRead: Int, _ parser: inout some CaptureParser,
    _ packetCount: inout Int, _ body: (Packet, RawSpan, Int) throws -> Bool
  ) throws -> Walk {
    while true {
      let step: CaptureStep
      do throws(CaptureError) {
        step = try parser.next(in: window, at: &offset, position: position)
      } catch {
        return .damaged(error)
      }
      switch step {
      case .packet(let packet, let range):
        packetCount += 1
        if try !body(packet, window.extracting(range), bytesRead) { return .stopped }
      case .other: continue
      case .needs(let count): return .needs(count)
      case .skip(let count): return .skip(count)
      }
    }
  }

  // MARK: packet by packet

  /// Reads the next packet, if none is held, and holds it; `false` at the end of the file, and when it `isQuiet`.
  mutating func holdNext() throws -> Bool {
    if held != nil { return true }
    var counter = packetCount
    defer { packetCount = counter }
    let end: Meeting?
    switch parser {
    case .pcap(var pcap):
      defer { parser = .pcap(pcap) }
      (held, end) = try Self.next(&input, &pcap, &counter, &unmet)
    case .snoop(var snoop):
      defer { parser = .snoop(snoop) }
      (held, end) = try Self.next(&input, &snoop, &counter, &unmet)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      (held, end) = try Self.next(&input, &pcapng, &counter, &unmet)
    }
    note(end)
    return held != nil
  }

  /// Notes whether more is to come, and what is wrong with the file.
  private mutating func note(_ end: Meeting?) {
    isQuiet = end == .quiet
    if case .ended(let warning?) = end { readingWarnings.append(warning) }
  }

  /// Gives away the packet that is held.
  mutating func takeHeld() -> HeldPacket? {
    defer { held = nil }
    return held
  }

  private static func next(
    _ input: inout InputFile, _ parser: inout some CaptureParser, _ packetCount: inout Int, _ unmet: inout Unmet
  ) throws -> (HeldPacket?, Meeting?) {
    while true {
      let meeting = try meet(&unmet, &input, packetCount)
      if meeting != .met { return (nil, meeting) }
      var offset = 0
      let step: CaptureStep
      do throws(CaptureError) {
        step = try parser.next(in: input.window, at: &offset, position: input.position)
      } catch {
        return (nil, .ended(warning: error.message))
      }
      defer { input.consume(offset) }
      switch step {
      case .packet(let packet, let range):
        packetCount += 1
        return (HeldPacket(packet: packet, bytes: Array(copying: input.window.extracting(range))), .met)
      case .other: continue
      case .needs(let count): unmet.needs = count
      case .skip(let count): unmet.skip = count
      }
    }
  }

  /// Whether the data that ended the last batch or packet came.
  private enum Meeting: Equatable {
    case met
    /// The file ends first, with a warning if a part of it was there.
    case ended(warning: String?)
    /// A pipe does not have it yet.
    case quiet
  }

  /// Reads the data that ended the last batch or packet.
  private static func meet(_ unmet: inout Unmet, _ input: inout InputFile, _ packetCount: Int) throws -> Meeting {
    let rest = input.count
    // Compressed contents that end early have their own warning.
    if unmet.skip > 0, try !input.skip(unmet.skip) {
      return .ended(warning: input.warning == nil ? cutShort(packetCount) : nil)
    }
    unmet.skip = 0
    if unmet.needs > 0 {
      switch try input.fillPatiently(atLeast: unmet.needs) {
      case .filled: break
      case .ended: return .ended(warning: rest > 0 && input.warning == nil ? cutShort(packetCount) : nil)
      case .quiet: return .quiet
      }
    }
    unmet = Unmet()
    return .met
  }

  // MARK: batches

  /// How a batch ended.
  enum BatchEnd {
    case more
    /// It was the file's last.
    case last
    /// The next packet is after the time that was given; it is held.
    case held
    /// Nothing came within `patience`.
    case quiet
  }

  /// Reads the next block's streams into `batch` and gives the block away with them.
  ///
  /// - Parameters:
  ///   - limit: a packet after this time is held and ends the batch.
  ///   - base: is added to packets' numbers (`PacketNumber`).
  mutating func readBatch(
    _ batch: inout EventBatch, until limit: Timestamp, base: Int, _ decoder: inout PacketDecoder,
    _ reassembler: inout TCPReassembler, _ filter: PacketFilter?
  ) throws -> BatchEnd {
    defer { handSecrets(to: &batch) }
    if let packet = takeHeld() {
      let blockLength = batch.block.count
      try batch.take(
        packet.packet, packet.bytes.rawBytes, in: RawSpan(), at: 0, blockLength: blockLength, base: base, &decoder,
        &reassembler, filter)
      batch.bytesRead = bytesRead
      return .more
    }
    var counter = packetCount
    defer { packetCount = counter }
    let warning: String?
    let end: BatchEnd
    switch parser {
    case .pcap(var pcap):
      (end, warning) = try Self.readBatch(
        &input, &pcap, &counter, &unmet, &held, &batch, limit, base, &decoder, &reassembler, filter)
      parser = .pcap(pcap)
    case .snoop(var snoop):
      (end, warning) = try Self.readBatch(
        &input, &snoop, &counter, &unmet, &held, &batch, limit, base, &decoder, &reassembler, filter)
      parser = .snoop(snoop)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      (end, warning) = try Self.readBatch(
        &input, &pcapng, &counter, &unmet, &held, &batch, limit, base, &decoder, &reassembler, filter)
    }
    if let warning { readingWarnings.append(warning) }
    isQuiet = end == .quiet
    return end
  }

  /// Hands on the secrets that came since the last time.
  mutating func handSecrets(to batch: inout EventBatch) {
    if secrets.count > handedSecrets {
      batch.secrets += secrets[handedSecrets...]
      handedSecrets = secrets.count
    }
  }

  private static func readBatch(
    _ input: inout InputFile, _ parser: inout some CaptureParser, _ packetCount: inout Int, _ unmet: inout Unmet,
    _ held: inout HeldPacket?, _ batch: inout EventBatch, _ limit: Timestamp, _ base: Int,
    _ decoder: inout PacketDecoder,
    _ reassembler: inout TCPReassembler, _ filter: PacketFilter?
  ) throws -> (BatchEnd, warning: String?) {
    // The data that ended the last batch is read now: a batch of a pipe must not wait for later data.
    switch try meet(&unmet, &input, packetCount) {
    case .met: break
    case .ended(let warning): return (.last, warning)
    case .quiet: return (.quiet, nil)
    }
    // Also when the walk throws: the events so far have their bytes in this block.
    defer { input.giveAway(&batch.block) }
    var offset = 0
    let end = try walk(
      input.window, startingAt: input.windowStart, ofBlock: input.blockLength, at: &offset, position: input.position,
      bytesRead: input.bytesRead, &parser, &packetCount, &held, &batch, limit, base, &decoder, &reassembler, filter)
    input.consume(offset)
    batch.bytesRead = input.bytesRead
    switch end {
    case .stopped: return (.held, nil)
    case .damaged(let error): return (.last, error.message)
    case .skip(let count): unmet.skip = count
    case .needs(let count): unmet.needs = count
    }
    return (.more, nil)
  }

  private static func walk(
    _ window: RawSpan, startingAt windowStart: Int, ofBlock blockLength: Int, at offset: inout Int, position: Int,
    bytesRead: Int, _ parser: inout some CaptureParser, _ packetCount: inout Int, _ held: inout HeldPacket?,
    _ batch: inout EventBatch, _ limit: Timestamp, _ base: Int, _ decoder: inout PacketDecoder,
    _ reassembler: inout TCPReassembler, _ filter: PacketFilter?
  ) throws -> Walk {
    // Also when the filter throws.
    defer { batch.receiveWaiting(in: window, at: windowStart, blockLength: blockLength, &reassembler) }
    return try walk(window, at: &offset, position: position, bytesRead: bytesRead, &parser, &packetCount) {
      packet, bytes, _ in
      if packet.time > limit {
        held = HeldPacket(packet: packet, bytes: Array(copying: bytes))
        return false
      }
      try batch.take(
        packet, bytes, in: window, at: windowStart, blockLength: blockLength, base: base, &decoder, &reassembler, filter
      )
      return true
    }
  }

  private static func cutShort(_ packetCount: Int) -> String {
    "the file ends in the middle of a record, after packet \(packetCount); all complete records were read"
  }
}
