import BinaryProtocol
import Bytes
import Glibc
import Measurement
import PushModel
import TestSupport
import Testing

@testable import GatewaySimulator

/// The books against what clients did, however their bytes were cut.
@Suite("Books", .waiting)
struct BooksTests {
  /// All of them in simulated time, see `GatewayTimeTests.everyCut`.
  @Test("Frames cut over two writes", arguments: [false, true])
  func cuts(tls: Bool) async throws {
    let bytes = frames(1...3)
    let length = frame(1).count
    let cuts = Array(stride(from: 1, to: bytes.count, by: TestRun.isWhole ? 1 : 23))
    let (_, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.prefix([2]))]
    } body: { simulation in
      for cut in cuts {
        let client = try simulation.client()
        let before = await simulation.snapshot().gateway
        try client.send(Array(bytes[..<cut]))
        // Frames that are there are taken before the rest comes.
        #expect(await simulation.wait { $0.gateway.received - before.received == cut / length }, "cut at \(cut)")
        let answer = try client.exchange(Array(bytes[cut...]))
        #expect(answer == response(.invalidToken, 2), "cut at \(cut)")
        client.close()
        #expect(await simulation.wait { _ in await simulation.openConnections() == (0, 0) })
      }
    }
    #expect(ledger.gateway.accepted == cuts.count)
    #expect(ledger.gateway.rejected == ["8": cuts.count])
    #expect(ledger.gateway.discarded == cuts.count)
    #expect(ledger.gateway.binary.incomplete == 0)
  }

  @Test("Byte by byte", arguments: [false, true])
  func byteByByte(tls: Bool) async throws {
    let (answer, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(5))]
    } body: { simulation in
      let client = try simulation.client()
      for byte in frames(1...5) { try client.send([byte]) }
      return try client.exchange(frames(6...7))
    }
    #expect(answer == response(.invalidToken, 5))
    #expect(ledger.gateway.received == 7)
  }

  @Test("Many in one write", arguments: [false, true])
  func manyInOne(tls: Bool) async throws {
    let (answer, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(19_000))]
    } body: {
      try $0.client().exchange(frames(1...20_000))
    }
    #expect(answer == response(.invalidToken, 19_000))
    #expect(ledger.gateway.received == 20_000)
    #expect(ledger.gateway.discarded == 1_000)
    #expect(ledger.gateway.bytes == frames(1...20_000).count)
  }

  @Test("Several connections at once on two threads", arguments: [false, true])
  func atOnce(tls: Bool) async throws {
    let (_, ledger) = try await Simulation.run(tls: tls) {
      $0.behavior.rejections = [.init(.every(1_000))]
    } body: { simulation in
      let clients = try (0..<8).map { _ in try simulation.client() }
      let bytes = frames(1...500)
      for _ in 0..<4 { for client in clients { _ = client.sendSome(bytes) } }
      for client in clients {
        client.finishWriting()
        _ = try client.receiveAll()
      }
    }
    // The eight sent 16,000; how the n-th are spread is chance.
    #expect(ledger.gateway.received == 16_000)
    #expect((1...8).contains(ledger.gateway.rejected["8"] ?? 0))
    #expect(ledger.connections.count == 8)
  }

  @Test("What each connection's entry says")
  func entries() async throws {
    let (ports, ledger) = try await Simulation.run {
      $0.behavior.rejections = [.init(.prefix([3]))]
    } body: { simulation in
      var ports: [Int] = []
      func connect(_ bytes: [UInt8], _ end: (Client) throws -> Void) async throws {
        let count = await simulation.snapshot().gateway.bytes
        let client = try simulation.client()
        ports.append(client.port)
        try client.send(bytes)
        #expect(await simulation.wait { $0.gateway.bytes > count })
        try end(client)
        #expect(await simulation.wait { _ in await simulation.openConnections().gateway == 0 })
      }
      try await connect(frames(1...4)) {
        _ = try $0.receiveAll()
        $0.close()
      }
      try await connect(frames(1...2)) { $0.close() }
      try await connect(frames(1...2)) { $0.reset() }
      try await connect(frames(1...2).dropLast(1)) { $0.close() }
      try await connect(frames(1...2).dropLast(1)) { $0.reset() }
      // A frame without an identifier, and a simple one, which cannot be answered.
      try await connect(frame(1) + frame(nil, token: token(3))) {
        let answer = try $0.receiveAll()
        #expect(answer == response(.invalidToken, 0))
        $0.close()
      }
      try await connect([0xff, 1, 2, 3]) {
        let answer = try $0.receiveAll()
        #expect(answer == response(.protocolError, 0))
        $0.close()
      }
      // Half a frame behind a rejection.
      try await connect(frames(3...5).dropLast(1)) {
        let answer = try $0.receiveAll()
        #expect(answer == response(.invalidToken, 3))
        $0.close()
      }
      return ports
    }
    #expect(ledger.connections.map(\.client) == ports.map { "127.0.0.1:\($0)" })
    #expect(
      ledger.connections.map(\.end) == [
        .rejected, .peerFin, .peerRst, .peerFin, .peerRst, .rejected, .rejected, .rejected,
      ])
    #expect(
      ledger.connections.map(\.rejected) == [
        .init(status: 8, identifier: 3, notification: 2), nil, nil, nil, nil,
        .init(status: 8, identifier: nil, notification: 1), .init(status: 128, identifier: nil, notification: 0),
        .init(status: 8, identifier: 3, notification: 0),
      ])
    #expect(ledger.connections.map(\.received) == [4, 2, 2, 1, 1, 2, 1, 2])
    #expect(ledger.connections.map(\.accepted) == [2, 2, 2, 1, 1, 1, 0, 0])
    #expect(ledger.gateway.binary.incomplete == 3)
    #expect(ledger.gateway.binary.malformed == 1)
    #expect(ledger.connections.allSatisfy { $0.topic == Simulation.topic && $0.opened <= $0.closed })
  }

  @Test("The list of connections has a limit, the counts have none")
  func listLimit() async throws {
    let (_, ledger) = try await Simulation.run {
      $0.maximumListedConnections = 3
    } body: { simulation in
      for _ in 0..<10 { _ = try simulation.client().exchange(frame(1)) }
    }
    #expect(ledger.connections.count == 3)
    #expect(ledger.connectionsOmitted == 7)
    #expect(ledger.gateway.accepted == 10)
  }

  /// Random frames, cuts and rejections: what a provider concludes from its own writes and the answers, as
  /// `BinarySession` does, is what the gateway has written down.
  @Test("What a provider concludes is what the gateway knows", arguments: seeds(4, of: 20))
  func law(seed: UInt64) async throws {
    let (fates, ledger) = try await Simulation.run(tls: seed % 2 == 1) { options in
      var random = SeededGenerator(seed: seed)
      options.behavior.seed = seed
      options.behavior.rejections = [
        .init(.every(random.number(20...200)), status: .invalidToken), .init(.probability(0.01), status: .none),
      ]
      if random.happens(oneIn: 2) { options.behavior.shutdownAfter = random.number(1...100) }
      if random.happens(oneIn: 2) { options.behavior.response.delay = .zero ... .milliseconds(5) }
      if random.happens(oneIn: 2) { options.behavior.response.pieces = [random.number(1...5), 1] }
      options.behavior.response.pieceDelay = .milliseconds(2)
      options.devices = try DevicePopulation(shares: .init(offline: 0.2, uninstalled: 0.1, unknown: 0.005))
      options.offline.onlineAfter = 20
    } body: { simulation in
      var random = SeededGenerator(seed: seed &+ 1_000)
      var sum = FateCounts()
      for _ in 0..<20 {
        let client = try simulation.client()
        var session = BinarySession()
        var bytes: [UInt8] = []
        for number in 1...UInt32(random.number(1...150)) {
          let isKnownBad = random.happens(oneIn: 200)
          bytes += frame(
            number, token: isKnownBad ? [] : token(random.number(0...1_000_000)),
            expiration: random.happens(oneIn: 2) ? nil : random.happens(oneIn: 3) ? 0 : .max)
          _ = session.write(identifier: number, isKnownBad: isKnownBad)
        }
        // The last frame's rejection proves the others.
        let last = UInt32.max
        bytes += frame(last, token: [])
        _ = session.write(identifier: last, isKnownBad: true)
        var rest = bytes[...]
        while !rest.isEmpty {
          let piece = rest.prefix(random.number(1...(random.happens(oneIn: 2) ? 50 : 5_000)))
          if client.sendSome(Array(piece)).error != nil { break }
          rest = rest.dropFirst(piece.count)
        }
        let answer = try client.receiveAll()
        client.close()
        var offset = 0
        let verdict = session.receive(try ErrorResponse(parsing: answer.rawBytes, at: &offset))
        #expect(offset == answer.count)
        #expect(verdict.candidates == 1)
        let fates = session.fates
        sum.accepted += fates.accepted
        sum.rejected += fates.rejected
        sum.discarded += fates.discarded
        sum.unknown += fates.unknown
      }
      return sum
    }
    #expect(fates.unknown == 0)
    #expect(ledger.gateway.accepted == fates.accepted)
    #expect(ledger.gateway.rejected.values.reduce(0, +) == fates.rejected)
    #expect(ledger.gateway.discarded == fates.discarded)
    #expect(ledger.gateway.binary.errorResponses.values.reduce(0, +) == 20)
    #expect(ledger.devices.uninstalled > 0 && ledger.devices.delivered > 0)
  }
}
