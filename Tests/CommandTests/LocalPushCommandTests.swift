import Foundation
import Measurement
import TestSupport
import Testing

/// `simulate --local-push` and `devices --local-push` as processes: each counts for itself, and the books agree.
@Suite("Books of local push", .waiting)
struct LocalPushCommandTests {
  /// A simulator with both channels of local push, on ports that it says.
  private struct Server {
    let process: SimulatorProcess
    let address: String

    init(
      _ options: [String] = [], at address: String = "127.0.0.1:0", name: String = "simulator", in command: Command
    ) throws {
      let ready = "\(name).ready"
      process = try SimulatorProcess(
        [
          "--local-push", address, "--local-push-control", "127.0.0.1:0", "--ready-file", ready, "--no-feedback",
          "--metrics", "127.0.0.1:0",
        ] + options, in: command, name: name)
      #expect(waitUntil { (try? command.read(ready).contains("local push control 127.0.0.1:")) == true })
      self.address =
        try command.read(ready).split(separator: "\n").first { $0.hasPrefix("local push 127") }
        .map { String($0.dropFirst("local push ".count)) } ?? ""
    }
  }

  private func fleet(_ server: Server, _ options: [String], in command: Command) throws -> RunningProcess {
    try RunningProcess(
      Command.path,
      ["devices", "--local-push", server.address, "--seed", "7", "--output", "fleet.json", "--backoff", "50ms"]
        + options, in: command.folder)
  }

  private func result(in command: Command) throws -> FleetResult {
    try expectValid(file: "fleet.json", .fleet, in: command)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(FleetResult.self, from: Data(contentsOf: command.folder.appending(path: "fleet.json")))
  }

