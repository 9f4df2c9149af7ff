import Foundation
import TestSupport
import Testing

/// Loads that need more files than the process may have open.
@Suite("load: descriptors", .waiting)
struct LoadDescriptorTests {
  @Test(
    "More connections than descriptors are a usage error with both numbers, and no crash at any limit",
    arguments: [
      ("load --plain --connections 100", 50), ("load --plain --connections 1000", 256), ("load --plain", 8),
      ("load --plain", 16), ("load --plain", 26), ("load --plain --threads 100 --connections 100", 300),
      ("load --plain --metrics 127.0.0.1:0 --connections 20", 100), ("capacity --plain --connections 100", 50),
      ("capacity --plain --connections-sweep 1,2,400", 256), ("capacity --plain", 20),
    ])
  func refused(arguments: String, limit: Int) throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        "ulimit -n \(limit); exec $apnscope \(arguments) --gateway 127.0.0.1:1 --give-up 1ms --connect-timeout 1ms")
      #expect(outcome.status == 64, "\(outcome.errors)")
      #expect(outcome.errors.contains("and this process may open \(limit). "), "\(outcome.errors)")
      #expect(outcome.errors.contains("files at a time") && outcome.errors.contains("'ulimit -n'"))
      let text = outcome.errors.firstMatch(of: #/([0-9,]+) connections? and what else is open take ([0-9,]+) files/#)
      let numbers = try #require(text.map { [$0.output.1, $0.output.2] }, "\(outcome.errors)").compactMap {
        Int($0.replacing(",", with: ""))
      }
      #expect(numbers.count == 2 && numbers[0] < numbers[1] && numbers[1] > limit, "\(outcome.errors)")
    }
  }

  @Test("The number of files that is asked for is enough, and the soft limit is raised to it")
  func enough() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--no-feedback"], in: command)
      let load =
        "$apnscope load --plain --gateway 127.0.0.1:\(simulator.gateway) --connections 30 --threads 2 --count 3000 --output run.json"
      let refused = try command.shell("ulimit -n 50; exec \(load)")
      let needed = try #require(refused.errors.firstMatch(of: #/is open take ([0-9]+) files/#)?.output.1)
      let patience = LoadProcess.patience.joined(separator: " ")
      let outcome = try command.shell("ulimit -Sn 20; ulimit -Hn \(needed); exec \(load) \(patience)")
      #expect(outcome.status == 0, "\(outcome.errors)")
      let connections = try LoadProcess.result(in: command).connections
      #expect(connections.opened >= 30 && connections.failed == 0 && connections.failures == [:])
      _ = try simulator.stop()
    }
  }
}
