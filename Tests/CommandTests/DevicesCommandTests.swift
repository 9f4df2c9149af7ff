import Foundation
import Measurement
import OutputSchema
import TestSupport
import Testing

/// `apnscope devices` as a process, against a gateway of the tests.
@Suite("devices", .waiting)
struct DevicesCommandTests {
  private func result(_ name: String, in command: Command) throws -> FleetResult {
    try expectValid(file: name, .fleet, in: command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(FleetResult.self, from: Data(contentsOf: command.folder.appending(path: name)))
  }

  private func lines(_ name: String, in command: Command) throws -> [[String: Any]] {
    try expectValid(file: name, .received, in: command)
    return try command.read(name).split(separator: "\n").compactMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
  }

  private func arguments(_ gateway: DeviceGateway, _ others: String...) -> [String] {
    ["devices", "--plain", "--gateway", "127.0.0.1:\(gateway.port)", "--seed", "\(gateway.seed)"] + others
  }

  @Test("The summary, the result and the lines of notifications agree with the gateway's books")
  func books() throws {
    let gateway = try DeviceGateway(seed: 5)
    defer { gateway.end() }
    try Command.inFolder { command in
      try command.write(Array("earlier\n".utf8), "got.jsonl")
      let outcome = try command.run(
        arguments(
          gateway, "--count", "8", "--first", "100", "--topic", "a", "--topic", "b", "--until-idle", "5s",
          "--output", "fleet.json", "--received", "got.jsonl", "--label", "branch=main"))
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
      #expect(outcome.lines.first == "devices        8: 8 were online, 8 at the end")
      #expect(outcome.output.contains("32 received = 16 online + 16 stored + 0 repeated"), "\(outcome.output)")
      #expect(outcome.lines.contains("✓ the gateway made no errors"))
      let result = try result("fleet.json", in: command)
      #expect(result.devices.everOnline == 8 && result.notifications.received == 32 && result.faults == [:])
      #expect(result.plan["count"] == .number(8) && result.plan["topic"] == .list(["a", "b"]))
      #expect(result.labels == ["branch": "main"] && result.environment.apnscope != "")
      #expect(!result.interrupted && result.timeline.samples.reduce(0) { $0 + $1.received } == 32)
      let lines = try lines("got.jsonl", in: command)
      #expect(lines.count == 32 && Set(lines.compactMap { $0["device"] as? Int }) == Set(100..<108))
      let digest = try sha256([Array("{}".utf8)])[0]
      #expect(lines.allSatisfy { $0["payload_sha256"] as? String == digest && $0["collapse_id"] as? String == "c" })
      gateway.acknowledged.withLock { #expect($0.count == 16 && $0.values.allSatisfy { $0 == 2 }) }
    }
  }

  @Test("A signal ends the fleet in good order, with a result", arguments: [[], ["--for", "10m"]])
  func interrupted(end: [String]) throws {
    let gateway = try DeviceGateway(seed: 1)
    defer { gateway.end() }
    try Command.inFolder { command in
      let process = try RunningProcess(
        Command.path,
        arguments(gateway, "--count", "3", "--output", "fleet.json", "--payloads", "--received", "r") + end,
        in: command.folder)
      #expect(waitUntil { gateway.acknowledged.withLock { $0.values.count { $0 == 2 } } == 3 })
      process.send(SIGTERM)
      let outcome = try process.end()
      #expect(outcome.status == (end.isEmpty ? 0 : 130), "\(outcome.errors)")
      let result = try result("fleet.json", in: command)
      #expect(
        result.interrupted == !end.isEmpty && result.devices.onlineAtEnd == 3 && result.notifications.received == 6)
      #expect(try lines("r", in: command).allSatisfy { $0["payload"] as? String == "e30=" })
      #expect(waitUntil { gateway.connections.withLock { $0.open } == 0 })
    }
  }

  @Test("Errors of the gateway end with 76, and a clock that seems to be ahead is a warning")
  func faults() throws {
    let gateway = try DeviceGateway(seed: 5, behind: 5_000_000_000)
    defer { gateway.end() }
    try Command.inFolder { command in
      let late = try command.run(arguments(gateway, "--count", "2", "--until-idle", "5s"))
      #expect(late.status == 0, "\(late.errors)")
      #expect(late.lines.contains { $0.hasPrefix("! not one notification came within a second of the gateway's read") })
      let wrong = try command.run(
        "devices", "--plain", "--gateway", "127.0.0.1:\(gateway.port)", "--seed", "6", "--count", "2", "--until-idle",
        "5s")
      #expect(wrong.status == 76 && wrong.errors.contains("the gateway made errors: 2 wrong_token"), "\(wrong.errors)")
    }
  }

  @Test("A fleet that finds nobody ends with 69 and says why")
  func nobody() throws {
    let port = try ReservedPort()
    try Command.inFolder { command in
      let outcome = try command.run(
        "devices", "--plain", "--gateway", "127.0.0.1:\(port.number)", "--give-up", "300ms")
      #expect(outcome.status == 69)
      #expect(!outcome.output.contains("✓"))
      #expect(outcome.errors.contains("no device was ever online: Connection refused"), "\(outcome.errors)")
    }
  }

  @Test("Results of segments are merged to one of the fleet, and a missing segment is named")
  func merging() throws {
    let gateway = try DeviceGateway(seed: 2)
    defer { gateway.end() }
    try Command.inFolder { command in
      // Of the segments so far: ten devices are four, three and three.
      for (segment, finished) in zip(1...3, [4, 7, 10]) {
        let process = try RunningProcess(
          Command.path,
          arguments(
            gateway, "--count", "10", "--segment", "\(segment)/3", "-o", "part-\(segment).json", "--received",
            "got-\(segment).jsonl"), in: command.folder)
        #expect(waitUntil { gateway.acknowledged.withLock { $0.values.count { $0 == 2 } } == finished })
        process.send(SIGTERM)
        let outcome = try process.end()
        #expect(outcome.status == 0, "\(outcome.errors)")
      }
      let devices = try (1...3).flatMap { try lines("got-\($0).jsonl", in: command) }.compactMap {
        $0["device"] as? Int
      }
      #expect(devices.sorted() == (0..<20).map { $0 / 2 })
      let whole = try command.run("merge", "part-2.json", "part-1.json", "part-3.json", "--output", "fleet.json")
      #expect(whole.status == 0, "\(whole.errors)")
      let merged = try result("fleet.json", in: command)
      #expect(merged.devices.everOnline == 10 && merged.notifications.received == 20 && merged.warnings == [])
      #expect(merged.segment == "1/3,2/3,3/3")
      #expect(try command.run("merge", "part-1.json", "part-2.json").status == 70)
      #expect(try command.run("merge", "part-1.json", "part-2.json", "--allow-missing").status == 0)
      #expect(try command.run("merge", "part-1.json", "part-2.json", "--threshold", "skipped<1").status == 64)
    }
  }

  @Test("Storms and time spans of the command line and of a file are one schedule")
  func schedule() throws {
    try Command.inFolder { command in
      try command.write(Array("# quiet\noffline 20s-40s:50%\n\nstorm 10s:1s # early\n".utf8), "day.txt")
      let outcome = try command.run(
        "devices", "--plain", "--dry-run", "--schedule", "day.txt", "--storm", "5s:2s", "--offline", "1s-2s:1%",
        "--online-for", "5s..10s", "--restore", "2/s", "--count", "10", "--segment", "2/3")
      #expect(outcome.status == 0, "\(outcome.errors)")
      for line in [
        #"storm = ["5s:2s", "10s:1s"]"#, #"offline = ["1s-2s:0.01", "20s-40s:0.5"]"#, #"online_for = "5s..10s""#,
        #"restore = "2.0/s""#, "devices = 3", #"segment = "2/3""#,
      ] {
        #expect(outcome.lines.contains(line), "\(line) is not in \(outcome.output)")
      }
      try command.write(Array("offline 20s-40s:50%\nstorm soon\n".utf8), "wrong.txt")
      let wrong = try command.run("devices", "--plain", "--dry-run", "--schedule", "wrong.txt")
      #expect(wrong.status == 65 && wrong.errors.hasPrefix("apnscope: wrong.txt:2: expected "), "\(wrong.errors)")
      #expect(try command.run("devices", "--plain", "--dry-run", "--schedule", "none.txt").status == 66)
    }
  }

  @Test(
    "Options that exclude each other or make no sense are usage errors",
    arguments: [
      ["--count", "0"], ["--ca", "ca.pem"], ["--no-verify"], ["--offline-for", "5s"], ["--payloads"],
      ["--offline", "40s-20s:50%"], ["--storm", "5s"], ["--restore", "120%"], ["--segment", "4/3"],
      ["--topic", "a", "--topic", "a"], ["--connect-rate", "0"], ["--gateway", "192.0.2.1:2198", "--for", "1s"],
      ["--storm", "5s:1s", "--storm", "5s:1s"],
    ])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try command.run(["devices", "--plain"] + arguments)
      #expect(outcome.status == 64 && outcome.output == "", "\(outcome.errors)")
    }
  }
}
