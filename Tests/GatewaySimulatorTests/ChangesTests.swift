import BinaryProtocol
import Measurement
import NIOCore
import PushModel
import TestSupport
import Testing

@testable import GatewaySimulator

/// What is changed while a gateway runs, on connections that are open and on later ones.
@Suite("Changes at run time", .waiting)
struct ChangesTests {
  // MARK: rejections

  @Test("The next two notifications to a token are rejected, on open connections, and no third one")
  func nextTwo() async throws {
    let token = token(7)
    try await Simulation.run { simulation in
      let (first, second) = (try simulation.client(), try simulation.client())
      try first.send(frame(1))
      try second.send(frame(2))
      await simulation.wait { $0.gateway.accepted == 2 }
      try await simulation.simulator.reject(.init(.tokens(TokenSet([token])), status: .invalidPayloadSize, times: 2))
      #expect(simulation.simulator.rejections.map(\.left) == [2])
      #expect(try first.exchange(frame(7)) == response(.invalidPayloadSize, 7))
      #expect(simulation.simulator.rejections.map(\.left) == [1])
      // Another token is accepted in between.
      #expect(try second.exchange(frame(3) + frame(7)) == response(.invalidPayloadSize, 7))
      #expect(simulation.simulator.rejections.map(\.left) == [0])
      #expect(try simulation.client().exchange(frame(7)) == [])
      // A further rule takes the place of the one that is over.
      try await simulation.simulator.reject(.init(.every(1), times: 1))
      #expect(simulation.simulator.rejections.map(\.left) == [1])
    }
  }

  @Test("Of many connections at the same time, exactly as many notifications are rejected as a rule has times")
  func manyConnections() async throws {
    let ledger = try await Simulation.run { simulation in
      let clients = try (0..<40).map { _ in try simulation.client() }
      try await simulation.simulator.reject(.init(.every(1), status: .processingError, times: 25))
      for client in clients { try client.send(frames(1...3)) }
      await simulation.wait { $0.gateway.received == 120 }
      for client in clients { client.close() }
    }.ledger
    #expect(ledger.gateway.rejected == ["1": 25])
    #expect(ledger.gateway.accepted == 15 * 3 && ledger.gateway.discarded == 25 * 2)
  }

  @Test("A rule of a topic rejects that topic's notifications and no others") func topic() async throws {
    try await Simulation.run(tls: true) { simulation in
      let (one, other) = (try simulation.client(), try simulation.client(topic: Simulation.otherTopic))
      try await simulation.simulator.reject(.init(.every(1), topic: Simulation.topic))
      #expect(try one.exchange(frame(1)) == response(.invalidToken, 1))
      #expect(try other.exchange(frame(2)) == [])
    }
  }

  @Test("A rule goes on with its counts when something else changes, and begins anew after a reset")
  func continuity() async throws {
    try await Simulation.run { simulation in
      try await simulation.simulator.change { $0.rejections = [.init(.every(5))] }
      let client = try simulation.client()
      try client.send(frames(1...3))
      await simulation.wait { $0.gateway.accepted == 3 }
      try await simulation.simulator.change { $0.connection.idle = .seconds(3_000) }
      #expect(try client.exchange(frames(4...6)) == response(.invalidToken, 5))
      try await simulation.simulator.reset()
      #expect(simulation.simulator.rejections.isEmpty && simulation.simulator.behavior.connection.idle == nil)
      try await simulation.simulator.change { $0.rejections = [.init(.every(5))] }
      #expect(try simulation.client().exchange(frames(1...9)) == response(.invalidToken, 5))
    }
  }

  @Test("What a gateway is given when it starts stays, and rules have a limit") func refusals() async throws {
    try await Simulation.run { simulation in
      let simulator = simulation.simulator
      await #expect(throws: SimulatorError.self) { try await simulator.change { $0.seed = 77 } }
      await #expect(throws: SimulatorError.self) { try await simulator.change { $0.reading.receiveBuffer = 4_096 } }
      try await simulator.change { behavior in
        behavior.rejections = (1...1_000).map { .init(.every($0 + 1_000)) }
      }
      await #expect(throws: SimulatorError.self) { try await simulator.reject(.init(.every(1))) }
      #expect(simulator.behavior.seed == 1 && simulator.rejections.count == 1_000)
    }
  }

  // MARK: answers and reading

