import Bytes
import Measurement

/// The page of a comparison: its verdict, and both sides in every chart.
public struct ComparisonPage: Sendable {
  public var comparison: Comparison
  /// The runs of both sides, for charts over time; empty for ledgers.
  public var a: [RunResult.Part]
  public var b: [RunResult.Part]
  /// The arguments of the command line that makes this page, for the footer; empty: unknown.
  public var command: [String]

  public init(_ comparison: Comparison, _ a: [RunResult.Part] = [], _ b: [RunResult.Part] = [], command: [String] = [])
  {
    (self.comparison, self.a, self.b, self.command) = (comparison, a, b, command)
  }

  private static let colors: (a: Color, b: Color) = (.blue, .vermillion)
  /// Runs of a side that a chart over time shows.
  private static let shownRuns = 5

  /// The comparison as a page.
  public var page: Page {
    var sections = [verdict, figures]
    sections += [overTime, distributions].compactMap(\.self)
    sections += [differences, runs.folded]
    return Page(
      title: "Comparison: \(words(comparison.a, "A")), \(words(comparison.b, "B"))", sections: sections,
      footer: command.isEmpty ? "Made by apnscope." : "Made by " + .code(commandLine(command)))
  }

  private func words(_ names: [String], _ side: String) -> String {
    "\(counted(names.count, comparison.of == Ledger().kind ? "ledger" : "run")) \(side)"
  }

  // MARK: the verdict

  private var verdict: Section {
    var blocks: [Block] = [.callout(tone, Prose(sentence))]
    let judged = comparison.judgedRows.filter { !$0.a.values.isEmpty || !$0.b.values.isEmpty }
    if !judged.isEmpty {
      blocks.append(
        .stack(
          Array(judged.map(chart).prefix(6)), title: "Judged figures, run by run",
          caption: "A dot is a run, a dashed line the median of a side."))
    }
    blocks.append(
      .figures(
        judged.map { row in
          Figure(
            row.figure, row.ratio.map { "× \(ComparisonText.ratio($0))" } ?? "–",
            note:
              "\(row.a.median.map(row.unit.text) ?? "–") to \(row.b.median.map(row.unit.text) ?? "–"): \(comparison.sentence(on: row))",
            tone: Self.tone(row.judgement))
        }))
    let warnings = comparison.warnings.map { Prose($0.prefix(1).uppercased() + $0.dropFirst() + ".") }
    blocks += warnings.count <= 3 ? warnings.map { .callout(.warning, $0) } : [.heading("Warnings"), .list(warnings)]
    return Section("Verdict", blocks)
  }

  private static func tone(_ judgement: Comparison.Judgement) -> Tone {
    switch judgement {
    case .worse: .bad
    case .better: .good
    case .different, .tooFew, .notComparable, .missing: .warning
    case .same, .small, .notJudged: .neutral
    }
  }

  /// The worst of the judged figures.
  private var tone: Tone {
    let tones = comparison.judgedRows.map { Self.tone($0.judgement) }
    return [Tone.bad, .warning, .good].first(where: tones.contains) ?? .neutral
  }

  private var sentence: String {
    let judged = comparison.judgedRows
    func list(_ judgement: Comparison.Judgement) -> [String] {
      judged.filter { $0.judgement == judgement }.map { row in
        row.figure + (row.ratio.map { " (\(ComparisonText.ratio($0)) times as much)" } ?? "")
      }
    }
    var parts: [String] = []
    for (judgement, word) in [(Comparison.Judgement.worse, "worse"), (.better, "better"), (.different, "different")] {
      let names = list(judgement)
      if !names.isEmpty { parts.append("B is \(word) in \(names.joined(separator: ", "))") }
    }
    let alike = judged.count { $0.judgement == .same || $0.judgement == .small }
    let unknown = judged.filter { Comparison.Judgement.unknown.contains($0.judgement) }
    if alike > 0 {
      parts.append(
        parts.isEmpty && unknown.isEmpty
          ? "B does not differ from A in any of \(counted(judged.count, "judged figure")) by more than chance and 15 %"
          : "\(counted(alike, "judged figure")) \(alike == 1 ? "does" : "do") not differ by more than chance and 15 %")
    }
    if let first = unknown.first {
      parts.append(
        unknown.count == judged.count
          ? "nothing can be judged: \(first.figure) \(comparison.sentence(on: first))"
          : "\(counted(unknown.count, "figure")) cannot be judged")
    }
    let text = parts.joined(separator: "; ")
    return text.isEmpty ? "No figure was judged." : "\(text.prefix(1).uppercased())\(text.dropFirst())."
  }

  /// The values of a figure, run by run.
  private func chart(_ row: Comparison.Row) -> Chart {
    let count = max(comparison.a.count, comparison.b.count)
    func marks(_ side: Comparison.Side, _ name: String, _ color: Color, shift: Double) -> [Mark] {
      var marks = [
        Mark.points(
          name, side.values.enumerated().map { Point(Double($0.offset + 1) + shift, $0.element) }, color: color)
      ]
      if let median = side.median {
        marks.append(
          .line("", [Point(0.5, median), Point(Double(count) + 0.5, median)], color: color, isDashed: true))
      }
      return marks
    }
    return Chart(
      title: row.figure, x: Axis("run", unit: .count, bounds: 0.5...Double(count) + 0.5, includesZero: false),
      y: Axis(row.figure, unit: row.unit),
      marks: marks(row.a, "A", Self.colors.a, shift: -0.06) + marks(row.b, "B", Self.colors.b, shift: 0.06), height: 52)
  }

  // MARK: the figures

