import LoadTest
import Measurement
import Reporting
import Synchronization

/// Judges the thresholds with `,abort` on the books of a run that goes on.
final class ThresholdWatch: Sendable {
  /// A threshold that did not hold while the run went on.
  struct Failure {
    /// The place among the command's thresholds.
    var place: Int
    var threshold: Threshold
    var value: Double
    /// Seconds since the first notification was due.
    var afterS: Double

    /// The entry of the result.
    var entry: RunResult.Verdict.Threshold {
      var entry = RunResult.Verdict.Threshold(expression: threshold.expression, value: value, passed: false)
      entry.reason = "\(RunReport.value(of: entry)) after \(tenths(afterS)), which ended the run"
      return entry
    }
  }

  /// Seconds of sending before which nothing is judged: the first connections and answers say little of a run.
  static let patience = 2.0

  private let thresholds: [(place: Int, threshold: Threshold)]
  private let environment: Environment
  private let first = Mutex<Failure?>(nil)

  /// `nil` if no threshold ends the run.
  init?(_ thresholds: [Threshold], _ environment: Environment) {
    self.thresholds = thresholds.enumerated().filter { $0.element.aborts }.map { ($0.offset, $0.element) }
    self.environment = environment
    if self.thresholds.isEmpty { return nil }
  }

  /// The first threshold that did not hold.
  var failure: Failure? { first.withLock { $0 } }

  /// Judges the books so far; whether this is the first time that a threshold does not hold.
  ///
  /// Nothing that is not measured yet fails: it may still be.
  func fails(_ books: LoadOutcome) -> Bool {
    let sending = books.phases.filter { $0.phase == .warmUp || $0.phase == .measured }
    let seconds = sending.reduce(0) { $0 + $1.seconds }
    guard seconds >= Self.patience, books.phases.last?.phase != .drain, failure == nil else { return false }
    let result = books.lostResult(environment)
    for (place, threshold) in thresholds {
      let outcome = threshold.judge(result)
      guard !outcome.passed, outcome.reason == nil, let value = outcome.value else { continue }
      first.withLock { $0 = Failure(place: place, threshold: threshold, value: value, afterS: seconds) }
      return true
    }
    return false
  }

  /// Enters the failure into the result of the run that it ended: what came after it does not make up for it.
  func mark(_ result: inout RunResult) {
    guard let failure else { return }
    result.interrupted?.cause = .threshold
    result.verdict.thresholds[failure.place] = failure.entry
  }
}
