import Foundation
import TestSupport
import Testing

@Suite("Programs that tests start", .waiting)
struct ChildProcessTests {
  /// What the descriptors of a process lead to.
  private func targets(of process: String) -> [String] {
    let folder = "/proc/\(process)/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
  }

  @Test("Nothing stays open of a program that has ended") func noneLeft() throws {
    try Command.inFolder { command in
      for _ in 0..<20 {
        let pipe = Pipe()
        let process = try RunningProcess("cat", [], in: command.folder, pipe: pipe)
        try pipe.fileHandleForWriting.write(contentsOf: Data("text".utf8))
        try pipe.fileHandleForWriting.close()
        #expect(try process.end().output == "text")
        #expect(try command.shell("echo text").output == "text\n")
      }
      #expect(targets(of: "self").filter { $0.contains(command.folder.lastPathComponent) } == [])
    }
  }

  @Test("A program gets its standard files and no other, and begins in its folder") func threeFiles() throws {
    try Command.inFolder { command in
      let other = try FileHandle(forReadingFrom: URL(filePath: "/dev/zero"))
      defer { try? other.close() }
      // A descriptor that a program would inherit.
      let inherited = dup(other.fileDescriptor)
      defer { close(inherited) }
      let process = try RunningProcess("sleep", ["1000"], in: command.folder)
      defer { process.send(SIGKILL) }
      // The loader opens libraries for a moment; what a program inherits stays.
      #expect(waitUntil { Set(targets(of: "\(process.identifier)")).count == 3 })
      #expect(try command.shell("pwd -P").output.hasSuffix("/\(command.folder.lastPathComponent)\n"))
    }
  }

  @Test("Its end is said as a shell says it, and a program that takes too long is killed") func ends() throws {
    #expect(try ChildProcess("sh", ["-c", "exit 3"]).end() == .exit(3))
    let killed = try ChildProcess("sleep", ["1000"])
    #expect(killed.isRunning)
    killed.send(SIGTERM)
    #expect(try killed.end().status == 128 + SIGTERM)
    let late = try ChildProcess("sleep", ["1000"])
    #expect(throws: ChildProcess.Failure.self) { try late.end(within: 0) }
    #expect(waitUntil { !late.isRunning } && late.ending == .signal(SIGKILL))
    #expect(throws: ChildProcess.Failure.self) { try ChildProcess("/nonexistent/program") }
  }

  @Test("A program that nobody waits for ends with its object") func ended() throws {
    var process: ChildProcess? = try ChildProcess("sleep", ["1000"])
    let identifier = try #require(process?.identifier)
    process = nil
    #expect(kill(identifier, 0) == -1 && errno == ESRCH)
  }
}
