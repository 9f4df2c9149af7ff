import ArgumentParser
import Bytes
import CommandFiles
import Dissection
import Glibc

struct Decode: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case jsonl, csv, table
  }

  static let configuration = CommandConfiguration(
    abstract: "Turn recordings into structured records.",
    discussion: """
      Reads packet captures and raw dumps of gateway and feedback traffic, and writes one record for every \
      notification, error response, feedback tuple, gap, stretch of malformed bytes and connection, and a summary.

      After a gap or damage, decoding resumes at the next frame: every notification that is complete in the recording is \
      decoded, nothing is invented, and skipped bytes are reported.

      TLS is decrypted with secrets from a key log (--keys), from the capture itself (pcapng), or with the \
      server's RSA key (--server-key). Connections that cannot be decrypted report the reason ("problem"); with --strict \
      they cause exit code 65. Secrets are never printed.

      Records go to standard output, warnings and progress to standard error. A closed pipe is not an error. \
      Times are UTC, byte strings hexadecimal, lengths and offsets in bytes; "packet" is Wireshark's frame number. \
      Control characters and bidirectional marks are written as \\u009b, also in CSV.

      Examples:
        apnscope decode --format table capture.pcap
        apnscope decode capture.pcap | jq -c 'select(.type == "error_response")'
        apnscope decode --keys sslkeys.log capture.pcap > records.jsonl
        apnscope decode --format csv --output records/ capture.pcapng.zst
        tcpdump -i any -U -w - tcp port 2195 | apnscope decode --format table -

      Exit codes: 0 done (damage is in the records); 64 usage; 65 not a capture, a key that cannot be used, or --strict \
      found damage or nothing; 66 cannot open a file; 74 cannot read or write; 130 interrupted.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct RecordOptions: ParsableArguments {
    @Option(
      help:
        "jsonl (one JSON object a line), csv (one table, or one file per record type into a directory), or table (for people)."
    )
    var format = Format.jsonl

    @Option(
      help: ArgumentHelp(
        "Where to write. A directory (with csv) when it exists or ends with a slash. Default: standard output.",
        valueName: "path"), completion: .file())
    var output: String?

    @Option(
      help: ArgumentHelp(
        "Write the secrets that were used to this file: a key log of these connections only, readable by the owner only. Share it with a capture instead of the server's key.",
        valueName: "file"), completion: .file())
    var exportKeys: String?

    @Flag(help: "Exit with 65 when anything is missing, malformed or not decrypted, or nothing was read.")
    var strict = false
  }

  @OptionGroup(title: "Output") var records: RecordOptions
  @OptionGroup var recordings: RecordingsArgument
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var format: Format { records.format }
  private var output: String? { records.output }
  private var exportKeys: String? { records.exportKeys }
  private var strict: Bool { records.strict }
  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  private var isDirectory: Bool {
    guard let output else { return false }
    var status = stat()
    return output.hasSuffix("/") || (unsafe stat(output, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR)
  }

  func validate() throws {
    if isDirectory && format != .csv {
      throw ValidationError("--output names a directory; only --format csv writes several files.")
    }
    try refuseConflicts(reading: recordings.inputs + secrets.files, writing: written + [("--export-keys", exportKeys)])
  }

  /// Where records go.
  private var written: [(name: String, path: String?)] {
    guard let output else { return [FilesInUse.standardOutput] }
    guard isDirectory else { return [("--output", output)] }
    return CSVWriter.RecordType.allCases.map { ("--output", Paths.path(of: Self.name(of: $0), in: output)) }
  }

  private static func name(of type: CSVWriter.RecordType) -> String { "\(type.rawValue).csv" }

  func run() throws {
    Interrupt.watch()
    let outputs = try Outputs(output, isDirectory: isDirectory)
    let onUse = try exportKeys.map { try outputs.openKeyLog($0) }
    switch format {
    case .jsonl: try decode(into: JSONLinesWriter(output: try outputs.open()), outputs, onUse)
    case .table: try decode(into: TableWriter(output: try outputs.open()), outputs, onUse)
    case .csv where isDirectory:
      try decode(into: try CSVWriter { try outputs.open(Self.name(of: $0)) }, outputs, onUse)
    case .csv: try decode(into: CSVWriter(output: try outputs.open()), outputs, onUse)
    }
  }

  private func decode(into writer: some RecordSink, _ outputs: Outputs, _ onUse: ((String) -> Void)?) throws {
    var result = try RecordingReader(recordings.inputs, decoding, into: writer, onUse: onUse)
    // When nothing could be read, the files stay as they were.
    if result.hasRead {
      result.sink.pause()
      try outputs.check()
    }
    let code = result.exitCode(strict: strict)
    if code != .success { throw code }
  }
}
