import Foundation
import TestSupport
import Testing

@testable import apnscope

/// What cannot be meant, or cannot be had, is said before anything listens.
@Suite("simulate: usage and beginnings", .waiting)
struct SimulateUsageTests {
  /// Runs it to its end, which comes soon whatever happens.
  static func run(_ arguments: [String], in command: Command, ports: Bool = true) throws -> Outcome {
    let ports = ports ? ["--gateway", "127.0.0.1:0", "--feedback", "127.0.0.1:0"] : []
    return try RunningProcess(
      Command.path, ["simulate"] + ports + ["--for", "10ms"] + arguments, in: command.folder
    ).end()
  }

  @Test("Neither --identity nor --plain, and both: usage")
  func identityOrPlain() throws {
    try Command.inFolder { command in
      let neither = try Self.run([], in: command)
      #expect(neither.status == 64)
      #expect(neither.errors.contains("--identity DIR"))
      #expect(neither.output == "")
      #expect(try Self.run(["--identity", "ids", "--plain"], in: command).status == 64)
    }
  }

  static let bad: [(String, [String], String)] = [
    ("a time, e.g. 250ms", ["10"], "for"),
    ("a time, e.g. 250ms", ["10"], "read-pause"), ("a time, e.g. 250ms", ["ten"], "linger"),
    ("a time, e.g. 250ms", ["5"], "handshake-timeout"), ("a time, e.g. 250ms", ["5"], "frame-timeout"),
    ("a time, e.g. 250ms", ["5"], "feedback-timeout"), ("a time, e.g. 250ms", ["5"], "idle-close"),
    ("a time, e.g. 250ms", ["5"], "lifetime"), ("a time, e.g. 250ms", ["5"], "reconnect-refusal"),
    ("a time, e.g. 250ms", ["5"], "response-piece-delay"), ("a time, e.g. 250ms", ["5"], "devices-online-after"),
    ("a range, e.g. 100ms..800ms", ["5"], "response-delay"),
    ("bytes, e.g. 4096", ["x"], "read-rate"),
    ("bytes, e.g. 4096", ["x"], "read-pause-every"), ("bytes, e.g. 4096", ["x"], "receive-buffer"),
    ("at least 1 byte", ["0"], "read-rate"), ("a range, e.g. 32..100", ["x"], "token-length"),
    ("from 0% to 100%", ["2"], "devices-offline"),
    ("from 0% to 100%", ["2"], "devices-uninstalled"), ("from 0% to 100%", ["2"], "devices-unknown"),
    ("from 0% to 100%", ["2"], "accept-then-close"), ("from 0% to 100%", ["2"], "handshake-failure"),
    ("HOST:PORT", ["2195"], "gateway"),
    ("HOST:PORT", ["2196"], "feedback"), ("HOST:PORT", ["9100"], "metrics"),
    ("a TLS version, e.g. 1.2", ["1.4"], "tls"),
    ("every=N", ["every=0"], "reject"),
    ("lengths from 1 to 6", ["0", "7", "1,,2", "x", "1;2"], "response-pieces"),
    ("must be 1 to 65535", ["0", "65536"], "payload-limit"), ("1 to 256", ["0", "257"], "threads"),
    ("must be 0 to 16", ["-1", "17"], "tickets"), ("at least 0", ["-1"], "shutdown-after"),
    ("at least 1", ["0"], "connection-limit"), ("at least 1", ["0"], "reconnect-limit"),
    ("1 to 4294967296", ["0", "5GB"], "max-frame-length"), ("1 to 4294967296", ["0"], "max-connections"),
    ("1 to 4294967296", ["0", "5GB"], "max-connection-memory"),
    ("1 to 4294967296", ["0"], "max-listed-connections"), ("1 to 4294967296", ["0"], "max-stored"),
    ("1 to 4294967296", ["0"], "max-stored-bytes"), ("is invalid", ["-1", "x", "1.5"], "seed"),
    ("'required', 'optional' or 'none'", ["maybe"], "client-certificate"),
    ("'tickets', 'ids' or 'off'", ["on"], "resume"), ("'respond' and 'close'", ["shrug"], "malformed"),
    ("'right', 'wrong' or 'zero'", ["left"], "response-identifier"),
    ("'response', 'fin' or 'rst'", ["nothing"], "response-ending"),
    ("'normal' and 'batch'", ["fifo"], "scheduling"),
  ]

