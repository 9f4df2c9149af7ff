import Measurement

/// The report of one load run: the request, the outcome, its reasons, and its use for planning.
///
/// A report measures nothing; every number comes from the result, or from the two optional documents.
public struct RunReport: Sendable {
  public var result: RunResult
  /// The gateway's books of the same run.
  public var ledger: Ledger?
  /// An earlier run to compare with.
  public var baseline: RunResult?
  /// The arguments of the command line that makes this report, for the footer; empty: unknown.
  public var command: [String]

  public init(_ result: RunResult, ledger: Ledger? = nil, baseline: RunResult? = nil, command: [String] = []) {
    self.result = result
    self.ledger = ledger
    self.baseline = baseline
    self.command = command
  }

  /// The report as a page.
  public var page: Page {
    var sections = [verdict]
    if let baseline { sections.append(comparison(with: baseline)) }
    sections += [throughput, lag, errors]
    if let segments { sections.append(segments) }
    if let topics { sections.append(topics) }
    if let feedback { sections.append(feedback) }
    sections += [connections, batches, resources, capacity, phases]
    sections.append(result.warnings.count > 1 ? warnings : warnings.folded)
    // Books that do not balance are to be seen.
    sections += [failures.isEmpty ? books.folded : books, setup.folded, glossary.folded]
    return Page(
      title: "Load run: \(whatWasAsked)", subtitle: subtitle, sections: sections,
      footer: command.isEmpty ? "Made by apnscope." : "Made by " + .code(commandLine(command)))
  }

  private var subtitle: Prose {
    let words = [
      result.started.isEmpty ? "" : "started \(result.started)",
      (result.environment.hosts ?? [result.environment.host]).filter { !$0.isEmpty }.joined(separator: ", "),
      result.environment.apnscope.isEmpty ? "" : "apnscope \(result.environment.build)",
    ]
    return Prose(words.filter { !$0.isEmpty }.joined(separator: " · "))
  }

  private var warnings: Section {
    Section(
      "Warnings",
      result.warnings.isEmpty
        ? [.paragraph("The run gave no warnings.")] : result.warnings.map { .callout(.warning, Prose($0)) })
  }

  /// The part of the run that latencies cover. Send lag and loop lag always cover the measured phase.
  var latencyWindow: String { result.measuredBy == nil ? "whole run" : "measured phase" }

  // MARK: over time

  /// The phases as regions of the time axis.
  var regions: [Chart.Region] {
    // Phases at other times have no common place on it.
    if result.merged?.together == false { return [] }
    var start = 0.0
    return result.phases.compactMap { phase in
      guard phase.seconds.isFinite, phase.seconds > 0 else { return nil }
      defer { start += phase.seconds }
      return Chart.Region(
        from: start, to: start + phase.seconds, label: phase.name.rawValue, isShaded: phase.name != .measured)
    }
  }

  /// The time range that rates cover, in seconds since the start: the measured phase, or the whole run without one.
  var measured: ClosedRange<Double> {
    let region = regions.first { $0.label == RunPhase.measured.rawValue }
    return region.map { $0.from...$0.to } ?? 0...Double.infinity
  }

  /// The run's length: its phases, or where the series ends.
  var length: Double {
    let ends = [regions.last?.to, result.series.last.map { $0.tS + 1 }, result.timeline.spans.map(\.toS).max()]
    return max(1e-3, ends.compactMap { $0 }.filter(\.isFinite).max() ?? 1)
  }

  var time: Axis { .time(bounds: 0...length) }

  /// A line through the seconds of the run, each in its middle.
  func line(_ value: (RunResult.Sample) -> Double) -> [Point] {
    zip(result.series, seconds).map { Point($0.tS + $1 / 2, value($0)) }
  }

  /// The length of each sample in seconds; 1 for a sample before a hole.
  var seconds: [Double] { WholeSeconds.lengths(of: result.series).map { $0 ?? 1 } }

  /// Sums over equal bins of time that are whole seconds: no more than 90 bins.
  func bins(_ value: (RunResult.Sample) -> Int) -> (width: Double, points: [Point]) {
    let widths: [Double] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400]
    let width = widths.first { length / $0 <= 90 } ?? (length / 90).rounded(.up)
    var sums: [Int: Double] = [:]
    for sample in result.series where sample.tS.isFinite && sample.tS >= 0 && sample.tS < 1e12 {
      // A sample begins slightly after its whole second.
      sums[Int((sample.tS + 0.05) / width), default: 0] += Double(value(sample))
    }
    return (width, sums.sorted { $0.key < $1.key }.map { Point((Double($0.key) + 0.5) * width, $0.value) })
  }

  var errorTicks: [Chart.Event] {
    zip(result.series, seconds).filter { $0.0.errors > 0 }
      .map { .init(x: $0.tS + $1 / 2, count: $0.errors, label: $0.errors == 1 ? "error" : "errors") }
  }
}

/// A command line as it could be typed again.
package func commandLine(_ words: [String]) -> String {
  words.map { word in
    let isPlain =
      !word.isEmpty && word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_./=:,%+@".contains($0)) }
    return isPlain ? word : "'" + word.replacing("'", with: "'\\''") + "'"
  }.joined(separator: " ")
}

extension LatencyHistogram {
  /// The unit of its values as measured.
  var valueUnit: Reporting.Unit {
    switch unit {
    case .microseconds, .milliseconds: .microseconds
    case .count: .count
    case .bytes: .bytes
    }
  }

  func text(_ value: Int) -> String { valueUnit.text(Double(value)) }

  /// Its percentile curve; the y axis is logarithmic when the tail is far from the middle.
  func percentileChart(_ title: String, y label: String) -> Chart {
    .percentiles(title, y: label, [("", self)])
  }

  /// Cells of a table: count, p50, p90, p99, p99.9, max.
  var cells: [String] {
    count == 0
      ? ["0", "–", "–", "–", "–", "–"]
      : [grouped(count)] + [0.5, 0.9, 0.99, 0.999].map { text(quantile($0)) } + [text(maximum)]
  }

  static let columns = ["count", "p50", "p90", "p99", "p99.9", "max"]
}

extension Chart {
  /// Percentile curves of histograms with the same unit; empty histograms are omitted.
  static func percentiles(_ title: String, y label: String, _ histograms: [(name: String, of: LatencyHistogram)])
    -> Chart
  {
    let shown = histograms.enumerated().filter { $0.element.of.count > 0 }
    let largest = shown.map(\.element.of.maximum).max() ?? 0
    let smallest = shown.map { max(1, $0.element.of.quantile(0.5)) }.min() ?? 1
    let isFar = largest / smallest > 30
    // The smallest of all values may be far below the rest, and means little.
    let least = shown.map { max(1, $0.element.of.quantile(0.05)) }.min() ?? 1
    return Chart(
      title: title, x: .percentile(),
      y: Axis(
        label, unit: shown.first?.element.of.valueUnit ?? .count, layout: isFar ? .logarithmic : .linear,
        bounds: isFar ? Double(least)...Double(largest) : nil),
      marks: shown.map { .percentiles($0.element.name, of: $0.element.of, color: .number($0.offset)) },
      height: 170)
  }
}
