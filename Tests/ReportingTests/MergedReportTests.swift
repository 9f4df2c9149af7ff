import Measurement
import TestSupport
import Testing

@testable import Reporting

/// Reports of results that several runs were merged into.
@Suite("Report of a merged result")
struct MergedReportTests {
  private static func parts(at starts: [String]) -> [RunResult.Part] {
    starts.enumerated().map { number, start in
      var run = syntheticRun(seconds: 30, connections: 4)
      run.started = start
      run.plan["segment"] = .text("\(number + 1)/\(starts.count)")
      return .init("\(number + 1).json", run)
    }
  }

  private static func text(_ result: RunResult) -> String { RunReport(result).page.markdown().text }

  @Test("Two waves have no rate in any place, and a chart by the clock")
  func waves() throws {
    let (first, second) = ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:41.678Z")
    let together = Self.text(try RunResult.merging(Self.parts(at: [first, first, first, first])))
    let waves = try RunResult.merging(Self.parts(at: [first, first, second, second]))
    let text = Self.text(waves)
    #expect(text.contains("the segments did not run together") && !together.contains("run together"))
    // The rate of all four, as figure, in the phases, and for planning.
    let rate = "20,0[0-9][0-9]/s|19,9[0-9][0-9]/s"
    #expect(together.matches(of: try Regex(rate)).count >= 3)
    // But in the title, and as what was asked for.
    let measured = text.replacing("20,000/s over 16 connections", with: "").replacing("asked: 20,000/s", with: "")
      .replacing("of 20,000/s asked", with: "")
    #expect(measured.matches(of: try Regex(rate)).isEmpty)
    let chart = try #require(RunReport(waves).page.charts.first { $0.title.hasPrefix("Notifications per second") })
    let most = chart.marks.flatMap(\.points).map(\.y).max() ?? 0
    #expect(most > 5_000 && most < 11_000)
  }

  @Test("A segment that is missing is red on the first screen; the verdict was that all passed")
  func missing() throws {
    let parts = Self.parts(at: Array(repeating: "2026-01-02T03:04:05.678Z", count: 4))
    let merged = try RunResult.merging([parts[0], parts[1], parts[3]])
    let text = Self.text(merged)
    #expect(text.contains("3/4 is missing") && !text.contains("The books balance") && !text.contains("all passed"))
    #expect(!Self.text(try RunResult.merging(parts)).contains("is missing"))
  }

  @Test("Ledgers whose sum is that of the loads agree in one line; each that differs is one of its own")
  func ledgers() throws {
    let parts = Self.parts(at: Array(repeating: "2026-01-02T03:04:05.678Z", count: 2))
    let merged = try RunResult.merging(parts)
    let books = try #require(Ledger.merging(parts.map { ledger(of: $0.result) }))
    #expect(RunReport.agreement(of: merged, with: books).map(\.holds) == [true])
    let half = RunReport.agreement(of: merged, with: ledger(of: parts[0].result))
    #expect(half.count > 2 && half.allSatisfy { !$0.holds })
    // One of the loads is missing, and both gateways are there.
    let lost = RunReport.agreement(of: parts[0].result, with: books)
    #expect(lost.contains { $0.name == "the gateways' ledgers agree: accepted" && !$0.holds })
  }

  @Test("A run that was lost is called so")
  func lost() {
    var run = syntheticRun(seconds: 30, connections: 4)
    run.markLost(in: .measured, afterS: 30)
    let text = Self.text(run)
    #expect(text.hasPrefix("# Load run: 5,000/s over 4 connections for 30s (did not come to its end)"))
    #expect(text.contains("The books do not balance: every run came to its end"))
  }
}
