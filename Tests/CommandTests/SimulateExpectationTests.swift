import Foundation
import TestSupport
import Testing

/// A provider under test: what ends the simulator, and its exit status.
@Suite("simulate: a provider under test", .waiting)
struct SimulateExpectationTests {
  /// Starts a simulator without TLS, and runs a load against it.
  private static func run(
    _ options: [String], load: [String], in command: Command
  ) throws -> (simulator: Outcome, load: Outcome) {
    let process = try RunningProcess(
      Command.path,
      [
        "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--ready-file", "ready", "--ledger",
        "sim.json",
      ]
        + options, in: command.folder)
    let ready = command.folder.appending(path: "ready")
    #expect(waitUntil { FileManager.default.fileExists(atPath: ready.path) })
    let text = try String(contentsOf: ready, encoding: .utf8)
    let port = try #require(text.firstMatch(of: #/^gateway 127\.0\.0\.1:([0-9]+)\n$/#)?.output.1)
    let sent = try command.run(["load", "--plain", "--gateway", "127.0.0.1:\(port)", "--output", "run.json"] + load)
    let outcome = try process.end()
    #expect(!FileManager.default.fileExists(atPath: ready.path))
    return (outcome, sent)
  }

  private static func ledger(in command: Command) throws -> [String: Any] {
    let data = try Data(contentsOf: command.folder.appending(path: "sim.json"))
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test("A provider that sends all again passes, and the verdict agrees with its own books")
  func passes() throws {
    try Command.inFolder { command in
      let (simulator, load) = try Self.run(
        [
          "--until-idle", "5s", "--for", "60s", "--resend-within", "2s", "--reject", "every=500",
          "--records", "records.jsonl", "--expect", "lost<=0", "accepted_twice=0", "resend_max<30s", "received>=10000",
          "--junit", "out.xml",
        ], load: ["--count", "10k", "--connections", "3"] + LoadProcess.patience, in: command)
      #expect(simulator.status == 0 && load.status == 0, "\(simulator.output)\(simulator.errors)\(load.errors)")
      try expectValid(file: "sim.json", .ledger, in: command)
      let ledger = try Self.ledger(in: command)
      let verdict = try #require(ledger["verdict"] as? [String: Any])
      let stories = try #require(verdict["stories"] as? [String: Any])
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      let errors = try #require(verdict["errors"] as? [[String: Any]])
      #expect(!errors.isEmpty && errors.allSatisfy { $0["token"] == nil && $0["payload"] == nil })
      #expect(verdict["sendings"] as? Int == gateway["received"] as? Int)
      #expect(verdict["discarded"] as? Int == gateway["discarded"] as? Int)
      #expect(verdict["not_sent_again"] as? Int == 0)
      let data = try Data(contentsOf: command.folder.appending(path: "run.json"))
      let result = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
      let sendings = try #require(result["sendings"] as? [String: Any])
      // The end of what was written on a connection may not have arrived.
      #expect(verdict["discarded"] as? Int ?? .max <= sendings["discarded"] as? Int ?? 0)
      #expect((stories["recovered"] as? Int ?? 0) > 0 && stories["open"] as? Int == 0)
      try Self.expectPages(in: command)
      #expect(simulator.output.contains("✓ lost<=0  (0)\n") && simulator.output.contains("\nsent again "))
      let xml = try String(contentsOf: command.folder.appending(path: "out.xml"), encoding: .utf8)
      #expect(xml.contains("<testcase classname=\"apnscope simulate\" name=\"lost&lt;=0\"/>"))
      #expect(xml.contains("tests=\"4\" failures=\"0\""))
    }
  }

  /// The pages of the ledger, with the records and without, and of the load's result.
  private static func expectPages(in command: Command) throws {
    for (options, has, lacks) in [
      ([], ["## After each error", "## Devices", "## Payloads", "## Connections"], ["## Notifications"]),
      (["--records", "records.jsonl"], ["## After each error", "## Notifications", "## Glossary"], []),
    ] as [([String], [String], [String])] {
      let outcome = try command.run(["report", "sim.json", "--output", "page"] + options)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let page = try command.read("page/report.md")
      #expect(
        page.contains("All that was discarded was sent again, or decided on another connection."),
        "\(page.prefix(2_000))")
      #expect(page.contains("| ✓ `lost<=0` | 0 |"), "\(page.prefix(3_000))")
      for part in has { #expect(page.contains("\n\(part)"), "\(part)") }
      for part in lacks { #expect(!page.contains("\n\(part)"), "\(part)") }
    }
    let outcome = try command.run("report", "run.json", "--ledger", "sim.json", "--output", "load")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try command.read("load/report.md").contains("Accepted notifications by delivery"))
    let wrong = try command.run("report", "run.json", "--records", "records.jsonl", "--output", "load")
    #expect(wrong.status == 64 && wrong.errors.contains("--records needs a ledger"), "\(wrong.errors)")
  }

  @Test("What has no token, as the markers of a load, is not lost when it is discarded")
  func markers() throws {
    try Command.inFolder { command in
      let (simulator, load) = try Self.run(
        ["--until-idle", "4s", "--for", "60s", "--resend-within", "2s", "--reject", "every=5", "--expect", "lost<=0"],
        load: ["--count", "25"] + LoadProcess.patience, in: command)
      #expect(load.status == 0, "\(load.errors)")
      #expect(simulator.status == 0, "\(simulator.output)\(simulator.errors)")
      #expect(simulator.output.contains("✓ lost<=0  (0)\n"), "\(simulator.output)")
    }
  }

  @Test("An end before the time in which a provider may send again does not prove that nothing is lost")
  func notProven() throws {
    try Command.inFolder { command in
      // Its last notification is rejected, and what was discarded with it is not sent again in time.
      let (simulator, _) = try Self.run(
        ["--until", "received>=3000", "--response-delay", "20s", "--reject", "every=1000", "--expect", "lost<=0"],
        load: ["--count", "3k", "--for", "1m", "--drain", "10s"], in: command)
      #expect(simulator.status == 99, "\(simulator.errors)")
      #expect(simulator.output.contains("✗ lost<=0  ("), "\(simulator.output)")
      #expect(simulator.output.contains("may be after the recording ended"), "\(simulator.output)")
      #expect(simulator.output.contains("✓ received>=3000"))
    }
  }

  @Test("The end comes before --until holds: exit status 99")
  func notReached() throws {
    try Command.inFolder { command in
      let (simulator, load) = try Self.run(
        ["--until", "received>=5000", "--until-idle", "6s", "--junit", "out.xml"],
        load: ["--count", "1k", "--leave-unknown"],
        in: command)
      #expect(load.status == 0 && simulator.status == 99, "\(load.errors)\(simulator.errors)")
      let xml = try String(contentsOf: command.folder.appending(path: "out.xml"), encoding: .utf8)
      #expect(xml.contains("name=\"received&gt;=5000\">") && xml.contains("failures=\"1\""), "\(xml)")
    }
  }

  @Test("Wrong conditions are refused before anything listens")
  func usage() throws {
    try Command.inFolder { command in
      for (options, message) in [
        (["--until", "lost<1"], "only the verdict at the end knows this"),
        (["--expect", "lost"], "has no <, > or ="), (["--junit", "a.xml"], "--junit has the outcomes of --expect"),
        (["--until-idle", "0s"], "--until-idle must be more than 0s"),
        (["--ready-file", "x", "--ledger", "x"], "x"),
      ] {
        let outcome = try command.run(["simulate", "--plain"] + options)
        #expect(outcome.status == 64 && outcome.errors.contains(message), "\(outcome.errors)")
      }
    }
  }
}
