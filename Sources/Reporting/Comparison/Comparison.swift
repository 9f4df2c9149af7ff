import Measurement

/// Compares two sets of runs, figure by figure: medians and their ratio; for a few figures also whether the difference
/// is significant.
///
/// Twenty figures judged at 5 % each would raise a false alarm in most comparisons of equal runs. So only
/// `mainFigures`, or the requested ones, are judged: by Mann-Whitney's U test with Holm's correction, from `fewestRuns`
/// of each side, and if the medians differ by more than `floor`. For equal runs, assigned to the sides at random, at
/// most 5 % of the comparisons report any difference.
public struct Comparison: Sendable, Equatable, Encodable {
  /// The result of comparing a figure's values on both sides.
  public enum Judgement: String, Sendable, Encodable {
    case better, worse
    /// The sides differ significantly, but neither direction is an improvement.
    case different
    /// The difference is not significant.
    case same
    /// The difference is significant, but smaller than usual differences between runs on one machine.
    case small
    /// Fewer than `fewestRuns` runs of a side have the figure.
    case tooFew = "too_few"
    /// The figure was not computed in the same way in all runs.
    case notComparable = "not_comparable"
    /// The figure is not judged.
    case notJudged = "not_judged"
    /// A side has no values.
    case missing
  }

  /// The values of a figure on one side.
  public struct Side: Sendable, Equatable, Encodable {
    /// The median; `nil` without values.
    public var median: Double?
    /// The values of the runs that have the figure, in the order of the runs.
    public var values: [Double]
  }

  /// A figure on both sides.
  public struct Row: Sendable, Equatable, Encodable {
    /// The figure's name, as in `RunFigure`.
    public var figure: String
    public var a: Side
    public var b: Side
    /// The ratio of b's median to a's; `nil` if one is missing, or a's is 0.
    public var ratio: Double?
    /// Two-sided p of the Mann-Whitney U test; `nil` for figures that are not judged.
    public var p: Double?
    /// The same p, corrected by Holm's method for the number of judged figures.
    public var pHolm: Double?
    /// The result of comparing the sides.
    public var judgement: Judgement

    package var unit: Unit { RunFigure.named(figure)?.unit ?? .plain }

    private enum CodingKeys: String, CodingKey { case figure, a, b, ratio, p, pHolm, judgement }
  }

  /// The version of the document's fields.
  public let schema = 1
  public let kind = "compare"
  /// The kind of the results: `load` or `simulate`.
  public let of: String
  /// The names of the runs of side a.
  public let a: [String]
  /// The names of the runs of side b.
  public let b: [String]
  /// The names of the figures that are judged.
  public let judged: [String]
  /// The judged figures, then the others.
  public let rows: [Row]
  /// The differences in setup between the runs: ideally only the intended one.
  public let differences: [SetupDifference]
  /// Sentences about what makes the comparison doubtful.
  public let warnings: [String]

  private enum CodingKeys: String, CodingKey {
    case schema, kind, of, a, b, judged
    case rows = "figures"
    case differences, warnings
  }

  /// The figures judged by default.
  public static let mainFigures = ["accepted_per_s", "send_lag_p99", "rejected_rate", "cpu_per_notification"]
  /// Differences with a smaller corrected p count.
  package static let significance = 0.05
  /// Runs of each side below which nothing is judged: with 4 a side no corrected p of four figures is below 0.114.
  package static let fewestRuns = 5
  /// The larger median has to exceed the smaller by this factor. 0 differs from every other value.
  package static let floor = 1.15

  /// The figures of ledgers that are judged by default: shares, because counts depend on the load.
  public static let mainLedgerFigures = [
    "rejected_share", "discarded_share", "may_be_lost_share", "accepted_twice_share",
  ]

  /// A ledger and its name.
  public struct LedgerPart: Sendable {
    public var name: String
    public var ledger: Ledger
    public init(_ name: String, _ ledger: Ledger) { (self.name, self.ledger) = (name, ledger) }
  }

  /// Compares the loads of two sides.
  ///
  /// - Parameters:
  ///   - a: the runs of one side, with their names.
  ///   - b: the runs of the other side.
  ///   - figures: the names of the figures to judge; unknown names are ignored.
  public init(_ a: [RunResult.Part], _ b: [RunResult.Part], judging figures: [String] = mainFigures) {
    let measures = Measures(a + b)
    let differences = SetupDifference.between(a.map(\.result), b.map(\.result))
    self.init(
      a.map { ($0.name, .load($0.result)) }, b.map { ($0.name, .load($0.result)) }, of: RunResult().kind,
      RunFigure.all, judging: figures, isDefault: figures == Self.mainFigures, areMixed: measures.areMixed, differences,
      doubts: measures.warnings,
      warnings: Self.warnings(ofLoads: a, b, differences)
        + Self.warnings(ofOrder: a.map(\.result.started), b.map(\.result.started)))
  }

