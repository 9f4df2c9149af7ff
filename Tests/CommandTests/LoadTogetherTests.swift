import Foundation
import Measurement
import TestSupport
import Testing

/// Loads that several processes share, as engines start them.
@Suite("load: together", .waiting)
struct LoadTogetherTests {
  @Test("Four ranks take their parts of a whole from the engine, begin at one time, and add up to the whole")
  func gang() throws {
    try SimulatorProcess.inFolder { command in
      // Soon enough, and late enough for a machine that starts four processes slowly.
      var start = 5.0
      var results: [RunResult] = []
      var books: Ledger?
      for _ in 0..<3 {
        // For each try, since ranks that were not late have sent their parts.
        let simulator = try SimulatorProcess(["--reject", "every=700,status=8"], in: command)
        try Data(
          """
          gateway = "127.0.0.1:\(simulator.gateway)"
          identity = "ids"
          segment = "auto"
          of_whole = true
          rate = "2k/s"
          count = 4001
          connections = 6
          """.utf8
        ).write(to: command.folder.appending(path: "plan.toml"))
        let planned = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: start))
        let runs = try (0..<4).map { rank in
          try RunningProcess(
            "env",
            [
              "SLURM_PROCID=\(rank)", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0", "SLURMD_NODENAME=n\(rank)",
              Command.path, "load", "--plan", "plan.toml", "--start-at", planned, "--output", "\(rank).json",
            ] + LoadProcess.patience, in: command.folder)
        }
        let outcomes = try runs.map { try $0.end() }
        books = try simulator.stop()
        let isLate = outcomes.contains {
          $0.status == 69 && $0.errors.contains("apnscope: late: the schedule was to begin")
        }
        guard isLate else {
          #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes.map(\.errors))")
          results = try (0..<4).map { try LoadProcess.result("\($0).json", in: command) }
          #expect(results.allSatisfy { $0.start?.planned == planned.replacing("Z", with: ".000Z") })
          break
        }
        start *= 4
      }
      let ledger = try #require(books)
      #expect(results.map { $0.plan["segment"] } == (1...4).map { .text("\($0)/4") })
      #expect(results.map { $0.labels ?? [:] } == (0..<4).map { ["node": "n\($0)"] })
      #expect(results.map(\.notifications.generated) == [1_001, 1_000, 1_000, 1_000])
      #expect(results.map(\.connections.asked) == [2, 2, 1, 1])
      for result in results {
        #expect(result.plan["count"] == .number(4_001) && result.plan["connections"] == .number(6))
        #expect((result.start?.lateS ?? 9) < 1.5 && result.start?.missed == 0)
      }
      #expect(results.map(\.sendings.accepted).reduce(0, +) == ledger.gateway.accepted)
      #expect(ledger.gateway.accepted + ledger.gateway.rejected.values.reduce(0, +) >= 4_001)
    }
  }

  @Test("A start that has passed is 69 with a sentence, or what was due is left out and counted")
  func late() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let arguments = ["--rate", "1k/s", "--for", "60s", "--start-at"]
      func past(_ seconds: Double) -> String {
        ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -seconds))
      }
      let failed = try LoadProcess.start(simulator, arguments + [past(57)], in: command).end()
      #expect(failed.status == 69)
      #expect(failed.errors.contains("apnscope: late: the schedule was to begin at 20"), "\(failed.errors)")
      // At least two of the sixty seconds are left, however slow the start of a process is.
      let skipping = try LoadProcess.start(simulator, arguments + [past(50), "--late", "skip"], in: command).end()
      let ledger = try simulator.stop()
      if skipping.status == 69 { return #expect(skipping.errors.contains("and has ended")) }
      #expect(skipping.status == 0, "\(skipping.errors)")
      let result = try LoadProcess.result(in: command)
      let missed = try #require(result.start?.missed)
      #expect(missed >= 50_000 && result.schedule.skipped == missed)
      #expect(result.notifications.generated + missed + result.schedule.unsent == 60_000)
      #expect(result.notifications.accepted == ledger.gateway.accepted)
      #expect(result.verdict.outcome == .unproven && skipping.output.contains("due before the run began"))
    }
  }

  @Test("The printed plan has the segment as it was given, and which one that is here")
  func printedPlan() throws {
    try Command.inFolder { command in
      func plan(_ arguments: [String], _ variables: [String]) throws -> Outcome {
        try RunningProcess(
          "env", variables + [Command.path, "load", "--plain", "--print-plan"] + arguments, in: command.folder
        ).end()
      }
      let slurm = ["SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0"]
      let printed = try plan(
        ["--segment", "auto", "--of-whole", "--connections", "10", "--count", "10", "--start-at", "next:30s"], slurm)
      #expect(printed.status == 0, "\(printed.errors)")
      for line in [
        "segment = \"auto\"  # 2/4: SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4", "of_whole = true", "count = 10",
        "connections = 10", "start_at = \"next:30s\"", "late = \"fail\"",
      ] { #expect(printed.output.contains("\n\(line)\n"), "\(line) is not in \(printed.output)") }
      // It is a plan, which says the same again.
      try Data(printed.output.utf8).write(to: command.folder.appending(path: "p.toml"))
      let again = try RunningProcess(
        "env", slurm + [Command.path, "load", "--plan", "p.toml", "--print-plan"], in: command.folder
      ).end()
      #expect(again.output == printed.output, "\(again.errors)")
      for (arguments, words) in [
        (["--segment", "2/4", "--of-whole", "--connections", "3"], "3 connections cannot be divided among 4 segments"),
        (
          ["--segment", "2/4", "--of-whole", "--connections", "4", "--count", "3"], "3 notifications cannot be divided"
        ),
        (["--segment", "auto/3"], "asks for 3 segments"), (["--late", "skip"], "--late skip needs --start-at"),
        (["--segment", "auto", "--threshold", "unknown<1,abort"], "a segment knows only its part"),
        (["--start-at", "12:00"], "expected a time with its zone"), (["--segment", "auto/0"], "expected a part"),
      ] {
        let refused = try plan(arguments, slurm)
        #expect(refused.status == 64 && refused.errors.contains(words), "\(arguments): \(refused.errors)")
      }
    }
  }
}
