import Measurement

/// Two sides' counts of one run, beside each other: what a command prints of an `Agreement`.
package struct Books {
  /// The names of the sides.
  let ours: String
  let theirs: String
  let lines: [Agreement.Line]

  /// Whether every line holds.
  package var holds: Bool { lines.allSatisfy(\.holds) }

  /// A table; what a line requires is told where it does not hold, or requires something else than equality.
  package var text: String {
    var table = TextTable(["", ours, theirs, ""], right: [1, 2])
    for line in lines {
      let rule = line.holds && (line.ours == line.theirs || line.rule == "equal") ? "" : "  \(line.rule)"
      table.add([line.name, line.ours, line.theirs, (line.holds ? "✓" : "✗") + rule])
    }
    return table.text(indent: 0)
  }
}

extension RunReport {
  /// A load beside its gateway.
  package static func books(of result: RunResult, with ledger: Ledger) -> Books {
    Books(ours: "load", theirs: "gateway", lines: Agreement(result, ledger).lines)
  }

  /// A capture of a gateway and its feedback service beside these. It must have lost nothing.
  package static func books(of report: InspectionReport, with ledger: Ledger) -> Books {
    Books(ours: "capture", theirs: "gateway", lines: Agreement(report, ledger).lines)
  }
}
