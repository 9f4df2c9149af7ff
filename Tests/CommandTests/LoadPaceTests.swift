import Foundation
import Glibc
import Measurement
import Testing

/// What `apnscope load` does about time, and what it shows meanwhile.
@Suite("load: pace and metrics", .serialized)
struct LoadPaceTests {
  private func start(_ simulator: SimulatorProcess, _ arguments: [String], in command: Command) throws -> RunningProcess
  {
    try RunningProcess(
      Command.path,
      ["load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--output", "run.json"] + arguments,
      in: command.folder)
  }

  private func result(in command: Command) throws -> RunResult {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(RunResult.self, from: Data(contentsOf: command.folder.appending(path: "run.json")))
  }

  @Test(
    "What is late after a standstill is sent late, or skipped and counted",
    arguments: ["catch-up", "skip"], [[], ["--poisson"]])
  func behind(mode: String, extra: [String]) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let load = try start(
        simulator, ["--rate", "2k/s", "--for", "4s", "--connections", "2", "--behind", mode] + extra, in: command)
      #expect(try waitUntil { try simulator.events().contains { $0["event"] as? String == "accepted" } })
      usleep(1_000_000)
      load.send(SIGSTOP)
      usleep(1_000_000)
      load.send(SIGCONT)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      let result = try result(in: command)
      #expect(result.notifications.accepted == ledger.gateway.accepted)
      #expect(result.plan["behind"] == .text(mode))
      // 8,000 were due in all, with what chance and a busy machine make of it.
      #expect((7_000...9_000).contains(result.notifications.generated + result.schedule.skipped))
      // How long it stood still in truth.
      let standstill = Double(result.resources.loopLagUs.maximum) / 1e6
      #expect(standstill > 0.8)
      let late = result.latency.sendLagUs.counts.reduce(0) { $0 + ($1.value > 500_000 ? $1.count : 0) }
      if mode == "skip" {
        let skipped = Double(result.schedule.skipped)
        #expect(skipped > 0.8 * (standstill - 0.1) * 2_000, "\(skipped) in \(standstill) s")
        #expect(outcome.output.contains("that would have been late"))
        // What was in a batch already.
        #expect(late < 200)
      } else {
        #expect(result.schedule.skipped == 0)
        #expect(late > 400)
      }
    }
  }

  @Test("A rate for each connection is that many times the connections")
  func ratePerConnection() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let load = try start(
        simulator, ["--rate-per-connection", "500/s", "--for", "2s", "--connections", "3"], in: command)
      #expect(try load.end().status == 0)
      _ = try simulator.stop()
      let result = try result(in: command)
      #expect((2_700...3_400).contains(result.notifications.generated), "\(result.notifications.generated)")
      #expect(result.plan["rate_per_connection"] == .text("500.0/s"))
      #expect(result.plan["rate"] == nil)
    }
  }

  @Test("--metrics shows the counts while it runs")
  func metrics() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=700,status=7"], in: command)
      let load = try start(
        simulator, ["--rate", "2k/s", "--for", "10m", "--connections", "2", "--metrics", "127.0.0.1:0"], in: command)
      func page() throws -> [String: Double] {
        guard let address = load.errors.firstMatch(of: #/metrics at (http://127\.0\.0\.1:[0-9]+/metrics)\n/#) else {
          return [:]
        }
        let curl = try RunningProcess("curl", ["-s", "--max-time", "20", String(address.output.1)], in: command.folder)
        var values: [String: Double] = [:]
        for line in try curl.end().lines where !line.hasPrefix("#") {
          let words = line.trimmingCharacters(in: .whitespaces).split(separator: " ")
          if words.count == 2 { values[String(words[0])] = Double(words[1]) }
        }
        return values
      }
      var values: [String: Double] = [:]
      #expect(
        try waitUntil {
          values = try page()
          return values[#"apnscope_load_error_responses_total{status="7"}"#, default: 0] >= 3
        })
      #expect(values[#"apnscope_load_phase{phase="measured"}"#] == 1)
      #expect(values[#"apnscope_load_phase{phase="drain"}"#] == 0)
      let written = values["apnscope_load_written_total", default: -1]
      #expect(written > 2_000)
      #expect(values["apnscope_load_discarded_total", default: -1] >= 0)
      #expect(values["apnscope_load_skipped_total"] == 0)
      #expect((0...2).contains(values["apnscope_load_connections_up", default: -1]))
      #expect(values[#"apnscope_load_connections_closed_total{cause="rejected"}"#, default: 0] >= 2)
      #expect(values["apnscope_load_send_lag_p99_seconds", default: -1] >= 0)
      load.send(SIGINT)
      #expect(try load.end().status == 130)
      _ = try simulator.stop()
      let result = try result(in: command)
      #expect(Double(result.sendings.written) >= written)
    }
  }

  @Test("A port for metrics that is taken is exit code 69")
  func metricsPort() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let outcome = try start(simulator, ["--metrics", "127.0.0.1:\(simulator.gateway)"], in: command).end()
      #expect(outcome.status == 69)
      #expect(outcome.errors.contains("cannot listen"))
      _ = try simulator.stop()
    }
  }

  @Test(
    "Rates that exclude each other",
    arguments: [
      ["--rate", "1/s", "--rate-per-connection", "1/s"], ["--stage", "1s:1/s", "--rate-per-connection", "1/s"],
      ["--rate-per-connection", "0/s"], ["--behind", "skip"], ["--behind", "late", "--rate", "1/s"],
    ])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try RunningProcess(Command.path, ["load", "--plain"] + arguments, in: command.folder).end()
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains(arguments.contains("--behind") ? "--behind" : "--rate-per-connection"))
    }
  }
}
