import Foundation
import TestSupport
import Testing

/// Clients that others wrote, against gateway and feedback service: what each believes equals the ledger.
@Suite("simulate and real clients", .waiting)
struct SimulateClientTests {
  // MARK: openssl s_client

  /// Pipes frames into `openssl s_client` and returns what came back, up to the gateway's close.
  private func sClient(_ frames: [UInt8], _ port: Int, _ version: String, in command: Command) throws -> [UInt8] {
    try command.write(frames, "frames")
    let process = try RunningProcess(
      "openssl",
      [
        "s_client", "-connect", "127.0.0.1:\(port)", "-cert", "ids/com.example.app.pem", "-key",
        "ids/com.example.app.key", "-CAfile", "ids/ca.pem", "-verify_return_error", "-quiet", version,
      ], in: command.folder, input: command.folder.appending(path: "frames"))
    _ = try process.end()
    return process.outputBytes
  }

  @Test("openssl s_client: frames piped in", arguments: ["-tls1_2", "-tls1_3"])
  func opensslSends(version: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let frames = (1...500).flatMap { Frames.framed($0) } + Frames.known
      let response = try sClient(frames, simulator.gateway, version, in: command)
      #expect(response == Frames.response(2, Frames.marker))
      let ledger = try simulator.stop()
      #expect(ledger.gateway.connections == 1)
      #expect(ledger.gateway.accepted == 500)
      #expect(ledger.gateway.rejected == ["2": 1])
      #expect(ledger.gateway.discarded == 0)
      #expect(ledger.gateway.bytes == frames.count)
      #expect(ledger.gateway.binary.errorResponses == ["2": 1])
    }
  }

  @Test("openssl s_client: a rejection in the middle, and the rest sent again", arguments: ["-tls1_2", "-tls1_3"])
  func opensslResends(version: String) throws {
    try SimulatorProcess.inFolder { command in
      // Frames behind it are discarded all the same; an answer at once could keep openssl from sending it.
      let simulator = try SimulatorProcess(["--reject", "prefix=0000012c", "--response-delay", "2s"], in: command)
      let frames = (1...500).map { Frames.framed($0) }
      let first = try sClient(frames.flatMap { $0 }, simulator.gateway, version, in: command)
      #expect(first == Frames.response(8, 300))
      let second = try sClient(frames[300...].flatMap { $0 } + Frames.known, simulator.gateway, version, in: command)
      #expect(second == Frames.response(2, Frames.marker))
      let ledger = try simulator.stop()
      #expect(ledger.gateway.accepted == 499)
      #expect(ledger.gateway.rejected == ["8": 1, "2": 1])
      #expect(ledger.gateway.discarded == 200)
      #expect(ledger.connections.map(\.accepted) == [299, 200])
      #expect(ledger.connections.first?.rejected == .init(status: 8, identifier: 300, notification: 299))
    }
  }

  @Test("openssl s_client: the feedback list", arguments: ["-tls1_2", "-tls1_3"])
  func opensslFeedback(version: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
      let frames = (1...50).flatMap { Frames.framed($0) } + Frames.known
      #expect(try sClient(frames, simulator.gateway, version, in: command).count == 6)
      let list = try sClient([], simulator.feedback, version, in: command)
      #expect(list.count == 50 * 38)
      for number in 0..<50 {
        #expect(Array(list[number * 38 + 6..<number * 38 + 38]) == Frames.token(UInt32(number + 1)))
      }
      #expect(waitUntil { (try? simulator.events().contains { $0["reason"] as? String == "complete" }) == true })
      #expect(try sClient([], simulator.feedback, version, in: command).isEmpty)
      let ledger = try simulator.stop()
      #expect(ledger.feedback.tuplesSent == 50)
      #expect(ledger.feedback.completed == 2)
      #expect(ledger.feedback.waiting == 0)
    }
  }

  @Test("openssl s_client with a revoked or an expired certificate does not get in", arguments: ["revoked", "expired"])
  func opensslRefused(state: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let process = try RunningProcess(
        "openssl",
        [
          "s_client", "-connect", "127.0.0.1:\(simulator.gateway)", "-cert", "ids/com.example.app.\(state).pem", "-key",
          "ids/com.example.app.\(state).key", "-CAfile", "ids/ca.pem", "-quiet", "-tls1_2",
        ], in: command.folder)
      let outcome = try process.end()
      #expect(outcome.status != 0)
      #expect(outcome.errors.contains("alert certificate \(state)"))
      let ledger = try simulator.stop()
      #expect(ledger.gateway.connections == 1)
      #expect(ledger.gateway.handshakeFailures == 1)
      #expect(ledger.connections.first?.end == .handshakeFailed)
    }
  }

  // MARK: Python's ssl

  @Test("Python's ssl: everything is accepted", arguments: ["1.2", "1.3"]) func pythonSends(version: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let sent = try PythonProvider(folder: command.folder).send(simulator.gateway, "--version", version)
      #expect(sent.accepted.count == 1_000)
      #expect(sent.rejected.isEmpty)
      let gateway = try simulator.stop().gateway
      #expect(gateway.connections == 1)
      #expect(gateway.accepted == 1_000)
      #expect(gateway.received == sent.written + sent.markers)
      #expect(gateway.discarded == 0)
    }
  }

  @Test(
    "Python's ssl: rejections in the middle; the late response, in pieces, costs what was written behind them",
    arguments: ["1.2", "1.3"])
  func pythonResends(version: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(
        [
          "--reject", "prefix=0000006e", "--reject", "prefix=000001fe,status=7", "--response-delay", "20ms..60ms",
          "--response-pieces", "1,2", "--response-piece-delay", "5ms",
        ], in: command)
      let sent = try PythonProvider(folder: command.folder).send(simulator.gateway, "--version", version)
      #expect(sent.accepted == (1...1_000).filter { $0 != 110 && $0 != 510 })
      #expect(sent.rejected == ["110": 8, "510": 7])
      // It writes 50 at a time, and what stands behind the rejected one again.
      #expect(sent.written > 1_000)
      let gateway = try simulator.stop().gateway
      #expect(gateway.connections == 3)
      #expect(gateway.accepted == sent.accepted.count)
      // A marker that was written behind a rejected notification is discarded with the others.
      #expect(gateway.rejected == ["8": 1, "7": 1, "2": 1])
      #expect(gateway.received == sent.written + sent.markers)
      #expect(gateway.binary.errorResponses.values.reduce(0, +) == 3)
    }
  }

  @Test("Python's ssl: shutdown after n, several times") func pythonShutdown() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--shutdown-after", "300"], in: command)
      let sent = try PythonProvider(folder: command.folder).send(simulator.gateway, "--chunk", "7")
      #expect(sent.accepted == Array(1...1_000))
      #expect(sent.shutdowns == [300, 600, 900])
      let ledger = try simulator.stop()
      #expect(ledger.gateway.accepted == 1_000)
      #expect(ledger.gateway.binary.errorResponses == ["10": 3, "2": 1])
      #expect(ledger.gateway.received == sent.written + sent.markers)
      #expect(ledger.connections.map(\.end) == [.shutdown, .shutdown, .shutdown, .rejected])
      #expect(ledger.connections.map(\.accepted) == [300, 300, 300, 100])
    }
  }

  @Test(
    "Python's ssl: the feedback list has what was uninstalled, once", arguments: ["1.2", "1.3"], ["close", "unwrap"])
  func pythonFeedback(version: String, end: String) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--devices-uninstalled", "20%", "--feedback-ragged"], in: command)
      let provider = PythonProvider(folder: command.folder)
      _ = try provider.send(simulator.gateway)
      // Whether a client ends with close_notify or just closes: it has read everything, so the list is cleared.
      let first = try provider.feedback(simulator.feedback, "--version", version, "--end", end)
      #expect(waitUntil { (try? simulator.events().contains { $0["reason"] as? String == "complete" }) == true })
      let second = try provider.feedback(simulator.feedback, "--version", version, "--end", end)
      #expect(second.tokens.isEmpty)
      #expect(first.isWhole)
      #expect(Set(first.tokens).count == first.tokens.count)
      let ledger = try simulator.stop()
      #expect(ledger.devices.uninstalled == first.tokens.count)
      #expect((100...300).contains(first.tokens.count))
      #expect(ledger.feedback.connections == 2)
      #expect(ledger.feedback.completed == 2)
      #expect(ledger.feedback.tuplesSent == first.tokens.count)
      #expect(ledger.feedback.waiting == 0)
    }
  }

  /// More than the client's machine takes for it: what has arrived there counts as read.
  @Test(
    "A feedback list that was not read to its end stays",
    arguments: [
      ["--stop-after", "100"], ["--stop-after", "100", "--end", "unwrap"], ["--early"], ["--early", "--end", "unwrap"],
    ])
  func unread(arguments: [String]) throws {
    let tokens = 5_000
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--devices-uninstalled", "100%"], in: command)
      let provider = PythonProvider(folder: command.folder)
      _ = try provider.send(simulator.gateway, "--tokens", "\(tokens)", "--chunk", "1000")
      for _ in 0..<2 { _ = try provider.feedback(simulator.feedback, arguments + ["--receive-buffer", "4096"]) }
      let whole = try provider.feedback(simulator.feedback)
      #expect(whole.tokens.count == tokens)
      #expect(Set(whole.tokens) == PythonProvider.tokens(1...tokens))
      #expect(try simulator.stop().feedback.completed == 1)
    }
  }
}
