import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell whether two sets of runs differ by more than chance.",
    usage: "apnscope compare [--figure <name> …] [--format <format>] <a> … -- <b> …",
    discussion: """
      Each file is what 'apnscope load --output' has written. Those before -- are side A, those behind it side B; two \
      files alone need no --. For each figure it shows the medians of both sides and how many times A's B's is.

      Four figures are judged: \(Comparison.mainFigures.joined(separator: ", ")); --figure chooses others. p is that of \
      the Mann-Whitney U test, how often chance alone would set the sides so far apart, and beside it p corrected by Holm \
      for how many figures are judged. With a corrected p below 0.05 and medians that differ by more than 15 % it says \
      better or worse; ~ is no difference that these runs show, and "below 15 %" one that runs on one machine have for \
      other reasons, too. It takes \(Comparison.fewestRuns) runs a side; with fewer it says ?. All other figures are \
      shown without a verdict: if twenty were judged, one would differ by chance in every second comparison of equal runs.

      Runs of apnscope 0.1 and of later ones are not judged against each other: figures of the same name are computed in \
      different ways.

      What differs in the runs' machines and plans is listed. What is compared should stand there, and nothing else; it \
      warns when host, kernel, OpenSSL, or the load itself are not the same.

      Run the sides in turn (A B B A …), so that what changes on the machine meets both:
        for i in 1 2 3 4 5; do
          apnscope load --identity ids --for 10s --batch 1 --output a$i.json
          apnscope load --identity ids --for 10s --output b$i.json
        done
        apnscope compare a?.json -- b?.json

      Examples:
        apnscope compare before.json after.json
        apnscope compare a?.json -- b?.json
        apnscope compare --figure error_p99 --figure recover_p99 a?.json -- b?.json
        apnscope compare --format json a?.json -- b?.json |
          jq '.figures[] | select(.judgement == "worse")'

      Exit codes: 0 done, whatever differs; 64 usage; 65 a file is no result of a load, or of another schema; 66 cannot \
      open a file; 74 cannot write.
      """)

  // Of all strategies this one alone keeps the --, and still reads options in any place.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp("Results of side A, then --, then those of side B.", valueName: "results"),
    completion: .file(extensions: ["json"]))
  var results: [String] = []

  @Option(help: "Format of standard output: text (a table) or json.")
  var format = ResultOptions.Format.text

  @Option(
    name: .customLong("figure"),
    help: ArgumentHelp("Judge this figure; may be repeated. Without it, the four main ones.", valueName: "name"),
    completion: .list(RunFigure.all.map(\.name)))
  var figures: [String] = []

  func validate() throws {
    _ = try sides()
    for figure in figures { try checkFigure(figure, of: RunFigure.all.map(\.name)) }
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
    if first.isEmpty { throw ValidationError("There is no result before --.") }
    if second.isEmpty { throw ValidationError("There is no result behind --.") }
    return (first, second)
  }

  func run() throws {
    let sides = try sides()
    func read(_ paths: [String]) throws -> [RunResult.Part] {
      try paths.map { RunResult.Part($0, try ResultDocument.read($0)) }
    }
    let (a, b) = (try read(sides.a), try read(sides.b))
    let comparison = Comparison(a, b, judging: figures.isEmpty ? Comparison.mainFigures : figures)
    let output = try TextOutput()
    output.say(format == .json ? try comparison.jsonDocument() : ComparisonText(comparison).text)
    try output.check()
  }
}
