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
