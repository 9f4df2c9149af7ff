import Measurement

/// Conditions and their outcomes as JUnit XML, which continuous integration services show: one test case each.
///
/// Format: the `testsuites` of Jenkins' junit-10.xsd, in the subset that services agree on.
package struct JUnitReport: Sendable {
  package struct Case: Sendable {
    package var name: String
    /// Why it failed; `nil`: it passed.
    package var failure: String?
    package init(_ name: String, failure: String?) { (self.name, self.failure) = (name, failure) }
  }

  /// The name of the suite, such as the command.
  package var suite: String
  package var seconds: Double?
  package var cases: [Case]

  package init(suite: String, seconds: Double? = nil, cases: [Case]) {
    (self.suite, self.seconds, self.cases) = (suite, seconds, cases)
  }

  /// The document.
  package var text: String {
    let failures = cases.count { $0.failure != nil }
    let time = seconds.map { " time=\"\(fixed($0, 3))\"" } ?? ""
    let counts = "tests=\"\(cases.count)\" failures=\"\(failures)\" errors=\"0\" skipped=\"0\"\(time)"
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<testsuites \(counts)>",
      "  <testsuite name=\"\(Markup.escaped(suite))\" \(counts)>",
    ]
    for test in cases {
      let opening = "    <testcase classname=\"\(Markup.escaped(suite))\" name=\"\(Markup.escaped(test.name))\""
      if let failure = test.failure {
        lines += ["\(opening)>", "      <failure message=\"\(Markup.escaped(failure))\"/>", "    </testcase>"]
      } else {
        lines.append("\(opening)/>")
      }
    }
    return (lines + ["  </testsuite>", "</testsuites>"]).joined(separator: "\n")
  }
}

extension JUnitReport {
  /// The outcome of a load, its books, and its thresholds.
  package init(_ result: RunResult) {
    let reasons = result.verdict.reasons?.joined(separator: "; ")
    let run = Case(
      "the run has ended by itself",
      failure: result.interrupted != nil
        ? "interrupted" : result.verdict.outcome == .failed ? reasons ?? "failed" : nil)
    let books = result.verdict.invariants.map { Case($0.name, failure: $0.holds ? nil : $0.detail) }
    self.init(suite: "apnscope load", result.verdict.thresholds)
    cases = [run] + books + cases
  }

  /// The judged figures of a comparison.
  package init(_ comparison: Comparison, failingOn judgements: Set<Comparison.Judgement>) {
    self.init(
      suite: "apnscope compare",
      cases: comparison.judgedRows.map { row in
        Case(row.figure, failure: judgements.contains(row.judgement) ? comparison.sentence(on: row) : nil)
      })
  }

  /// The conditions of a run.
  package init(suite: String, seconds: Double? = nil, _ conditions: [RunResult.Verdict.Threshold]) {
    self.init(
      suite: suite, seconds: seconds,
      cases: conditions.map { condition in
        Case(condition.expression, failure: condition.passed ? nil : condition.reason ?? RunReport.value(of: condition))
      })
  }
}
