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
      #expect(waitUntil { (try? command.read(ready).contains("local-push-control 127.0.0.1:")) == true })
      self.address =
        try command.read(ready).split(separator: "\n").first { $0.hasPrefix("local-push 127") }
        .map { String($0.dropFirst("local-push ".count)) } ?? ""
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
      let many = (0...64).flatMap { ["--local-push", "\($0)=127.0.0.1:0"] }
      let cases: [(arguments: [String], words: String)] = [
        (["simulate", "--plain", "--local-push-rate", "5/s"], "need --local-push"),
        (
          ["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-calls", "5%"], "needs --local-push-rate"
        ),
        (["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-silence", "5%"], "30s:50%"),
        (["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push-restart", "5"], "30s:5s"),
        (["devices", "--plain", "--network", "ship"], "needs --local-push"),
        (["devices", "--pin", "12ab"], "64 hexadecimal digits"),
        (["devices", "--plain", "--pin", String(repeating: "a", count: 64)], "--pin takes the place"),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--network", "a,at=b:c"], "at=127.0.0.1:2199"),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--storm", "5s:1s,network=a"], "do not join"),
        (["devices", "--plain", "--storm", "5s:1s,network=a"], "do not join"),
        (["simulate", "--plain", "--local-push", "=127.0.0.1:0"], "NAME=HOST:PORT"),
        (["simulate", "--plain", "--local-push", "\(String(repeating: "a", count: 33))=127.0.0.1:0"], "32 bytes"),
        (["simulate", "--plain", "--local-push", "a=127.0.0.1:0", "--local-push", "a=127.0.0.1:0"], "twice"),
        (["simulate", "--plain", "--local-push", "127.0.0.1:0", "--local-push", "127.0.0.1:0"], "without a name"),
        (["simulate", "--plain"] + many, "64 networks"),
        (
          ["simulate", "--plain", "--local-push", "a=127.0.0.1:0", "--local-push-restart", "5s:1s,network=b"],
          "the network 'b'"
        ),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--received", "r"], "--received"),
        (["devices", "--plain", "--local-push", "127.0.0.1:1", "--restore", "1%"], "restored"),
        (
          [
            "devices", "--plain", "--local-push", "127.0.0.1:1", "--network", "a,share=60%", "--network", "b,share=50%",
          ],
          "shares"
        ),
      ]
      for (arguments, words) in cases {
        let outcome = try command.run(arguments)
        #expect(outcome.status == 64 && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
      }
      try command.write(Array("{\"at_s\": 1, \"kind\": \"text\", \"to\": 1}\n{\"at_s\": 1}\n".utf8), "m")
      let line = [
        "simulate", "--plain", "--gateway", "127.0.0.1:0", "--no-feedback", "--local-push", "ship=127.0.0.1:0",
        "--local-push-messages", "m",
      ]
      var outcome = try command.run(line)
      #expect(outcome.status == 65 && outcome.errors.contains("m:2: expected an object"), "\(outcome.errors)")
      try command.write(
        Array(
          #"{"at_s": 1, "kind": "text", "network": "ship"}\#n{"at_s": 1, "kind": "text", "network": "Ship"}\#n"#.utf8),
        "m")
      outcome = try command.run(line)
      #expect(outcome.status == 65 && outcome.errors.contains("m:2: no --local-push has"), "\(outcome.errors)")
    }
  }

  @Test("Over the control endpoint messages are sent, and faults done")
  func control() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--local-push", "127.0.0.1:0"], in: command)
      let place = try #require(gateway.places.first { $0.hasPrefix("local-push ") }?.dropFirst("local-push ".count))
      let state = try gateway.get("/local-push").object()
      let networks = state["networks"] as? [[String: Any]]
      #expect(networks?.count == 1 && networks?.first?["address"] as? String == String(place))
      #expect(networks?.first?["name"] as? String == "" && state["lost_heartbeats"] as? Double == 0)
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
        #"{"kind":"invite","to":10,"text":"a"}"#, #"{"kind":"call_action","to":10}"#, #"{"kind":"invite"}"#,
        #"{"kind":"invite","to":10,"network":""}"#, #"{"kind":"invite","network":7}"#,
      ] {
        #expect(try gateway.ask("POST", "/local-push/messages", body).status == 400, "\(body)")
      }
      #expect(try gateway.ask("POST", "/local-push/heartbeats", #"{"share":0.5}"#).status == 204)
      #expect(try gateway.get("/local-push").object()["lost_heartbeats"] as? Double == 0.5)
      func acknowledged() throws -> Int {
        let push = try gateway.get("/counts").object()["local_push"] as? [String: Any]
        return ["texts", "invitations"].reduce(0) {
          $0 + ((push?[$1] as? [String: Any])?["acknowledged"] as? Int ?? 0)
        }
      }
      #expect(waitUntil { (try? acknowledged()) == 2 || !fleet.isRunning })
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

  @Test(
    "A pinned key takes the place of an authority, and a server of another key is refused", arguments: [true, false])
  func pinned(isRight: Bool) throws {
    try SimulatorProcess.inFolder { command in
      let server = try Server(in: command)
      let digest = try RunningProcess(
        "bash",
        [
          "-c",
          "openssl x509 -in ids/\(isRight ? "gateway" : "ca").pem -pubkey -noout | openssl pkey -pubin -outform der | sha256sum",
        ], in: command.folder)
      let pin = String(try digest.end().output.prefix(64))
      let fleet = try fleet(
        server,
        ["--count", "3", "--pin", isRight ? pin.uppercased() : pin, "--give-up", "2s"]
          + (isRight ? [] : ["--for", "1m"]),
        in: command)
      if isRight {
        #expect(waitUntil { server.process.metric("apnscope_local_push_here") == 3 || !fleet.isRunning })
        fleet.send(SIGTERM)
        #expect(try fleet.end().status == 0)
        #expect(try result(in: command).plan["pin"] == .text(pin))
      } else {
        let outcome = try fleet.end()
        #expect(outcome.status == 69 && outcome.errors.contains("not the pinned one"), "\(outcome.errors)")
      }
      let books = try #require(try server.process.stop().localPush)
      #expect(books.registered == (isRight ? ["notification": 3] : [:]))
    }
  }

  @Test("Networks have addresses of their own, and books that both sides agree on")
  func networks() throws {
    try SimulatorProcess.inFolder { command in
      try command.write(
        Array(
          (#"{"at_s": 0.001, "kind": "text", "network": "ship", "text": "for nobody"}"# + "\n").utf8), "messages.jsonl")
      let gateway = try ControlledGateway(
        [
          "--local-push", "ship=127.0.0.1:0", "--local-push", "crew wifi=127.0.0.1:0", "--local-push-messages",
          "messages.jsonl", "--ledger", "ledger.json", "--metrics", "127.0.0.1:0", "--local-push-heartbeat", "10m",
        ], in: command)
      let addresses = try ["ship", "crew wifi"].map { name in
        try #require(gateway.places.first { $0.hasPrefix("local-push/\(name) 127") }?.split(separator: " ").last)
      }
      let fleet = try RunningProcess(
        Command.path,
        [
          "devices", "--plain", "--local-push", "127.0.0.1:1", "--count", "12", "--backoff", "20ms", "--output",
          "fleet.json", "--network", "ship,share=50%,at=\(addresses[0])", "--network",
          "crew wifi,at=\(addresses[1]),share=0.5",
        ], in: command.folder)
      func states() throws -> [[String: Any]] {
        try #require(try gateway.get("/local-push").object()["networks"] as? [[String: Any]])
      }
      func here() throws -> [Int] { try states().compactMap { $0["here"] as? Int } }
      #expect(waitUntil { (try? here().reduce(0, +)) == 12 || !fleet.isRunning })
      let (ship, crew) = (try here()[0], try here()[1])
      let names = try states().map { $0["name"] as? String }
      #expect(ship > 0 && crew > 0 && names == ["ship", "crew wifi"])
      let users = try gateway.get("/local-push/users?network=crew%20wifi").object()
      let listed = try #require(users["users"] as? [[String: String]])
      #expect(
        listed.count == crew && users["count"] as? Int == crew && listed.allSatisfy { $0["network"] == "crew wifi" })
      #expect(try gateway.get("/local-push/users").object()["count"] as? Int == 12)
      #expect(try gateway.get("/local-push/users?network=Ship").status == 409)
      let sent = try gateway.ask("POST", "/local-push/messages", #"{"kind":"text","network":"ship","text":"Hello"}"#)
      #expect(try sent.object()["receivers"] as? Int == ship && sent.object()["sent"] as? Int == ship)
      #expect(try gateway.ask("POST", "/local-push/messages", #"{"kind":"invite","network":"Ship"}"#).status == 409)
      func books() throws -> [String: Any] {
        try #require(try gateway.get("/counts").object()["local_push"] as? [String: Any])
      }
      func count(_ network: String, _ path: String...) throws -> Int? {
        var value: Any? = (try books()["networks"] as? [String: Any])?[network]
        for name in path { value = (value as? [String: Any])?[name] }
        return value as? Int
      }
      #expect(waitUntil { (try? count("ship", "texts", "acknowledged")) == ship || !fleet.isRunning })
      #expect(try count("ship", "texts", "absent") == 1 && count("crew wifi", "texts", "offered") == 0)
      #expect(try gateway.ask("POST", "/local-push/restart", #"{"pause_s":1,"network":"Ship"}"#).status == 409)
      #expect(
        try gateway.ask("POST", "/local-push/restart", #"{"pause_s":0.05,"network":"ship"}"#).status == 204)
      #expect(
        waitUntil {
          ((try? count("ship", "registered")) == 2 * ship && (try? count("ship", "here")) == ship) || !fleet.isRunning
        })
      #expect(try count("crew wifi", "registered") == crew && count("crew wifi", "restarts") == 0)
      let nobody = try gateway.ask("POST", "/local-push/messages", #"{"kind":"invite","network":"crew wifi"}"#)
      #expect(try nobody.object()["sent"] as? Int == crew)
      #expect(waitUntil { (try? count("crew wifi", "invitations", "acknowledged")) == crew || !fleet.isRunning })
      fleet.send(SIGTERM)
      #expect(try fleet.end().status == 0)
      let output = try gateway.stop().output
      #expect(output.contains("network        crew wifi: \(crew) registered"), "\(output)")
      try expectValid(file: "ledger.json", .ledger, in: command)
      let result = try result(in: command)
      let push = try #require(result.localPush)
      #expect(push.networks["ship"]?.texts == ship && push.networks["ship"]?.registered == 2 * ship)
      #expect(push.networks["crew wifi"]?.invitations == crew && push.joins == ["ship": ship, "crew wifi": crew])
      for invariant in result.invariants { #expect(invariant.holds, "\(invariant.name)") }
      let made = try command.run("report", "fleet.json", "--ledger", "ledger.json", "--output", "page")
      #expect(made.status == 0, "\(made.errors)")
      let page = try command.read("page/report.md")
      #expect(page.contains("The books of both sides agree."), "\(page)")
      #expect(page.contains("crew wifi | 0 | 0 | \(crew) | \(crew)"), "\(page)")
    }
  }
}
