import Measurement

/// Two sets of runs, figure by figure: medians, their ratio, and whether they differ by more than chance.
public struct Comparison: Sendable, Equatable, Encodable {
  /// What the values of a figure say together.
  public enum Judgement: String, Sendable, Encodable {
    case better, worse
    /// They differ, and neither way is an improvement.
    case different
    /// No more than chance would do.
    case same
    /// Fewer than four runs on a side: no difference, however large, could be told from chance at 5 %.
    case tooFew = "too_few"
    /// A side has no values.
    case missing
  }

  public struct Side: Sendable, Equatable, Encodable {
    public var median: Double?
    /// Of the runs that have one, in their order.
    public var values: [Double]
  }

  public struct Row: Sendable, Equatable, Encodable {
    public var figure: String
    public var a: Side
    public var b: Side
    /// b's median to a's; `nil` when one is missing, or a's is 0.
    public var ratio: Double?
    /// Two-sided, of the Mann-Whitney U test.
    public var p: Double?
    public var judgement: Judgement

    public var unit: Unit { RunFigure.named(figure)?.unit ?? .plain }

    private enum CodingKeys: String, CodingKey { case figure, a, b, ratio, p, judgement }
  }

  public let schema = 1
  public let kind = "compare"
  /// The runs' names.
  public let a: [String]
  public let b: [String]
  public let rows: [Row]
  /// What is not the same in all runs: what was to be compared should stand here, and nothing else.
  public let differences: [SetupDifference]
  public let warnings: [String]

  private enum CodingKeys: String, CodingKey {
    case schema, kind, a, b
    case rows = "figures"
    case differences, warnings
  }

  /// Differences with a smaller p count.
  public static let significance = 0.05

  public init(_ a: [RunResult.Part], _ b: [RunResult.Part]) {
    self.a = a.map(\.name)
    self.b = b.map(\.name)
    rows = RunFigure.all.compactMap { figure in
      let (first, second) = (a.compactMap { figure.value($0.result) }, b.compactMap { figure.value($0.result) })
      return first.isEmpty && second.isEmpty ? nil : Self.row(figure, first, second)
    }
    differences = SetupDifference.between(a.map(\.result), b.map(\.result))
    warnings = Self.warnings(a, b, differences)
  }

  private static func row(_ figure: RunFigure, _ a: [Double], _ b: [Double]) -> Row {
    let (first, second) = (Side(median: median(a), values: a), Side(median: median(b), values: b))
    var row = Row(figure: figure.name, a: first, b: second, ratio: nil, p: nil, judgement: .missing)
    guard let low = first.median, let high = second.median, let test = try? MannWhitney(a, b) else { return row }
    row.ratio = low == high ? 1 : Reporting.ratio(high, to: low)
    guard min(a.count, b.count) >= MannWhitney.fewest else {
      row.judgement = .tooFew
      return row
    }
    row.p = test.p
    if test.p >= significance || low == high {
      row.judgement = .same
    } else {
      switch figure.better {
      case .higher: row.judgement = high > low ? .better : .worse
      case .lower: row.judgement = high < low ? .better : .worse
      case .neither: row.judgement = .different
      }
    }
    return row
  }

  private static func warnings(
    _ a: [RunResult.Part], _ b: [RunResult.Part], _ differences: [SetupDifference]
  ) -> [String] {
    var warnings: [String] = []
    if min(a.count, b.count) < MannWhitney.fewest {
      warnings.append(
        "need at least \(MannWhitney.fewest) runs a side to tell a difference from chance; there are \(a.count) and \(b.count)"
      )
    }
    let machine = differences.filter(\.isOfTheMachine).map(\.name)
    if !machine.isEmpty {
      warnings.append("the runs were not made in the same place: \(machine.joined(separator: ", "))")
    }
    let load = differences.filter { !$0.isOfTheMachine && SetupDifference.decisive.contains($0.name) }.map(\.name)
    if !load.isEmpty {
      warnings.append("the runs did not send the same load: \(load.joined(separator: ", "))")
    }
    let mixed = differences.filter(\.isWithinASide).map(\.name)
    if !mixed.isEmpty { warnings.append("runs of one side differ among themselves: \(mixed.joined(separator: ", "))") }
    for part in a + b {
      if part.result.verdict.invariants.contains(where: { !$0.holds }) {
        warnings.append("\(part.name): the books do not balance")
      }
      if part.result.verdict.limitedBy == .generator {
        warnings.append("\(part.name): limited by the generator, so its rates are not the gateway's")
      }
    }
    let begun = (a.map { ($0.result.started, 0) } + b.map { ($0.result.started, 1) }).filter { !$0.0.isEmpty }
      .sorted { $0.0 < $1.0 }.map(\.1)
    let changes = zip(begun, begun.dropFirst()).count { $0 != $1 }
    if min(a.count, b.count) >= MannWhitney.fewest, changes == 1 {
      warnings.append(
        "all runs of one side came before the other's: what changed on the machine meanwhile is in the difference; run A B B A …"
      )
    }
    return warnings
  }
}
