import Foundation
import TestSupport
import Testing

/// The command on a terminal, as tmux shows it.
@Suite("terminal", .waiting, .enabled(if: ExternalTool.isInstalled("tmux"), "needs tmux"))
struct TerminalTests {
  /// A terminal of a width, in which a shell runs.
  private struct Screen {
    /// Written by the shell behind everything of its command, so that what the screen shows before it is complete.
    private static let end = "- end of the command -"
    private let socket: String

    init(_ command: Command, columns: Int, _ line: String) throws {
      // A server of its own: one that is told to end takes sessions for a moment more, and ends with them.
      socket = command.folder.appending(path: "tmux-\(UUID().uuidString.prefix(8))").path
      try tmux(
        "-f", "/dev/null", "new-session", "-d", "-x", "\(columns)", "-y", "60", "-s", "screen",
        "cd '\(command.folder.path)'; \(line); echo '\(Self.end)'; exec sleep 120")
    }

    @discardableResult
    private func tmux(_ arguments: String...) throws -> String {
      String(decoding: try ExternalTool.run("tmux", ["-S", socket] + arguments), as: UTF8.self)
    }

    /// The text on the screen.
    func text() throws -> String { try tmux("capture-pane", "-p", "-t", "screen") }

    /// The text on the screen, with lines joined that the terminal has wrapped.
    func joined() throws -> String { try tmux("capture-pane", "-p", "-J", "-t", "screen") }

    /// The text on the screen, with escape sequences of its colours.
    func colours() throws -> String { try tmux("capture-pane", "-p", "-e", "-t", "screen") }

    func resize(to columns: Int) throws {
      try tmux("resize-window", "-t", "screen", "-x", "\(columns)", "-y", "60")
    }

    /// Waits until the screen is as it should become, at most two minutes.
    func wait(until isThere: (String) -> Bool) throws -> String {
      for _ in 0..<1_200 {
        let screen = try self.text()
        if isThere(screen) { return screen }
        Thread.sleep(forTimeInterval: 0.1)
      }
      return try self.text()
    }

    /// Waits until everything that the command writes is on the screen, at most two minutes.
    func waitForEnd() throws {
      let screen = try wait { $0.contains(Self.end) }
      try #require(screen.contains(Self.end), "\(screen)")
    }

    func close() { _ = try? tmux("kill-server") }
  }

  /// For loads, whose ends are waited for.
  private static let patience = LoadProcess.patience.joined(separator: " ")

  private static func capture(_ name: String) -> String { Command.traces.appending(path: name).path }

