import Foundation
import Glibc
import TestSupport
import Testing

/// The command beside a program that stands in for dumpcap, so that no privileges and no traffic are needed.
@Suite("Live captures, of a program that stands in for dumpcap", .waiting)
struct LiveCommandTests {
  /// Puts a script called `dumpcap` into the folder `bin`.
  private func program(_ command: Command, _ lines: String, name: String = "dumpcap") throws {
    let folder = command.folder.appending(path: "bin")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: name)
    try Data("#!/bin/bash\nprintf '%s\\n' \"$*\" > arguments\n\(lines)\n".utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
  }

  /// Does something and waits for Ctrl-C, then ends as dumpcap does. Ctrl-C may come with the last that was written, so
  /// that it has to be known before.
  private static func waits(after line: String = ":", end: String = "exit 0") -> String {
    "trap '\(end)' INT\n\(line)\nwhile :; do sleep 0.05; done"
  }

  /// The command with `bin` in front of the other programs.
  private func start(_ command: Command, _ arguments: [String]) throws -> RunningProcess {
    let path = command.folder.appending(path: "bin").path
    return try RunningProcess(
      "/usr/bin/env", ["PATH=\(path):/usr/bin:/bin", Command.path] + arguments, in: command.folder)
  }

  private func trace(_ name: String) -> String { Command.traces.appending(path: name).path }

