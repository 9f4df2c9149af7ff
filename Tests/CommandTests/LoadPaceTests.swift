import Foundation
import Glibc
import Measurement
import TestSupport
import Testing

/// What `apnscope load` does about time, and what it shows meanwhile.
@Suite("load: pace and metrics", .waiting)
struct LoadPaceTests {
  /// How much is skipped, and how late the rest is, is tested with a simulated clock; here a process does stand still.
  @Test(
    "A load that stood still sends what is late all the same, or skips and counts it",
    arguments: ["catch-up", "skip"], [[], ["--poisson"]])
  func behind(mode: String, extra: [String]) throws {
    try SimulatorProcess.inFolder { command in
      let count = 2_000
      var isSeen = false
      // A test that is held up may stop the load only when it has sent everything; then there has to be more time.
      for seconds in [2, 20, 60] where !isSeen {
        let simulator = try SimulatorProcess(["--metrics", "127.0.0.1:0"], in: command)
        let load = try LoadProcess.start(
          simulator,
          [
            "--rate", "\(count / seconds)/s", "--count", "\(count)", "--connections", "2", "--behind", mode,
          ] + extra, in: command)
        #expect(simulator.hasReceived())
        load.send(SIGSTOP)
        usleep(1_000_000)
        load.send(SIGCONT)
        let outcome = try load.end()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let ledger = try simulator.stop()
        let result = try LoadProcess.result(in: command)
        #expect(result.notifications.accepted == ledger.gateway.accepted)
        #expect(result.plan["behind"] == .text(mode))
        // Every one that was due was sent or skipped.
        #expect(result.notifications.generated + result.schedule.skipped == count)
        #expect(result.schedule.unsent == 0)
        if mode == "skip" {
          isSeen = result.schedule.skipped > 0
          #expect(outcome.output.contains("that would have been late") == isSeen)
        } else {
          #expect(result.schedule.skipped == 0)
          // The first that was due in the standstill waited for its end.
          isSeen = result.latency.sendLagUs.maximum > 900_000
        }
      }
      #expect(isSeen)
    }
  }

  @Test("A rate for each connection is that many times the connections")
  func ratePerConnection() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let load = try LoadProcess.start(
        simulator, ["--rate-per-connection", "500/s", "--for", "1s", "--connections", "3"], in: command)
      #expect(try load.end().status == 0)
      _ = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      // What was due in the time that it took: a second at least, and until nothing new was sent.
      let due = result.notifications.generated + result.schedule.unsent
      let seconds = result.phases.filter { $0.name == .measured || $0.name == .drain }.reduce(0) { $0 + $1.seconds }
      #expect(due >= 1_500 && Double(due) <= 1_500 * seconds + 3, "\(due) in \(seconds) s")
      #expect(result.plan["rate_per_connection"] == .text("500.0/s"))
      #expect(result.plan["rate"] == nil)
    }
  }

  @Test("--metrics shows the counts while it runs")
  func metrics() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=700,status=7"], in: command)
      let load = try LoadProcess.start(
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
            && values[#"apnscope_load_connections_closed_total{cause="rejected"}"#, default: 0] >= 2
        })
      #expect(values[#"apnscope_load_phase{phase="measured"}"#] == 1)
      #expect(values[#"apnscope_load_phase{phase="drain"}"#] == 0)
      let written = values["apnscope_load_written_total", default: -1]
      #expect(written > 2_000)
      #expect(values["apnscope_load_discarded_total", default: -1] >= 0)
      #expect(values["apnscope_load_skipped_total"] == 0)
      #expect((0...2).contains(values["apnscope_load_connections_up", default: -1]))
      #expect(values["apnscope_load_send_lag_p99_seconds", default: -1] >= 0)
      let lag = "apnscope_load_send_lag_seconds"
      #expect(values["\(lag)_count"] == values["\(lag)_bucket{le=\"+Inf\"}"])
      #expect(values["\(lag)_bucket{le=\"60.0\"}", default: -1] == values["\(lag)_count"])
      #expect(values["\(lag)_sum", default: -1] >= 0)
      #expect(values["apnscope_load_tcp_connect_seconds_count", default: 0] >= 1)
      #expect(values["apnscope_load_error_seconds_count"] != nil)
      load.send(SIGINT)
      #expect(try load.end().status == 130)
      _ = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      #expect(Double(result.sendings.written) >= written)
    }
  }

  @Test("With --metrics-linger the last counts can be read after the result is written, until an interrupt")
  func lingeringMetrics() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let load = try LoadProcess.start(
        simulator, ["--count", "500", "--metrics", "127.0.0.1:0", "--metrics-linger", "1h"], in: command)
      #expect(waitUntil { (try? LoadProcess.result(in: command)) != nil })
      let address = try #require(load.errors.firstMatch(of: #/metrics at (http://127\.0\.0\.1:[0-9]+/metrics)\n/#))
      let page = try RunningProcess("curl", ["-s", "--max-time", "20", String(address.output.1)], in: command.folder)
        .end()
      #expect(page.lines.contains("apnscope_load_accepted_total 500"))
      #expect(page.lines.contains(#"apnscope_load_phase{phase="over"} 1"#))
      #expect(
        page.lines.contains(
          "apnscope_load_drain_seconds_count \(try LoadProcess.result(in: command).sendings.binary.markers)"))
      load.send(SIGINT)
      // All is done; there is nothing to interrupt.
      #expect(try load.end().status == 0)
      _ = try simulator.stop()
    }
  }

  @Test("--metrics-linger without --metrics is a usage error")
  func lingeringWithout() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let outcome = try LoadProcess.start(simulator, ["--metrics-linger", "1s"], in: command).end()
      #expect(outcome.status == 64 && outcome.errors.contains("--metrics-linger needs --metrics"))
      _ = try simulator.stop()
    }
  }

  @Test("A port for metrics that is taken is exit code 69")
  func metricsPort() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let outcome = try LoadProcess.start(simulator, ["--metrics", "127.0.0.1:\(simulator.gateway)"], in: command).end()
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
