import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import Dissection
import Glibc
import Measurement
import PacketCapture
import Pipeline
import Records
import Reporting

struct Annotate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a copy of a capture with comments at packets, for Wireshark.",
    discussion: """
      Reads a packet capture as 'decode' does, and writes it again as pcapng with a packet comment wherever there is \
      something to say: at notifications that were refused, discarded, malformed, or that repeat discarded ones, at error \
      responses, at malformed bytes, and over HTTP/2 at answers that reject, GOAWAY and RST_STREAM. For example:

        8 invalid token: #7 refused, 26 after it discarded, 20 of them not seen again: 6 recovered, 20 lost

      #7 is the notification with index 7 of its connection in the records of 'decode'. A notification is sent again when \
      one with its token and payload follows, on any connection of the capture, however many are between. What became of the discarded ones over all \
      of their sendings is counted by the outcomes of 'follow': lost only where nothing that the capture does not show \
      could hold another sending.

      Everything else is copied as it is: packets, interfaces, secrets, names, comments. Times and lengths do not change. \
      Wireshark shows the comments in the packet details, and finds them with the filter 'pkt_comment'.

      The signature of a provider token is a credential for up to an hour. Where a connection is read as HTTP/2 in clear, \
      filler of the same length replaces it, and zeros replace what may hold a part of one: sent again, around a gap, \
      or broken. Where TLS is read, TLS secrets in the capture are left out: give Wireshark the key log, as apnscope.

      Examples:
        apnscope annotate capture.pcap --output annotated.pcapng
        apnscope annotate --keys sslkeys.log capture.pcapng.zst --output a.pcapng
        tshark -r annotated.pcapng -Y pkt_comment -T fields -e frame.number -e frame.comment

      Exit codes: 0 done; 64 usage; 65 not a capture, or a key that cannot be used; 66 cannot open a file; 74 cannot read \
      or write; 130 interrupted, and nothing is written.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct CommentOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The pcapng file to write, or - for standard output. A file is replaced as a whole, and is its owner's alone when the capture is or holds secrets.",
        valueName: "file"),
      completion: .file())
    var output: String

    @Option(
      help: ArgumentHelp(
        "Notifications, responses and malformed stretches that get comments; further ones get none.",
        valueName: "count"))
    var maxComments = 1_000_000

    func validate() throws {
      guard maxComments > 0 else {
        throw ValidationError("--max-comments must be at least 1 (got \(maxComments)).")
      }
    }
  }

  @OptionGroup(title: "Output") var comments: CommentOptions
  @Argument(
    help: ArgumentHelp(
      "A packet capture: pcap, pcapng or snoop (also gzip or zstd), or - for standard input.", valueName: "input"),
    completion: .file())
  var input: String
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  func validate() throws {
    if Paths.isDirectory(input) { throw ValidationError("A folder has no copy; give one capture.") }
    try refuseConflicts(reading: [input] + secrets.files, writing: [("--output", comments.output)])
  }

  func run() throws {
    Interrupt.watch()
    let output = try ReplacedFile(comments.output)
    // Before standard input is copied to a file.
    let rights = Self.rights(of: input)
    let decoding = DecodingOptions(selection: selection, secrets: secrets, limits: limits)
    var pipeline = try decoding.pipeline([input])
    if try pipeline.keepStandardInput(for: .comments) { throw ExitStatus.interrupted }
    let fates = try pipeline.read(into: FateIndex(maximumRanges: limits.maxFateRanges), isQuiet: true).sink
    let sendings = try sendings(&pipeline)
    let found = PacketComments(
      fates: fates, sendings: sendings, limit: comments.maxComments, credentialMemory: limits.maxMemory.bytes / 8)
    let reading = try pipeline.read(into: found).reading
    if let failure = reading.failure { throw ExitStatus.code(for: failure) }
    if Interrupt.isRequested { throw ExitStatus.interrupted }
    let copy = try write(found, try credentials(found), of: pipeline.inputs[0], to: output, rights)
    if found.omitted > 0 { complain("\(found.omitted) further records have no comments (--max-comments)") }
    if sendings.lossesNotKept > 0 {
      complain("comments do not say what became of \(sendings.lossesNotKept) discarded notifications (--max-comments)")
    }
    if fates.connectionsNotKept > 0 {
      complain("some fates are not known, so comments are missing (--max-fate-ranges)")
    }
    complain("\(copy.comments) of \(copy.packets) packets have comments")
    report(copy)
  }

  private func report(_ copy: CommentedCopy) {
    if copy.edited > 0 {
      complain("in \(counted(copy.edited, "packet")) filler replaces signatures of provider tokens")
    }
    if copy.blanked > 0 {
      complain(
        "zeros replace the payloads of \(counted(copy.blanked, "packet")) that may hold parts of provider tokens")
    }
    if copy.droppedSecrets > 0 {
      complain(
        "TLS secrets are left out, since they open provider tokens; Wireshark needs a key log to read the copy")
    }
  }

  /// The places of provider tokens in all that is copied, also in what is not selected.
  private func credentials(_ found: PacketComments) throws -> CredentialPlaces {
    guard selection.filter != nil || selection.isPart else { return found.credentials }
    var all = selection
    (all.filter, all.shard) = (nil, nil)
    var pipeline = try DecodingOptions(selection: all, secrets: secrets, limits: limits).pipeline([input])
    let places = CredentialPlaces(limit: limits.maxMemory.bytes / 8)
    return try pipeline.read(into: places, isQuiet: true).sink
  }

  /// What was discarded and sent again in the whole capture, exactly: what does not fit into --max-memory goes to
  /// temporary files.
  private func sendings(_ pipeline: inout RecordingPipeline) throws -> DiscardedNotifications {
    let found = DiscardedNotifications(limit: comments.maxComments)
    var options = StoryCollector.Options()
    options.writesTokens = false
    options.apply(limits)
    let collector = StoryCollector(options, into: found)
    _ = try pipeline.read(into: collector, isQuiet: true)
    try collector.writeOrFail()
    return found
  }

  /// The most permissions that a copy gets: the capture's own.
  private static func rights(of input: String) -> mode_t {
    var status = stat()
    let path = input == "-" ? StandardInput.path : input
    guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return 0o666 }
    // Its owner may write the copy again.
    return status.st_mode & 0o666 | 0o200
  }

  private func write(
    _ notes: PacketComments, _ credentials: CredentialPlaces, of input: RecordingInput, to output: ReplacedFile,
    _ rights: mode_t
  ) throws -> CommentedCopy {
    let options = DecodingOptions(selection: selection, secrets: secrets, limits: limits).dissectionOptions.capture
    var progress = Progress()
    defer { progress.end() }
    let copy: CommentedCopy
    do {
      copy = try CommentedCopy(
        of: input.path, options: options, edits: credentials.edits, dropsSecrets: credentials.isBehindSecrets
      ) {
        notes.comment(at: $0)
      } to: {
        output.write($0)
      } proceed: { bytesRead, size, packets in
        progress.show(DissectionProgress(bytesRead: bytesRead, size: size, packets: packets))
        return !Interrupt.isRequested
      }
    } catch {
      complain("\(input.title): \(error.message)")
      throw ExitStatus.code(for: error)
    }
    progress.end()
    if Interrupt.isRequested { throw ExitStatus.interrupted }
    try output.finish(atMost: copy.holdsSecrets && copy.droppedSecrets == 0 ? 0o600 : rights)
    return copy
  }
}
