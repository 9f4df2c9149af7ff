import Foundation
import Measurement
import Reporting
import Testing

/// Ledgers on two sides: the same statistics as of loads, over what a gateway saw.
@Suite("Comparing ledgers")
struct LedgerComparisonTests {
  /// A ledger of 1,000 notifications, at the times of one side of A B B A A B B A A B.
  static func ledger(
    rejected: Int, at second: Int = 0, _ change: (inout Ledger) -> Void = { _ in }
  ) -> Comparison.LedgerPart {
    var ledger = Ledger()
    ledger.started = "2026-11-21T10:00:\(second < 10 ? "0" : "")\(second).000Z"
    ledger.ended = "2026-11-21T10:01:\(second < 10 ? "0" : "")\(second).000Z"
    (ledger.gateway.received, ledger.gateway.connections) = (1_000, 4)
    ledger.gateway.discarded = 40
    ledger.gateway.accepted = 960 - rejected
    ledger.gateway.rejected = ["8": rejected]
    change(&ledger)
    return Comparison.LedgerPart("sim-\(second).json", ledger)
  }

  private func side(
    _ rejected: [Int], isFirst: Bool, _ change: (inout Ledger) -> Void = { _ in }
  ) -> [Comparison.LedgerPart] {
    zip(isFirst ? [0, 3, 4, 7, 8] : [1, 2, 5, 6, 9], rejected).map { Self.ledger(rejected: $1, at: $0, change) }
  }

  private func row(_ name: String, _ comparison: Comparison) throws -> Comparison.Row {
    try #require(comparison.rows.first { $0.figure == name })
  }

  private static let noSettings =
    "ledgers have no settings and no machine: whether only what was intended differs is not checked"

  @Test("Five ledgers a side are judged by shares; what has no values is not there, and 0 is a value")
  func judged() throws {
    let comparison = Comparison(
      ledgers: side([10, 11, 12, 9, 10], isFirst: true), side([30, 31, 29, 33, 35], isFirst: false))
    #expect(comparison.of == "simulate" && Set(comparison.judged) == Set(Comparison.mainLedgerFigures))
    let share = try row("rejected_share", comparison)
    #expect(share.judgement == .worse && share.a.median == 0.01 && share.b.median == 0.031)
    #expect(try row("discarded_share", comparison).judgement == .same)
    // Shown, and not judged: counts depend on the load.
    #expect(try row("rejected", comparison).judgement == .notJudged && row("status_8", comparison).b.median == 31)
    #expect(try row("handshake_failures", comparison).a.values == [0, 0, 0, 0, 0])
    // Without a verdict nothing is known about losses; no other status occurred.
    for name in ["lost", "may_be_lost_share", "resend_p99", "status_7", "resumed_share"] {
      #expect(!comparison.rows.contains { $0.figure == name }, "\(name)")
    }
    #expect(comparison.warnings == [Self.noSettings] && comparison.differences.isEmpty)
    #expect(ComparisonText(comparison).text.hasPrefix("A  5 ledgers: sim-0.json"))
    let back = Comparison(
      ledgers: side([30, 31, 29, 33, 35], isFirst: true), side([10, 11, 12, 9, 10], isFirst: false))
    #expect(try row("rejected_share", back).judgement == .better)
  }

  @Test("Names of files cannot write to a terminal what they like")
  func hostileNames() {
    var first = Self.ledger(rejected: 1)
    first.name = "sim\u{1b}[2J.json"
    let text = ComparisonText(Comparison(ledgers: [first], [Self.ledger(rejected: 1, at: 1)])).text
    #expect(text.hasPrefix("A  1 ledger: sim") && !text.contains("\u{1b}"))
  }

  @Test("A status that one side has is 0 on the other")
  func statuses() throws {
    let comparison = Comparison(
      ledgers: [Self.ledger(rejected: 1)],
      [Self.ledger(rejected: 1) { $0.gateway.rejected = ["7": 1] }])
    #expect(try row("status_7", comparison).a.values == [0] && row("status_7", comparison).b.values == [1])
    #expect(try row("status_8", comparison).b.values == [0])
    #expect(comparison.rows.first { $0.figure == "status_1" } == nil)
  }

