import Foundation
import TestSupport
import Testing

/// pushjack 1.6.0, a client of its time, as it comes from PyPI: what it reports against what the ledger says.
///
/// `Scripts/test` installs it; where it could not, these tests are skipped. It needs no settings but host and port, which
/// are attributes of its class: it verifies no server, sends no SNI and takes the TLS version that is offered.
///
/// What it believes is not always so, and the tests say where:
/// - it asks for errors after each batch and for a while at the end, and takes silence and a bare close for success;
/// - it reports the notification that a shutdown names as failed, though that is the last one *accepted*;
/// - its socket does not block, and it takes a write that is not taken at once for a failed one: it sends the batch again
///   on new connections, five times, and in the end reports all of it as failed, whatever of it was accepted;
/// - it closes with the gateway's close_notify unread, which resets the connection: what it had written behind a
///   rejected notification may or may not reach the gateway, so only bounds of `discarded` are certain.
@Suite(
  "simulate and pushjack", .waiting,
  .enabled(if: Pushjack.isInstalled, "pushjack is not installed; Scripts/test does that"))
struct SimulatePushjackTests {
  @Test("Everything is accepted", arguments: [1, 100, 1_000]) func sends(batch: Int) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(in: command)
      let report = try Pushjack(simulator, in: command).send("--batch", "\(batch)")
      #expect(report.successes == 1_000)
      #expect(report.failures == 0)
      let gateway = try simulator.stop().gateway
      #expect(gateway.connections == 1)
      #expect(gateway.accepted == report.successes)
      #expect(gateway.received == report.written)
      #expect(gateway.rejected.isEmpty)
      #expect(gateway.discarded == 0)
    }
  }

  @Test("Rejections in the middle: it sends the rest again", arguments: ["0ms", "50ms"]) func resends(delay: String)
    throws
  {
    try SimulatorProcess.inFolder { command in
      // Its identifiers count from 0: the n-th asked is 299, 599 and 899, for what is discarded is not asked.
      let simulator = try SimulatorProcess(["--reject", "every=300", "--response-delay", delay], in: command)
      let report = try Pushjack(simulator, in: command).send("--error-timeout", "10")
      #expect(report.errors == [[8, 299], [8, 599], [8, 899]])
      #expect(report.successes == 997)
      #expect(report.failures == 3)
      let ledger = try simulator.stop()
      let gateway = ledger.gateway
      #expect(gateway.connections == 4)
      #expect(gateway.accepted == report.successes)
      #expect(gateway.rejected == ["8": report.failures])
      #expect(gateway.received <= report.written)
      #expect(gateway.discarded <= report.written - 1_000)
      #expect(ledger.connections.map(\.accepted) == [299, 299, 299, 100])
      #expect(
        ledger.connections.sorted { $0.opened < $1.opened }.compactMap(\.rejected?.identifier) == [299, 599, 899])
    }
  }

  @Test("Shutdown: it loses nothing, and reports one accepted notification for each as failed") func shutdown() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--shutdown-after", "450"], in: command)
      let report = try Pushjack(simulator, in: command).send("--error-timeout", "10")
      #expect(report.errors == [[10, 449], [10, 899]])
      #expect(report.successes == 998)
      let ledger = try simulator.stop()
      #expect(ledger.gateway.accepted == report.successes + report.failures)
      #expect(ledger.gateway.rejected.isEmpty)
      #expect(ledger.gateway.binary.errorResponses == ["10": 2])
      #expect(ledger.connections.map(\.accepted) == [450, 450, 100])
    }
  }

  @Test("A batch that a slow gateway does not take at once: it is sent five times, accepted, and reported as failed")
  func tooMuchAtOnce() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--read-rate", "20MB", "--receive-buffer", "4096"], in: command)
      // Its socket does not block: 7 MB are more than the kernel takes, and the rest of the write is an error to it.
      let report = try Pushjack(simulator, in: command).send("--tokens", "3500", "--batch", "3500", "--message", "1900")
      #expect(report.successes == 0)
      #expect(report.failures == 3_500)
      #expect(report.written == 0)
      // A stop discards what is unread: all of it is to be read first.
      #expect(waitUntil { (try? simulator.events().count { $0["event"] as? String == "closed" }) == 5 })
      let gateway = try simulator.stop().gateway
      #expect(gateway.connections == 5)
      #expect(gateway.accepted > 3_500)
      #expect(gateway.accepted == gateway.received)
      #expect(gateway.rejected.isEmpty)
    }
  }

  @Test("A close without an error response: it reports as sent what was rejected and discarded") func bareClose() throws
  {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--reject", "every=300", "--response-ending", "fin"], in: command)
      let report = try Pushjack(simulator, in: command).send("--error-timeout", "10")
      #expect(report.successes == 1_000)
      #expect(report.failures == 0)
      let gateway = try simulator.stop().gateway
      #expect(gateway.connections == 1)
      #expect(gateway.accepted == 299)
      #expect(gateway.rejected == ["8": 1])
      #expect(gateway.received <= 1_000)
      #expect(gateway.binary.errorResponses.isEmpty)
    }
  }

  @Test(
    "get_expired_tokens gives the feedback list once, also when it comes in small pieces",
    arguments: [[], ["--feedback-ragged"]])
  func feedback(arguments: [String]) throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--devices-uninstalled", "10%"] + arguments, in: command)
      let pushjack = try Pushjack(simulator, in: command)
      #expect(try pushjack.send().successes == 1_000)
      let first = try pushjack.feedback()
      #expect(first.problem == nil)
      // It just closes, without close_notify.
      #expect(waitUntil { (try? simulator.events().contains { $0["reason"] as? String == "complete" }) == true })
      #expect(try pushjack.feedback().tokens == [])
      let ledger = try simulator.stop()
      #expect(ledger.devices.uninstalled == first.tokens.count)
      #expect(ledger.feedback.tuplesSent == first.tokens.count)
      #expect(ledger.feedback.completed == 2)
      #expect(Set(first.tokens).count == first.tokens.count)
      #expect((50...200).contains(first.tokens.count))
    }
  }

  @Test("A feedback service that never closes: it gives up after 10 s and reports nothing of what it has read")
  func neverCloses() throws {
    try SimulatorProcess.inFolder { command in
      let simulator = try SimulatorProcess(["--devices-uninstalled", "10%", "--feedback-never-closes"], in: command)
      let pushjack = try Pushjack(simulator, in: command)
      #expect(try pushjack.send("--tokens", "100").successes == 100)
      let report = try pushjack.feedback()
      #expect(report.problem == "timeout")
      #expect(report.tokens == [])
      #expect(try simulator.stop().feedback.connections == 1)
    }
  }
}

