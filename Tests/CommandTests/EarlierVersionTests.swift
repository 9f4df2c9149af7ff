import Foundation
import TestSupport
import Testing

/// Outputs that apnscope 0.1.0 wrote stay readable.
@Suite("outputs of 0.1.0", .waiting)
struct EarlierVersionTests {
  private static let kept = Command.traces.deletingLastPathComponent().appending(path: "Tests/MeasurementTests/Results")

  /// A folder with a result, the ledger of its gateway, a capacity search and records of a trace.
  private func inFolder(_ body: (Command) throws -> Void) throws {
    try Command.inFolder { command in
      for (name, ending) in [("load", "json"), ("ledger", "json"), ("capacity", "json"), ("records", "jsonl")] {
        try FileManager.default.copyItem(
          at: Self.kept.appending(path: "\(name)-0.1.0.\(ending)"),
          to: command.folder.appending(path: "\(name).\(ending)"))
      }
      try body(command)
    }
  }

  @Test(
    "Reports are made of a result with its ledger, of a capacity search and of records",
    arguments: [
      ("load.json --ledger ledger.json", "**6,402,846** notifications were generated: 6,402,809 accepted, 37 rejected"),
      ("capacity.json", "| **154,358/s** |"),
      ("records.jsonl", "**66** notifications: 7 accepted, 1 rejected, 26 discarded, 32 unknown."),
    ])
  func reports(arguments: String, text: String) throws {
    try inFolder { command in
      let outcome = try command.shell("$apnscope report \(arguments) --output out")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let page = try command.read("out/report.md")
      #expect(page.contains(text) && !page.contains("could not be read"), "\(page.prefix(3_000))")
    }
  }

  @Test("Two results are compared, and a result has all of its figures")
  func comparison() throws {
    try inFolder { command in
      let outcome = try command.shell("cp load.json again.json; $apnscope compare load.json again.json")
      #expect(outcome.status == 0, "\(outcome.errors)")
      for figure in ["accepted_per_s", "send_lag_p99", "rejected_rate", "cpu_per_notification"] {
        #expect(outcome.lines.contains { $0.hasPrefix("\(figure) ") && $0.contains("1.000") }, "\(outcome.output)")
      }
    }
  }
}
