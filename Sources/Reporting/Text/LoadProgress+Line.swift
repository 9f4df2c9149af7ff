import Measurement

/// When a run ends, as far as it is known before.
package enum RunLength: Sendable, Equatable {
  /// After seconds, without the drain.
  case seconds(Double)
  /// When this many notifications were written.
  case notifications(Int)
  case unknown
}

extension LoadProgress {
  /// Elapsed time and what is left, phase, requested, written and accepted rates, errors, connections, send lag,
  /// processor time; on a narrow terminal time, acceptances and errors stay.
  ///
  /// - Parameters:
  ///   - length: when the run ends.
  ///   - trial: the place of the run in a search, as "trial 7 of about 12".
  package func line(of length: RunLength, trial: String? = nil) -> StatusLine {
    func rate(_ value: Double) -> String { "\(grouped(Int(nearest: value.rounded())))/s" }
    var line = StatusLine()
    if let trial { line.add(trial, rank: 1) }
    line.add(time(of: length), rank: 0)
    line.add(phase.rawValue, rank: 6)
    if let asked = askedPerSecond { line.add("asked \(rate(asked))", rank: 7) }
    line.add("written \(rate(writtenPerSecond)) (\(grouped(written)))", rank: 4)
    line.add("accepted \(rate(acceptedPerSecond)) (\(grouped(accepted)))", rank: 2)
    line.add("errors \(grouped(errors))", rank: 3)
    if let pruned { line.add("pruned \(grouped(pruned))", rank: 10) }
    line.add("connections \(grouped(connections))", rank: 8)
    line.add("lag p99 \(Unit.microseconds.text(Double(sendLag99)))", rank: 5)
    line.add("cpu \(Int(nearest: (cpu * 100).rounded())) %", rank: 9)
    return line
  }

  /// "4 s of 6 s"; "4 s, about 8 s left"; "7 s" in the drain, whose length answers decide.
  package func time(of length: RunLength) -> String {
    let passed = "\(Int(nearest: elapsed.rounded())) s"
    guard phase != .drain else { return passed }
    switch length {
    case .seconds(let seconds): return "\(passed) of \(Int(nearest: seconds.rounded())) s"
    case .notifications(let count):
      guard written > 0, written < count, writtenPerSecond > 0 else { return passed }
      return "\(passed), about \(span((Double(count - written) / writtenPerSecond).rounded(.up))) left"
    case .unknown: return passed
    }
  }
}
