import Foundation
import TestSupport
import Testing

/// `--web`: the report of a run while it goes on.
@Suite("live page", .waiting, .timeLimit(.minutes(5)))
struct LivePageTests {
  /// What a browser saw of a page.
  private struct Seen: Decodable {
    var line: String
    var versions: [String]
    var sections: [String]
    var title: String
    var tooWide: Bool
    var requests: [String]
    var host: String
  }

  private static let watcher = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "Clients/watch_page.py")

  private func watch(_ address: String, width: Int, press: Bool = false) throws -> Seen {
    let output = try ExternalTool.run(
      "python3", [Self.watcher.path, address, "120", "\(width)"] + (press ? ["--press"] : []))
    return try JSONDecoder().decode(Seen.self, from: Data(output))
  }

  /// The address that a command has said.
  private func address(_ running: RunningProcess) throws -> String {
    func said() -> String? { running.errors.firstMatch(of: /page at (\S+)\n/).map { String($0.output.1) } }
    _ = waitUntil { said() != nil || !running.isRunning }
    return try #require(said(), "\(running.errors)")
  }

  private func get(_ address: String, _ path: String = "", _ more: String = "", in command: Command) throws -> Outcome {
    try command.shell("curl -s -m 20 -w '\\n%{http_code}' \(more) '\(address)\(path)'")
  }

  /// The text of a page's sections without white space.
  private func sections(_ html: String) -> [String] {
    html.matches(of: /(?s)<section.*?<\/section>/).map { match in
      var text = String(match.output).replacing(/<[^>]*>/, with: "")
      for (name, letter) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replacing(name, with: letter)
      }
      return text.filter { !$0.isWhitespace }
    }
  }

  @Test(
    "A browser follows a load, and has the figures of its result at the end",
    .enabled(if: ExternalTool.isInstalled("chromium"), "needs chromium"))
  func load() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--plain", "--reject", "every=700"], in: command)
      defer { _ = try? simulator.stop() }
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--plain", "--gateway", "127.0.0.1:\(simulator.gateway)", "-r", "1k/s", "-d", "3m", "-o", "run.json",
          "--web", "127.0.0.1:0", "--web-control",
        ], in: command.folder, name: "load")
      // Ended by its button, as soon as the page has followed two changes.
      let seen = try watch(try address(load), width: 390, press: true)
      let outcome = try load.end()
      #expect(outcome.status == 130, "\(outcome)")
      #expect(seen.line == "The run has ended." && seen.versions.count >= 3, "\(seen.line) \(seen.versions)")
      #expect(!seen.tooWide && Set(seen.requests) == [seen.host], "\(seen.tooWide) \(seen.requests) \(seen.host)")
      #expect(try command.run("report", "run.json", "--output", "report").status == 0)
      let report = sections(try command.read("report/report.html"))
      #expect(seen.sections.map { $0.filter { !$0.isWhitespace } } == report)
      #expect(report.count > 5)
    }
  }

  @Test(
    "The button ends the run where --web-control allows it, and there is none without",
    .enabled(if: ExternalTool.isInstalled("chromium"), "needs chromium"))
  func button() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try RunningProcess(
        Command.path,
        [
          "simulate", "--identity", "ids", "--gateway", "127.0.0.1:0", "--no-feedback", "--for", "2m", "--web",
          "127.0.0.1:0", "--web-control",
        ], in: command.folder, name: "simulator")
      let seen = try watch(try address(simulator), width: 800, press: true)
      let outcome = try simulator.end()
      #expect(outcome.status == 0 && seen.line == "The run has ended.", "\(seen.line) \(outcome)")
      #expect(seen.title.hasPrefix("Provider: "))
    }
  }

  @Test("Only the page itself ends the run, and other hosts' names and paths get nothing of it")
  func refusals() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try RunningProcess(
        Command.path,
        ["simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--for", "2m", "--web", "127.0.0.1:0"],
        in: command.folder, name: "simulator")
      defer { _ = try? simulator.end() }
      let address = try address(simulator)
      let page = try get(address, in: command).output
      #expect(page.hasSuffix("\n200") && page.contains("The run goes on") && !page.contains("id=\"stop\""))
      #expect(try get(address, "stop", "-X POST -d ''", in: command).output.hasSuffix("\n403"))
      #expect(try get(address, "stop", in: command).output.hasSuffix("\n405"))
      #expect(try get(address, "secret", in: command).output.hasSuffix("\n404"))
      #expect(try get(address, "", "-H 'Host: example.com'", in: command).output.hasSuffix("\n403"))
      let event = try get(address, "events?after=0", in: command).output
      #expect(event.contains("data: ") && event.hasSuffix("\n200"))
      simulator.send(SIGTERM)
      // Nobody is waiting for the last page, or for ten seconds at most.
      #expect(waitUntil { !simulator.isRunning })
    }
  }

  @Test("--web-control needs --web, and a port that is taken is said")
  func usage() throws {
    try SimulatorProcess.inFolder { command in
      for name in ["load", "simulate"] {
        let outcome = try command.run(name, "--plain", "--web-control")
        #expect(outcome.status == 64 && outcome.errors.contains("--web-control needs --web."), "\(outcome)")
      }
      let simulator = try SimulatorProcess(["--no-feedback", "--plain"], in: command)
      defer { _ = try? simulator.stop() }
      let outcome = try command.run(
        "load", "--plain", "--gateway", "127.0.0.1:\(simulator.gateway)", "-n", "1", "--web",
        "127.0.0.1:\(simulator.gateway)")
      #expect(outcome.status == 69 && outcome.errors.contains("web: cannot listen at"), "\(outcome)")
    }
  }
}