  private func expectBalance(_ books: Ledger.LocalPush) {
    for (name, requests) in books.kinds {
      #expect(requests.offered == requests.outcomes.reduce(0) { $0 + $1.count }, "\(name)")
    }
    #expect(
      books.sources.values.reduce(0, +)
        == books.texts.offered + books.invitations.offered + books.callActions.offered)
  }

  @Test("Over TLS and without, the server's books and those of the fleet are equal", arguments: [true, false])
  func books(tls: Bool) throws {
    try SimulatorProcess.inFolder { command in
      let lines = (0..<12).map { #"{"at_s": 0, "kind": "text", "to": \#($0 + 500), "text": "Message \#($0)"}"# }
      try command.write(Array(lines.joined(separator: "\n").utf8), "messages.jsonl")
      let server = try Server(
        (tls ? [] : ["--plain"])
          + ["--local-push-messages", "messages.jsonl", "--local-push-rate", "200/s", "--local-push-calls", "30%"],
        in: command)
      let fleet = try fleet(
        server, ["--count", "5", "--network", "ship"] + (tls ? ["--ca", "ids/ca.pem"] : ["--plain"]), in: command)
      #expect(waitUntil { acknowledged(server) > 100 || !fleet.isRunning })
      // The server sends nothing more, and waits for what is not acknowledged.
      let ledger = try server.process.stop()
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let books = try #require(ledger.localPush)
      expectBalance(books)
      let result = try result(in: command)
      #expect(books.sources["file"] == 12 && (books.sources["rate"] ?? 0) > 100 && books.texts.absent >= 12)
      #expect(books.texts.lost == 0 && books.invitations.lost == 0 && books.texts.timedOut == 0)
      #expect(result.localPush?.texts == books.texts.acknowledged && books.texts.acknowledged > 0)
      #expect(result.localPush?.invitations == books.invitations.acknowledged && books.invitations.acknowledged > 0)
      #expect(result.faults == [:] && result.localPush?.joins == ["ship": 5] && result.localPush?.untimed == 0)
      #expect(result.latency.onlineUs.count == result.notifications.received)
      #expect(result.plan["local_push"] == .text(server.address) && result.plan["gateway"] == nil)
    }
  }

  /// Texts and invitations that were acknowledged, from the page of metrics.
  private func acknowledged(_ server: Server) -> Int {
    server.process.page().split(whereSeparator: \.isNewline).filter {
      $0.hasPrefix("apnscope_local_push_requests_total") && $0.contains(#"outcome="acknowledged""#)
        && ($0.contains(#"kind="text""#) || $0.contains(#"kind="invite""#))
    }.compactMap { Int($0.split(separator: " ").last ?? "") }.reduce(0, +)
  }

  @Test("The server is killed and comes back: the fleet does, too, and is served")
  func killed() throws {
    try SimulatorProcess.inFolder { command in
      let options = ["--plain", "--local-push-rate", "200/s", "--local-push-calls", "50%"]
      let server = try Server(options, in: command)
      let fleet = try fleet(server, ["--plain", "--count", "30"], in: command)
      #expect(waitUntil { server.process.metric("apnscope_local_push_here") == 30 || !fleet.isRunning })
      try server.process.kill()
      let again = try Server(options, at: server.address, name: "again", in: command)
      #expect(waitUntil { again.process.metric("apnscope_local_push_here") == 30 || !fleet.isRunning })
      let ledger = try again.process.stop()
      let books = try #require(ledger.localPush)
      expectBalance(books)
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let result = try result(in: command)
      #expect(result.devices.everOnline == 30 && (result.localPush?.registered ?? 0) >= 60)
      #expect(result.notifications.received >= books.texts.acknowledged + books.invitations.acknowledged)
      #expect(result.faults == [:])
      for invariant in result.invariants { #expect(invariant.holds, "\(invariant.name)") }
    }
  }

  @Test("Wrong options are named")
  func usage() throws {
    try Command.inFolder { command in
      for (arguments, words) in [
        (["simulate", "--plain", "--local-push-rate", "5/s"], "need --local-push"),
        (
          ["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-calls", "5%"], "needs --local-push-rate"
        ),
        (["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-silence", "5%"], "30s:50%"),
        (["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-restart", "5"], "30s:5s"),
        (["devices", "--plain", "--network", "ship"], "needs --local-push"),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--received", "r"], "--received"),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--restore", "1%"], "restored"),
        (
          [
            "devices", "--plain", "--local-push", "127.0.0.1:1", "--network", "a,share=60%", "--network", "b,share=50%",
          ],
          "shares"
        ),
      ] {
        let outcome = try command.run(arguments)
        #expect(outcome.status == 64 && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
      }
      try command.write(Array("{\"at_s\": 1, \"kind\": \"text\", \"to\": 1}\n{\"at_s\": 1}\n".utf8), "m")
      let outcome = try command.run(
        "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--local-push", "127.0.0.1:0",
        "--local-push-messages", "m")
      #expect(outcome.status == 65 && outcome.errors.contains("m:2: expected an object"), "\(outcome.errors)")
    }
  }

  @Test("Over the control endpoint messages are sent, and faults done")
  func control() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--local-push", "127.0.0.1:0"], in: command)
      let place = try #require(gateway.places.first { $0.hasPrefix("local push ") }?.dropFirst("local push ".count))
      let state = try gateway.get("/local-push").object()
      #expect(state["notification"] as? String == String(place) && state["lost_heartbeats"] as? Double == 0)
      let fleet = try RunningProcess(
        Command.path,
        ["devices", "--plain", "--local-push", String(place), "--count", "2", "--first", "10", "--backoff", "20ms"]
          + ["--output", "fleet.json"], in: command.folder)
      func here() throws -> Int? {
        (try gateway.get("/counts").object()["local_push"] as? [String: Any])?["here"] as? Int
      }
      #expect(waitUntil { (try? here()) == 2 || !fleet.isRunning })
      for (body, outcome) in [
        (#"{"kind":"text","to":10,"text":"Hello"}"#, "sent"), (#"{"kind":"invite","to":11,"from":10}"#, "sent"),
        (#"{"kind":"text","to":12,"text":""}"#, "absent"),
        (#"{"kind":"call_action","to":"nobody","action":"end"}"#, "absent"),
      ] {
        let answer = try gateway.ask("POST", "/local-push/messages", body)
        #expect(try answer.status == 200 && answer.object()["outcome"] as? String == outcome, "\(body)")
      }
      for body in [
        "{}", #"{"kind":"text","to":10}x"#, #"{"kind":"other","to":10}"#, #"{"kind":"text","to":-1,"text":""}"#,
        #"{"kind":"invite","to":10,"text":"a"}"#, #"{"kind":"call_action","to":10}"#,
      ] {
        #expect(try gateway.ask("POST", "/local-push/messages", body).status == 400, "\(body)")
      }
      #expect(try gateway.ask("POST", "/local-push/heartbeats", #"{"share":0.5}"#).status == 204)
      #expect(try gateway.get("/local-push").object()["lost_heartbeats"] as? Double == 0.5)
      #expect(try gateway.ask("POST", "/local-push/restart", #"{"pause_s":0.05}"#).status == 204)
      func registered() throws -> Int? {
        ((try gateway.get("/counts").object()["local_push"] as? [String: Any])?["registered"] as? [String: Int])?[
          "notification"]
      }
      #expect(waitUntil { (try? registered()) == 4 || !fleet.isRunning })
      #expect(try gateway.ask("POST", "/local-push/silence", #"{"share":1}"#).status == 204)
      let answer = try gateway.ask("POST", "/local-push/messages", #"{"kind":"invite","to":11}"#)
      #expect(try answer.object()["outcome"] as? String == "silenced")
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let result = try result(in: command)
      #expect(result.localPush?.texts == 1 && result.localPush?.invitations == 1)
      _ = try gateway.stop()
      let without = try ControlledGateway(in: command)
      #expect(try without.get("/local-push").status == 409)
      _ = try without.stop()
    }
  }
}
