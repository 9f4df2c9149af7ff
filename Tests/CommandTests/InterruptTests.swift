import Foundation
import Testing

@Suite("interrupt")
struct InterruptTests {
  @Test("Ctrl-C on a slow pipe ends in good order, with what was read", arguments: ["jsonl", "csv", "table"])
  func slowPipe(format: String) throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      // A test runs on a thread that blocks signals, which a process inherits; env gives it SIGINT back.
      let arguments = ["--default-signal=INT", Command.path, "decode", "--format", format, "-"]
      let process = try command.prepared(arguments, executable: "/usr/bin/env")
      let pipe = Pipe()
      process.standardInput = pipe
      try process.run()
      // The first quarter; the pipe stays open and nothing more comes.
      try pipe.fileHandleForWriting.write(contentsOf: capture.prefix(capture.count / 4))
      waitUntilRead(pipe)
      process.interrupt()
      process.waitUntilExit()
      let outcome = try command.outcome(of: process)
      #expect(outcome.status == 130)
      // Sixteen notifications stand in the first quarter, as in the trace cut-in-packet.pcap.
      #expect(outcome.lines.count { $0.contains("notification") && $0.contains("Ciao") } == 16)
      try pipe.fileHandleForWriting.close()
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

  /// Writes to the command's standard input, which stays open, and presses Ctrl-C.
  private func interrupted(_ command: Command, _ arguments: [String], after bytes: Data) throws -> Outcome {
    // A hang is ended by a signal that is not Ctrl-C.
    let process = try command.prepared(
      ["--default-signal=INT", "timeout", "--foreground", "--signal=KILL", "60", Command.path] + arguments,
      executable: "/usr/bin/env")
    let pipe = Pipe()
    process.standardInput = pipe
    try process.run()
    try pipe.fileHandleForWriting.write(contentsOf: bytes)
    waitUntilRead(pipe)
    process.interrupt()
    process.waitUntilExit()
    try pipe.fileHandleForWriting.close()
    return try command.outcome(of: process)
  }

  @Test("Records of a quiet pipe are handed on while it stays open", arguments: ["jsonl", "csv", "table"])
  func quietPipe(format: String) throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let process = try command.prepared(["decode", "--format", format, "--output", "records", "-"])
      let pipe = Pipe()
      process.standardInput = pipe
      try process.run()
      try pipe.fileHandleForWriting.write(contentsOf: capture.prefix(capture.count / 4))
      var records = ""
      for _ in 0..<500 where !records.contains("Ciao #15") {
        usleep(20_000)
        records = (try? command.read("records")) ?? ""
      }
      #expect(records.contains("Ciao #15"))
      #expect(process.isRunning)
      try pipe.fileHandleForWriting.close()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
    }
  }

  /// Waits until the process has taken everything out of the pipe, and a little for it to wait again.
  private func waitUntilRead(_ pipe: Pipe) {
    var waiting: Int32 = 1
    for _ in 0..<500 where waiting > 0 {
      usleep(10_000)
      _ = unsafe ioctl(pipe.fileHandleForWriting.fileDescriptor, UInt(FIONREAD), &waiting)
    }
    usleep(200_000)
  }
}