  /// Compares the ledgers of two sides, with the same statistics.
  ///
  /// - Parameters:
  ///   - a: the ledgers of one side, with their names.
  ///   - b: the ledgers of the other side.
  ///   - figures: the names of the figures to judge; unknown names are ignored.
  public init(ledgers a: [LedgerPart], _ b: [LedgerPart], judging figures: [String] = mainLedgerFigures) {
    self.init(
      a.map { ($0.name, .ledger($0.ledger)) }, b.map { ($0.name, .ledger($0.ledger)) }, of: Ledger().kind,
      RunFigure.ofLedgers, judging: figures, isDefault: figures == Self.mainLedgerFigures, areMixed: false, [],
      doubts: [],
      warnings: Self.warnings(ofLedgers: a + b)
        + Self.warnings(ofOrder: a.map(\.ledger.started), b.map(\.ledger.started)))
  }

  private typealias Named = (name: String, result: ComparedResult)

  private init(
    _ a: [Named], _ b: [Named], of kind: String, _ known: [RunFigure], judging figures: [String], isDefault: Bool,
    areMixed: Bool, _ differences: [SetupDifference], doubts: [String], warnings: [String]
  ) {
    self.of = kind
    self.a = a.map(\.name)
    self.b = b.map(\.name)
    let isJudged = Set(figures)
    let all = known.filter { isJudged.contains($0.name) } + known.filter { !isJudged.contains($0.name) }
    var rows = all.compactMap { figure in
      let (first, second) = (a.compactMap { figure.value($0.result) }, b.compactMap { figure.value($0.result) })
      // Requested figures without values are reported.
      let isAskedFor = isJudged.contains(figure.name) && !isDefault
      let hasNone =
        figure.isLeftOutAtZero ? (first + second).allSatisfy { $0 == 0 } : first.isEmpty && second.isEmpty
      return hasNone && !isAskedFor ? nil : Self.row(figure, first, second)
    }
    for index in rows.indices where rows[index].judgement != .missing && isJudged.contains(rows[index].figure) {
      rows[index].judgement = areMixed ? .notComparable : .tooFew
    }
    Self.judge(&rows)
    self.rows = rows
    judged = known.map(\.name).filter(isJudged.contains)
    self.differences = differences
    let tests = rows.compactMap { $0.p == nil ? nil : MannWhitney.smallest($0.a.values.count, $0.b.values.count) }
    let missing = rows.filter { isJudged.contains($0.figure) && $0.judgement == .missing }
    self.warnings =
      missing.map { "\($0.figure): \($0.a.values.isEmpty && $0.b.values.isEmpty ? "no run" : "only one side") has it" }
      + doubts + Self.warnings(ofTests: tests) + Self.warnings(ofNumbers: a.count, b.count) + warnings
  }

  /// A row with medians and ratio, not judged.
  private static func row(_ figure: RunFigure, _ a: [Double], _ b: [Double]) -> Row {
    let (first, second) = (Side(median: median(a), values: a), Side(median: median(b), values: b))
    var row = Row(figure: figure.name, a: first, b: second, judgement: .missing)
    guard let low = first.median, let high = second.median else { return row }
    row.ratio = low == high ? 1 : Reporting.ratio(high, to: low)
    row.judgement = .notJudged
    return row
  }

  /// Tests all rows together that are to be judged and have enough runs.
  private static func judge(_ rows: inout [Row]) {
    let tested = rows.indices.filter { index in
      let row = rows[index]
      guard row.judgement == .tooFew, min(row.a.values.count, row.b.values.count) >= fewestRuns,
        let test = try? MannWhitney(row.a.values, row.b.values)
      else { return false }
      rows[index].p = test.p
      return true
    }
    for (index, corrected) in zip(tested, holm(tested.compactMap { rows[$0].p })) {
      rows[index].pHolm = corrected
      rows[index].judgement = judgement(rows[index], corrected)
    }
  }

  private static func judgement(_ row: Row, _ p: Double) -> Judgement {
    guard let low = row.a.median, let high = row.b.median, p < significance, low != high else { return .same }
    if min(low, high) > 0, max(low, high) <= floor * min(low, high) { return .small }
    switch RunFigure.named(row.figure)?.better {
    case .higher: return high > low ? .better : .worse
    case .lower: return high < low ? .better : .worse
    case .neither, nil: return .different
    }
  }
}

extension Comparison {
  /// The figures that are judged, or were to be.
  package var judgedRows: [Row] { rows.filter { judged.contains($0.figure) } }

  /// The figures with one of these judgements, each as a sentence.
  package func sentences(on judgements: Set<Judgement>) -> [String] {
    judgedRows.filter { judgements.contains($0.judgement) }.map { "\($0.figure): \(sentence(on: $0))" }
  }

  package func sentence(on row: Row) -> String {
    switch row.judgement {
    case .better, .worse, .different:
      "\(row.judgement.rawValue): \(row.ratio.map { "\(fixed($0, 2)) times as much" } ?? "0 before")"
    case .same: "no difference is shown"
    case .small: "the difference is below 15 %"
    case .tooFew: "cannot be judged: a verdict takes \(Self.fewestRuns) runs of each side"
    case .notComparable: "cannot be judged: it was not computed in the same way in all runs"
    case .missing: "cannot be judged: a side does not have it"
    case .notJudged: "is not judged"
    }
  }
}

extension Comparison.Judgement {
  /// Nothing can be said of the figure.
  package static let unknown: Set<Self> = [.tooFew, .notComparable, .missing]
}
