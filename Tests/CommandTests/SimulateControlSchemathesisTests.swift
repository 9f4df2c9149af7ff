import Foundation
import OutputSchema
import TestSupport
import Testing

/// The OpenAPI document of `--control`, against the endpoint that serves it, by a program that shares no code with it.
@Suite("simulate: the description of the control endpoint", .waiting)
struct SimulateControlSchemathesisTests {
  private static let root = Command.traces.deletingLastPathComponent()
  private static let program = root.appending(path: ".build/schemathesis/bin/schemathesis").path
  private static let settings = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "Clients/schemathesis.toml").path
  static let isInstalled = FileManager.default.fileExists(
    atPath: root.appending(path: ".build/schemathesis/installed").path)

  @Test("Each operation is described, and each reference is to a schema that is there")
  func description() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let answer = try gateway.get("/openapi.json")
      let document = try answer.object()
      #expect(document["openapi"] as? String == "3.1.0")
      let paths = try #require(document["paths"] as? [String: [String: Any]])
      let methods = paths.values.flatMap { $0.keys.filter { $0 != "parameters" } }
      #expect(methods.count == 25, "\(methods.count) operations")
      let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: Any])
      let text = String(decoding: answer.body, as: UTF8.self)
      for reference in text.matches(of: #/"#\/components\/schemas\/([^"]+)"/#) {
        #expect(schemas[String(reference.output.1)] != nil, "\(reference.output.1)")
      }
      _ = try gateway.stop()
    }
  }

  @Test(
    "Requests as described are answered as described, and all others are refused",
    .enabled(if: isInstalled, "schemathesis is not installed; Scripts/test does that"))
  func schemathesis() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(
        ["--reject", "prefix=00000002", "--local-push", "127.0.0.1:0", "--local-push-control", "127.0.0.1:0"],
        in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send((1...3).flatMap { Frames.framed($0) })
      #expect(try client.receive() == Frames.response(8, 2))
      _ = try gateway.wait(3)
      let process = try RunningProcess(
        Self.program,
        [
          "--config-file", Self.settings, "run", "http://127.0.0.1:\(gateway.control)/openapi.json", "--checks", "all",
          "--phases", "examples,coverage,fuzzing", "--max-examples", "5", "--seed", "1", "--continue-on-failure",
          "--request-timeout", "60", "--warnings", "off", "--no-color",
        ], in: command.folder)
      let outcome = try process.end()
      #expect(outcome.status == 0, "\(outcome.output.suffix(8_000))\(outcome.errors.suffix(2_000))")
      // It has asked: a run without operations is no proof. It leaves out the one that returns the description.
      #expect(
        outcome.output.contains("24 selected / 24 total") && outcome.output.contains("generated"), "\(outcome.output)")
      let counts = try gateway.get("/counts")
      #expect(counts.status == 200)
      _ = try gateway.stop()
    }
  }
}
