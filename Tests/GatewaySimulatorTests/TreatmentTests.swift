import BinaryProtocol
import Glibc
import Measurement
import TestSupport
import Testing

@testable import GatewaySimulator

/// How fast the gateway reads.
@Suite("Behavior: slow reading", .waiting)
struct ReadingTests {
  @Test("Bytes a second: the sender is held up, and nothing is lost", arguments: [false, true])
  func rate(tls: Bool) async throws {
    let bytes = frames(1...1_000)
    let (taken, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.reading.bytesPerSecond = 100_000
      $0.behavior.reading.receiveBuffer = 4_096
    } body: { simulation in
      let start = ContinuousClock.now
      let client = try simulation.client(sendBuffer: 4_096)
      try client.send(bytes)
      let sent = ContinuousClock.now - start
      client.close()
      #expect(await simulation.wait { $0.gateway.received == 1_000 })
      return (sent, ContinuousClock.now - start)
    }
    // 71 kB, less what buffers hold.
    #expect(taken.0 > .milliseconds(200))
    #expect(taken.1 > .milliseconds(550))
    #expect(ledger.gateway.accepted == 1_000)
    #expect(ledger.gateway.bytes == bytes.count)
  }

  @Test("Pauses after so many bytes", arguments: [false, true])
  func pauses(tls: Bool) async throws {
    let bytes = frames(1...100)
    let (taken, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.reading.pauseEvery = 1_000
      $0.behavior.reading.pause = .milliseconds(100)
    } body: { simulation in
      let start = ContinuousClock.now
      let client = try simulation.client()
      for first in stride(from: 0, to: bytes.count, by: 500) {
        try client.send(Array(bytes[first..<min(first + 500, bytes.count)]))
      }
      #expect(await simulation.wait { $0.gateway.received == 100 })
      let taken = ContinuousClock.now - start
      client.close()
      return taken
    }
    // 7,100 bytes; TLS brings up to 2,000 at once.
    #expect(taken > .milliseconds(tls ? 200 : 600))
    #expect(ledger.gateway.accepted == 100)
    #expect(ledger.connections.map(\.end) == [.peerFin])
  }

  @Test("The receive buffer bounds what the gateway's kernel takes while it does not read")
  func receiveBuffer() async throws {
    func capacity(_ length: Int?) async throws -> Int {
      try await Simulation.run {
        $0.behavior.reading.receiveBuffer = length
        $0.behavior.reading.pauseEvery = 1
        $0.behavior.reading.pause = .seconds(3_600)
      } body: { simulation in
        let client = try simulation.client(patience: .milliseconds(250), sendBuffer: 4_096)
        try client.send(frame(1))
        #expect(await simulation.wait { $0.gateway.received == 1 })
        let sent = client.sendSome([UInt8](repeating: 0, count: 1 << 20))
        #expect(length == nil || sent.error == .late)
        client.reset()
        return sent.count
      }.result
    }
    let small = try await capacity(8_192)
    #expect(small < 100_000)
    #expect(try await capacity(nil) > 2 * small)
  }

}

/// Which connections are accepted, and how long they live.
@Suite("Behavior: connections", .waiting)
struct AdmissionTests {
  @Test("Accept, then close", arguments: [false, true])
  func acceptThenClose(tls: Bool) async throws {
    let (_, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.connection.acceptThenClose = 1
    } body: { simulation in
      let ended = try simulation.client().receiveAll()
      #expect(ended == [])
    }
    #expect(ledger.gateway.handshakes == 1)
    #expect(ledger.gateway.refused == 1)
    #expect(ledger.connections.map(\.end) == [.refused])
  }

