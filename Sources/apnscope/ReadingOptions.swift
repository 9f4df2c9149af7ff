import APNSProtocol
import ArgumentParser
import Dissection
import PacketCapture
import TLSDecryption

/// A port and what it means, as typed: `12195=gateway`.
struct PortMeaning: ExpressibleByArgument {
  var port: UInt16
  var service: Service

  init?(argument: String) {
    let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
    guard parts.count == 2, let port = UInt16(parts[0]), port > 0, let service = Service(rawValue: parts[1]),
      service == .gateway || service == .feedback
    else { return nil }
    self.port = port
    self.service = service
  }
}

extension DumpContents: ExpressibleByArgument {}

/// The recordings of a command that reads nothing else.
struct RecordingsArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Recordings: pcap, pcapng or snoop (also gzip or zstd), a raw or hex dump of one direction, or - for standard input.",
      valueName: "input"), completion: .file())
  var inputs: [String]

  func validate() throws {
    if inputs.isEmpty { throw ValidationError("No input. Name a recording, or - for standard input.") }
    if inputs.filter({ $0 == "-" }).count > 1 { throw ValidationError("Standard input (-) can be read only once.") }
  }
}

/// How recordings are decoded, whatever is made of them.
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
    for meaning in selection.ports { options.ports[meaning.port] = meaning.service }
    options.dumpContents = selection.stream
    limits.apply(to: &options)
    return options
  }
}

/// Which part of a recording is read, and as what.
struct SelectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Read only packets that match this libpcap filter expression, as 'host 10.0.0.5 and tcp port 2195'.",
      valueName: "expression"))
  var filter: String?

  @Option(
    name: .customLong("port"),
    help: ArgumentHelp(
      "What a server port means: N=gateway or N=feedback. Repeatable. 2195 and 2196 are known; connections on other ports are told by their first bytes.",
      valueName: "N=service"))
  var ports: [PortMeaning] = []

  @Option(
    help:
      "What a raw or hex dump holds: \(DumpContents.allCases.map(\.rawValue).joined(separator: ", ")). Default: told from its bytes."
  )
  var stream: DumpContents?
}

