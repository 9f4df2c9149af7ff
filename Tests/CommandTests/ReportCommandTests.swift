import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope report`.
@Suite("report", .waiting)
struct ReportCommandTests {
  /// A load on a simulator, and the books of both: `run.json`, `sim.json`.
  private func inFolderWithRun<T>(_ body: (Command) throws -> T) throws -> T {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=400"], in: command)
      let load = try command.run(
        "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--connections", "3", "--rate",
        "1k/s",
        "--for", "1s", "--threshold", "accepted_per_s>1", "--output", "run.json", "--drain", "5m", "--marker-timeout",
        "5m")
      #expect(load.status == 0, "\(load.errors)")
      _ = try simulator.stop()
      try command.write(Array(command.read("simulator.ledger.json").utf8), "sim.json")
      return try body(command)
    }
  }

  @Test("A load and the gateway's books become a folder with a page, a text, charts, and what they were made from")
  func folder() throws {
    try inFolderWithRun { command in
      let outcome = try command.run("report", "run.json", "--ledger", "sim.json", "--output", "Reports/first/")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.lines == ["Reports/first/report.html", "Reports/first/report.md"])
      let (html, text) = try (command.read("Reports/first/report.html"), command.read("Reports/first/report.md"))
      for page in [html, text] {
        #expect(page.contains("The books balance, and those of the gateway agree"))
        #expect(page.contains("apnscope report run.json --ledger sim.json --output Reports/first/"))
        #expect(page.contains("Load run: 1,000/s over 3 connections for 1s"))
      }
      #expect(try command.read("Reports/first/run.json") == command.read("run.json"))
      #expect(try command.read("Reports/first/ledger.json") == command.read("sim.json"))
      let charts = text.split(separator: "](chart-").dropFirst().compactMap { Int($0.prefix { $0 != "." }) }
      #expect(charts.count > 5 && charts == Array(1...charts.count))
      for number in charts { #expect(try command.read("Reports/first/chart-\(number).svg").hasPrefix("<svg ")) }

      // From a pipe, and its copy is what came through it.
      let piped = try command.shell("cat run.json | $apnscope report - --ledger sim.json --output piped")
      #expect(piped.status == 0, "\(piped.errors)")
      #expect(try command.read("piped/run.json") == command.read("run.json"))

      // Over an earlier report with more charts; the baseline is in the folder itself.
      try command.write(Array("old".utf8), "Reports/first/chart-\(charts.count + 1).svg")
      let again = try command.run(
        "report", "run.json", "--baseline", "Reports/first/run.json", "--output", "Reports/first")
      #expect(again.status == 0, "\(again.errors)")
      #expect(try command.read("Reports/first/report.md").contains("Compared with the baseline"))
      #expect(throws: (any Error).self) { try command.read("Reports/first/chart-\(charts.count + 1).svg") }
      #expect(try command.read("Reports/first/baseline.json") == command.read("run.json"))
    }
  }

  /// The last one replaced the others, and nothing said so.
  @Test("The books of several gateways are added, in any order, and copied under names of their own")
  func severalLedgers() throws {
    try inFolderWithRun { command in
      _ = try SimulatorProcess(in: command, name: "idle").stop()
      for ledgers in [["sim.json", "idle.ledger.json"], ["idle.ledger.json", "sim.json"]] {
        let outcome = try command.run(
          ["report", "run.json", "--output", "out"] + ledgers.flatMap { ["--ledger", $0] })
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try command.read("out/report.md").contains("The books balance, and those of the gateway agree"))
        for (number, ledger) in ledgers.enumerated() {
          #expect(try command.read("out/ledger-\(number + 1).json") == command.read(ledger))
        }
      }
      // Each counts: the same books twice are too many.
      let twice = try command.run(
        "report", "run.json", "--output", "out", "--ledger", "sim.json", "--ledger", "sim.json")
      #expect(twice.status == 70, "\(twice.errors)")
      let one = try command.run("report", "run.json", "--output", "out", "--ledger", "sim.json")
      #expect(one.status == 0 && one.errors.contains("ledger-1.json, ledger-2.json"), "\(one.errors)")
    }
  }

  @Test("Books of another run do not agree: 70, and the report is there and says where")
  func otherBooks() throws {
    try inFolderWithRun { command in
      let ledger = try command.read("sim.json")
      try command.write(Array(ledger.replacing("\"resumed\" : ", with: "\"resumed\" : 9").utf8), "other.json")
      let outcome = try command.run("report", "run.json", "--ledger", "other.json", "--output", "out")
      #expect(outcome.status == 70)
      #expect(outcome.errors.contains("disagree"))
      #expect(try command.read("out/report.html").contains("books differ in sessions resumed"))
    }
  }

  @Test("What no report can be made of is refused with its name and what to do")
  func refused() throws {
    try Command.inFolder { command in
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      try command.write([UInt8](encoder.encode(RunResult())), "run.json")
      try command.write([UInt8](encoder.encode(Ledger())), "sim.json")
      var later = RunResult()
      later.schema = 99
      try command.write([UInt8](encoder.encode(later)), "later.json")
      later.kind = "dance"
      try command.write([UInt8](encoder.encode(later)), "dance.json")
      try command.write(Array("{\"kind\":".utf8), "cut.json")
      try command.trace("plain-error.pcapng", as: "a.pcapng")
      try command.write(Array("neither this nor that".utf8), "noise")
      for (arguments, status, words) in [
        (["sim.json", "--baseline", "run.json"], 64, "sim.json is a ledger"), (["later.json"], 65, "schema 99"),
        (["dance.json"], 65, "'dance'"),
        (["cut.json"], 65, "not JSON"), (["none.json"], 66, "No such file"),
        (["noise"], 65, "neither a packet capture"),
        (["a.pcapng", "--ledger", "sim.json"], 64, "a.pcapng is neither"),
        (["run.json", "--ledger", "run.json"], 65, "'load', not of 'simulate'"),
        (["run.json", "--baseline", "sim.json"], 65, "'simulate', not of 'load'"),
        (["run.json", "--baseline", "none.json"], 66, "none.json"),
      ] as [([String], Int32, String)] {
        let outcome = try command.shell("$apnscope report \(arguments.joined(separator: " ")) --output out")
        #expect(outcome.status == status, "\(arguments)")
        #expect(outcome.output == "")
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
      }
      #expect(try command.run("report", "run.json").status == 64)
      #expect(try command.run("report", "run.json", "--output", "run.json/x").status == 74)
      // A result with nothing in it has a report too.
      #expect(try command.run("report", "run.json", "--output", "out").status == 0)
      #expect(try command.read("out/report.html").contains("Nothing was written."))
    }
  }

  @Test("Records of a part of the run, or of another run, are a warning on the page and exit code 70")
  func otherRecords() throws {
    try Command.inFolder { command in
      // 19 notifications within half a second.
      try command.trace("known-bad-and-errors.pcap.jsonl", as: "all.jsonl")
      try command.trace("plain-error.pcap.jsonl", as: "other.jsonl")
      var ledger = Ledger()
      (ledger.started, ledger.ended) = ("2015-12-13T09:46:39.900Z", "2015-12-13T09:46:41.000Z")
      var records = Ledger.Records()
      records.notifications = 19
      ledger.records = records
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      try command.write([UInt8](encoder.encode(ledger)), "sim.json")
      (ledger.started, ledger.ended) = ("2015-12-14T09:46:39.900Z", "2015-12-14T09:46:41.000Z")
      try command.write([UInt8](encoder.encode(ledger)), "later.json")
      for (input, file, status, words) in [
        ("sim.json", "all.jsonl", 0, ""),
        ("sim.json", "part.jsonl", 70, "part.jsonl: the records have 4 notifications"),
        ("sim.json", "other.jsonl", 70, "of another run"), ("later.json", "all.jsonl", 70, "not within the run"),
        // The last of several files has the counts of all.
        ("sim.json", "last.jsonl", 70, "last.jsonl: the records are incomplete"),
      ] as [(String, String, Int32, String)] {
        let outcome = try command.shell(
          """
          head -5 all.jsonl > part.jsonl; tail -n 1 all.jsonl > last.jsonl
          exec $apnscope report \(input) --records \(file) --output out
          """)
        #expect(outcome.status == status, "\(file): \(outcome.errors)")
        #expect(outcome.errors.contains("he records") == (status == 70), "\(file): \(outcome.errors)")
        #expect(words.isEmpty || outcome.errors.contains(words), "\(file): \(outcome.errors)")
        let page = try command.read("out/report.md")
        let isRemarked = page.contains("of another run") || page.contains("The records are incomplete")
        #expect(isRemarked == (status == 70), "\(file)")
      }
    }
  }
}