/// `Clients/pushjack_client.py`.
struct Pushjack {
  struct Sent: Decodable {
    var successes: Int
    var failures: Int
    /// Frames that were handed to its connection.
    var written: Int
    /// Status, if it has one, and identifier.
    var errors: [[Int?]]
  }

  struct Feedback: Decodable {
    var tokens: [String]
    var problem: String?
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  static let python = root.appending(path: ".build/pushjack/bin/python").path
  private static let script =
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/pushjack_client.py").path

  static let isInstalled = FileManager.default.fileExists(
    atPath: root.appending(path: ".build/pushjack/installed").path)

  private let folder: URL
  private let arguments: [String]

  init(_ simulator: SimulatorProcess, in command: Command) throws {
    folder = command.folder
    // It takes one file with both.
    let identity = try command.read("ids/com.example.app.pem") + command.read("ids/com.example.app.key")
    try command.write(Array(identity.utf8), "identity.pem")
    arguments = [
      "--gateway", "\(simulator.gateway)", "--feedback", "\(simulator.feedback)", "--certificate", "identity.pem",
    ]
  }

  func send(_ further: String...) throws -> Sent { try run("send", further) }
  func feedback() throws -> Feedback { try run("feedback", []) }

  private func run<Result: Decodable>(_ job: String, _ further: [String]) throws -> Result {
    let process = try RunningProcess(Self.python, [Self.script, job] + arguments + further, in: folder)
    let outcome = try process.end()
    guard outcome.status == 0 else { throw TimeoutError("pushjack_client.py: \(outcome.errors)") }
    return try JSONDecoder().decode(Result.self, from: Data(outcome.output.utf8))
  }
}
