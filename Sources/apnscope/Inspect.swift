import Analysis
import ArgumentParser
import Bytes
import CommandFiles
import InterfaceCapture
import Measurement
import Records
import Reporting

extension InspectionReport.Order: ExpressibleByArgument {}

struct Inspect: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case text, json
  }

  static let configuration = CommandConfiguration(
    abstract: "Summarize recordings on one screen.",
    discussion: """
      Shows the files, the clients, the notifications and their batching, the error responses and how many notifications \
      each of them cost, when connections were opened and closed, and a list of findings: each with its count and the \
      first packet it occurs in. TLS is decrypted as by 'decode', and shown with version, cipher suite, key exchange, \
      resumption, and overhead in bytes.

      Counts and fates are those of the records that 'decode' writes. Distinct notifications are one token and payload \
      each, and are counted by what became of them over all of their sendings, by the rules of 'follow': lost when every \
      sending was discarded and nothing that the recording does not show could hold another one, recovered when a later \
      one was accepted, accepted twice when two were (less than 10 minutes apart), open when the recording does not prove \
      it. Those that were discarded and not seen again are counted with the place where a sending may be: a gap, a \
      connection that was not decrypted, the time after the recording. Sendings of discarded ones are found in the whole \
      recording, other repeats among the latest notifications (--max-remembered), and the text says when there were more; \
      'follow' compares all.

      Captures given together, and those of a folder, are one recording, as for 'decode'; --separate reads them as \
      unrelated. --interface reads a network interface; with --every the summary so far is written again and again.

      'apnscope merge' joins the JSON documents of several recordings, or of the parts that --shard made of one. A part \
      does not see the other ones: what was discarded in it is open, and so is the sum, unless one part has all \
      connections of the protocol.

      Payloads are judged: what they are for, and which rules they break, each with the first packet and an example.

      Examples:
        apnscope inspect capture.pcap
        apnscope inspect ring/
        apnscope inspect --keys sslkeys.log capture.pcap
        apnscope inspect --interface eth0 --filter 'tcp port 2195' --every 10s
        apnscope inspect --shard 1/4 --format json ring/ > part-1.json
        apnscope inspect --rows 100 --filter 'host 10.0.0.5' capture.pcap
        apnscope inspect --from 10:00 --to 10:05 --status 8 capture.pcap
        apnscope inspect --format json monday.pcapng.gz | jq .findings

      Options select records as for 'decode'; all figures are then of these records, and a line says so. Outcomes, resends \
      and findings about providers stay those of the whole recording.

      When no APNs traffic is found, the findings state the reason: encryption, ports with another protocol, a filter that \
      matches nothing.

      Exit codes: 0 done (damage is among the findings); 64 usage; 65 not a capture, a key that cannot be used, or \
      --strict found damage or nothing; 66 cannot open a file or interface; 69 no program to \
      capture with; 74 cannot read or write, or the capture ended by itself; 130 interrupted.
      """)

  /// Options of the output, declared before those of the input so that --help shows them before the limits.
  struct ViewOptions: ParsableArguments {
    @Option(help: "text (one screen) or json (everything, for programs).")
    var format = Format.text

    @Option(help: ArgumentHelp("Connections and error responses that the text lists, 0 to 10000.", valueName: "count"))
    var rows = 12

    @Option(
      help:
        "Order of connections and error responses: start (by time), or cost (most lost notifications first), among those that are kept (--max-listed)."
    )
    var sort = InspectionReport.Order.start

    @Option(
      help: ArgumentHelp(
        "Write a summary of everything so far at this interval, as 10s, and a last one at the end.",
        valueName: "time"), transform: TimeSpan.parse)
    var every: TimeSpan?

    @Flag(help: "Exit with 65 when anything is missing, malformed or not decrypted, or nothing was read.")
    var strict = false

    @Option(
      name: .shortAndLong,
      help: ArgumentHelp("Write to this file. Default, and -: standard output.", valueName: "file"),
      completion: .file())
    var output: String?

    @OptionGroup var screen: ScreenOption
    @OptionGroup var colour: ColourOption
  }

  @OptionGroup(title: "Display") var view: ViewOptions
  @OptionGroup(title: "Redaction") var redacting: RedactionOptions
  @OptionGroup(title: "Selection") var which: RecordSelectionOptions
  @OptionGroup(title: "Selection") var types: RecordTypeOptions
  @OptionGroup var recordings: RecordingsArgument
  @OptionGroup(title: "Live capture") var live: LiveOptions
  @OptionGroup(title: "Input") var selection: SelectionOptions
  @OptionGroup(title: "Payloads") var payloads: PayloadOptions
  @OptionGroup(title: "Context of payloads") var context: PayloadContextOptions
  @OptionGroup(title: "Decryption") var secrets: SecretsOptions
  @OptionGroup(title: "Outcomes") var resends: ResendOption
  @OptionGroup(title: "Limits of the summary") var tallies: TallyLimitOptions
  @OptionGroup(title: "Limits") var limits: LimitOptions

  private var format: Format { view.format }
  private var rows: Int { view.rows }
  private var decoding: DecodingOptions { DecodingOptions(selection: selection, secrets: secrets, limits: limits) }

  private var chosen: RecordSelection { types.adding(to: which) }

  func validate() throws {
    try live.check(recordings.inputs)
    if let every = view.every, every.duration < .milliseconds(100) {
      throw ValidationError("--every must be at least 100ms (got \(every.defaultValueDescription)).")
    }
    if rows < 0 || rows > 10_000 { throw ValidationError("--rows must be 0 to 10000 (got \(rows)).") }
    try refuseConflicts(
      reading: recordings.inputs + secrets.files + redacting.files,
      writing: [view.output.map { ("--output", $0) } ?? FilesInUse.standardOutput])
  }

  private func text(of report: InspectionReport) throws -> String {
    switch format {
    case .text:
      let layout =
        OutputFile.file(view.output) == nil ? view.colour.layout : TextLayout(columns: nil, isColoured: false)
      return layout.laidOut(InspectionText(report, rows: rows, columns: layout.columns).text)
        + (view.every == nil ? "" : "\n")
    case .json: return try InspectionDocument(report).jsonDocument() + "\n"
    }
  }

  func run() throws {
    if live.listInterfaces { return try CaptureProgram.listInterfaces(endingSignals: StopSignals.numbers) }
    Interrupt.watch()
    var limits = tallies.limits
    limits.judging = payloads.judging(context)
    limits.resendWithin = resends.nanoseconds
    limits.isPart = selection.isPart
    let outputs = try Outputs(OutputFile.file(view.output), isDirectory: false)
    let write = try outputs.open()
    var last = ContinuousClock.now
    func show(_ report: InspectionReport) -> Bool {
      var report = report
      report.sort(by: view.sort)
      // Every number in the report is finite, so that JSON can represent it.
      guard let text = try? text(of: report) else { return true }
      return write(Array(text.utf8).rawBytes)
    }
    // On standard error, as progress is: standard output gets the summary.
    let hasScreen = view.screen.screen && Screen.isPossible && format == .text
    var screen = Screen()
    defer { screen.end() }
    let interval = view.every?.duration ?? (hasScreen ? .seconds(1) : nil)
    let onProgress = interval.map { every in
      { (sink: Inspection, _: SummaryRecord, summary: SummaryRecord) in
        let now = ContinuousClock.now
        guard last.duration(to: now) >= every else { return }
        last = now
        if hasScreen {
          let columns = Screen.size.columns
          let text = InspectionText(sink.report(after: summary), rows: rows, columns: columns).text
          let layout = TextLayout(columns: columns, isColoured: view.colour.layout.isColoured)
          return screen.show(
            layout.laidOut(text).split(separator: "\n", omittingEmptySubsequences: false).map(String.init))
        }
        // If the output cannot be written any more, reading ends.
        if !show(sink.report(after: summary)) { Interrupt.request() }
      }
    }
    var pipeline = try decoding.pipeline(recordings.inputs, live: live, chosen, try redacting.redaction)
    let result = try pipeline.read(into: Inspection(limits: limits), onProgress: onProgress)
    let code = ExitStatus.code(for: result.reading, strict: view.strict)
    var inspection = result.sink
    screen.end()
    let report = inspection.finish(withCounts: true, shard: selection.shard?.shard)
    // Nothing to show when no input could be read.
    if !report.files.isEmpty { _ = show(report) }
    try outputs.check()
    if code != .success { throw code }
  }
}