  @Test("The summary of a recording fits the terminal: no line is broken by it", arguments: [60, 80, 120, 200])
  func inspection(columns: Int) throws {
    try Command.inFolder { command in
      let screen = try Screen(
        command, columns: columns, "'\(Command.path)' inspect '\(Self.capture("plain-error.pcap"))'")
      defer { screen.close() }
      try screen.waitForEnd()
      let text = try screen.text()
      // A line that the terminal wraps is joined by tmux.
      #expect(try screen.joined().filter { $0 != " " } == text.filter { $0 != " " })
      #expect(text.contains("7 accepted, 1 rejected, 26 discarded"))
      #expect(text.contains("left out at \(columns) columns: ") == (columns < 150))
      // The most important of each table stays.
      for word in ["fates a/r/d/u", "0/0/0/32", "of the discarded", "26 open"] {
        #expect(text.contains(word), "\(word)")
      }
      let wide = ["client -> server", "client_fin", "payload begins"]
      for word in wide where columns == 200 { #expect(text.contains(word), "\(word)") }
    }
  }

  @Test("The live line of a load fits the terminal, also when it becomes narrower, and is gone at the end")
  func liveLine() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--plain"], in: command)
      defer { _ = try? simulator.stop() }
      let port = simulator.gateway
      let screen = try Screen(
        command, columns: 120,
        "'\(Command.path)' load --plain --gateway 127.0.0.1:\(port) --rate 1k/s -d 25s -c 2 \(Self.patience) 2>&1")
      defer { screen.close() }
      func isWide(_ screen: String) -> Bool {
        screen.contains(" of 25 s  measured") && screen.contains("accepted ") && screen.contains("connections 2")
      }
      let wide = try screen.wait(until: isWide)
      #expect(isWide(wide), "\(wide)")
      try screen.resize(to: 60)
      // The line of before is wrapped by the terminal; the next one is written for the new width.
      func isNarrow(_ screen: String) -> Bool {
        let line = screen.split(separator: "\n").last { $0.contains(" of 25 s") }
        return line.map { $0.count < 60 && $0.contains("errors 0") && !$0.contains("connections") } ?? false
      }
      let narrow = try screen.wait(until: isNarrow)
      #expect(isNarrow(narrow), "\(narrow)")
      try screen.waitForEnd()
      let end = try screen.text()
      #expect(!end.contains(" of 25 s  ") && end.contains("notifications  25,000 = 25,000"), "\(end)")
    }
  }

  @Test("--screen is redrawn while a load runs, fits the terminal, and leaves the summary behind")
  func screen() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--no-feedback", "--plain"], in: command)
      defer { _ = try? simulator.stop() }
      let screen = try Screen(
        command, columns: 60,
        "echo before; '\(Command.path)' load --plain --gateway 127.0.0.1:\(simulator.gateway) -r 1k/s -d 20s --screen "
          + "\(Self.patience) 2>&1")
      defer { screen.close() }
      let shown = try screen.wait { $0.contains(" of 20 s") && $0.contains("Ctrl-C ends") }
      #expect(!shown.contains("before") && shown.contains("Ctrl-C ends"), "\(shown)")
      for name in ["asked", "written", "accepted", "errors", "connections", "lag p99", "processor"] {
        let row = try #require(shown.split(separator: "\n").first { $0.hasPrefix(name) }, "\(name)")
        #expect(row.count <= 60 && row.last.map { "▁▂▃▄▅▆▇█".contains($0) } == true, "\(row)")
      }
      try screen.waitForEnd()
      let end = try screen.text()
      #expect(end.hasPrefix("before\n") && end.contains("notifications  20,000 = 20,000"), "\(end)")
      #expect(!end.contains("Ctrl-C ends"))
    }
  }

  @Test("Colours are on a terminal only, never with NO_COLOR or --color never, and with --color always everywhere")
  func colours() throws {
    try Command.inFolder { command in
      let capture = Self.capture("plain-error.pcap")
      func shown(_ line: String) throws -> String {
        let screen = try Screen(command, columns: 120, line)
        defer { screen.close() }
        try screen.waitForEnd()
        return try screen.colours()
      }
      let red = "\u{1b}[31m1 rejected"
      #expect(try shown("'\(Command.path)' inspect '\(capture)'").contains(red))
      #expect(!(try shown("NO_COLOR=1 '\(Command.path)' inspect '\(capture)'").contains("\u{1b}[31m")))
      #expect(!(try shown("'\(Command.path)' inspect --color never '\(capture)'").contains("\u{1b}[31m")))
      #expect(!(try command.run("inspect", capture).output.contains("\u{1b}")))
      let always = try command.run("inspect", "--color", "always", capture).output
      #expect(always.contains(red))
      #expect(always.replacing(/\u{1b}\[[0-9]+m/, with: "") == (try command.run("inspect", capture).output))
    }
  }

  @Test("The short help has a line for each option but limits, and is not wider than the terminal")
  func shortHelp() throws {
    try Command.inFolder { command in
      for name in ["load", "inspect", "decode", "simulate", "follow", "capacity", "report"] {
        let short = try command.run(name, "-h")
        let long = try command.run(name, "--help").output
        #expect(short.status == 0 && short.errors.isEmpty)
        #expect(short.lines.count < long.split(separator: "\n").count)
        for line in short.lines { #expect(line.count <= 80, "\(name): \(line)") }
        #expect(!short.output.contains("\nLimits"))
        #expect(short.lines.last == "Details, examples and limits: apnscope \(name) --help")
        // Every option of the short help is one of the manual, with the same names.
        for match in short.output.matches(of: #/^  (?:-([a-zA-Z]), )?--([a-z0-9-]+)/#.anchorsMatchLineEndings()) {
          let names = match.output.1.map { "-\($0), " } ?? ""
          #expect(long.contains("\(names)--\(match.output.2)"), "\(name): \(match.output.2)")
        }
      }
      // A value that looks like it is none.
      #expect(try command.run("load", "--plain", "--print-plan", "--topic", "a", "--", "-h").status == 64)
    }
  }

  @Test("Short options mean what the long ones do, and override a plan file as these do")
  func shortOptions() throws {
    try Command.inFolder { command in
      let long = try command.run(
        "load", "--plain", "--print-plan", "--connections", "3", "--count", "5", "--for", "2s", "--rate", "10/s")
      let short = try command.run("load", "--plain", "--print-plan", "-c", "3", "-n", "5", "-d", "2s", "-r", "10/s")
      #expect(long.status == 0 && long.output == short.output && !long.output.isEmpty)
      try command.write(Array("connections = 7\nrate = \"9/s\"\nplain = true\n".utf8), "plan.toml")
      let merged = try command.run("load", "--plan", "plan.toml", "--print-plan", "-c", "3", "-qr", "10/s")
      #expect(merged.output.contains("connections = 3\n") && merged.output.contains("rate = \"10.0/s\"\n"), "\(merged)")
      let outcome = try command.run(
        "inspect", "-q", "--format", "json", "-o", "summary.json", Self.capture("plain-error.pcap"))
      #expect(outcome.status == 0 && outcome.output.isEmpty)
      #expect(try command.read("summary.json").contains(#""accepted" : 7"#))
    }
  }
}
