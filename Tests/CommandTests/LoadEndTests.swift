import Foundation
import Measurement
import TestSupport
import Testing

@testable import LoadTest
@testable import apnscope

/// What `apnscope load` says while it runs and of how it ended, when something is not as it should be.
@Suite("load: ends", .waiting)
struct LoadEndTests {
  @Test("A gateway that is lost for good is exit code 69, with the reason and the result")
  func lost() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--metrics", "127.0.0.1:0"], in: command)
      let port = simulator.gateway
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(port)", "--rate", "500/s", "--for", "10m",
          "--give-up", "5s", "--output", "run.json",
        ], in: command.folder)
      #expect(simulator.hasReceived())
      try simulator.kill()
      let outcome = try load.end()
      #expect(outcome.status == 69)
      let reason = "gave up: no connection could be established for 5 s: Connection refused"
      #expect(outcome.errors.hasSuffix("apnscope: 127.0.0.1:\(port): \(reason)\n"), "\(outcome.errors)")
      #expect(outcome.output.contains("\n✗ \(reason)"))
      let result = try LoadProcess.result(in: command)
      #expect(result.notifications.generated > 0)
      #expect(result.verdict.outcome == .failed && result.warnings.contains(reason))
    }
  }

  @Test(
    "Interrupted, by Ctrl-C or by a terminal that is lost, it says so wherever its result is told: 130",
    arguments: [SIGINT, SIGHUP])
  func interrupted(signal: Int32) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--metrics", "127.0.0.1:0"], in: command)
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--rate", "500/s", "--for", "10m",
          "--output", "run.json", "--history", "runs.sqlite",
        ], in: command.folder)
      #expect(simulator.hasReceived())
      load.send(signal)
      let outcome = try load.end()
      _ = try simulator.stop()
      #expect(outcome.status == 130)
      let result = try LoadProcess.result(in: command)
      #expect(result.interrupted?.phase == .measured && result.interrupted?.afterS == result.measuredS)
      #expect(result.warnings.first?.firstMatch(of: #/^interrupted after [0-9.]+ s of 600 s$/#) != nil)
      #expect(outcome.output.contains("\n! interrupted after "))
      #expect(try command.run("report", "run.json", "--output", "page").status == 0)
      #expect(
        try command.read("page/report.md").hasPrefix("# Load run: 500/s over 1 connection for 600s (interrupted)"))
      #expect(try command.run("history", "runs.sqlite").output.contains("load, interrupted"))
    }
  }

  @Test("Interrupted before anything was measured, it has no rate, and keeps no threshold on one")
  func interruptedEarly() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--metrics", "127.0.0.1:0"], in: command)
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--rate", "500/s", "--warm-up",
          "10m", "--threshold", "send_lag_p99<5s", "--output", "run.json",
        ] + LoadProcess.patience, in: command.folder)
      #expect(simulator.hasReceived())
      load.send(SIGTERM)
      let outcome = try load.end()
      _ = try simulator.stop()
      #expect(outcome.status == 130)
      #expect(outcome.output.hasPrefix("rate           not measured\n"))
      #expect(
        outcome.output.contains("\n✗ send_lag_p99<5s  (nothing was measured)\n! interrupted in the warm-up, after "))
      let result = try LoadProcess.result(in: command)
      #expect(result.measuredS == 0 && result.notifications.accepted > 0)
      #expect(result.verdict.thresholds.map(\.reason) == ["nothing was measured"])
      #expect(result.verdict.thresholds.map(\.value) == [nil])
      #expect(try command.run("report", "run.json", "--output", "page").status == 0)
      #expect(try !command.read("page/report.md").contains("every threshold was kept"))
    }
  }

  @Test("A terminal that is lost is no matter to what ignores it, as nohup makes it")
  func ignoredHangup() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--metrics", "127.0.0.1:0"], in: command)
      let load = try RunningProcess(
        "/usr/bin/env",
        [
          "--ignore-signal=HUP", Command.path, "load", "--identity", "ids", "--gateway",
          "127.0.0.1:\(simulator.gateway)", "--rate", "500/s", "--count", "1k", "--output", "run.json",
        ] + LoadProcess.patience, in: command.folder)
      #expect(simulator.hasReceived())
      load.send(SIGHUP)
      let outcome = try load.end()
      _ = try simulator.stop()
      #expect(outcome.status == 0)
      let result = try LoadProcess.result(in: command)
      #expect(result.interrupted == nil && result.notifications.accepted == 1_000)
    }
  }

  @Test("An output keeps what it had until there is something to write; one that was not there is not left behind")
  func outputs() throws {
    try SimulatorProcess.inFolder { command in
      func load(_ output: String) throws -> Outcome {
        try RunningProcess(
          Command.path,
          ["load", "--plain", "--gateway", "127.0.0.1:1", "--give-up", "200ms", "--output", output],
          in: command.folder
        ).end()
      }
      try command.write(Array("earlier".utf8), "run.json")
      #expect(try load("run.json").status == 69)
      #expect(try command.read("run.json") == "earlier")
      #expect(try load("new.json").status == 69)
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "new.json").path))
      #expect(try load("none/run.json").status == 74)
      #expect(try load("/dev/null").status == 69)

      // A longer one is not left at the end of a shorter one.
      try command.write([UInt8](repeating: 0x78, count: 1 << 20), "run.json")
      let simulator = try SimulatorProcess(in: command)
      let taken = try RunningProcess(
        Command.path,
        [
          "simulate", "--plain", "--no-feedback", "--gateway", "127.0.0.1:\(simulator.gateway)", "--ledger", "run.json",
        ], in: command.folder
      ).end()
      #expect(taken.status == 69)
      #expect(try command.read("run.json").hasPrefix("xxx"))
      let good = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "10", "--output",
          "run.json",
        ] + LoadProcess.patience, in: command.folder
      ).end()
      #expect(good.status == 0, "\(good.errors)")
      _ = try simulator.stop()
      #expect(try LoadProcess.result(in: command).notifications.accepted == 10)
    }
  }

  @Test("Capacity keeps an earlier document when the gateway cannot be reached")
  func capacityOutput() throws {
    try Command.inFolder { command in
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "report"), withIntermediateDirectories: true)
      try command.write(Array("earlier".utf8), "report/capacity.json")
      let outcome = try RunningProcess(
        Command.path,
        ["capacity", "--plain", "--gateway", "127.0.0.1:1", "--give-up", "200ms", "--output", "report"],
        in: command.folder
      ).end()
      #expect(outcome.status == 69, "\(outcome.errors)")
      #expect(try command.read("report/capacity.json") == "earlier")
    }
  }

  @Test("{time} in a template is the start of the run")
  func time() throws {
    try Command.inFolder { command in
      let before = Int(Date.now.timeIntervalSince1970)
      let bytes = try LoadReplayTests().sent(
        ["--count", "3", "--payload-template", #"{"t":{time},"i":{index}}"#], in: command)
      let after = Int(Date.now.timeIntervalSince1970)
      let times = String(decoding: bytes, as: UTF8.self).matches(of: #/{"t":([0-9]+),"i":[0-2]}/#)
        .compactMap { Int($0.output.1) }
      #expect(times.count == 3 && Set(times).count == 1)
      #expect(times.allSatisfy { (before...after).contains($0) })
    }
  }

  /// Answers every connection with what it is told, and ends it.
  private static func answering(_ bytes: String) -> String {
    """
    import socket, sys
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    print("port", listener.getsockname()[1], "end", file=sys.stderr, flush=True)
    while True:
        connection = listener.accept()[0]
        connection.recv(1)
        connection.sendall(b"\(bytes)")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
        connection.close()
    """
  }

  @Test("Answers that settle nothing are counted and shown")
  func strayAnswers() throws {
    try Command.inFolder { command in
      // A rejection of what was never sent, and two bytes that are nothing.
      let answer = #"\x08\x08\xee\x6b\x28\x00xy"#
      let gateway = try RunningProcess("python3", ["-c", Self.answering(answer)], in: command.folder)
      #expect(waitUntil { gateway.errors.contains("end") })
      let port = try #require(gateway.errors.firstMatch(of: #/port ([0-9]+)/#)?.output.1)
      let outcome = try RunningProcess(
        Command.path,
        [
          "load", "--plain", "--gateway", "127.0.0.1:\(port)", "--count", "1", "--max-attempts", "2", "--output",
          "run.json",
        ] + LoadProcess.patience, in: command.folder
      ).end()
      gateway.send(SIGKILL)
      let answers = try LoadProcess.result(in: command).binary.answers
      #expect(answers.unresolved >= 1, "\(outcome.errors)")
      #expect(answers.strayBytes == 2 * answers.unresolved)
      #expect(outcome.output.contains("with unknown identifiers, "))
      #expect(try command.read("run.json").contains("\"stray_bytes\""))
    }
  }

  @Test(
    "One side with TLS and the other without is said to be so",
    arguments: [
      // A fatal alert, protocol version; nothing; an error response to a client hello.
      ("\\x15\\x03\\x01\\x00\\x02\\x02\\x46", "--plain", "it requires TLS; give --identity"),
      ("", "--plain", "without an answer: does it speak TLS, or send no error responses?"),
      // An HTTP server on the port: 156 × status 10, three ✓ and 0.
      ("<!DOCTYPE HTML>\\n<p>\\n", "--plain", "the server is not a gateway: it sent HTML or XML (3c21444f4354"),
      ("\\x08\\x01\\x00\\x00\\x00\\x00", "--identity=ids", "does not seem to use TLS; if so, give --plain"),
    ])
  func strangers(answer: String, target: String, hint: String) throws {
    try SimulatorProcess.inFolder { command in
      let gateway = try RunningProcess("python3", ["-c", Self.answering(answer)], in: command.folder)
      #expect(waitUntil { gateway.errors.contains("end") })
      let port = try #require(gateway.errors.firstMatch(of: #/port ([0-9]+)/#)?.output.1)
      let outcome = try RunningProcess(
        Command.path,
        [
          "load", target, "--gateway", "127.0.0.1:\(port)", "--count", "5", "--give-up", "3s", "--drain", "5m",
          "--max-attempts", "3",
        ], in: command.folder
      ).end()
      gateway.send(SIGKILL)
      #expect((outcome.output + outcome.errors).contains(hint), "\(outcome.output)\(outcome.errors)")
      #expect(outcome.status == 69)
      // Nobody gave --lifetime.
      #expect(!outcome.output.contains("lifetime"))
    }
  }

  @Test("What a schedule asks for is known at any time; without one nothing is")
  func asked() {
    var plan = LoadPlan()
    #expect(plan.dueCount(at: 1) == nil)
    plan.pace = .scheduled(
      Schedule(stages: [.init(length: 10, from: 0, to: 100), .init(length: 10, from: 50, to: 50)]), isPoisson: false)
    #expect(plan.dueCount(at: 0) == 0)
    #expect(plan.dueCount(at: 10) == 500)
    #expect(plan.dueCount(at: 12) == 600)
    #expect(plan.dueCount(at: 99) == 1_000)
  }

  @Test("Documents with numbers that nothing can have are shown all the same", arguments: [1e300, -1e300, 1.7e308])
  func strangeNumbers(number: Double) throws {
    try SimulatorProcess.inFolder { command in
      var result = RunResult()
      result.started = "2026-01-02T03:04:05.678Z"
      (result.rates.writtenPerS, result.rates.acceptedPerS, result.rates.writtenBytesPerS) = (number, number, number)
      (result.measuredS, result.resources.cpuUserS, result.resources.cpuSystemS) = (number, number, number)
      result.resources.maxRssBytes = .max
      result.plan = ["connections": .number(number), "segment": .text("1/2")]
      result.replay = .init()
      result.replay?.lengthS = number
      var sample = RunResult.Sample()
      (sample.tS, sample.cpu, sample.written, sample.sendLagP99Us) = (number, number, .max, .max)
      result.series = [RunResult.Sample(), sample]
      var phase = RunResult.Phase()
      (phase.name, phase.seconds) = (.measured, number)
      result.phases = [phase]
      result.timeline.spans = [.init(connection: .max, .up, fromS: 0, toS: number)]
      result.verdict.thresholds = [.init(expression: "written_per_s>1", value: number, passed: true)]
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      try encoder.encode(result).write(to: command.folder.appending(path: "a.json"))
      (result.rates.writtenPerS, result.plan["segment"]) = (1, .text("2/2"))
      try encoder.encode(result).write(to: command.folder.appending(path: "b.json"))
      for arguments in [
        ["merge", "a.json"], ["merge", "a.json", "b.json"], ["report", "a.json", "--output", "page"],
        ["compare", "a.json", "b.json"], ["compare", "a.json", "--format", "json", "b.json"],
        ["report", "a.json", "--baseline", "b.json", "--output", "page"],
      ] {
        let outcome = try RunningProcess(Command.path, arguments, in: command.folder).end()
        #expect([0, 70, 99].contains(outcome.status), "\(arguments): \(outcome.status) \(outcome.errors)")
        let lines = outcome.errors.split(separator: "\n")
        #expect(lines.allSatisfy { $0.hasPrefix("apnscope: does not hold: ") }, "\(outcome.errors)")
      }
    }
  }
}