  @Test("Verdicts: what may be lost counts beside what is lost, and times are microseconds")
  func verdicts() throws {
    func with(_ open: Int, _ lost: Int) -> Comparison.LedgerPart {
      Self.ledger(rejected: 10) { ledger in
        var verdict = ProviderVerdict()
        (verdict.stories.accepted, verdict.stories.lost, verdict.stories.open) = (900 - open - lost, lost, open)
        verdict.stories.openReasons = [.gap: open]
        verdict.stories.notSeenAgain = [.gap: open]
        verdict.resend = RecoveryTimes(p50S: 0.5, p99S: 2, maxS: 3)
        (verdict.discarded, verdict.sentAgain) = (40, 30)
        ledger.verdict = verdict
      }
    }
    let comparison = Comparison(ledgers: [with(0, 9)], [with(9, 0)])
    #expect(try row("lost", comparison).a.values == [9] && row("lost", comparison).b.values == [0])
    // Nothing became better: the same number may be lost.
    #expect(try row("may_be_lost_share", comparison).a.values == [0.01])
    #expect(try row("may_be_lost_share", comparison).b.values == [0.01])
    #expect(
      Comparison.mainLedgerFigures.contains("may_be_lost_share") && !Comparison.mainLedgerFigures.contains("lost_share")
    )
    #expect(
      try row("resend_p99", comparison).a.values == [2e6] && row("resend_p50", comparison).unit.text(5e5) == "500 ms")
    #expect(try row("sent_again_share", comparison).a.values == [0.75])
    #expect(comparison.warnings.contains { $0.contains("at least 5 runs") })
    // A verdict on one side alone is not compared.
    let half = Comparison(ledgers: [with(0, 9)], [Self.ledger(rejected: 10)])
    #expect(try row("may_be_lost_share", half).judgement == .missing)
    #expect(half.warnings.contains("may_be_lost_share: only one side has it"))
  }

  @Test("Books that do not balance, gateways that nothing reached, and verdicts with gaps are said")
  func warnings() {
    let comparison = Comparison(
      ledgers: [Self.ledger(rejected: 1, at: 1) { $0.gateway.accepted += 1 }],
      [
        Self.ledger(rejected: 0, at: 2) {
          $0 = Ledger()
          $0.verdict = ProviderVerdict()
          $0.verdict?.notObserved = 2
        }
      ])
    #expect(comparison.warnings.contains("sim-1.json: the books do not balance"))
    #expect(comparison.warnings.contains("sim-2.json: nothing was received"))
    #expect(comparison.warnings.contains("sim-2.json: 2 notifications were left out of its verdict"))
    // Counts of a file may be anything.
    let huge = Comparison(
      ledgers: [Self.ledger(rejected: 1) { $0.gateway.rejected = ["8": .max, "7": .max] }], [Self.ledger(rejected: 1)])
    #expect(huge.rows.contains { $0.figure == "rejected" })
  }

  @Test("Sides that were run one after the other are said to be, as of loads")
  func order() {
    let first = (0..<5).map { Self.ledger(rejected: 10, at: $0) }
    let second = (5..<10).map { Self.ledger(rejected: 10, at: $0) }
    #expect(Comparison(ledgers: first, second).warnings.contains { $0.contains("alternate the sides") })
  }

  @Test("No figure of ledgers has the name of one of loads")
  func names() {
    let names = (RunFigure.all + RunFigure.ofLedgers).map(\.name) + ["sustained_per_s"]
    #expect(Set(names).count == names.count)
    #expect(Comparison.mainLedgerFigures.allSatisfy { RunFigure.named($0) != nil })
    // They are columns of a history.
    #expect(names.allSatisfy { $0.wholeMatch(of: /[a-z0-9_]+/) != nil })
    #expect(RunFigure.ofLedgers.allSatisfy { $0.value(RunResult()) == nil })
    #expect(RunFigure.all.allSatisfy { $0.value(Ledger()) == nil })
  }
}
