import Foundation
import Glibc
import TestSupport
import Testing

/// `simulate --http2` observed: its records, verdict, expectations and control endpoint, with clients that others wrote.
@Suite("simulate --http2, observed", .waiting)
struct SimulateHTTP2ObserverTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let python = root.appending(path: ".build/http2/bin/python").path
  private static let client = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "Clients/http2_client.py").path
  private static let token = HTTP2Bytes.token
  private static let topic = ["-H", "apns-topic: com.example.app"]

  private static func lines(_ name: String, in command: Command) throws -> [[String: Any]] {
    try Data(contentsOf: command.folder.appending(path: name)).split(separator: UInt8(ascii: "\n")).compactMap {
      try JSONSerialization.jsonObject(with: $0) as? [String: Any]
    }
  }

  private static func port(_ gateway: ControlledGateway) throws -> Int {
    let place = try #require(gateway.places.first { $0.hasPrefix("http2 ") })
    return Int(place.split(separator: ":").last ?? "") ?? 0
  }

  private func run(_ program: String, _ arguments: [String], in command: Command) throws -> String {
    let process = try RunningProcess(program, arguments, in: command.folder)
    let outcome = try process.end()
    #expect(outcome.status == 0, "\(program): \(outcome.errors)")
    return process.output
  }

  private func push(_ port: Int, _ token: String, _ arguments: [String] = topic, in command: Command) throws -> String {
    try run(
      "curl",
      ["-s", "-i", "--http2-prior-knowledge", "-d", #"{"aps":{"alert":"to \#(token.prefix(4))"}}"#] + arguments
        + ["http://127.0.0.1:\(port)/3/device/\(token)"], in: command)
  }

  private static func ledger(in command: Command) throws -> [String: Any] {
    let data = try Data(contentsOf: command.folder.appending(path: "ledger.json"))
    expectValid([UInt8](data), .ledger, "ledger.json")
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test(
    "A notification without an answer may be lost, unless it is sent again and accepted",
    .enabled(if: ExternalTool.isInstalled("curl"), "needs curl"), arguments: [true, false])
  func unanswered(isSentAgain: Bool) throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        """
        "$apnscope" simulate --plain --http2 127.0.0.1:0 --http2-fault reset,times=1,code=INTERNAL_ERROR \
          --ready-file up --ledger ledger.json --expect 'lost<=0' -q > said.txt & simulator=$!
        until [ -e up ]; do kill -0 $simulator || exit 1; sleep 0.05; done
        push() {
          curl -s -o answer --http2-prior-knowledge -H 'apns-topic: com.example.app' -d '{"aps":{}}' \
            "http://$(sed -n 's/^http2 //p' up)/3/device/\(Self.token)"
        }
        push || echo reset
        \(isSentAgain ? "push && echo accepted" : "echo given up")
        kill $simulator
        wait $simulator
        echo $?
        """)
      #expect(outcome.lines == (isSentAgain ? ["reset", "accepted", "0"] : ["reset", "given up", "99"]), "\(outcome)")
      let verdict = try #require(try Self.ledger(in: command)["verdict"] as? [String: Any])
      #expect(verdict["undecided"] as? Int == (isSentAgain ? 0 : 1))
      let said = try command.read("said.txt")
      #expect(said.contains("1 is open: 1 accepted or not: a sending got no answer") == !isSentAgain, "\(said)")
    }
  }

  // MARK: records and verdict

  /// What a client's address says of a connection: gateway and capture may number those of one moment otherwise.
  private static func keyed(_ records: [[String: Any]], of type: String) -> [String: [String: Any]] {
    var clients: [Int: String] = [:]
    for record in records where record["type"] as? String == "connection" {
      clients[record["connection"] as? Int ?? 0] = record["client"] as? String
    }
    var keyed: [String: [String: Any]] = [:]
    // The order of packets is not that of reads; times differ.
    let different = [
      "packet", "first_packet", "connection", "time", "started", "latency_ms", "open_streams", "stream_limit", "opened",
      "closed", "open_streams_max", "stream_limit_last", "uncertain", "ping_ms_least", "ping_ms_greatest",
    ]
    for record in records where record["type"] as? String == type {
      let client = clients[record["connection"] as? Int ?? 0] ?? "-"
      let place = record["direction"] as? String ?? "" + "\(record["offset"] as? Int ?? 0)"
      keyed["\(client) \(place)"] = record.filter { !different.contains($0.key) }
    }
    return keyed
  }

  @Test(
    "Records are those of a capture of the same run, the verdict has what the ledger counts",
    .enabled(
      if: LoopbackCapture.isPossible && SimulateHTTP2Tests.hasHTTPX && ExternalTool.isInstalled("h2load"),
      "needs root, dumpcap, h2load, and httpx, which Scripts/test installs"))
  func records() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(
        [
          "--http2", "127.0.0.1:0", "--records", "records.jsonl", "--verdict", "--ledger", "ledger.json", "--reject",
          "every=7,reason=TooManyRequests", "--devices-uninstalled", "5%", "--devices-offline", "10%", "--streams",
          "30",
        ], in: command)
      let port = try Self.port(gateway)
      let capture = try LoopbackCapture(port: port, file: "run.pcapng", in: command)
      for number in 0..<3 { _ = try push(port, "0\(number)", in: command) }
      try command.write(Array(#"{"aps":{"alert":"x"}}"#.utf8), "body")
      let url = "http://127.0.0.1:\(port)/3/device/\(Self.token)"
      _ = try run(
        "h2load", ["-c", "4", "-m", "20", "-n", "1000", "-d", "body", "-H", "apns-topic: com.example.app", url],
        in: command)
      _ = try run(
        Self.python,
        [Self.client, "--url", "http://127.0.0.1:\(port)", "--count", "200", "--connections", "3", "--at-once", "20"],
        in: command)
      _ = try gateway.stop()
      try capture.end()
      try expectValid(file: "records.jsonl", .records, in: command)

      let decoded = try command.run("decode", "run.pcapng", "--format", "jsonl", "--output", "decoded.jsonl")
      #expect(decoded.status == 0, "\(decoded.errors)")
      let recorded = try Self.lines("records.jsonl", in: command)
      let captured = try Self.lines("decoded.jsonl", in: command)
      for type in ["notification", "response", "settings", "connection"] {
        let (one, other) = (Self.keyed(recorded, of: type), Self.keyed(captured, of: type))
        #expect(one.count == other.count && !one.isEmpty, "\(type)")
        var different = 0
        for (key, record) in one {
          var known = other[key] ?? [:]
          // A file is read twice, so that each notification has its answer; here it follows.
          for name in ["fate", "status", "reason", "discarded_by"] where type == "notification" {
            known[name] = nil
          }
          // Where both ends close at a time, each sees its own close first.
          var record = record
          for name in ["end", "flow"] { (record[name], known[name]) = (nil, nil) }
          guard record as NSDictionary != known as NSDictionary else { continue }
          different += 1
          if different < 3 { Issue.record("\(type) \(key): \(record) \(known)") }
        }
        #expect(different == 0)
      }
      let ledger = try Self.ledger(in: command)
      let counts = try #require(ledger["gateway"] as? [String: Any])
      // Both judge the payload of each notification.
      let payloads = try #require(ledger["payloads"] as? [String: Any])
      var kinds: [String: Int] = [:]
      for record in captured { if let kind = record["kind"] as? String { kinds[kind, default: 0] += 1 } }
      #expect(payloads["kinds"] as? [String: Int] == kinds && kinds.values.reduce(0, +) == 1_203)
      let verdict = try #require(ledger["verdict"] as? [String: Any])
      let requests = try #require(verdict["http2"] as? [String: Any])
      #expect(counts["received"] as? Int == 1_203 && verdict["sendings"] as? Int == 1_203)
      #expect(requests["notifications"] as? Int == 1_203)
      let fates = try #require(requests["fates"] as? [String: Int])
      #expect(fates["accepted"] == counts["accepted"] as? Int && fates["unknown"] == 0)
      var reasons: [String: Int] = [:]
      for answer in requests["answers"] as? [[String: Any]] ?? [] {
        if let reason = answer["reason"] as? String { reasons[reason] = answer["count"] as? Int }
      }
      #expect(reasons == counts["rejected"] as? [String: Int] && reasons["TooManyRequests"] ?? 0 > 100)
      // The stories are those that `follow` finds in the capture.
      let followed = try command.run("follow", "run.pcapng", "--format", "jsonl", "--output", "stories.jsonl")
      #expect(followed.status == 0, "\(followed.errors)")
      let stories = try #require(verdict["stories"] as? [String: Any])
      var outcomes: [String: Int] = [:]
      for story in try Self.lines("stories.jsonl", in: command) where story["type"] as? String == "notification" {
        outcomes[story["outcome"] as? String ?? "", default: 0] += 1
      }
      for outcome in ["accepted", "accepted_twice"] where outcomes[outcome] != nil {
        #expect(stories[outcome] as? Int == outcomes[outcome], "\(outcome): \(outcomes)")
      }
      // Other commands read the records.
      for (arguments, page) in [([], "one"), (["--records", "records.jsonl"], "two")] {
        let report = try command.run(["report", "ledger.json", "--output", page] + arguments)
        #expect(report.status == 0, "\(report.errors)")
        let text = try command.read("\(page)/report.md")
        #expect(text.contains("## Answers and streams") && text.contains("TooManyRequests"))
        // No part about packets, which a gateway does not know; without records nothing of the binary protocol.
        #expect(!text.contains("## Batching"))
        #expect(page == "two" || !text.contains("feedback") && !text.contains("error response"))
      }
    }
  }

  @Test(
    "A pipe that nobody reads costs the clients nothing: what has no room is left out, and counted",
    .enabled(if: ExternalTool.isInstalled("h2load")))
  func unreadPipe() throws {
    try Command.inFolder { command in
      let pipe = command.folder.appending(path: "pipe").path
      try #require(mkfifo(pipe, 0o600) == 0)
      // Open for reading, and not read.
      let reader = open(pipe, O_RDWR | O_CLOEXEC)
      defer { close(reader) }
      let process = try RunningProcess(
        Command.path,
        [
          "simulate", "--plain", "--http2", "127.0.0.1:0", "--records", "pipe", "--ledger", "ledger.json",
          "--max-unrecorded", "1MiB",
        ], in: command.folder)
      let line = #/http2 127\.0\.0\.1:([0-9]+)\n/#
      #expect(waitUntil { process.output.contains(line) })
      let port = try #require(process.output.firstMatch(of: line).flatMap { Int($0.output.1) })
      try command.write(Array(#"{"aps":{"alert":"x"}}"#.utf8), "body")
      let load = try run(
        "h2load",
        [
          "-c", "4", "-m", "50", "-n", "40000", "-d", "body", "-H", "apns-topic: com.example.app",
          "http://127.0.0.1:\(port)/3/device/\(Self.token)",
        ], in: command)
      #expect(load.contains("40000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(load)")
      process.send(SIGTERM)
      let outcome = try process.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors.contains("pipe: nobody reads the records"))
      let ledger = try Self.ledger(in: command)
      let counts = try #require(ledger["gateway"] as? [String: Any])
      let records = try #require(ledger["records"] as? [String: Int])
      #expect(counts["accepted"] as? Int == 40_000 && records["lost"] ?? 0 > 20_000)
      #expect((records["notifications"] ?? 0) + (records["lost"] ?? 0) == 40_000)
    }
  }

  // MARK: expectations

  @Test("--until, --expect and --junit judge what came over HTTP/2") func expectations() throws {
    for (reject, status) in [([], Int32(0)), (["--reject", "token=\(Self.token),reason=Unregistered"], 99)] {
      try Command.inFolder { command in
        let process = try RunningProcess(
          Command.path,
          [
            "simulate", "--plain", "--http2", "127.0.0.1:0", "--ready-file", "ready", "--until", "received>=3",
            "--for", "120s", "--expect", "accepted>=3", "lost<=0", "token=0f0f,count=1", "--junit", "result.xml",
            "--ledger", "ledger.json",
          ] + reject, in: command.folder)
        let ready = command.folder.appending(path: "ready")
        #expect(waitUntil { FileManager.default.fileExists(atPath: ready.path) })
        let port = Int(try String(contentsOf: ready, encoding: .utf8).dropLast().split(separator: ":").last ?? "") ?? 0
        for token in ["aa", "bb", Self.token] { _ = try push(port, token, in: command) }
        let outcome = try process.end()
        #expect(outcome.status == status, "\(outcome.errors)")
        let verdict = try #require(try Self.ledger(in: command)["verdict"] as? [String: Any])
        #expect(verdict["sendings"] as? Int == 3)
        let junit = try String(contentsOf: command.folder.appending(path: "result.xml"), encoding: .utf8)
        #expect(junit.contains(#"tests="4""#) && junit.contains(#"failures="0""#) == (status == 0), "\(junit)")
      }
    }
  }

  @Test("--until-idle ends a run after its last notification over HTTP/2") func idle() throws {
    try Command.inFolder { command in
      let process = try RunningProcess(
        Command.path,
        [
          "simulate", "--plain", "--http2", "127.0.0.1:0", "--ready-file", "ready", "--until-idle", "500ms", "--for",
          "120s", "--verdict", "--ledger", "ledger.json",
        ], in: command.folder)
      let ready = command.folder.appending(path: "ready")
      #expect(waitUntil { FileManager.default.fileExists(atPath: ready.path) })
      let port = Int(try String(contentsOf: ready, encoding: .utf8).dropLast().split(separator: ":").last ?? "") ?? 0
      _ = try push(port, "aa", in: command)
      #expect(try process.end().status == 0)
      #expect(process.output.contains("\nanswers        1 x 200"), "\(process.output)")
    }
  }

  // MARK: control

  @Test("One list of both protocols, with what only HTTP/2 has; filters, rejections, counts, verdict and reset")
  func control() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--http2", "127.0.0.1:0"], in: command)
      let port = try Self.port(gateway)
      let service = try gateway.get("/").object()
      #expect(service["http2"] as? String == "127.0.0.1:\(port)")
      let provider = try PlainClient(gateway.gateway)
      try provider.send(Frames.framed(1))
      _ = try gateway.wait(1)
      let identifier = "123e4567-e89b-12d3-a456-4266554400a0"
      _ = try push(
        port, Self.token,
        Self.topic + [
          "-H", "apns-id: \(identifier)", "-H", "apns-push-type: alert", "-H", "apns-collapse-id: score", "-H",
          "apns-priority: 5", "-H", "apns-expiration: 4102444800",
        ], in: command)
      let rule = #"{"token": "bb", "reason": "Unregistered", "times": 1}"#
      #expect(try gateway.ask("POST", "/faults/rejections", rule).status == 201)
      #expect(try push(port, "bb", in: command).contains("Unregistered"))
      #expect(try push(port, "bb", in: command).hasPrefix("HTTP/2 200"))
      #expect(try push(port, "cc", [], in: command).contains("MissingTopic"))

      let all = try gateway.wait(5).notifications()
      #expect(all.map { $0["number"] as? Int } == [1, 2, 3, 4, 5])
      #expect(
        all.map { $0["fate"] as? String } == ["accepted", "accepted", "rejected", "accepted", "rejected"])
      #expect(all.map { $0["status"] as? Int } == [nil, 200, 410, 200, 400])
      #expect(all.map { $0["reason"] as? String } == [nil, nil, "Unregistered", nil, "MissingTopic"])
      let full = all[1]
      #expect(full["apns_id"] as? String == identifier && full["collapse_id"] as? String == "score")
      #expect(full["push_type"] as? String == "alert" && full["topic"] as? String == "com.example.app")
      #expect(full["priority"] as? Int == 5 && full["expiration"] as? Int == 4_102_444_800)
      #expect(full["stream"] as? Int == 1 && full["token"] as? String == Self.token)
      #expect(all[0]["stream"] == nil && all[4]["topic"] == nil)
      for (query, numbers) in [
        ("apns_id=\(identifier.uppercased())", [2]), ("collapse_id=score", [2]), ("push_type=alert", [2]),
        ("push_type=voip", []), ("token=bb", [3, 4]), ("text=to%20bb", [3, 4]), ("fate=rejected", [3, 5]),
        ("topic=com.example.app", [1, 2, 3, 4]), ("since=3", [4, 5]), ("apns_id=x", []),
      ] as [(String, [Int])] {
        let found = try gateway.get("/notifications?\(query)").notifications().map { $0["number"] as? Int }
        #expect(found == numbers, "\(query)")
      }
      let counts = try #require(try gateway.get("/counts").object()["gateway"] as? [String: Any])
      #expect(counts["received"] as? Int == 5 && counts["accepted"] as? Int == 3)
      let verdict = try gateway.get("/verdict").object()
      #expect(verdict["sendings"] as? Int == 5)
      #expect((verdict["http2"] as? [String: Any])?["notifications"] as? Int == 4)

      // A device is gone for both.
      #expect(try gateway.ask("PUT", "/devices/dd", #"{"state": "uninstalled"}"#).status == 200)
      #expect(try push(port, "dd", in: command).contains("Unregistered"))
      for (wrong, status) in [
        (#"{"token": "bb", "reason": "Own"}"#, 422), (#"{"token": "bb", "reason": ""}"#, 400),
        (#"{"token": "bb", "http_status": 200}"#, 400),
      ] {
        #expect(try gateway.ask("POST", "/faults/rejections", wrong).status == status, "\(wrong)")
      }
      #expect(
        try gateway.ask("POST", "/faults/rejections", #"{"every": 1, "reason": "Own", "http_status": 499}"#).status
          == 201)
      #expect(try push(port, "ee", in: command).hasPrefix("HTTP/2 499"))
      #expect(try gateway.ask("POST", "/reset").status == 204)
      #expect(try gateway.get("/notifications").notifications().isEmpty)
      #expect(try gateway.get("/verdict").object()["sendings"] as? Int == 0)
      #expect(try push(port, "dd", in: command).hasPrefix("HTTP/2 200"))
      _ = try gateway.stop()
    }
  }

  @Test("Faults of HTTP/2 are added and replaced while the gateway runs, told with their hits, and gone with a reset")
  func faults() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--http2", "127.0.0.1:0"], in: command)
      let port = try Self.port(gateway)
      #expect(
        try gateway.ask("POST", "/faults/http2", #"{"fault": "answer,status=599,token=aa,times=1"}"#).status == 201)
      #expect(try push(port, "aa", in: command).hasPrefix("HTTP/2 599"))
      #expect(try push(port, "aa", in: command).hasPrefix("HTTP/2 200"))
      let faults = try #require(try gateway.get("/faults").object()["http2_fault"] as? [[String: Any]])
      #expect(faults.count == 1 && faults[0]["hits"] as? Int == 1 && faults[0]["left"] as? Int == 0)
      #expect((faults[0]["fault"] as? String)?.hasPrefix("answer,") == true)
      for wrong in ["nonsense", "delay,file=/etc/passwd"] {
        #expect(try gateway.ask("POST", "/faults/http2", #"{"fault": "\#(wrong)"}"#).status == 422, "\(wrong)")
      }
      let change = #"{"http2_fault": [{"fault": "delay,time=300ms"}]}"#
      #expect(try gateway.ask("PATCH", "/faults", change).status == 200)
      let began = ContinuousClock.now
      #expect(try push(port, "bb", in: command).hasPrefix("HTTP/2 200"))
      #expect(ContinuousClock.now - began >= .milliseconds(300))
      // It is listed, whether or not its answer is there.
      #expect(try gateway.wait(1, "&token=bb").notifications().first?["fate"] as? String == "accepted")
      #expect(try gateway.ask("POST", "/reset").status == 204)
      #expect((try gateway.get("/faults").object()["http2_fault"] as? [Any])?.isEmpty == true)
      _ = try gateway.stop()
    }
  }

  @Test("After a reset a connection that stays open is listed and judged, although its fields refer to earlier ones")
  func resetOfOpenConnection() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--http2", "127.0.0.1:0"], in: command)
      let client = try PlainClient(try Self.port(gateway))
      // The topic is put into the header table with the first request, and referred to by the second one.
      func block(_ topic: [UInt8]) -> [UInt8] {
        HTTP2Bytes.block([(":method", "POST"), (":scheme", "http"), (":path", "/3/device/\(Self.token)")]) + topic
      }
      let literal = [0x40, 10] + Array("apns-topic".utf8) + [13] + Array("com.example.b".utf8)
      let body = Array(#"{"aps":{"alert":"x"}}"#.utf8)
      try client.send(
        HTTP2Bytes.preface + HTTP2Bytes.frame(1, 4, 1, block(literal)) + HTTP2Bytes.frame(0, 1, 1, body))
      _ = try gateway.wait(1)
      #expect(try gateway.ask("POST", "/reset").status == 204)
      try client.send(HTTP2Bytes.frame(1, 4, 3, block([0x80 | 62])) + HTTP2Bytes.frame(0, 1, 3, body))
      let listed = try gateway.wait(1, "&topic=com.example.b").notifications()
      #expect(listed.map { $0["number"] as? Int } == [2] && listed[0]["stream"] as? Int == 3)
      let verdict = try gateway.get("/verdict").object()
      #expect(verdict["sendings"] as? Int == 1 && (verdict["stories"] as? [String: Any])?["accepted"] as? Int == 1)
      client.close()
      _ = try gateway.stop()
    }
  }
}
