import ArgumentParser
import BinaryProtocol
import DeviceProtocol
import Dissection
import PacketCapture
import Records
import TLSDecryption

/// A port and what it is for, as typed: `12195=gateway`.
struct PortMeaning: ExpressibleByArgument {
  enum Use: Equatable {
    case service(Service)
    case http2
    case messages(MessageProtocol)
  }

  var port: UInt16
  var use: Use

  init?(argument: String) {
    let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
    let uses: [String: Use] = [
      "gateway": .service(.gateway), "feedback": .service(.feedback), "http2": .http2, "devices": .messages(.devices),
      "local-push": .messages(.localPush),
    ]
    guard parts.count == 2, let port = UInt16(parts[0]), port > 0, let use = uses[parts[1]] else { return nil }
    (self.port, self.use) = (port, use)
  }
}

/// How late packets may be: a time, or `all`.
struct ReorderWindow: Quantity {
  static let notation = "a time, e.g. 500ms or 2s, or all"

  var nanoseconds: Int64

  init?(argument: String) {
    if argument == "all" {
      nanoseconds = .max
      return
    }
    guard let span = TimeSpan(argument: argument) else { return nil }
    nanoseconds = Int64((span.duration / .nanoseconds(1)).rounded())
  }
}

/// A part of a recording as typed: 2/4.
struct ShardArgument: Quantity {
  static let notation = "a part of a whole, e.g. 2/4"

  var shard: Shard

  init?(argument: String) {
    let parts = argument.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let number = parts[0], let count = parts[1], count <= 65_536,
      let shard = Shard(number: number, of: count)
    else { return nil }
    self.shard = shard
  }
}

extension DumpContents: ExpressibleByArgument {}

/// The recordings, for a command that reads nothing else.
struct RecordingsArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Recordings: pcap, pcapng or snoop (also compressed, or in a zip, tar or 7-Zip archive), folders of them, text of tcpdump -X or of tshark's follow, a raw or hex dump of one direction, or - for standard input.",
      valueName: "input"), completion: .file())
  var inputs: [String] = []
}

/// Options for decoding recordings, common to all commands.
///
/// Commands have the three groups side by side: a debug build of the argument parser checks a group within a group many
/// times over, and would take seconds to start.
struct DecodingOptions {
  var selection: SelectionOptions
  var secrets: SecretsOptions
  var limits: LimitOptions

  var filter: String? { selection.filter }

  var dissectionOptions: DissectionOptions {
    var options = DissectionOptions()
    for meaning in selection.ports {
      switch meaning.use {
      case .service(let service): options.ports[meaning.port] = service
      case .http2: options.http2Ports.insert(meaning.port)
      case .messages(let kind): options.messagePorts[meaning.port] = kind
      }
    }
    options.dumpContents = selection.stream
    options.capture.vxlanPorts = selection.vxlanPorts
    options.capture.shard = selection.shard?.shard
    options.capture.reorderWindow = selection.reorderWindow?.nanoseconds
    options.threads = selection.threads.map { .exactly($0) } ?? .upTo(min(8, Machine.cores))
    limits.apply(to: &options)
    return options
  }
}

