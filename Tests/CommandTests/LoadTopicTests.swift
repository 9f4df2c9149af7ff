import Foundation
import Measurement
import TestSupport
import Testing

/// `apnscope load` with several identities.
@Suite("load: topics with their identities", .waiting)
struct LoadTopicTests {
  private static let (app, other) = (SimulatorProcess.topic, "com.example.other")

  private static func entry(_ text: String, weight: Double = 1, _ topic: String? = nil) -> String {
    let of = topic.map { ",\"topic\":\"\($0)\"" } ?? ""
    return "{\"payload\":{\"aps\":{\"alert\":\"\(text)\"}},\"weight\":\(weight)\(of)}\n"
  }

  /// `ids` has both topics then, `payloads.jsonl` payloads for both, for any, and for another.
  private static func inFolder(_ body: (Command) throws -> Void) throws {
    try SimulatorProcess.inFolder { command in
      let made = try command.run("identity", "--directory", "ids", "--topic", other)
      #expect(made.status == 0, "\(made.errors)")
      let lines = [
        entry("of app", weight: 3, app), entry("of other", weight: 1, other), entry("of any", weight: 2),
        entry("of a third", "com.example.third"),
      ]
      try command.write(Array(lines.joined().utf8), "payloads.jsonl")
      try body(command)
    }
  }

  private static func records(_ name: String, of type: String, in command: Command) throws -> [[String: Any]] {
    try command.read(name).split(separator: "\n").compactMap {
      let record = try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
      return record?["type"] as? String == type ? record : nil
    }
  }

  @Test("Payloads go on connections of their topic only, and result, ledger, records and capture agree by topic")
  func books() throws {
    try Self.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--records", "records.jsonl", "--reject", "every=100,status=8,topic=\(Self.other)"], in: command)
      let capture =
        LoopbackCapture.isPossible
        ? try LoopbackCapture(port: simulator.gateway, file: "gateway.pcapng", in: command) : nil
      let load = try LoadProcess.start(
        simulator,
        [
          "--topic", Self.app, "--topic", Self.other, "--payload-file", "payloads.jsonl", "--count", "4000", "--rate",
          "4k/s", "--connections", "5", "--keylog", "keys", "--log", "log.jsonl",
        ], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(
        outcome.errors.contains(
          "1 of 4 payloads are for other topics than \(Self.app) and \(Self.other), and are not sent"))
      let ledger = try simulator.stop()
      let result = try LoadProcess.result(in: command)
      let topics = try #require(result.topics)
      #expect(topics.map(\.topic) == [Self.app, Self.other] && topics.map(\.share) == [0.75, 0.25])
      #expect(topics.map(\.notifications.generated) == [3_000, 1_000])
      #expect(topics.map(\.connections.asked) == [4, 1] && topics.map(\.connections.everUp) == [4, 1])
      #expect(topics[0].notifications.rejected == 0 && topics[1].notifications.rejected > 5)
      #expect(result.verdict.outcome == .proven, "\(result.verdict)")
      for line in topics.map({
        "topic          \($0.topic): \($0.notifications.generated == 3_000 ? "3,000" : "1,000") ="
      }) {
        #expect(outcome.output.contains(line), "\(outcome.output)")
      }

      for topic in topics {
        let connections = ledger.connections.filter { $0.topic == topic.topic }
        #expect(connections.count == topic.connections.opened)
        #expect(connections.reduce(0) { $0 + $1.accepted } == topic.notifications.accepted)
        #expect(connections.count { $0.rejected?.status == 8 } == topic.errorResponses["8"] ?? 0)
        #expect(topic.errorResponses["8"] ?? 0 == topic.notifications.rejected)
      }
      #expect(ledger.connections.allSatisfy { [Self.app, Self.other].contains($0.topic) })

      let subjects = try Self.records("records.jsonl", of: "connection", in: command).reduce(into: [Int: String]()) {
        guard let number = $1["connection"] as? Int, let tls = $1["tls"] as? [String: Any],
          let subject = tls["client_subject"] as? String
        else { return }
        $0[number] = subject
      }
      // The log names the notifications that the gateway rejected, by their numbers in the stream.
      let logged = try command.read("log.jsonl").matches(of: #/"error_response".*"notification":([0-9]+)/#)
        .compactMap { Int($0.output.1) }
      let rejected = try Self.records("records.jsonl", of: "notification", in: command).filter {
        $0["fate"] as? String == "rejected" && $0["identifier"] as? Int != 0xffff_ffff
      }
      #expect(logged.sorted() == rejected.compactMap { $0["identifier"] as? Int }.map { $0 - 1 }.sorted())
      var found: [String: Int] = [:]
      for record in try Self.records("records.jsonl", of: "notification", in: command) {
        guard let payload = record["payload"] as? [String: Any], let aps = payload["aps"] as? [String: Any],
          let alert = aps["alert"] as? String, let number = record["connection"] as? Int
        else { continue }
        let topic = [Self.app, Self.other].first { subjects[number]?.contains("UID=\($0)") == true } ?? "none"
        if record["fate"] as? String == "accepted" { found["\(alert) on \(topic)", default: 0] += 1 }
      }
      #expect(
        Set(found.keys) == [
          "of app on \(Self.app)", "of any on \(Self.app)", "of other on \(Self.other)", "of any on \(Self.other)",
        ], "\(found)")
      // A third of each, as the weights say: 1,000 and 333 of 3,000 and 1,000, within six standard deviations.
      #expect(abs((found["of any on \(Self.app)"] ?? 0) - 1_000) < 160)
      #expect(abs((found["of any on \(Self.other)"] ?? 0) - 333) < 90)

      let script = Command.traces.deletingLastPathComponent().appending(path: "Scripts/books").path
      var files = "run.json simulator.ledger.json"
      if let capture {
        try capture.end()
        let inspected = try command.run([
          "inspect", "--format", "json", "--keys", "keys", "--port", "\(simulator.gateway)=gateway", "gateway.pcapng",
        ])
        try command.write(Array(inspected.output.utf8), "inspection.json")
        files += " inspection.json"
      }
      let books = try command.shell("'\(script)' \(files)")
      #expect(books.status == 0, "\(books.output)\(books.errors)")
      let report = try command.run("report", "--output", "report", "run.json")
      #expect(report.status == 0, "\(report.errors)")
      #expect(try command.read("report/report.html").contains(Self.other))
    }
  }

