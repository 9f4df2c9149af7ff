import Foundation
import Glibc
import TestSupport
import Testing

/// `apnscope demo`, which nothing but the command is needed for.
@Suite("demo", .waiting, .timeLimit(.minutes(5)))
struct DemoCommandTests {
  private static let small = ["demo", "--rate", "1k/s", "--for", "2s", "--output", "tour"]

  private static let mayCapture =
    getuid() == 0
    && ["/usr/bin/dumpcap", "/usr/bin/tcpdump", "/usr/sbin/tcpdump"].contains(
      where: FileManager.default.isExecutableFile(atPath:))

  @Test("Its books agree, and its folder has the results, the capture and the report")
  func agrees() throws {
    try Command.inFolder { command in
      let outcome = try command.run(Self.small)
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("The books agree."))
      #expect(!outcome.output.contains("✗"))
      // Every command is shown as one would type it.
      for name in ["identity", "simulate", "load", "report"] { #expect(outcome.output.contains("$ apnscope \(name) ")) }
      for file in ["run.json", "sim.json", "report/report.html", "run.keys", "ids/ca.pem"] {
        #expect(FileManager.default.fileExists(atPath: command.folder.appending(path: "tour/\(file)").path), "\(file)")
      }
      // Two books where nobody may capture, else three.
      let books = outcome.lines.filter { $0.hasSuffix(" gateway") && $0.hasPrefix(" ") }
      if Self.mayCapture {
        #expect(
          books.map { $0.split(separator: " ").map(String.init) } == [["load", "gateway"], ["capture", "gateway"]])
        // The capture has its secrets: it can be read without the key log.
        let inspection = try command.shell(
          """
          port=$(sed -n 's/^gateway .*://p' tour/simulator.txt)
          $apnscope inspect tour/recording --format json --port "$port=gateway" | jq -c '[.fates.rejected > 0, .summary.gaps]'
          """)
        #expect(inspection.output == "[true,0]\n", "\(inspection.errors)")
      } else {
        #expect(outcome.output.contains("Without a capture: "))
      }
    }
  }

  @Test("Where nothing can capture, the books of load and gateway are compared, and it says so")
  func withoutCapture() throws {
    try Command.inFolder { command in
      // No dumpcap or tcpdump is found.
      let outcome = try command.shell("PATH=/nonexistent $apnscope \(Self.small.joined(separator: " "))")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      #expect(outcome.output.contains("Without a capture: ") && outcome.output.contains("neither dumpcap nor tcpdump"))
      #expect(!outcome.output.contains("capture  gateway"))
      #expect(outcome.output.contains("The books agree."))
    }
  }

  @Test("A folder that exists is left as it is")
  func existingFolder() throws {
    try Command.inFolder { command in
      _ = try command.shell("mkdir tour && touch tour/mine")
      let outcome = try command.run(Self.small)
      #expect(outcome.status == 66 && outcome.errors.contains("tour: exists; choose another --output"))
      #expect(try command.shell("ls tour").output == "mine\n")
    }
  }

  @Test("Interrupted, it leaves no process behind")
  func interrupted() throws {
    try Command.inFolder { command in
      let demo = try RunningProcess(
        Command.path, ["demo", "--rate", "1k/s", "--for", "60s", "--output", "tour"], in: command.folder)
      let ledger = command.folder.appending(path: "tour/sim.json").path
      #expect(waitUntil { demo.output.contains("$ apnscope load ") })
      demo.send(SIGINT)
      let outcome = try demo.end()
      #expect(outcome.status == 130)
      // The gateway has ended in good order.
      #expect(FileManager.default.fileExists(atPath: ledger))
      let folder = command.folder.resolvingSymlinksInPath().path
      // Each works in the folder.
      let left = try command.shell(
        "for process in /proc/[0-9]*; do [[ $(readlink $process/cwd) == '\(folder)/tour'* ]] && echo $process; done; true"
      )
      #expect(left.output == "")
    }
  }

  @Test("Values that the load does not take are a usage error", arguments: ["--rate fast", "--for 10", "--output"])
  func usage(arguments: String) throws {
    try Command.inFolder { command in
      let outcome = try command.shell("$apnscope demo \(arguments)")
      #expect(outcome.status == 64)
    }
  }
}
