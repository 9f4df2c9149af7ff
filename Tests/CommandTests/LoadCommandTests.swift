import Foundation
import Glibc
import LoadTest
import Measurement
import PushModel
import TestSupport
import Testing

/// `apnscope load` against `apnscope simulate`, both as processes.
@Suite("load", .waiting)
struct LoadCommandTests {
  /// Runs a load to its end.
  private func load(
    _ simulator: SimulatorProcess, _ arguments: [String], in command: Command
  ) throws -> (outcome: Outcome, result: RunResult) {
    let outcome = try LoadProcess.start(simulator, arguments, in: command).end()
    return (outcome, try LoadProcess.result(in: command))
  }

  private func expectBalanced(_ result: RunResult, _ ledger: Ledger) {
    let (notifications, sendings) = (result.notifications, result.sendings)
    #expect(
      notifications.generated == notifications.accepted + notifications.rejected + notifications.unknown
        + notifications.abandoned)
    #expect(sendings.written == sendings.accepted + sendings.rejected + sendings.discarded + sendings.unknown)
    #expect(ledger.gateway.accepted >= sendings.accepted)
    #expect(ledger.gateway.accepted <= sendings.accepted + sendings.unknown)
    #expect(ledger.gateway.received <= sendings.written + sendings.binary.markers)
    #expect(result.verdict.invariants.allSatisfy { $0.holds })
  }

  @Test("A count is sent exactly, and both books say so", arguments: ["1.2", "1.3"])
  func count(tls: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let (outcome, result) = try load(
        simulator, ["--count", "20k", "--connections", "3", "--tls", tls], in: command)
      let ledger = try simulator.stop()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("notifications  20,000 = 20,000 accepted"))
      expectBalanced(result, ledger)
      let suites = try #require(result.connections.suites)
      #expect(suites.keys.allSatisfy { $0.hasPrefix("TLS \(tls) ") && $0.hasSuffix("SHA384") })
      #expect(suites.values.reduce(0, +) == result.connections.opened)
      #expect(result.notifications.accepted == 20_000)
      #expect(ledger.gateway.accepted == 20_000)
      // One for each connection that carried something.
      #expect(result.sendings.binary.markers == ledger.gateway.rejected["2"])
      #expect(ledger.gateway.received == 20_000 + result.sendings.binary.markers)
      // As fast as it goes every write is a record that the next notification would not have fitted into, but for the last
      // of each connection.
      let reasons = result.batches.flushReasons
      #expect(reasons[.idle, default: 0] + reasons[.drain, default: 0] <= 3, "\(reasons)")
    }
  }

  /// A refused notification of command 0 ends its connection without a word, and is looked for: connections carry suspects
  /// alone, and end.
  @Test("Notifications without identifiers that end connections in silence are found, and the books balance")
  func silentCulprits() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let (outcome, result) = try load(
        simulator,
        ["--command", "0", "--faults", "oversize=2e-4", "--connections", "2", "--count", "20k", "--warm-up", "0s"],
        in: command)
      let ledger = try simulator.stop()
      // Of those that were given up nothing tells whether they were accepted.
      #expect(outcome.status == 70, "\(outcome.output)\(outcome.errors)")
      #expect(result.verdict.invariants.map(\.holds) == [true, true, false])
      #expect(outcome.output.contains("\n✗ markers leave nothing unknown  \(result.notifications.abandoned) unknown"))
      #expect(result.notifications.abandoned > 0 && result.notifications.unproven == result.notifications.abandoned)
      // What it calls accepted was; the rest of what the gateway accepted came twice, or was given up.
      #expect(ledger.gateway.accepted >= result.sendings.accepted)
      #expect(ledger.gateway.accepted <= result.sendings.accepted + result.sendings.unknown)
    }
  }

  @Test("What is discarded after a rejection is sent again, until everything is settled")
  func rejections() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=700,status=7", "--shutdown-after", "5000"], in: command)
      let (outcome, result) = try load(
        simulator,
        ["--count", "20k", "--connections", "2", "--rate", "20k/s", "--faults", "missing-token=1e-3,malformed=5e-4"],
        in: command)
      let ledger = try simulator.stop()
      #expect(outcome.status == 0, "\(outcome.errors)")
      expectBalanced(result, ledger)
      #expect(result.notifications.generated == 20_000)
      #expect(result.notifications.unknown == 0)
      #expect(ledger.gateway.accepted == result.notifications.accepted)
      #expect(result.binary.errorResponses["7"] == ledger.gateway.rejected["7"])
      #expect(result.binary.errorResponses["128"] == ledger.gateway.rejected["128"])
      #expect(
        ledger.gateway.rejected["2"] == (result.binary.errorResponses["2"] ?? 0)
          + (result.sendings.binary.markersAnswered ?? 0))
    }
  }

  @Test(
    "Three books: the generator's, the gateway's and the capture's agree, to each notification",
    .enabled(if: LoopbackCapture.isPossible))
  func threeBooks() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=900,status=7"], in: command)
      let capture = try LoopbackCapture(port: simulator.gateway, file: "run.pcapng", in: command)
      // Until connections have ended because they are worn out, are refused, and are shut down.
      let running = try LoadProcess.start(
        simulator,
        [
          "--for", "10m", "--connections", "3", "--threads", "2", "--rate", "3k/s", "--connection-count", "500",
          "--faults", "invalid-token=5e-4,malformed=1e-3", "--keylog", "run.keys",
        ], in: command)
      func hasAnswered(_ isWanted: (_ identifier: Int, _ status: Int) -> Bool) throws -> Bool {
        try simulator.events().contains { event in
          guard let identifier = event["identifier"] as? Int, let status = event["status"] as? Int else { return false }
          return isWanted(identifier, status)
        }
      }
      #expect(try waitUntil { try hasAnswered { $0 != CapturedFates.marker && $1 != 10 } })
      #expect(try waitUntil { try hasAnswered { identifier, _ in identifier == CapturedFates.marker } })
      // Again, should no connection have been one that it can shut down.
      #expect(
        try waitUntil {
          simulator.send(SIGUSR1)
          return try hasAnswered { $1 == 10 }
        })
      running.send(SIGINT)
      let outcome = try running.end()
      let result = try LoadProcess.result(in: command)
      #expect(outcome.status == 130, "\(outcome.errors)")
      let ledger = try simulator.stop()
      try capture.end()
      expectBalanced(result, ledger)
      for cause in [ConnectionEnd.lifetime, .rejected, .shutdown] {
        #expect((result.connections.closed[cause] ?? 0) > 0)
      }

      let arguments = ["--port", "\(simulator.gateway)=gateway", "--keys", "run.keys", "run.pcapng"]
      let inspected = try RunningProcess(
        Command.path, ["inspect", "--format", "json"] + arguments, in: command.folder
      ).end()
      #expect(inspected.status == 0)
      let report = try #require(try JSONSerialization.jsonObject(with: Data(inspected.output.utf8)) as? [String: Any])
      let summary = try #require(report["summary"] as? [String: Any])
      let fates = try #require(report["fates"] as? [String: Int])
      // What was handed to the transport and not sent when the connection ended is in no capture. It was discarded, or is
      // unknown where the gateway shut down a connection that had carried nothing yet.
      let captured = try #require(summary["notifications"] as? Int)
      let unsent = result.sendings.written + result.sendings.binary.markers - captured
      #expect(unsent >= 0)
      #expect(fates["accepted"] == result.sendings.accepted)
      #expect(fates["accepted"] == ledger.gateway.accepted)
      // A marker that was written while an error response was under way was not answered, but discarded.
      let answered = try #require(result.sendings.binary.markersAnswered)
      let lostMarkers = result.sendings.binary.markers - answered
      #expect(lostMarkers >= 0)
      #expect(fates["rejected"] == result.sendings.rejected + answered)
      let (discarded, unknown) = (try #require(fates["discarded"]), try #require(fates["unknown"]))
      #expect(discarded + unknown == result.sendings.discarded + result.sendings.unknown + lostMarkers - unsent)
      #expect(discarded <= result.sendings.discarded + lostMarkers)
      #expect(unknown <= result.sendings.unknown + lostMarkers)
      #expect(report["error_count"] as? Int == ledger.gateway.binary.errorResponses.values.reduce(0, +))

      // Each by its identifier: number n of the stream carries n + 1.
      let decoded = try RunningProcess(Command.path, ["decode"] + arguments, in: command.folder).end()
      let seen = try CapturedFates(decoded.output)
      #expect(seen.accepted.count == result.notifications.accepted)
      // Of two event loops each sends every second one; when they were interrupted, one may have been ahead.
      let numbers = (seen.accepted + seen.rejected.map(\.identifier)).sorted()
      #expect(numbers.count == result.notifications.generated)
      for first in [1, 2] {
        let own = numbers.filter { $0 % 2 == first % 2 }
        #expect(own == Array(stride(from: first, through: own.last ?? 0, by: 2)))
      }
      let refused = try simulator.events().filter { $0["event"] as? String == "error_response" }.compactMap { event in
        (event["identifier"] as? Int).flatMap { identifier in
          (event["status"] as? Int).map { CapturedFates.Rejection(identifier: identifier, status: $0) }
        }
      }.filter { $0.identifier != CapturedFates.marker && $0.status != 10 }
      #expect(Set(refused) == Set(seen.rejected) && refused.count == seen.rejected.count)
      var plan = WorkloadPlan()
      plan.faults = [.invalidToken: 1e-3]
      let workload = try Workload(plan)
      let bad = Set(numbers.filter { workload.fault(of: UInt64($0 - 1)) != nil })
      #expect(bad.isSubset(of: seen.rejected.map(\.identifier)))
      #expect(bad.isSuperset(of: seen.rejected.filter { $0.status == 8 }.map(\.identifier)))
    }
  }

  @Test("A threshold that does not hold is exit code 99, and the result says which")
  func thresholds() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let (outcome, result) = try load(
        simulator,
        ["--count", "1k", "--threshold", "accepted_per_s>100G", "rejected_rate<1%", "--threshold", "unknown<1"],
        in: command)
      _ = try simulator.stop()
      #expect(outcome.status == 99)
      #expect(outcome.output.contains("✗ accepted_per_s>100G"))
      #expect(result.verdict.thresholds.map(\.passed) == [false, true, true])
    }
  }

  @Test("Ctrl-C ends a run in good order, with its result")
  func interrupt() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--metrics", "127.0.0.1:0"], in: command)
      let running = try LoadProcess.start(simulator, ["--rate", "500/s", "--for", "10m"], in: command)
      #expect(simulator.hasReceived())
      running.send(SIGINT)
      let outcome = try running.end()
      let ledger = try simulator.stop()
      #expect(outcome.status == 130)
      let result = try LoadProcess.result(in: command)
      expectBalanced(result, ledger)
      #expect(result.notifications.accepted == ledger.gateway.accepted)
      #expect(result.notifications.generated > 0)
    }
  }

  @Test("A gateway that cannot be reached is exit code 69, in bounded time")
  func unreachable() throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try RunningProcess(
        Command.path, ["load", "--identity", "ids", "--gateway", "127.0.0.1:1", "--give-up", "500ms"],
        in: command.folder
      ).end()
      #expect(outcome.status == 69)
      let line = "apnscope: 127.0.0.1:1:"
      #expect(outcome.errors == "\(line) trying again: Connection refused\n\(line) Connection refused\n")
    }
  }

  @Test(
    "What is wrong is said before anything is sent",
    arguments: [
      (["--identity", "ids", "--gateway", "192.0.2.1:2195"], "--allow-remote"),
      ([], "--identity"),
      (["--identity", "ids", "--rate", "fast"], "rate"),
      (["--identity", "ids", "--faults", "missing-tokens=1e-4"], "Did you mean 'missing-token'?"),
      (["--identity", "ids", "--threshold", "speed>1"], "threshold"),
      (["--identity", "ids", "--segment", "5/4"], "segment"),
      (["--identity", "ids", "--payload", "1..5"], "20"),
      (["--identity", "ids", "--connections", "0"], "connections"),
    ])
  func usage(arguments: [String], text: String) throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try RunningProcess(Command.path, ["load"] + arguments, in: command.folder).end()
      #expect(outcome.status == 64, "\(outcome.errors)")
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
    }
  }

  @Test("The plan that is printed is a plan file that comes to the same plan")
  func printedPlan() throws {
    try SimulatorProcess.inFolder { command in
      let arguments = [
        "--identity", "ids", "--stage", "10s:0..50k/s", "--stage", "1m:50k/s", "--command", "0=1,2=9", "--payload",
        "100..200=3,2000=1", "--priority", "10=1,none=1", "--faults", "oversize=1e-5", "--batch", "7", "--lifetime",
        "30s",
        "--threshold", "send_lag_p99<5ms",
      ]
      let first = try RunningProcess(Command.path, ["load", "--print-plan"] + arguments, in: command.folder).end()
      #expect(first.status == 0, "\(first.errors)")
      try command.write(Array(first.output.utf8), "plan.toml")
      let second = try RunningProcess(
        Command.path, ["load", "--print-plan", "--plan", "plan.toml"], in: command.folder
      ).end()
      #expect(second.status == 0, "\(second.errors)")
      #expect(second.output == first.output)
      let typed = try RunningProcess(
        Command.path, ["load", "--print-plan", "--plan", "plan.toml", "--connections", "9"], in: command.folder
      ).end()
      #expect(typed.output.contains("connections = 9"))
    }
  }

  @Test("A key that a plan does not have is an error with a suggestion")
  func unknownKey() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("identity = \"ids\"\nconections = 3\n".utf8), "plan.toml")
      let outcome = try RunningProcess(Command.path, ["load", "--plan", "plan.toml"], in: command.folder).end()
      #expect(outcome.status == 65)
      #expect(outcome.errors.contains("did you mean 'connections'?"), "\(outcome.errors)")
    }
  }
}