  @Test("Identities of several paths are one run, whose segments merge by topic")
  func segments() throws {
    try Self.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      for segment in 1...2 {
        let load = try LoadProcess.start(
          simulator,
          [
            "--identity", "ids/\(Self.other).combined.pem", "--ca", "ids/ca.pem", "--topic", Self.app, "--payload-file",
            "payloads.jsonl", "--count", "400", "--rate", "1k/s", "--segment", "\(segment)/2",
          ], output: "\(segment).json", in: command)
        let outcome = try load.end()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let topics = try LoadProcess.result("\(segment).json", in: command).topics
        #expect(topics?.map(\.notifications.accepted) == [300, 100], "\(topics as Any)")
      }
      let ledger = try simulator.stop()
      let merged = try command.run("merge", "--output", "merged.json", "1.json", "2.json")
      #expect(merged.status == 0, "\(merged.output)\(merged.errors)")
      let result = try LoadProcess.result("merged.json", in: command)
      #expect(result.topics?.map(\.topic) == [Self.app, Self.other])
      #expect(result.topics?.map(\.notifications.accepted) == [600, 200] && result.notifications.accepted == 800)
      for topic in result.topics ?? [] {
        #expect(
          topic.notifications.accepted
            == ledger.connections.filter { $0.topic == topic.topic }.reduce(0) { $0 + $1.accepted })
      }
      #expect(merged.output.contains("✓ accepted = sum over topics"), "\(merged.output)")
    }
  }

  @Test("A topic that gets nothing accepted fails the run, and without a rate a shift of shares is told")
  func failing() throws {
    try Self.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=1,status=8,topic=\(Self.other)"], in: command)
      let topics = ["--topic", Self.app, "--topic", Self.other, "--payload-file", "payloads.jsonl"]
      let load = try LoadProcess.start(simulator, topics + ["--count", "200", "--rate", "1k/s"], in: command)
      let outcome = try load.end()
      #expect(outcome.status == 69, "\(outcome.output)")
      #expect(
        outcome.errors.contains("topic \(Self.other): nothing was accepted")
          || outcome.output.contains("✗ topic \(Self.other): nothing was accepted"), "\(outcome.output)")
      let fast = try LoadProcess.start(simulator, topics + ["--for", "500ms", "--threads", "2"], in: command)
      let told = try fast.end()
      #expect(told.output.contains("without a rate each topic is sent as fast as"), "\(told.output)")
      _ = try simulator.stop()
    }
  }

  @Test("The printed plan is the run again; the command line and compare see its identities")
  func plans() throws {
    try Self.inFolder { command in
      let given = ["--identity", "ids", "--topic", Self.app, "--topic", Self.other, "--payload-file", "payloads.jsonl"]
      let printed = try command.run(["load", "--print-plan"] + given)
      #expect(printed.status == 0, "\(printed.errors)")
      for line in [
        "identity = \"ids\"", "topic = [\"\(Self.app)\", \"\(Self.other)\"]", "connections = 2",
        "payload_file = \"payloads.jsonl\"",
      ] { #expect(printed.output.contains(line + "\n"), "\(printed.output)") }
      try command.write(Array(printed.output.utf8), "plan.toml")
      let again = try command.run("load", "--plan", "plan.toml", "--print-plan")
      #expect(again.output == printed.output, "\(again.errors)")
      let one = try command.run("load", "--plan", "plan.toml", "--print-plan", "--topic", Self.other)
      #expect(one.status == 0 && one.output.contains("topic = \"\(Self.other)\"\n"), "\(one.errors)")
      let paths = try command.run(
        "load", "--print-plan", "--identity", "ids/\(Self.app).combined.pem", "--identity",
        "ids/\(Self.other).combined.pem", "--payload-file", "payloads.jsonl", "--threads", "5", "--connections", "9")
      #expect(
        paths.output.contains("identity = [\"ids/\(Self.app).combined.pem\", \"ids/\(Self.other).combined.pem\"]\n"))
      #expect(paths.output.contains("threads = 5\n"))
      try command.write(Array(paths.output.utf8), "paths.toml")
      #expect(try command.run("load", "--plan", "paths.toml", "--print-plan").output == paths.output)
    }
  }

  @Test("What cannot be one run is refused, and the reason and the way are said")
  func refused() throws {
    try Self.inFolder { command in
      try command.write(Array(Self.entry("any").utf8), "any.jsonl")
      try command.write(Array((Self.entry("app", Self.app) + Self.entry("any")).utf8), "app.jsonl")
      try FileManager.default.copyItem(
        at: command.folder.appending(path: "ids"), to: command.folder.appending(path: "copy"))
      let both = ["--identity", "ids", "--topic", Self.app, "--topic", Self.other]
      let file = ["--payload-file", "payloads.jsonl"]
      for (arguments, status, words) in [
        (both, 64, "Several identities need --payload-file with a topic in its entries"),
        (both + ["--payload-file", "any.jsonl"], 64, "need --payload-file with a topic in its entries"),
        (both + ["--payload-file", "app.jsonl"], 65, "no payload is for the topic \(Self.other) of ids; the file has"),
        (both + file + ["--connections", "1"], 64, "--connections 1 is too few for 2 identities"),
        (both + file + ["--threads", "1"], 64, "--threads 1 is too few for 2 identities"),
        (both + file + ["--key", "k"], 64, "--key and several identities exclude each other"),
        (both + file + ["--topic", "com.example.none"], 64, "ids holds no certificate of topic 'com.example.none'"),
        (both + file + ["--topic", Self.app], 64, "--topic \(Self.app) is given twice"),
        (both + file + ["--poll-feedback", "localhost"], 64, "--poll-feedback and several identities exclude"),
        (both + ["--replay", "any.jsonl"], 64, "--replay and several identities exclude"),
        (both + file + ["--plain"], 64, "--identity and --plain exclude each other"),
        (["--plain", "--topic", "a", "--topic", "b"] + file, 64, "--plain and several identities exclude each other"),
        (both + ["--identity", "copy"] + file, 64, "ids and copy are both for the topic \(Self.app)"),
        (both + ["--identity", "ids/ca.pem"] + file, 65, "ids/ca.pem: holds no private key"),
        (["--identity", "ids", "--identity", "ids"] + file, 64, "--identity ids is given twice"),
        (["--identity", "ids"] + file, 64, "choose one with --topic, or several with --payload-file"),
        ((0...64).flatMap { ["--identity", "id\($0)"] } + file, 64, "65 identities: at most 64"),
        (["--identity", "ids", "--identity", "gone"] + file, 64, "ids holds several topics"),
        (["--identity", "gone", "--identity", "ids"] + file, 66, "gone: No such file"),
      ] as [([String], Int32, String)] {
        let outcome = try command.run(["load", "--print-plan"] + arguments)
        #expect(outcome.status == status && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
        #expect(outcome.output == "")
      }
      let capacity = try command.run(["capacity", "--dry-run"] + both + file)
      #expect(capacity.status == 64 && capacity.errors.contains("capacity and several identities exclude each other"))
    }
  }
}
