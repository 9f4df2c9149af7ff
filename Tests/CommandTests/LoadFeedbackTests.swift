import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope load --poll-feedback` as a process: three books of tuples, the comparison, and what is typed wrongly.
@Suite("load --poll-feedback", .waiting)
struct LoadFeedbackTests {
  private static let options = [
    "--rate", "150/s", "--for", "12s", "--tokens", "100", "--connections", "2", "--threads", "1",
  ]

  private static func simulator(in command: Command) throws -> SimulatorProcess {
    try SimulatorProcess(
      ["--devices-uninstalled", "20%", "--reject", "uninstalled=5%", "--keylog", "keys.log"], in: command)
  }

  @Test(
    "The load, the simulator and a capture have the same tuples",
    .enabled(if: LoopbackCapture.isPossible && ExternalTool.isInstalled("python3")))
  func books() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try Self.simulator(in: command)
      let gateway = try LoopbackCapture(port: simulator.gateway, file: "gateway.pcapng", in: command)
      let service = try LoopbackCapture(port: simulator.feedback, file: "feedback.pcapng", in: command)
      let load = try LoadProcess.start(
        simulator, Self.options + ["--poll-feedback", "127.0.0.1:\(simulator.feedback),every=500ms"], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      try gateway.end()
      try service.end()
      let result = try LoadProcess.result(in: command)
      let feedback = try #require(result.feedback)
      #expect(feedback.polls == feedback.complete && feedback.complete >= 2)
      #expect(feedback.tuples == ledger.feedback.tuplesSent && feedback.listed > 0)
      #expect((result.notifications.pruned ?? 0) > 0 && feedback.unknown == 0)
      #expect(outcome.output.contains(" pruned") && outcome.output.contains("listed         "))
      #expect(result.series.allSatisfy { $0.pruned != nil && $0.feedbackTuples != nil })
      #expect(result.plan["poll_feedback"] == .text("127.0.0.1:\(simulator.feedback),every=500ms"))

      let ports = ["--port", "\(simulator.gateway)=gateway", "--port", "\(simulator.feedback)=feedback"]
      let decoded = try command.run(
        ["decode", "--keys", "keys.log"] + ports + ["--type", "feedback", "feedback.pcapng"])
      #expect(decoded.status == 0, "\(decoded.errors)")
      let tuples = decoded.output.split(separator: "\n").count { $0.contains("\"type\":\"feedback\"") }
      #expect(tuples == feedback.tuples)
      let inspected = try command.run(
        ["inspect", "--keys", "keys.log", "--format", "json"] + ports + ["gateway.pcapng", "feedback.pcapng"])
      #expect(inspected.status == 0, "\(inspected.errors)")
      try command.write(Array(inspected.output.utf8), "inspection.json")
      let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/books").path
      let books = try command.shell("'\(script)' run.json simulator.ledger.json inspection.json")
      #expect(books.status == 0, "\(books.output)\(books.errors)")
      #expect(books.output.contains("feedback polls"))
      let report = try command.run("report", "run.json", "--ledger", "simulator.ledger.json", "--output", "page")
      #expect(report.status == 0, "\(report.errors)")
      let page = try command.read("page/report.html")
      #expect(page.contains("feedback tuples") && page.contains("Notifications left out"))
    }
  }

  @Test("--no-prune polls and counts, and sends everything")
  func notPruned() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try Self.simulator(in: command)
      let load = try LoadProcess.start(
        simulator,
        Self.options + ["--poll-feedback", "127.0.0.1:\(simulator.feedback),every=500ms", "--no-prune"], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      let feedback = try #require(result.feedback)
      #expect(!feedback.prunes && result.notifications.pruned == 0 && feedback.sentToListed > 0)
      #expect(feedback.tuples == ledger.feedback.tuplesSent)
      #expect(result.notifications.accepted + result.notifications.rejected == result.notifications.generated)
    }
  }

  @Test("A feedback service that is not there is a warning, and the run is what it is without")
  func unreachable() throws {
    try SimulatorProcess.inFolder { command in
      let nobody = try ReservedPort()
      let simulator = try SimulatorProcess(["--plain"], in: command)
      let load = try LoadProcess.start(
        simulator,
        [
          "--plain", "--count", "3000", "--rate", "1k/s", "--poll-feedback",
          "127.0.0.1:\(nobody.number),every=100ms",
        ], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("! the feedback service was not reachable in"))
      _ = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      #expect(result.feedback?.complete == 0 && result.notifications.accepted == 3_000)
      #expect(result.verdict.outcome == .proven)
    }
  }

  @Test("What is typed wrongly, or goes to another machine, is refused: 64")
  func usage() throws {
    for (arguments, words) in [
      (["--poll-feedback", "localhost,every=10"], "every=10s"), (["--poll-feedback", "localhost,every=1ms"], "100ms"),
      (["--poll-feedback", "localhost,often=1s"], "every=10s"), (["--poll-feedback", "2196"], "HOST"),
      (["--no-prune"], "--no-prune needs --poll-feedback"),
      (["--poll-feedback", "192.0.2.1"], "192.0.2.1 is not this machine"),
      (["--poll-feedback", "localhost", "--max-pruned", "0"], "--max-pruned must be at least 1"),
      (["--poll-feedback", "localhost", "--max-pruned", "1G"], "--max-pruned must be at most 100M"),
      (["--poll-feedback", "localhost", "--max-tuples", "0"], "--max-tuples must be at least 1"),
      (["--poll-feedback", "localhost", "--poll-timeout", "0s"], "--poll-timeout must be more than 0s"),
      (["--poll-feedback", "localhost", "--replay", "-"], "--replay and --poll-feedback exclude each other"),
    ] {
      let outcome = try Command.inFolder { try $0.run(["load", "--plain", "--print-plan"] + arguments) }
      #expect(outcome.status == 64 && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
    }
  }

  @Test("A plan file has the options of polls, and a replay on the command line leaves them out")
  func planFile() throws {
    try Command.inFolder { command in
      let printed = try command.run(
        "load", "--plain", "--poll-feedback", "localhost,every=1m", "--no-prune", "--max-pruned", "5k", "--print-plan")
      #expect(printed.output.contains("poll_feedback = \"localhost:2196,every=60s\""))
      #expect(printed.output.contains("no_prune = true") && printed.output.contains("max_pruned = 5000"))
      try command.write(Array(printed.output.utf8), "plan.toml")
      let again = try command.run("load", "--plan", "plan.toml", "--print-plan")
      #expect(again.output == printed.output, "\(again.errors)")
      let trace = Command.traces.appending(path: "plain-error.pcap.jsonl").path
      let replay = try command.run("load", "--plan", "plan.toml", "--replay", trace, "--print-plan")
      #expect(replay.status == 0 && !replay.output.contains("poll_feedback"), "\(replay.errors)")
    }
  }
}
