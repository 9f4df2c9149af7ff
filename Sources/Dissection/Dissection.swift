import APNSProtocol
import Bytes
import PacketCapture
import TLSDecryption

/// How far a dissection has come, for progress.
public struct DissectionProgress: Sendable {
  public var bytesRead: Int
  /// `nil` for pipes.
  public var size: Int?
  public var packets: Int
}

/// Reads inputs one after the other into one sink. Connections are numbered across all inputs; packets are numbered per
/// input.
public struct Dissection<Sink: RecordSink> {
  private let options: DissectionOptions
  private let filter: PacketFilter?
  private var dissector: Dissector<Sink>
  /// An input turned out to be one that can be read: the sink has its record.
  public private(set) var hasBegun = false

  /// - Parameter secrets: what opens TLS connections; those that captures hold are added to it.
  public init(
    into sink: Sink, options: DissectionOptions, filter: PacketFilter? = nil, secrets: Secrets = Secrets()
  ) {
    self.options = options
    self.filter = filter
    dissector = Dissector(sink: sink, options: options, secrets: secrets)
  }

  public var summary: SummaryRecord { dissector.output.summary }
  /// The sink with everything it has taken.
  public var sink: Sink {
    get { dissector.output.sink }
    set { dissector.output.sink = newValue }
  }

  /// Dissects one input to its end, or until `proceed` returns `false`; called after every block, and five times a
  /// second while there is no input.
  ///
  /// Damage to the file ends the reading and is a warning in the outcome. Throws if the input cannot be read at all, or
  /// the filter does not apply to its packets.
  public mutating func read(
    _ input: consuming CaptureInput, source: String, proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    try Sink.read(input, source: source, into: &self, proceed: proceed)
  }

  mutating func readInput(
    _ input: consuming CaptureInput, source: String, proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    let outcome =
      switch consume input {
      case .packets(let file): try read(file, source, proceed)
      case .dump(let dump): try read(dump, source, proceed)
      }
    dissector.output.sink.receive(outcome)
    return outcome
  }

  /// Writes the summary.
  public mutating func finish() { dissector.output.sink.receive(dissector.output.summary) }

  // MARK: captures

  private mutating func read(
    _ file: consuming CaptureFile, _ source: String, _ proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    var outcome = CaptureOutcome(source: source, format: file.format, linkTypes: file.linkTypes, size: file.size)
    let mayHoldSecrets = file.format == .pcapng
    let path = file.path
    let reader = StreamReader(file, options: options.capture, filter: filter)
    // pcapng names its link types in blocks before the first packet of each interface.
    var isAnnounced = false
    let secrets = dissector.secrets
    let options = options
    var hasReadAhead = false
    var blocks = 0
    if mayHoldSecrets && outcome.size != nil {
      // Called when the secret of a connection is missing: it may come after the packets.
      secrets.late = {
        hasReadAhead = true
        return Self.keyLog(Array(CaptureFile.secrets(in: path, options: options.capture).dropFirst(blocks)), options)
      }
    }
    // A pipe cannot be read twice; there a connection waits for its secret, as far as the limits allow.
    secrets.mayGrow = mayHoldSecrets && outcome.size == nil
    defer {
      secrets.late = nil
      secrets.mayGrow = false
    }
    var progress = DissectionProgress(bytesRead: 0, size: outcome.size, packets: 0)
    let packetsBefore = dissector.output.summary.packets
    let end = try reader.forEachBatch {
      if hasBegun { dissector.output.sink.pause() }
      return dissector.output.sink.isOpen && proceed(progress)
    } _: { batch in
      outcome.add(batch.linkTypes)
      if !isAnnounced && batch.packets > 0 {
        isAnnounced = true
        announce(outcome)
      }
      outcome.add(batch)
      blocks += batch.secrets.count
      if !hasReadAhead && !batch.secrets.isEmpty {
        for keyLog in Self.keyLog(batch.secrets, options) { secrets.add(keyLog) }
        dissector.retryTLS()
      }
      dissector.output.summary.packets += batch.matchingPackets
      batch.forEachEvent { event, position in dissector.consume(event, at: position) }
      (progress.bytesRead, progress.packets) = (batch.bytesRead, outcome.packets)
      return dissector.output.sink.isOpen && proceed(progress)
    }
    outcome.add(end?.linkTypes ?? [])
    if !isAnnounced { announce(outcome) }
    dissector.endAll()
    let unread = outcome.linkTypes.filter { !$0.isSupported }
    let matching = dissector.output.summary.packets - packetsBefore
    if filter != nil && outcome.packets > 0 && matching == 0 {
      outcome.warnings.append("the filter matches none of the \(outcome.packets) packets")
    }
    outcome.warnings += (end?.warnings ?? []) + (unread.isEmpty ? [] : [Self.warning(unread)])
    return outcome
  }

  /// One warning for all of them, of which a hostile file has thousands.
  private static func warning(_ unread: [LinkType]) -> String {
    let names = unread.prefix(8).map(\.description).joined(separator: ", ")
    let more = unread.count > 8 ? " and \(unread.count - 8) more" : ""
    return "packets of unsupported link type \(names)\(more) are skipped"
  }

  /// One key log of all blocks: a hostile file has millions of them.
  private static func keyLog(_ blocks: [DecryptionSecrets], _ options: DissectionOptions) -> [KeyLog] {
    let texts = blocks.filter { $0.type == DecryptionSecrets.tlsKeyLog }.map(\.data)
    if texts.isEmpty { return [] }
    return [KeyLog(Array(texts.joined(separator: [0x0a])), maximumLines: options.maximumKeyLogLines)]
  }

  private mutating func announce(_ outcome: CaptureOutcome) {
    hasBegun = true
    dissector.output.sink.receive(
      CaptureRecord(source: outcome.source, format: outcome.format, linkTypes: outcome.linkTypes))
  }

  // MARK: raw dumps

  private mutating func read(
    _ dump: consuming RawDump, _ source: String, _ proceed: (DissectionProgress) -> Bool
  ) throws -> CaptureOutcome {
    var dump = dump
    let contents: DumpContents
    if let told = options.dumpContents {
      contents = told
    } else {
      contents = try DumpGuess(dump.beginning, options.limits).contents
    }
    var outcome = CaptureOutcome(source: source, format: dump.format, size: dump.size)
    announce(outcome)
    let connection = dissector.open(0, nil, .none)
    connection.service = contents == .feedback ? .feedback : .gateway
    dissector.beginDump(connection)
    var offset = 0
    let size = dump.size
    let mark = CapturePosition(time: .none, packet: 0)
    try dump.forEachPiece { bytes, bytesRead in
      dissector.count(bytes.byteCount, connection, fromClient: contents == .gateway)
      switch contents {
      case .gateway: dissector.readGateway(bytes, at: offset, mark, connection)
      case .responses: dissector.readResponses(bytes, at: offset, mark, connection)
      case .feedback: dissector.readFeedback(bytes, at: offset, mark, connection)
      }
      offset += bytes.byteCount
      return dissector.output.sink.isOpen && proceed(DissectionProgress(bytesRead: bytesRead, size: size, packets: 0))
    }
    dissector.close(connection)
    outcome.warnings = dump.warnings
    return outcome
  }
}
