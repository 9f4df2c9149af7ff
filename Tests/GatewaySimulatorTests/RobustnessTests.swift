import BinaryProtocol
import Bytes
import Foundation
import Glibc
import Measurement
import Synchronization
import TestSupport
import Testing

@testable import GatewaySimulator

/// What broken and hostile clients do to the gateway: nothing.
@Suite("Robustness", .waiting)
struct RobustnessTests {
  @Test("A client that stops in the middle of a handshake is given up, and not before its time", arguments: [0, 60])
  func halfHandshake(length: Int) async throws {
    let (taken, ledger) = try await Simulation.run(tls: true) {
      $0.handshakeTimeout = .milliseconds(300)
    } body: { simulation in
      // A record of a handshake that says it has 512 bytes.
      let bytes = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3] + [UInt8](repeating: 7, count: 100)
      let start = ContinuousClock.now
      let (client, feedback) = (try simulation.client(raw: true), try simulation.feedbackClient(raw: true))
      for client in [client, feedback] { _ = client.sendSome(Array(bytes.prefix(length))) }
      #expect(try client.hasEnded() && feedback.hasEnded())
      return ContinuousClock.now - start
    }
    #expect(taken >= .milliseconds(300))
    #expect(ledger.gateway.handshakeFailures == 1)
    #expect(ledger.feedback.handshakeFailures == 1)
    #expect(ledger.connections.map(\.end) == [.handshakeFailed])
  }

  @Test("The log says why a handshake failed")
  func failedHandshake() async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("log").path
      let log = try EventLog(path: path)
      try await Simulation.run(tls: true, log: log) { simulation in
        let client = try simulation.client(raw: true)
        _ = client.sendSome(Array("GET / HTTP/1.1\r\n\r\n".utf8))
        let hasFailed = await simulation.wait { $0.gateway.handshakeFailures == 1 }
        #expect(hasFailed)
        client.close()
      }
      log.close()
      let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
      let failures = lines.filter { $0.contains(#""event":"handshake_failed""#) }
      #expect(failures.count == 1 && failures[0].contains("http request"), "\(failures)")
    }
  }

  @Test("1 MB of garbage, and a good client beside it", arguments: 0..<4, [false, true])
  func garbage(seed: UInt64, tls: Bool) async throws {
    let (answer, ledger) = try await Simulation.run(tls: tls) { simulation in
      var random = SeededGenerator(seed: seed)
      let garbage = random.bytes(1 << 20)
      // Where TLS is expected; as notifications; behind notifications.
      let raw = try simulation.client(raw: true)
      _ = raw.sendSome(garbage)
      raw.close()
      let clients = try (0..<2).map { _ in try simulation.client() }
      for (client, prefix) in zip(clients, [[], frames(1...3)]) {
        _ = client.sendSome(prefix + garbage)
        client.close()
      }
      let feedback = try simulation.feedbackClient(raw: true)
      _ = feedback.sendSome(garbage)
      feedback.close()
      return try simulation.client().exchange(frame(1, token: []))
    }
    #expect(answer == response(.missingDeviceToken, 1))
    #expect(ledger.gateway.accepted >= 3)
    // A first byte of 0, 1 or 2 may be a frame.
    #expect(ledger.gateway.binary.malformed + (ledger.gateway.rejected["5"] ?? 0) >= 1)
  }

  @Test("A frame of 4 GB is no frame")
  func hugeFrame() async throws {
    let (answer, ledger) = try await Simulation.run { simulation in
      let client = try simulation.client()
      try client.send(frames(1...2) + [2, 0xff, 0xff, 0xff, 0xff])
      let answer = try client.receive()
      // What still comes is taken, and nothing of it kept.
      for _ in 0..<64 { if client.sendSome([UInt8](repeating: 2, count: 65_536)).error != nil { break } }
      return answer
    }
    #expect(answer == response(.protocolError, 0))
    #expect(ledger.gateway.accepted == 2)
    #expect(ledger.gateway.binary.malformed == 1)
    #expect(ledger.gateway.received == 3)
  }

  @Test("2,000 connections that come and go", arguments: [false, true])
  func flood(resets: Bool) async throws {
    let (answer, ledger) = try await Simulation.run { simulation in
      for number in 0..<2_000 {
        let client = try simulation.client()
        if number % 3 == 0 { _ = client.sendSome(frame(1)) }
        if resets { client.reset() } else { client.close() }
      }
      #expect(await simulation.wait { $0.gateway.connections == 2_000 })
      #expect(await simulation.wait { _ in await simulation.openConnections().gateway == 0 })
      return try simulation.client().exchange(frame(1, token: []))
    }
    #expect(answer == response(.missingDeviceToken, 1))
    #expect(ledger.gateway.connections == 2_001)
    if !resets { #expect(ledger.gateway.accepted == 667) }
  }

  @Test("Handshakes that are broken off, 500 times", arguments: [false, true])
  func handshakeFlood(resets: Bool) async throws {
    let (answer, ledger) = try await Simulation.run(tls: true) { simulation in
      for number in 0..<500 {
        let client = try simulation.client(raw: true)
        try client.send(Array([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc].prefix(number % 10)))
        if resets { client.reset() } else { client.close() }
      }
      #expect(await simulation.wait { $0.gateway.handshakeFailures == 500 })
      return try simulation.client().exchange(frame(1, token: []))
    }
    #expect(answer == response(.missingDeviceToken, 1))
    #expect(ledger.connections.count { $0.end == .handshakeFailed } == 500)
  }

  @Test("A TLS record that was changed on its way ends the connection, and is told apart")
  func brokenRecord() async throws {
    let (_, ledger) = try await Simulation.run(tls: true) { simulation in
      let client = try simulation.client()
      try client.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 1 })
      client.sendRaw([0x17, 3, 3, 0, 40] + [UInt8](repeating: 9, count: 40))
      _ = try? client.receiveAll()
    }
    #expect(ledger.connections.map(\.end) == [.tlsError])
    #expect(ledger.connections.first?.error?.contains("bad record mac") == true)
    #expect(ledger.gateway.accepted == 1)
  }

  // MARK: the end

  @Test(
    "stop() while senders send: the books are what the answers say", .timeLimit(.minutes(5)), arguments: [false, true])
  func stopUnderLoad(tls: Bool) async throws {
    let (proven, ledger) = try await Simulation.run(tls: tls) { simulation in
      let barrier = Barrier()
      return try await withThrowingTaskGroup { senders in
        for _ in 0..<4 { senders.addTask { try Self.sendUntilAnswered(simulation.client(), barrier) } }
        // The gateway has read from each, so each is answered at the end.
        #expect(await simulation.wait { $0.gateway.accepted == 200 })
        barrier.open()
        #expect(await simulation.wait { $0.gateway.accepted > 20_000 })
        let ledger = await simulation.stop()
        #expect(ledger.gateway.binary.errorResponses == ["10": 4])
        return try await senders.reduce(into: [Int]()) { $0.append($1) }
      }
    }
    #expect(proven.count == 4)
    #expect(proven.reduce(0, +) == ledger.gateway.accepted)
    #expect(ledger.connections.map(\.end) == [.shutdown, .shutdown, .shutdown, .shutdown])
  }

  /// It opens once.
  private final class Barrier: Sendable {
    private let state = Atomic(false)
    var isOpen: Bool { state.load(ordering: .relaxed) }
    func open() { state.store(true, ordering: .relaxed) }
  }

  /// Sends notifications 1, 2, … and returns the identifier in the error response that ends that. All behind the first
  /// 50 wait for the barrier.
  private static func sendUntilAnswered(_ client: Client, _ barrier: Barrier) throws -> Int {
    var next: UInt32 = 1
    while !client.isReadable {
      if next > 1, !barrier.isOpen {
        usleep(1_000)
        continue
      }
      try client.send(frames(next...next + 49))
      next += 50
    }
    let answer = try client.receiveAll()
    var offset = 0
    return Int(try ErrorResponse(parsing: answer.rawBytes, at: &offset).identifier)
  }

  @Test("stop() counts what comes within the time for that, however long it is")
  func stopLingers() async throws {
    let (_, ledger) = try await Simulation.run(endsAll: false) {
      $0.linger = .seconds(120)
    } body: { simulation in
      let client = try simulation.client()
      try client.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 1 })
      let ending = Task { await simulation.simulator.stop() }
      #expect(try client.receive() == response(.shutdown, 1))
      // More than the default.
      try await Task.sleep(for: .seconds(6))
      try client.send(frame(2))
      client.close()
      _ = await ending.value
    }
    #expect(ledger.gateway.accepted == 1 && ledger.gateway.discarded == 1)
  }

  @Test("stop() ends connections in every state", .timeLimit(.minutes(5)), arguments: [false, true])
  func stopInEveryState(tls: Bool) async throws {
    let list = try FeedbackList(path: nil)
    try await list.put((0..<20_000).map { Failure(topic: Simulation.topic, token: token($0), time: 1) })
    let (_, ledger) = try await Simulation.run(tls: tls, list: list) {
      $0.behavior.rejections = [.init(.prefix([9]))]
      $0.behavior.response.delay = .seconds(3_600) ... .seconds(3_600)
      $0.linger = .milliseconds(500)
    } body: { simulation in
      // In its handshake (or new), silent, in a frame, waiting for a late answer, in the middle of a feedback list.
      let clients = [
        try simulation.client(raw: true), try simulation.client(), try simulation.client(),
        try simulation.client(), try simulation.feedbackClient(receiveBuffer: 4_096),
      ]
      try clients[2].send(frames(1...2).dropLast(3))
      try clients[3].send(frames(8...10))
      #expect(
        await simulation.wait {
          $0.gateway.received == 4 && $0.gateway.connections == 4 && $0.feedback.tuplesSent > 0
        })
      await simulation.stop()
      for client in clients { #expect(try client.hasEnded()) }
    }
    #expect(ledger.gateway.connections == 4)
    #expect(ledger.gateway.accepted == 2)
    #expect(ledger.gateway.discarded == 1)
    #expect(ledger.feedback.waiting == 20_000)
  }

  /// In a process of its own, whose files and threads nobody else opens or ends.
  @Test("Started and stopped 20 times, nothing is left over")
  func startStop() async {
    await #expect(processExitsWith: .success) {
      func count(_ folder: String) -> Int { (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0 }
      func cycle() async throws {
        try await Simulation.run(tls: true) { simulation in
          let client = try simulation.client()
          try client.send(frames(1...3))
          #expect(await simulation.wait { $0.gateway.accepted == 3 })
        }
      }
      try await cycle()
      let before = (files: count("/proc/self/fd"), threads: count("/proc/self/task"))
      for _ in 0..<20 { try await cycle() }
      // Pools may have grown meanwhile. A leak would be 20 times as many.
      #expect(count("/proc/self/fd") < before.files + 10)
      let end = ContinuousClock.now + Simulation.patience
      while count("/proc/self/task") >= before.threads + 10, ContinuousClock.now < end { usleep(10_000) }
      #expect(count("/proc/self/task") < before.threads + 10)
    }
  }

  @Test("Stopped twice, it gives the same ledger; a port in use is told")
  func stopTwice() async throws {
    let (second, first) = try await Simulation.run { simulation in
      let client = try simulation.client()
      try client.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 1 })
      client.close()
      let (port, list) = (simulation.simulator.gateway?.port ?? 0, simulation.list)
      var options = SimulatorOptions()
      options.gateway = .init(host: "127.0.0.1", port: port)
      options.feedback = nil
      var problem = "started"
      do {
        _ = try await Simulator.start(options, feedbackList: list)
      } catch {
        problem = "\(error)"
      }
      #expect(problem == "gateway 127.0.0.1:\(port): Address already in use")
      return await simulation.stop()
    }
    #expect(first == second)
    #expect(first.gateway.accepted == 1)
  }
}
