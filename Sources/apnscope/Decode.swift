import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import Glibc
import InterfaceCapture
import Pipeline
import Records

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

      The "fate" of a notification (accepted, rejected, discarded, unknown) is known when its connection has ended. Files \
      are therefore read twice, and each notification's record has its fate. Standard input and pipes are read once: \
      records are written at once and without fates; "fate" records with the fates of ranges of notifications follow, at \
      the latest when the connection ends.

      Payloads are judged: "kind" is what a push is for, "lint" the rules that its payload or frame breaks ('apnscope \
      lint' explains a single payload). --no-lint omits both.

      Options select records: --from 10:00 --to 10:05, --token 3b1d, --fate discarded, --type error_response. Values of a \
      repeated option are alternatives; different options must all match. A record without the field in question does \
      not match. Records are selected after sessions are followed, so that fates are those of the whole recording. \
      Records of connections with selected records are kept, the "capture" record states the selection, and "summary" \
      counts it.

      The rows of a table are in order of time; a connection's is at its end. Rows more than 16384 rows late are not \
      sorted, and rows of a pipe are written when it pauses.

      Records go to standard output, warnings and progress to standard error. A closed pipe is not an error. \
      Times are UTC, byte strings hexadecimal, lengths and offsets in bytes; "packet" is Wireshark's frame number. \
      Control characters and bidirectional marks are written as \\u009b, also in CSV.

      Captures given together, and those of a folder, are one recording: they are read in the order of the times of their \
      first packets, files that overlap in time are merged, and connections continue from file to file. Records then give \
      the "file" they are from, by the number in its capture record. --separate reads the files as unrelated.

      --interface reads a network interface through dumpcap (or tcpdump), so that apnscope itself needs no privileges. \
      Records appear within half a second of their packets; error responses when their connection ends. Ctrl-C ends the \
      capture; what it dropped is in a capture_loss record.

      Examples:
        apnscope decode --format table capture.pcap
        apnscope decode ring/ > records.jsonl
        apnscope decode capture.pcap | jq -c 'select(.type == "error_response")'
        apnscope decode --fate discarded capture.pcap | jq -r .token
        apnscope decode --token 3b1d --format table capture.pcap
        apnscope decode --keys sslkeys.log capture.pcap > records.jsonl
        apnscope decode --format csv --output records/ capture.pcapng.zst
        apnscope decode --interface eth0 --filter 'tcp port 2195' --format table
        apnscope decode -i eth0 --keep ring/ --metrics 127.0.0.1:9100 > r.jsonl
        apnscope decode --format csv --fields time,token,fate capture.pcap
        tcpdump -i any -U -w - tcp port 2195 | apnscope decode --format table -

      Exit codes: 0 done (damage is in the records); 64 usage; 65 not a capture, a key that cannot be used, or --strict \
      found damage or nothing; 66 cannot open a file or interface; 69 no program to capture with, or the address of \
      --metrics cannot be used; 74 cannot read or write, or the capture ended by itself; 130 interrupted.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct RecordOptions: ParsableArguments {
    @Option(
      help:
        "jsonl (one JSON object a line), csv (one table), or table (for people, in the order of time). jsonl and csv go into one file per record type when --output is a directory."
    )
    var format = Format.jsonl

    @Option(
      name: .shortAndLong,
      help: ArgumentHelp(
        "Where to write. A directory when it exists or ends with a slash. Default, and -: standard output.",
        valueName: "path"), completion: .file())
    var output: String?

    @Option(
      help: ArgumentHelp(
        "Write the secrets that were used to this file: a key log of these connections only, readable by the owner only. Share it with a capture instead of the server's key.",
        valueName: "file"), completion: .file())
    var exportKeys: String?

    @Option(
      help: ArgumentHelp(
        "Serve the counts to Prometheus at http://HOST:PORT/metrics while reading; port 0 picks a free one.",
        valueName: "host:port"), transform: ListeningAddress.parse)
    var metrics: ListeningAddress?

    @Flag(
      inversion: .prefixedNo, exclusivity: .chooseLast,
      help:
        "Write the fate into every notification's record, also of standard input, which is then kept in an unnamed file until it ends (folder: TMPDIR). --no-fates: write no fates, and read files once. Default: fates in records of files, and 'fate' records for what can be read only once."
    )
    var fates: Bool?

    @Option(
      help: ArgumentHelp(
        "Only these fields, separated by commas, with the names of CSV columns; records with none of them are omitted. JSON Lines keep the type; columns of a table are then separated by tabs.",
        valueName: "names"), completion: .words { FieldSelection.all })
    var fields: String?

    @Option(help: ArgumentHelp("Stop after this number of selected records.", valueName: "count"))
    var limit: Int?

    @Flag(help: "Exit with 65 when anything is missing, malformed or not decrypted, or nothing was read.")
    var strict = false
  }

  @OptionGroup(title: "Output") var records: RecordOptions
  @OptionGroup(title: "Redaction") var redacting: RedactionOptions
  @OptionGroup(title: "Selection") var which: RecordSelectionOptions
  @OptionGroup(title: "Selection") var types: RecordTypeOptions
  @OptionGroup var recordings: RecordingsArgument
  @OptionGroup(title: "Live capture") var live: LiveOptions
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Payloads") var payloads: PayloadOptions
  @OptionGroup(title: "Context of payloads") var context: PayloadContextOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var format: Format { records.format }
  private var output: String? { OutputFile.file(records.output) }
  private var exportKeys: String? { records.exportKeys }
  private var strict: Bool { records.strict }
  private var decoding: DecodingOptions {
    var options = DecodingOptions(selection: selection, secrets: secrets, limits: limits)
    // Threads read beyond the record at which reading ends, which counts of connections would show.
    if records.limit != nil { options.selection.threads = 1 }
    return options
  }

  private var judging: PayloadJudging? { payloads.judging(context) }

  private var isDirectory: Bool {
    guard let output else { return false }
    var status = stat()
    return output.hasSuffix("/") || (unsafe stat(output, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR)
  }

  private var chosen: RecordSelection { types.adding(to: which) }

  func validate() throws {
    try live.check(recordings.inputs)
    if isDirectory && format == .table {
      throw ValidationError("--output names a directory; a table is written to one file.")
    }
    _ = try fieldSelection
    if let limit = records.limit, limit < 1 {
      throw ValidationError("--limit must be at least 1 (got \(limit)).")
    }
    if redacting.redact, exportKeys != nil { throw ValidationError("--redact writes no secrets: omit --export-keys.") }
    try refuseConflicts(
      reading: recordings.inputs + secrets.files + redacting.files, writing: written + [("--export-keys", exportKeys)])
  }

  /// The files that records are written to.
  private var written: [(name: String, path: String?)] {
    guard let output else { return [FilesInUse.standardOutput] }
    guard isDirectory else { return [("--output", output)] }
    return RecordType.allCases.map { ("--output", Paths.path(of: name(of: $0), in: output)) }
  }

  private func name(of type: RecordType) -> String { "\(type.rawValue).\(format.rawValue)" }

  /// The selected fields; `nil`: all fields.
  private var fieldSelection: FieldSelection? {
    get throws {
      guard let names = records.fields?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) else {
        return nil
      }
      guard let selection = FieldSelection(names) else {
        let unknown = names.first { !FieldSelection.all.contains($0) } ?? ""
        throw ValidationError(
          "--fields: unknown field '\(unknown)'. \(hint(unknown, of: FieldSelection.all))")
      }
      return selection
    }
  }

  func run() throws {
    if live.listInterfaces { return try CaptureProgram.listInterfaces(endingSignals: StopSignals.numbers) }
    Interrupt.watch()
    let outputs = try Outputs(output, isDirectory: isDirectory)
    let onUse = try exportKeys.map { try outputs.openKeyLog($0) }
    var pipeline = try decoding.pipeline(recordings.inputs, live: live, chosen, try redacting.redaction)
    pipeline.onUse = onUse
    pipeline.recordLimit = records.limit
    let fates = try pipeline.prepareToWrite(fates: records.fates)
    if let selection = try fieldSelection {
      let judging = selection.needsVerdicts ? judging : nil
      switch format {
      case .jsonl where isDirectory:
        let writer = try RecordFilesWriter {
          JSONSomeFieldsWriter(selection, fates: fates, judging: judging, output: try outputs.open(name(of: $0)))
        }
        try decode(into: writer, &pipeline, outputs)
      case .csv where isDirectory:
        let writer = try RecordFilesWriter {
          SomeColumnsWriter(selection, of: $0, fates: fates, judging: judging, output: try outputs.open(name(of: $0)))
        }
        try decode(into: writer, &pipeline, outputs)
      case .jsonl:
        let writer = JSONSomeFieldsWriter(selection, fates: fates, judging: judging, output: try outputs.open())
        try decode(into: writer, &pipeline, outputs)
      case .csv, .table:
        let writer = SomeColumnsWriter(
          selection, isTabbed: format == .table, fates: fates, judging: judging, output: try outputs.open())
        try decode(into: writer, &pipeline, outputs)
      }
      return
    }
    switch format {
    case .jsonl where isDirectory:
      let writer = try RecordFilesWriter {
        JSONLinesWriter(fates: fates, judging: judging, output: try outputs.open(name(of: $0)))
      }
      try decode(into: writer, &pipeline, outputs)
    case .jsonl:
      let writer = JSONLinesWriter(fates: fates, judging: judging, output: try outputs.open())
      try decode(into: writer, &pipeline, outputs)
    case .table:
      try decode(
        into: TableWriter(fates: fates, judging: judging, output: try outputs.open()), &pipeline, outputs)
    case .csv where isDirectory:
      let writer = try CSVWriter(fates: fates, judging: judging) { try outputs.open(name(of: $0)) }
      try decode(into: writer, &pipeline, outputs)
    case .csv:
      try decode(into: CSVWriter(fates: fates, judging: judging, output: try outputs.open()), &pipeline, outputs)
    }
  }

  private func decode(
    into writer: some RecordSink, _ pipeline: inout RecordingPipeline, _ outputs: Outputs
  ) throws {
    let metrics = try records.metrics.map { try DecodeMetrics($0) }
    defer { metrics?.stop() }
    let (_, reading) = try pipeline.read(
      into: writer, onProgress: metrics.map { metrics in { _, summary, _ in metrics.update(summary) } })
    let code = ExitStatus.code(for: reading, strict: strict)
    // If nothing could be read, the files stay unchanged.
    if reading.hasRead { try outputs.check() }
    if code != .success { throw code }
  }
}
