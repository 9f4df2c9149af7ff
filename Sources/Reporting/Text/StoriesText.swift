import Measurement

extension InspectionReport.Stories {
  /// All outcomes by distinct notification, which add up, and the reasons for what is open; one line each.
  var lines: [String] {
    let outcomes = StoryOutcome.allCases.filter { self[$0] > 0 }.map { "\(grouped(self[$0])) \($0.verdict)" }
    var lines = ["distinct       \(grouped(total))\(outcomes.isEmpty ? "" : ": ")\(outcomes.joined(separator: ", "))"]
    if !notSeenAgain.isEmpty {
      lines.append("  \(grouped(notSeenAgain.sum)) discarded and \(ResendWords.notSeenAgain), open: \(whereNotSeen)")
    }
    let others = whereOthersOpen
    if !others.isEmpty { lines.append("  \(notSeenAgain.isEmpty ? "" : "others ")open: \(others)") }
    if let recovery {
      lines.append("  recovered after \(span(recovery.p50S)) (median), \(span(recovery.p99S)) (99 %)")
    }
    return lines
  }
}
