import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import PacketCapture
import Reporting

struct Redact: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the connections of recordings as one clear capture that is safe to pass on.",
    discussion: """
      Reads recordings as 'decode' does, and writes a pcapng file in which every connection to a gateway or feedback \
      service that could be read without damage is clear TCP, redacted as by 'decode --redact'. Anybody can read it, \
      without keys: 'apnscope decode' finds the same notifications, error responses, feedback and connections in it, with \
      the same times, fates, outcomes and order, but for tls and trust by its certificates, offsets, lengths over \
      HTTP/2, numbers of packets and connections, and what was redacted.

      A connection over HTTP/2 is written frame by frame, with field blocks that need no table. The signature of a \
      provider token, a credential for up to an hour, is replaced by a text that is none.

      Each notification, response and feedback tuple is in the packet that completed it, with its time. A connection \
      begins with SYN, SYN-ACK and ACK at the time of its first packet, and ends with the FIN or RST that the recording \
      has. Headers, checksums and sequence numbers are made anew. Ports stay: what needs --port to be read needs it again. \
      Certificates are gone, so that 'decode' judges payloads as for an unknown topic unless --payload-topic names it.

      Left out as a whole, and counted on standard error: connections that were not wholly decrypted, whose beginning is \
      missing, in which anything is missing, malformed or contradictory (also a frame that the recording's end cuts), and \
      those of other protocols. Never written: TLS and its \
      secrets, comments, names of hosts, interfaces and capturing programs, retransmissions, and all other packets. Raw \
      dumps have no packets and are refused; 'decode --redact' writes their records.

      Every input is read once. What does not fit into --max-memory goes to unnamed files in TMPDIR, already redacted.

      Examples:
        apnscope redact --keys sslkeys.log capture.pcapng --output clear.pcapng
        apnscope redact --redact-key key.bin ring/ --output clear.pcapng
        apnscope decode clear.pcapng

      Exit codes: 0 done; 64 usage; 65 not a capture, a key that cannot be used, or no connection with a notification, \
      error response or feedback that can be written (nothing is written then); \
      66 cannot open a file; 74 cannot read or write; 130 interrupted, and nothing is written.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct ClearOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The pcapng file to write, or - for standard output. A file is replaced as a whole.", valueName: "file"),
      completion: .file())
    var output: String
  }

  @OptionGroup(title: "Output") var clear: ClearOptions
  @OptionGroup(title: "Redaction") var pseudonyms: PseudonymOptions
  @Argument(
    help: ArgumentHelp(
      "Recordings: pcap, pcapng or snoop (also gzip or zstd), folders of them, or - for standard input.",
      valueName: "input"), completion: .file())
  var inputs: [String]
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  func validate() throws {
    // The output would be an input of the next run, and its beginning one of this run.
    let folder = Paths.parts(of: clear.output).folder
    for input in inputs where Paths.isDirectory(input) && Self.isSameFolder(input, folder) {
      throw ValidationError("--output is in the folder \(input), whose captures are read; write it elsewhere.")
    }
    try refuseConflicts(
      reading: inputs + secrets.files + pseudonyms.files, writing: [("--output", clear.output)])
  }

  private static func isSameFolder(_ a: String, _ b: String) -> Bool {
    var (one, other) = (stat(), stat())
    guard unsafe stat(a, &one) == 0, unsafe stat(b, &other) == 0 else { return false }
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino
  }

  private var options: ClearCapture.Options {
    var options = ClearCapture.Options()
    options.memory = limits.storyMemory
    options.folder = TemporaryFiles.folder
    options.isSortedByTime = selection.reorderWindow != nil
    options.isSeparate = selection.separate
    return options
  }

  func run() throws {
    Interrupt.watch()
    let redaction = try pseudonyms.redaction
    let output = try ReplacedFile(clear.output)
    let capture = ClearCapture(options)
    var pipeline = try DecodingOptions(selection: selection, secrets: secrets, limits: limits).pipeline(inputs)
    pipeline.redaction = redaction
    let reading = try pipeline.read(into: capture).reading
    if let failure = capture.failure { throw FileFailure(.writeFailed, failure.folder, failure.problem) }
    if Interrupt.isRequested { throw ExitStatus.interrupted }
    if let failure = reading.failure { throw ExitStatus.code(for: failure) }
    if let dump = capture.dump {
      complain("\(dump): is a raw dump and has no packets; 'decode --redact' writes its records")
      throw ExitStatus.damaged
    }
    if capture.counts.withRecords > 0 { try write(capture, to: output) }
    complain(capture.counts.text)
    if capture.counts.withRecords == 0 { throw ExitStatus.damaged }
  }

  private func write(_ capture: ClearCapture, to output: ReplacedFile) throws {
    do throws(UnnamedFile.Failure) {
      try capture.write(to: output.write) { !Interrupt.isRequested }
    } catch {
      throw FileFailure(.writeFailed, error.folder, error.problem)
    }
    if Interrupt.isRequested { throw ExitStatus.interrupted }
    try output.finish()
  }
}

/// The options of redaction for a command that always redacts.
struct PseudonymOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "File whose bytes (at least 16) are the key of the pseudonyms, so that they are the same in another run. Default: a random key.",
      valueName: "file"), completion: .file())
  var redactKey: String?

  @Flag(help: "Keep addresses. Tokens and texts are redacted all the same.")
  var keepAddresses = false

  /// The files that are read.
  var files: [String] { redactKey.map { [$0] } ?? [] }

  var redaction: Redaction {
    get throws { try RedactionOptions.redaction(keyFile: redactKey, keepsAddresses: keepAddresses) }
  }
}

extension ClearCounts {
  /// `3 connections written, 1,204 packets; left out: 1 not decrypted, 2 damaged`.
  fileprivate var text: String {
    let written = "\(counted(connections, "connection")) written, \(counted(packets, "packet"))"
    let refused = [
      (notDecrypted, "not decrypted"), (damaged, "damaged"), (beginningMissing, "without their beginning"),
      (otherProtocols, "of other protocols"),
    ]
    let leftOut = refused.filter { $0.0 > 0 }.map { "\(grouped($0.0)) \($0.1)" }.joined(separator: ", ")
    let nothing =
      connections == 0
      ? "no connection can be written, and nothing is"
      : "\(counted(connections, "connection")) without notifications and feedback alone can be written, and nothing is"
    let beginning = withRecords > 0 ? written : nothing
    return leftOut.isEmpty ? beginning : "\(beginning); left out: \(leftOut)"
  }
}
