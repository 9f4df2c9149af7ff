import APNSProtocol
import Bytes
import Foundation
import Glibc
import Measurement
import Synchronization
import TestSupport
import Testing

@testable import GatewaySimulator

extension Loopback {
  /// What broken and hostile clients do to the gateway: nothing.
  @Suite("Robustness")
  struct RobustnessTests {
    @Test("A client that stops in the middle of a handshake is given up", arguments: [0, 1, 5, 60])
    func halfHandshake(length: Int) async throws {
      let (taken, ledger) = try await Simulation.run(tls: true) {
        $0.handshakeTimeout = .milliseconds(300)
      } body: { simulation in
        // A record of a handshake that says it has 512 bytes.
        let bytes = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3] + [UInt8](repeating: 7, count: 100)
        let start = ContinuousClock.now
        let client = try Client(simulation.simulator.gateway?.port ?? 0)
        try client.send(Array(bytes.prefix(length)))
        let feedback = try Client(simulation.simulator.feedback?.port ?? 0)
        try feedback.send(Array(bytes.prefix(length)))
        _ = try client.receiveAll()
        _ = try feedback.receiveAll()
        return ContinuousClock.now - start
      }
      #expect(taken >= .milliseconds(300) && taken < .seconds(5))
      #expect(ledger.gateway.handshakeFailures == 1)
      #expect(ledger.feedback.handshakeFailures == 1)
      #expect(ledger.connections.map(\.end) == ["handshake_failed"])
    }

