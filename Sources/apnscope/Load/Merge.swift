import ArgumentParser
import Measurement

struct Merge: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Join the results of a load that several machines shared into one.",
    discussion: """
      Each file is what 'apnscope load --output' has written, of one segment of the same stream (--segment 1/4, 2/4 …), \
      all run at the same time. The merged result is a document of the same kind, and can be merged again.

      Counts add up and histograms merge exactly: a percentile is that of all values, not a mean of percentiles. A rate is \
      what all have counted in their measured phases, over the longest of these. The series is joined by the second since \
      each one's own start, phases by their names; processor time and memory add up. Thresholds and invariants are judged \
      again on the merged numbers; an invariant that one of the results broke stays broken.

      Warnings, also part of the result, say what can be added but does not fit: plans that differ in more than the \
      segment, and in which settings; segments that are missing or there twice; measured phases that did not overlap.

      Examples:
        apnscope merge a.json b.json
        apnscope merge segment-*.json --output merged.json
        apnscope merge segment-*.json --format json | jq .rates.accepted_per_s

      Exit codes: 0 done, with or without warnings; 64 usage; 65 a file is no result of a load, or of another schema; \
      66 cannot open a file; 70 the books do not balance; 74 cannot write; 99 a threshold failed.
      """)

  @Argument(
    help: ArgumentHelp("Results of 'apnscope load'.", valueName: "file"), completion: .file(extensions: ["json"]))
  var results: [String]

  @Option(
    help: ArgumentHelp("Write the merged result to this file, as one JSON document.", valueName: "file"),
    completion: .file())
  var output: String?

  @Option(help: "What standard output gets: text (a summary) or json (the result).")
  var format = ResultOptions.Format.text

  func validate() throws {
    try FilesInUse.check(reading: results, writing: [("--output", output), FilesInUse.standardOutput])
  }

  func run() throws {
    let parts = try results.map { RunResult.Part($0, try ResultDocument.read($0)) }
    let merged: RunResult
    do {
      merged = try RunResult.merging(parts)
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    let file = try output.map { try WholeDocument($0) }
    let standard = try TextOutput(nil)
    let document = try merged.jsonDocument()
    file?.write(document)
    standard.say(format == .json ? document : LoadSummary(merged).text)
    try file?.check()
    try standard.check()
    if merged.verdict.invariants.contains(where: { !$0.holds }) { throw ExitStatus.brokenBooks }
    if merged.verdict.thresholds.contains(where: { !$0.passed }) { throw ExitStatus.thresholdFailed }
  }
}