/// The part of a recording that is read, and how it is interpreted.
struct SelectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Read only packets that match this libpcap filter expression, e.g. 'host 10.0.0.5 and tcp port 2195'. Of a packet in a tunnel it sees the one around it.",
      valueName: "expression"))
  var filter: String?

  @Option(
    name: .customLong("port"),
    help: ArgumentHelp(
      "Service of a server port: N=gateway, N=feedback, N=http2 (the provider API), N=devices (the simulator's device channel) or N=local-push. Repeatable. 2195 and 2196 are known; connections on other ports, and HTTP/2 and messages to devices on any, are recognised by their first bytes.",
      valueName: "N=service"))
  var ports: [PortMeaning] = []

  @Option(
    name: .customLong("vxlan-port"),
    help: ArgumentHelp(
      "A UDP port that carries VXLAN, beside 4789 and 8472. Repeatable. Other tunnels need no option.",
      valueName: "port"))
  var vxlanPorts: [UInt16] = []

  @Option(
    help:
      "Contents of a raw or hex dump: \(DumpContents.allCases.map(\.rawValue).joined(separator: ", ")). Default: detected from the content."
  )
  var stream: DumpContents?

  @Option(
    help: ArgumentHelp(
      "Put packets in the order of their times if they are late by no more than this, e.g. 500ms or 2s, or all of a recording. 'inspect' names the window that a recording needs. Default: the order of the file.",
      valueName: "time|all"), transform: ReorderWindow.parse)
  var reorderWindow: ReorderWindow?

  @Option(
    help: ArgumentHelp(
      "Read part i of n, to share a recording between machines: each part has all packets between some pairs of hosts, and the parts add up to the whole. Raw dumps are not divided.",
      valueName: "i/n"), transform: ShardArgument.parse)
  var shard: ShardArgument?

  /// Other parts of the recording are not read.
  var isPart: Bool { shard.map { $0.shard.count > 1 } ?? false }

  @Option(
    help: ArgumentHelp(
      "Decoder threads, beside one reader. The output does not depend on the number. Default: one per core, at most 8; on two cores one where two are no faster.",
      valueName: "count"))
  var threads: Int?

  @Flag(
    help:
      "Read captures given together as unrelated. Default: they are one recording, in the order of their times; files that overlap are merged."
  )
  var separate = false

  @OptionGroup var progress: QuietOption

  func validate() throws {
    if let threads, !(1...256 ~= threads) {
      throw ValidationError("--threads must be 1 to 256 (got \(threads)).")
    }
    if vxlanPorts.contains(0) { throw ValidationError("--vxlan-port must be 1 to 65535 (got 0).") }
  }
}

/// The limits on memory and waiting that input can cause.
struct LimitOptions: ParsableArguments {
  /// The options' defaults.
  static let usual = DissectionOptions()

  @Option(
    "Memory for everything that is not finished: frames, TLS records and handshakes that have begun, packets and bytes that wait for others, and what error responses are resolved with. Above, the oldest is given up, and a gap says so. 'follow', 'report' and 'redact' have half as much beside it for notifications, which go to unnamed files in TMPDIR above that.",
    valueName: "bytes")
  var maxMemory = ByteCount(Self.usual.maximumMemory)

  @Option("Longest command-2 frame; a longer one is malformed.", valueName: "bytes")
  var maxFrameLength = ByteCount(Self.usual.limits.maximumFrameLength)

  @Option("Longest device token of commands 0 and 1 and of feedback; a longer one is malformed.", valueName: "bytes")
  var maxTokenLength = ByteCount(Self.usual.limits.maximumTokenLength)

  @Option("Longest payload of commands 0 and 1; a longer one is malformed.", valueName: "bytes")
  var maxPayloadLength = ByteCount(Self.usual.limits.maximumPayloadLength)

  @Option(
    "HTTP/2: largest header table that is kept; in a larger one, the oldest entries are unknown.",
    valueName: "bytes")
  var maxHeaderTable = ByteCount(Self.usual.http2.connection.fields.tableSize)

  @Option(
    "HTTP/2: longest block of header fields; a longer one is malformed, and what refers to it is unknown.",
    valueName: "bytes")
  var maxHeaderBlock = ByteCount(Self.usual.http2.connection.blockLength)

  @Option("HTTP/2: largest list of header fields of a request or an answer.", valueName: "bytes")
  var maxHeaderList = ByteCount(Self.usual.http2.connection.fields.listSize)

  @Option(
    help: ArgumentHelp(
      "HTTP/2: streams of a connection that are open at a time; above, the oldest is given up. As many requests of channel management wait for answers.",
      valueName: "count"))
  var maxOpenStreams = Self.usual.http2.connection.openStreams

