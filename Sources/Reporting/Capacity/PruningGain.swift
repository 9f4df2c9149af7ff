import Measurement

/// What pruning buys: the share of sendings that are rejected with status 8 without it and with it, as measured.
///
/// A gain is only claimed when the data prove it: the 95 % intervals of both shares have to be apart.
struct PruningGain: Equatable {
  /// Which sendings are without pruning. Those with pruning are the run's after the second in which it read its first
  /// list.
  enum Contrast: Equatable {
    /// Those of the same run before that second.
    case beforeFirstList
    /// Those after that second of the baseline, which differs in nothing but pruning.
    case baseline
  }

  var contrast: Contrast
  /// Shares of sendings, with their intervals.
  var without: (share: Double, range: ClosedRange<Double>)
  var with: (share: Double, range: ClosedRange<Double>)

  /// The gain of a run that prunes, against a baseline that does not, or against its own beginning; `nil` when nothing is
  /// proven.
  init?(_ result: RunResult, baseline: RunResult?) {
    guard let feedback = result.feedback, feedback.prunes, feedback.listed > 0, result.interrupted?.cause == nil,
      result.merged == nil
    else { return nil }
    guard let first = result.series.first(where: { ($0.feedbackTuples ?? 0) > 0 })?.tS,
      let with = Self.share(of: result.series.filter { $0.tS > first })
    else { return nil }
    if let baseline, Self.differOnlyInPruning(result, baseline) {
      // At the same time of both runs.
      guard let without = Self.share(of: baseline.series.filter { $0.tS > first }) else { return nil }
      self.init(.baseline, without, with)
    } else {
      guard let without = Self.share(of: result.series.filter { $0.tS < first }) else { return nil }
      self.init(.beforeFirstList, without, with)
    }
  }

  private typealias Share = (share: Double, range: ClosedRange<Double>)

  private init?(_ contrast: Contrast, _ without: Share, _ with: Share) {
    guard with.range.upperBound < without.range.lowerBound else { return nil }
    (self.contrast, self.without, self.with) = (contrast, without, with)
  }

  static func == (a: PruningGain, b: PruningGain) -> Bool {
    a.contrast == b.contrast && a.without == b.without && a.with == b.with
  }

  /// `nil` if the seconds are too few for an interval.
  private static func share(of seconds: [RunResult.Sample]) -> Share? {
    let sending = seconds.filter { $0.written > 0 }
    let events = sending.map { $0.errorsByStatus["8"] ?? 0 }
    let all = events.reduce(0) { $0.addingReportingOverflow($1).partialValue }
    let written = sending.reduce(0) { $0.addingReportingOverflow($1.written).partialValue }
    let range = EventShare.interval(
      events: all, of: written, seconds: zip(events, sending).map { (Double($0), Double($1.written)) })
    return range.map { (Double(all) / Double(max(1, written)), $0) }
  }

  /// Settings that may differ: of pruning itself, and of places and outputs.
  private static let free: Set<String> = [
    "no_prune", "poll_feedback", "max_pruned", "poll_timeout", "max_tuples", "gateway", "identity", "threshold",
    "timeline",
  ]

  private static func differOnlyInPruning(_ result: RunResult, _ baseline: RunResult) -> Bool {
    guard baseline.feedback?.prunes != true, baseline.merged == nil, baseline.interrupted?.cause == nil else {
      return false
    }
    return SetupDifference.between([result], [baseline]).allSatisfy { free.contains($0.name) }
  }
}