  @Test("Records are there while the capture goes on, and Ctrl-C ends it with the summary")
  func interrupt() throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "cat '\(trace("plain-error.pcapng"))'"))
      let running = try start(command, ["decode", "-i", "eth0", "--filter", "tcp port 2195"])
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
      #expect(running.isRunning)
      running.send(SIGINT)
      let outcome = try running.end()
      #expect(outcome.status == 130 && outcome.errors == "")
      #expect(outcome.lines[0].hasPrefix(#"{"type":"capture","schema":1,"source":"eth0","format":"pcapng""#))
      #expect(
        outcome.lines.last?.hasPrefix(#"{"type":"summary","packets":146,"connections":2,"notifications":66"#) == true)
      #expect(try command.read("arguments") == "-q -p -B 32 -i eth0 -f tcp port 2195 -w -\n")
    }
  }

  @Test("SIGTERM and SIGHUP end a capture as Ctrl-C does", arguments: [SIGTERM, SIGHUP])
  func stops(signal: Int32) throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "echo $$ > process; cat '\(trace("plain-error.pcapng"))'"))
      let running = try start(command, ["decode", "-i", "eth0"])
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
      running.send(signal)
      let outcome = try running.end()
      #expect(outcome.status == 130 && outcome.errors == "")
      #expect(
        outcome.lines.last?.hasPrefix(#"{"type":"summary","packets":146,"connections":2,"notifications":66"#) == true)
      #expect(try waitUntil { try !isRunning(command) })
    }
  }

  private func isRunning(_ command: Command) throws -> Bool {
    let process = try #require(Int32(try command.read("process").trimmingCharacters(in: .whitespacesAndNewlines)))
    return kill(process, 0) == 0
  }

  @Test("The program that captures ends with the command, also when that is killed and no packet comes")
  func orphan() throws {
    try Command.inFolder { command in
      // As dumpcap it ends at SIGTERM, and writes nothing that would show it that nobody reads.
      try program(
        command,
        "echo $$ > process; cat '\(trace("plain-error.pcapng"))'\ntrap 'exit 0' TERM; while :; do sleep 0.05; done")
      let running = try start(command, ["decode", "-i", "eth0"])
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
      #expect(try isRunning(command))
      running.send(SIGKILL)
      #expect(try running.end().status == 137)
      #expect(try waitUntil { try !isRunning(command) })
    }
  }

  @Test("The end of a provider that fell silent is there while the input stays open")
  func silence() throws {
    try Command.inFolder { command in
      let capture = try Data(contentsOf: Command.traces.appending(path: "known-bad-and-errors.pcap"))
      let pipes = [Pipe(), Pipe()]
      let decode = try RunningProcess(Command.path, ["decode", "-"], in: command.folder, pipe: pipes[0])
      let inspect = try RunningProcess(
        Command.path, ["inspect", "--every", "100ms", "-"], in: command.folder, pipe: pipes[1])
      for pipe in pipes { try pipe.fileHandleForWriting.write(contentsOf: capture) }
      // The last of four connections ends with the last packet, which is a RST.
      #expect(waitUntil { decode.output.contains(#""end":"client_rst""#) })
      #expect(waitUntil { inspect.output.contains("client_rst") })
      #expect(decode.isRunning && inspect.isRunning)
      for pipe in pipes { try pipe.fileHandleForWriting.close() }
      let outcome = try decode.end()
      #expect(outcome.status == 0)
      let trace = trace("known-bad-and-errors.pcap")
      #expect(outcome.output == (try command.shell("cat '\(trace)' | \"$apnscope\" decode -")).output)
      #expect(try inspect.end().status == 0)
    }
  }

  /// They once waited for a moment without input, which such a pipe does not have.
  @Test("Records do not wait for a pause in the traffic")
  func steady() throws {
    try Command.inFolder { command in
      let trace = trace("plain-error.pcap")
      // A packet every 20 ms, from a file whose packets are longer than 100 bytes: the capture does not end.
      try program(
        command,
        """
        head -c 20000 '\(trace)'
        n=20000
        while :; do tail -c +$((n + 1)) '\(trace)' | head -c 1; n=$((n + 1)); sleep 0.02; done
        """)
      let running = try start(command, ["decode", "-i", "eth0"])
      #expect(waitUntil { running.output.contains(#""type":"notification""#) })
      #expect(running.isRunning)
      running.send(SIGINT)
      #expect(try running.end().status == 130)
    }
  }

  @Test("What the capture dropped is counted after Ctrl-C, and is damage", arguments: ["dumpcap", "tcpdump"])
  func drops(name: String) throws {
    try Command.inFolder { command in
      // An interface statistics block: 1,000 packets dropped by the interface.
      let statistics: [UInt8] =
        [5, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        + [5, 0, 8, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0]
      try command.write(statistics, "statistics")
      let (file, end) =
        name == "dumpcap"
        ? ("plain-error.pcapng", "cat statistics")
        : ("plain-error.pcap", "echo 1000 packets dropped by kernel >&2")
      try program(command, Self.waits(after: "cat '\(trace(file))'", end: "\(end); exit 0"), name: name)
      // Without the folders that have a dumpcap.
      let running = try RunningProcess(
        "/bin/bash",
        [
          "-c",
          "mkdir only && ln -s /usr/bin/cat /usr/bin/sleep /usr/bin/env only/ 2>/dev/null; "
            + "PATH=$PWD/bin:$PWD/only exec \"$apnscope\" decode -i eth0",
        ], in: command.folder)
      #expect(waitUntil { running.output.contains("Ciao") })
      running.send(SIGINT)
      let outcome = try running.end()
      #expect(outcome.status == 130)
      #expect(outcome.lines.contains { $0.hasPrefix(#"{"type":"capture_loss","#) && $0.contains(#""dropped":1000"#) })
      #expect(outcome.lines.last?.contains(#""dropped_packets":1000"#) == true)
    }
  }

  @Test(
    "A capture that ends by itself is an error, after everything that came was decoded",
    arguments: [
      ("echo 'dumpcap: The interface disappeared.' >&2; exit 1", "ended with status 1: The interface disappeared.", 74),
      ("kill -9 $$", "was killed by signal 9", 74), ("exit 0", "ended with status 0", 74),
    ])
  func death(ending: String, message: String, status: Int32) throws {
    try Command.inFolder { command in
      try program(command, "cat '\(trace("plain-error.pcapng"))'\n\(ending)")
      let outcome = try start(command, ["decode", "-i", "eth0"]).end()
      #expect(outcome.status == status)
      #expect(outcome.errors == "apnscope: eth0: dumpcap \(message)\n")
      #expect(outcome.lines.count { $0.contains(#""type":"notification""#) } == 66)
      #expect(outcome.lines.last?.hasPrefix(#"{"type":"summary""#) == true)
    }
  }

  @Test("An interface that cannot be opened is told with the program's reason")
  func noInterface() throws {
    try Command.inFolder { command in
      try program(
        command, "echo \"Capturing on 'nosuch'\" >&2; echo 'dumpcap: There is no device named \"nosuch\".' >&2; exit 1")
      let outcome = try start(command, ["inspect", "-i", "nosuch"]).end()
      #expect(outcome.status == 66 && outcome.output == "")
      #expect(outcome.errors == "apnscope: nosuch: dumpcap ended with status 1: There is no device named \"nosuch\".\n")
    }
  }

  @Test("Without a program to capture with, that is said", arguments: [["-i", "lo"], ["-D"]])
  func noProgram(arguments: [String]) throws {
    try Command.inFolder { command in
      let running = try RunningProcess(
        "/bin/bash", ["-c", "PATH=/nowhere exec \"$apnscope\" decode \(arguments.joined(separator: " "))"],
        in: command.folder)
      let outcome = try running.end()
      #expect(outcome.status == 69)
      #expect(
        outcome.errors == "apnscope: neither dumpcap nor tcpdump is installed; one of them is needed to capture\n")
    }
  }

  @Test("A reader that closes the pipe ends the capture")
  func closedPipe() throws {
    try Command.inFolder { command in
      try program(command, "while :; do cat '\(trace("plain-error.pcap"))' || exit; done")
      let outcome = try command.shell(
        "PATH=$PWD/bin:$PATH \"$apnscope\" decode -i eth0 | head -n 1; echo ${PIPESTATUS[0]}")
      #expect(outcome.lines.last == "0")
    }
  }

  // MARK: the ring

  private func ringFiles(_ command: Command) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: command.folder.appending(path: "ring").path).sorted()
  }

  @Test(
    "--keep writes whole files of which each can be read, and together they are the capture",
    arguments: ["pcap", "pcapng"])
  func keeps(format: String) throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "cat '\(trace("plain-error.\(format)"))'"))
      let running = try start(
        command,
        ["decode", "--no-fates", "-i", "eth0", "--keep", "ring", "--keep-files", "1000", "--keep-size", "2KiB"])
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
      running.send(SIGINT)
      let outcome = try running.end()
      #expect(outcome.status == 130 && outcome.errors == "")
      let files = try ringFiles(command)
      #expect(files.count > 5)
      #expect(files.allSatisfy { $0.hasPrefix("eth0-") && $0.hasSuffix(".pcapng") })
      for file in files {
        let path = command.folder.appending(path: "ring/\(file)").path
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        // A header, and one packet at least.
        #expect(try #require(attributes[.size] as? Int) <= 2_048 + 400)
        let alone = try command.run("decode", path)
        #expect(alone.status == 0 && alone.errors == "")
      }
      let again = try command.run("decode", "--no-fates", "ring")
      #expect(again.status == 0 && again.errors == "")
      func records(_ lines: [String]) -> [String] {
        lines.filter { !$0.hasPrefix(#"{"type":"capture""#) }
          .map { $0.replacing(/"(file|packet)":[0-9]+,/, with: "") }
      }
      #expect(records(again.lines) == records(outcome.lines))
    }
  }

  @Test("The ring has no more files than it may have, and the newest of the packets")
  func ring() throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "cat '\(trace("plain-error.pcapng"))'"))
      let running = try start(
        command,
        ["inspect", "-i", "eth0", "--keep", "ring", "--keep-files", "3", "--keep-size", "2KiB", "--every", "100ms"])
      #expect(waitUntil { running.output.contains("66") })
      running.send(SIGINT)
      #expect(try running.end().status == 130)
      let files = try ringFiles(command)
      #expect(files.count == 3)
      let whole = try command.run("decode", trace("plain-error.pcapng"))
      let kept = try command.run("decode", "ring")
      func latest(_ outcome: Outcome) -> String? {
        outcome.lines.last { $0.hasPrefix(#"{"type":"notification""#) }?.firstMatch(of: /"time":"[^"]*"/).map {
          String($0.0)
        }
      }
      #expect(latest(kept) == latest(whole) && latest(kept) != nil)
    }
  }

  @Test("A ring counts the files of earlier runs on its interface, and no others")
  func earlierRuns() throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "cat '\(trace("plain-error.pcapng"))'"))
      let others = ["ring/eth1-1500000000000-00001.pcapng", "ring/eth0-notes.txt", "ring/eth0.pcapng"]
      _ = try command.shell("mkdir ring; touch \(others.joined(separator: " "))")
      for _ in 0..<2 {
        let running = try start(
          command, ["decode", "-i", "eth0", "--keep", "ring", "--keep-files", "3", "--keep-size", "2KiB"])
        #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
        running.send(SIGINT)
        #expect(try running.end().status == 130)
        #expect(try ringFiles(command).filter { $0.hasPrefix("eth0-1") }.count == 3)
      }
      for name in others { #expect(FileManager.default.fileExists(atPath: command.folder.appending(path: name).path)) }
    }
  }

  @Test("Secrets that were used are in every file after them")
  func keepsSecrets() throws {
    try Command.inFolder { command in
      let name = "tls-late-error.pcap.gz"
      try program(command, Self.waits(after: "gzip -dc '\(trace(name))'"))
      let running = try start(
        command,
        [
          "decode", "-i", "eth0", "--keys", trace(name + ".keys"), "--keep", "ring", "--keep-files", "1000",
          "--keep-size", "8KiB",
        ])
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 175 })
      running.send(SIGINT)
      #expect(try running.end().status == 130)
      let again = try command.run("decode", "ring")
      #expect(again.status == 0)
      #expect(again.lines.count { $0.contains(#""type":"notification""#) } == 174)
      // Secrets of no other connection are written.
      let other = try command.shell("grep -c CLIENT ring/*.pcapng | grep -v ':0' | wc -l")
      #expect(Int(other.lines.first ?? "") ?? 0 > 0)
    }
  }

  @Test("A ring that cannot be written is told before the capture begins")
  func unwritable() throws {
    try Command.inFolder { command in
      try program(command, Self.waits())
      try command.write([], "ring")
      let outcome = try start(command, ["decode", "-i", "eth0", "--keep", "ring"]).end()
      #expect(outcome.status == 74 && outcome.output == "")
      #expect(outcome.errors.contains("ring: "))
    }
  }

  @Test(
    "A full disk ends the ring with an error and whole blocks, and nothing that is decoded is lost",
    .enabled(if: getuid() == 0, "needs root, to mount a small file system"))
  func fullDisk() throws {
    try Command.inFolder { command in
      try program(command, Self.waits(after: "cat '\(trace("plain-error.pcapng"))'"))
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "ring"), withIntermediateDirectories: true)
      let running = try RunningProcess(
        "/usr/bin/unshare",
        [
          "-m", "/bin/bash", "-c",
          """
          mount -t tmpfs -o size=8k none ring || exit 99
          trap '' INT
          (trap - INT; PATH=$PWD/bin:$PATH exec "$apnscope" decode -i eth0 --keep ring) &
          echo $! > process; wait $!; echo $? > status
          cp -r ring kept
          """,
        ], in: command.folder)
      #expect(waitUntil { running.output.components(separatedBy: #""type":"notification""#).count == 67 })
      #expect(waitUntil { running.errors.contains("No space left on device") })
      let process = try #require(Int32(try command.read("process").trimmingCharacters(in: .whitespacesAndNewlines)))
      kill(process, SIGINT)
      let outcome = try running.end()
      #expect(try command.read("status") == "74\n")
      #expect(outcome.errors.contains("packets are no longer kept (--keep), but still decoded"))
      #expect(outcome.lines.last?.hasPrefix(#"{"type":"summary""#) == true)
      let kept = try command.run("decode", "kept")
      #expect(kept.errors == "")
    }
  }

  // MARK: metrics and summaries

  @Test("Metrics tell fates as they settle, and what is open", arguments: [false, true])
  func metrics(isEnded: Bool) throws {
    try Command.inFolder { command in
      // Without the last packets both connections of the capture are not closed.
      let bytes = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let pipe = Pipe()
      let running = try RunningProcess(
        Command.path, ["decode", "--metrics", "127.0.0.1:0", "-"], in: command.folder, pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: isEnded ? bytes : bytes.prefix(bytes.count / 4))
      #expect(waitUntil { running.errors.contains("/metrics") })
      let address = try #require(running.errors.firstMatch(of: /http:\/\/[0-9.:]+\/metrics/).map { String($0.0) })
      func page() throws -> [String: Int] {
        let text = try command.shell("curl -s --max-time 60 \(address)").output
        var values: [String: Int] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
          let parts = line.split(separator: " ")
          if parts.count == 2 { values[String(parts[0])] = Int(parts[1]) }
        }
        return values
      }
      let expected = isEnded ? 66 : 16
      #expect(try waitUntil { try page()["apnscope_decode_notifications_total"] == expected })
      let values = try page()
      let fates = ["accepted", "rejected", "discarded", "unknown"].map { values["apnscope_decode_\($0)_total"] ?? -1 }
      let undecided = values["apnscope_decode_undecided"] ?? -1
      #expect(fates.reduce(0, +) + undecided == expected)
      if isEnded {
        #expect(fates[0] == 7 && fates[1] == 1)
        #expect(values[#"apnscope_decode_error_responses_total{status="8"}"#] == 1)
        #expect(values["apnscope_decode_connections_total"] == 2)
      } else {
        #expect(values["apnscope_decode_connections_open"] == 1 && undecided == 16)
      }
      try pipe.fileHandleForWriting.close()
      #expect(try running.end().status == 0)
    }
  }

  @Test("An address that is in use ends decode before it reads")
  func metricsInUse() throws {
    try Command.inFolder { command in
      let outcome = try command.run("decode", "--metrics", "192.0.2.1:9", trace("plain-error.pcap"))
      #expect(outcome.status == 69 && outcome.output == "")
      #expect(outcome.errors.contains("metrics: cannot listen"))
    }
  }

  @Test("inspect --every writes what came so far, again and again", arguments: ["text", "json"])
  func every(format: String) throws {
    try Command.inFolder { command in
      let bytes = try Data(contentsOf: Command.traces.appending(path: "plain-error.pcap"))
      let pipe = Pipe()
      let running = try RunningProcess(
        Command.path, ["inspect", "--every", "100ms", "--format", format, "--rows", "5", "-"], in: command.folder,
        pipe: pipe)
      try pipe.fileHandleForWriting.write(contentsOf: bytes.prefix(bytes.count / 4))
      let sixteen = format == "text" ? "16 unknown" : "\"notifications\" : 16"
      #expect(waitUntil { running.output.components(separatedBy: sixteen).count > 3 })
      try pipe.fileHandleForWriting.write(contentsOf: bytes.dropFirst(bytes.count / 4))
      try pipe.fileHandleForWriting.close()
      let outcome = try running.end()
      #expect(outcome.status == 0)
      let last = format == "text" ? "7 accepted, 1 rejected, 26 discarded, 32 unknown" : "\"notifications\" : 66"
      #expect(outcome.output.contains(last))
    }
  }

  @Test(
    "Options that do not go together are refused",
    arguments: [
      ["-i", "lo", "a.pcap"], ["--keep", "ring", "a.pcap"], ["-i", "lo", "--keep-files", "3"],
      ["-i", "lo", "--fates"], ["-i", "lo", "--status", "8"], ["-i", "lo", "--keep", "ring", "--keep-files", "0"],
      ["-i", "lo", "--keep", "ring", "--keep-size", "10"], [],
    ])
  func refused(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try RunningProcess(Command.path, ["decode"] + arguments, in: command.folder).end()
      #expect(outcome.status == 64)
    }
  }
}
