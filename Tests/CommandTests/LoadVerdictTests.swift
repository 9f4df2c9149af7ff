import Foundation
import Measurement
import TestSupport
import Testing

/// A load is called proven only with what proves it; each of these gateways once got three ✓ and mostly status 0.
@Suite("load: verdicts", .waiting)
struct LoadVerdictTests {
  private func load(_ arguments: [String], in command: Command) throws -> (Outcome, RunResult) {
    let outcome = try RunningProcess(
      Command.path, ["load"] + arguments + ["--output", "run.json"], in: command.folder
    ).end()
    return (outcome, try LoadProcess.result(in: command))
  }

  @Test(
    "A gateway that closes right after the handshake is status 69, with a guess at the reason",
    arguments: [["--accept-then-close", "1"], ["--wrong-environment", SimulatorProcess.topic]])
  func closedAtOnce(treatment: [String]) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(treatment, in: command)
      let (outcome, result) = try load(
        [
          "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--for", "2s", "--rate", "1k/s",
          "--drain", "1s", "--connect-timeout", "5m", "--handshake-timeout", "5m",
        ], in: command)
      _ = try simulator.stop()
      #expect(outcome.status == 69, "\(outcome.output)\(outcome.errors)")
      #expect(result.verdict.outcome == .failed && result.notifications.accepted == 0)
      let guess = "right after the handshake: certificate of the other environment, or revoked?"
      #expect(outcome.output.contains("\n✗ ") && outcome.output.contains(guess), "\(outcome.output)")
      #expect(result.warnings.contains { $0.contains(guess) })