  @Test("A silent gateway reads nothing and answers nothing, then both", arguments: [false, true])
  func silence(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) { $0.behavior.response.delay = .seconds(1) ... .seconds(1) }
    let waiting = try gateway.connect()
    waiting.send(frame(1, token: []))
    gateway.advance(by: .milliseconds(500))
    gateway.books.beSilent(for: .seconds(5))
    let later = try gateway.connect()
    later.send(frames(2...4))
    gateway.advance(by: .milliseconds(4_999))
    #expect(waiting.received == [] && waiting.isOpen && later.isOpen)
    // Read were the bytes that had begun to come, at most.
    #expect(gateway.tally.received == 1)
    gateway.advance(by: .milliseconds(2))
    #expect(waiting.received == response(.missingDeviceToken, 1))
    #expect(gateway.tally.received == 4)
    later.send(frame(5, token: []))
    gateway.advance(by: .seconds(2))
    #expect(later.received == response(.missingDeviceToken, 5))
    _ = gateway.end()
  }

  @Test("A silence is ended early, and replaced by a longer or a shorter one", arguments: [0, 2, 9])
  func otherSilence(seconds: Int64) throws {
    let gateway = try SimulatedGateway()
    let client = try gateway.connect()
    gateway.books.beSilent(for: .seconds(5))
    client.send(frame(1, token: []))
    gateway.advance(by: .seconds(1))
    gateway.books.beSilent(for: .seconds(seconds))
    gateway.advance(by: .seconds(seconds) - .milliseconds(1))
    #expect(client.received == [] || seconds == 0)
    gateway.advance(by: .milliseconds(2))
    #expect(client.received == response(.missingDeviceToken, 1))
    _ = gateway.end()
  }

  @Test("A piece of an error response that is due in a silence comes after it") func pieces() throws {
    let gateway = try SimulatedGateway {
      $0.behavior.response.pieces = [2]
      $0.behavior.response.pieceDelay = .seconds(1)
    }
    let client = try gateway.connect()
    client.send(frame(1, token: []))
    gateway.advance(by: .milliseconds(500))
    gateway.books.beSilent(for: .seconds(10))
    gateway.advance(by: .seconds(9))
    #expect(client.received == Array(response(.missingDeviceToken, 1).prefix(2)))
    gateway.advance(by: .seconds(2))
    #expect(client.received == response(.missingDeviceToken, 1))
    _ = gateway.end()
  }

  @Test("An idle time is not over while the gateway is silent") func silentAndIdle() throws {
    let gateway = try SimulatedGateway { $0.behavior.connection.idle = .seconds(2) }
    let client = try gateway.connect()
    gateway.books.beSilent(for: .seconds(30))
    gateway.advance(by: .seconds(29))
    #expect(client.isOpen)
    gateway.advance(by: .seconds(5))
    #expect(!client.isOpen)
    _ = gateway.end()
  }

  @Test("Another rate holds for open connections, also while one waits for the old one") func readRate() throws {
    let gateway = try SimulatedGateway { $0.behavior.reading.bytesPerSecond = 1_000 }
    let client = try gateway.connect()
    let behavior = gateway.shared.options.behavior
    func read(at rate: Int?) {
      var changed = behavior
      changed.reading.bytesPerSecond = rate
      gateway.books.adopt(Conduct(changed, DevicePopulation()))
    }
    let frame = frame(1)
    client.send((0..<2_000).flatMap { _ in frame })
    gateway.advance(by: .seconds(10))
    let slow = gateway.tally.bytes
    // Ten seconds, a bucket and a read.
    #expect(slow >= 9_000 && slow <= 10_000 + 1_024)
    read(at: 10_000)
    gateway.advance(by: .seconds(2))
    let faster = gateway.tally.bytes - slow
    #expect(faster >= 19_000 && faster <= 20_000 + 1_024)
    read(at: nil)
    gateway.advance(by: .milliseconds(1))
    #expect(gateway.tally.received == 2_000)
    _ = gateway.end()
  }

  @Test("The answer to a rejection is as the behavior says at that time") func answers() async throws {
    try await Simulation.run { simulation in
      let (one, other) = (try simulation.client(), try simulation.client())
      try one.send(frame(1))
      try other.send(frame(2))
      await simulation.wait { $0.gateway.accepted == 2 }
      try await simulation.simulator.change { $0.response.identifier = .zero }
      #expect(try one.exchange(frame(3, token: [])) == response(.missingDeviceToken, 0))
      try await simulation.simulator.change { $0.response.ending = .fin }
      #expect(try other.exchange(frame(4, token: [])) == [])
      try await simulation.simulator.change { $0 = Behavior() }
      #expect(try simulation.client().exchange(frame(5, token: [])) == response(.missingDeviceToken, 5))
    }
  }

  // MARK: connections

  @Test("Connections of a topic are closed as asked, and others stay", arguments: ClosingWay.allCases)
  func closing(way: ClosingWay) async throws {
    let ledger = try await Simulation.run(tls: true) { simulation in
      let (one, other) = (try simulation.client(), try simulation.client(topic: Simulation.otherTopic))
      try one.send(frames(1...3))
      try other.send(frame(4))
      await simulation.wait { $0.gateway.accepted == 4 }
      await simulation.simulator.closeConnections(way, topic: Simulation.topic)
      switch way {
      case .shutdown: #expect(try one.receiveAll() == response(.shutdown, 3))
      case .fin: #expect(try one.receiveAll() == [])
      case .rst: #expect(throws: ClientError.self) { try one.receiveAll() }
      }
      one.close()
      #expect(try other.exchange(frame(5)) == [])
      #expect(try simulation.client().exchange(frame(6)) == [])
    }.ledger
    #expect(ledger.gateway.accepted == 6)
    #expect(ledger.connections.count { $0.end == (way == .shutdown ? .shutdown : .local) } == 1)
  }

  // MARK: devices

  @Test("A device is offline, then active: its latest notification is delivered") func offlineThenActive() async throws
  {
    let ledger = try await Simulation.run { simulation in
      let simulator = simulation.simulator
      try await simulator.setDevices([(token(1), .offline), (token(2), .offline)])
      #expect(simulator.device(of: token(1), topic: "any") == .offline)
      #expect(try simulation.client().exchange(frame(1) + frame(1) + frame(2) + frame(3)) == [])
      var devices = await simulation.snapshot().devices
      #expect(devices.stored == 2 && devices.coalesced == 1 && devices.delivered == 1)
      try await simulator.setDevices([(token(1), .active), (token(2), .uninstalled)])
      devices = await simulation.snapshot().devices
      #expect(devices.stored == 0 && devices.delivered == 2 && devices.dropped == 1)
      #expect(try simulation.client().exchange(frame(1) + frame(2)) == [])
    }.ledger
    #expect(ledger.devices.uninstalled == 1 && ledger.devices.delivered == 3 && ledger.feedback.waiting == 1)
  }

  @Test("Known devices are those of the file and the changes, in order; a change is undone") func known() async throws {
    try await Simulation.run {
      $0.devices = DevicePopulation(tokens: [TokenKey(token(5).rawBytes): .active])
      $0.maximumChangedDevices = 2
    } body: { simulation in
      let simulator = simulation.simulator
      #expect(try simulation.client().exchange(frame(4)) == response(.invalidToken, 4))
      try await simulator.setDevices([(token(4), .active), ([0xab], .unknown)])
      #expect(simulator.knownDevices.map(\.token) == [token(4), token(5), [0xab]])
      #expect(simulator.knownDevices.map(\.device) == [.active, .active, .unknown])
      #expect(try simulation.client().exchange(frame(4)) == [])
      await #expect(throws: SimulatorError.self) {
        try await simulator.setDevices([(token(4), nil), (token(8), .active), (token(9), .active)])
      }
      #expect(simulator.device(of: token(4), topic: "any") == .active)
      try await simulator.setDevices([(token(4), nil), (token(8), .active)])
      #expect(try simulation.client().exchange(frame(4)) == response(.invalidToken, 4))
    }
  }

  // MARK: reset

  @Test("After a reset counts begin at 0, and the books of the whole run still balance") func reset() async throws {
    let ledger = try await Simulation.run {
      $0.behavior.rejections = [.init(.prefix(token(9)))]
      $0.payloads = PayloadScrutiny()
    } body: { simulation in
      let simulator = simulation.simulator
      try await simulator.setDevices([(token(1), .offline), (token(2), .uninstalled)])
      let client = try simulation.client()
      try client.send(frames(1...4))
      #expect(try simulation.client().exchange(frame(9) + frame(3)) == response(.invalidToken, 9))
      await simulation.wait { $0.gateway.received == 6 }
      #expect(await simulator.counts().gateway.received == 6)
      try await simulator.change { $0.rejections = [] }
      await simulator.beSilent(for: .seconds(1_000))
      try await simulator.reset()

      var counts = await simulator.counts()
      #expect(
        counts.gateway.received == 0 && counts.gateway.rejected == [:] && counts.gateway.binary.errorResponses == [:])
      #expect(counts.payloads == Ledger.Payloads(kinds: [:], lint: [:]))
      #expect(counts.devices == Ledger.Devices() && counts.feedback.waiting == 0)
      // The connection that was open still is, and the devices and rules are those of the start.
      #expect(try client.exchange(frames(1...2) + frame(9)) == response(.invalidToken, 9))
      counts = await simulator.counts()
      #expect(counts.gateway.accepted == 2 && counts.devices.delivered == 2 && counts.gateway.rejected == ["8": 1])
      #expect(counts.payloads?.kinds == ["alert": 3])
    }.ledger
    #expect(ledger.gateway.received == 9 && ledger.devices.dropped == 1 && ledger.devices.uninstalled == 1)
  }
}
