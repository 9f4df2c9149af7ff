import Bytes
import DeviceProtocol
import Measurement
import NIOCore
import Synchronization
import TLSFoundation
import TLSTransport
import TestSupport
import Testing

@testable import DeviceFleet
@testable import GatewaySimulator

/// The server of local push on real sockets, with clients of the test and with fleets.
@Suite("Local push", .waiting)
struct LocalPushChannelTests {
  private static let place = SimulatorOptions.Address(host: "127.0.0.1", port: 0)

  /// A client in the hands of a test.
  private final class Speaker {
    let client: Client
    private let order: MessageFraming.ByteOrder
    private var framing: MessageFraming
    private var reader = LocalPushReader()
    private var rest: [UInt8] = []

    init(_ address: SimulatorOptions.Address?, order: MessageFraming.ByteOrder = .littleEndian) throws {
      client = try Client(address?.port ?? 0, patience: Simulation.patience)
      self.order = order
      framing = MessageFraming(order: order)
    }

    func send(_ messages: LocalPushMessage...) throws {
      var output = ByteWriter(capacity: 256)
      for message in messages { message.write(order, to: &output) }
      try client.send(Array(copying: output.bytes))
    }

    /// The next message; `nil` at the end of the connection.
    func next() throws -> LocalPushMessage? {
      while true {
        let bytes = rest
        if let body = try framing.next(bytes.rawBytes) {
          let message = try reader.read(bytes.rawBytes.extracting(body))
          rest.removeFirst(body.upperBound)
          return message
        }
        let more = try client.receive()
        guard !more.isEmpty else { return nil }
        rest += more
      }
    }

    func register(_ device: UInt64) throws {
      try send(LocalPushMessage(request: 1, .user(.init(device: device))))
      #expect(try next() == LocalPushMessage(acknowledging: 1))
    }
  }

  @Test("A registered user gets a text with its sending time, in the order of the client's lengths")
  func conversation() async throws {
    for order in MessageFraming.ByteOrder.allCases {
      let before = WallClock.system.nanoseconds()
      let ledger = try await Simulation.run {
        $0.localPush = LocalPushService(notifications: Self.place, control: Self.place)
      } body: { simulation in
        let device = try Speaker(simulation.simulator.localPush, order: order)
        try device.register(7)
        let alice = LocalPushMessage.User(device: 7)
        let app = try Speaker(simulation.simulator.localPushControl, order: order)
        try app.send(LocalPushMessage(request: 1, .user(.init(device: 8))))
        #expect(try app.next() == LocalPushMessage(acknowledging: 1))
        #expect(try app.next()?.content == .directory([alice]))
        try app.send(LocalPushMessage(acknowledging: 1))
        let outcome = simulation.simulator.offerLocalPush(.text("Hello", from: .server, to: alice))
        #expect(outcome == .sent)
        let text = try #require(try device.next())
        #expect(text.content == .text("Hello", from: .server, to: alice) && text.identifier == 1)
        let sent = try #require(text.sent)
        #expect((before...WallClock.system.nanoseconds()).contains(sent))
        try device.send(LocalPushMessage(acknowledging: 1))
        try app.send(LocalPushMessage(request: 2, .invite(from: .init(device: 8), to: alice)))
        #expect(try app.next() == LocalPushMessage(acknowledging: 2))
        #expect(try device.next()?.content == .invite(from: .init(device: 8), to: alice))
        try device.send(LocalPushMessage(acknowledging: 2))
        let absent = simulation.simulator.offerLocalPush(.text("Hello", from: alice, to: .init(device: 9)))
        #expect(absent == .absent && simulation.simulator.offerLocalPush(.heartbeat(count: 1)) == nil)
        let isCounted = await simulation.wait {
          $0.localPush?.texts.acknowledged == 1 && $0.localPush?.invitations.acknowledged == 1
        }
        #expect(isCounted)
        device.client.close()
        app.client.close()
        let isOver = await simulation.wait { $0.localPush?.here == 0 }
        #expect(isOver)
      }.ledger
      let books = try #require(ledger.localPush)
      #expect(books.connections == 2 && books.handshakeFailures == 0 && books.refused == [:])
      #expect(books.registered == ["notification": 1, "control": 1] && books.requests == ["user": 2, "invite": 1])
      #expect(books.texts.offered == 2 && books.texts.absent == 1 && books.directories.acknowledged >= 1)
      #expect(books.sources == ["control": 2, "device": 1])
    }
  }

