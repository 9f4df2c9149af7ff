import Foundation
import Reporting
import TestSupport
import Testing

/// `apnscope capacity` against its own gateway. Trials are as short as they can be: tested is the way, not the machine.
@Suite("capacity", .waiting)
struct CapacityCommandTests {
  private func document(_ command: Command, _ path: String = "out/capacity.json") throws -> CapacityDocument {
    try expectValid(file: path, .capacity, in: command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(CapacityDocument.self, from: Data(contentsOf: command.folder.appending(path: path)))
  }

  /// Trials of the least length without sweeps, against a gateway that reads 100 KB a second.
  private func search(
    _ arguments: [String], in command: Command
  ) throws -> (outcome: Outcome, document: CapacityDocument) {
    let simulator = try SimulatorProcess(["--read-rate", "100KB", "--no-feedback"], in: command)
    let outcome = try RunningProcess(
      Command.path,
      [
        "capacity", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--payload", "100",
        "--connections-sweep", "none", "--batch-sweep", "none", "--error-sweep", "none", "--output", "out",
      ] + LoadProcess.patience + arguments, in: command.folder
    ).end()
    _ = try simulator.stop()
    return (outcome, try document(command))
  }

  @Test("A search makes its trials, tells of each, and reports the rate that passed")
  func searches() throws {
    try SimulatorProcess.inFolder { command in
      // With so much patience every rate passes, on any machine.
      let (outcome, document) = try search(
        [
          "--trial", "500ms", "--settle", "100ms", "--confirm", "500ms", "--lag-limit", "10m", "--max-trials", "2",
          "--target", "1k", "--within", "1h", "--history", "runs.sqlite",
        ], in: command)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let rate = try #require(document.sustainedPerS)
      let burst = try #require(document.trials.first)
      #expect(burst.purpose == .burst && burst.offeredPerS == nil)
      #expect(document.trials.map(\.number) == Array(1...document.trials.count))
      #expect(document.trials.contains { $0.verdict == .passed && $0.offeredPerS == rate })
      let range = try #require(document.sustainedRange)
      #expect(range.lowerPerS < rate && (range.upperPerS ?? .infinity) > rate)
      // One line for each on standard error, and the answer on standard output.
      #expect(outcome.errors.split(separator: "\n").count { $0.hasPrefix("trial ") } == document.trials.count)
      #expect(outcome.output.hasPrefix("the gateway "))
      #expect(outcome.output.contains("1,000 take"), "\(outcome.output)")
      #expect(outcome.output.contains("within 60 min: 0.278/s, 1 connection"), "\(outcome.output)")
      let names = try FileManager.default.contentsOfDirectory(
        atPath: command.folder.appending(path: "out").path)
      #expect(Set(names).isSuperset(of: ["capacity.json", "report.html", "report.md", "chart-1.svg"]))
      #expect(try command.read("out/report.html").contains("All trials"))
      // The saved document makes the same report again, but for how it was made.
      let again = try command.run("report", "out/capacity.json", "--output", "again")
      #expect(again.status == 0, "\(again.errors)")
      #expect(try command.read("again/capacity.json") == command.read("out/capacity.json"))
      #expect(try command.read("again/chart-1.svg") == command.read("out/chart-1.svg"))
      func body(_ page: String) -> Substring {
        page.prefix(upTo: page.range(of: "<footer>")?.lowerBound ?? page.endIndex)
      }
      #expect(try body(command.read("again/report.html")) == body(command.read("out/report.html")))
      #expect(try command.run("report", "out/capacity.json", "--ledger", "x", "--output", "no").status == 64)
      #expect(try command.run("history", "runs.sqlite", "--figure", "sustained_per_s").output.contains("median"))
    }
  }

  /// On a machine that is busy the gateway's clock is late: it is slower than it was told then, but never faster.
  @Test("No rate is found that the gateway cannot take", .enabled(if: TestRun.isWhole))
  func throttled() throws {
    try SimulatorProcess.inFolder { command in
      let (outcome, document) = try search(
        [
          "--trial", "700ms", "--settle", "200ms", "--confirm", "1s", "--precision", "8%", "--lag-limit", "100ms",
          "--max-trials", "12",
        ], in: command)
      let burst = try #require(document.trials.first)
      let each = Double(burst.writtenBytes) / Double(burst.sendings.written)
      #expect(outcome.status == (document.sustainedPerS == nil ? 99 : 0), "\(outcome.errors)")
      if document.ending == .found, let rate = document.sustainedPerS {
        #expect(rate * each < 108_000, "\(rate * each) B/s\n\(outcome.errors)")
      }
    }
  }

  @Test("Sweeps teach the laws, and their checks stand beside them; what is interrupted reports what it has: 130")
  func sweepsAndInterrupt() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--reject", "every=200", "--no-feedback", "--read-rate", "500KB"], in: command)
      // Nothing passes with --error-limit 0, so the search ends after few trials and the sweeps begin.
      let run = try RunningProcess(
        Command.path,
        [
          "capacity", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--trial", "500ms",
          "--settle", "0s", "--max-trials", "1", "--error-limit", "0", "--connections-sweep", "1,2,3",
          "--batch-sweep", "8", "--error-sweep", "1%,2%", "--format", "json", "--output", "out",
        ] + LoadProcess.patience, in: command.folder)
      let isNearlyDone = waitUntil { run.errors.matches(of: /errors .* measured/).count >= 2 || !run.isRunning }
      #expect(isNearlyDone)
      run.send(SIGINT)
      let outcome = try run.end()
      #expect(outcome.status == 130 || outcome.status == 99, "\(outcome.errors)")
      _ = try simulator.stop()
      let document = try document(command)
      // Those that something else on the machine disturbed were made again.
      let counted = document.trials.filter { $0.verdict != .void || $0.offeredPerS != nil }
      #expect(
        counted.map(\.purpose.rawValue).starts(with: [
          "burst", "search", "connections", "connections", "connections", "check", "batch", "errors",
        ]))
      #expect(counted.map(\.connections).prefix(6) == [1, 1, 1, 2, 3, 4])
      #expect(counted[1].verdict != .passed)
      // What the laws are made of; whether one comes of it is for the machine to say, and tested with made-up trials.
      let scaling = CapacityAnalysis.scaling(document.trials)
      #expect(scaling.fit.map(\.connections) == [1, 2, 3])
      #expect(scaling.check?.connections == 4)
      let errors = document.trials.filter { $0.purpose == .errors && $0.verdict == .measured }
      #expect(errors.count >= 2)
      #expect(errors.contains { $0.faultShare > 0 })
      for trial in errors {
        #expect((trial.lossMean != nil) == (trial.errors > 0))
        // Every 200th of those that are looked at is refused, and more are when some are bad on purpose.
        let refused = trial.errorShare * Double(trial.sendings.accepted + trial.errors)
        let expected = (0.005 + trial.faultShare) * Double(trial.sendings.accepted + trial.errors)
        #expect(abs(refused - expected) <= 2 + 6 * expected.squareRoot(), "\(refused) for \(expected)")
      }
      if let law = CapacityAnalysis(document).goodput {
        #expect(law.discardedPerError >= 0 && law.downtimeMs > 0)
      }
      #expect(try outcome.output == command.read("out/capacity.json"))
    }
  }

  @Test("A dry run says what would be done, and does nothing")
  func dryRun() throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try command.run(
        "capacity", "--identity", "ids", "--gateway", "127.0.0.1:1", "--dry-run", "--connections-sweep", "1,2,4",
        "--error-sweep", "none")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines.contains { $0.hasPrefix("3") && $0.contains("confirm, above") && $0.contains("32s") })
      #expect(outcome.lines.contains { $0.contains("connections: 1, 2, 4") })
      #expect(outcome.lines.contains { $0.contains("check") && $0.contains("connections: 6") })
      #expect(outcome.output.contains("notifications per write: 1, 4, 16, 64"))
      #expect(!outcome.output.contains("share of errors"))
      #expect(outcome.lines.last?.hasPrefix("about ") == true)
    }
  }

  @Test("What is wrong is said before a trial: 64, 69 or 74")
  func refused() throws {
    try SimulatorProcess.inFolder { command in
      for (arguments, status, text) in [
        (["--within", "10m"], 64, "--target"), (["--precision", "0"], 64, "--precision"),
        (["--connections-sweep", "1,1"], 64, "distinct whole numbers from 1 to 100k"),
        (["--error-sweep", "2"], 64, "shares up to 50%"),
        (["--within", "10", "--target", "1M"], 64, "a time, e.g. 250ms"),
        (["--handshake-timeout", "0s"], 64, "--handshake-timeout"), (["--payload", "3", "--dry-run"], 64, "20"),
        (["--markers", "off"], 64, "--markers"), (["--trial", "1ms"], 64, "--trial"),
        (["--give-up", "300ms"], 69, "127.0.0.1:1"), (["--output", "ids/ca.pem/no"], 74, "ids/ca.pem"),
      ] as [([String], Int32, String)] {
        let outcome = try RunningProcess(
          Command.path, ["capacity", "--identity", "ids", "--gateway", "127.0.0.1:1"] + arguments, in: command.folder
        ).end()
        #expect(outcome.status == status, "\(arguments) \(outcome.errors)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
      }
      #expect(try command.run("capacity").status == 64)
    }
  }
}