  @Option("HTTP/2: bytes of a payload that are kept; of a longer one the length is.", valueName: "bytes")
  var maxKeptContent = ByteCount(Self.usual.http2.content)

  @Option(
    help: ArgumentHelp(
      "HTTP/2: provider tokens of a connection that are told apart; further ones have no number.",
      valueName: "count"))
  var maxProviderTokens = Self.usual.http2.providerTokens

  @Option(
    help: ArgumentHelp(
      "HTTP/2: reasons of a connection's rejections that are counted apart; further ones count as \"other\".",
      valueName: "count"))
  var maxRejectionReasons = Self.usual.http2.rejectionReasons

  @Option("Longest packet; a longer one counts as damage to the file.", valueName: "bytes")
  var maxPacketLength = ByteCount(Self.usual.capture.maximumPacketLength)

  @Option("Longest pcapng block that is read.", valueName: "bytes")
  var maxBlockLength = ByteCount(Self.usual.capture.maximumBlockLength)

  @Option("Largest hex dump; the rest is not read.", valueName: "bytes")
  var maxHexDumpLength = ByteCount(Self.usual.capture.maximumHexDumpLength)

  @Option("Bytes that an archive may expand to; the rest is not read.", valueName: "bytes")
  var maxExpandedLength = ByteCount(Self.usual.capture.maximumExpandedLength)

  @Option(help: ArgumentHelp("IP datagrams waiting for fragments at a time.", valueName: "count"))
  var maxFragmentedDatagrams = Self.usual.capture.maximumFragmentedDatagrams

  @Option(
    help: ArgumentHelp(
      "Tunnels inside of tunnels that are followed to the packet inside, 255 at most; packets in more of them are counted and not read.",
      valueName: "count"))
  var maxEncapsulation = Self.usual.capture.maximumEncapsulation

  @Option(
    help: ArgumentHelp(
      "Files of a recording that overlap in time and are merged; further ones are read after them.",
      valueName: "count"))
  var maxMergedFiles = Self.usual.capture.maximumMergedFiles

  @Option(
    "Bytes of packets that wait for their turn with --reorder-window; above, the earliest is read.", valueName: "bytes")
  var maxReorderBytes = ByteCount(Self.usual.capture.maximumReorderBytes)

  @Option("Bytes of one direction buffered behind a gap; above, the missing bytes count as lost.", valueName: "bytes")
  var maxBufferedBytes = ByteCount(Self.usual.capture.reassembly.maximumBufferedBytes)

  @Option("The same for all connections together.", valueName: "bytes")
  var maxTotalBufferedBytes = ByteCount(Self.usual.capture.reassembly.maximumTotalBufferedBytes)

  @Option(
    help: ArgumentHelp("Connections tracked at a time; above, the longest idle one is ended.", valueName: "count"))
  var maxConnections = Self.usual.capture.reassembly.maximumConnections

  @Option(
    help: ArgumentHelp(
      "Connections that a new one is compared with, to find those captured under several addresses; with more at a time some may count as several.",
      valueName: "count"))
  var maxComparedConnections = Self.usual.capture.reassembly.maximumComparedConnections

  @Option(
    help: ArgumentHelp(
      "Packets to wait for missing bytes that the peer acknowledged before they count as lost.", valueName: "packets"))
  var gapPatience = Self.usual.capture.reassembly.gapPatience

  @Option(
    help: ArgumentHelp(
      "Segments to wait for earlier data of a connection whose start was not captured.", valueName: "packets"))
  var startPatience = Self.usual.capture.reassembly.startPatience

  @Option(
    help: ArgumentHelp(
      "Runs of identifiers remembered per connection to resolve error responses.", valueName: "count"))
  var maxIdentifierRuns = Self.usual.maximumIdentifierRuns

