import Foundation
import TestSupport
import Testing

/// Ledger, log, metrics and key log.
@Suite("simulate: books", .waiting)
struct SimulateBooksTests {
  /// What RESULTS.md promises; more may be there.
  @Test("The ledger has the names that were agreed on") func names() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "prefix=00000003"], in: command)
      _ = try PythonProvider(folder: command.folder).send(simulator.gateway, "--tokens", "5")
      _ = try simulator.stop()
      let ledger = try simulator.ledgerObject()
      #expect(ledger["schema"] as? Int == 1)
      #expect(ledger["kind"] as? String == "simulate")
      let counts = [
        "gateway": ["connections", "handshake_failures", "received", "accepted", "discarded", "malformed", "bytes"],
        "devices": ["delivered", "coalesced", "expired", "stored"],
        "feedback": ["connections", "tuples_sent", "waiting"],
      ]
      for (part, names) in counts {
        let object = try #require(ledger[part] as? [String: Any])
        for name in names { #expect(object[name] is Int, "\(part).\(name)") }
      }
      let gateway = try #require(ledger["gateway"] as? [String: Any])
      #expect(gateway["rejected"] as? [String: Int] == ["8": 1, "2": 1])
      let connections = try #require(ledger["connections"] as? [[String: Any]])
      #expect(connections.count == 2)
      for connection in connections {
        #expect((connection["client"] as? String)?.hasPrefix("127.0.0.1:") == true)
        #expect(connection["topic"] as? String == SimulatorProcess.topic)
        for name in ["received", "accepted", "discarded"] { #expect(connection[name] is Int) }
        for name in ["opened", "closed", "end"] { #expect(connection[name] is String) }
        #expect(connection["rejected"] is [String: Any])
        for name in ["opened", "closed"] {
          let time = try #require(connection[name] as? String)
          #expect(time.wholeMatch(of: #/20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z/#) != nil, "\(time)")
        }
      }
    }
  }

  @Test("A connection that was not refused has null for its rejection, and one without a certificate for its topic")
  func nulls() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--client-certificate", "none"], in: command)
      try command.write(Frames.framed(1), "frames")
      let process = try RunningProcess(
        "openssl", ["s_client", "-connect", "127.0.0.1:\(simulator.gateway)", "-quiet", "-tls1_2"], in: command.folder,
        input: command.folder.appending(path: "frames"))
      _ = try process.end()
      // Without a topic there is no push.
      #expect(process.outputBytes == Frames.response(3, 1))
      let idle = try PlainClient(simulator.gateway)
      idle.close()
      #expect(try waitUntil { try simulator.count(of: "closed") == 2 })
      _ = try simulator.stop()
      let connections = try #require(try simulator.ledgerObject()["connections"] as? [[String: Any]])
      #expect(connections.allSatisfy { $0["topic"] is NSNull })
      #expect(connections.contains { $0["rejected"] is NSNull })
    }
  }

  @Test("--log says what was accepted, answered and closed, in order and in JSON") func log() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "prefix=00000003"], in: command)
      _ = try PythonProvider(folder: command.folder).send(simulator.gateway, "--tokens", "5", "--version", "1.2")
      let noTLS = try PlainClient(simulator.gateway)
      try noTLS.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
      _ = try? noTLS.receive()
      noTLS.close()
      _ = try simulator.stop()
      let events = try simulator.events()
      #expect(events.first?["event"] as? String == "started" && events.first?["schema"] as? Int == 1)
      #expect(events.count { $0["event"] as? String == "started" } == 1)
      for connection in 1...2 {
        let own = events.filter { $0["connection"] as? Int == connection }
        #expect(own.compactMap { $0["event"] as? String } == ["accepted", "error_response", "closed"])
        #expect(own.allSatisfy { $0["topic"] as? String == SimulatorProcess.topic })
        #expect(own.first?["tls"] as? String == "TLS 1.2")
        #expect(own.last?["reason"] as? String == "rejected")
      }
      let response = try #require(events.first { $0["event"] as? String == "error_response" })
      #expect(response["status"] as? Int == 8)
      #expect(response["identifier"] as? Int == 3)
      #expect(response["notification"] as? Int == 2)
      #expect(response["accepted"] as? Int == 2)
      let failed = events.filter { $0["connection"] as? Int == 3 }
      #expect(failed.compactMap { $0["event"] as? String } == ["handshake_failed", "closed"])
      #expect((failed.first?["reason"] as? String)?.contains("http request") == true)
      let times = events.compactMap { $0["time"] as? String }
      #expect(times.count == events.count)
    }
  }

  @Test("--metrics shows the ledger's counts") func metrics() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        [
          "--metrics", "127.0.0.1:0", "--reject", "prefix=0000006e", "--devices-uninstalled", "10%",
          "--devices-offline", "10%",
          "--response-delay", "30ms",
        ], in: command)
      let provider = PythonProvider(folder: command.folder)
      // It writes 50 at a time: what stands behind number 110 in its write is discarded.
      _ = try provider.send(simulator.gateway)
      #expect(waitUntil { (try? simulator.count(of: "closed")) == 2 })
      let curl = try RunningProcess(
        "curl", ["-s", "-i", "--max-time", "20", "http://127.0.0.1:\(simulator.metrics)/metrics"], in: command.folder
      ).end()
      #expect(curl.output.hasPrefix("HTTP/1.1 200 OK"))
      let ledger = try simulator.stop()
      let (gateway, devices) = (ledger.gateway, ledger.devices)
      let expected = [
        "apnscope_gateway_connections_total": gateway.connections, "apnscope_gateway_connections_open": 0,
        "apnscope_gateway_handshakes_total": gateway.handshakes, "apnscope_gateway_received_total": gateway.received,
        "apnscope_gateway_accepted_total": gateway.accepted, "apnscope_gateway_discarded_total": gateway.discarded,
        #"apnscope_gateway_rejected_total{status="8"}"#: 1, #"apnscope_gateway_rejected_total{status="2"}"#: 1,
        #"apnscope_gateway_error_responses_total{status="8"}"#: 1,
        "apnscope_gateway_received_bytes_total": gateway.bytes,
        "apnscope_devices_delivered_total": devices.delivered, "apnscope_devices_stored": devices.stored,
        "apnscope_devices_uninstalled_total": devices.uninstalled, "apnscope_feedback_waiting": ledger.feedback.waiting,
        "apnscope_feedback_connections_total": 0,
      ]
      for (name, count) in expected {
        #expect(
          curl.lines.contains { $0.dropLast($0.hasSuffix("\r") ? 1 : 0) == "\(name) \(count)" }, "\(name) \(count)")
      }
      #expect(gateway.discarded > 0)
      #expect(devices.uninstalled > 0)
    }
  }

  @Test("--plain: frames over TCP, for the topic that is named; the feedback list too") func plain() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        ["--plain", "--plain-topic", "com.example.plain", "--devices-uninstalled", "100%"], in: command)
      let provider = try PlainClient(simulator.gateway)
      try provider.send((1...100).flatMap { Frames.framed($0) } + Frames.known)
      #expect(try provider.receive() == Frames.response(2, Frames.marker))
      provider.close()
      let list = try PlainClient(simulator.feedback)
      #expect(try list.receive().count == 100 * 38)
      list.close()
      #expect(waitUntil { (try? simulator.events().contains { $0["event"] as? String == "feedback_closed" }) == true })
      let ledger = try simulator.stop()
      #expect(ledger.connections.map(\.topic) == ["com.example.plain"])
      #expect(ledger.gateway.accepted == 100)
      #expect(ledger.feedback.completed == 1)
      #expect(ledger.feedback.waiting == 0)
    }
  }

  @Test("--keylog is for its owner's eyes, and a second run adds to it") func keyLog() throws {
    try SimulatorProcess.inFolder { command in
      var lines: [Int] = []
      for version in ["1.2", "1.3"] {
        let simulator = try SimulatorProcess(["--keylog", "keys"], in: command)
        _ = try PythonProvider(folder: command.folder).send(simulator.gateway, "--tokens", "3", "--version", version)
        _ = try simulator.stop()
        let text = try command.read("keys")
        lines.append(text.split(separator: "\n").count)
        #expect(text.contains(version == "1.2" ? "CLIENT_RANDOM " : "CLIENT_TRAFFIC_SECRET_0 "))
      }
      #expect(lines[1] > lines[0])
      let attributes = try FileManager.default.attributesOfItem(atPath: command.folder.appending(path: "keys").path)
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    }
  }

  @Test("Secrets that could not be written to the key log are told of at the end: 74") func fullKeyLog() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--keylog", "/dev/full"], in: command)
      _ = try PythonProvider(folder: command.folder).send(simulator.gateway, "--tokens", "3")
      simulator.send(SIGTERM)
      let outcome = try simulator.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors == "apnscope: /dev/full: No space left on device\n")
      #expect(try simulator.ledger().gateway.accepted == 3)
    }
  }

  @Test("A connection too many stands in the log and in the list") func tooMany() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--plain", "--max-connections", "1"], in: command)
      let first = try PlainClient(simulator.gateway)
      try first.send(Frames.framed(1))
      #expect(waitUntil { (try? simulator.events().contains { $0["event"] as? String == "accepted" }) == true })
      _ = try? PlainClient(simulator.gateway).receive()
      #expect(waitUntil { (try? simulator.events().contains { $0["event"] as? String == "refused" }) == true })
      first.close()
      let refusal = try simulator.events().first { $0["event"] as? String == "refused" }
      #expect(refusal?["reason"] as? String == "too_many_connections")
      #expect((refusal?["client"] as? String)?.hasPrefix("127.0.0.1:") == true)
      let ledger = try simulator.stop()
      #expect(ledger.gateway.handshakeFailures == 1)
      #expect(ledger.connections.contains { $0.end == .refused && $0.client == refusal?["client"] as? String })
    }
  }
}
