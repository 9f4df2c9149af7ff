import Measurement

/// What makes a comparison doubtful, as sentences.
extension Comparison {
  static func warnings(ofNumbers a: Int, _ b: Int) -> [String] {
    min(a, b) < fewestRuns
      ? [
        "at least \(fewestRuns) runs of each side are needed to separate a difference from chance; there are \(a) and \(b)"
      ] : []
  }

  /// - Parameter tests: the smallest p that each could have.
  static func warnings(ofTests tests: [Double]) -> [String] {
    guard let least = tests.min(), least * Double(tests.count) >= significance else { return [] }
    return ["\(tests.count) figures are judged, too many for so few runs: no difference could be separated from chance"]
  }

  static func warnings(
    ofLoads a: [RunResult.Part], _ b: [RunResult.Part], _ differences: [SetupDifference]
  ) -> [String] {
    var warnings: [String] = []
    let machine = differences.filter(\.isOfTheMachine).map(\.name)
    if !machine.isEmpty {
      warnings.append("the runs were made on different machines: \(machine.joined(separator: ", "))")
    }
    let load = differences.filter { !$0.isOfTheMachine && SetupDifference.decisive.contains($0.name) }.map(\.name)
    if !load.isEmpty {
      warnings.append("the runs did not send the same load: \(load.joined(separator: ", "))")
    }
    let mixed = differences.filter(\.isWithinASide).map(\.name)
    if !mixed.isEmpty { warnings.append("runs of the same side differ: \(mixed.joined(separator: ", "))") }
    for part in a + b {
      if part.result.verdict.invariants.contains(where: { !$0.holds }) {
        warnings.append("\(part.name): the books do not balance")
      }
      if part.result.verdict.limitedBy == .generator {
        warnings.append("\(part.name): limited by the generator, so its rates are not the gateway's")
      }
    }
    return warnings
  }

  static func warnings(ofLedgers ledgers: [LedgerPart]) -> [String] {
    var warnings = [
      "ledgers have no settings and no machine: whether only what was intended differs is not checked"
    ]
    for part in ledgers {
      let gateway = part.ledger.gateway
      // As numbers of any size, since a file may have any.
      let decided = gateway.rejected.values.reduce(Double(gateway.accepted) + Double(gateway.discarded)) {
        $0 + Double($1)
      }
      if decided != Double(gateway.received) { warnings.append("\(part.name): the books do not balance") }
      if gateway.received == 0 { warnings.append("\(part.name): nothing was received") }
      if let verdict = part.ledger.verdict, verdict.notObserved > 0 {
        warnings.append(
          "\(part.name): \(counted(verdict.notObserved, "notification")) were left out of its verdict")
      }
    }
    return warnings
  }

  /// - Parameter starts: of the runs of both sides.
  static func warnings(ofOrder a: [String], _ b: [String]) -> [String] {
    let begun = (a.map { ($0, 0) } + b.map { ($0, 1) }).filter { !$0.0.isEmpty }.sorted { $0.0 < $1.0 }.map(\.1)
    let changes = zip(begun, begun.dropFirst()).count { $0 != $1 }
    guard min(a.count, b.count) >= fewestRuns, changes == 1 else { return [] }
    return [
      "all runs of one side came before the other's, so the difference includes changes of the machine; alternate the sides (A B B A …)"
    ]
  }
}
