import Foundation
import TestSupport
import Testing

@Suite("interrupt", .waiting)
struct InterruptTests {
  @Test("Ctrl-C on a slow pipe ends in good order, with what was read", arguments: ["jsonl", "csv", "table"])
  func slowPipe(format: String) throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      // The first quarter; the pipe stays open and nothing more comes.
      let outcome = try interrupted(
        command, ["decode", "--format", format, "-"], after: capture.prefix(capture.count / 4))
      #expect(outcome.status == 130)
      // Sixteen notifications stand in the first quarter, as in the trace cut-in-packet.pcap.
      #expect(outcome.lines.count { $0.contains("notification") && $0.contains("Ciao") } == 16)
    }
  }

  @Test(
    "Also a pipe that brings a raw dump, or nothing yet",
    arguments: [("garbage-inside.bin", 1, 20), ("garbage-inside.bin", 0, 0)])
  func dump(trace: String, share: Int, least: Int) throws {
    try Command.inFolder { command in
      let bytes = try Data(contentsOf: Command.traces.appending(path: trace))
      let outcome = try interrupted(command, ["decode", "-"], after: bytes.prefix(bytes.count * share))
      #expect(outcome.status == 130)
      #expect(outcome.errors == "")
      #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } >= least)
    }
  }

  @Test("A report is of what was read", arguments: ["plain-error.pcap", "plain-error.pcap.jsonl"])
  func report(trace: String) throws {
    try Command.inFolder { command in
      let bytes = try Data(contentsOf: Command.traces.appending(path: trace))
      let outcome = try interrupted(
        command, ["report", "-", "--output", "report"], after: bytes.prefix(bytes.count / 4))
      #expect(outcome.status == 130)
      #expect(outcome.output == "report/report.html\nreport/report.md\n")
      #expect(try command.read("report/report.md").contains("| notifications | **1"))
    }
  }

  @Test("There is no report of nothing") func nothing() throws {
    try Command.inFolder { command in
      let outcome = try interrupted(command, ["report", "-", "--output", "report"], after: Data())
      #expect(outcome.status == 130)
      #expect(outcome.output == "" && outcome.errors == "")
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "report").path))
    }
  }

  /// Writes to the command's standard input, which stays open, and presses Ctrl-C when it waits for more.
  private func interrupted(_ command: Command, _ arguments: [String], after bytes: Data) throws -> Outcome {
    let pipe = Pipe()
    let process = try RunningProcess(Command.path, arguments, in: command.folder, pipe: pipe)
    try pipe.fileHandleForWriting.write(contentsOf: bytes)
    #expect(waitUntil { process.waitsForInput })
    process.send(SIGINT)
    let outcome = try process.end()
    try pipe.fileHandleForWriting.close()
    return outcome
  }

  @Test("Records of a quiet pipe are handed on while it stays open", arguments: ["jsonl", "csv", "table"])
  func quietPipe(format: String) throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let pipe = Pipe()
      let process = try RunningProcess(
        Command.path, ["decode", "--format", format, "--output", "records", "-"], in: command.folder, pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: capture.prefix(capture.count / 4))
      #expect(waitUntil { (try? command.read("records").contains("Ciao #15")) == true })
      #expect(process.isRunning)
      try pipe.fileHandleForWriting.close()
      #expect(try process.end().status == 0)
    }
  }
}
