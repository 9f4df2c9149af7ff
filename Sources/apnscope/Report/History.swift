import ArgumentParser
import Bytes
import CommandFiles
import Reporting

struct History: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the runs in a history, and draw a figure over them.",
    usage: "apnscope history [<options>] <file>",
    discussion: """
      'apnscope load --history runs.sqlite', and 'capacity' and 'simulate' with the same option, append their results, \
      'simulate' its ledger. This lists the runs, the newest last, with their main figures; with --figure a single figure, its ratio to the median of those \
      shown that have the same plan and labels (--label of 'load'), and a line of bars. --output draws it: as a chart (.svg), or as a page with the chart and the runs (.html).

      The file is an SQLite database with one table, run: a row for each run, its figures as columns (times in \
      microseconds), and the whole result as JSON in the column document. --show prints that, for 'apnscope report' and \
      'apnscope compare'. Listing never changes a history.

      Runs of apnscope 0.1.0, whose results have no measured_by, are marked "old measure": their figures are computed \
      differently, so medians with later runs exclude them.

      Figures: \(RunHistory.figureNames.joined(separator: ", ")).

      Examples:
        apnscope history runs.sqlite --last 20
        apnscope history runs.sqlite --figure send_lag_p99
        apnscope history runs.sqlite --figure accepted_per_s --output rate.svg
        apnscope history runs.sqlite --show 17 > run-17.json
        sqlite3 runs.sqlite 'select started, host, accepted_per_s from run'

      Exit codes: 0 done; 64 usage; 65 not a history, or of a newer apnscope; 66 cannot open it; 74 it is locked or \
      damaged, or something cannot be written.
      """)

  @Argument(
    help: ArgumentHelp("The history.", valueName: "file"), completion: .file(extensions: ["sqlite"]))
  var file: String

  @Option(
    help: ArgumentHelp("Show only this figure, with bars.", valueName: "name"),
    completion: .list(RunHistory.figureNames))
  var figure: String?

  @Option(help: ArgumentHelp("Show only this many of the newest runs.", valueName: "count"))
  var last: Int?

  @Option(help: "Show only runs of this kind: load, capacity or simulate.")
  var kind: Kind?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Show only runs with this label. Takes several arguments; repeatable: runs that have all of them.",
      valueName: "name=value"), transform: LabelArgument.parse)
  var label: [LabelArgument] = []

  @Option(
    help: ArgumentHelp(
      "Draw the figure to this file, ending in .svg or .html; with - as SVG to standard output, and nothing else.",
      valueName: "file"),
    completion: .file(extensions: ["svg", "html"]))
  var output: String?

  @Option(help: ArgumentHelp("Print only the document of this run.", valueName: "run"))
  var show: Int?

  enum Kind: String, CaseIterable, ExpressibleByArgument { case load, capacity, simulate }

  func validate() throws {
    if let figure { try checkFigure(figure, of: RunHistory.figureNames) }
    if let last, last < 1 { throw ValidationError("--last must be at least 1 (got \(last)).") }
    if let output {
      guard figure != nil else { throw ValidationError("--output needs --figure.") }
      guard output == OutputFile.standardOutput || output.hasSuffix(".svg") || output.hasSuffix(".html") else {
        throw ValidationError("--output takes a file ending in .svg or .html.")
      }
    }
    try refuseConflicts(reading: [file], writing: [("--output", OutputFile.file(output)), FilesInUse.standardOutput])
    if show != nil, figure != nil || last != nil || kind != nil || !label.isEmpty {
      throw ValidationError("--show cannot be combined with other options.")
    }
  }

  func run() throws {
    try complaining {
      do {
        try list(try RunHistory(reading: file))
      } catch let error as HistoryError where error.kind == .notAHistory {
        // SQLite recognises files of other programs.
        guard let kind = FileKind(ofFile: file, beginning: FileKind.beginning(of: file)), kind != .history else {
          throw error
        }
        complain("\(file): \(kind.advice); expected a history")
        throw ExitStatus.damaged
      }
    }
  }

  /// Opens a history to append to; `nil` without a path.
  static func appending(to path: String?) throws -> RunHistory? {
    try complaining { try path.map { try RunHistory(appendingTo: $0) } }
  }

  private func list(_ history: RunHistory) throws {
    let standard = try TextOutput()
    if let show {
      guard let document = try history.document(show) else {
        throw ValidationError("\(file) has no run \(show).")
      }
      standard.say(document)
      return try standard.check()
    }
    let runs = try history.runs(kind: kind?.rawValue, last: last, labels: label.map(\.label))
    if runs.isEmpty {
      standard.say("no runs")
    } else if let figure {
      try draw(HistoryChart(figure, runs), standard)
    } else {
      let names = [
        "accepted_per_s", "send_lag_p99", "error_p99", "cpu_per_notification", "sustained_per_s", "received",
        "rejected_share", "discarded_share", "may_be_lost",
      ]
      let shown = names.filter { name in runs.contains { $0.figures[name] != nil } }
      let hasLabels = runs.contains { !$0.labels.isEmpty }
      let head = ["run", "started", "kind", "apnscope"] + shown + ["host"] + (hasLabels ? ["labels"] : [])
      let lines = runs.map { run in
        ["\(run.number)", run.started, run.kindAndState, run.apnscope]
          + shown.map { name in
            run.figures[name].map { (RunFigure.named(name)?.unit ?? .perSecond).text($0) } ?? "-"
          } + [run.host] + (hasLabels ? [ControlCharacters.escaped(run.labels)] : [])
      }
      for line in aligned([head] + lines, left: 4) { standard.say(line) }
    }
    if RunHistory.mixesMeasures(runs) {
      if output == OutputFile.standardOutput {
        complain(RunHistory.noteOnMeasures)
      } else {
        standard.say("! \(RunHistory.noteOnMeasures)")
      }
    }
    try standard.check()
  }

  private func draw(_ chart: HistoryChart, _ standard: TextOutput) throws {
    if output == OutputFile.standardOutput { return standard.say(chart.chart.svg) }
    if let output {
      let file = try WholeDocument(output)
      file.write(output.hasSuffix(".svg") ? chart.chart.svg : chart.page(of: self.file).html)
      try file.check()
    }
    guard let median = chart.median, let bars = chart.sparkline else {
      return standard.say("no run has \(chart.figure)")
    }
    standard.say("\(chart.figure)  \(bars)  median \(chart.unit.text(median)) of \(chart.comparable.count)")
    let groups = chart.groups
    if groups.count > 1 {
      for group in groups {
        let median = group.median.map { "median \(chart.unit.text($0)) of \(group.count)" } ?? "no comparable run"
        standard.say("  \(ControlCharacters.escaped(group.name))  \(median)")
      }
    }
    let isGrouped = groups.count > 1
    var rows = [
      ["run", "started", "kind", "apnscope", chart.figure, "to median", "host"] + (isGrouped ? ["plan and labels"] : [])
    ]
    for (run, value) in chart.runs {
      rows.append(
        [
          "\(run.number)", run.started, run.kindAndState, run.apnscope, chart.unit.text(value),
          chart.ratioToMedian(run, value, in: groups).map { fixed($0, 3) } ?? "-", run.host,
        ] + (isGrouped ? [ControlCharacters.escaped(chart.name(of: run, in: groups))] : []))
    }
    for line in aligned(rows, left: 4) { standard.say(line) }
  }
}

/// Throws a usage error with a hint for an unknown figure.
func checkFigure(_ figure: String, of names: [String]) throws {
  guard !names.contains(figure) else { return }
  throw ValidationError("Unknown figure '\(figure)'. \(hint(figure, of: names))")
}
