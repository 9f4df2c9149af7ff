import Foundation
import Measurement
import Reporting
import Testing

/// Ledgers in a history, and the demand that its runs are.
@Suite("History of ledgers, and demands of histories")
struct HistoryDemandTests {
  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-demand-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.appending(path: "runs.sqlite").path)
  }

  private func append(_ ledger: Ledger, to path: String) throws {
    var environment = Environment()
    (environment.apnscope, environment.host, environment.command) = ("1", "lab", ["apnscope", "simulate"])
    try RunHistory(appendingTo: path).append(ledger, of: environment, document: ledger.jsonDocument())
  }

  private func append(_ written: [Int], at started: String, to path: String) throws {
    var result = RunResult()
    result.started = started
    result.series = written.enumerated().map { index, count in
      var sample = RunResult.Sample()
      // Seconds are not to the microsecond.
      (sample.tS, sample.written) = (Double(index) * 1.25, count)
      return sample
    }
    try RunHistory(appendingTo: path).append(result, document: result.jsonDocument())
  }

  private func demand(_ path: String, _ kind: String? = nil, maximumSteps: Int = 1_000) throws -> Demand {
    try RunHistory(reading: path).demand(kind: kind, source: "runs", maximumSteps: maximumSteps)
  }

  private func failure(_ body: () throws -> Void) -> String? {
    do { try body() } catch { return (error as? DemandFailure)?.description }
    return nil
  }

  @Test("A ledger is a run with its own figures, and comes back as it was")
  func ledgers() throws {
    try inFolder { path in
      let ledger = LedgerComparisonTests.ledger(rejected: 10).ledger
      try append(ledger, to: path)
      try append([1, 2], at: "2026-11-27T10:00:00.000Z", to: path)
      let history = try RunHistory(reading: path)
      let runs = try history.runs()
      #expect(runs.map(\.kind) == ["simulate", "load"] && runs[0].host == "lab")
      #expect(runs[0].command == "apnscope simulate" && runs[0].started == ledger.started)
      #expect(runs[0].figures["rejected_share"] == 0.01 && runs[0].figures["received"] == 1_000)
      #expect(runs[0].figures["status_8"] == 10 && runs[0].figures["lost"] == nil)
      #expect(runs[0].figures["accepted_per_s"] == nil && runs[1].figures["received"] == nil)
      #expect(runs[0].kindAndState == "simulate" && !RunHistory.mixesMeasures(runs))
      #expect(try history.document(1) == ledger.jsonDocument())
      #expect(try history.runs(kind: "simulate").map(\.number) == [1])
      #expect(HistoryChart("rejected_share", runs).unit == .share)
    }
  }

  @Test("Loads are a demand second by second, those at the same time together, with nothing between them")
  func loads() throws {
    try inFolder { path in
      try append([10, 20], at: "2026-11-27T10:00:00.000Z", to: path)
      try append([5, 5], at: "2026-11-27T10:00:01.250Z", to: path)
      try append([7], at: "2026-11-27T11:00:00.000Z", to: path)
      let demand = try demand(path)
      #expect(demand.origin == .history && demand.started == "2026-11-27T10:00:00.000Z")
      // 10 of a second that took 1.25 s; then 20 and 5 in such; then the last of each, which took 1 s.
      #expect(demand.fromS == [0, 1.25, 2.25, 2.5, 3.5, 3_600])
      #expect(demand.perS == [8, 24, 4, 5, 0, 7] && demand.endS == 3_601)
      #expect(abs(demand.notifications - 47) < 1e-9)
      #expect(demand.notes == ["the demand is what loads wrote, which were limited by their plans and gateways"])
      #expect(failure { _ = try self.demand(path, maximumSteps: 4) }?.contains("--max-demand-steps") == true)
    }
  }

  @Test("Simulators are a demand by their mean; of both kinds one has to be chosen")
  func simulators() throws {
    try inFolder { path in
      try append(LedgerComparisonTests.ledger(rejected: 0).ledger, to: path)
      let demand = try demand(path)
      #expect(demand.perS == [1_000.0 / 60] && demand.endS == 60 && demand.notes.first?.contains("mean") == true)
      #expect(failure { _ = try self.demand(path, "load") } == "has no run with rates")
      try append([1], at: "2026-11-27T10:00:00.000Z", to: path)
      #expect(failure { _ = try self.demand(path) }?.contains("add kind=load or kind=simulate") == true)
      #expect(try self.demand(path, "simulate") == demand)
      #expect(try self.demand(path, "load").perS == [1])
    }
  }

  @Test("A history without loads and ledgers, or with documents that are none, has no demand")
  func nothing() throws {
    try inFolder { path in
      var capacity = CapacityDocument()
      capacity.sustainedPerS = 7
      try RunHistory(appendingTo: path).append(capacity, document: "{}")
      #expect(failure { _ = try self.demand(path) } == "has no run with rates")
      for document in ["text", "{}", #"{"series":3}"#, #"{"series":[{"t_s":"x","written":-4}]}"#] {
        var result = RunResult()
        result.started = "2026-11-27T10:00:00.000Z"
        try RunHistory(appendingTo: path).append(result, document: document)
      }
      #expect(failure { _ = try self.demand(path) } == "has no run with rates")
    }
  }
}
