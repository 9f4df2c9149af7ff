import Bytes
import Glibc

/// A packet capture (pcap, pcapng or snoop), read once from front to back.
///
/// The format is detected from the content, and so is compression with gzip or zstd. `CaptureInput` opens a file.
///
/// libpcap does not read the files: it gives no access to Decryption Secrets Blocks, refuses mixed link types,
/// truncates nanoseconds, and reads no compressed files. Memory is one block of 512 KiB, or the largest packet if that
/// is longer.
public struct CaptureFile: ~Copyable, Sendable {
  private enum Parser {
    case pcap(PcapParser)
    case pcapng(PcapngParser)
    case snoop(SnoopParser)
  }

  private var input: InputFile
  private var parser: Parser
  private var walk = PacketWalk()
  /// The number of secrets that were already handed to batches.
  private var handedSecrets = 0

  /// The path with which the file was opened; `-` is standard input.
  public var path: String { input.path }
  /// The file format.
  public let format: CaptureFormat
  /// The number of packets read so far.
  public var packetCount: Int { walk.packetCount }

  /// Notes for the user about how the file is read, such as that an archive was unpacked or leading text was skipped.
  public var notes: [String] { input.notes }

  /// The size on disk in bytes; `nil` for a pipe.
  public var size: Int? { input.size }
  /// The number of bytes read from disk so far; with `size`, the progress.
  public var bytesRead: Int { input.bytesRead }

  /// Whether a file that begins with these bytes is a capture; 24 bytes are enough.
  ///
  /// - Throws: if the header is damaged or its version is not supported.
  static func recognises(_ header: RawSpan, options: CaptureOptions) throws(CaptureError) -> Bool {
    if PcapngParser.matches(header) {
      try PcapngParser.checkVersion(header)
      return true
    }
    if try PcapParser(header: header, options: options) != nil { return true }
    return try SnoopParser(header: header, options: options) != nil
  }

  /// Takes ownership of a file whose first bytes `recognises` accepts.
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

  /// The link types in the order in which they appear, at most 64; complete once the file has been read.
  public var linkTypes: [LinkType] {
    switch parser {
    case .pcap(let parser): [parser.linkType]
    case .snoop(let parser): [parser.linkType]
    case .pcapng(let parser): parser.linkTypes.all
    }
  }

  /// The embedded TLS secrets; complete once the file has been read, since secrets may follow the packets that need
  /// them.
  public var secrets: [DecryptionSecrets] {
    if case .pcapng(let parser) = parser { parser.secrets } else { [] }
  }

  /// The secrets of a whole file, including those that follow the packets they decrypt: reads the file again from its
  /// beginning.
  ///
  /// - Returns: an empty array for formats other than pcapng, for pipes, and for unreadable files.
  package static func secrets(in path: String, options: CaptureOptions) -> [DecryptionSecrets] {
    // Standard input can be read again only if it is a file.
    let name = path == "-" ? "/dev/stdin" : path
    var status = stat()
    guard unsafe stat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      case .packets(var file)? = try? CaptureInput.open(name, options: options), file.format == .pcapng
    else { return [] }
    // Secrets before a damaged place are valid.
    try? file.forEachPacket { _, _, _ in true }
    return file.secrets
  }

  /// The packets that were lost in capturing, by interface; complete once the file has been read.
  public var losses: [CaptureLoss] {
    switch parser {
    case .pcap: []
    case .snoop(let parser): parser.dropped > 0 ? [CaptureLoss(systemDropped: parser.dropped)] : []
    case .pcapng(let parser): parser.losses.all
    }
  }

  /// The problems of the file, for the user. Everything before a damaged place was read.
  public var warnings: [String] {
    var warnings = walk.warnings
    if case .pcapng(let parser) = parser { warnings += parser.warnings }
    if let warning = input.warning { warnings.append(warning) }
    return warnings
  }

  /// Calls `body` with each remaining packet until it returns `false`.
  ///
  /// The bytes are borrowed for the call. Damage ends the reading and becomes one of `warnings`.
  ///
  /// - Throws: a `CaptureError` of kind `readFailed` if the operating system fails to read; and what `body` throws.
  /// - Complexity: O(*n*) in the length of the file, without an allocation for each packet.
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

  /// The number of the file, added to packet numbers (`PacketNumber`).
  var base: Int {
    get { walk.base }
    set { walk.base = newValue }
  }

  /// The longest time to wait for input of a pipe; `nil`: no limit.
  var patience: Duration? {
    get { input.patience }
    set { input.patience = newValue }
  }

  /// The total time that reading has waited for a pipe.
  var waited: Duration { input.waited }
  /// Whether the last reading ended because no input came within `patience`; more input may come.
  var isQuiet: Bool { walk.isQuiet }
  /// The next packet, if it was read ahead.
  var held: HeldPacket? { walk.held }

  /// Reads the next packet and holds it, unless a packet is held. Returns `false` at the end of the file, and if it
  /// `isQuiet`.
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

  /// Returns the held packet and stops holding it.
  mutating func takeHeld() -> HeldPacket? { walk.takeHeld() }

  /// Reads the stream events of the next block into `batch`, and moves the block there as well.
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

  /// Adds the secrets that were read since the last call to the batch.
  mutating func handSecrets(to batch: inout EventBatch) {
    if secrets.count > handedSecrets {
      batch.secrets += secrets[handedSecrets...]
      handedSecrets = secrets.count
    }
  }
}
