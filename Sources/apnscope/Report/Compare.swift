import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell whether two sets of runs differ by more than chance.",
    usage: "apnscope compare [<options>] <a> … -- <b> …",
    discussion: """
      Each file is a result of 'apnscope load --output', or each is a ledger of 'apnscope simulate --ledger'. Those \
      before -- are side A, those after it side B; two files alone need no --. For each figure it shows the medians of both sides and the ratio of B's to A's.

      Four figures are judged: \(Comparison.mainFigures.joined(separator: ", ")); --figure chooses others. p is that of \
      the Mann-Whitney U test, the probability that chance alone separates the sides this far, followed by p with Holm's \
      correction for the number of judged figures. The verdict is better or worse if the corrected p is below 0.05 and \
      the medians differ by more than 15 %; ~ if these runs show no difference; and "below 15 %" if the difference is as \
      small as between equal runs on one machine. A verdict takes \(Comparison.fewestRuns) runs of each side; with fewer \
      it is ?. All other figures are shown without a verdict: of twenty judged figures, one would differ by chance in \
      every second comparison of equal runs.

      Runs of apnscope 0.1.0, whose results have no measured_by, are not judged against later ones: their figures are \
      computed differently.

      Of ledgers are judged: \(Comparison.mainLedgerFigures.joined(separator: ", ")); shares are of what was received, or \
      of the distinct notifications (--verdict). may_be_lost has those that are open and were not seen again beside \
      those that are proven lost. Counts depend on the load, and ledgers have no settings that could be compared.

      --output writes the comparison as a page: the verdict, both sides in every chart, and what differs.

      Differences between the machines and plans of the runs are listed; there should be only the intended one. A warning \
      is shown when host, kernel, OpenSSL, or the load itself differ.

      Alternate the sides (A B B A …), so that changes of the machine affect both:
        for i in 1 2 3 4 5; do
          apnscope load --identity ids --for 10s --batch 1 --output a$i.json
          apnscope load --identity ids --for 10s --output b$i.json
        done
        apnscope compare a?.json -- b?.json

      Examples:
        apnscope compare before.json after.json
        apnscope compare a?.json -- b?.json
        apnscope compare old-sim?.json -- new-sim?.json
        apnscope compare --figure error_p99 --figure recover_p99 a?.json -- b?.json
        apnscope compare --format json a?.json -- b?.json |
          jq '.figures[] | select(.judgement == "worse")'
        apnscope compare --fail-on worse --junit compare.xml a?.json -- b?.json
        apnscope compare --output compare.html a?.json -- b?.json

      Exit codes: 0 done, whatever differs; 64 usage; 65 a file is no result of a load and no ledger, files are of both kinds, or one has another schema; 66 cannot \
      open a file; 74 cannot write; 99 --fail-on found something.
      """)

  // The only strategy that keeps the -- and still accepts options in any position.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("Results or ledgers of side A, then --, then those of side B.", valueName: "results"),
    completion: .file(extensions: ["json"]))
  var results: [String] = []

  @Option(help: "Format of standard output: text (a table) or json.")
  var format = ResultOptions.Format.text

  @OptionGroup var colour: ColourOption

  enum Failing: String, CaseIterable, ExpressibleByArgument {
    case worse, different

    /// A figure that cannot be judged fails too: nothing shows that it is not worse.
    var judgements: Set<Comparison.Judgement> {
      let own: Set<Comparison.Judgement> = self == .worse ? [.worse] : [.worse, .better, .different]
      return own.union(Comparison.Judgement.unknown)
    }
  }

  @Option(
    help: ArgumentHelp(
      """
      Exit with 99 when a judged figure is worse, or with 'different' also when it is better; and when one cannot be judged, \
      as with fewer than \(Comparison.fewestRuns) runs of a side.
      """, valueName: "judgement"))
  var failOn: Failing?

  @Option(
    help: ArgumentHelp(
      "Write the judged figures to this file as JUnit XML; those of --fail-on (default: worse) as failures.",
      valueName: "file"), completion: .file(extensions: ["xml"]))
  var junit: String?

  @Option(
    help: ArgumentHelp("Write the comparison as a page to this file, ending in .html.", valueName: "file"),
    completion: .file(extensions: ["html"]))
  var output: String?

  @Option(
    name: .customLong("figure"),
    help: ArgumentHelp("Judge this figure; repeatable. Default: the four main ones.", valueName: "name"),
    completion: .list((RunFigure.all + RunFigure.ofLedgers).map(\.name)))
  var figures: [String] = []

  func validate() throws {
    _ = try sides()
    if let output, !output.hasSuffix(".html") { throw ValidationError("--output takes a file ending in .html.") }
    for figure in figures { try checkFigure(figure, of: (RunFigure.all + RunFigure.ofLedgers).map(\.name)) }
  }

  private func sides() throws -> (a: [String], b: [String]) {
    let border = results.firstIndex(of: "--")
    let first = Array(results[..<(border ?? results.endIndex)])
    if let option = first.first(where: { $0.hasPrefix("-") && $0 != "-" }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    guard let border else {
      guard first.count == 2 else {
        throw ValidationError("Give the results of side A, then --, then those of side B; or two results alone.")
      }
      return ([first[0]], [first[1]])
    }
    let second = Array(results[(border + 1)...])
    if first.isEmpty { throw ValidationError("Missing results before --.") }
    if second.isEmpty { throw ValidationError("Missing results after --.") }
    return (first, second)
  }

  func run() throws {
    let sides = try sides()
    try refuseConflicts(
      reading: sides.a + sides.b, writing: [("--junit", junit), ("--output", output), FilesInUse.standardOutput])
    let (comparison, a, b) = try comparison(sides.a, sides.b)
    let output = try TextOutput()
    let document = try junit.map { try WholeDocument($0) }
    let page = try self.output.map { try WholeDocument($0) }
    let failing = (failOn ?? .worse).judgements
    if format == .json {
      output.say(try comparison.jsonDocument())
    } else {
      output.show(ComparisonText(comparison).text, colour)
    }
    document?.write(JUnitReport(comparison, failingOn: failing).text)
    page?.write(ComparisonPage(comparison, a, b, command: Report.command).page.html)
    try output.check()
    try document?.check()
    try page?.check()
    guard failOn != nil else { return }
    let failures = comparison.sentences(on: failing)
    for failure in failures { complain(failure) }
    if !failures.isEmpty { throw ExitStatus.thresholdFailed }
  }

  /// The comparison, and the loads that it is of.
  private func comparison(
    _ a: [String], _ b: [String]
  ) throws -> (Comparison, a: [RunResult.Part], b: [RunResult.Part]) {
    let kinds = (a + b).map { (path: $0, kind: ResultDocument.kindIfAny(of: $0)) }
    guard let ledger = kinds.first(where: { $0.kind == Ledger().kind }) else {
      try requireFigures(RunFigure.all, "results of a load")
      func read(_ paths: [String]) throws -> [RunResult.Part] {
        try paths.map { RunResult.Part($0, try ResultDocument.read($0)) }
      }
      let (first, second) = (try read(a), try read(b))
      let judged = figures.isEmpty ? Comparison.mainFigures : figures
      return (Comparison(first, second, judging: judged), first, second)
    }
    if let load = kinds.first(where: { $0.kind == RunResult().kind }) {
      complain(
        "\(ledger.path): is a ledger of 'simulate', and \(load.path) is a result of 'load'; only results of one kind are compared"
      )
      throw ExitStatus.damaged
    }
    try requireFigures(RunFigure.ofLedgers, "ledgers")
    func read(_ paths: [String]) throws -> [Comparison.LedgerPart] {
      try paths.map { Comparison.LedgerPart($0, try ResultDocument.readLedger($0)) }
    }
    let judged = figures.isEmpty ? Comparison.mainLedgerFigures : figures
    return (Comparison(ledgers: try read(a), try read(b), judging: judged), [], [])
  }

  /// Throws a usage error for a figure that results of this kind do not have.
  private func requireFigures(_ known: [RunFigure], _ kind: String) throws {
    for figure in figures where !known.contains(where: { $0.name == figure }) {
      throw ValidationError("\(kind) have no figure '\(figure)'. \(hint(figure, of: known.map(\.name)))")
    }
  }
}
