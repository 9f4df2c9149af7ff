import Analysis
import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct Merge: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Merge the results of a load that several machines shared, of devices, inspections, or ledgers.",
    usage: "apnscope merge [<options>] <file> ...",
    discussion: """
      Each file is a result of 'apnscope load --output' of one segment of the same stream (--segment 1/4, 2/4 …), all run at \
      the same time. A folder stands for all .json files in it; - is standard input, which may contain several documents. \
      The merged result is a document of the same kind, and can be merged again.

      Counts are added and histograms merge exactly: a percentile is that of all values, not a mean of percentiles. A rate \
      is the sum of the counts of all measured phases, over the longest of these. Series are aligned by wall clock, phases \
      by name; processor time and memory are added. Invariants are checked again on the merged numbers; one that fails in \
      a result stays failed. Thresholds of the loads, and those given here, are evaluated on the whole.

      Missing segments, empty or truncated files, and killed runs are named and cause exit code 70, even though the rest is \
      merged; with --allow-missing they are warnings. For a killed run, FILE.part has its books of about a second before, \
      and is read instead of FILE. A repeated segment causes exit code 70 as well. With --ledger the sum of the books of \
      the gateways has to equal that of the loads.

      The plan of the merged result is that of the whole stream, and its parts are listed by segment: host, labels, start, \
      counts, send lag, processor time, limit and warnings of each. With --ledger, the connections that are in the books of \
      a segment and of the gateway tell how far the segment's clock is from the gateway's. --history appends the result to \
      a history, as 'load' does. It does not matter in which order results are given; they are read one by one, and memory \
      is that of the merged result, and about 10 KB for each.

      Segments whose measured phases overlap by less than nine tenths of the shortest did not run together (or the clocks \
      of their machines differ): their counts are added, but there are no rates, because no second had their sum.

      Documents of 'apnscope inspect --format json' are joined as well: those of several recordings, or of the parts that \
      --shard made of one. Counts, distributions and findings are those of the whole; findings about resends are exact \
      within each document, and a shard has all packets between two hosts. Connections are numbered anew. A part that is \
      missing causes exit code 70. Results of 'apnscope devices --segment' are joined to one of the whole fleet.

      Ledgers of 'apnscope simulate' alone are added to one ledger. The books of each and of the sum have to balance, and \
      no two may list the same connections: a merged ledger lists those of its parts. Otherwise the exit code is 70, and a \
      message names the ledger. A copy is refused with 65; of ledgers that list no connection only copies are found.

      Warnings, also part of the result, report this, and plans that differ in more than the segment.

      Examples:
        apnscope merge a.json b.json
        apnscope merge results/ --ledger sim.json --output merged.json
        apnscope merge results/ --history runs.sqlite
        apnscope merge gateway-1.json gateway-2.json --output ledger.json
        apnscope merge fleet-1.json fleet-2.json --output fleet.json
        apnscope merge segment-*.json --threshold 'accepted_per_s>100k'
        cat segment-*.json | apnscope merge - --format json
        apnscope merge part-1.json part-2.json part-3.json part-4.json

      Exit codes: 0 done, with or without warnings; 64 usage; 65 a file is not a result of a load or of devices, an inspection or a ledger, has another schema, or is \
      the same as another; 66 cannot open a file; 69 one of the runs failed; 70 a part is missing or counts twice, the \
      books do not balance, or those of the gateways do not agree (the result is written); 74 cannot write; 99 a threshold failed.
      """)

  @Argument(
    help: ArgumentHelp(
      "Results of 'apnscope load' or 'devices', inspections, or ledgers; folders of them, or - for standard input.",
      valueName: "file"),
    completion: .file(extensions: ["json"]))
  var results: [String]

  @Option(
    help: ArgumentHelp(
      "The gateway's ledger of the same load ('apnscope simulate --ledger'); repeatable for several gateways.",
      valueName: "file"), completion: .file(extensions: ["json"]))
  var ledger: [String] = []

  @Option(
    help: ArgumentHelp(
      "Exit with 99 unless this holds for the whole, e.g. 'accepted_per_s>100k'; repeatable; see 'apnscope load --help'.",
      valueName: "condition"), completion: .words { Array(Threshold.names.keys) },
    transform: ThresholdArgument.parseFinal)
  var threshold: [ThresholdArgument] = []

  @Flag(
    help:
      "Exit with 0 even if segments are missing, files are empty or truncated, or runs were killed; warnings name them."
  )
  var allowMissing = false

  @Option(
    help: ArgumentHelp(
      "Write the merged result to this file, as one JSON document; with - to standard output instead of the summary.",
      valueName: "file"),
    completion: .file())
  var output: String?

  @Option(help: "Format of standard output: text (a summary) or json (the result).")
  var format = ResultOptions.Format.text

  @OptionGroup var colour: ColourOption

  @Option(
    help: ArgumentHelp(
      "Append the merged result to this history, an SQLite file; see 'apnscope history --help'.", valueName: "file"),
    completion: .file(extensions: ["sqlite"]))
  var history: String?

  @Option(
    help: ArgumentHelp(
      "Maximum number of results.", valueName: "count", default: Count(10_000)),
    transform: Count.parse)
  var maxResults = Count(10_000)

  /// The file of the result; `nil`: standard output.
  private var outputFile: String? { OutputFile.file(output) }
  /// The format of standard output.
  private var shown: ResultOptions.Format { output == OutputFile.standardOutput ? .json : format }

  func validate() throws {
    if results.count(where: { $0 == "-" }) > 1 { throw ValidationError("- can be given only once.") }
    try refuseConflicts(
      reading: results.filter { !Paths.isDirectory($0) } + ledger,
      writing: [("--output", outputFile), ("--history", history), FilesInUse.standardOutput])
  }

  func run() throws {
    let inputs = try MergeInputs(results, leavingOut: ledger + [outputFile].compactMap { $0 }, atMost: maxResults.value)
    if !inputs.inspections.isEmpty { return try merge(inputs.inspections, unreadable: inputs.unreadable) }
    if !inputs.fleets.isEmpty { return try merge(inputs.fleets, unreadable: inputs.unreadable) }
    if !inputs.ledgers.isEmpty { return try merge(inputs.ledgers, unreadable: inputs.unreadable) }
    let books = try Ledger.merging(ledger.map { try ResultDocument.readLedger($0) })
    let runs = try History.appending(to: history)
    var merged: RunResult
    do {
      merged = try inputs.merger.result(
        unreadable: inputs.unreadable, allowsMissing: allowMissing, thresholds: threshold.map(\.threshold),
        ledger: books)
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    if let books { merged.verdict.invariants += RunReport.agreement(of: merged, with: books) }
    let file = try outputFile.map { try WholeDocument($0) }
    let standard = try TextOutput()
    let document = try merged.jsonDocument()
    file?.write(document)
    if shown == .json { standard.say(document) } else { standard.show(LoadSummary(merged).text, colour) }
    try complaining { try runs?.append(merged, document: document) }
    try file?.check()
    try standard.check()
    let broken = merged.verdict.invariants.filter { !$0.holds }
    for invariant in broken { complain("does not hold: \(invariant.name) (\(invariant.detail))") }
    if !broken.isEmpty { throw ExitStatus.brokenBooks }
    if merged.verdict.outcome == .failed { throw ExitStatus.unavailable }
    if merged.verdict.thresholds.contains(where: { !$0.passed }) { throw ExitStatus.thresholdFailed }
  }

  private func merge(_ inspections: [InspectionReport.Part], unreadable: [String]) throws {
    try refuseOptionsOfLoads(because: "\(inspections[0].name) is an inspection")
    let merged: InspectionReport
    let missing: [String]
    do {
      (merged, missing) = try InspectionReport.merging(inspections)
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    let file = try outputFile.map { try WholeDocument($0) }
    let standard = try TextOutput()
    let document = try InspectionDocument(merged).jsonDocument()
    file?.write(document)
    if shown == .json {
      standard.say(document)
    } else {
      let layout = colour.layout
      standard.show(InspectionText(merged, rows: 12, columns: layout.columns).text, colour)
    }
    try file?.check()
    try standard.check()
    for text in missing { complain(text) }
    if !(missing + unreadable).isEmpty, !allowMissing { throw ExitStatus.brokenBooks }
  }

  private func merge(_ fleets: [FleetResult.Part], unreadable: [String]) throws {
    try refuseOptionsOfLoads(because: "\(fleets[0].name) is a result of 'devices'")
    let merged: FleetResult
    do {
      merged = try FleetResult.merging(fleets)
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    let file = try outputFile.map { try WholeDocument($0) }
    let standard = try TextOutput()
    let document = try merged.jsonDocument()
    file?.write(document)
    if shown == .json { standard.say(document) } else { standard.show(FleetSummary(merged).text, colour) }
    try file?.check()
    try standard.check()
    let broken = merged.invariants.filter { !$0.holds }
    for invariant in broken { complain("does not hold: \(invariant.name) (\(invariant.detail))") }
    if !broken.isEmpty || !merged.repeatedSegments.isEmpty { throw ExitStatus.brokenBooks }
    if !(merged.missingSegments + unreadable).isEmpty, !allowMissing { throw ExitStatus.brokenBooks }
    if merged.devices.everOnline == 0 { throw ExitStatus.unavailable }
  }

  private func refuseOptionsOfLoads(because reason: String) throws {
    for (name, isGiven) in [
      ("ledger", !ledger.isEmpty), ("threshold", !threshold.isEmpty), ("history", history != nil),
    ] where isGiven {
      complain("--\(name) is for results of a load, and \(reason)")
      throw ExitCode(64)
    }
  }

  private func merge(_ ledgers: [(name: String, ledger: Ledger)], unreadable: [String]) throws {
    try refuseOptionsOfLoads(because: "\(ledgers[0].name) is a ledger")
    guard let merged = Ledger.merging(ledgers.map(\.ledger)) else { return }
    let sum = merged.invariants(ofSumOf: ledgers.map(\.ledger))
    var problems = ledgers.flatMap { Self.broken($0.ledger.invariants, of: $0.name) }
    if ledgers.count > 1 { problems += Self.broken(sum, of: "the sum") }
    problems += Ledger.overlaps(of: ledgers)
    let file = try outputFile.map { try WholeDocument($0) }
    let standard = try TextOutput()
    let document = try merged.jsonDocument()
    file?.write(document)
    if shown == .json {
      standard.say(document)
    } else {
      let gateway = merged.gateway
      let relation = sum.first?.holds == true ? "=" : "≠"
      standard.say(
        "\(ledgers.count) ledgers: \(grouped(gateway.received)) received \(relation) \(grouped(gateway.accepted)) accepted + \(grouped(gateway.allRejected)) rejected + \(grouped(gateway.discarded)) discarded, on \(grouped(gateway.connections)) connections"
      )
    }
    try file?.check()
    try standard.check()
    for problem in problems { complain(problem) }
    if !problems.isEmpty { throw ExitStatus.brokenBooks }
    if !unreadable.isEmpty, !allowMissing { throw ExitStatus.brokenBooks }
  }

  /// Sentences about equations that do not hold, with the name of the ledger.
  private static func broken(_ invariants: [RunResult.Verdict.Invariant], of name: String) -> [String] {
    invariants.filter { !$0.holds }.map { "\(name): does not hold: \($0.name) (\($0.detail))" }
  }
}
