import Foundation
import Glibc
import TestSupport
import Testing

/// What stands where an output goes: nothing but a regular file is ever replaced.
@Suite("Outputs: devices, pipes, links, files of others", .waiting)
struct OutputPlaceTests {
  /// Commands that write a copy of a capture, and the beginning of all that they write.
  private static let copies = ["annotate plain-error.pcap", "redact plain-error.pcap"]
  private static let section: [UInt8] = [0x0a, 0x0d, 0x0d, 0x0a]

  private func inFolder(_ body: (Command) throws -> Void) throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      try body(command)
    }
  }

  private func bytes(_ name: String, in command: Command) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: command.folder.appending(path: name)))
  }

  private func mode(_ name: String, in command: Command) throws -> mode_t {
    var status = stat()
    try #require(unsafe lstat(command.folder.appending(path: name).path, &status) == 0)
    return status.st_mode
  }

  private func names(in command: Command) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: command.folder.path).filter {
      $0 != ".output" && $0 != ".errors"
    }
    .sorted()
  }

  @Test("A pipe with a name is written to, and its reader comes to the end", arguments: copies)
  func fifo(copy: String) throws {
    try inFolder { command in
      let outcome = try command.shell(
        #"mkfifo p; timeout 60 cat p > read & "$apnscope" \#(copy) --output p; code=$?; wait $!; exit $code"#)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try bytes("read", in: command).prefix(4) == Self.section[...])
      #expect(try mode("p", in: command) & S_IFMT == S_IFIFO)
    }
  }

  @Test("A device stays one", .enabled(if: getuid() == 0, "needs root, to make one"), arguments: copies)
  func device(copy: String) throws {
    try inFolder { command in
      let outcome = try command.shell(#"mknod null c 1 3; "$apnscope" \#(copy) --output null"#)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try mode("null", in: command) & S_IFMT == S_IFCHR)
      #expect(try command.shell(#""$apnscope" \#(copy) --output /dev/full"#).status == 74)
    }
  }

  @Test(
    "Standard output, by three names", arguments: copies, ["-", "/dev/stdout", "/proc/self/fd/1"])
  func standardOutput(copy: String, name: String) throws {
    try inFolder { command in
      _ = try command.shell(#""$apnscope" \#(copy) --output file; ls -l /dev/stdout > before"#)
      let expected = try bytes("file", in: command)
      let outcome = try command.shell(#""$apnscope" \#(copy) --output \#(name) | cat > piped"#)
      #expect(outcome.status == 0, "\(outcome.errors)")
      let redirected = try command.shell(#""$apnscope" \#(copy) --output \#(name) > redirected"#)
      #expect(redirected.status == 0)
      // What stands in the file before stays.
      let appended = try command.shell(#"echo before > appended; "$apnscope" \#(copy) --output \#(name) >> appended"#)
      #expect(appended.status == 0)
      #expect(try bytes("appended", in: command).prefix(11) == Array("before\n".utf8)[...] + Self.section)
      #expect(try bytes("appended", in: command).count == expected.count + 7)
      for output in ["piped", "redirected"] {
        // Pseudonyms are others in each run.
        #expect(try bytes(output, in: command).count == expected.count, "\(output)")
        if copy.hasPrefix("annotate") { #expect(try bytes(output, in: command) == expected) }
      }
      #expect(try command.shell("ls -l /dev/stdout | diff - before").status == 0)
    }
  }

  @Test("A link stays, and its target is replaced", arguments: copies)
  func link(copy: String) throws {
    try inFolder { command in
      let outcome = try command.shell(
        #"echo old > target; ln -s target link; echo victim > victim; ln -s victim link.part; "$apnscope" \#(copy) --output link"#
      )
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try bytes("target", in: command).prefix(4) == Self.section[...])
      #expect(try mode("link", in: command) & S_IFMT == S_IFLNK && command.read("victim") == "victim\n")
    }
  }

  @Test("Two runs with one output: it is whole, and one of theirs")
  func two() throws {
    try Command.inFolder { command in
      try command.trace("plain-error.pcap")
      try command.trace("known-bad-and-errors.pcap")
      for name in ["plain-error", "known-bad-and-errors"] {
        #expect(try command.run(["annotate", "\(name).pcap", "--output", "\(name).pcapng"]).status == 0)
      }
      let whole = try [
        bytes("plain-error.pcapng", in: command), bytes("known-bad-and-errors.pcapng", in: command),
      ]
      for _ in 0..<8 {
        let outcome = try command.shell(
          """
          "$apnscope" annotate plain-error.pcap --output out.pcapng & one=$!
          "$apnscope" annotate known-bad-and-errors.pcap --output out.pcapng & two=$!
          wait $one && wait $two
          """)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(whole.contains(try bytes("out.pcapng", in: command)))
      }
      #expect(try names(in: command).allSatisfy { !$0.hasPrefix(".") && !$0.hasSuffix(".part") })
    }
  }

  @Test("A signal leaves the file as it was, and nothing beside it", arguments: [SIGINT, SIGTERM, SIGHUP, SIGKILL])
  func signals(signal: Int32) throws {
    try inFolder { command in
      try command.write(Array("old".utf8), "out.pcapng")
      // The capture comes from a pipe that stays open.
      let pipe = Pipe()
      let running = try RunningProcess(
        Command.path, ["redact", "-", "--output", "out.pcapng"], in: command.folder, name: "run", pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: bytes("plain-error.pcap", in: command))
      #expect(waitUntil { running.waitsForInput })
      running.send(signal)
      let outcome = try running.end()
      #expect(outcome.status == (signal == SIGKILL ? 137 : 130), "\(outcome.errors)")
      #expect(try command.read("out.pcapng") == "old")
      #expect(try names(in: command) == ["out.pcapng", "plain-error.pcap", "run.errors", "run.output"])
    }
  }

  @Test("A copy has no more rights than the capture, or than the file it replaces")
  func rights() throws {
    try inFolder { command in
      let outcome = try command.shell(
        """
        umask 022; set -e
        cp plain-error.pcap private.pcap; chmod 600 private.pcap
        "$apnscope" annotate private.pcap --output a.pcapng
        "$apnscope" annotate plain-error.pcap --output b.pcapng
        touch c.pcapng d.pcapng; chmod 600 c.pcapng d.pcapng
        "$apnscope" annotate plain-error.pcap --output c.pcapng
        "$apnscope" redact plain-error.pcap --output d.pcapng
        "$apnscope" redact plain-error.pcap --output e.pcapng
        "$apnscope" annotate - --output f.pcapng < private.pcap
        cat private.pcap | "$apnscope" annotate - --output g.pcapng
        chmod 444 private.pcap
        "$apnscope" annotate private.pcap --output h.pcapng
        """)
      #expect(outcome.status == 0, "\(outcome.errors)")
      for (name, expected) in [
        ("a", 0o600), ("b", 0o644), ("c", 0o600), ("d", 0o600), ("e", 0o644), ("f", 0o600), ("g", 0o644), ("h", 0o644),
      ]
        as [(String, mode_t)]
      {
        #expect(try mode("\(name).pcapng", in: command) & 0o7777 == expected, "\(name)")
      }
    }
  }

  @Test(
    "A file that is mounted is written over", .enabled(if: getuid() == 0, "needs root, to mount"), arguments: copies)
  func mounted(copy: String) throws {
    try inFolder { command in
      let line = """
        echo old > outer; echo old > target
        mount --bind outer target && "$apnscope" \(copy) --output target && head -c 4 target | xxd -p
        """
      try command.write(Array(line.utf8), "script")
      let outcome = try command.shell("unshare -m bash script")
      #expect(outcome.status == 0 && outcome.lines.last == "0a0d0d0a", "\(outcome.errors)")
      #expect(try bytes("outer", in: command).prefix(4) == Self.section[...])
      #expect(try names(in: command).allSatisfy { !$0.hasPrefix(".") })
    }
  }

  @Test("A capture with secrets of TLS is copied for its owner alone, also over a file that others can read")
  func secrets() throws {
    try Command.inFolder { command in
      // A block of secrets: type 10, length, the type of a key log, its length, and the log.
      let log = Array(
        "CLIENT_RANDOM \(String(repeating: "00", count: 32)) \(String(repeating: "11", count: 48))\n".utf8)
      let padded = log + Array(repeating: 0, count: (4 - log.count % 4) % 4)
      func little(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
      let block =
        little(10) + little(20 + padded.count) + little(0x544c_534b) + little(log.count) + padded
        + little(20 + padded.count)
      try command.write(
        [UInt8](try Data(contentsOf: Command.traces.appending(path: "plain-error.pcapng"))) + block, "in.pcapng")
      let outcome = try command.shell(
        """
        umask 022; set -e; chmod 644 in.pcapng; touch over.pcapng; chmod 644 over.pcapng
        "$apnscope" annotate in.pcapng --output new.pcapng
        "$apnscope" annotate in.pcapng --output over.pcapng
        grep -c CLIENT_RANDOM new.pcapng
        """)
      #expect(outcome.status == 0 && outcome.lines == ["1"], "\(outcome.errors)")
      for name in ["new", "over"] { #expect(try mode("\(name).pcapng", in: command) & 0o7777 == 0o600, "\(name)") }
    }
  }

  @Test("- is standard output everywhere, and no file has that name")
  func dash() throws {
    try SimulatorProcess.inFolder { command in
      try command.trace("plain-error.pcap")
      for line in ["decode plain-error.pcap", "follow plain-error.pcap"] {
        let outcome = try command.shell(#""$apnscope" \#(line) --output - | diff - <("$apnscope" \#(line))"#)
        #expect(outcome.status == 0 && outcome.output == "", "\(line): \(outcome.output)")
      }
      let simulator = try SimulatorProcess(["--plain", "--no-feedback"], in: command)
      for name in ["one", "two"] {
        let outcome = try command.shell(
          #""$apnscope" load --plain --gateway 127.0.0.1:\#(simulator.gateway) --count 20 --history h.sqlite --output - > \#(name).json"#
        )
        #expect(outcome.status == 0, "\(outcome.errors)")
        let result = try JSONSerialization.jsonObject(with: Data(command.read("\(name).json").utf8)) as? [String: Any]
        #expect(result?["verdict"] != nil)
      }
      _ = try simulator.stop()
      let chart = try command.run(["history", "h.sqlite", "--figure", "accepted_per_s", "--output", "-"])
      #expect(chart.status == 0 && chart.output.hasPrefix("<svg") && chart.output.hasSuffix("</svg>\n"))
      let report = try command.run(["report", "one.json", "--output", "-"])
      #expect(report.status == 64 && report.errors.contains("--output takes a folder"))
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "-").path))
    }
  }
}