  @Option(
    help: ArgumentHelp(
      "Packets per connection whose times are remembered for the latency of errors.", valueName: "count")
  )
  var maxWriteTimes = Self.usual.maximumWriteTimes

  @Option(help: ArgumentHelp("Error responses of a connection held for their final counts.", valueName: "count"))
  var maxHeldResponses = Self.usual.maximumHeldResponses

  @Option(
    help: ArgumentHelp(
      "Ranges of fates kept from the first pass, 8 bytes each; fates of further connections follow in 'fate' records.",
      valueName: "count"))
  var maxFateRanges = Self.usual.maximumFateRanges

  @Option(
    "Longest TLS handshake message, and longest handshake; a connection with a longer one may not be decrypted.",
    valueName: "bytes")
  var maxHandshakeLength = ByteCount(Self.usual.tls.maximumHandshakeLength)

  @Option(
    name: .customLong("max-held-tls-bytes"),
    "TLS bytes of one direction held for the other direction's hello or for a secret; above, it is read without them.",
    valueName: "bytes")
  var maxHeldTLSBytes = ByteCount(Self.usual.tls.maximumHeldBytes)

  @Option(name: .customLong("max-total-held-tls-bytes"), "The same for all connections together.", valueName: "bytes")
  var maxTotalHeldTLSBytes = ByteCount(Self.usual.tls.maximumTotalHeldBytes)

  @Option(
    name: .customLong("max-tls-candidates"),
    help: ArgumentHelp("Secrets tried for one direction of a TLS connection.", valueName: "count"))
  var maxTLSCandidates = Self.usual.tls.maximumCandidates

  @Option(
    help: ArgumentHelp(
      "TLS records that may be missing in a gap, or before the capture, when searching for the next sequence number.",
      valueName: "records"))
  var maxMissingRecords = Self.usual.tls.maximumMissingRecords

  @Option(
    help: ArgumentHelp("Failed attempts to decrypt TLS records before a direction is abandoned.", valueName: "count"))
  var maxOpeningAttempts = Self.usual.tls.maximumAttempts

  @Option(help: ArgumentHelp("Lines of a key log to use; each takes 8 bytes of memory.", valueName: "lines"))
  var maxKeyLogLines = Self.usual.maximumKeyLogLines

  @Option(
    "Bytes of secrets kept in memory: those in a capture file, and a key log from a pipe.", valueName: "bytes")
  var maxSecretsLength = ByteCount(Self.usual.capture.maximumSecretsLength)

  private struct Limit {
    var option: String
    var value: KeyPath<LimitOptions, Int>
    /// The property that it limits.
    var place: WritableKeyPath<DissectionOptions, Int>

    init(
      _ option: String, _ value: KeyPath<LimitOptions, Int>, _ place: WritableKeyPath<DissectionOptions, Int>
    ) {
      (self.option, self.value, self.place) = (option, value, place)
    }
  }

