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

  private func write(_ document: some Encodable, _ name: String, in command: Command) throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let file = command.folder.appending(path: name)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try encoder.encode(document).write(to: file)
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
            "3k/s", "--segment", "\(number)/3", "--output", "\(number).json", "--threshold", "connections_failed<1",
          ] + LoadProcess.patience, in: command.folder)
      }
      for run in runs {
        let outcome = try run.end()
        #expect(outcome.status == 0 && outcome.errors.contains("'apnscope merge' evaluates it"), "\(outcome.errors)")
        #expect(!outcome.output.contains("connections_failed"))
      }
      let ledger = try simulator.stop()
      #expect(try names(in: command).filter { $0.hasSuffix(".part") } == [])
      let outcome = try command.run("merge", "1.json", "2.json", "3.json", "--output", "all.json")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("notifications  9,000 ="))
      #expect(outcome.output.contains("✓ connections_failed<1") && outcome.output.contains("✓ every segment is there"))
      try expectValid(file: "all.json", .result, in: command)
      let merged = try result("all.json", in: command)
      #expect(merged.verdict.thresholds.map(\.expression) == ["connections_failed<1"])
      #expect(merged.plan["segment"] == .text("1/3,2/3,3/3"))
      #expect(merged.notifications.generated == 9_000)
      #expect(merged.sendings.accepted == ledger.gateway.accepted)
      // On a slow machine they may not have measured together, which is said and is in order.
      #expect(!merged.warnings.contains { $0.contains("missing") || $0.contains("plan") })
      // A merged result is one that can be merged.
      let again = try command.run("merge", "all.json", "--format", "json")
      #expect(again.status == 0)
      #expect(try again.output == command.read("all.json"))
      try FileManager.default.removeItem(at: command.folder.appending(path: "all.json"))

      // The folder is all of them; the ledger in it is no result.
      let books = try command.run("merge", ".", "--ledger", "simulator.ledger.json", "--output", "all.json")
      #expect(books.status == 0, "\(books.output)\(books.errors)")
      #expect(books.output.contains("✓ the gateways' ledgers agree"))
      #expect(try result("all.json", in: command).notifications == merged.notifications)
      // Nor is what was merged before a part of it.
      #expect(try command.run("merge", ".", "--output", "all.json").status == 0)
      #expect(try command.run("merge", ".", "--threshold", "accepted_per_s>1G").status == 70)

      // Two of three were three ticks and 0.
      let two = try command.run("merge", "1.json", "3.json")
      #expect(two.status == 70 && two.errors.contains("2/3 is missing"), "\(two.errors)")
      #expect(two.output.contains("✗ every segment is there, once  2/3 is missing"))
      let allowed = try command.run("merge", "1.json", "3.json", "--allow-missing")
      #expect(allowed.status == 0 && allowed.output.contains("! segments are missing: 2/3"))
      // The gateway's books tell, whatever is allowed.
      let told = try command.run("merge", "1.json", "3.json", "--allow-missing", "--ledger", "simulator.ledger.json")
      #expect(told.status == 70 && told.errors.contains("ledgers agree: accepted"), "\(told.errors)")
    }
  }

  @Test("A segment that dies by kill -9 leaves its last books, and is missed: it left 0 bytes, and the rest was green")
  func killed() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback"], in: command)
      func start(_ segment: String, _ arguments: [String]) throws -> RunningProcess {
        try LoadProcess.start(
          simulator, ["--segment", segment, "--rate", "500/s"] + arguments,
          output: "results/\(segment.first ?? "0").json", in: command)
      }
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "results"), withIntermediateDirectories: true)
      // A part of an earlier run is not taken for this one's.
      try command.write(Array("earlier".utf8), "results/1.json.part")
      let (short, long) = (try start("1/2", ["--count", "500"]), try start("2/2", ["--for", "1h"]))
      #expect(try short.end().status == 0)
      let hasBooks = waitUntil {
        guard let books = try? result("results/2.json.part", in: command) else { return false }
        return books.sendings.written > 0 && books.series.count > 1
      }
      #expect(hasBooks && long.isRunning, "\(long.errors)")
      long.send(SIGKILL)
      _ = try long.end()
      // The gateway has read what was sent to it when it has seen every connection's end.
      #expect(try waitUntil { try simulator.count(of: "closed") == simulator.count(of: "accepted") })
      let ledger = try simulator.stop()
      #expect(try names(in: command, "results") == ["1.json", "2.json.part"])
      try expectValid(file: "results/2.json.part", .result, in: command)
      let partial = try result("results/2.json.part", in: command)
      #expect(partial.interrupted?.cause == .lost && partial.plan["segment"] == .text("2/2"))
      #expect(partial.notifications.unknown > 0 && partial.series.count > 1)

      let outcome = try command.run("merge", "results", "--output", "all.json")
      #expect(outcome.status == 70)
      let what = "results/2.json.part is of a run that did not come to its end"
      #expect(outcome.errors.contains(what) && outcome.output.contains("! \(what)"), "\(outcome.errors)")
      let merged = try result("all.json", in: command)
      #expect(merged.warnings.contains(what))
      #expect(merged.notifications.generated == 500 + partial.notifications.generated)
      // It names the file that was to come, too.
      let named = try command.run("merge", "results/1.json", "results/2.json", "--format", "json")
      #expect(named.status == 70)
      #expect(try named.output == command.read("all.json"))
      #expect(try command.run("merge", "results", "--allow-missing").status == 0)
      #expect(ledger.gateway.received >= merged.sendings.written)
      let page = try command.run("report", "all.json", "--output", "page")
      #expect(page.status == 0)
      let report = try command.read("page/report.md")
      #expect(report.contains(what) && !report.contains("The books balance"))
    }
  }

  @Test("Files that are empty or cut are named and the rest is merged; folders and standard input give documents")
  func unreadable() throws {
    try Command.inFolder { command in
      for number in 1...3 { try write(part(number), "\(number).json", in: command) }
      let text = try command.read("1.json")
      try command.write([], "2.json")
      try command.write(Array(text.dropLast(2).utf8), "4.json")
      try write(part(3), "3.json", in: command)
      try command.write(Array(#"{"name":"package"}"#.utf8), "package.json")
      try write(Ledger(), "sim.json", in: command)
      let files = try command.run("merge", "1.json", "2.json", "3.json", "4.json")
      #expect(files.status == 70 && files.output.contains("notifications  4 ="), "\(files.errors)")
      for reason in ["2.json is empty", "4.json is truncated", "2/4 is missing, 4/4 is missing"] {
        #expect(files.errors.contains(reason), "\(files.errors)")
      }
      let folder = try command.run("merge", ".")
      #expect(folder.status == 70 && folder.output.replacing("./", with: "") == files.output)
      for name in ["package.json", "sim.json"] { #expect(folder.errors.contains("\(name): not a result of 'load'")) }
      #expect(try command.run("merge", "2.json", "4.json").status == 65)
      #expect(try command.run("merge", "1.json", "1.json").status == 65)
      #expect(try command.run("merge", "1.json", "3.json", "--max-results", "1").status == 65)

      // As a log has them: one cut, and words between.
      func piped(_ line: String) throws -> Outcome { try command.shell("(\(line)) | $apnscope merge - --format json") }
      let whole = try piped("for n in 1 2 3 4; do cat $n.json; echo; echo done; done; cat sim.json")
      #expect(whole.status == 70 && whole.errors.contains("12 bytes"), "\(whole.errors)")
      #expect(whole.errors.contains("document 3 of standard input is truncated"), "\(whole.errors)")
      #expect(whole.errors.contains("document 4 of standard input: not a result"))
      #expect(whole.output.contains(#""generated" : 4"#))
      let good = try piped(#"sed 's,1\\/4,1/2,' 1.json; sed 's,3\\/4,2/2,' 3.json"#)
      #expect(good.status == 0, "\(good.errors)")
      #expect(try piped("true").status == 65)
    }
  }

  @Test("A part counts where its result is not there, and is named where it is of a later run")
  func partials() throws {
    try Command.inFolder { command in
      var lost = part(2)
      lost.started = "2026-01-01T00:00:05.000Z"
      lost.markLost(in: .measured, afterS: 1)
      try write(part(1), "r/1.json", in: command)
      try write(lost, "r/2.json.part", in: command)
      func merge() throws -> Outcome { try command.run("merge", "r") }
      #expect(try merge().output.contains("notifications  4 ="))
      // A killed run of an earlier version leaves the file, and nothing in it.
      try command.write([], "r/2.json")
      #expect(try merge().output.contains("notifications  4 ="))
      // The result of an earlier run is not that of the later one.
      try write(part(2), "r/2.json", in: command)
      let later = try merge()
      #expect(later.status == 70 && later.errors.contains("2.json.part is of a later run than r/2.json"))
      lost.started = part(2).started
      try write(lost, "r/2.json.part", in: command)
      #expect(try !merge().errors.contains("later run"))
    }
  }

  /// Of four segments; its books balance.
  private func part(_ number: Int) -> RunResult {
    var result = RunResult()
    result.started = "2026-01-01T00:00:00.000Z"
    result.plan["segment"] = .text("\(number)/4")
    (result.notifications.generated, result.notifications.accepted) = (2, 2)
    return result
  }

  private func names(in command: Command, _ folder: String = ".") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: command.folder.appending(path: folder).path).sorted()
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
      try command.write(Array("[1]".utf8), "list.json")
      for (file, status, reason) in [
        ("schema.json", 65, "schema 2"), ("kind.json", 65, "'simulate'"), ("key.json", 65, "missing"),
        ("type.json", 65, "wrong type of value for"), ("unit.json", 65, "histogram"),
        ("list.json", 65, "not a result"), ("none.json", 66, "No such file"),
      ] as [(String, Int32, String)] {
        let outcome = try command.run("merge", "good.json", file)
        #expect(outcome.status == status, "\(file)")
        #expect(outcome.output == "")
        #expect(outcome.errors.contains(file) && outcome.errors.contains(reason), "\(outcome.errors)")
      }
      // In a folder, what is of a load and cannot be used is no file of somebody else that is left out.
      for (file, status) in [("schema.json", 65), ("key.json", 65), ("kind.json", 0), ("list.json", 0)]
        as [(String, Int32)]
      {
        let outcome = try command.shell(
          "rm -rf folder; mkdir folder; cp good.json \(file) folder; exec \"$apnscope\" merge folder")
        #expect(outcome.status == status && outcome.errors.contains(file), "\(file): \(outcome.errors)")
        #expect(outcome.errors.contains("skipped") == (status == 0), "\(file): \(outcome.errors)")
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
      var failed = RunResult()
      (failed.verdict.outcome, failed.verdict.reasons) = (.failed, ["nothing was sent"])
      try write(failed, "failed.json", in: command)
      let merged = try command.run("merge", "failed.json")
      #expect(merged.status == 69)
      #expect(merged.output.contains("✗ failed.json: nothing was sent"))
      var slow = RunResult()
      slow.verdict.thresholds = [.init(expression: "written_per_s>1", value: 0, passed: false)]
      try write(slow, "slow.json", in: command)
      slow.warnings = ["another run"]
      try write(slow, "other.json", in: command)
      let judged = try command.run("merge", "slow.json", "other.json")
      #expect(judged.status == 99)
      #expect(judged.output.contains("✗ written_per_s>1"))
      #expect(judged.output.contains("! segments are there more than once"))
    }
  }

  /// Of a gateway with one connection; its books balance.
  private func ledger(_ number: Int) -> Ledger {
    var ledger = Ledger()
    (ledger.started, ledger.ended) = ("2026-01-01T00:00:0\(number).000Z", "2026-01-01T00:01:00.000Z")
    (ledger.gateway.received, ledger.gateway.accepted) = (1_000, 1_000)
    (ledger.gateway.connections, ledger.devices.delivered) = (1, 1_000)
    var connection = Ledger.Connection(
      client: "127.0.0.1:4000\(number)", topic: nil, opened: ledger.started, closed: ledger.ended, end: .peerFin)
    (connection.received, connection.accepted) = (1_000, 1_000)
    ledger.connections = [connection]
    return ledger
  }

  @Test("Ledgers whose books do not balance, or whose sum is too large, are named with their numbers: 70, and written")
  func brokenLedgers() throws {
    try Command.inFolder { command in
      try write(ledger(1), "1.json", in: command)
      try write(ledger(2), "2.json", in: command)
      let good = try command.run("merge", "1.json", "2.json")
      #expect(good.status == 0 && good.output.contains("2,000 received = 2,000 accepted"), "\(good.errors)")
      var edited = ledger(3)
      (edited.gateway.accepted, edited.devices.delivered) = (900, 900)
      try write(edited, "3.json", in: command)
      let broken = try command.run("merge", "1.json", "3.json", "--output", "sum.json")
      #expect(broken.status == 70 && broken.output.contains("2,000 received ≠ 1,900 accepted"), "\(broken.output)")
      for what in ["3.json: does not hold: ", "(1000 = 900 + 0 + 0)", "the sum: ", "(2000 = 1900 + 0 + 0)"] {
        #expect(broken.errors.contains(what), "\(broken.errors)")
      }
      #expect(!broken.errors.contains("1.json"))
      #expect(try command.read("sum.json").contains(#""received" : 2000"#))
      for number in [4, 5] {
        var large = ledger(number)
        (large.gateway.received, large.gateway.accepted, large.devices.delivered) = (1 << 62, 1 << 62, 1 << 62)
        try write(large, "\(number).json", in: command)
      }
      let large = try command.run("merge", "4.json", "5.json")
      #expect(large.status == 70 && large.errors.contains("the sum: does not hold: every sum"), "\(large.errors)")
      #expect(!large.errors.contains("4.json"))
    }
  }

  @Test("A ledger that is part of another is found, and so is a copy in another form")
  func repeatedLedgers() throws {
    try Command.inFolder { command in
      for number in 1...3 { try write(ledger(number), "\(number).json", in: command) }
      #expect(try command.run("merge", "1.json", "2.json", "--output", "12.json").status == 0)
      let twice = try command.run("merge", "12.json", "2.json")
      #expect(twice.status == 70 && twice.errors.contains("2.json: has a connection of 12.json"), "\(twice.errors)")
      #expect(try command.run("merge", "12.json", "3.json").status == 0)
      // A ledger alone is written as it is, with spaces.
      #expect(try command.run("merge", "1.json", "--output", "copy.json").status == 0)
      let copy = try command.run("merge", "1.json", "copy.json")
      #expect(copy.status == 65 && copy.errors.contains("copy.json: is the same result as 1.json"), "\(copy.errors)")
    }
  }
}
