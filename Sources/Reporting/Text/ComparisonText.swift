import Bytes
import Measurement

/// A comparison on a terminal.
package struct ComparisonText: Sendable {
  package let text: String

  package init(_ comparison: Comparison) {
    var lines = [
      "A  \(Self.runs(comparison.a, comparison.of))",
      "B  \(Self.runs(comparison.b, comparison.of))",
      "",
    ]
    var table = [["judged", "A", "B", "B / A", "p", "p (Holm)", ""]]
    let judged = comparison.rows.prefix { comparison.judged.contains($0.figure) }
    table += judged.map(Self.cells)
    lines += aligned(
      table + [[], ["shown without a verdict"]] + comparison.rows.dropFirst(judged.count).map(Self.cells))
    if !comparison.differences.isEmpty {
      lines += ["", "what differs"]
      lines += aligned(
        comparison.differences.map {
          ["  \($0.name)", Self.values($0.a), "->", Self.values($0.b)]
        }, left: 4)
    }
    if !comparison.warnings.isEmpty { lines.append("") }
    lines += comparison.warnings.map { "! \(ControlCharacters.escaped($0))" }
    text = lines.joined(separator: "\n")
  }

  private static func cells(_ row: Comparison.Row) -> [String] {
    [
      row.figure, row.a.median.map(row.unit.text) ?? "-", row.b.median.map(row.unit.text) ?? "-",
      row.ratio.map(ratio) ?? "-", row.p.map(probability) ?? "-", row.pHolm.map(probability) ?? "-",
      word(row.judgement),
    ]
  }

  private static func runs(_ names: [String], _ kind: String) -> String {
    let shown = ControlCharacters.escaped(names.prefix(4).joined(separator: " "))
    let count = counted(names.count, kind == Ledger().kind ? "ledger" : "run")
    return "\(count): \(shown)\(names.count > 4 ? " …" : "")"
  }

  private static func values(_ values: [String]) -> String {
    ControlCharacters.escaped(values.joined(separator: " | "))
  }

  static func ratio(_ value: Double) -> String { fixed(value, value < 10 ? 3 : 1) }

  static func probability(_ value: Double) -> String { value < 0.001 ? "<0.001" : fixed(value, 3) }

  static func word(_ judgement: Comparison.Judgement) -> String {
    switch judgement {
    case .better, .worse, .different: judgement.rawValue
    case .same: "~"
    case .small: "below 15 %"
    case .tooFew, .notComparable: "?"
    case .notJudged, .missing: ""
    }
  }
}
