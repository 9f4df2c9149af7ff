import Foundation
import Glibc
import Measurement
import TestSupport
import Testing

/// A load, a gateway and a fleet of devices: each counts for itself, and the books agree.
@Suite("Books of devices", .waiting)
struct DeviceBooksTests {
  /// A simulator with a device channel, on a port that it says.
  private struct Gateway {
    let process: SimulatorProcess
    let devices: Int

    init(_ options: [String], preparation: [String] = [], in command: Command) throws {
      process = try SimulatorProcess(
        ["--device-channel", "127.0.0.1:0", "--ready-file", "up", "--metrics", "127.0.0.1:0"] + options, in: command,
        preparation: preparation)
      #expect(waitUntil { (try? command.read("up").contains("devices 127.0.0.1:")) == true })
      devices =
        try command.read("up").split(separator: "\n").first { $0.hasPrefix("devices ") }
        .flatMap { Int($0.split(separator: ":").last ?? "") } ?? 0
    }
  }

  private func fleet(_ gateway: Gateway, _ options: [String], output: String = "fleet", in command: Command) throws
    -> RunningProcess
  {
    try RunningProcess(
      Command.path,
      ["devices", "--gateway", "127.0.0.1:\(gateway.devices)", "--seed", "7", "--topic", SimulatorProcess.topic]
        + ["--output", "\(output).json", "--received", "\(output).jsonl"] + options,
      in: command.folder, name: output)
  }

  private func result(_ name: String, in command: Command) throws -> FleetResult {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(FleetResult.self, from: Data(contentsOf: command.folder.appending(path: name)))
  }

  private func received(_ name: String, in command: Command) throws -> [[String: Any]] {
    try command.read(name).split(separator: "\n").compactMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
  }

  /// The value of a member of each line, and how often it is there.
  private func count(_ key: String, _ lines: [[String: Any]]) -> [String: Int] {
    Dictionary(lines.compactMap { $0[key] as? String }.map { ($0, 1) }, uniquingKeysWith: +)
  }

  @Test("What a load sends to devices that are connected, each of them has, by notification", arguments: [false, true])
  func online(tls: Bool) throws {
    try SimulatorProcess.inFolder { command in
      let gateway = try Gateway(["--seed", "7", "--records", "arrived.jsonl"] + (tls ? [] : ["--plain"]), in: command)
      let fleet = try fleet(
        gateway, ["--count", "40"] + (tls ? ["--ca", "ids/ca.pem"] : ["--plain"]), in: command)
      #expect(waitUntil { gateway.process.metric("apnscope_devices_online") == 40 || !fleet.isRunning })
      let load = try LoadProcess.start(
        gateway.process,
        [
          "--seed", "7", "--tokens", "40", "--count", "4000", "--stamp",
        ] + (tls ? [] : ["--plain"]), in: command)
      #expect(try load.end().status == 0)
      let sent = try LoadProcess.result(in: command)
      #expect(sent.notifications.accepted == 4_000)
      #expect(waitUntil { (try? received("fleet.jsonl", in: command).count) == 4_000 })
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let ledger = try gateway.process.stop()
      #expect(ledger.gateway.accepted == 4_000 && ledger.devices.delivered == 4_000 && ledger.devices.stored == 0)
      #expect(ledger.devices.channel?.sent == 4_000 && ledger.devices.channel?.repeated == 0)
      let result = try result("fleet.json", in: command)
      #expect(result.notifications.received == 4_000 && result.faults == [:])
      // Each was due, and written, before the gateway read it, on one machine's clock.
      let latency = result.latency
      // A device that lags behind gets some of them later.
      for paths in [latency.fromDue, latency.fromWritten] {
        #expect(paths.all.reduce(0) { $0 + $1.count } == 4_000 && paths.onlineUs.count == result.notifications.online)
      }
      #expect(latency.fromDue.onlineUs.mean >= latency.fromWritten.onlineUs.mean)
      #expect(latency.fromWritten.onlineUs.mean >= latency.onlineUs.mean && result.notifications.early == 0)
      #expect(result.campaigns.map(\.received) == [4_000] && result.campaigns.map(\.dated) == [4_000])
      try report(gateway.process.ledgerFile, in: command)
      let lines = try received("fleet.jsonl", in: command)
      let arrived = try received("arrived.jsonl", in: command).filter { $0["fate"] as? String == "accepted" }
      #expect(arrived.count == 4_000)
      #expect(count("token", lines) == count("token", arrived))
    }
  }

