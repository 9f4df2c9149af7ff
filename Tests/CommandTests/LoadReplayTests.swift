import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope load --replay`.
@Suite("load: replay", .waiting)
struct LoadReplayTests {
  /// Listens on a free port, says which, and writes what the first connection sends to standard output.
  private static let sink = """
    import socket, sys
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    print("port", listener.getsockname()[1], "end", file=sys.stderr, flush=True)
    connection = listener.accept()[0]
    while block := connection.recv(65536):
        sys.stdout.buffer.write(block)
    """

  /// The notifications of records, without their places, times, numbers and fates.
  private func notifications(_ records: String) throws -> [String] {
    try records.split(separator: "\n").compactMap { line in
      guard var record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
        record["type"] as? String == "notification"
      else { return nil }
      // Rules about expirations depend on the time.
      for name in ["connection", "index", "time", "packet", "offset", "fate", "lint"] { record[name] = nil }
      if record["identifier"] != nil { record["identifier"] = "some" }
      return String(decoding: try JSONSerialization.data(withJSONObject: record, options: .sortedKeys), as: UTF8.self)
    }
  }

  private func identifiers(_ records: String) -> [Int] {
    records.matches(of: #/"identifier":([0-9]+)/#).compactMap { Int($0.output.1) }
  }

  /// The bytes that a gateway gets which never says anything.
  func sent(_ arguments: [String], input: String? = nil, in command: Command) throws -> [UInt8] {
    let sink = try RunningProcess("python3", ["-c", Self.sink], in: command.folder)
    #expect(waitUntil { sink.errors.contains("end") })
    let port = try #require(sink.errors.firstMatch(of: #/port ([0-9]+)/#)?.output.1)
    let load = try RunningProcess(
      Command.path,
      ["load", "--plain", "--gateway", "127.0.0.1:\(port)", "--markers", "off"] + LoadProcess.patience
        + arguments,
      in: command.folder, input: input.map { command.folder.appending(path: $0) }
    ).end()
    #expect(load.status == 0, "\(load.output)\(load.errors)")
    _ = try sink.end()
    return sink.outputBytes
  }

  @Test(
    "What is sent are the notifications of the trace, but for their identifiers, to the byte",
    arguments: [
      "any-device-sll2.pcap", "garbage-inside.bin", "known-bad-and-errors.pcap", "tls-gateway.pcap",
      "tls-known-bad.pcapng", "unusual-items.xxd", "loss-reorder.pcap.gz", "two-interfaces.pcapng",
    ])
  func law(trace: String) throws {
    try Command.inFolder { command in
      try command.trace("\(trace).jsonl", as: "records.jsonl")
      let recorded = try command.read("records.jsonl")
      try command.write(sent(["--replay", "-", "--speed", "max"], input: "records.jsonl", in: command), "sent.bin")
      let decoded = try command.run("decode", "--stream", "gateway", "sent.bin")
      #expect(decoded.status == 0, "\(decoded.errors)")
      let (before, after) = (try notifications(recorded), try notifications(decoded.output))
      #expect(before.count > 0 && before.sorted() == after.sorted())
      #expect(!decoded.output.contains(#""type":"malformed""#))
      // Renumbered in the order of their times, from 1: distinct and rising.
      let numbers = identifiers(decoded.output)
      #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count && numbers.allSatisfy { $0 > 0 })
    }
  }

  @Test("With its own spacing too, a replay is the trace, and one in segments is it in parts")
  func segments() throws {
    try Command.inFolder { command in
      try command.trace("tls-late-error.pcap.gz.jsonl", as: "records.jsonl")
      let recorded = try notifications(try command.read("records.jsonl"))
      let whole = try sent(["--replay", "records.jsonl", "--speed", "20"], in: command)
      try command.write(whole, "whole.bin")
      let records = try command.run("decode", "--stream", "gateway", "whole.bin").output
      #expect(try notifications(records) == recorded)
      var parts: [(number: Int, text: String)] = []
      for segment in 1...3 {
        try command.write(
          sent(["--replay", "records.jsonl", "--speed", "max", "--segment", "\(segment)/3"], in: command), "part.bin")
        let records = try command.run("decode", "--stream", "gateway", "part.bin").output
        parts += zip(identifiers(records), try notifications(records)).map { ($0, $1) }
      }
      #expect(parts.sorted { $0.number < $1.number }.map(\.text) == recorded)
      #expect(parts.map(\.number).sorted() == Array(1...recorded.count))
    }
  }

  @Test("A replay survives errors: each notification is accepted once, over several connections and loops")
  func resent() throws {
    try SimulatorProcess.inFolder { command in
      try command.trace("tls13-keys-missing.pcap.jsonl", as: "one.jsonl")
      let one = try command.read("one.jsonl")
      try command.write(Array(String(repeating: one, count: 20).utf8), "records.jsonl")
      let count = 20 * (try notifications(one)).count
      let simulator = try SimulatorProcess(["--reject", "every=400,status=7"], in: command)
      let load = try RunningProcess(
        Command.path,
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--replay", "records.jsonl",
          "--speed", "max", "--connections", "3", "--threads", "2", "--format", "json",
        ] + LoadProcess.patience, in: command.folder
      ).end()
      let ledger = try simulator.stop()
      #expect(load.status == 0, "\(load.errors)")
      let decoder = JSONDecoder()
      decoder.keyDecodingStrategy = .convertFromSnakeCase
      let result = try decoder.decode(RunResult.self, from: Data(load.output.utf8))
      #expect(result.notifications.generated == count)
      #expect(result.notifications.accepted + result.notifications.rejected == count)
      #expect(result.notifications.accepted == ledger.gateway.accepted)
      #expect(result.sendings.resent > 0)
      #expect(result.verdict.invariants.allSatisfy { $0.holds })
      #expect(result.plan["replay"] == .text("records.jsonl") && result.plan["speed"] == .text("max"))
      #expect(result.plan["seed"] == nil)
      #expect(result.replay?.notifications == count)
      #expect(result.replay?.skippedRecords == 20 * (one.split(separator: "\n").count - count / 20))
    }
  }

  @Test(
    "A capture of a load, replayed and captured, has the same notifications",
    .enabled(if: LoopbackCapture.isPossible))
  func captured() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      func capture(_ name: String, _ load: [String]) throws -> String {
        let capture = try LoopbackCapture(port: simulator.gateway, file: "\(name).pcapng", in: command)
        let outcome = try RunningProcess(
          Command.path,
          ["load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--keylog", "\(name).keys"]
            + LoadProcess.patience + load, in: command.folder
        ).end()
        #expect(outcome.status == 0, "\(outcome.errors)")
        try capture.end()
        let decoded = try command.run(
          "decode", "--port", "\(simulator.gateway)=gateway", "--keys", "\(name).keys", "\(name).pcapng")
        #expect(decoded.status == 0)
        return decoded.output
      }
      let first = try capture(
        "first",
        [
          "--count", "3k", "--rate", "6k/s", "--connections", "2", "--command", "0=1,1=1,2=8", "--priority",
          "none=1,5=1",
        ])
      // Without the markers, which are the load's own.
      let records = first.split(separator: "\n").filter { !$0.contains(#""identifier":4294967295"#) }
        .joined(separator: "\n")
      try command.write(Array(records.utf8), "records.jsonl")
      let second = try capture("second", ["--replay", "records.jsonl", "--speed", "2", "--connections", "2"])
      _ = try simulator.stop()
      let replayed = second.split(separator: "\n").filter { !$0.contains(#""identifier":4294967295"#) }
        .joined(separator: "\n")
      let before = try notifications(records)
      #expect(before.count == 3_000)
      #expect(try notifications(replayed).sorted() == before.sorted())
    }
  }

  @Test("What is no record is said with file and line; what a replay leaves nothing to, with its name")
  func refused() throws {
    try Command.inFolder { command in
      let good =
        #"{"type":"notification","connection":1,"command":2,"identifier":1,"token":"00ff","payload_length":2,"payload":{}}"#
        + "\n"
      try command.write(Array(good.utf8), "good.jsonl")
      try command.write(Array((good + good.replacing("00ff", with: "0g")).utf8), "token.jsonl")
      try command.write(Array((good + "\n" + good.dropLast(3)).utf8), "cut.jsonl")
      try command.write(Array(#"{"type":"summary"}"#.utf8), "none.jsonl")
      try command.write(Array((good + good + good).utf8), "three.jsonl")
      func load(_ arguments: [String]) throws -> Outcome {
        try RunningProcess(Command.path, ["load", "--plain", "--print-plan"] + arguments, in: command.folder).end()
      }
      for (arguments, status, text) in [
        (["token.jsonl"], 65, "token.jsonl:2: 'token' is not hexadecimal"),
        (["cut.jsonl"], 65, "cut.jsonl:3: not a JSON object"),
        (["none.jsonl"], 65, "none.jsonl: no notifications"), (["gone.jsonl"], 66, "No such file"),
        (["."], 74, "directory"),
        (
          ["three.jsonl", "--replay-limit", "2"], 65,
          "three.jsonl:3: more than 2 notifications; raise --replay-limit"
        ),
        (["good.jsonl", "--rate", "5/s"], 64, "--replay and --rate exclude each other"),
        (["good.jsonl", "--poisson", "--stage", "1s:5/s"], 64, "--replay and --stage exclude each other"),
        (["good.jsonl", "--seed", "1"], 64, "--replay and --seed exclude each other"),
        (["good.jsonl", "--faults", "oversize=1"], 64, "--replay and --faults exclude each other"),
        (["good.jsonl", "--speed", "0"], 64, "speed"), (["good.jsonl", "--speed", "fast"], 64, "speed"),
        (["good.jsonl", "--speed", "max", "--behind", "skip"], 64, "--behind skip needs"),
      ] as [([String], Int32, String)] {
        let outcome = try load(["--replay"] + arguments)
        #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
        #expect(outcome.errors.contains(text), "\(outcome.errors)")
        #expect(outcome.output == "")
      }
      #expect(try load(["--speed", "2"]).errors.contains("--speed needs --replay"))
      #expect(try load(["--behind", "skip"]).errors.contains("--behind skip needs"))
    }
  }

  @Test("The printed plan is a plan; who types what excludes it means that instead")
  func printedPlan() throws {
    try Command.inFolder { command in
      try command.trace("tls-late-error.pcap.gz.jsonl", as: "records.jsonl")
      func plan(_ arguments: String...) throws -> Outcome {
        try RunningProcess(Command.path, ["load", "--print-plan"] + arguments, in: command.folder).end()
      }
      let first = try plan(
        "--plain", "--replay", "records.jsonl", "--speed", "0.5", "--behind", "skip", "--segment", "2/3")
      #expect(first.status == 0, "\(first.errors)")
      #expect(first.lines.contains("# count = 58") && first.lines.contains("speed = \"0.5\""))
      try command.write(Array(first.output.utf8), "plan.toml")
      #expect(try plan("--plan", "plan.toml").output == first.output)
      #expect(try plan("--plan", "plan.toml", "--speed", "max").errors.contains("--behind skip needs"))
      let other = try plan("--plan", "plan.toml", "--rate", "5/s")
      #expect(other.status == 0 && !other.output.contains("replay"), "\(other.errors)")
      try command.write(Array(try plan("--plain", "--rate", "5/s").output.utf8), "plan.toml")
      #expect(try plan("--plan", "plan.toml", "--speed", "2").errors.contains("--speed needs --replay"))
      let replayed = try plan("--plan", "plan.toml", "--replay", "records.jsonl")
      #expect(replayed.status == 0 && !replayed.output.contains("rate ="), "\(replayed.errors)")
    }
  }

  @Test("How much and how long a printed replay is follows anew from the trace, the part and the speed typed over it")
  func typedOver() throws {
    try Command.inFolder { command in
      let record =
        #"{"type":"notification","connection":1,"time":"2026-01-01T00:00:00TZ","command":2,"identifier":1,"token":"00ff","payload_length":2,"payload":{}}"#
      func trace(_ count: Int, _ name: String) throws {
        try command.write(
          Array((0..<count).map { record.replacing("0T", with: "\($0)") + "\n" }.joined().utf8), name)
      }
      try trace(1, "one.jsonl")
      try trace(5, "five.jsonl")
      func plan(_ arguments: [String]) throws -> Outcome {
        try RunningProcess(Command.path, ["load", "--print-plan"] + arguments, in: command.folder).end()
      }
      for (printed, typed, lines) in [
        (["one.jsonl"], ["--replay", "five.jsonl"], ["# count = 5", "# for = \"86404s\""]),
        (["five.jsonl"], ["--replay", "one.jsonl"], ["# count = 1", "# for = \"86400s\""]),
        (["five.jsonl"], ["--segment", "1/2"], ["# count = 3"]),
        (["five.jsonl", "--segment", "1/2"], ["--segment", "1/1"], ["# count = 5"]),
        (["one.jsonl", "--count", "3"], ["--replay", "five.jsonl"], ["count = 3"]),
        (["five.jsonl", "--count", "2"], ["--count", "4"], ["count = 4"]),
        (["five.jsonl"], ["--speed", "0.01"], ["# count = 5", "# for = \"86800s\""]),
        (["five.jsonl", "--speed", "0.01"], ["--speed", "max"], ["# for = \"86400s\""]),
        (["five.jsonl", "--for", "7s"], ["--speed", "2"], ["for = \"7s\""]),
      ] {
        try command.write(Array(plan(["--plain", "--replay"] + printed).output.utf8), "plan.toml")
        let over = try plan(["--plan", "plan.toml"] + typed)
        #expect(over.status == 0, "\(over.errors)")
        for line in lines { #expect(over.lines.contains(line), "\(printed) \(typed): \(over.output)") }
        #expect(try over.output == plan(["--plain", "--replay"] + printed + typed).output)
      }
    }
  }
}