      // Its report is not green either: it said "The books balance; no threshold was set".
      #expect(try command.run("report", "run.json", "--output", "page").status == 0)
      let page = try command.read("page/report.md")
      #expect(page.contains("> **✗** The run has failed: ") && !page.contains("> **✓**"), "\(page.prefix(1_500))")
    }
  }

  @Test("A threshold with ,abort ends the run when it does not hold, and stays failed", arguments: [true, false])
  func abort(isKept: Bool) throws {
    try SimulatorProcess.inFolder { command in
      // Ten percent are rejected; after the end of the run nothing makes up for that.
      let simulator = try SimulatorProcess(["--plain", "--reject", "every=10"], in: command)
      let bound = isKept ? "20%" : "1%"
      let (outcome, result) = try load(
        [
          "--plain", "--gateway", "127.0.0.1:\(simulator.gateway)", "--rate", "300/s", "--for", isKept ? "4s" : "2m",
          "--threshold", "unknown<1M", "rejected_rate<\(bound),abort",
        ] + LoadProcess.patience, in: command)
      _ = try simulator.stop()
      let threshold = try #require(result.verdict.thresholds.last)
      #expect(threshold.expression == "rejected_rate<\(bound)" && threshold.passed == isKept, "\(threshold)")
      #expect(result.plan["threshold"] == .list(["unknown<1M", "rejected_rate<\(bound),abort"]))
      #expect(result.verdict.thresholds.first?.passed == true)
      #expect(result.verdict.invariants.allSatisfy { $0.holds })
      if isKept {
        #expect(outcome.status == 0 && result.interrupted == nil, "\(outcome.errors)")
      } else {
        #expect(outcome.status == 99 && result.interrupted?.cause == .threshold, "\(outcome.errors)")
        #expect(result.measuredS >= 2 && result.measuredS < 60)
        #expect((threshold.value ?? 0) > 0.01 && threshold.reason?.hasSuffix("which ended the run") == true)
        #expect(outcome.errors.contains("rejected_rate<1% does not hold: "), "\(outcome.errors)")
        #expect(outcome.output.contains("✗ rejected_rate<1%  ("), "\(outcome.output)")
        #expect(try command.run("report", "run.json", "--output", "page").status == 0)
        #expect(try command.read("page/report.md").contains("(ended by a threshold)"))
      }
    }
  }

  @Test(
    "An aborting threshold is of a whole run that goes on",
    arguments: [
      ["load", "--plain", "--count", "10", "--segment", "1/2", "--threshold", "unknown<1,abort"],
      ["merge", "a.json", "b.json", "--threshold", "unknown<1,abort"],
      ["capacity", "--plain", "--threshold", "unknown<1,abort"],
    ])
  func noAbort(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try command.run(arguments)
      #expect(outcome.status == 64 && outcome.errors.contains("abort"), "\(outcome.errors)")
    }
  }

  @Test("A gateway that reads and never answers is status 69, and its markers get no tick (badgw.py silent)")
  func silent() throws {
    try Command.inFolder { command in
      let gateway = try RunningProcess(
        "python3",
        [
          "-c",
          """
          import socket, sys, threading
          listener = socket.socket()
          listener.bind(("127.0.0.1", 0))
          listener.listen(8)
          print("port", listener.getsockname()[1], "end", file=sys.stderr, flush=True)
          def swallow(connection):
              while connection.recv(65536):
                  pass
          while True:
              threading.Thread(target=swallow, args=(listener.accept()[0],), daemon=True).start()
          """,
        ], in: command.folder)
      #expect(waitUntil { gateway.errors.contains("end") })
      let port = try #require(gateway.errors.firstMatch(of: #/port ([0-9]+)/#)?.output.1)
      let arguments = ["--plain", "--gateway", "127.0.0.1:\(port)", "--for", "1s", "--rate", "500/s", "--drain", "2s"]
      let (outcome, result) = try load(arguments + ["--marker-timeout", "500ms"], in: command)
      #expect(outcome.status == 69, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("\n✗ nothing was proven accepted: none of "), "\(outcome.output)")
      #expect(outcome.output.contains("--markers off"))
      #expect(!outcome.output.contains("✓ markers"))
      #expect(result.sendings.binary.markersAnswered == 0 && result.notifications.unproven > 0)

      // Without markers nothing can be proven: neither green nor red.
      let (unproven, open) = try load(arguments + ["--markers", "off"], in: command)
      #expect(unproven.status == 0, "\(unproven.output)\(unproven.errors)")
      #expect(unproven.output.contains("\n! written, not proven: "), "\(unproven.output)")
      #expect(open.verdict.outcome == .unproven && open.notifications.unknown == open.notifications.generated)
      gateway.send(SIGKILL)
    }
  }

  @Test("A certificate that one side refuses ends the run at its first attempt: 69, at once")
  func refusedCertificate() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      #expect(
        try command.run("identity", "--directory", "others", "--topic", SimulatorProcess.topic).status == 0)
      for (arguments, reason) in [
        (["--identity", "others"], "certificate verify failed"),
        (["--identity", "others", "--ca", "ids/ca.pem"], "alert"),
      ] {
        // It would be tried for 10 minutes.
        let outcome = try RunningProcess(
          Command.path,
          ["load", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "5", "--give-up", "10m"] + arguments,
          in: command.folder
        ).end()
        #expect(outcome.status == 69, "\(outcome.output)\(outcome.errors)")
        #expect((outcome.errors + outcome.output).contains(reason), "\(outcome.errors)\(outcome.output)")
        #expect(!outcome.errors.contains("trying again"))
      }
      _ = try simulator.stop()
    }
  }

  /// With TLS 1.3 the load has the handshake done before the gateway refuses it.
  @Test(
    "TLS that fails late leaves books whose connections agree", .enabled(if: ExternalTool.isInstalled("python3")))
  func lateFailure() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--tls", "1.2..1.3"], in: command)
      #expect(
        try command.run("identity", "--directory", "others", "--topic", SimulatorProcess.topic).status == 0)
      let (outcome, result) = try load(
        [
          "--gateway", "127.0.0.1:\(simulator.gateway)", "--identity", "others", "--ca", "ids/ca.pem", "--tls", "1.3",
          "--count", "50", "--drain", "5s",
        ], in: command)
      let ledger = try simulator.stop()
      #expect(outcome.status == 69, "\(outcome.output)\(outcome.errors)")
      #expect(ledger.gateway.handshakes == 0 && ledger.gateway.handshakeFailures > 0)
      #expect(result.connections.opened > 0)
      let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/books").path
      let books = try command.shell("'\(script)' run.json simulator.ledger.json")
      #expect(books.status == 0, "\(books.output)\(books.errors)")
      #expect(
        try command.run("report", "run.json", "--ledger", "simulator.ledger.json", "--output", "page").status == 0)
      #expect(try command.read("page/report.md").contains("| ✓ connections with a handshake |"))
    }
  }
}
