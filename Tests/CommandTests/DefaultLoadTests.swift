import Foundation
import TestSupport
import Testing

/// A load with defaults: of its notifications lint finds nothing to say, of its marker what is bad on purpose.
@Suite("loads with defaults", .waiting)
struct DefaultLoadTests {
  @Test("Recorded by the gateway, lint names nothing but the marker")
  func recorded() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--records", "records.jsonl"], in: command)
      let load = try LoadProcess.start(simulator, ["--count", "300"], in: command)
      #expect(try load.end().status == 0)
      let ledger = try simulator.stop()
      // The gateway refuses the marker for its token, and judges no further.
      #expect(ledger.payloads?.lint.filter { $0.key.hasPrefix("expiration") } ?? [:] == [:])
      let lint = try command.run("lint", "--format", "json", "records.jsonl")
      // The marker is bad on purpose, as pushy writes it: without token and payload, and never stored.
      let judged = lint.lines.filter { $0.contains("\"code\"") }
      #expect(judged.count == 1 && judged[0].contains("token_length") && judged[0].contains("payload_empty"))
      let records = try command.read("records.jsonl").split(separator: "\n")
      #expect(records.count { $0.contains("\"expiration\":") } > 300)
    }
  }

  @Test("Captured, inspect says of expirations only that of the marker", .enabled(if: LoopbackCapture.isPossible))
  func captured() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain"], in: command)
      let capture = try LoopbackCapture(port: simulator.gateway, file: "capture.pcapng", in: command)
      let load = try LoadProcess.start(simulator, ["--plain", "--count", "300"], in: command)
      #expect(try load.end().status == 0)
      _ = try simulator.stop()
      try capture.end()
      let inspected = try command.run("inspect", "--port", "\(simulator.gateway)=gateway", "capture.pcapng")
      #expect(inspected.status == 0 && inspected.output.contains("300 accepted"), "\(inspected.output)")
      let said = inspected.lines.filter { $0.contains("expiration") }
      #expect(said.allSatisfy { $0.contains(/\b1 +advice +expiration_zero +0/) } && said.count <= 1, "\(said)")
    }
  }
}
