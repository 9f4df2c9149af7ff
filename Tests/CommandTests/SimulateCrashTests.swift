import Foundation
import TestSupport
import Testing

/// The feedback list across `kill -9`: nothing is lost; what was being sent at that moment may be sent again, nothing else.
@Suite("simulate and kill -9", .waiting)
struct SimulateCrashTests {
  @Test("What an error response proved accepted is on the list, though the process was killed at that moment")
  func killedAfterProof() throws {
    try SimulatorProcess.inFolder { command in
      let provider = PythonProvider(folder: command.folder)
      var next = 1
      var expected: Set<String> = []
      for (round, count) in [1, 50, 1_000, 1, 10_000, 300, 3_000].enumerated() {
        let simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
        // The client kills it as soon as it has read the response.
        let sent = try provider.send(
          simulator.gateway, "--first", "\(next)", "--tokens", "\(count)", "--chunk", "\(7 * count)", "--kill",
          "\(simulator.identifier)")
        #expect(try simulator.end().status == 128 + SIGKILL)
        #expect(sent.accepted.count == count)
        expected.formUnion(PythonProvider.tokens(next..<next + count))
        next += count
        guard round % 3 == 2 else { continue }
        let restarted = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
        let list = try provider.feedback(restarted.feedback)
        #expect(list.tokens.count == expected.count)
        #expect(Set(list.tokens) == expected)
        #expect(try restarted.stop().feedback.waiting == 0)
        expected = []
      }
      let simulator = try SimulatorProcess(in: command)
      #expect(Set(try provider.feedback(simulator.feedback).tokens) == expected)
      _ = try simulator.stop()
    }
  }

  @Test("Killed in the middle of a transfer: everything is sent again") func killedInTransfer() throws {
    try SimulatorProcess.inFolder { command in
      let provider = PythonProvider(folder: command.folder)
      let count = 20_000
      var simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
      _ = try provider.send(simulator.gateway, "--tokens", "\(count)", "--chunk", "1000")
      var generator = SeededGenerator(seed: 4)
      for _ in 0..<(TestRun.isWhole ? 6 : 3) {
        // The other half does not fit into the client's machine, which would have taken the list with it.
        let bytes = Int.random(in: 1...(count * 19), using: &generator)
        let part = try provider.feedback(
          simulator.feedback, "--stop-after", "\(bytes)", "--receive-buffer", "4096", "--kill",
          "\(simulator.identifier)")
        #expect(part.bytes == bytes)
        #expect(try simulator.end().status == 128 + SIGKILL)
        simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
      }
      let whole = try provider.feedback(simulator.feedback)
      #expect(whole.tokens.count == count)
      #expect(Set(whole.tokens) == PythonProvider.tokens(1...count))
      // In good order: what was read is taken off before the process ends.
      #expect(try simulator.stop().feedback.waiting == 0)
      simulator = try SimulatorProcess(in: command)
      #expect(try provider.feedback(simulator.feedback).tokens.isEmpty)
      _ = try simulator.stop()
    }
  }

  @Test("Killed while a list that was read is taken off: a part of it may come again, and what failed since does")
  func killedAfterTransfer() throws {
    try SimulatorProcess.inFolder { command in
      let provider = PythonProvider(folder: command.folder)
      var next = 1
      for pause in TestRun.isWhole ? [0, 1, 3, 10, 30, 100] : [0, 3, 30] {
        let (old, new) = (next..<next + 20_000, next + 20_000..<next + 20_100)
        next = new.upperBound
        var simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
        _ = try provider.send(simulator.gateway, "--first", "\(old.lowerBound)", "--tokens", "20000", "--chunk", "1000")
        #expect(try provider.feedback(simulator.feedback).tokens.count == old.count)
        usleep(UInt32(pause * 1_000))
        _ = try provider.send(
          simulator.gateway, "--first", "\(new.lowerBound)", "--tokens", "100", "--kill", "\(simulator.identifier)")
        _ = try simulator.end()
        simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
        let rest = Set(try provider.feedback(simulator.feedback).tokens)
        #expect(rest.isSuperset(of: PythonProvider.tokens(new)))
        #expect(rest.isSubset(of: PythonProvider.tokens(old.lowerBound..<new.upperBound)))
        #expect(try simulator.stop().feedback.waiting == 0)
      }
    }
  }
}