    @Test("1 MB of garbage, and a good client beside it", arguments: 0..<4, [false, true])
    func garbage(seed: UInt64, tls: Bool) async throws {
      let (answer, ledger) = try await Simulation.run(tls: tls) { simulation in
        var random = SeededGenerator(seed: seed)
        let garbage = random.bytes(1 << 20)
        // Where TLS is expected; as notifications; behind notifications.
        let raw = try Client(simulation.simulator.gateway?.port ?? 0)
        _ = raw.sendSome(garbage)
        raw.close()
        let clients = try (0..<2).map { _ in try simulation.client() }
        for (client, prefix) in zip(clients, [[], frames(1...3)]) {
          _ = client.sendSome(prefix + garbage)
          client.close()
        }
        let feedback = try Client(simulation.simulator.feedback?.port ?? 0)
        _ = feedback.sendSome(garbage)
        feedback.close()
        let answer = try simulation.client().exchange(frame(1, token: []))
        // The other event loop may not have read what the others left behind, and a simulator that stops does not.
        #expect(
          simulation.wait(seconds: 60) { $0.gateway.connections == 4 && simulation.openConnections() == 0 })
        return answer
      }
      #expect(answer == response(.missingDeviceToken, 1))
      #expect(ledger.gateway.accepted >= 3)
      // A first byte of 0, 1 or 2 may be a frame.
      #expect(ledger.gateway.malformed + (ledger.gateway.rejected["5"] ?? 0) >= 1)
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
      #expect(ledger.gateway.malformed == 1)
      #expect(ledger.gateway.received == 3)
    }

    @Test("A byte in 100 ms: in its time it is a notification, beyond it is given up")
    func slowLoris() async throws {
      let (patient, ledger) = try await Simulation.run {
        $0.frameTimeout = .seconds(1)
      } body: { simulation in
        let bytes = frame(1)
        let slow = try simulation.client()
        let start = ContinuousClock.now
        try slow.send(Array(bytes.dropLast(5)))
        for byte in bytes.suffix(5) {
          usleep(100_000)
          try slow.send([byte])
        }
        #expect(simulation.wait { $0.gateway.accepted == 1 })
        // As slow again, with too much to say.
        for byte in bytes {
          usleep(100_000)
          if slow.sendSome([byte]).error != nil { break }
        }
        _ = try? slow.receiveAll()
        return ContinuousClock.now - start
      }
      #expect(patient > .milliseconds(1_500) && patient < .seconds(6))
      #expect(ledger.gateway.accepted == 1)
      #expect(ledger.gateway.incomplete == 1)
      #expect(ledger.connections.map(\.end) == ["frame_timeout"])
    }

    @Test("2,000 connections that come and go", arguments: [false, true])
    func flood(resets: Bool) async throws {
      let (answer, ledger) = try await Simulation.run { simulation in
        for number in 0..<2_000 {
          let client = try simulation.client()
          if number % 3 == 0 { _ = client.sendSome(frame(1)) }
          if resets { client.reset() } else { client.close() }
        }
        #expect(simulation.wait { $0.gateway.connections == 2_000 })
        #expect(simulation.wait { _ in simulation.openConnections() == 0 })
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
          let client = try Client(simulation.simulator.gateway?.port ?? 0)
          try client.send(Array([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc].prefix(number % 10)))
          if resets { client.reset() } else { client.close() }
        }
        #expect(simulation.wait { $0.gateway.handshakeFailures == 500 })
        return try simulation.client().exchange(frame(1, token: []))
      }
      #expect(answer == response(.missingDeviceToken, 1))
      #expect(ledger.connections.count { $0.end == "handshake_failed" } == 500)
    }

    @Test("A TLS record that was changed on its way ends the connection, and is told apart")
    func brokenRecord() async throws {
      let (_, ledger) = try await Simulation.run(tls: true) { simulation in
        let client = try simulation.client()
        try client.send(frame(1))
        #expect(simulation.wait { $0.gateway.accepted == 1 })
        client.sendRaw([0x17, 3, 3, 0, 40] + [UInt8](repeating: 9, count: 40))
        _ = try? client.receiveAll()
      }
      #expect(ledger.connections.map(\.end) == ["tls_error"])
      #expect(ledger.connections.first?.error?.contains("bad record mac") == true)
      #expect(ledger.gateway.accepted == 1)
    }

    // MARK: the end

    @Test(
      "stop() while senders send: it ends in time, and the books are what the answers say", arguments: [false, true])
    func stopUnderLoad(tls: Bool) async throws {
      let (results, ledger) = try await Simulation.run(tls: tls) { simulation in
        let proven = Mutex<[Int]>([])
        let threads = try (0..<4).map { _ in
          let done = DispatchSemaphore(value: 0)
          let handed = UncheckedClient(try simulation.client())
          Thread.detachNewThread {
            let client = handed.client
            var next: UInt32 = 1
            while client.sendSome(frames(next...next + 49)).error == nil, next < 50_000_000 {
              next += 50
              if next % 5_000 == 1, let answer = client.answer {
                proven.withLock { $0.append(Int(answer)) }
                break
              }
            }
            client.close()
            done.signal()
          }
          return done
        }
        #expect(simulation.wait { $0.gateway.accepted > 20_000 })
        let start = ContinuousClock.now
        let ledger = result { await simulation.simulator.stop() }
        let taken = ContinuousClock.now - start
        for thread in threads { thread.wait() }
        #expect(ledger.gateway.errorResponses == ["10": 4])
        return (taken: taken, proven: proven.withLock { $0 })
      }
      #expect(results.taken < .seconds(20))
      #expect(results.proven.count == 4)
      #expect(results.proven.reduce(0, +) == ledger.gateway.accepted)
      #expect(ledger.connections.map(\.end) == ["shutdown", "shutdown", "shutdown", "shutdown"])
    }

    @Test("stop() with connections in every state ends in time", arguments: [false, true])
    func stopInEveryState(tls: Bool) async throws {
      let list = try FeedbackList(path: nil)
      try await list.put((0..<50_000).map { Failure(topic: Simulation.topic, token: token($0), time: 1) })
      let (taken, ledger) = try await Simulation.run(tls: tls, list: list) {
        $0.behavior.rejections = [.init(.prefix([9]))]
        $0.behavior.response.delay = .seconds(60) ... .seconds(60)
        $0.linger = .milliseconds(500)
      } body: { simulation in
        // In its handshake (or new), silent, in a frame, waiting for a late answer, in the middle of a feedback list.
        let clients = [
          try Client(simulation.simulator.gateway?.port ?? 0), try simulation.client(), try simulation.client(),
          try simulation.client(), try simulation.feedbackClient(receiveBuffer: 4_096),
        ]
        try clients[2].send(frames(1...2).dropLast(3))
        try clients[3].send(frames(8...10))
        #expect(simulation.wait { $0.gateway.received == 4 && $0.feedback.tuplesSent > 0 })
        let start = ContinuousClock.now
        _ = result { await simulation.simulator.stop() }
        let taken = ContinuousClock.now - start
        for client in clients { client.close() }
        return taken
      }
      #expect(taken < .seconds(15))
      #expect(ledger.gateway.connections == 4)
      #expect(ledger.gateway.accepted == 2)
      #expect(ledger.gateway.discarded == 1)
      #expect(ledger.feedback.waiting == 50_000)
    }

    @Test("Started and stopped 50 times, nothing is left over")
    func startStop() async throws {
      func count(_ folder: String) -> Int { (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0 }
      func cycle() async throws {
        try await Simulation.run { simulation in
          let client = try simulation.client()
          try client.send(frames(1...3))
          #expect(simulation.wait { $0.gateway.accepted == 3 })
        }
      }
      try await cycle()
      let before = (files: count("/proc/self/fd"), threads: count("/proc/self/task"))
      for _ in 0..<50 { try await cycle() }
      // Other tests run meanwhile: this is for a leak, which would be 50 times as many.
      #expect(count("/proc/self/fd") < before.files + 40)
      #expect(count("/proc/self/task") < before.threads + 40)
    }

    @Test("Stopped twice, it gives the same ledger; a port in use is told")
    func stopTwice() async throws {
      let (second, first) = try await Simulation.run { simulation in
        let client = try simulation.client()
        try client.send(frame(1))
        #expect(simulation.wait { $0.gateway.accepted == 1 })
        client.close()
        let (port, list) = (simulation.simulator.gateway?.port ?? 0, simulation.list)
        let problem = result { () -> String in
          var options = SimulatorOptions()
          options.gateway = .init(host: "127.0.0.1", port: port)
          options.feedback = nil
          do {
            _ = try await Simulator.start(options, feedbackList: list)
            return "started"
          } catch {
            return "\(error)"
          }
        }
        #expect(problem == "gateway 127.0.0.1:\(port): Address already in use")
        return result { await simulation.simulator.stop() }
      }
      #expect(first == second)
      #expect(first.gateway.accepted == 1)
    }
  }
}

/// Handed to another thread once.
private struct UncheckedClient: @unchecked Sendable {
  let client: Client
  init(_ client: Client) { self.client = client }
}

extension Client {
  /// The identifier in an error response that is there; reads at most until the next one comes.
  fileprivate var answer: UInt32? {
    guard isReadable, let bytes = try? receive(6), bytes.count == 6 else { return nil }
    var offset = 0
    return try? ErrorResponse(parsing: bytes.rawBytes, at: &offset).identifier
  }
}
