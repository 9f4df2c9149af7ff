import Measurement

extension RunReport {
  /// The agreement of a result with its gateways' books, as invariants: a single one if they agree, otherwise one for
  /// each line that differs.
  package static func agreement(of result: RunResult, with ledger: Ledger) -> [RunResult.Verdict.Invariant] {
    let lines = Agreement(result, ledger).lines
    let name = "the gateways' ledgers agree"
    let differences = lines.filter { !$0.holds }
    guard differences.isEmpty else {
      return differences.map {
        .init("\(name): \($0.name)", holds: false, detail: "\($0.ours) here, \($0.theirs) there; \($0.rule)")
      }
    }
    return [.init(name, holds: true, detail: "in \(lines.count) lines")]
  }

  /// Instead of a rate, for a result that has none.
  var reasonForNoRates: String { result.reasonForNoRates ?? "nothing was measured" }
}