/// The limits on what input can make the program hold or wait for.
struct LimitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Longest command-2 frame; a longer one is malformed.", valueName: "bytes",
      default: ByteCount(ProtocolLimits().maximumFrameLength)), transform: ByteCount.parse)
  var maxFrameLength = ByteCount(ProtocolLimits().maximumFrameLength)

  @Option(
    help: ArgumentHelp(
      "Longest device token of commands 0 and 1 and of feedback; a longer one is malformed.", valueName: "bytes",
      default: ByteCount(ProtocolLimits().maximumTokenLength)), transform: ByteCount.parse)
  var maxTokenLength = ByteCount(ProtocolLimits().maximumTokenLength)

  @Option(
    help: ArgumentHelp(
      "Longest payload of commands 0 and 1; a longer one is malformed.", valueName: "bytes",
      default: ByteCount(ProtocolLimits().maximumPayloadLength)), transform: ByteCount.parse)
  var maxPayloadLength = ByteCount(ProtocolLimits().maximumPayloadLength)

  @Option(
    help: ArgumentHelp(
      "Longest packet; a longer one is taken for damage to the file.", valueName: "bytes",
      default: ByteCount(CaptureOptions().maximumPacketLength)), transform: ByteCount.parse)
  var maxPacketLength = ByteCount(CaptureOptions().maximumPacketLength)

  @Option(
    help: ArgumentHelp(
      "Longest pcapng block that is read.", valueName: "bytes", default: ByteCount(CaptureOptions().maximumBlockLength)),
    transform: ByteCount.parse)
  var maxBlockLength = ByteCount(CaptureOptions().maximumBlockLength)

  @Option(
    help: ArgumentHelp(
      "Largest hex dump; the rest is not read.", valueName: "bytes",
      default: ByteCount(CaptureOptions().maximumHexDumpLength)), transform: ByteCount.parse)
  var maxHexDumpLength = ByteCount(CaptureOptions().maximumHexDumpLength)

  @Option(help: ArgumentHelp("IP datagrams that wait for fragments at a time.", valueName: "count"))
  var maxFragmentedDatagrams = CaptureOptions().maximumFragmentedDatagrams

  @Option(
    help: ArgumentHelp(
      "Bytes of one direction that may wait for missing ones; then these count as lost.", valueName: "bytes",
      default: ByteCount(ReassemblyOptions().maximumBufferedBytes)), transform: ByteCount.parse)
  var maxBufferedBytes = ByteCount(ReassemblyOptions().maximumBufferedBytes)

  @Option(
    help: ArgumentHelp(
      "The same for all connections together.", valueName: "bytes",
      default: ByteCount(ReassemblyOptions().maximumTotalBufferedBytes)), transform: ByteCount.parse)
  var maxTotalBufferedBytes = ByteCount(ReassemblyOptions().maximumTotalBufferedBytes)

  @Option(help: ArgumentHelp("Connections followed at a time; then the longest idle one is ended.", valueName: "count"))
  var maxConnections = ReassemblyOptions().maximumConnections

  @Option(
    help: ArgumentHelp(
      "Packets to wait for bytes that the peer acknowledged before they count as lost.", valueName: "packets"))
  var gapPatience = ReassemblyOptions().gapPatience

  @Option(
    help: ArgumentHelp(
      "Segments to wait for an earlier start of a connection whose beginning was not captured.", valueName: "packets"))
  var startPatience = ReassemblyOptions().startPatience

  @Option(
    help: ArgumentHelp(
      "Runs of identifiers remembered per connection to find what an error response names.", valueName: "count"))
  var maxIdentifierRuns = DissectionOptions().maximumIdentifierRuns

  @Option(
    help: ArgumentHelp("Packets per connection whose time is remembered for the latency of errors.", valueName: "count")
  )
  var maxWriteTimes = DissectionOptions().maximumWriteTimes

  @Option(help: ArgumentHelp("Error responses of a connection that wait for their final counts.", valueName: "count"))
  var maxHeldResponses = DissectionOptions().maximumHeldResponses

  @Option(
    help: ArgumentHelp(
      "Longest TLS handshake message, and all of one handshake; without a longer one its connection may stay closed.",
      valueName: "bytes", default: ByteCount(TLSLimits().maximumHandshakeLength)), transform: ByteCount.parse)
  var maxHandshakeLength = ByteCount(TLSLimits().maximumHandshakeLength)

  @Option(
    name: .customLong("max-held-tls-bytes"),
    help: ArgumentHelp(
      "TLS bytes of one direction that wait, for the other's hello or for a secret; then it is read with what is known.",
      valueName: "bytes", default: ByteCount(TLSLimits().maximumHeldBytes)), transform: ByteCount.parse)
  var maxHeldTLSBytes = ByteCount(TLSLimits().maximumHeldBytes)

  @Option(
    name: .customLong("max-total-held-tls-bytes"),
    help: ArgumentHelp(
      "The same for all connections together.", valueName: "bytes",
      default: ByteCount(TLSLimits().maximumTotalHeldBytes)), transform: ByteCount.parse)
  var maxTotalHeldTLSBytes = ByteCount(TLSLimits().maximumTotalHeldBytes)

  @Option(
    name: .customLong("max-tls-candidates"),
    help: ArgumentHelp("Secrets that are tried for one direction of a TLS connection.", valueName: "count"))
  var maxTLSCandidates = TLSLimits().maximumCandidates

  @Option(
    help: ArgumentHelp(
      "TLS records that may be missing in a gap, or before the capture, when the next one's number is looked for.",
      valueName: "records"))
  var maxMissingRecords = TLSLimits().maximumMissingRecords

  @Option(
    help: ArgumentHelp("Failed attempts to open TLS records before a direction is given up.", valueName: "count"))
  var maxOpeningAttempts = TLSLimits().maximumAttempts

  @Option(help: ArgumentHelp("Lines of a key log that are used; each takes 8 bytes of memory.", valueName: "lines"))
  var maxKeyLogLines = DissectionOptions().maximumKeyLogLines

  @Option(
    help: ArgumentHelp(
      "Secrets that must be kept in memory: those in a capture file, and a key log from a pipe.", valueName: "bytes",
      default: ByteCount(CaptureOptions().maximumSecretsLength)), transform: ByteCount.parse)
  var maxSecretsLength = ByteCount(CaptureOptions().maximumSecretsLength)

  func validate() throws {
    let values: [(String, Int)] = [
      ("max-frame-length", maxFrameLength.bytes), ("max-token-length", maxTokenLength.bytes),
      ("max-payload-length", maxPayloadLength.bytes), ("max-packet-length", maxPacketLength.bytes),
      ("max-block-length", maxBlockLength.bytes), ("max-hex-dump-length", maxHexDumpLength.bytes),
      ("max-fragmented-datagrams", maxFragmentedDatagrams), ("max-buffered-bytes", maxBufferedBytes.bytes),
      ("max-total-buffered-bytes", maxTotalBufferedBytes.bytes), ("max-connections", maxConnections),
      ("gap-patience", gapPatience), ("start-patience", startPatience), ("max-identifier-runs", maxIdentifierRuns),
      ("max-write-times", maxWriteTimes), ("max-held-responses", maxHeldResponses),
      ("max-handshake-length", maxHandshakeLength.bytes), ("max-held-tls-bytes", maxHeldTLSBytes.bytes),
      ("max-total-held-tls-bytes", maxTotalHeldTLSBytes.bytes),
      ("max-tls-candidates", maxTLSCandidates), ("max-missing-records", maxMissingRecords),
      ("max-opening-attempts", maxOpeningAttempts), ("max-key-log-lines", maxKeyLogLines),
      ("max-secrets-length", maxSecretsLength.bytes),
    ]
    for (name, value) in values where value < 1 || value > 1 << 32 {
      throw ValidationError("--\(name) takes a number from 1 to 4294967296, not \(value).")
    }
  }

  var tlsLimits: TLSLimits {
    TLSLimits(
      maximumHandshakeLength: maxHandshakeLength.bytes, maximumHeldBytes: maxHeldTLSBytes.bytes,
      maximumTotalHeldBytes: maxTotalHeldTLSBytes.bytes,
      maximumCandidates: maxTLSCandidates, maximumMissingRecords: maxMissingRecords,
      maximumAttempts: maxOpeningAttempts)
  }

  func apply(to options: inout DissectionOptions) {
    options.limits = ProtocolLimits(
      maximumFrameLength: maxFrameLength.bytes, maximumTokenLength: maxTokenLength.bytes,
      maximumPayloadLength: maxPayloadLength.bytes)
    options.capture.maximumPacketLength = maxPacketLength.bytes
    options.capture.maximumBlockLength = maxBlockLength.bytes
    options.capture.maximumHexDumpLength = maxHexDumpLength.bytes
    options.capture.maximumFragmentedDatagrams = maxFragmentedDatagrams
    options.capture.reassembly = ReassemblyOptions(
      maximumBufferedBytes: maxBufferedBytes.bytes, maximumTotalBufferedBytes: maxTotalBufferedBytes.bytes,
      maximumConnections: maxConnections, gapPatience: gapPatience, startPatience: startPatience)
    options.capture.maximumSecretsLength = maxSecretsLength.bytes
    options.maximumKeyLogLines = maxKeyLogLines
    options.tls = tlsLimits
    options.maximumIdentifierRuns = maxIdentifierRuns
    options.maximumWriteTimes = maxWriteTimes
    options.maximumHeldResponses = maxHeldResponses
  }
}