/// What became of each notification, from the records of a capture and the protocol's one rule: an error response accepts
/// everything before the notification that it names.
private struct CapturedFates {
  struct Rejection: Hashable {
    var identifier: Int
    var status: Int
  }

  static let marker = 0xffff_ffff

  private(set) var accepted: [Int] = []
  private(set) var rejected: [Rejection] = []

  /// Markers are left out.
  init(_ records: String) throws {
    var sent: [Int: [Int]] = [:]
    var answers: [Int: (index: Int, status: Int)] = [:]
    for line in records.split(separator: "\n") {
      let record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      guard let connection = record["connection"] as? Int else { continue }
      switch record["type"] as? String {
      case "notification": sent[connection, default: []].append(try #require(record["identifier"] as? Int))
      case "error_response":
        #expect(answers[connection] == nil)
        answers[connection] = (try #require(record["notification"] as? Int), try #require(record["status"] as? Int))
      default: break
      }
    }
    for (connection, answer) in answers {
      let identifiers = sent[connection] ?? []
      let isShutdown = answer.status == 10
      accepted += identifiers.prefix(answer.index + (isShutdown ? 1 : 0))
      if !isShutdown { rejected.append(Rejection(identifier: identifiers[answer.index], status: answer.status)) }
    }
    rejected.removeAll { $0.identifier == Self.marker }
  }
}
