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

  private static let kept = Command.traces.deletingLastPathComponent()
    .appending(path: "Tests/MeasurementTests/Results/capacity-0.2.0.json").path

  @Test("A document answers questions that its search was not made with, on the terminal, as JSON and on a page")
  func questions() throws {
    try Command.inFolder { command in
      let target = try command.run("report", Self.kept, "--target", "80M", "--within", "10m")
      #expect(target.status == 0 && target.errors.isEmpty, "\(target.errors)")
      #expect(target.output.contains("80,000,000 take 8.36 min at that rate, which a trial held for 11 s"))
      #expect(target.output.contains("within 10 min: 133,333/s, 3 connections (between measured values), 2 hosts"))
      #expect(!target.output.contains("50,000,000"))
      try command.write(Array("seconds,rate\n0,1000\n60,200000\n90,90000\n200,0\n".utf8), "a,b.csv")
      let late = try command.run("report", Self.kept, "--demand", "a,b.csv,factor=1.5", "--output", "out")
      #expect(late.status == 0 && late.output.contains("a,b.csv times 1.5: 23,940,000 in 5.17 min"), "\(late.errors)")
      #expect(late.output.contains("it does not fit: up to 4,209,605 notifications wait, at most 26.4 s each"))
      #expect(late.output.contains("the last one is out 9.36 s after the last was due"), "\(late.output)")
      let page = try command.read("out/report.html")
      #expect(page.contains("Demand over capacity") && page.contains("Backlog"))
      // The copy is the document as it was.
      #expect(try command.read("out/capacity.json") == String(contentsOfFile: Self.kept, encoding: .utf8))
      let json = try command.run("report", Self.kept, "--demand", "a,b.csv", "--storm", "100,1k", "--format", "json")
      try command.write(Array(json.output.utf8), "asked.json")
      let asked = try document(command, "asked.json")
      #expect(asked.demand?.source == "a,b.csv" && asked.demand?.factor == 1 && asked.storms == [100, 1_000])
      let analysis = CapacityAnalysis(asked)
      #expect(analysis.demand?.verdict == .late && analysis.storms?.allSatisfy { $0.seconds == nil } == true)
      // What was asked once is asked again, and another question takes its place.
      let again = try command.run("report", "asked.json", "--demand", "a,b.csv,factor=0.5")
      #expect(again.output.contains("it fits: the peak, 100,000/s, leaves 37.4 %"), "\(again.output)")
      #expect(again.output.contains("100 connections at once: no answer"), "\(again.output)")
    }
  }

  @Test("A demand from a recording, and what is no demand: 64, 65 or 66")
  func demands() throws {
    try Command.inFolder { command in
      let capture = Command.traces.appending(path: "plain-error.pcap").path
      let inspection = try command.run("inspect", "--format", "json", capture)
      try command.write(Array(inspection.output.utf8), "inspection.json")
      let sent = try #require(try JSONSerialization.jsonObject(with: Data(inspection.output.utf8)) as? [String: Any])
      let count = try #require((sent["summary"] as? [String: Any])?["notifications"] as? Int)
      let outcome = try command.run("report", Self.kept, "--demand", "inspection.json,factor=2")
      #expect(
        outcome.status == 0 && outcome.output.contains("inspection.json times 2: \(2 * count) in "),
        "\(outcome.output)\(outcome.errors)")
      try command.write(Array("time,rate\n1,2\nx,3\n".utf8), "bad.csv")
      try command.write(Array(#"{"schema":1,"kind":"load"}"#.utf8), "load.json")
      for (arguments, status, text) in [
        (["--demand", "bad.csv"], 65, "bad.csv: line 3: expected seconds or a time"),
        (["--demand", "load.json"], 65, "is a result of 'load', not of 'inspect'"),
        (["--demand", capture], 65, "expected a demand: an inspection, a CSV or a history"),
        (["--demand", "none.csv"], 66, "none.csv"), (["--demand", "bad.csv,kind=load"], 65, "is not a history"),
        (["--demand", "bad.csv,factor=0"], 64, "factor=N (above 0)"), (["--demand", ",factor=2"], 64, "a file"),
        (["--demand", "bad.csv", "--max-demand-steps", "1"], 64, "--max-demand-steps must be 2"),
        (["--within", "1m"], 64, "--within needs --target"), (["--storm", "0"], 64, "whole numbers from 1"),
        (["--target", "1", "--format", "json", "--output", "x"], 64, "without --output"),
        (["--format", "json"], 64, "--output <folder>"), (["--target", "5", "--ledger", "x"], 64, "--ledger"),
      ] as [([String], Int32, String)] {
        let outcome = try command.run(["report", Self.kept] + arguments)
        #expect(outcome.status == status && outcome.errors.contains(text), "\(arguments): \(outcome.errors)")
      }
      let other = try command.run("report", "inspection.json", "--target", "5")
      #expect(other.status == 65, "\(other.errors)")
      let recording = try command.run("report", capture, "--target", "5", "--output", "x")
      #expect(recording.status == 64 && recording.errors.contains("for a result of 'apnscope capacity'"))
    }
  }

  @Test("A storm opens all connections at once, and tells when all were back")
  func storm() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("seconds,rate\n0,5\n60,5\n".utf8), "d.csv")
      let (outcome, document) = try search(
        [
          "--trial", "500ms", "--settle", "100ms", "--confirm", "500ms", "--lag-limit", "10m", "--max-trials", "2",
          "--storm", "20", "--demand", "d.csv",
        ], in: command)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let trial = try #require(document.trials.last)
      let opening = try #require(trial.opening)
      #expect(trial.purpose == .storm && trial.connections == 20 && opening.staggerS == 0)
      #expect(opening.opened == 20 && opening.resumed == 0 && opening.seconds > 0 && opening.handshakeP99Us != nil)
      // Other trials open theirs one after the other.
      #expect(document.trials.dropLast().allSatisfy { $0.purpose == .storm || $0.opening?.staggerS == 0.1 })
      #expect(document.storms == [20] && document.demand?.source == "d.csv")
      if opening.up == 20 {
        #expect(outcome.output.contains("20 connections at once: all back after "), "\(outcome.output)")
        #expect(try command.read("out/report.html").contains("Reconnect storms"))
      }
      let more = try command.run("report", "out/capacity.json", "--storm", "41")
      #expect(more.output.contains("41 connections at once: no answer"), "\(more.output)")
    }
  }

  @Test("A dry run says what would be done, and does nothing")
  func dryRun() throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try command.run(
        "capacity", "--identity", "ids", "--gateway", "127.0.0.1:1", "--dry-run", "--connections-sweep", "1,2,4",
        "--error-sweep", "none", "--storm", "100")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines.contains { $0.contains("storm") && $0.contains("connections at once: 100") })
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
