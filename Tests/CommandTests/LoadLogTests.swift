import Bytes
import Foundation
import Measurement
import OutputSchema
import TestSupport
import Testing

@testable import LoadTest
@testable import apnscope

/// `apnscope load --log`.
@Suite("load --log", .waiting)
struct LoadLogTests {
  private typealias Line = [String: Any]

  private func lines(_ command: Command, _ name: String = "log.jsonl") throws -> [Line] {
    try command.read(name).split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? Line, "\($0)")
    }
  }

  /// How often each event is in the log or was left out of it, error responses by their status where they are lines.
  private func counts(_ lines: [Line]) -> [String: Int] {
    var counts: [String: Int] = [:]
    for line in lines {
      counts[line["event"] as? String ?? "", default: 0] += 1
      for (name, count) in line["events"] as? [String: Int] ?? [:] { counts[name, default: 0] += count }
    }
    return counts
  }

  private func expectAgreement(_ lines: [Line], _ result: RunResult) {
    let counts = counts(lines)
    #expect(counts["error_response", default: 0] == result.binary.errorResponses.values.reduce(0, +))
    #expect(counts["connected", default: 0] == result.connections.opened)
    #expect(counts["connect_failed", default: 0] == result.connections.failed)
    #expect(counts["closed", default: 0] == result.connections.closed.sum)
    #expect(counts["stall", default: 0] == (result.stalls?.listed.count ?? 0))
    #expect(counts["threshold", default: 0] == result.verdict.thresholds.count)
    #expect((counts["started"], counts["ended"], counts["dropped"]) == (1, 1, nil))
    #expect(lines.first?["event"] as? String == "started" && lines.last?["event"] as? String == "ended")
    #expect(lines.last?["outcome"] as? String == result.verdict.outcome?.rawValue)
  }

  @Test("It is read while the load runs, and its counts are those of the result")
  func whileRunning() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--reject", "every=150,status=8", "--reject", "every=400,status=7"], in: command)
      let load = try LoadProcess.start(
        simulator,
        [
          "--stage", "1s:200/s", "--stage", "10s:200..600/s", "--connections", "2", "--log", "log.jsonl",
          "--threshold", "rejected_rate<50%",
        ], in: command)
      let path = command.folder.appending(path: "log.jsonl").path
      func seen() -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
      #expect(waitUntil { seen().contains("error_response") || !load.isRunning })
      let early = seen()
      #expect(
        load.isRunning && early.contains(#""event":"stage","stage":1,"from_per_s":200.0"#) && !early.contains("ended"))
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      // Lines are only added.
      #expect(seen().hasPrefix(early))
      _ = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      let lines = try lines(command)
      try expectValid(file: "log.jsonl", .loadLog, in: command)
      expectAgreement(lines, result)
      for status in [7, 8] {
        #expect(
          lines.count { $0["status"] as? Int == status } == result.binary.errorResponses["\(status)", default: 0])
      }
      #expect(lines.compactMap { $0["stage"] as? Int } == [1, 2])
      #expect(lines.compactMap { $0["phase"] as? String } == ["connect", "measured", "drain"])
      // Reconnects are attempts after the first; each connection's attempts are numbered in order.
      let attempts = lines.filter { $0["event"] as? String == "connected" }.map {
        ($0["connection"] as? Int ?? -1, $0["attempt"] as? Int ?? 0)
      }
      for connection in 0...1 {
        let numbers = attempts.filter { $0.0 == connection }.map(\.1)
        #expect(numbers.first == 1 && numbers == Array(1...numbers.count), "\(numbers)")
      }
      // An error response was seen, so a connection came again; which of them had it is chance.
      #expect(attempts.count > 2)
      // The notification that is named is the one that the plan has: every 150th that the gateway has read is refused.
      #expect(lines.filter { $0["status"] as? Int == 8 }.allSatisfy { ($0["notification"] as? Int ?? -1) >= 0 })
      // Wall clock and seconds of the run are one clock.
      let origins = try lines.compactMap { line -> Double? in
        guard let seconds = line["t_s"] as? Double, let time = line["time"] as? String else { return nil }
        let bytes = Array(time.utf8)
        let parsed = RFC3339.nanoseconds(bytes.rawBytes)
        let nanoseconds = try #require(parsed)
        return Double(nanoseconds) / 1e9 - seconds
      }
      let (first, last) = (try #require(origins.min()), try #require(origins.max()))
      #expect(last - first < 0.5)
    }
  }

  @Test("Lines beyond the limits are left out and counted, and the counts still agree")
  func limits() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--reject", "every=20,status=8"], in: command)
      for (name, limit) in [("rate", ["--log-rate", "5"]), ("size", ["--log-size", "4KiB"])] {
        let load = try LoadProcess.start(
          simulator, ["--plain", "--rate", "1k/s", "--for", "3s", "--log", "\(name).jsonl"] + limit, in: command)
        let outcome = try load.end()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = try lines(command, "\(name).jsonl")
        try expectValid(file: "\(name).jsonl", .loadLog, in: command)
        expectAgreement(lines, try LoadProcess.result(in: command))
        let limited = lines.filter { ["error_response", "closed", "connected"].contains($0["event"] as? String) }
        if name == "rate" {
          #expect(Dictionary(grouping: limited) { Int($0["t_s"] as? Double ?? 0) }.values.allSatisfy { $0.count <= 7 })
          #expect(lines.count { $0["event"] as? String == "left_out" } >= 2)
        } else {
          #expect(try command.read("size.jsonl").utf8.count < 6 << 10)
        }
        // The rate is one of each second, however many of them the run took.
        let seconds = Int(lines.last?["t_s"] as? Double ?? 0) + 1
        #expect(limited.count > 3)
        #expect(name == "rate" ? limited.count <= 7 * seconds : limited.count < 60)
      }
      _ = try simulator.stop()
    }
  }

  @Test("A gateway that is not there, and a threshold that ends the run, are in it")
  func failures() throws {
    try SimulatorProcess.inFolder { command in
      let nobody = try ReservedPort()
      let absent = try command.run(
        "load", "--plain", "--gateway", "127.0.0.1:\(nobody.number)", "--count", "1", "--log", "absent.jsonl")
      #expect(absent.status == 69)
      let lines = try lines(command, "absent.jsonl")
      try expectValid(file: "absent.jsonl", .loadLog, in: command)
      let failed = lines.filter { $0["event"] as? String == "connect_failed" }
      #expect(failed.count >= 2 && failed.allSatisfy { $0["reason"] as? String == "Connection refused" })
      #expect(lines.last?["event"] as? String == "ended" && lines.last?["outcome"] == nil)

      let simulator = try SimulatorProcess(["--plain", "--reject", "every=50,status=8"], in: command)
      let load = try LoadProcess.start(
        simulator,
        ["--plain", "--rate", "500/s", "--for", "5m", "--log", "log.jsonl", "--threshold", "rejected_rate<0.1%,abort"],
        in: command)
      #expect(try load.end().status == 99)
      let aborted = try self.lines(command)
      #expect(counts(aborted)["abort"] == 1)
      expectAgreement(aborted, try LoadProcess.result(in: command))
      let threshold = try #require(aborted.last { $0["event"] as? String == "threshold" })
      #expect(
        threshold["passed"] as? Bool == false && (threshold["reason"] as? String)?.contains("ended the run") == true)
      _ = try simulator.stop()
    }
  }

  @Test("What cannot be written, or makes no sense, is refused")
  func refused() throws {
    try Command.inFolder { command in
      for (arguments, status, words) in [
        (["--log", "none/log.jsonl"], 74, "none/log.jsonl: No such file"),
        (["--log-rate", "5"], 64, "--log-rate needs --log"),
        (["--log-size", "1MB"], 64, "--log-size needs --log"),
        (["--log", "l", "--log-rate", "0"], 64, "--log-rate must be 1 to 1M"),
        (["--log", "l", "--log-size", "1"], 64, "--log-size must be at least 4KiB"),
        (["--log", "run.json", "--output", "run.json"], 64, "are the same file"),
      ] as [([String], Int32, String)] {
        let outcome = try command.run(["load", "--plain", "--gateway", "127.0.0.1:9", "--count", "1"] + arguments)
        #expect(outcome.status == status && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
      }
    }
  }

  @Test("Whatever is left out, by rate or by size, is counted exactly once", arguments: seeds(30, of: 300))
  func counted(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let rate = random.number(1...20)
    var limits = LogLimits(rate: rate, size: random.number(0...5_000))
    var (asked, taken, reported): ([String: Int], [String: Int], [String: Int]) = ([:], [:], [:])
    var (seconds, second, inSecond, bytes) = (0.0, 0, 0, 0)
    for _ in 0..<random.number(0...400) {
      seconds += Double(random.number(0...100)) / 1_000
      if let counts = limits.pass(seconds) { reported.merge(counts, uniquingKeysWith: +) }
      if Int(seconds) > second { (second, inSecond) = (Int(seconds), 0) }
      let (name, length) = (random.pick(["a", "b"]), random.number(1...100))
      asked[name, default: 0] += 1
      guard limits.takes(length, name) else { continue }
      taken[name, default: 0] += 1
      (inSecond, bytes) = (inSecond + 1, bytes + length)
      #expect(inSecond <= rate)
    }
    limits.leaveOut(["c": 3])
    asked["c"] = 3
    reported.merge(limits.takeLeftOut(), uniquingKeysWith: +)
    #expect(taken.merging(reported, uniquingKeysWith: +) == asked && bytes <= 5_000)
    #expect(limits.takeLeftOut().isEmpty)
  }

  @Test("A loop keeps as many events as it may, and counts the others")
  func loopEvents() {
    var events = LoopEvents(limit: 2)
    #expect(events.take(at: 0).isEmpty)
    for attempt in 1...5 { events.note(.connected(0, attempt: attempt, isResumed: false), at: Int64(attempt)) }
    events.note(.closed(0, attempt: 5, .local), at: 9)
    let taken = events.take(at: 10)
    #expect(taken.count == 3 && taken.last?.kind == .leftOut(["connected": 3, "closed": 1]) && taken.last?.at == 10)
    #expect(events.take(at: 11).isEmpty)
  }
}
