import Bytes
import Measurement

extension RunReport {
  /// The runs that a merged result is of; `nil` for a single run.
  var segments: Section? {
    guard let parts = result.parts, parts.count > 1 else { return nil }
    let shown = MergedRuns(parts, atMost: Self.mostSegments)
    var blocks: [Block] = [
      .paragraph(
        "Each segment is a run of its own, with its own clock. The figures elsewhere on this page are of all together."
      )
    ]
    if shown.omitted > 0 {
      blocks.append(
        .paragraph(
          "The table has those that stand out, and others up to \(shown.runs.count) of \(grouped(parts.count))."))
    }
    if let chart = times(of: shown.runs) { blocks.append(chart) }
    let hasClocks = parts.contains { $0.clockOffsetS != nil }
    let hasStarts = parts.contains { $0.lateS != nil }
    let head =
      ["segment", "host", "labels", "started"] + (hasStarts ? ["late"] : []) + (hasClocks ? ["clock ahead by"] : [])
      + ["measured", "written", "per second", "send lag p99", "cores", "limited by", "outcome"]
    var table = Table(head.enumerated().map { .init($1, $0 < 4 ? .left : .right) })
    for run in shown.runs {
      var cells = [
        run.segment, run.host, MergedRuns.labels(run), run.started,
      ]
      if hasStarts { cells.append(run.lateS.map(Unit.seconds.text) ?? "–") }
      if hasClocks { cells.append(run.clockOffsetS.map(MergedRuns.offset) ?? "–") }
      cells += [
        Unit.seconds.text(run.measuredS), grouped(run.written), run.writtenPerS.map(Unit.perSecond.text) ?? "–",
        run.sendLagP99Us.map { Unit.microseconds.text(Double($0)) } ?? "–", run.cpuCores.map(Unit.plain.text) ?? "–",
        run.limitedBy.rawValue, MergedRuns.outcome(run),
      ]
      table.rows.append(Table.Row(cells.map { Prose($0) }, tone: MergedRuns.standsOut(run) ? .warning : .neutral))
    }
    blocks.append(.table(table))
    let warned = shown.runs.filter { !$0.warnings.isEmpty }
    blocks += warned.prefix(Self.mostWarned).map { run in
      .callout(.warning, Prose("\(run.segment): \(run.warnings.joined(separator: "; "))"))
    }
    return Section("Segments", blocks)
  }

  private static let (mostSegments, mostWarned) = (200, 20)
  /// Rows of the chart.
  private static let mostRows = 64

  /// When each segment measured, in seconds since the first did.
  private func times(of runs: [RunResult.Segment]) -> Block? {
    let measured = runs.compactMap { run in run.measuredFromS.map { (run, $0 - (run.clockOffsetS ?? 0)) } }
      .filter { $0.1.isFinite && $0.0.measuredS.isFinite && $0.0.measuredS > 0 }.prefix(Self.mostRows)
    guard let first = measured.map(\.1).min(), let last = measured.map({ $0.1 + $0.0.measuredS }).max(),
      measured.count > 1
    else { return nil }
    let strip = Strip(
      states: [.init("measured", color: .sky, isQuiet: true), .init("generator was the limit", color: .orange)],
      rows: measured.map { run, from in
        .init(
          label: run.segment,
          spans: [
            .init(from: from - first, to: from - first + run.measuredS, state: run.limitedBy == .generator ? 1 : 0)
          ])
      }, rowName: "segment")
    let isCorrected = runs.contains { $0.clockOffsetS != nil }
    return .chart(
      Chart(title: "Measured phases of the segments", x: .time(bounds: 0...max(1e-3, last - first)), strip: strip),
      caption: Prose(
        "When each segment measured, since the first began, by "
          + (isCorrected ? "the gateway's clock, where it is known." : "the clock of each machine.")))
  }
}

/// The runs of a merged result in words, those first that stand out if there is no room for all.
package struct MergedRuns {
  let runs: [RunResult.Segment]
  let omitted: Int

  init(_ parts: [RunResult.Segment], atMost most: Int) {
    omitted = max(0, parts.count - most)
    guard omitted > 0 else {
      runs = parts
      return
    }
    let chosen = parts.filter(Self.standsOut).prefix(most)
    let others = parts.filter { !Self.standsOut($0) }.prefix(most - chosen.count)
    runs = (chosen + others).sorted()
  }

  static func standsOut(_ run: RunResult.Segment) -> Bool {
    run.outcome != .proven || run.interrupted != nil || run.limitedBy == .generator || abs(run.clockOffsetS ?? 0) >= 0.5
  }

  static func labels(_ run: RunResult.Segment) -> String {
    (run.labels ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
  }

  static func offset(_ seconds: Double) -> String {
    (seconds < 0 ? "−" : "") + Unit.seconds.text(abs(seconds))
  }

  static func outcome(_ run: RunResult.Segment) -> String {
    if let interrupted = run.interrupted {
      switch interrupted.cause {
      case .lost: return "lost"
      case .threshold: return "ended by a threshold"
      case nil: return "interrupted"
      }
    }
    return run.outcome?.rawValue ?? "–"
  }

  /// Lines for a terminal.
  static func lines(_ result: RunResult) -> [String] {
    guard let parts = result.parts, parts.count > 1 else { return [] }
    let shown = MergedRuns(parts, atMost: 12)
    var lines = shown.runs.map { run in
      let place = labels(run).isEmpty ? run.host : labels(run)
      var words = [
        "\(grouped(run.written)) written\(run.writtenPerS.map { ", \(Unit.perSecond.text($0))" } ?? "")",
        run.sendLagP99Us.map { "send lag p99 \(Unit.microseconds.text(Double($0)))" },
        run.cpuCores.map { "\(Unit.plain.text($0)) cores" },
      ].compactMap { $0 }
      if run.limitedBy == .generator { words.append("limited by the generator") }
      if let late = run.lateS, late >= 0.1 { words.append("\(Unit.seconds.text(late)) late") }
      if let offset = run.clockOffsetS, abs(offset) >= 0.5 {
        words.append("its clock \(Unit.seconds.text(abs(offset))) \(offset > 0 ? "ahead" : "behind")")
      }
      if run.interrupted != nil || run.outcome != .proven { words.append(outcome(run)) }
      return
        "segment        \(run.segment)\(place.isEmpty ? "" : " \(ControlCharacters.escaped(place))"): \(words.joined(separator: ", "))"
    }
    if shown.omitted > 0 { lines.append("               and \(grouped(shown.omitted)) more segments") }
    return lines
  }
}
