import Foundation
import TestSupport
import Testing

/// A load that nothing is said of: its own tools find nothing to say about its expirations.
@Suite("loads with defaults", .waiting)
struct DefaultLoadTests {
  @Test("Recorded by the gateway, lint names nothing but the marker, and nothing about expirations")
  func recorded() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--records", "records.jsonl"], in: command)
      let load = try LoadProcess.start(simulator, ["--count", "300"], in: command)
      #expect(try load.end().status == 0)
      let ledger = try simulator.stop()
      #expect(ledger.payloads?.lint.keys.contains { $0.hasPrefix("expiration") } != true)
      let lint = try command.run("lint", "--format", "json", "records.jsonl")
      #expect(lint.output != "" && !lint.output.contains("expiration_"), "\(lint.output.suffix(400))")
      // The marker is bad on purpose: without token and payload.
      let judged = lint.lines.filter { $0.contains("\"code\"") }
      #expect(judged.count == 1 && judged[0].contains("token_length") && judged[0].contains("payload_empty"))
      let records = try command.read("records.jsonl")
      #expect(records.contains("\"expiration\":") && !records.contains("\"expiration_"))
    }
  }

  @Test("Captured, inspect says nothing about expirations", .enabled(if: LoopbackCapture.isPossible))
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
      #expect(!inspected.output.contains("expiration"), "\(inspected.output)")
    }
  }
}
