import Analysis
import ArgumentParser
import CommandFiles
import Measurement
import Records
import Reporting

struct Report: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create a report of a result or a trace: one HTML page, and the same as Markdown.",
    usage: "apnscope report [<options>] <file> ... --output <folder>",
    discussion: """
      Writes into a folder: report.html, one page that needs nothing from elsewhere, light or dark like the reader's \
      system, for screens, phones and paper; it begins with the verdict and one picture, and its charts show values and \
      zoom by mouse, keys and touch (without scripts it has their numbers in tables); report.md with chart-1.svg, chart-2.svg …, for a Git host; and copies of the inputs \
      (run.json, ledger.json, baseline.json, capacity.json, fleet.json; several ledgers are ledger-1.json, ledger-2.json …), so that \
      the report can be created again. The page ends with the command line that created it. The folder is created if it \
      does not exist; pages, charts and copies of an earlier report are replaced, but copies that this report does not \
      have stay, with a warning: they may be originals.

      A load run ('apnscope load --output' or 'apnscope merge --output') shows: the verdict with what was asked, written and \
      accepted over time, errors, lag and stalls; then errors and their cost, connections over time, batching, processor and \
      memory, estimates of capacity with intervals within this run, phases, warnings; and folded the books, the set-up and \
      a glossary.

      A result of 'apnscope capacity' shows: the answer, the trials of the search, the laws over connections, errors and \
      batches with their checks, and every trial. --target, --within, --demand, --storm and --devices ask it other questions than \
      the search was made with, and are answered on standard output too, or only there without --output. Answers come \
      from the trials and their laws; each says whether it was measured or predicted, and where no trial proves one \
      there is none.

      A result of 'apnscope devices' shows: when the devices had their notifications, by path and by campaign, devices and \
      connections over time, storms, and how connections ended; with --ledger ('simulate --ledger') the books of both sides. \
      --devices takes one to say when the last device has the campaign of a capacity.

      A ledger of 'apnscope simulate' shows what a provider did: the verdict in a sentence, expectations, what became of the \
      notifications, what the provider did after each error, how it sends, devices, feedback and payloads; with --records \
      ('simulate --records') also its traffic over time. Without --verdict in the run, outcomes are those that the \
      records prove. Records of another run, or not all of this one, are named at the beginning of the page.

      A trace shows: what was sent by the time of day, what each error threw away and when that came back, the \
      notifications that did not, findings, the senders and their traffic over time, connections over time, every error response with the \
      notifications discarded after it and whether they were resent, reconnects by cause, batching, payload sizes, \
      kinds and faults of payloads, device tokens, commands, priorities and expirations, feedback, and missing data. The \
      file is a capture or dump, decoded as by 'apnscope inspect' and with the same options, and several captures, or a \
      folder of them, are one recording; or records of 'apnscope decode --format jsonl', which give the same \
      page and need no keys. Its kind is recognised by content, not by name. Unreadable lines of records are reported by \
      number and skipped. Memory does not grow with the file; it is not copied into the folder. '-' is standard input; \
      input from a pipe is spooled to an unnamed file in the folder, or its parent.

      Options select records of a trace as for 'decode', also when it is given as records; the page then states that its \
      figures are of a selection. What became of notifications stays what it is in the whole trace, by the rules of \
      'follow': what may have been sent again where the trace shows nothing is open, not lost (--resend-within).

      With --ledger, the report compares the books of 'apnscope simulate --ledger' with those of the load, line by line. With \
      --baseline, it shows the figures of an earlier run beside those of this one, with ratios, and lists settings that \
      differ. It calls nothing better or worse: one run of each cannot separate a difference from chance; 'apnscope \
      compare' judges \(Comparison.fewestRuns) of each, and makes a page of that with --output.

      All figures are those of the result. Percentiles are of all values, from its histograms.

      Examples:
        apnscope report run.json --output nightly/
        apnscope report run.json --ledger sim.json --output nightly/
        apnscope report sim.json --records arrived.jsonl --output provider/
        apnscope report fleet.json --ledger sim.json --output devices/
        apnscope report capacity.json --output capacity/
        apnscope report capacity.json --target 80M --within 10m
        apnscope report capacity.json --demand monday.json,factor=2
        apnscope report run.json --baseline nightly/run.json --output candidate/
        apnscope report --keys sslkeys.log monday.pcapng.gz --output monday/
        apnscope report ring/ --output monday/
        apnscope report monday.jsonl --rows 200 --output monday/
        apnscope decode monday.pcapng | apnscope report - --output monday/

      Exit codes: 0 done, whatever the report says of the run or trace; 64 usage; 65 a file is of another kind or \
      schema, some of its records cannot be read (the report has the others), or --strict found damage or nothing (the \
      report is written); 66 cannot open a file; 70 the books of both sides disagree, those of devices cannot be compared, or the records are not those of the ledger's run (the report is written); 74 cannot \
      read or write; 130 interrupted (the report has the part that was read).
      """)

  @Argument(
    help: ArgumentHelp(
      "A result of 'apnscope load', 'devices', 'merge' or 'capacity', a ledger of 'simulate', records of 'decode', or recordings; - is standard input.",
      valueName: "file"),
    completion: .file())
  var inputs: [String]

  private var input: String { inputs[0] }
  /// Whether there are several inputs, which have to be captures.
  private var areSeveral: Bool { inputs.count > 1 || Paths.isDirectory(input) }

  @Option(
    help: ArgumentHelp(
      "The gateway's ledger of the same run ('apnscope simulate --ledger'); repeatable for several gateways, whose counts are added.",
      valueName: "file"), completion: .file(extensions: ["json"]))
  var ledger: [String] = []

  @Option(
    help: ArgumentHelp(
      "The records of the same run ('apnscope simulate --records'), for a report of its ledger.", valueName: "file"),
    completion: .file(extensions: ["jsonl"]))
  var records: String?

  @Option(
    help: ArgumentHelp("An earlier result of a load to compare with.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var baseline: String?

  @Option(
    help: ArgumentHelp("The folder for the report. Required, but for questions about a capacity.", valueName: "folder"),
    completion: .directory)
  var output: String?

  @OptionGroup(title: "Questions about a capacity") var questions: CapacityQuestions

  @Option(help: "Format of the answers on standard output: text, or json (the document with them).")
  var format = ResultOptions.Format.text

  @OptionGroup(title: "Traces")
  var trace: TraceOptions

  @OptionGroup(title: "Redaction of a trace") var redacting: RedactionOptions

  @OptionGroup(title: "Selection of a trace's records") var which: RecordSelectionOptions
  @OptionGroup(title: "Selection of a trace's records") var types: RecordTypeOptions

  @OptionGroup(title: "Outcomes in a trace") var resends: ResendOption
  @OptionGroup(title: "Limits of traces") var tallies: TallyLimitOptions

  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Payloads") var payloads: PayloadOptions
  @OptionGroup(title: "Context of payloads") var context: PayloadContextOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  private var traceLimits: TraceInspection.Limits {
    var limits = trace.limits(tallies)
    limits.inspection.judging = payloads.judging(context)
    limits.inspection.resendWithin = resends.nanoseconds
    limits.inspection.isPart = selection.isPart
    return limits
  }

  private var chosen: RecordSelection { types.adding(to: which) }

  func validate() throws {
    if inputs.isEmpty { throw ValidationError("No input. Name a result, records or recordings.") }
    if inputs.count > 1, inputs.contains("-") { throw ValidationError("Standard input (-) is read alone.") }
    if output == "" { throw ValidationError("--output takes the name of a folder.") }
    if output == nil, questions.isEmpty {
      throw ValidationError("Missing expected argument '--output <folder>'")
    }
    if format == .json, questions.isEmpty {
      throw ValidationError(
        "--format json is for answers about a capacity: give --target, --demand, --storm or --devices.")
    }
    if format == .json, output != nil {
      throw ValidationError("--format json is for answers on standard output alone, without --output.")
    }
    try requireFolder(output)
  }

  private func checkFiles(_ paths: [String]) throws {
    try refuseConflicts(
      reading: paths + ledger + [baseline, records].compactMap { $0 } + decoding.secrets.files + redacting.files
        + questions.files,
      writing: (output.map { ReportFolder.pages(in: $0) } ?? []).map { ("--output", $0) } + [FilesInUse.standardOutput])
  }

  /// The folder for the report of what is not a capacity.
  private func folder() throws -> String {
    guard let output, questions.isEmpty else {
      throw ValidationError(
        "--target, --within, --demand, --storm and --devices are for a result of 'apnscope capacity'; \(input) is not one."
      )
    }
    return output
  }

  func run() throws {
    let path = try inputPath()
    if areSeveral {
      try checkFiles(inputs)
      return try reportRecordings()
    }
    guard Interrupt.take() else { return try report(path) }
    // The rest of the input is missing; its other warnings are a consequence.
    if try ReportInput.isEmpty(path) { throw ExitStatus.interrupted }
    do { try complaining { try report(path) } } catch is ExitCode {}
    throw ExitStatus.interrupted
  }

  /// The path of the input; `-` is standard input. Input from a pipe is spooled to the report's folder; a missing
  /// folder is not created, because the input may be invalid: the nearest existing parent is used.
  ///
  /// Ctrl-C ends reading a pipe: the bytes read by then are the input.
  private func inputPath() throws -> String {
    guard inputs == ["-"] else { return input }
    if !StandardInput.isWholeFile {
      Interrupt.watch()
      try StandardInput.keep(in: OutputFolder.existing(output ?? ".")) { Interrupt.isRequested }
    }
    return StandardInput.path
  }

  private func report(_ path: String) throws {
    try checkFiles([path])
    let kind = try ReportInput.kind(of: path)
    if kind == .records || kind == .recording, !ledger.isEmpty || baseline != nil {
      throw ValidationError(
        "--ledger needs a result of 'apnscope load' or 'devices', and --baseline one of 'load'; \(input) is neither.")
    }
    if kind != .records && kind != .recording, !chosen.isEmpty {
      throw ValidationError("--from, --token and similar options select records of a trace; \(input) is not a trace.")
    }
    if kind != .records && kind != .recording, redacting.redact {
      throw ValidationError("--redact is for traces; \(input) has no tokens, payloads or addresses of devices.")
    }
    if kind != .ledger, records != nil {
      throw ValidationError("--records needs a ledger of 'apnscope simulate'; \(input) is not one.")
    }
    if kind != .capacity { _ = try folder() }
    switch kind {
    case .load: try reportLoad(path)
    case .capacity: try reportCapacity(path)
    case .ledger: try reportProvider(path)
    case .fleet: try reportFleet(path)
    case .records:
      try reportTrace(
        try TraceReading(
          records: path, traceLimits, trace, chosen, try redacting.redaction, decoding.limits))
    case .recording:
      try reportTrace(
        try TraceReading(
          recordings: [path], traceLimits, trace, chosen, try redacting.redaction, decoding))
    }
  }

  private func reportRecordings() throws {
    _ = try folder()
    if !ledger.isEmpty || baseline != nil {
      throw ValidationError("--ledger and --baseline are for results of a load.")
    }
    for path in inputs where !Paths.isDirectory(path) {
      let kind = try ReportInput.kind(of: path)
      guard kind == .recording else {
        complain("\(path): is \(kind.rawValue); only recordings can be reported on together")
        throw ExitStatus.damaged
      }
    }
    try reportTrace(
      try TraceReading(recordings: inputs, traceLimits, trace, chosen, try redacting.redaction, decoding))
  }

  private func reportTrace(_ reading: TraceReading) throws {
    let page = TracePage(reading.report, command: Self.command, rows: trace.rows).page
    try ReportFolder(try folder()).write(page, copying: [])
    if reading.code != .success { throw reading.code }
  }

  private func reportLoad(_ path: String) throws {
    let output = try folder()
    let result = try ResultDocument.read(path)
    let report = try RunReport(
      result, ledger: Ledger.merging(try ledger.map { try ResultDocument.readLedger($0) }),
      baseline: baseline.map { try ResultDocument.read($0) }, command: Self.command)
    var inputs = [("run.json", path)]
    for (number, path) in ledger.enumerated() { inputs.append((ReportFolder.ledger(number, of: ledger.count), path)) }
    if let baseline { inputs.append(("baseline.json", baseline)) }
    try ReportFolder(output).write(report.page, copying: inputs)
    if report.booksAgree == false {
      complain("\(output): the books of both sides disagree; the report marks the lines")
      throw ExitStatus.brokenBooks
    }
  }

  private func reportProvider(_ path: String) throws {
    let output = try folder()
    if baseline != nil { throw ValidationError("--baseline needs a result of 'apnscope load'; \(input) is a ledger.") }
    let paths = [path] + ledger
    guard let books = Ledger.merging(try paths.map { try ResultDocument.readLedger($0) }) else { return }
    let reading = try records.map { records in
      try TraceReading(records: records, traceLimits, trace, chosen, nil, decoding.limits)
    }
    let report = ProviderPage(books, trace: reading?.report, command: Self.command, rows: trace.rows)
    let copies = paths.enumerated().map { (ReportFolder.ledger($0, of: paths.count), $1) }
    try ReportFolder(output).write(report.page, copying: copies)
    var obstacles = report.recordsObstacles
    // Records that a run could not write are in its books.
    if reading?.isIncomplete == true, books.records?.lost ?? 0 == 0 {
      obstacles.append("the records are incomplete; the report says what is missing")
    }
    for obstacle in obstacles { complain("\(records ?? output): \(obstacle)") }
    if let code = reading?.code, code != .success { throw code }
    if !obstacles.isEmpty { throw ExitStatus.brokenBooks }
  }

  private func reportFleet(_ path: String) throws {
    let output = try folder()
    if baseline != nil {
      throw ValidationError("--baseline needs a result of 'apnscope load'; \(input) is of devices.")
    }
    let report = FleetPage(
      try ResultDocument.readFleet(path), ledger: Ledger.merging(try ledger.map { try ResultDocument.readLedger($0) }),
      command: Self.command)
    let copies = ledger.enumerated().map { (ReportFolder.ledger($0, of: ledger.count), $1) }
    try ReportFolder(output).write(report.page, copying: [("fleet.json", path)] + copies)
    if report.booksAgree == false {
      complain("\(output): the books of both sides disagree; the report says where")
      throw ExitStatus.brokenBooks
    }
    if let obstacle = report.booksObstacle {
      complain("\(output): the books of both sides were not compared: \(obstacle)")
      throw ExitStatus.brokenBooks
    }
  }

  private func reportCapacity(_ path: String) throws {
    if !ledger.isEmpty || baseline != nil {
      throw ValidationError(
        "--ledger and --baseline need a result of 'apnscope load'; \(input) is a result of 'capacity'.")
    }
    var document = try ResultDocument.readCapacity(path)
    try questions.apply(to: &document)
    let standard = try TextOutput()
    if !questions.isEmpty {
      standard.say(format == .json ? try document.jsonDocument() : CapacitySummary(document).text)
    }
    if let output {
      try ReportFolder(output).write(
        document.page(footer: "Made by " + .code(commandLine(Self.command))),
        copying: [("capacity.json", path)])
    }
    try standard.check()
  }

  /// The command line, without the path that the command was started by.
  static var command: [String] {
    let words = ["apnscope"] + CommandLine.arguments.dropFirst()
    return RedactedArguments.isOn ? RedactedArguments.command(words) : words
  }
}
