import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct Report: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a report of a result or a trace: one HTML page, and the same as Markdown.",
    usage: "apnscope report [<options>] <file> --output <folder>",
    discussion: """
      Writes into a folder: report.html, one page that needs no network, no script and no other file, light or dark as \
      its reader's system is, and fit for a phone and for paper; report.md with chart-1.svg, chart-2.svg … beside it, for \
      a Git host; and copies of what they were made from (run.json, ledger.json, baseline.json, capacity.json), so that \
      they can be made again. The page ends with the command line that made it. The folder is made if it is not there; \
      pages, charts and copies of an earlier report in it are replaced, but copies that this one does not have stay, with \
      a warning: they may be originals.

      A load run ('apnscope load --output' or 'apnscope merge --output') becomes: the verdict (what was asked, what came \
      of it, what limited it, thresholds, invariants), what it says about capacity with intervals within this run, the \
      set-up, its phases, throughput and send lag over time, errors and what each of them cost, the lives of the \
      connections, batching, processor and memory, and warnings.

      What 'apnscope capacity' has found becomes: the answer, the trials of the search, the laws over connections, errors \
      and batches with their checks, and every trial.

      A trace becomes: what is worth a look, who sent what and when, the lives of the connections, every error response \
      with what was discarded after it and whether that was sent again, reconnects by their cause, batching, payload \
      sizes, device tokens, the mix of commands, priorities and expirations, feedback, and what is missing. The file is \
      a capture or dump, decoded as 'apnscope inspect' does it and with the same options; or the records of 'apnscope \
      decode --format jsonl', which make the same page and need no keys. Its content says what it is, not its name. A \
      line of records that cannot be read is named with its number, and the rest is used. Memory does not grow with the \
      file; it is not copied into the folder. '-' is standard input; what comes through a pipe is kept in an unnamed file \
      of the folder meanwhile, or of the one that it will be made in.

      With --ledger, the books that 'apnscope simulate --ledger' has kept of the same run are set beside those of the \
      load, line by line. With --baseline, the figures of an earlier run are set beside those of this one, with ratios, and \
      settings that differ are listed. Nothing is called better or worse: one run a side tells no difference from chance; \
      'apnscope compare' judges \(Comparison.fewestRuns) of each.

      It measures nothing and changes no number. Percentiles are those of all values, from the histograms of the result.

      Examples:
        apnscope report run.json --output nightly/
        apnscope report run.json --ledger sim.json --output nightly/
        apnscope report capacity.json --output capacity/
        apnscope report run.json --baseline nightly/run.json --output candidate/
        apnscope report --keys sslkeys.log monday.pcapng.gz --output monday/
        apnscope report monday.jsonl --rows 200 --output monday/
        apnscope decode monday.pcapng | apnscope report - --output monday/

      Exit codes: 0 done, whatever the report says of the run or trace; 64 usage; 65 a file is none of the kinds above, \
      or of another schema, some of its records cannot be read (the report is of the others), or --strict found damage \
      or nothing (the report is written); 66 cannot open a file; 70 the books of both sides do not agree (the report is \
      written); 74 cannot read or write; 130 interrupted (the report is of what was read).
      """)

  @Argument(
    help: ArgumentHelp(
      "A result of 'apnscope load', 'merge' or 'capacity', records of 'decode', or a recording; - is standard input.",
      valueName: "file"),
    completion: .file())
  var input: String

  @Option(
    help: ArgumentHelp("The gateway's ledger of the same run ('apnscope simulate --ledger').", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var ledger: String?

  @Option(
    help: ArgumentHelp("An earlier result of a load to compare with.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var baseline: String?

  @Option(help: ArgumentHelp("The folder for the report.", valueName: "folder"), completion: .directory)
  var output: String

  @OptionGroup(title: "Traces")
  var trace: TraceOptions

  @OptionGroup(title: "Limits of traces") var tallies: TallyLimitOptions

  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  func validate() throws {
    if output.isEmpty { throw ValidationError("--output needs the name of a folder.") }
  }

  /// - Parameter path: of the input.
  private func checkFiles(_ path: String) throws {
    try refuseConflicts(
      reading: [path] + [ledger, baseline].compactMap { $0 } + decoding.secrets.files,
      writing: ReportFolder.pages(in: output).map { ("--output", $0) } + [FilesInUse.standardOutput])
  }

  func run() throws {
    let path = try inputPath()
    guard Interrupt.take() else { return try report(path) }
    // The rest of the input is missing; what is wrong with it, or told by it, comes from that.
    if try ReportInput.isEmpty(path) { throw ExitStatus.interrupted }
    do { try complaining { try report(path) } } catch is ExitCode {}
    throw ExitStatus.interrupted
  }

  /// The path of the input; `-` is standard input. What comes through a pipe is kept in the report's folder; one that is
  /// not there is not made, for the input may be no good: it is then kept in the nearest that it would be in.
  ///
  /// Ctrl-C ends what comes through a pipe: what has come by then is the input.
  private func inputPath() throws -> String {
    guard input == "-" else { return input }
    if !StandardInput.isWholeFile {
      Interrupt.watch()
      try StandardInput.keep(in: OutputFolder.existing(output)) { Interrupt.isRequested }
    }
    return StandardInput.path
  }

  private func report(_ path: String) throws {
    try checkFiles(path)
    let kind = try ReportInput.kind(of: path)
    if kind == .records || kind == .recording, ledger != nil || baseline != nil {
      throw ValidationError("--ledger and --baseline are for results of a load; \(input) is none.")
    }
    switch kind {
    case .load: try reportLoad(path)
    case .capacity: try reportCapacity(path)
    case .ledger:
      complain(
        "\(input): is a ledger of 'apnscope simulate'; give it beside the load's result: apnscope report run.json --ledger \(input) --output \(output)"
      )
      throw ExitStatus.damaged
    case .records: try reportTrace(try TraceReading(records: path, trace, tallies, decoding.limits))
    case .recording: try reportTrace(try TraceReading(recording: path, trace, tallies, decoding))
    }
  }

  private func reportTrace(_ reading: TraceReading) throws {
    let page = TracePage(reading.report, command: Self.command, rows: trace.rows).page
    try ReportFolder(output).write(page, copying: [])
    if reading.code != .success { throw reading.code }
  }

  private func reportLoad(_ path: String) throws {
    let result = try ResultDocument.read(path)
    let report = try RunReport(
      result, ledger: ledger.map { try ResultDocument.readLedger($0) },
      baseline: baseline.map { try ResultDocument.read($0) }, command: Self.command)
    var inputs = [("run.json", path)]
    if let ledger { inputs.append(("ledger.json", ledger)) }
    if let baseline { inputs.append(("baseline.json", baseline)) }
    try ReportFolder(output).write(report.page, copying: inputs)
    if report.booksAgree == false {
      complain("\(output): the books of both sides do not agree; the report says in which lines")
      throw ExitStatus.brokenBooks
    }
  }

  private func reportCapacity(_ path: String) throws {
    if ledger != nil || baseline != nil {
      throw ValidationError("--ledger and --baseline are for results of a load; \(input) is one of 'capacity'.")
    }
    let document = try ResultDocument.readCapacity(path)
    try ReportFolder(output).write(
      document.page(footer: "Made by " + .code(commandLine(Self.command))),
      copying: [("capacity.json", path)])
  }

  /// The command line, without the path that the command was started by.
  static var command: [String] { ["apnscope"] + CommandLine.arguments.dropFirst() }
}