  private var figures: Section {
    var table = Table([
      .init("figure"), .init("A", .right), .init("B", .right), .init("B / A", .right), .init("p", .right),
      .init("p (Holm)", .right), .init("verdict"),
    ])
    for row in comparison.rows {
      table.add(
        .code(row.figure), Prose(row.a.median.map(row.unit.text) ?? "–"), Prose(row.b.median.map(row.unit.text) ?? "–"),
        Prose(row.ratio.map(ComparisonText.ratio) ?? "–"), Prose(row.p.map(ComparisonText.probability) ?? "–"),
        Prose(row.pHolm.map(ComparisonText.probability) ?? "–"),
        Prose(row.judgement == .notJudged ? "not judged" : ComparisonText.word(row.judgement)),
        tone: Self.tone(row.judgement) == .warning ? .neutral : Self.tone(row.judgement))
    }
    return Section(
      "Figures",
      [
        .paragraph(
          "Medians of both sides. p is the probability that chance alone separates the sides this far (Mann-Whitney), then with Holm's correction; a verdict takes a corrected p below 0.05, medians that differ by more than 15 %, and \(Comparison.fewestRuns) runs of each side."
        ), .table(table),
      ])
  }

  // MARK: over time

  private var overTime: Section? {
    guard (a + b).contains(where: { !$0.result.series.isEmpty }) else { return nil }
    let length = (a + b).map { RunReport($0.result).length }.max() ?? 1
    let time = Axis.time(bounds: 0...length)
    func lines(_ value: (RunResult.Sample, Double) -> Double) -> [Mark] {
      func side(_ parts: [RunResult.Part], _ name: String, _ color: Color) -> [Mark] {
        parts.prefix(Self.shownRuns).map { part in
          let seconds = WholeSeconds.lengths(of: part.result.series).map { $0 ?? 1 }
          let points = zip(part.result.series, seconds).map { Point($0.tS + $1 / 2, value($0, $1)) }
          return .line(name, points, color: color)
        }
      }
      return side(a, "A", Self.colors.a) + side(b, "B", Self.colors.b)
    }
    func chart(_ title: String, _ y: Axis, _ height: Int, _ value: (RunResult.Sample, Double) -> Double) -> Chart {
      Chart(title: title, x: time, y: y, marks: lines(value), height: height)
    }
    let isCut = max(a.count, b.count) > Self.shownRuns
    var charts = [
      chart("Written per second", Axis("written per second", unit: .perSecond), 110) { Double($0.written) / $1 },
      chart("Send lag p99", Axis("send lag p99 of a second", unit: .microseconds), 90) { sample, _ in
        Double(sample.sendLagP99Us)
      },
      chart("Processor", Axis("cores in use by the generator"), 70) { sample, _ in sample.cpu },
    ]
    if (a + b).contains(where: { $0.result.series.contains { $0.errors > 0 } }) {
      charts.insert(
        chart("Error responses", Axis("error responses per second", unit: .count), 60) { Double($0.errors) / $1 }, at: 1
      )
    }
    return Section(
      "Over time",
      [
        .stack(
          charts, title: "Both sides over time",
          caption: isCut
            ? "The first \(Self.shownRuns) runs of each side, each from its own start." : "Each run from its own start."
        )
      ])
  }

  // MARK: distributions

  private var distributions: Section? {
    func merged(_ parts: [RunResult.Part], _ histogram: (RunResult) -> LatencyHistogram) -> LatencyHistogram? {
      var all: LatencyHistogram?
      for part in parts {
        let one = histogram(part.result)
        if all == nil { all = one } else { all?.merge(one) }
      }
      return all
    }
    let histograms: [(title: String, y: String, of: (RunResult) -> LatencyHistogram)] = [
      ("Send lag", "from due to written", { $0.latency.sendLagUs }),
      ("Error latency", "from written to error read", { $0.latency.errorUs }),
      ("Loss window", "notifications discarded per error", { $0.binary.lossWindow }),
      ("Time to recover", "from error to sending again", { $0.latency.recoverUs }),
      ("Notifications per write", "notifications", { $0.batches.notifications }),
    ]
    let charts = histograms.compactMap { title, y, histogram -> Block? in
      guard let first = merged(a, histogram), let second = merged(b, histogram), first.count > 1, second.count > 1
      else {
        return nil
      }
      var chart = Chart.percentiles(title, y: y, [("A", first), ("B", second)])
      for (index, color) in [Self.colors.a, Self.colors.b].enumerated() where chart.marks.indices.contains(index) {
        chart.marks[index].color = color
      }
      chart.height = 130
      return .chart(chart)
    }
    guard !charts.isEmpty else { return nil }
    return Section(
      "Distributions", [.paragraph("Percentiles of all values of a side's runs, in the measured phase.")] + charts)
  }

  // MARK: the runs

  private var differences: Section {
    guard comparison.of != Ledger().kind else {
      return Section("What differs", [.paragraph("Ledgers have no settings and no machine to compare.")])
    }
    guard !comparison.differences.isEmpty else {
      return Section("What differs", [.paragraph("All runs have the same machine, software and plan.")])
    }
    var table = Table([.init("setting"), .init("A"), .init("B")])
    for difference in comparison.differences {
      table.add(
        .code(difference.name), Prose(difference.a.joined(separator: ", ")), Prose(difference.b.joined(separator: ", "))
      )
    }
    return Section("What differs", [.paragraph("There should be only what was intended."), .table(table)])
  }

  private var runs: Section {
    let started = (a + b).map(\.result.started)
    var table = Table([.init("side"), .init("file"), .init("started")])
    for (index, name) in (comparison.a + comparison.b).enumerated() {
      table.add(
        Prose(index < comparison.a.count ? "A" : "B"), .code(ControlCharacters.escaped(name)),
        Prose(started.indices.contains(index) ? started[index] : "–"))
    }
    return Section("Runs", [.table(table)])
  }
}
