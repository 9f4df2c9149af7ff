import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope load --token-file`, `--payload-file`.
@Suite("load: tokens and payloads from files", .waiting)
struct LoadFileTests {
  private func plan(_ arguments: [String], in command: Command, input: String = "/dev/null") throws -> Outcome {
    try command.run(["load", "--plain", "--print-plan"] + arguments, input: input)
  }

  private static func token(_ byte: Int, _ length: Int = 32) -> String {
    String(repeating: (byte < 16 ? "0" : "") + String(byte, radix: 16), count: length)
  }

  private static let payloads = #"""
    {"aps":{"alert":"one"}}
    {"payload":{"aps":{"alert":"two"},"id":"é"},"weight":3}
    {"payload":{"aps":{"content-available":1}}}
    """#

  @Test("The gateway gets the tokens in their order and the payloads as they are, and all books agree")
  func sent() throws {
    try SimulatorProcess.inFolder { command in
      let tokens = (1...5).map { Self.token($0) }
      // The first again at the end; the simulator reads the same file.
      let lines = ["# five devices", ""] + tokens + [tokens[0] + " # again"]
      try command.write(Array(lines.joined(separator: "\n").utf8), "tokens.txt")
      try command.write(Array(Self.payloads.utf8), "payloads.jsonl")
      let simulator = try SimulatorProcess(
        ["--plain", "--devices-file", "tokens.txt", "--records", "records.jsonl"], in: command)
      let capture =
        LoopbackCapture.isPossible
        ? try LoopbackCapture(port: simulator.gateway, file: "gateway.pcapng", in: command) : nil
      let load = try LoadProcess.start(
        simulator,
        [
          "--plain", "--token-file", "tokens.txt", "--payload-file", "payloads.jsonl", "--count", "600", "--threads",
          "1",
          "--rate", "2k/s",
        ], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      #expect(result.notifications.accepted == 600 && ledger.gateway.accepted == 600)
      #expect(result.plan["token_file"] == .text("tokens.txt") && result.plan["tokens"] == .number(5))
      #expect(result.plan["payload_file"] == .text("payloads.jsonl") && result.plan["token_length"] == .number(32))

      let records = try command.read("records.jsonl").split(separator: "\n").filter {
        $0.contains(#""type":"notification""#)
      }
      let sent = records.compactMap { $0.firstMatch(of: #/"token":"([0-9a-f]+)"/#).map { String($0.output.1) } }
      // Six tokens over and over; the last is the first again. The marker has none.
      #expect(sent.filter { $0 != "" } == (0..<600).map { tokens[$0 % 6 % 5] })
      let silent = records.count { $0.contains("content-available") }
      #expect(records.count { $0.contains(#""alert":"two""#) } > 250 && silent > 60)
      // Refused with priority 10.
      #expect(records.count { $0.contains("content-available") && $0.contains(#""priority":5"#) } == silent)

      let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/books").path
      var files = "run.json simulator.ledger.json"
      if let capture {
        try capture.end()
        let ports = ["--port", "\(simulator.gateway)=gateway"]
        let decoded = try command.run(["decode", "--type", "notification"] + ports + ["gateway.pcapng"])
        let captured = decoded.output.matches(of: #/"token":"([0-9a-f]+)"/#).map { String($0.output.1) }
        #expect(captured == sent.filter { $0 != "" })
        let inspected = try command.run(["inspect", "--format", "json"] + ports + ["gateway.pcapng"])
        try command.write(Array(inspected.output.utf8), "inspection.json")
        files += " inspection.json"
      }
      let books = try command.shell("'\(script)' \(files)")
      #expect(books.status == 0, "\(books.output)\(books.errors)")
    }
  }

  @Test("Listed tokens that the feedback service lists are left out: the load, the gateway and its list agree")
  func pruned() throws {
    try SimulatorProcess.inFolder { command in
      let lines = (1...20).map { Self.token($0) + ($0 % 4 == 0 ? " uninstalled" : "") }
      try command.write(Array(lines.joined(separator: "\n").utf8), "devices.txt")
      let simulator = try SimulatorProcess(["--devices-file", "devices.txt"], in: command)
      let load = try LoadProcess.start(
        simulator,
        [
          "--token-file", "devices.txt", "--rate", "150/s", "--for", "12s", "--connections", "2", "--poll-feedback",
          "127.0.0.1:\(simulator.feedback),every=500ms",
        ], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let ledger = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      let feedback = try #require(result.feedback)
      // A tuple for each time that a notification was sent to such a token before; five tokens.
      #expect(feedback.listedTokens == 5 && feedback.unknown == 0, "\(feedback)")
      #expect(feedback.tuples == ledger.feedback.tuplesSent)
      let pruned = try #require(result.notifications.pruned)
      #expect(pruned > 100 && result.notifications.accepted + pruned == 1_800)
      #expect(ledger.gateway.accepted == result.notifications.accepted)
    }
  }

  @Test("What cannot be used is refused with its line: 65; what excludes each other: 64")
  func refused() throws {
    try Command.inFolder { command in
      let good = Self.token(7)
      for (name, text) in [
        ("odd.txt", "\(good)\n#\nabc\n"), ("hex.txt", "\(good)\nwxyz world\n"), ("none.txt", "# none\n\n"),
        ("mixed.txt", "\(good)\naabb\n"), ("bad.jsonl", "{\"aps\":{}}\n\n{\"alert\":1}\n"), ("empty.jsonl", "\n"),
        ("zero.jsonl", "{\"payload\":{},\"weight\":0}\n"), ("good.jsonl", Self.payloads),
        ("long.jsonl", "{\"aps\":{}}\n{\"aps\":{\"alert\":\"" + String(repeating: "x", count: 2_100) + "\"}}\n"),
        ("middle.jsonl", "{\"aps\":{\"alert\":\"" + String(repeating: "x", count: 300) + "\"}}\n"),
        ("good.txt", good),
      ] { try command.write(Array(text.utf8), name) }
      for (arguments, status, words) in [
        (["--token-file", "odd.txt"], 65, "odd.txt:3: the token has an odd number"),
        (["--token-file", "hex.txt"], 65, "hex.txt:2: 'wxyz' is not a token"),
        (["--token-file", "none.txt"], 65, "none.txt: no tokens"), (["--token-file", "gone.txt"], 66, "No such file"),
        (["--payload-file", "bad.jsonl"], 65, "bad.jsonl:3: 'alert'"),
        (["--payload-file", "empty.jsonl"], 65, "empty.jsonl: no payloads"),
        (["--payload-file", "zero.jsonl"], 65, "no payload has a weight"),
        (["--payload-file", "long.jsonl"], 65, "long.jsonl:2: the payload has 2120 bytes; with command 2"),
        (["--payload-file", "middle.jsonl", "--command", "1=1,2=9"], 65, "middle.jsonl:1: the payload has 320 bytes"),
        (["--payload-file", "middle.jsonl"], 0, ""),
        (["--token-file", "mixed.txt", "--faults", "token-size=1%"], 64, "listed tokens of one length"),
        (["--token-file", "mixed.txt", "--faults", "invalid-token=1%"], 64, "8 bytes or more"),
        (["--token-file", "good.txt", "--tokens", "5"], 64, "--token-file and --tokens exclude each other: the file"),
        (["--token-file", "good.txt", "--token-length", "5"], 64, "--token-length exclude each other"),
        (["--payload-file", "good.jsonl", "--payload", "100"], 64, "--payload and --payload-file exclude each other"),
        (["--payload-file", "good.jsonl", "--payload-kind", "alert"], 64, "are sent as they are"),
        (["--payload-file", "good.jsonl", "--payload-from", "x"], 64, "are sent as they are"),
        (["--payload-file", "good.jsonl", "--payload-template", "x"], 64, "are sent as they are"),
        (["--payload-file", "-", "--token-file", "-"], 64, "standard input is one file"),
        (["--payload-file", "good.jsonl", "--replay", "x"], 64, "--replay and --payload-file exclude each other"),
        (["--token-file", "good.txt", "--replay", "x"], 64, "--replay and --token-file exclude each other"),
        (["--token-file", "good.txt", "--output", "good.txt"], 64, "--output would overwrite the input good.txt"),
        (["--token-file", "good.txt", "--payload-kind", "alert"], 0, ""),
      ] as [([String], Int32, String)] {
        let outcome = try plan(arguments, in: command)
        #expect(
          outcome.status == status && (words.isEmpty || outcome.errors.contains(words)),
          "\(arguments): \(outcome.errors)")
      }
      let capacity = try command.run(
        "capacity", "--plain", "--dry-run", "--token-file", "good.txt", "--payload-file", "long.jsonl")
      #expect(capacity.status == 65 && capacity.errors.contains("long.jsonl:2"), "\(capacity.errors)")
    }
  }

  @Test("The printed plan is the run again, and the command line wins over it; standard input is a file")
  func planFile() throws {
    try Command.inFolder { command in
      try command.write(Array("\(Self.token(1))\n\(Self.token(2, 40))\n".utf8), "tokens.txt")
      try command.write(Array(Self.payloads.utf8), "payloads.jsonl")
      let files = ["--token-file", "tokens.txt", "--payload-file", "payloads.jsonl"]
      let printed = try plan(files, in: command)
      #expect(printed.status == 0, "\(printed.errors)")
      #expect(printed.output.contains("token_file = \"tokens.txt\"\n# tokens = 2\n"))
      #expect(!printed.output.contains("token_length") && printed.output.contains("payload_file = \"payloads.jsonl\""))
      try command.write(Array(printed.output.utf8), "plan.toml")
      #expect(try plan(["--plan", "plan.toml"], in: command).output == printed.output)
      for (other, word) in [
        (["--payload", "100"], "payload = \"100\""), (["--payload-kind", "alert"], "payload_kind = \"alert\""),
        (["--tokens", "7"], "tokens = 7\ntoken_length = 32"),
      ] {
        let outcome = try plan(["--plan", "plan.toml"] + other, in: command)
        #expect(outcome.output.contains(word), "\(outcome.output)\(outcome.errors)")
      }
      let piped = try plan(
        ["--token-file", "-"], in: command, input: command.folder.appending(path: "tokens.txt").path)
      #expect(piped.output.contains("token_file = \"-\"\n# tokens = 2\n"))
    }
  }

  @Test("Of a file with several topics, a run sends those of its identity, and says how many it leaves out")
  func topics() throws {
    try SimulatorProcess.inFolder { command in
      let lines = (0..<4).map { "{\"payload\":{\"aps\":{\"badge\":\($0)}},\"topic\":\"com.example.\($0 % 2)\"}\n" }
      try command.write(Array((lines.joined() + "{\"aps\":{\"badge\":9}}\n").utf8), "payloads.jsonl")
      let made = try command.run(
        "identity", "--directory", "two", "--topic", "com.example.0", "--topic", "com.example.1")
      #expect(made.status == 0, "\(made.errors)")
      let file = ["--payload-file", "payloads.jsonl"]
      let outcome = try command.run(
        ["load", "--print-plan", "--identity", "two", "--topic", "com.example.1"] + file)
      #expect(outcome.status == 0)
      #expect(outcome.errors.contains("2 of 5 payloads are for other topics than com.example.1"), "\(outcome.errors)")
      let neither = try command.run(["load", "--print-plan", "--identity", "two"] + file)
      #expect(neither.status == 64 && neither.errors.contains("choose one with --topic"), "\(neither.errors)")
      let plain = try plan(file, in: command)
      #expect(plain.status == 64 && plain.errors.contains("several topics (com.example.0, com.example.1)"))
      try command.write(Array(lines[0].utf8), "one.jsonl")
      let one = try command.run([
        "load", "--print-plan", "--identity", "two", "--topic", "com.example.1", "--payload-file", "one.jsonl",
      ])
      #expect(one.status == 65 && one.errors.contains("no payload is for the topic com.example.1"), "\(one.errors)")
      #expect(try plan(["--payload-file", "one.jsonl"], in: command).status == 0)
    }
  }
}
