import Measurement

extension RunReport {
  /// Whether the books of a result and those of its gateways agree, as invariants of the result: one when they do, else
  /// one for each line that differs.
  public static func agreement(of result: RunResult, with ledger: Ledger) -> [RunResult.Verdict.Invariant] {
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
