import Foundation
import TestSupport
import Testing

/// Records of a simulator, compared with its ledger, a capture, and other commands.
@Suite("simulate --records", .waiting)
struct SimulateRecordsTests {
  private static func lines(_ bytes: Data, of type: String) throws -> [[String: Any]] {
    try bytes.split(separator: UInt8(ascii: "\n")).compactMap {
      let record = try JSONSerialization.jsonObject(with: $0) as? [String: Any]
      return record?["type"] as? String == type ? record : nil
    }
  }

  private static func records(_ name: String, of type: String, in command: Command) throws -> [[String: Any]] {
    try lines(Data(contentsOf: command.folder.appending(path: name)), of: type)
  }

  @Test("All that a load sends is recorded with its fate, and the books agree")
  func books() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--records", "records.jsonl", "--devices-uninstalled", "1%", "--shutdown-after", "5000"], in: command)
      let load = try command.run(
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--connections", "3", "--count",
          "20k", "--faults", "missing-token=1e-3", "--output", "run.json",
        ] + LoadProcess.patience)
      #expect(load.status == 0, "\(load.errors)")
      let ledger = try simulator.stop()
      try expectValid(file: "records.jsonl", .records, in: command)
      let notifications = try Self.records("records.jsonl", of: "notification", in: command)
      #expect(notifications.count == ledger.gateway.received)
      #expect(ledger.records?.notifications == notifications.count && ledger.records?.lost == 0)
      func count(_ fate: String) -> Int { notifications.count { $0["fate"] as? String == fate } }
      #expect(count("accepted") == ledger.gateway.accepted)
      #expect(count("rejected") == ledger.gateway.rejected.values.reduce(0, +))
      #expect(count("discarded") == ledger.gateway.discarded)
      #expect(count("discarded") > 0 && count("rejected") > 0)
      #expect(notifications.allSatisfy { $0["packet"] == nil })
      let connections = try Self.records("records.jsonl", of: "connection", in: command)
      #expect(connections.count == ledger.gateway.handshakes)
      #expect(connections.allSatisfy { $0["unknown"] as? Int == 0 && $0["missing_bytes"] as? Int == 0 })
      let tls = connections.compactMap { $0["tls"] as? [String: Any] }
      #expect(tls.allSatisfy { ($0["client_subject"] as? String)?.contains(SimulatorProcess.topic) == true })
      // And other commands read them.
      let report = try command.run("report", "records.jsonl", "--output", "page")
      #expect(report.status == 0, "\(report.errors)")
    }
  }

  @Test("What became of notifications for devices is in records of its own, which name them") func deliveries() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        [
          "--records", "records.jsonl", "--devices-offline", "20%", "--devices-uninstalled", "2%",
          "--devices-online-after", "300ms", "--max-stored", "500",
        ], in: command)
      let load = try command.run(
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--connections", "3", "--count",
          "10k", "--rate", "10k", "--tokens", "3000", "--expiration", "0", "--output", "run.json",
        ] + LoadProcess.patience)
      #expect(load.status == 0, "\(load.errors)")
      let other = try command.run(
        [
          "load", "--identity", "ids", "--gateway", "127.0.0.1:\(simulator.gateway)", "--count", "5k", "--tokens",
          "3000", "--output", "other.json",
        ] + LoadProcess.patience)
      #expect(other.status == 0, "\(other.errors)")
      let ledger = try simulator.stop()
      try expectValid(file: "records.jsonl", .records, in: command)
      let deliveries = try Self.records("records.jsonl", of: "delivery", in: command)
      func count(_ outcome: String) -> Int { deliveries.count { $0["outcome"] as? String == outcome } }
      let devices = ledger.devices
      #expect(count("coalesced") == devices.coalesced && count("expired") == devices.expired)
      #expect(count("dropped") == devices.dropped && count("uninstalled") == devices.uninstalled)
      #expect(count("stored") == devices.stored && devices.expired > 0 && devices.uninstalled > 0)
      let notifications = try Self.records("records.jsonl", of: "notification", in: command)
      func key(_ record: [String: Any]) -> [Int?] { [record["connection"] as? Int, record["index"] as? Int] }
      let tokens = Dictionary(uniqueKeysWithValues: notifications.map { (key($0), $0["token"] as? String) })
      #expect(Set(deliveries.map(key)).count == deliveries.count)
      #expect(deliveries.allSatisfy { tokens[key($0)] == $0["token"] as? String })
      // Those at once are all others.
      #expect(devices.delivered == ledger.gateway.accepted - deliveries.count + count("delivered"))
      // Other commands read them.
      #expect(try command.run("report", "records.jsonl", "--output", "page").status == 0)
    }
  }

  /// What a capture proves is what the gateway says; the gateway knows more.
  @Test(
    "The records are those of a capture of the same run", .enabled(if: LoopbackCapture.isPossible),
    arguments: ["1.2", "1.3"])
  func capture(_ version: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--records", "records.jsonl", "--keylog", "keys.log", "--reject", "every=37", "--shutdown-after", "200"],
        in: command)
      let capture = try LoopbackCapture(port: simulator.gateway, file: "run.pcap", in: command)
      let provider = PythonProvider(folder: command.folder)
      _ = try provider.send(simulator.gateway, "--tokens", "500", "--chunk", "11", "--version", version)
      _ = try provider.send(simulator.gateway, "--tokens", "90", "--chunk", "90", "--version", version)
      _ = try simulator.stop()
      try capture.end()
      let decoded = try command.run(
        "decode", "--keys", "keys.log", "--port", "\(simulator.gateway)=gateway", "--output", "decoded.jsonl",
        "run.pcap")
      #expect(decoded.status == 0, "\(decoded.errors)")
      for type in ["notification", "error_response", "connection"] {
        let recorded = try Self.records("records.jsonl", of: type, in: command)
        let captured = try Self.records("decoded.jsonl", of: type, in: command)
        #expect(recorded.count == captured.count && !recorded.isEmpty, "\(type)")
        // Records of connections that are open at a time may be in another order.
        for (one, other) in zip(Self.inOrder(recorded), Self.inOrder(captured)) { Self.expectSame(one, other, type) }
      }
    }
  }

  private static func inOrder(_ records: [[String: Any]]) -> [[String: Any]] {
    func key(_ record: [String: Any]) -> (Int, Int) {
      (record["connection"] as? Int ?? 0, record["offset"] as? Int ?? 0)
    }
    return records.sorted { key($0) < key($1) }
  }

  /// - Parameter recorded: a record of the gateway, which knows fates that a capture leaves open.
  private static func expectSame(_ recorded: [String: Any], _ captured: [String: Any], _ type: String) {
    let names =
      switch type {
      case "notification":
        ["connection", "index", "offset", "length", "command", "identifier", "expiration", "priority", "token"]
      case "error_response": ["connection", "offset", "command", "status", "identifier", "notification", "accepted"]
      default: ["connection", "service", "client", "server", "client_bytes", "server_bytes", "notifications"]
      }
    for name in names {
      #expect("\(recorded[name] ?? "-")" == "\(captured[name] ?? "-")", "\(type) \(name)")
    }
    if let fate = captured["fate"] as? String, fate != "unknown" { #expect(recorded["fate"] as? String == fate) }
    if type == "connection" {
      // Where both ends close at a time, each sees its own close first.
      let ends = [recorded["end"] as? String ?? "-", captured["end"] as? String ?? "-"]
      #expect(ends[0] == ends[1] || Set(ends) == ["client_fin", "server_fin"], "\(ends)")
      for fate in ["accepted", "rejected", "discarded"] where captured["unknown"] as? Int == 0 {
        #expect(recorded[fate] as? Int == captured[fate] as? Int, "\(fate)")
      }
      let (tls, other) = (recorded["tls"] as? [String: Any], captured["tls"] as? [String: Any])
      for name in ["version", "cipher_suite", "client_subject"] {
        #expect(tls?[name] as? String == other?[name] as? String, "\(name)")
      }
    }
  }

  @Test("With - standard output has records and nothing else, while they come")
  func standardOutput() throws {
    try Command.inFolder { command in
      let process = try RunningProcess(
        Command.path, ["simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--records", "-"],
        in: command.folder)
      let line = #/gateway 127\.0\.0\.1:([0-9]+)\n/#
      #expect(waitUntil { process.errors.contains(line) })
      let port = try #require(process.errors.firstMatch(of: line).flatMap { Int($0.output.1) })
      let client = try PlainClient(port)
      try client.send(Frames.framed(1) + Frames.framed(2))
      #expect(waitUntil { process.output.contains(#""index":1"#) })
      client.close()
      process.send(SIGTERM)
      let outcome = try process.end()
      #expect(outcome.status == 0)
      expectValid(process.outputBytes, .records)
      #expect(try Self.lines(Data(process.outputBytes), of: "notification").count == 2)
      #expect(outcome.errors.contains("2 received"))
      #expect(outcome.errors.contains("records        2 notifications, 0 lost"))
    }
  }

  @Test("A full disk ends the file, and not the gateway")
  func fullDisk() throws {
    try Command.inFolder { command in
      let process = try RunningProcess(
        Command.path,
        [
          "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--records", "/dev/full", "--ledger",
          "sim.json",
        ], in: command.folder)
      let line = #/gateway 127\.0\.0\.1:([0-9]+)\n/#
      #expect(waitUntil { process.output.contains(line) })
      let port = try #require(process.output.firstMatch(of: line).flatMap { Int($0.output.1) })
      for _ in 0..<3 {
        let load = try command.run(
          ["load", "--plain", "--gateway", "127.0.0.1:\(port)", "--count", "5k", "--output", "run.json"]
            + LoadProcess.patience)
        #expect(load.status == 0, "\(load.errors)")
      }
      process.send(SIGTERM)
      let outcome = try process.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors.contains("/dev/full: No space left on device"))
      let ledger = try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: command.folder.appending(path: "sim.json")))
          as? [String: Any])
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      let records = try #require(ledger["records"] as? [String: Int])
      #expect(gateway["accepted"] as? Int == 15_000)
      #expect(records == ["notifications": 0, "lost": gateway["received"] as? Int ?? -1])
    }
  }

  @Test("A pipe that nobody reads keeps neither the gateway nor its end waiting")
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
          "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--records", "pipe", "--ledger",
          "sim.json",
        ],
        in: command.folder)
      let line = #/gateway 127\.0\.0\.1:([0-9]+)\n/#
      #expect(waitUntil { process.output.contains(line) })
      let port = try #require(process.output.firstMatch(of: line).flatMap { Int($0.output.1) })
      let load = try command.run(
        ["load", "--plain", "--gateway", "127.0.0.1:\(port)", "--count", "20k", "--output", "run.json"]
          + LoadProcess.patience)
      #expect(load.status == 0, "\(load.errors)")
      process.send(SIGTERM)
      let outcome = try process.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors.contains("pipe: nobody reads the records"))
      let ledger = try #require(
        try JSONSerialization.jsonObject(with: Data(contentsOf: command.folder.appending(path: "sim.json")))
          as? [String: Any])
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      let records = try #require(ledger["records"] as? [String: Int])
      let sum = (records["notifications"] ?? 0) + (records["lost"] ?? 0)
      #expect(gateway["accepted"] as? Int == 20_000 && sum == gateway["received"] as? Int)
    }
  }
}