  @Test("Bytes that are no message, and a first message that is no user, end their connection alone")
  func refused() async throws {
    let ledger = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
    } body: { simulation in
      let device = try Speaker(simulation.simulator.localPush)
      try device.register(7)
      for bytes in [Array("GET / HTTP/1.1\r\n\r\n".utf8), [2, 0, 0, 0] + Array("{}".utf8), [0, 0, 0, 0]] {
        let client = try Client(simulation.simulator.localPush?.port ?? 0, patience: Simulation.patience)
        try client.send(bytes)
        #expect(try client.receive() == [])
        client.close()
      }
      let hasty = try Speaker(simulation.simulator.localPush)
      try hasty.send(LocalPushMessage(request: 1, .directory([])))
      #expect(try hasty.next() == nil)
      let outcome = simulation.simulator.offerLocalPush(.invite(from: .server, to: .init(device: 7)))
      #expect(outcome == .sent)
      #expect(try device.next()?.content == .invite(from: .server, to: .init(device: 7)))
      device.client.close()
      hasty.client.close()
      let isOver = await simulation.wait { $0.localPush?.here == 0 }
      #expect(isOver)
    }.ledger
    let books = try #require(ledger.localPush)
    #expect(books.connections == 5 && books.malformed == 3 && books.refused == ["unregistered": 1])
    #expect(books.invitations.lost == 1 && books.invitations.sent == 1)
  }

  @Test("Requests are acknowledged to the end of the server, which waits for what is under way")
  func end() async throws {
    let ledger = try await Simulation.run(endsAll: false) {
      $0.localPush = LocalPushService(notifications: Self.place)
    } body: { simulation in
      let device = try Speaker(simulation.simulator.localPush)
      try device.register(7)
      simulation.simulator.offerLocalPush(.text("last", from: .server, to: .init(device: 7)))
      let ending = Task { await simulation.simulator.stop() }
      #expect(try device.next()?.content == .text("last", from: .server, to: .init(device: 7)))
      // The server sends nothing more, and still reads.
      #expect(try device.next() == nil)
      try device.send(LocalPushMessage(acknowledging: 1))
      device.client.close()
      _ = await ending.value
    }.ledger
    #expect(ledger.localPush?.texts.acknowledged == 1 && ledger.localPush?.texts.lost == 0)
  }

  // MARK: fleets

  private static func plan(_ simulation: Simulation, count: Int) throws -> FleetPlan {
    let port = simulation.simulator.localPush?.port ?? 0
    var plan = FleetPlan(gateway: .init(host: "127.0.0.1", port: port))
    plan.gateway.addresses = [try SocketAddress(ipAddress: "127.0.0.1", port: port)]
    plan.count = count
    plan.duration = .seconds(120)
    plan.connections.rate = 10_000
    plan.connections.backoff = .milliseconds(20)
    plan.connections.maximumBackoff = .milliseconds(200)
    plan.localPush = LocalPushPlan()
    return plan
  }

  /// Runs a fleet until the body has ended.
  private static func run<Value: Sendable>(
    _ plan: FleetPlan, tls: TLSContext? = nil, _ body: @Sendable (FleetRunner) async throws -> Value
  ) async throws -> FleetResult {
    let runner = try FleetRunner(plan, tls: tls)
    async let result = runner.run()
    do {
      _ = try await body(runner)
    } catch {
      runner.stop()
      _ = try await result
      throw error
    }
    runner.stop()
    let end = try await result
    for invariant in end.invariants { #expect(invariant.holds, "\(invariant.name): \(invariant.detail)") }
    return end
  }

  @Test("A fleet receives what the server sends, each message once, and the books are equal", arguments: [false, true])
  func fleet(usesTLS: Bool) async throws {
    try await inTemporaryFolder { folder in
      let directory = IdentityDirectory(folder.path)
      _ = try directory.issue(.init(topics: ["a"]))
      var configuration = TLSConfiguration.server(identity: try directory.gateway())
      configuration.peerCertificate = .notAsked
      let serverTLS = usesTLS ? try TLSContext(configuration) : nil
      var ofClient = TLSConfiguration.client(identity: nil)
      ofClient.authorityFile = directory.authorityFile
      ofClient.peerCertificate = .required
      let clientTLS = usesTLS ? try TLSContext(ofClient) : nil
      let (fleet, ledger) = try await Simulation.run {
        $0.localPush = LocalPushService(notifications: Self.place)
        $0.localPush?.tls = serverTLS
      } body: { simulation in
        var plan = try Self.plan(simulation, count: 20)
        (plan.first, plan.threads, plan.verifiesName) = (100, 2, false)
        return try await Self.run(plan, tls: clientTLS) { runner in
          let areHere = await simulation.wait { $0.localPush?.here == 20 }
          #expect(areHere)
          for number in 0..<200 {
            let user = LocalPushMessage.User(device: UInt64(100 + number % 21))
            simulation.simulator.offerLocalPush(
              number.isMultiple(of: 4) ? .invite(from: .server, to: user) : .text("abc", from: .server, to: user))
          }
          let hasAll = await simulation.wait {
            ($0.localPush?.texts.unacknowledged, $0.localPush?.invitations.unacknowledged) == (0, 0)
          }
          #expect(hasAll)
        }
      }
      let books = try #require(ledger.localPush)
      let push = try #require(fleet.localPush)
      let absent = (0..<200).count { $0 % 21 == 20 }
      #expect(books.texts.absent + books.invitations.absent == absent)
      #expect(push.texts == books.texts.acknowledged && push.invitations == books.invitations.acknowledged)
      #expect(fleet.notifications.received == 200 - absent && fleet.faults == [:])
      #expect(fleet.notifications.acknowledgements == 200 - absent && push.untimed == 0)
      #expect(fleet.latency.onlineUs.count == 200 - absent && push.invitationUs.count == push.invitations)
      #expect(push.registrations == 20 && push.registered == 20 && books.registered == ["notification": 20])
      #expect(fleet.notifications.payloadBytes == 3 * push.texts)
      #expect(fleet.connections.closed == [.end: 20] && books.texts.lost == 0 && books.texts.timedOut == 0)
    }
  }

  @Test("After a restart of the server all devices come back")
  func restart() async throws {
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
    } body: { simulation in
      try await Self.run(try Self.plan(simulation, count: 20)) { runner in
        var areHere = await simulation.wait { $0.localPush?.here == 20 }
        #expect(areHere)
        try await simulation.simulator.restartLocalPush(pause: .milliseconds(100))
        areHere = await simulation.wait { $0.localPush?.here == 20 && $0.localPush?.registered["notification"] == 40 }
        #expect(areHere)
      }
    }
    #expect(ledger.localPush?.restarts == 1)
    #expect(fleet.connections.opened == 40 && fleet.devices.everOnline == 20 && fleet.localPush?.registered == 40)
    let lost = fleet.connections.closed.byName.filter { $0.key != "end" }.values.reduce(0, +)
    #expect(lost == 20)
  }

  @Test("Devices that hear nothing give up and come back")
  func silence() async throws {
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
      $0.localPush?.heartbeat = .milliseconds(50)
    } body: { simulation in
      var plan = try Self.plan(simulation, count: 10)
      plan.localPush?.silence = .seconds(2)
      return try await Self.run(plan) { runner in
        let areHere = await simulation.wait { $0.localPush?.here == 10 }
        #expect(areHere)
        simulation.simulator.silenceLocalPush(1)
        let areBack = await simulation.wait { ($0.localPush?.registered["notification"] ?? 0) >= 20 }
        #expect(areBack)
      }
    }
    #expect(ledger.localPush?.silencedConnections == 10)
    #expect((fleet.connections.closed[.silence] ?? 0) >= 10)
    #expect((fleet.localPush?.heartbeats ?? 0) >= (ledger.localPush?.heartbeats.acknowledged ?? .max))
  }

  @Test("Extensions run on the networks of the plan alone")
  func networks() async throws {
    let (fleet, _) = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
    } body: { simulation in
      var plan = try Self.plan(simulation, count: 60)
      plan.localPush?.networks = [.init(name: "ship", share: 0.5), .init(name: "crew", share: 0.2)]
      return try await Self.run(plan) { runner in
        let haveJoined = await simulation.wait { ledger in
          let push = runner.snapshot().localPush
          let joins = push?.joins.values.reduce(0, +) ?? 0
          return joins + (push?.joinsElsewhere ?? 0) == 60 && ledger.localPush?.here == joins
        }
        #expect(haveJoined)
      }
    }
    let push = try #require(fleet.localPush)
    #expect(Set(push.joins.keys) == ["ship", "crew"] && push.joinsElsewhere > 0)
    #expect(fleet.devices.everOnline == push.joins.values.reduce(0, +) && fleet.connections.opened < 60)
  }
}