  @Test("Accept, then close by share: a seed is a result")
  func acceptThenCloseShare() async throws {
    func run(_ seed: UInt64) async throws -> [Bool] {
      try await Simulation.run {
        $0.behavior.seed = seed
        $0.behavior.connection.acceptThenClose = 0.5
      } body: { simulation in
        for number in 1...40 {
          let client = try simulation.client()
          _ = client.sendSome(frame(1))
          client.finishWriting()
          _ = try? client.receiveAll()
          client.close()
          // They are listed as they end.
          #expect(
            await simulation.wait {
              let open = await simulation.openConnections()
              return $0.gateway.accepted + $0.gateway.refused == number && open.gateway == 0
            })
        }
      }.ledger.connections.map { $0.end == .refused }
    }
    let first = try await run(1)
    #expect(try await run(1) == first)
    #expect(try await run(2) != first)
    #expect((8...32).contains(first.count { $0 }))
  }

  @Test("A topic of the wrong environment is closed after the handshake, another is not")
  func wrongEnvironment() async throws {
    let (answers, ledger) = try await Simulation.run(tls: true) {
      $0.behavior.connection.wrongEnvironmentTopics = [Simulation.topic]
      $0.behavior.rejections = [.init(.every(1))]
    } body: { simulation in
      let wrong = try simulation.client()
      let ended = try wrong.receiveAll()
      return [ended, try simulation.client(topic: Simulation.otherTopic).exchange(frame(1))]
    }
    #expect(answers == [[], response(.invalidToken, 1)])
    #expect(ledger.gateway.refused == 1)
    #expect(ledger.connections.map(\.topic) == [Simulation.topic, Simulation.otherTopic])
  }

  @Test("A handshake is answered with an alert")
  func handshakeFailure() async throws {
    let (error, ledger) = try await Simulation.run(tls: true) {
      $0.behavior.connection.handshakeFailure = 1
    } body: { simulation in
      #expect(throws: ClientError.tls) { try simulation.client() }
      // The bytes themselves.
      let plain = try simulation.client(raw: true)
      try plain.send([0x16, 3, 1, 0, 1, 0])
      let answer = try plain.receiveAll()
      plain.close()
      return answer
    }
    #expect(error == [0x15, 3, 1, 0, 2, 2, 40])
    #expect(ledger.gateway.handshakes == 0)
    #expect(ledger.gateway.handshakeFailures == 2)
    #expect(ledger.connections.map(\.end) == [.handshakeFailed, .handshakeFailed])
  }

  @Test("Nobody can wait for an alert for ever")
  func handshakeFailureTimeout() async throws {
    let (_, ledger) = try await Simulation.run(tls: true) {
      $0.behavior.connection.handshakeFailure = 1
      $0.handshakeTimeout = .milliseconds(200)
    } body: { simulation in
      let silent = try simulation.client(raw: true)
      #expect(try silent.receiveAll() == [])
    }
    #expect(ledger.connections.map(\.end) == [.handshakeFailed])
  }

  @Test("At most so many connections per topic; one that ends makes room")
  func limit() async throws {
    let (_, ledger) = try await Simulation.run(tls: true) {
      $0.behavior.connection.limitPerTopic = 2
    } body: { simulation in
      let clients = try (0..<2).map { _ in try simulation.client() }
      for client in clients { try client.send(frame(1)) }
      #expect(await simulation.wait { $0.gateway.accepted == 2 })
      let ended = try simulation.client().receiveAll()
      #expect(ended == [])
      // Another topic has a limit of its own.
      let other = try simulation.client(topic: Simulation.otherTopic)
      try other.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 3 })
      clients[0].close()
      #expect(await simulation.wait { _ in await simulation.openConnections().gateway == 2 })
      let late = try simulation.client()
      try late.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 4 })
    }
    #expect(ledger.gateway.refused == 1)
  }

  @Test("Reconnecting too fast is refused")
  func reconnects() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.behavior.connection.reconnectsPerSecond = 1
      $0.behavior.connection.refusal = .seconds(86_400)
    } body: { simulation in
      // However slow the machine is, once two come within a second.
      let isRefused = try await simulation.wait { _ in
        let before = await simulation.snapshot().gateway
        let client = try simulation.client()
        _ = client.sendSome(frame(1))
        client.finishWriting()
        _ = try? client.receiveAll()
        client.close()
        var after = before
        await simulation.wait {
          after = $0.gateway
          return after.accepted + after.refused > before.accepted + before.refused
        }
        return after.refused > 0
      }
      #expect(isRefused)
      #expect(try simulation.client().receiveAll() == [])
    }
    #expect(ledger.gateway.refused == 2)
    #expect(ledger.gateway.accepted >= 1)
  }

  @Test("Times that mean never can be given everywhere", arguments: [false, true])
  func never(tls: Bool) async throws {
    let never = Duration.seconds(1 << 56)
    let (_, ledger) = try await Simulation.run(tls: tls) {
      ($0.handshakeTimeout, $0.frameTimeout, $0.feedbackTimeout) = (never, never, never)
      $0.linger = never
      $0.behavior.connection.reconnectsPerSecond = 1
      ($0.behavior.connection.refusal, $0.behavior.connection.idle) = (never, never)
      $0.behavior.connection.lifetime = never
      ($0.behavior.reading.bytesPerSecond, $0.behavior.reading.pauseEvery) = (1_000, 1)
      $0.behavior.reading.pause = never
    } body: { simulation in
      let (silent, first) = (try simulation.client(raw: true), try simulation.client())
      try first.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 1 || $0.gateway.refused == 1 })
      for client in [silent, first] { client.reset() }
    }
    #expect(ledger.gateway.connections == 2)
  }

  @Test("A silent connection is closed, and not before its time", arguments: [false, true])
  func idle(tls: Bool) async throws {
    let (taken, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.connection.idle = .milliseconds(600)
    } body: { simulation in
      let start = ContinuousClock.now
      let hasEnded = try simulation.client().hasEnded()
      #expect(hasEnded)
      return ContinuousClock.now - start
    }
    #expect(taken >= .milliseconds(600))
    #expect(ledger.connections.map(\.end) == [.idle])
  }

  @Test("A connection is shut down at the end of its life, and not before", arguments: [false, true])
  func lifetime(tls: Bool) async throws {
    let (taken, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.connection.lifetime = .milliseconds(600)
    } body: { simulation in
      let start = ContinuousClock.now
      let client = try simulation.client()
      // On a slow machine its life is over before it has carried anything.
      _ = client.sendSome(frames(1...3))
      #expect(try client.hasEnded())
      return ContinuousClock.now - start
    }
    #expect(taken >= .milliseconds(600))
    #expect(ledger.connections.map(\.end) == [.lifetime])
  }

  @Test("Connections over the limit are closed and counted; one that ends makes room")
  func maximumConnections() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.maximumConnections = 2
    } body: { simulation in
      let clients = try (0..<2).map { _ in try simulation.client() }
      for client in clients { try client.send(frame(1)) }
      #expect(await simulation.wait { $0.gateway.accepted == 2 })
      for _ in 0..<3 { _ = try? simulation.client().receiveAll() }
      #expect(await simulation.wait { $0.gateway.connections == 5 })
      _ = try? simulation.feedbackClient().receiveAll()
      for client in clients { client.close() }
      #expect(await simulation.wait { _ in await simulation.openConnections().gateway == 0 })
      let late = try simulation.client()
      try late.send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 3 })
    }
    #expect(ledger.gateway.handshakeFailures == 3)
    #expect(ledger.feedback.connections == 1)
    #expect(ledger.feedback.handshakeFailures == 1)
  }

  @Test("Connections that hold too much memory together: further ones are closed, and one that ends makes room")
  func connectionMemory() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.maximumConnectionMemory = 2 * 8 << 10
    } body: { simulation in
      let clients = try (0..<2).map { _ in try simulation.client() }
      for client in clients { try client.send(frame(1)) }
      #expect(await simulation.wait { $0.gateway.accepted == 2 })
      _ = try? simulation.client().receiveAll()
      _ = try? simulation.feedbackClient().receiveAll()
      for client in clients { client.close() }
      #expect(await simulation.wait { _ in await simulation.openConnections().gateway == 0 })
      try simulation.client().send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 3 })
    }
    #expect(ledger.gateway.handshakeFailures == 1 && ledger.feedback.handshakeFailures == 1)
    #expect(ledger.connections.count { $0.end == .refused } == 1)
  }

  @Test("Unfinished frames that take too much memory together: the oldest is given up, and nobody else notices")
  func frameMemory() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.maximumMemory = 400 << 10
      // One loop reads a connection before it accepts the next; two may not, and the oldest is who was read first.
      $0.threads = 1
    } body: { simulation in
      // 02 | length u32 | items: a buffer of 128 KiB holds it.
      let half: [UInt8] = [2, 0, 1, 0xff, 0] + Array(repeating: 0, count: 100_000)
      var hanging: [Client] = []
      for number in 1...6 {
        let client = try simulation.client()
        _ = client.sendSome(half)
        hanging.append(client)
        // Three of them fit.
        #expect(await simulation.wait { $0.gateway.binary.incomplete == max(0, number - 3) })
        #expect(await simulation.wait { _ in await simulation.openConnections().gateway == min(number, 3) })
      }
      // The oldest are gone, the others go on.
      for client in hanging[..<3] { #expect(try client.receiveAll().isEmpty) }
      for client in hanging[3...] { client.close() }
      #expect(await simulation.wait { $0.gateway.binary.incomplete == 6 })
      // Their memory is free again.
      let client = try simulation.client()
      _ = client.sendSome(half)
      try simulation.client().send(frame(1))
      #expect(await simulation.wait { $0.gateway.accepted == 1 && $0.gateway.binary.incomplete == 6 })
      client.close()
    }
    #expect(ledger.connections.count { $0.end == .memory } == 3)
  }

  @Test("A frame that does not go on is given up, and not before its time")
  func frameTimeout() async throws {
    let (taken, ledger) = try await Simulation.run {
      $0.frameTimeout = .milliseconds(500)
    } body: { simulation in
      let start = ContinuousClock.now
      let client = try simulation.client()
      try client.send(frames(1...2).dropLast(3))
      #expect(try client.hasEnded())
      return ContinuousClock.now - start
    }
    #expect(taken >= .milliseconds(500))
    #expect(ledger.gateway.accepted == 1)
    #expect(ledger.gateway.binary.incomplete == 1)
    #expect(ledger.connections.map(\.end) == [.frameTimeout])
  }
}
