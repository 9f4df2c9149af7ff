import ArgumentParser
import Measurement
import Reporting

struct Report: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a report of a result: one HTML page, and the same as Markdown.",
    usage: "apnscope report [<options>] <file> --output <folder>",
    discussion: """
      Writes into a folder: report.html, one page that needs no network, no script and no other file, light or dark as \
      its reader's system is, and fit for a phone and for paper; report.md with chart-1.svg, chart-2.svg … beside it, for \
      a Git host; and copies of what they were made from (run.json, ledger.json, baseline.json, capacity.json), so that \
      they can be made again. The page ends with the command line that made it. The folder is made if it is not there; \
      files of an earlier report in it are replaced.

      A load run ('apnscope load --output' or 'apnscope merge --output') becomes: the verdict (what was asked, what came \
      of it, what limited it, thresholds, invariants), what it says about capacity with confidence intervals, the \
      set-up, its phases, throughput and send lag over time, errors and what each of them cost, the lives of the \
      connections, batching, processor and memory, and warnings.

      What 'apnscope capacity' has found becomes: the answer, the trials of the search, the laws over connections, errors \
      and batches with their checks, and every trial.

      With --ledger, the books that 'apnscope simulate --ledger' has kept of the same run are set beside those of the \
      load, line by line. With --baseline, an earlier run is compared with this one: ratios with intervals, and "~" where \
      they could as well be 1; settings that differ are listed.

      It measures nothing and changes no number. Percentiles are those of all values, from the histograms of the result.

      Examples:
        apnscope report run.json --output nightly/
        apnscope report run.json --ledger sim.json --output nightly/
        apnscope report capacity.json --output capacity/
        apnscope report run.json --baseline nightly/run.json --output candidate/

      Exit codes: 0 done, whatever the report says of the run; 64 usage; 65 a file is none of the kinds above, or of \
      another schema; 66 cannot open a file; 70 the books of both sides do not agree (the report is written); 74 cannot \
      write.
      """)

  @Argument(
    help: ArgumentHelp("A result of 'apnscope load', 'merge' or 'capacity'.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var input: String

  @Option(
    help: ArgumentHelp("The gateway's books of the same run, of 'apnscope simulate --ledger'.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var ledger: String?

  @Option(
    help: ArgumentHelp("An earlier result of a load to compare with.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var baseline: String?

  @Option(help: ArgumentHelp("The folder for the report.", valueName: "folder"), completion: .directory)
  var output: String

  func validate() throws {
    if output.isEmpty { throw ValidationError("--output needs the name of a folder.") }
  }

  func run() throws {
    let kind = try ReportInput.kind(of: input)
    switch kind {
    case .load: try reportLoad()
    case .capacity: try reportCapacity()
    case .ledger:
      complain(
        "\(input): is a ledger of 'apnscope simulate'; give it beside the load's result: apnscope report run.json --ledger \(input) --output \(output)"
      )
      throw ExitStatus.damaged
    case .records, .recording:
      complain("\(input): is \(kind.rawValue); there are reports of results of 'apnscope load', 'merge' and 'capacity'")
      throw ExitStatus.damaged
    }
  }

  private func reportLoad() throws {
    let result = try ResultDocument.read(input)
    let report = try RunReport(
      result, ledger: ledger.map { try ResultDocument.readLedger($0) },
      baseline: baseline.map { try ResultDocument.read($0) }, command: Self.command)
    var inputs = [("run.json", input)]
    if let ledger { inputs.append(("ledger.json", ledger)) }
    if let baseline { inputs.append(("baseline.json", baseline)) }
    try ReportFolder(output).write(report.page, copying: inputs)
    if report.booksAgree == false {
      complain("\(output): the books of both sides do not agree; the report says in which lines")
      throw ExitStatus.brokenBooks
    }
  }

  private func reportCapacity() throws {
    if ledger != nil || baseline != nil {
      throw ValidationError("--ledger and --baseline are for results of a load; \(input) is one of 'capacity'.")
    }
    let document = try ResultDocument.readCapacity(input)
    try ReportFolder(output).write(
      document.page(footer: "Made by " + .code(commandLine(Self.command))),
      copying: [("capacity.json", input)])
  }

  /// The command line, without the path that the command was started by.
  static var command: [String] { ["apnscope"] + CommandLine.arguments.dropFirst() }
}