  private static var all: [Limit] {
    [
      Limit("max-frame-length", \.maxFrameLength.bytes, \.limits.maximumFrameLength),
      Limit("max-token-length", \.maxTokenLength.bytes, \.limits.maximumTokenLength),
      Limit("max-payload-length", \.maxPayloadLength.bytes, \.limits.maximumPayloadLength),
      Limit("max-header-table", \.maxHeaderTable.bytes, \.http2.connection.fields.tableSize),
      Limit("max-header-block", \.maxHeaderBlock.bytes, \.http2.connection.blockLength),
      Limit("max-header-list", \.maxHeaderList.bytes, \.http2.connection.fields.listSize),
      Limit("max-open-streams", \.maxOpenStreams, \.http2.connection.openStreams),
      Limit("max-kept-content", \.maxKeptContent.bytes, \.http2.content),
      Limit("max-provider-tokens", \.maxProviderTokens, \.http2.providerTokens),
      Limit("max-rejection-reasons", \.maxRejectionReasons, \.http2.rejectionReasons),
      Limit("max-packet-length", \.maxPacketLength.bytes, \.capture.maximumPacketLength),
      Limit("max-block-length", \.maxBlockLength.bytes, \.capture.maximumBlockLength),
      Limit("max-hex-dump-length", \.maxHexDumpLength.bytes, \.capture.maximumHexDumpLength),
      Limit("max-expanded-length", \.maxExpandedLength.bytes, \.capture.maximumExpandedLength),
      Limit("max-fragmented-datagrams", \.maxFragmentedDatagrams, \.capture.maximumFragmentedDatagrams),
      Limit("max-encapsulation", \.maxEncapsulation, \.capture.maximumEncapsulation),
      Limit("max-merged-files", \.maxMergedFiles, \.capture.maximumMergedFiles),
      Limit("max-reorder-bytes", \.maxReorderBytes.bytes, \.capture.maximumReorderBytes),
      Limit("max-buffered-bytes", \.maxBufferedBytes.bytes, \.capture.reassembly.maximumBufferedBytes),
      Limit("max-total-buffered-bytes", \.maxTotalBufferedBytes.bytes, \.capture.reassembly.maximumTotalBufferedBytes),
      Limit("max-connections", \.maxConnections, \.capture.reassembly.maximumConnections),
      Limit(
        "max-compared-connections", \.maxComparedConnections, \.capture.reassembly.maximumComparedConnections),
      Limit("gap-patience", \.gapPatience, \.capture.reassembly.gapPatience),
      Limit("start-patience", \.startPatience, \.capture.reassembly.startPatience),
      Limit("max-identifier-runs", \.maxIdentifierRuns, \.maximumIdentifierRuns),
      Limit("max-write-times", \.maxWriteTimes, \.maximumWriteTimes),
      Limit("max-held-responses", \.maxHeldResponses, \.maximumHeldResponses),
      Limit("max-fate-ranges", \.maxFateRanges, \.maximumFateRanges),
      Limit("max-handshake-length", \.maxHandshakeLength.bytes, \.tls.maximumHandshakeLength),
      Limit("max-held-tls-bytes", \.maxHeldTLSBytes.bytes, \.tls.maximumHeldBytes),
      Limit("max-total-held-tls-bytes", \.maxTotalHeldTLSBytes.bytes, \.tls.maximumTotalHeldBytes),
      Limit("max-tls-candidates", \.maxTLSCandidates, \.tls.maximumCandidates),
      Limit("max-missing-records", \.maxMissingRecords, \.tls.maximumMissingRecords),
      Limit("max-opening-attempts", \.maxOpeningAttempts, \.tls.maximumAttempts),
      Limit("max-key-log-lines", \.maxKeyLogLines, \.maximumKeyLogLines),
      Limit("max-secrets-length", \.maxSecretsLength.bytes, \.capture.maximumSecretsLength),
    ]
  }

  /// The options that are limits.
  static var names: [String] { ["max-memory"] + all.map(\.option) }

  private static let memoryRange = 1 << 16...1 << 40

  func validate() throws {
    guard Self.memoryRange.contains(maxMemory.bytes) else {
      throw ValidationError("--max-memory must be 64KiB to 1TiB (got \(maxMemory.defaultValueDescription)).")
    }
    for limit in Self.all {
      let value = self[keyPath: limit.value]
      guard 1...1 << 32 ~= value else {
        throw ValidationError("--\(limit.option) must be 1 to 4294967296 (got \(value)).")
      }
    }
  }

  func apply(to options: inout DissectionOptions) {
    for limit in Self.all { options[keyPath: limit.place] = self[keyPath: limit.value] }
    options.maximumMemory = maxMemory.bytes
  }

  /// Bytes of memory for stories, in addition to `maxMemory`.
  var storyMemory: Int { maxMemory.bytes / 2 }

  /// The default options with these limits.
  var dissection: DissectionOptions {
    var options = Self.usual
    apply(to: &options)
    return options
  }
}
