import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope merge`.
@Suite("merge", .waiting)
struct MergeCommandTests {
  private func result(_ name: String, in command: Command) throws -> RunResult {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(RunResult.self, from: Data(contentsOf: command.folder.appending(path: name)))
  }

  private func write(_ result: RunResult, _ name: String, in command: Command) throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    try encoder.encode(result).write(to: command.folder.appending(path: name))
  }

  @Test("Three segments that ran together are the whole stream, once")
  func segments() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=900"], in: command)
      let runs = try (1...3).map { number in
        try RunningProcess(
          Command.path,
          [
            "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "3k", "--rate",
            "3k/s", "--segment", "\(number)/3", "--output", "\(number).json", "--threshold", "accepted_per_s>1",
          ] + LoadProcess.patience, in: command.folder)
      }
      for run in runs { #expect(try run.end().status == 0) }
      let ledger = try simulator.stop()
      let outcome = try command.run("merge", "1.json", "2.json", "3.json", "--output", "all.json")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("notifications  9,000 ="))
      #expect(outcome.output.contains("✓ accepted_per_s>1"))
      let merged = try result("all.json", in: command)
      #expect(merged.plan["segment"] == .text("1/3,2/3,3/3"))
      #expect(merged.notifications.generated == 9_000)
      #expect(merged.sendings.accepted == ledger.gateway.accepted)
      #expect(!merged.warnings.contains { $0.contains("segment") || $0.contains("plan") })
      // A merged result is one that can be merged.
      let again = try command.run("merge", "all.json", "--format", "json")
      #expect(again.status == 0)
      #expect(try again.output == command.read("all.json"))
    }
  }

  @Test("What is no result of a load is refused with its name and its reason: 65, or 66 when it cannot be opened")
  func refused() throws {
    try Command.inFolder { command in
      try write(RunResult(), "good.json", in: command)
      var other = RunResult()
      other.schema = 2
      try write(other, "schema.json", in: command)
      other = RunResult()
      other.kind = "simulate"
      try write(other, "kind.json", in: command)
      let text = try command.read("good.json")
      try command.write(Array(text.replacing("\"max_rss_bytes\"", with: "\"max_rss\"").utf8), "key.json")
      try command.write(Array(text.replacing("\"generated\":0", with: "\"generated\":\"a\"").utf8), "type.json")
      try command.write(Array(text.replacing("\"unit\":\"us\"", with: "\"unit\":\"ms\"").utf8), "unit.json")
      try command.write(Array(text.dropLast(2).utf8), "cut.json")
      try command.write(Array("[1]".utf8), "list.json")
      try command.write([], "empty.json")
      for (file, status, reason) in [
        ("schema.json", 65, "schema 2"), ("kind.json", 65, "'simulate'"), ("key.json", 65, "missing"),
        ("type.json", 65, "generated' is of another type"), ("unit.json", 65, "histogram"),
        ("cut.json", 65, "not JSON"),
        ("list.json", 65, "no result"), ("empty.json", 65, "not JSON"), ("none.json", 66, "No such file"),
      ] as [(String, Int32, String)] {
        let outcome = try command.run("merge", "good.json", file)
        #expect(outcome.status == status, "\(file)")
        #expect(outcome.output == "")
        #expect(outcome.errors.contains(file) && outcome.errors.contains(reason), "\(outcome.errors)")
      }
      #expect(try command.run("merge").status == 64)
      #expect(try command.run("merge", "good.json", "--output", "no/where.json").status == 74)
      #expect(try command.run("merge", "good.json").status == 0)
    }
  }

  @Test("Broken books are 70, a threshold that fails is 99, and both are written")
  func verdicts() throws {
    try Command.inFolder { command in
      var bad = RunResult()
      bad.notifications.generated = 1
      try write(bad, "bad.json", in: command)
      let broken = try command.run("merge", "bad.json", "--output", "a.json")
      #expect(broken.status == 70)
      #expect(broken.output.contains("✗ generated ="))
      #expect(try result("a.json", in: command).verdict.invariants.contains { !$0.holds })
      var slow = RunResult()
      slow.verdict.thresholds = [.init(expression: "written_per_s>1", value: 0, passed: false)]
      try write(slow, "slow.json", in: command)
      let failed = try command.run("merge", "slow.json", "slow.json")
      #expect(failed.status == 99)
      #expect(failed.output.contains("✗ written_per_s>1"))
      #expect(failed.output.contains("! segments are there more than once"))
    }
  }
}