  /// Notations, and what does not follow them. Not each takes a process: that options use them is seen above.
  private static let notations: [(notation: any Quantity.Type, values: [String])] = [
    (TimeSpan.self, ["10", "-1s", "1 s", "s", "1w", "abc"]),
    (TimeSpanRange.self, ["5", "2s..1s", "1s..", "..", "1s..2s..3s"]),
    (ByteCount.self, ["x", "-1", "1.5", "1kb", "1e9", "1 KB"]), (NumberRange.self, ["x", "-1", "100..32", "1.5"]),
    (Share.self, ["2", "101%", "-0.1", "nan", "x", "%"]),
    (ListeningAddress.self, ["2195", ":2195", "h:65536", "h:-1", "::1:2195", "h:"]),
    (TLSVersionRange.self, ["1.4", "1.3..1.2", "2", "ssl"]),
    (
      RejectionSpecification.self,
      [
        "every=0", "every=x", "probability=2", "prefix=", "prefix=abc", "prefix=xy", "token=+1", "status=8",
        "every=1,status=10", "every=1,status=0", "every=1,status=256", "every=1,probability=0.1", "often",
      ]
    ),
  ]

  @Test("What does not follow a notation has no value")
  func notations() {
    for (notation, values) in Self.notations {
      for value in values { #expect(notation.init(argument: value) == nil, "\(notation) '\(value)'") }
    }
  }

  @Test("A bad value: 64, and what is expected", arguments: some(16, of: bad))
  func badValue(expectation: String, values: [String], option: String) throws {
    try Command.inFolder { command in
      for value in values {
        let outcome = try Self.run(["--plain", "--\(option)=\(value)"], in: command)
        #expect(outcome.status == 64, "--\(option)=\(value)")
        #expect(outcome.errors.contains("--\(option)"), "--\(option)=\(value)")
        #expect(outcome.errors.contains(expectation), "--\(option)=\(value): \(outcome.errors)")
        #expect(outcome.output == "")
      }
    }
  }

  /// Policies of proc_pid_stat(5), its field 41: 0 is normal, 3 is batch.
  @Test("All threads of its event loops are scheduled as told", arguments: [([], 3), (["--scheduling", "normal"], 0)])
  func scheduling(arguments: [String], policy: Int) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--threads", "3"] + arguments, in: command)
      let tasks = URL(filePath: "/proc/\(simulator.identifier)/task")
      let policies = try FileManager.default.contentsOfDirectory(atPath: tasks.path()).compactMap { task -> Int? in
        // A thread may have ended since they were listed.
        guard let stat = try? String(contentsOf: tasks.appending(path: "\(task)/stat"), encoding: .utf8),
          stat.contains("(NIO-ELT"), let end = stat.lastIndex(of: ")")
        else { return nil }
        // What comes behind the name begins with field 3.
        let fields = stat[end...].split(separator: " ").dropFirst()
        return Int(fields[fields.startIndex + 38])
      }
      #expect(policies == [policy, policy, policy])
      _ = try simulator.stop()
    }
  }

  @Test("A port that is taken: 69, and which", arguments: ["gateway", "feedback", "metrics"]) func port(service: String)
    throws
  {
    try SimulatorProcess.inFolder { command in
      let first = try SimulatorProcess(["--plain"], in: command)
      let second = try Self.run(["--plain", "--\(service)", "127.0.0.1:\(first.gateway)"], in: command)
      #expect(second.status == 69)
      #expect(second.errors.hasPrefix("apnscope: \(service)"))
      #expect(second.errors.contains("127.0.0.1:\(first.gateway): Address already in use\n"))
      #expect(second.output == "")
      _ = try first.stop()
    }
  }

  @Test("A directory of identities that is missing, or not complete: 66, and how to make one")
  func missingIdentity() throws {
    try SimulatorProcess.inFolder { command in
      let missing = try Self.run(["--identity", "nowhere"], in: command)
      #expect(missing.status == 66)
      #expect(
        missing.errors == """
          apnscope: nowhere/gateway.pem: No such file or directory; 'apnscope identity --directory nowhere --topic TOPIC' \
          makes it

          """)
      for name in ["gateway.pem", "gateway.key", "ca.pem", "crl.pem"] {
        let file = command.folder.appending(path: "ids/\(name)")
        let contents = try Data(contentsOf: file)
        try FileManager.default.removeItem(at: file)
        let outcome = try Self.run(["--identity", "ids"], in: command)
        #expect(outcome.status == 66)
        #expect(outcome.errors.hasPrefix("apnscope: ids/\(name): No such file or directory"))
        try contents.write(to: file)
      }
      #expect(try Self.run(["--identity", "ids"], in: command).status == 0)
    }
  }

  @Test("A damaged identity: 65, and which file", arguments: ["gateway.pem", "gateway.key", "ca.pem", "crl.pem"])
  func damagedIdentity(name: String) throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array("Dear diary, this is no certificate.".utf8), "ids/\(name)")
      let outcome = try Self.run(["--identity", "ids"], in: command)
      #expect(outcome.status == 65)
      #expect(outcome.errors.contains("ids/\(name): "))
      #expect(outcome.errors.split(separator: "\n").count == 1)
    }
  }

  @Test("A key that belongs to another certificate: 65") func foreignKey() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array(try command.read("ids/com.example.app.key").utf8), "ids/gateway.key")
      let outcome = try Self.run(["--identity", "ids"], in: command)
      #expect(outcome.status == 65)
      #expect(outcome.errors.contains("does not belong to"))
    }
  }

  @Test("A file that cannot be written: 74, and nothing listens", arguments: ["ledger", "log"]) func unwritable(
    option: String
  ) throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try Self.run(["--plain", "--\(option)", "missing/file"], in: command)
      #expect(outcome.status == 74)
      #expect(outcome.errors == "apnscope: missing/file: No such file or directory\n")
      #expect(outcome.output == "")
    }
  }

  @Test(
    "A host that there is not: 69, in the resolver's words",
    arguments: [
      (["--gateway", "nohost.invalid:0"], "gateway nohost.invalid:0: "),
      (["--metrics", "nohost.invalid:0"], "metrics: "),
    ])
  func unknownHost(options: [String], beginning: String) throws {
    try Command.inFolder { command in
      let outcome = try Self.run(["--plain"] + options, in: command)
      #expect(outcome.status == 69)
      #expect(outcome.errors.hasPrefix("apnscope: \(beginning)"))
      #expect(!outcome.errors.contains("Error"))
      #expect(outcome.output == "")
    }
  }

  @Test("A full disk under the ledger: 74") func fullLedger() throws {
    try SimulatorProcess.inFolder { command in
      let outcome = try Self.run(["--plain", "--ledger", "/dev/full"], in: command)
      #expect(outcome.status == 74)
      #expect(outcome.errors == "apnscope: /dev/full: No space left on device\n")
    }
  }

  @Test("A feedback list that is no such file: 65; one that another process has: 66") func feedbackList() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(Array(String(repeating: "Dear diary. ", count: 500).utf8), "diary")
      let diary = try Self.run(["--plain", "--feedback-list", "diary"], in: command)
      #expect(diary.status == 65)
      #expect(diary.errors.hasPrefix("apnscope: diary: "))
      let first = try SimulatorProcess(in: command)
      let second = try Self.run(["--identity", "ids"], in: command)
      #expect(second.status == 66)
      #expect(
        second.errors
          == "apnscope: ids/feedback.sqlite: is open in another process (by another gateway?); --feedback-list takes another file, or memory\n"
      )
      _ = try first.stop()
    }
  }

  @Test("A list of devices with a bad line: 65, with its number") func devices() throws {
    try Command.inFolder { command in
      try command.write(Array("00ff active\nxyz\n".utf8), "devices")
      let outcome = try Self.run(["--plain", "--devices-file", "devices"], in: command)
      #expect(outcome.status == 65)
      #expect(outcome.errors.contains("devices:2"))
      #expect(try Self.run(["--plain", "--devices-file", "missing"], in: command).status == 66)
      #expect(try Self.run(["--plain", "--reject", "tokens=missing"], in: command).status == 66)
      let both = try Self.run(["--plain", "--devices-file", "devices", "--devices-offline", "1%"], in: command)
      #expect(both.status == 64)
      #expect(
        try Self.run(["--plain", "--devices-offline", "60%", "--devices-unknown", "60%"], in: command).status == 64)
    }
  }

  @Test("A reader of standard output that goes away does not keep the ledger from being written") func closedPipe()
    throws
  {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #""$apnscope" simulate --plain --gateway 127.0.0.1:0 --no-feedback --for 100ms --ledger l.json | true; echo "${PIPESTATUS[0]}""#
      )
      #expect(outcome.output == "0\n")
      #expect(try command.read("l.json").hasSuffix("}\n"))
      let failed = try command.shell(
        #""$apnscope" simulate --plain --gateway 127.0.0.1:0 --no-feedback --for 100ms --expect 'received>=1' | true; echo "${PIPESTATUS[0]}""#
      )
      #expect(failed.output == "99\n", "what was expected fails, whoever reads that")
    }
  }
}