  /// The report of both books, and of books that were changed.
  private func report(_ ledger: String, in command: Command) throws {
    let page = try command.run(["report", "fleet.json", "--ledger", ledger, "--output", "page"])
    #expect(page.status == 0, "\(page.errors)")
    #expect(try command.read("page/report.md").contains("The books of both sides agree."))
    var document = try #require(
      try JSONSerialization.jsonObject(with: Data(try command.read("fleet.json").utf8)) as? [String: Any])
    var notifications = try #require(document["notifications"] as? [String: Any])
    (notifications["received"], notifications["online"]) = (3_999, 3_999)
    document["notifications"] = notifications
    try command.write([UInt8](try JSONSerialization.data(withJSONObject: document)), "changed.json")
    let other = try command.run(["report", "changed.json", "--ledger", ledger, "--output", "other"])
    #expect(other.status == 70 && other.errors.contains("disagree"), "\(other.errors)")
    // A ledger of another run.
    var books = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: command.folder.appending(path: ledger))) as? [String: Any]
    )
    books["started"] = "2999-01-01T00:00:00Z"
    try command.write([UInt8](try JSONSerialization.data(withJSONObject: books)), "later.json")
    let later = try command.run(["report", "fleet.json", "--ledger", "later.json", "--output", "later"])
    #expect(later.status == 70 && later.errors.contains("were not compared"), "\(later.errors)")
  }

  /// A payload, of a record or of a line of a fleet.
  private func payload(_ line: [String: Any]) -> String? {
    if let text = line["payload"] as? String, let data = Data(base64Encoded: text) {
      return String(decoding: data, as: UTF8.self)
    }
    return (line["payload"] as? [String: Any]).flatMap { $0["aps"] as? [String: Any] }
      .flatMap { $0["alert"] as? String }.map { #"{"aps":{"alert":"\#($0)"}}"# }
  }

  // MARK: a capture of both sides

  @Test(
    "A capture of both sides has each notification twice: from the provider, and to its device",
    .enabled(if: LoopbackCapture.isPossible, "needs root and dumpcap"), arguments: [false, true])
  func captured(tls: Bool) throws {
    try SimulatorProcess.inFolder { command in
      let gateway = try Gateway(["--seed", "7"] + (tls ? ["--keylog", "keys.log"] : ["--plain"]), in: command)
      let (provider, devices) = (gateway.process.gateway, gateway.devices)
      let capture = try LoopbackCapture(ports: [provider, devices], file: "both.pcap", in: command)
      let fleet = try fleet(
        gateway, ["--count", "20"] + (tls ? ["--ca", "ids/ca.pem"] : ["--plain"]), in: command)
      #expect(waitUntil { gateway.process.metric("apnscope_devices_online") == 20 || !fleet.isRunning })
      let load = try LoadProcess.start(
        gateway.process,
        ["--seed", "7", "--tokens", "20", "--count", "600", "--stamp"] + (tls ? [] : ["--plain"]), in: command)
      #expect(try load.end().status == 0)
      #expect(waitUntil { (try? received("fleet.jsonl", in: command).count) == 600 })
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let ledger = try gateway.process.stop()
      try capture.end()
      let decoded = try command.run(
        ["decode", "--port", "\(provider)=gateway", "--port", "\(devices)=devices"]
          + (tls ? ["--keys", "keys.log"] : []) + ["both.pcap"])
      #expect(decoded.status == 0, "\(decoded.errors)")
      let records = try decoded.lines.map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
      let sent = records.filter { $0["type"] as? String == "notification" && $0["fate"] as? String == "accepted" }
      let delivered = records.filter { $0["type"] as? String == "device" && $0["kind"] as? String == "deliver" }
      let lines = try received("fleet.jsonl", in: command)
      #expect(sent.count == 600 && delivered.count == 600 && ledger.devices.channel?.acknowledged == 600)
      #expect(count("token", sent) == count("token", lines))
      func identity(_ line: [String: Any]) -> String { "\(line["token"] ?? "") \(line["sequence"] ?? "")" }
      #expect(Set(delivered.map(identity)) == Set(lines.map(identity)) && Set(lines.map(identity)).count == 600)
      let inspected = try command.run(
        ["inspect", "--format", "json", "--port", "\(provider)=gateway", "--port", "\(devices)=devices"]
          + (tls ? ["--keys", "keys.log"] : []) + ["both.pcap"])
      let document = try JSONSerialization.jsonObject(with: Data(inspected.output.utf8)) as? [String: Any]
      let counts = try #require(document?["devices"] as? [String: Int])
      #expect(counts["deliveries"] == 600 && counts["acknowledged"] == 600, "\(counts)")
    }
  }

  // MARK: the store

  /// Devices register and go. Returns when the gateway has them all as away.
  private func register(_ count: Int, _ gateway: Gateway, in command: Command) throws {
    let fleet = try fleet(gateway, ["--plain", "--count", "\(count)"], output: "first", in: command)
    #expect(waitUntil { gateway.process.metric("apnscope_devices_online") == count || !fleet.isRunning })
    fleet.send(SIGTERM)
    _ = try fleet.end()
    #expect(waitUntil { gateway.process.metric("apnscope_devices_online") == 0 })
  }

  private func load(_ gateway: Gateway, _ count: Int, in command: Command) throws -> RunningProcess {
    try LoadProcess.start(
      gateway.process,
      [
        "--plain", "--connections", "1", "--seed", "7", "--tokens", "30", "--count", "\(count)", "--payload-template",
        #"{"aps":{"alert":"Ferry {index}"}}"#,
      ], in: command)
  }

  @Test("What is stored survives kill -9: each device that comes back has the latest that the gateway has accepted")
  func killed() throws {
    try SimulatorProcess.inFolder { command in
      let options = ["--plain", "--no-feedback", "--seed", "7", "--device-store", "devices.sqlite"]
      let gateway = try Gateway(options, in: command)
      try register(30, gateway, in: command)
      let load = try load(gateway, 3_000, in: command)
      #expect(try load.end().status == 0)
      #expect(try LoadProcess.result(in: command).notifications.accepted == 3_000)
      try gateway.process.kill()
      let again = try Gateway(options, in: command)
      let fleet = try fleet(again, ["--plain", "--payloads", "--count", "30"], output: "second", in: command)
      #expect(waitUntil { again.process.metric("apnscope_devices_delivered_total") == 30 || !fleet.isRunning })
      fleet.send(SIGTERM)
      _ = try fleet.end()
      let devices = try again.process.stop().devices
      #expect(devices.channel?.restored == 30 && devices.delivered == 30 && devices.stored == 0)
      let lines = try received("second.jsonl", in: command)
      #expect(lines.count == 30 && Set(lines.compactMap { $0["token"] as? String }).count == 30)
      #expect(lines.allSatisfy { $0["stored"] as? Bool == true })
      // The same load to a gateway without devices: the last payload of each token.
      let records = try Gateway(["--plain", "--no-feedback", "--records", "all.jsonl"], in: command)
      #expect(try self.load(records, 3_000, in: command).end().status == 0)
      _ = try records.process.stop()
      let sent = try received("all.jsonl", in: command).filter { $0["fate"] as? String == "accepted" }
      let last = Dictionary(sent.map { ($0["token"] as? String, payload($0)) }, uniquingKeysWith: { $1 })
      #expect(last.count == 30 && sent.count == 3_000)
      for line in lines { #expect(payload(line) == last[line["token"] as? String]) }
      var stat = stat()
      #expect(lstat(command.folder.appending(path: "devices.sqlite").path, &stat) == 0 && stat.st_mode & 0o777 == 0o600)
    }
  }

  @Test("With a full disk nothing is accepted that could not be kept, and what was kept is delivered")
  func fullDisk() throws {
    try SimulatorProcess.inFolder { command in
      let options = ["--plain", "--no-feedback", "--seed", "7", "--device-store", "devices.sqlite"]
      // A limit on the size of files, for a disk.
      let gateway = try Gateway(
        options + ["--max-stored", "1000000"],
        preparation: ["bash", "-c", #"trap '' XFSZ; ulimit -f 1024 && exec "$0" "$@""#], in: command)
      try register(30, gateway, in: command)
      let load = try load(gateway, 400, in: command)
      _ = try load.end()
      gateway.process.send(SIGTERM)
      let outcome = try gateway.process.end()
      let ledger = try gateway.process.ledgerObject()
      let (counts, devices) = (
        try #require(ledger["gateway"] as? [String: Any]), try #require(ledger["devices"] as? [String: Any])
      )
      let unkept = try #require((devices["channel"] as? [String: Any])?["unkept"] as? Int)
      #expect(unkept > 0 && outcome.errors.contains("devices.sqlite"), "\(outcome.errors)")
      #expect((counts["rejected"] as? [String: Int]) == ["1": unkept])
      let stored = try #require(devices["stored"] as? Int)
      #expect(stored > 0)
      let again = try Gateway(options, in: command)
      let fleet = try fleet(again, ["--plain", "--payloads", "--count", "30"], output: "second", in: command)
      #expect(waitUntil { again.process.metric("apnscope_devices_delivered_total") == stored || !fleet.isRunning })
      fleet.send(SIGTERM)
      _ = try fleet.end()
      again.process.send(SIGTERM)
      #expect(try again.process.end().status == 0)
      let lines = try received("second.jsonl", in: command)
      #expect(lines.count == stored)
    }
  }
}
