import Foundation
import TestSupport
import Testing

/// The sessions that README.md shows: what is behind `$` is typed into one shell after the other, in a folder with the
/// traces, and what it shows below comes.
@Suite("README", .waiting)
struct ReadmeTests {
  private static let root = Command.traces.deletingLastPathComponent()
  private static let isPossible = getuid() == 0 && ["unshare", "ip", "jq", "xxd"].allSatisfy(ExternalTool.isInstalled)

  private struct Step {
    var command: String
    var shown: [String]
  }

  /// The blocks with commands, each a session of its own.
  private static func sessions() throws -> [[Step]] {
    let page = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    return page.components(separatedBy: "\n```").enumerated().compactMap { place, block in
      guard place % 2 == 1, block.hasPrefix("\n$ ") else { return nil }
      var steps: [Step] = []
      for line in block.dropFirst().split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
        if line.hasPrefix("$ ") {
          steps.append(Step(command: String(line.dropFirst(2)), shown: []))
        } else if let last = steps.last, last.shown.isEmpty, last.command.hasSuffix("\\") {
          steps[steps.count - 1].command += "\n" + line
        } else {
          steps[steps.count - 1].shown.append(line)
        }
      }
      return steps
    }
  }

  /// A line without its figures, which differ from run to run; of rates and thresholds only the name, since what is said of
  /// them follows how fast the machine is.
  private static func shape(_ line: String) -> String {
    if line.hasPrefix("rate ") { return "rate" }
    if let name = line.firstMatch(of: #/^[✓✗] \w+<\S+/#) { return String(name.output.dropFirst(2)) }
    return line.replacing(#/[0-9][0-9,.]*( (ns|µs|ms|s))?/#, with: "#").replacing("✗", with: "✓")
      .replacing(#/ +/#, with: " ")
  }

  /// Whether lines are as shown, where `...` stands for any lines.
  private static func fits(_ lines: ArraySlice<String>, _ shown: ArraySlice<String>) -> Bool {
    // The page shows the beginning, or what is between dots.
    guard let first = shown.first else { return true }
    if first == "..." {
      let rest = shown.dropFirst()
      return rest.isEmpty || lines.indices.contains { fits(lines[$0...], rest) }
    }
    guard let line = lines.first, shape(line) == shape(first) else { return false }
    return fits(lines.dropFirst(), shown.dropFirst())
  }

  @Test("Every session prints what the page shows", .enabled(if: isPossible, "needs root, ip, jq and xxd"))
  func blocks() throws {
    let sessions = try Self.sessions()
    #expect(sessions.count >= 6)
    try Command.inFolder { command in
      var script =
        "mkdir bin; ln -s \"$apnscope\" bin/apnscope; ln -s '\(Command.traces.path)' Traces; PATH=$PWD/bin:$PATH\n"
      // The page waits for a second, and a busy machine may need more.
      script += """
        ip link set lo up
        listening() {
          for ((tenths = 0; tenths < 600; tenths++)); do grep -qsE '^(gateway|http2) ' "$@" && return; sleep 0.1; done
        }

        """
      for (number, session) in sessions.enumerated() {
        script += "(\nrm -f http2.txt\n"
        for (place, step) in session.enumerated() {
          // What a job prints later belongs to the step that waits for it.
          let target = "out.\(number).\(place)"
          let isLast = step.command.contains("wait") && place > 0
          script += "{ \(step.command)\n} > \(target) 2> \(target).err\n"
          if isLast { script += "cat out.\(number).[0-\(place - 1)].job >> \(target) 2> /dev/null\n" }
        }
        script += ")\n"
      }
      script += "exit 0\n"
      // A job in the background writes to a file of its own.
      script = script.replacing(#/ & sleep 1\n} > (out\.[0-9]+\.[0-9]+) /#) { match in
        " > \(match.output.1).job & listening \(match.output.1).job http2.txt\n} > \(match.output.1) "
      }
      script = script.replacing("; sleep 1)", with: "; sleep 5)")
      try command.write(Array(script.utf8), "sessions.sh")
      let outcome = try command.shell("timeout 300 unshare --net bash -m sessions.sh")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      for (number, session) in sessions.enumerated() {
        for (place, step) in session.enumerated() {
          let text = try command.read("out.\(number).\(place)")
          let lines = text.split(separator: "\n").map(String.init)
          let shown = step.shown
          // A step that shows nothing may print something: certificates that were made, for example.
          guard !shown.isEmpty else { continue }
          let errors = (try? command.read("out.\(number).\(place).err")) ?? ""
          #expect(Self.fits(lines[...], shown[...]), "$ \(step.command)\n\(text)\(errors)")
        }
      }
    }
  }
}
