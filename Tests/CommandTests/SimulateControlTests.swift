import Foundation
import OutputSchema
import TestSupport
import Testing

/// `--control`: what a test asks of a gateway that runs, and changes.
@Suite("simulate: the control endpoint", .waiting)
struct SimulateControlTests {
  private static func hex(_ number: UInt32) -> String {
    Frames.token(number).map { String(format: "%02x", $0) }.joined()
  }

  // MARK: where it is

  @Test("Standard output and the ready file say where the endpoint is, and the endpoint where the gateway is")
  func places() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      #expect(
        gateway.places == ["gateway 127.0.0.1:\(gateway.gateway)", "control http://127.0.0.1:\(gateway.control)"])
      for place in gateway.places { #expect(gateway.output.contains(place + "\n")) }
      let service = try gateway.get("/").object()
      #expect(service["gateway"] as? String == "127.0.0.1:\(gateway.gateway)" && service["feedback"] == nil)
      #expect(service["version"] is String)
      _ = try gateway.stop()
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "ready").path))
    }
  }

  @Test("An address that others can reach needs --allow-remote")
  func loopback() throws {
    try Command.inFolder { command in
      let outcome = try command.run(
        "simulate", "--plain", "--no-feedback", "--gateway", "127.0.0.1:0", "--control", "0.0.0.0:0")
      #expect(outcome.status == 69)
      #expect(
        outcome.errors.contains("cannot listen at 0.0.0.0:0: not an address of this machine alone; --allow-remote"),
        "\(outcome.errors)")
      #expect(!outcome.output.contains("gateway 127.0.0.1"))

      let gateway = try ControlledGateway(["--control", "0.0.0.0:0", "--allow-remote"], in: command)
      // Any name may be that of this machine.
      #expect(try gateway.ask("GET", "/", fields: ["Host: gateway.test:9103"]).status == 200)
      #expect(try gateway.ask("GET", "/", fields: ["Host: gateway.test", "Origin: http://gateway.test"]).status == 403)
      _ = try gateway.stop()
    }
  }

  // MARK: what arrived

  @Test("Notifications are listed with the gateway's decisions, and selected by token, topic, text, fate and number")
  func list() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--reject", "prefix=00000003"], in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send(
        Frames.framed(1, payload: #"{"aps":{"alert":"Gr\u00fc\u00dfe"}}"#)
          + Frames.framed(2, payload: #"{"aps":{"alert":"two"},"url":"a\/b"}"#, expiration: nil, priority: nil)
          + Frames.framed(3) + Frames.framed(4))
      #expect(try client.receive() == Frames.response(8, 3))
      #expect(try gateway.wait(4).identifiers() == [1, 2, 3, 4])

      let all = try gateway.get("/notifications").object()
      #expect(all["last"] as? Int == 4 && all["more"] as? Bool == false && all["forgotten"] as? Int == 0)
      let listed = try gateway.get("/notifications").notifications()
      #expect(listed.map { $0["fate"] as? String } == ["accepted", "accepted", "rejected", "discarded"])
      #expect(listed.map { $0["status"] as? Int } == [nil, nil, 8, nil])
      #expect(listed.map { $0["number"] as? Int } == [1, 2, 3, 4])
      #expect(listed.allSatisfy { $0["topic"] as? String == ControlledGateway.topic && $0["connection"] as? Int == 1 })
      #expect(listed[0]["token"] as? String == Self.hex(1))
      #expect((listed[0]["payload"] as? [String: [String: String]])?["aps"]?["alert"] == "Grüße")
      #expect(listed[0]["priority"] as? Int == 10 && listed[0]["expiration"] as? Int == 0x7fff_ffff)
      #expect(listed[1]["priority"] == nil && listed[1]["expiration"] == nil)

      for (query, identifiers) in [
        ("token=00000002", [2]), ("token=\(Self.hex(4).uppercased())", [4]), ("token=0000000", [1, 2, 3, 4]),
        ("topic=\(ControlledGateway.topic)", [1, 2, 3, 4]), ("topic=com.example", []),
        ("text=Gr%C3%BC%C3%9Fe", [1]), ("text=a/b", [2]), ("text=Hello", [3, 4]), ("text=aps2", []),
        ("fate=accepted", [1, 2]), ("fate=rejected", [3]), ("fate=discarded", [4]),
        ("since=2", [3, 4]), ("since=4", []), ("text=Hello&fate=discarded", [4]), ("limit=2", [1, 2]),
      ] as [(String, [Int])] {
        #expect(try gateway.get("/notifications?\(query)").identifiers() == identifiers, "\(query)")
      }
      let cut = try gateway.get("/notifications?limit=2&since=1").object()
      #expect(cut["more"] as? Bool == true && cut["last"] as? Int == 3)
      _ = try gateway.stop()
    }
  }

  @Test("Notifications of the older commands are listed with all that they have, and found by it")
  func olderCommands() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let client = try PlainClient(gateway.gateway)
      let payload = Array(#"{"aps":{"alert":"Hello"}}"#.utf8)
      let rest = [0, 32] + Frames.token(7) + [0, UInt8(payload.count)] + payload
      try client.send([0] + rest + [1, 0, 0, 0, 5, 0, 0, 0, 9] + rest)
      // An identifier whose item is longer than the frame, as some clients write it: what comes before it is there.
      var cut = Frames.framed(7)
      cut[cut.count - 16] = 200
      try client.send(cut)
      let listed = try gateway.wait(3, "&token=\(Self.hex(7))&text=Hello").notifications()
      #expect(listed.map { $0["identifier"] as? Int } == [nil, 5, nil])
      #expect(listed.map { $0["expiration"] as? Int } == [nil, 9, nil])
      #expect(listed.map { $0["fate"] as? String } == ["accepted", "accepted", "rejected"])
      for notification in listed {
        #expect((notification["payload"] as? [String: [String: String]])?["aps"]?["alert"] == "Hello")
        #expect(notification["payload_length"] as? Int == payload.count)
      }
      _ = try gateway.stop()
    }
  }

  @Test("A question waits for notifications that come later, and is a problem when they do not")
  func wait() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let question = try gateway.begin("GET", "/notifications/wait?count=2&token=00000007&within_s=120")
      let client = try PlainClient(gateway.gateway)
      try client.send(Frames.framed(7) + Frames.framed(8))
      #expect(try gateway.wait(2).identifiers() == [7, 8])
      // One of two: the other notification is for another token.
      #expect(!question.isAnswered)
      try client.send(Frames.framed(7))
      #expect(try question.answer().identifiers() == [7, 7])

      let late = try gateway.get("/notifications/wait?count=3&token=00000007&within_s=0.1")
      let problem = try late.object()
      #expect(late.status == 408 && problem["wanted"] as? Int == 3 && problem["received"] as? Int == 2)
      #expect(problem["detail"] as? String == "2 of 3 notifications came in time")
      #expect(try gateway.get("/notifications/wait?count=3&within_s=0").identifiers() == [7, 8, 7])
      _ = try gateway.stop()
    }
  }

  @Test("An answer has so many notifications as fit into it, and the next question gets the others")
  func longAnswers() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let client = try PlainClient(gateway.gateway)
      let payload = #"{"aps":{"alert":"\#(String(repeating: "x", count: 1_900))"}}"#
      let count = 3_000
      for number in 1...UInt32(count) { try client.send(Frames.framed(number, payload: payload)) }
      var answer = try gateway.wait(count)
      #expect(answer.body.count < 6 << 20)
      var found: [Int?] = []
      for _ in 0..<3 {
        let object = try answer.object()
        found += try answer.identifiers()
        guard object["more"] as? Bool == true, let last = object["last"] as? Int else { break }
        #expect(found.count < count && last == found.count)
        answer = try gateway.get("/notifications?limit=10000&since=\(last)")
      }
      #expect(found == Array(1...count))
      _ = try gateway.stop()
    }
  }

  @Test("Above --max-history the oldest notifications are forgotten, and the answers and the verdict say how many")
  func forgotten() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--max-history", "1MiB"], in: command)
      let client = try PlainClient(gateway.gateway)
      let payload = #"{"aps":{"alert":"\#(String(repeating: "x", count: 500))"}}"#
      for first in stride(from: UInt32(1), through: 5_000, by: 100) {
        try client.send((first..<first + 100).flatMap { Frames.framed($0, payload: payload) })
      }
      #expect(waitUntil { (try? gateway.get("/counts").number("gateway", "received")) == 5_000 })
      let object = try gateway.get("/notifications?limit=10000").object()
      let listed = try gateway.get("/notifications?limit=10000").identifiers()
      let forgotten = try #require(object["forgotten"] as? Int)
      #expect(forgotten > 2_000 && forgotten + listed.count == 5_000 && listed.last == 5_000)
      #expect(try gateway.get("/verdict").number("not_observed") == forgotten)
      _ = try gateway.stop()
    }
  }

  @Test("Counts are those of a ledger, and the verdict tells what was lost after an error")
  func books() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--reject", "prefix=00000002", "--ledger", "sim.json"], in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send((1...5).flatMap { Frames.framed($0) })
      #expect(try client.receive() == Frames.response(8, 2))
      client.close()
      _ = try gateway.wait(5)
      let answer = try gateway.get("/counts")
      expectValid(answer.body, .ledger, "counts")
      #expect(try answer.number("gateway", "accepted") == 1 && answer.number("gateway", "discarded") == 3)
      let verdict = try gateway.get("/verdict")
      #expect(try verdict.number("sendings") == 5 && verdict.number("discarded") == 3)
      #expect(try verdict.number("not_sent_again") == 3 && verdict.number("not_observed") == 0)
      // They may be sent again yet.
      #expect(try verdict.number("stories", "lost") == 0 && verdict.number("stories", "open") == 3)
      let errors = try #require(try verdict.object()["errors"] as? [[String: Any]])
      #expect(errors.count == 1)
      _ = try gateway.stop()
      try expectValid(file: "sim.json", .ledger, in: command)
    }
  }

  // MARK: faults

  @Test("The next notifications of a token are rejected, also on a connection that is open already")
  func rejection() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send(Frames.framed(1))
      _ = try gateway.wait(1)
      let added = try gateway.ask("POST", "/faults/rejections", #"{"token":"\#(Self.hex(1))","status":7,"times":2}"#)
      #expect(added.status == 201)
      let rules = try #require(try added.object()["reject"] as? [[String: Any]])
      #expect(rules.count == 1 && rules[0]["left"] as? Int == 2 && rules[0]["status"] as? Int == 7)

      try client.send(Frames.framed(2) + Frames.framed(1))
      #expect(try client.receive() == Frames.response(7, 1))
      let second = try PlainClient(gateway.gateway)
      try second.send(Frames.framed(1))
      #expect(try second.receive() == Frames.response(7, 1))
      let third = try PlainClient(gateway.gateway)
      try third.send(Frames.framed(1))
      let fates = try gateway.wait(5).notifications().map { $0["fate"] as? String }
      #expect(fates == ["accepted", "accepted", "rejected", "rejected", "accepted"])
      let left = try #require(try gateway.get("/faults").object()["reject"] as? [[String: Any]])
      #expect(left.map { $0["left"] as? Int } == [0])
      _ = try gateway.stop()
    }
  }

  @Test("A silent gateway neither reads nor answers until the silence is over or ended")
  func silence() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--reject", "prefix=00000002"], in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send(Frames.framed(1))
      _ = try gateway.wait(1)
      try gateway.change("POST", "/faults/silence", #"{"for_s":3600}"#)
      try client.send(Frames.framed(2))
      let second = try PlainClient(gateway.gateway)
      try second.send(Frames.framed(3))
      #expect(try gateway.get("/notifications/wait?count=2&within_s=0.3").status == 408)
      #expect(!client.isReadable)
      try gateway.change("POST", "/faults/silence", #"{"for_s":0}"#)
      #expect(try client.receive() == Frames.response(8, 2))
      #expect(Set(try gateway.wait(3).identifiers()) == [1, 2, 3])
      let began = ContinuousClock.now
      try gateway.change("POST", "/faults/silence", #"{"for_s":0.4}"#)
      try second.send(Frames.framed(4))
      #expect(try gateway.wait(4).identifiers().last == 4)
      #expect(ContinuousClock.now - began >= .milliseconds(390))
      _ = try gateway.stop()
    }
  }

  @Test("All connections close as the test says, and new ones are accepted", arguments: ["shutdown", "fin", "rst"])
  func closing(how: String) throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let clients = try [PlainClient(gateway.gateway), PlainClient(gateway.gateway)]
      for (number, client) in clients.enumerated() { try client.send(Frames.framed(UInt32(number) + 1)) }
      _ = try gateway.wait(2)
      try gateway.change("POST", "/connections/close", #"{"how":"\#(how)","topic":"com.example.other"}"#)
      #expect(clients.allSatisfy { !$0.isReadable })
      try gateway.change("POST", "/connections/close", #"{"how":"\#(how)"}"#)
      for (number, client) in clients.enumerated() {
        switch how {
        case "shutdown": #expect(try client.receive() == Frames.response(10, UInt32(number) + 1))
        case "fin": #expect(try client.receive() == [])
        default: #expect(throws: TimeoutError.self) { try client.receive() }
        }
      }
      let next = try PlainClient(gateway.gateway)
      try next.send(Frames.framed(3))
      #expect(try gateway.wait(3).identifiers().last == 3)
      _ = try gateway.stop()
    }
  }

  @Test("An open connection is read as slowly as the test says, and fast again with null")
  func readRate() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send(Frames.framed(1))
      _ = try gateway.wait(1)
      let rate = 20_000
      try gateway.change("PATCH", "/faults", #"{"read_rate":\#(rate)}"#)
      let frames = (2...201).flatMap { Frames.framed($0) }
      let began = ContinuousClock.now
      try client.send(frames)
      #expect(try gateway.wait(201).identifiers().count == 201)
      // The bucket is full when the rate changes, and one read may be under way already.
      let least = Duration.seconds(Double(frames.count - 4_096) / Double(rate))
      #expect(ContinuousClock.now - began >= least, "\(frames.count) bytes")
      try gateway.change("PATCH", "/faults", #"{"read_rate":1}"#)
      #expect(try gateway.get("/faults").number("read_rate") == 1)
      try client.send(frames)
      try gateway.change("PATCH", "/faults", #"{"read_rate":null}"#)
      _ = try gateway.wait(401)
      #expect(try gateway.get("/faults").object()["read_rate"] is NSNull)
      _ = try gateway.stop()
    }
  }

  @Test("Each fault has the name of the option that it begins with, and a unit behind it")
  func names() throws {
    try Command.inFolder { command in
      let options = Set(try command.run("simulate", "--help").output.matches(of: #/--([a-z0-9-]+)/#).map { $0.1 })
      let gateway = try ControlledGateway(in: command)
      let names = try gateway.get("/faults").object().keys
      #expect(names.count > 15)
      for name in names {
        let option = name.replacing(#/(_(min|max))?_s$/#, with: "").replacing("_", with: "-")
        #expect(options.contains(option[...]), "\(name)")
      }
      _ = try gateway.stop()
    }
  }

  // MARK: devices

  @Test("Devices change while a connection is open, and are what they were when the change is undone")
  func devices() throws {
    try Command.inFolder { command in
      try command.write(Array("\(Self.hex(1))\n\(Self.hex(3)) offline\n".utf8), "devices")
      let gateway = try ControlledGateway(["--devices-file", "devices"], in: command)
      let client = try PlainClient(gateway.gateway)
      let topic = "topic=\(ControlledGateway.topic)"
      func state(_ number: UInt32) throws -> String? {
        try gateway.get("/devices/\(Self.hex(number))?\(topic)").object()["state"] as? String
      }
      #expect(try state(1) == "active" && state(3) == "offline")
      try gateway.change("PUT", "/devices/\(Self.hex(1))", #"{"state":"uninstalled"}"#)
      #expect(try state(1) == "uninstalled")
      let list = try gateway.get("/devices").object()
      #expect(
        (list["devices"] as? [[String: String]])?.map { $0["state"] } == ["uninstalled", "offline"]
          && list["more"] as? Bool == false)
      let after = try gateway.get("/devices?limit=1&after=\(Self.hex(1))").object()
      #expect((after["devices"] as? [[String: String]])?.map { $0["token"] } == [Self.hex(3)])

      try client.send(Frames.framed(1) + Frames.framed(3))
      _ = try gateway.wait(2)
      let counts = try gateway.get("/counts")
      #expect(try counts.number("devices", "uninstalled") == 1 && counts.number("devices", "stored") == 1)
      try gateway.change("POST", "/devices/online")
      #expect(waitUntil { (try? gateway.get("/counts").number("devices", "delivered")) == 1 })
      #expect(try state(3) == "offline")

      try gateway.change("DELETE", "/devices/\(Self.hex(1))")
      #expect(try state(1) == "active")
      try gateway.change(
        "POST", "/devices",
        #"{"devices":[{"token":"\#(Self.hex(1))","state":"unknown"},{"token":"\#(Self.hex(3))","state":"active"}]}"#)
      #expect(try state(1) == "unknown" && state(3) == "active")
      try client.send(Frames.framed(3) + Frames.framed(1))
      #expect(try client.receive() == Frames.response(8, 1))
      #expect(try gateway.get("/counts").number("devices", "delivered") == 2)
      _ = try gateway.stop()
    }
  }

  // MARK: reset

  @Test("A reset begins anew on connections that stay open, and the ledger at the end has all")
  func reset() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(["--reject", "prefix=00000009", "--ledger", "sim.json"], in: command)
      let client = try PlainClient(gateway.gateway)
      try client.send(Frames.framed(1) + Frames.framed(2))
      _ = try gateway.wait(2)
      try gateway.change("PATCH", "/faults", #"{"reject":[],"response_ending":"rst"}"#)
      try gateway.change("PUT", "/devices/\(Self.hex(3))", #"{"state":"uninstalled"}"#)

      try gateway.change("POST", "/reset")
      #expect(try gateway.get("/notifications").identifiers() == [])
      #expect(try gateway.get("/notifications").number("forgotten") == 0)
      #expect(try gateway.get("/counts").number("gateway", "received") == 0)
      let verdict = try gateway.get("/verdict")
      #expect(try verdict.number("sendings") == 0 && verdict.number("not_observed") ?? 0 == 0)
      #expect(try gateway.get("/devices").object()["devices"] as? [[String: String]] == [])
      let faults = try gateway.get("/faults").object()
      #expect(faults["response_ending"] as? String == "response")
      #expect((faults["reject"] as? [[String: Any]])?.map { $0["prefix"] as? String } == ["00000009"])
      #expect(!client.isReadable)

      try client.send(Frames.framed(3) + Frames.framed(9) + Frames.framed(4))
      #expect(try client.receive() == Frames.response(8, 9))
      #expect(try gateway.wait(3).notifications().map { $0["number"] as? Int } == [3, 4, 5])
      let counts = try gateway.get("/counts")
      #expect(try counts.number("gateway", "received") == 3 && counts.number("gateway", "accepted") == 1)
      #expect(try gateway.get("/verdict").number("sendings") == 3)
      _ = try gateway.stop()
      try expectValid(file: "sim.json", .ledger, in: command)
      let data = try Data(contentsOf: command.folder.appending(path: "sim.json"))
      let ledger = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
      #expect((ledger["gateway"] as? [String: Any])?["received"] as? Int == 5)
    }
  }
}
