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
  private var walk = PacketWalk()
  /// Secrets that batches have taken.
  private var handedSecrets = 0

  /// The path it was opened with; `-` is standard input.
  public var path: String { input.path }
  public let format: CaptureFormat
  /// Packets read so far.
  public var packetCount: Int { walk.packetCount }

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
    var warnings = walk.warnings
    if case .pcapng(let parser) = parser { warnings += parser.warnings }
    if let warning = input.warning { warnings.append(warning) }
    return warnings
  }

  /// Calls `body` with every packet from here to the end, or until it returns `false`.
  ///
  /// The bytes are borrowed for the call. Damage ends the reading and becomes a warning; only a failing read, or what
  /// `body` throws, is thrown.
  public mutating func forEachPacket(_ body: (Packet, RawSpan, _ bytesRead: Int) throws -> Bool) throws {
    switch parser {
    case .pcap(var pcap):
      defer { parser = .pcap(pcap) }
      try walk.forEachPacket(of: &input, &pcap, body)
    case .snoop(var snoop):
      defer { parser = .snoop(snoop) }
      try walk.forEachPacket(of: &input, &snoop, body)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      try walk.forEachPacket(of: &input, &pcapng, body)
    }
  }

  // MARK: a file of a recording

  /// Is added to packets' numbers (`PacketNumber`).
  var base: Int {
    get { walk.base }
    set { walk.base = newValue }
  }

  /// How long to wait for input that a pipe does not have yet; `nil`: as long as it takes.
  var patience: Duration? {
    get { input.patience }
    set { input.patience = newValue }
  }

  /// How long reading has waited for a pipe in all.
  var waited: Duration { input.waited }
  /// The last reading ended because no input came within `patience`: more may come.
  var isQuiet: Bool { walk.isQuiet }
  /// A packet that was read ahead and is the next one.
  var held: HeldPacket? { walk.held }

  /// Reads the next packet, if none is held, and holds it; `false` at the end of the file, and when it `isQuiet`.
  mutating func holdNext() throws -> Bool {
    switch parser {
    case .pcap(var pcap):
      defer { parser = .pcap(pcap) }
      return try walk.holdNext(of: &input, &pcap)
    case .snoop(var snoop):
      defer { parser = .snoop(snoop) }
      return try walk.holdNext(of: &input, &snoop)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      return try walk.holdNext(of: &input, &pcapng)
    }
  }

  /// Gives away the packet that is held.
  mutating func takeHeld() -> HeldPacket? { walk.takeHeld() }

  /// Reads the next block's streams into `batch` and gives the block away with them.
  ///
  /// - Parameter limit: a packet after this time is held and ends the batch.
  mutating func readBatch(
    _ batch: inout EventBatch, until limit: Timestamp, _ path: inout PacketPath
  ) throws -> PacketWalk.BatchEnd {
    defer { handSecrets(to: &batch) }
    if let held = takeHeld() {
      try batch.take(held, &path)
      batch.bytesRead = bytesRead
      return .more
    }
    walk.limit = limit
    switch parser {
    case .pcap(var pcap):
      defer { parser = .pcap(pcap) }
      return try walk.readBatch(of: &input, &pcap, &batch, &path)
    case .snoop(var snoop):
      defer { parser = .snoop(snoop) }
      return try walk.readBatch(of: &input, &snoop, &batch, &path)
    case .pcapng(var pcapng):
      defer { parser = .pcapng(pcapng) }
      return try walk.readBatch(of: &input, &pcapng, &batch, &path)
    }
  }

  /// Hands on the secrets that came since the last time.
  mutating func handSecrets(to batch: inout EventBatch) {
    if secrets.count > handedSecrets {
      batch.secrets += secrets[handedSecrets...]
      handedSecrets = secrets.count
    }
  }
}
