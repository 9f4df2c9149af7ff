import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct Merge: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Join the results of a load that several machines shared into one.",
    usage: "apnscope merge [<options>] <file> ...",
    discussion: """
      Each file is what 'apnscope load --output' has written, of one segment of the same stream (--segment 1/4, 2/4 …), \
      all run at the same time. A folder stands for every .json file in it; - is standard input, which may have any number \
      of documents one after another. The merged result is a document of the same kind, and can be merged again.

      Counts add up and histograms merge exactly: a percentile is that of all values, not a mean of percentiles. A rate is \
      what all have counted in their measured phases, over the longest of these. The series is joined by wall clock, \
      phases by their names; processor time and memory add up. Invariants are judged again on the merged numbers; one \
      that one of the results broke stays broken. Thresholds are judged on the whole: those that the loads were given, \
      and those given here.

      Nothing is taken for whole that is not: a segment that is missing, a file that is empty or cut, and a run that was \
      killed are named, and end with 70, also when the rest is merged; with --allow-missing they are warnings. Of a run \
      that was killed, FILE.part has what it counted until a few seconds before, and is read in the place of FILE. A \
      segment that is there twice, of several, ends with 70 as well. With --ledger the sum of the gateways' books has to be that of the \
      loads.

      Segments whose measured phases do not overlap for nine tenths of the shortest did not run together (or the clocks of \
      their machines differ): their counts add up, but there are no rates, for the sum was never sent in any second.

      Warnings, also part of the result, tell that as well, and plans that differ in more than the segment.

      Examples:
        apnscope merge a.json b.json
        apnscope merge results/ --ledger sim.json --output merged.json
        apnscope merge segment-*.json --threshold 'accepted_per_s>100k'
        cat segment-*.json | apnscope merge - --format json

      Exit codes: 0 done, with or without warnings; 64 usage; 65 a file is no result of a load, or of another schema, or \
      the same as another; 66 cannot open a file; 69 one of the runs has failed; 70 something is missing, the books do not balance, or those of the \
      gateways do not agree (the result is written); 74 cannot write; 99 a threshold failed.
      """)

  @Argument(
    help: ArgumentHelp(
      "Results of 'apnscope load', folders of them, or - for standard input.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var results: [String]

  @Option(
    help: ArgumentHelp(
      "The gateway's books of the same load, of 'apnscope simulate --ledger'; repeatable, when it had several gateways.",
      valueName: "file"), completion: .file(extensions: ["json"]))
  var ledger: [String] = []

  @Option(
    help: ArgumentHelp(
      "Exit with 99 unless this holds for the whole, as 'accepted_per_s>100k'; repeatable; see 'apnscope load --help'.",
      valueName: "condition"), transform: ThresholdArgument.parse)
  var threshold: [ThresholdArgument] = []

  @Flag(
    help: "Exit with 0 though segments are missing, files are empty or cut, or runs were killed; warnings name them.")
  var allowMissing = false

  @Option(
    help: ArgumentHelp("Write the merged result to this file, as one JSON document.", valueName: "file"),
    completion: .file())
  var output: String?

  @Option(help: "What standard output gets: text (a summary) or json (the result).")
  var format = ResultOptions.Format.text

  @Option(
    help: ArgumentHelp(
      "Most results that are merged; all are held in memory.", valueName: "count", default: Count(10_000)),
    transform: Count.parse)
  var maxResults = Count(10_000)

  func validate() throws {
    if results.count(where: { $0 == "-" }) > 1 { throw ValidationError("- can be given once.") }
    try refuseConflicts(
      reading: results.filter { !Paths.isDirectory($0) } + ledger,
      writing: [("--output", output), FilesInUse.standardOutput])
  }

  func run() throws {
    let inputs = try MergeInputs(results, leavingOut: ledger + [output].compactMap { $0 }, atMost: maxResults.value)
    let books = try Ledger.merging(ledger.map { try ResultDocument.readLedger($0) })
    var merged: RunResult
    do {
      merged = try RunResult.merging(
        inputs.parts, unreadable: inputs.unreadable, allowsMissing: allowMissing,
        thresholds: threshold.map(\.threshold))
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    if let books { merged.verdict.invariants += RunReport.agreement(of: merged, with: books) }
    let file = try output.map { try WholeDocument($0) }
    let standard = try TextOutput()
    let document = try merged.jsonDocument()
    file?.write(document)
    standard.say(format == .json ? document : LoadSummary(merged).text)
    try file?.check()
    try standard.check()
    let broken = merged.verdict.invariants.filter { !$0.holds }
    for invariant in broken { complain("does not hold: \(invariant.name) (\(invariant.detail))") }
    if !broken.isEmpty { throw ExitStatus.brokenBooks }
    if merged.verdict.outcome == .failed { throw ExitStatus.unavailable }
    if merged.verdict.thresholds.contains(where: { !$0.passed }) { throw ExitStatus.thresholdFailed }
  }
}
