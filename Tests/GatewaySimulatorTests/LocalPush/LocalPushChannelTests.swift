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

  /// A server that does nothing by itself within a test: no heartbeat comes between its messages, and none times out.
  private static func quiet(control: SimulatorOptions.Address? = nil) -> LocalPushService {
    var service = LocalPushService(notifications: place, control: control)
    (service.heartbeat, service.requestTimeout) = (.seconds(600), .seconds(600))
    return service
  }

  /// A client in the hands of a test.
  private final class Speaker {
    let client: Client
    private let order: MessageFraming.ByteOrder
    private var framing: MessageFraming
    private var reader = LocalPushReader()
    private var rest: [UInt8] = []

    init(
      _ address: SimulatorOptions.Address?, order: MessageFraming.ByteOrder = .littleEndian,
      patience: Duration = Simulation.patience
    ) throws {
      client = try Client(address?.port ?? 0, patience: patience)
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
        $0.localPush = Self.quiet(control: Self.place)
      } body: { simulation in
        let device = try Speaker(simulation.simulator.localPushNetworks.first?.address, order: order)
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
      $0.localPush = Self.quiet()
    } body: { simulation in
      let device = try Speaker(simulation.simulator.localPushNetworks.first?.address)
      try device.register(7)
      for bytes in [Array("GET / HTTP/1.1\r\n\r\n".utf8), [2, 0, 0, 0] + Array("{}".utf8), [0, 0, 0, 0]] {
        let client = try Client(
          simulation.simulator.localPushNetworks.first?.address.port ?? 0, patience: Simulation.patience)
        try client.send(bytes)
        #expect(try client.receive() == [])
        client.close()
      }
      let hasty = try Speaker(simulation.simulator.localPushNetworks.first?.address)
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
      $0.localPush = Self.quiet()
    } body: { simulation in
      let device = try Speaker(simulation.simulator.localPushNetworks.first?.address)
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
    let port = simulation.simulator.localPushNetworks.first?.address.port ?? 0
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

  /// Calls a body with the settings of TLS of both sides, or with none.
  private static func secured(
    _ usesTLS: Bool, _ body: (_ server: TLSContext?, _ client: TLSContext?) async throws -> Void
  ) async throws {
    guard usesTLS else { return try await body(nil, nil) }
    try await inTemporaryFolder { folder in
      let directory = IdentityDirectory(folder.path)
      _ = try directory.issue(.init(topics: ["a"]))
      var server = TLSConfiguration.server(identity: try directory.gateway())
      server.peerCertificate = .notAsked
      var client = TLSConfiguration.client(identity: nil)
      client.authorityFile = directory.authorityFile
      client.peerCertificate = .required
      try await body(try TLSContext(server), try TLSContext(client))
    }
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
    try await Self.secured(usesTLS) { serverTLS, clientTLS in
      let (fleet, ledger) = try await Simulation.run {
        $0.localPush = Self.quiet()
        $0.localPush?.tls = serverTLS
      } body: { simulation in
        var plan = try Self.plan(simulation, count: 20)
        (plan.first, plan.threads, plan.verifiesName) = (100, 2, false)
        plan.localPush?.silence = .seconds(600)
        plan.localPush?.requestTimeout = .seconds(600)
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
        try await simulation.simulator.restartLocalPush(.init(pause: .milliseconds(100)))
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
      plan.localPush?.silence = .seconds(6)
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

  @Test("Whoever does not read is refused; what was not read has timed out or is lost")
  func slow() async throws {
    let ledger = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
      $0.localPush?.requestTimeout = .milliseconds(100)
      $0.localPush?.maximumUnacknowledged = 1_000
    } body: { simulation in
      let deaf = try Speaker(simulation.simulator.localPushNetworks.first?.address)
      try deaf.register(7)
      let text = LocalPushMessage.Content.text(
        String(repeating: "x", count: 16_000), from: .server, to: .init(device: 7))
      let isSlow = await simulation.wait { ledger in
        for _ in 0..<20 { simulation.simulator.offerLocalPush(text) }
        return ledger.localPush?.refused["slow"] == 1
      }
      #expect(isSlow)
      deaf.client.close()
    }.ledger
    let books = try #require(ledger.localPush)
    #expect(books.refused == ["slow": 1] && books.here == 0 && books.texts.timedOut > 0)
    #expect(books.texts.offered == books.texts.outcomes.reduce(0) { $0 + $1.count })
  }

  @Test("Requests of a device that does not read are not read")
  func deaf() async throws {
    let most = 5_000
    let ledger = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
      $0.localPush?.requestTimeout = .seconds(600)
      $0.localPush?.maximumUnacknowledged = most
    } body: { simulation in
      let deaf = try Speaker(simulation.simulator.localPushNetworks.first?.address, patience: .seconds(3))
      try deaf.register(7)
      // 80 MB of texts of the device to itself: more than sockets hold.
      var output = ByteWriter(capacity: 1 << 15)
      let user = LocalPushMessage.User(device: 7)
      LocalPushMessage(request: 9, .text(String(repeating: "x", count: 16_000), from: user, to: user))
        .write(.littleEndian, to: &output)
      let text = Array(copying: output.bytes)
      var (sent, error) = (0, ClientError?.none)
      while sent < most, error == nil {
        error = deaf.client.sendSome(text).error
        sent += 1
      }
      #expect(sent < most && error == .late, "\(sent) \(error as Any)")
      deaf.client.close()
    }.ledger
    let texts = try #require(ledger.localPush?.requests["text"])
    #expect(texts > 0 && texts < most)
  }

  @Test("A plan for a network that is not there is no server")
  func missingNetwork() async throws {
    let network = LocalPushService.Network(name: "ship", address: Self.place)
    let message = LocalPushOffer(.text("a", from: .server), to: .network("crew"))
    for change: (inout LocalPushService) -> Void in [
      { $0.planned = [.init(time: .zero, message: message)] },
      { $0.faults.restarts = [.init(time: .zero, outage: .init(pause: .zero, network: "crew"))] },
    ] {
      var service = LocalPushService(networks: [network])
      #expect(service.problem == nil)
      change(&service)
      #expect(service.problem == "local push has no network 'crew'")
    }
  }

  @Test("Whoever does not register in time is refused")
  func late() async throws {
    let ledger = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
      $0.handshakeTimeout = .milliseconds(100)
    } body: { simulation in
      let dumb = try Speaker(simulation.simulator.localPushNetworks.first?.address)
      #expect(try dumb.next() == nil)
      dumb.client.close()
    }.ledger
    #expect(ledger.localPush?.refused == ["late": 1] && ledger.localPush?.connections == 1)
  }

  @Test("A planned restart happens")
  func planned() async throws {
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place, control: Self.place)
      $0.localPush?.faults.restarts = [.init(time: .milliseconds(300), pause: .milliseconds(50))]
    } body: { simulation in
      try await Self.run(try Self.plan(simulation, count: 5)) { runner in
        let hasHappened = await simulation.wait { $0.localPush?.restarts == 1 && $0.localPush?.here == 5 }
        #expect(hasHappened)
      }
    }
    #expect(ledger.localPush?.restarts == 1 && fleet.devices.everOnline == 5)
  }

  @Test("A network is drawn at each joining")
  func joinings() async throws {
    let (fleet, _) = try await Simulation.run {
      $0.localPush = LocalPushService(notifications: Self.place)
    } body: { simulation in
      var plan = try Self.plan(simulation, count: 1)
      plan.localPush?.networks = [.init(name: "ship", share: 0.5)]
      plan.presence.online = .mean(.milliseconds(30))
      plan.presence.offline = .mean(.milliseconds(10))
      return try await Self.run(plan) { runner in
        let haveJoined = await simulation.wait { _ in
          let push = runner.snapshot().localPush
          return (push?.joins["ship"] ?? 0) + (push?.joinsElsewhere ?? 0) >= 30
        }
        #expect(haveJoined)
      }
    }
    let push = try #require(fleet.localPush)
    #expect((push.joins["ship"] ?? 0) > 2 && push.joinsElsewhere > 2)
    #expect(push.registrations <= fleet.connections.opened)
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

  // MARK: networks with addresses of their own

  private static let names = ["ship", "crew"]

  private static func service() -> LocalPushService {
    LocalPushService(networks: names.map { .init(name: $0, address: place) }, control: place)
  }

  /// A fleet whose devices join the ship in half of all cases, the crew's network in three of ten, and else another one.
  private static func networkPlan(_ simulation: Simulation, count: Int) throws -> FleetPlan {
    var plan = try plan(simulation, count: count)
    // Nothing is served there: each network has its own server.
    plan.gateway = .init(host: "127.0.0.1", port: 1)
    plan.localPush?.networks = try zip(simulation.simulator.localPushNetworks, [0.5, 0.3]).map { network, share in
      var server = FleetPlan.Gateway(host: "127.0.0.1", port: network.address.port)
      server.addresses = [try SocketAddress(ipAddress: "127.0.0.1", port: network.address.port)]
      return .init(name: network.name, share: share, server: server)
    }
    return plan
  }

  /// How many devices of a plan join each network at their first joining, or their second one.
  private static func joins(_ plan: FleetPlan, _ number: UInt64) -> [String: Int] {
    var joins: [String: Int] = [:]
    for device in 0..<UInt64(plan.count) {
      let draw = DeviceDraws(seed: plan.seed, device: plan.first + device).unit(.network, number)
      guard case .network(let place)? = plan.localPush?.network(drawn: draw) else { continue }
      joins[names[place], default: 0] += 1
    }
    return joins
  }

  private static func here(_ ledger: Ledger) -> [String: Int] {
    (ledger.localPush?.networks ?? [:]).mapValues(\.here).filter { $0.value > 0 }
  }

  @Test(
    "By network the books of a fleet and of the server are equal, and one network's end is not noticed on the other",
    arguments: [false, true])
  func networkBooks(usesTLS: Bool) async throws {
    try await Self.secured(usesTLS) { serverTLS, clientTLS in
      let (fleet, ledger) = try await Simulation.run {
        $0.localPush = Self.service()
        $0.localPush?.tls = serverTLS
        // Nothing but what the test does happens.
        $0.localPush?.heartbeat = .seconds(600)
        $0.localPush?.requestTimeout = .seconds(600)
      } body: { simulation in
        var plan = try Self.networkPlan(simulation, count: 40)
        (plan.threads, plan.verifiesName) = (2, false)
        plan.localPush?.silence = .seconds(600)
        plan.localPush?.requestTimeout = .seconds(600)
        let joined = Self.joins(plan, 1)
        let (ship, crew) = (joined["ship"] ?? 0, joined["crew"] ?? 0)
        #expect(ship > 5 && crew > 5 && ship + crew < 40)
        return try await Self.run(plan, tls: clientTLS) { runner in
          let simulator = simulation.simulator
          var areHere = await simulation.wait { Self.here($0) == joined }
          #expect(areHere)
          for (name, count) in [("ship", ship), ("crew", crew), ("ship", ship)] {
            let outcomes = simulator.offerLocalPush(.init(.text("for \(name)", from: .server), to: .network(name)))
            #expect(outcomes?.receivers == count && outcomes?.outcomes == [.sent: count])
          }
          let haveAll = await simulation.wait { $0.localPush?.texts.acknowledged == 2 * ship + crew }
          #expect(haveAll)
          let before = await simulator.snapshot().localPush?.networks["crew"]
          try await simulator.restartLocalPush(.init(pause: .milliseconds(50), network: "ship"))
          areHere = await simulation.wait {
            Self.here($0) == joined && $0.localPush?.networks["ship"]?.registered == 2 * ship
          }
          #expect(areHere)
          let after = await simulator.snapshot().localPush?.networks["crew"]
          #expect(before == after && after != nil)
          let outcomes = simulator.offerLocalPush(.init(.invite(from: .server), to: .network("ship")))
          #expect(outcomes?.outcomes == [.sent: ship])
          let areCalled = await simulation.wait { $0.localPush?.invitations.acknowledged == ship }
          #expect(areCalled)
        }
      }
      let (books, push) = (try #require(ledger.localPush), try #require(fleet.localPush))
      #expect(books.networksAreWhole && books.restarts == 0 && push.joinsElsewhere > 0)
      #expect(Set(books.networks.keys) == Set(Self.names) && Set(push.networks.keys) == Set(Self.names))
      for name in Self.names {
        let (server, devices) = (try #require(books.networks[name]), try #require(push.networks[name]))
        #expect(server.registered == devices.registered && server.registered >= push.joins[name] ?? .max)
        #expect(server.texts.acknowledged == devices.texts && server.texts.sent == devices.texts)
        #expect(server.invitations.acknowledged == devices.invitations)
        #expect(server.restarts == (name == "ship" ? 1 : 0) && server.here == 0)
      }
      #expect(fleet.faults == [:])
    }
  }

  @Test("After a storm each device joins a network anew, as it is drawn")
  func storm() async throws {
    var expected: [[String: Int]] = []
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = Self.service()
    } body: { simulation in
      var plan = try Self.networkPlan(simulation, count: 40)
      plan.presence.storms = [.init(time: .seconds(12), within: .milliseconds(300))]
      expected = [Self.joins(plan, 1), Self.joins(plan, 2)]
      let (first, second) = (expected[0], expected[1])
      #expect(first != second)
      return try await Self.run(plan) { runner in
        var areHere = await simulation.wait { Self.here($0) == first }
        #expect(areHere)
        areHere = await simulation.wait {
          Self.here($0) == second && runner.snapshot().storms.first?.lost == first.values.reduce(0, +)
        }
        #expect(areHere)
      }
    }
    let push = try #require(fleet.localPush)
    for name in Self.names {
      let sum = (expected[0][name] ?? 0) + (expected[1][name] ?? 0)
      #expect(push.joins[name] == sum && push.networks[name]?.registered == sum)
      #expect(ledger.localPush?.networks[name]?.registered == sum)
    }
    #expect(push.joins.values.reduce(0, +) + push.joinsElsewhere == 80)
    let storm = try #require(fleet.storms.first)
    #expect(storm.lost == expected[0].values.reduce(0, +) && storm.network == nil)
    #expect(storm.openedPerS.reduce(0, +) == expected[1].values.reduce(0, +))
  }

  @Test("A storm of one network takes its devices, which come back to it, and no other ones")
  func stormOfNetwork() async throws {
    var joined: [String: Int] = [:]
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = Self.service()
    } body: { simulation in
      var plan = try Self.networkPlan(simulation, count: 40)
      plan.presence.storms = [.init(time: .seconds(12), within: .milliseconds(300), network: "ship")]
      let first = Self.joins(plan, 1)
      joined = first
      return try await Self.run(plan) { runner in
        var areHere = await simulation.wait { Self.here($0) == first }
        #expect(areHere)
        areHere = await simulation.wait {
          Self.here($0) == first && runner.snapshot().storms.first?.back == first["ship"]
        }
        #expect(areHere)
        // Those who connect anew on another network are none of the storm's.
        try await simulation.simulator.restartLocalPush(.init(pause: .zero, network: "crew"))
        areHere = await simulation.wait {
          Self.here($0) == first && $0.localPush?.networks["crew"]?.registered == 2 * (first["crew"] ?? 0)
        }
        #expect(areHere)
      }
    }
    let (push, books) = (try #require(fleet.localPush), try #require(ledger.localPush))
    let (ship, crew) = (joined["ship"] ?? 0, joined["crew"] ?? 0)
    #expect(push.joins == ["ship": 2 * ship, "crew": crew] && push.joinsElsewhere == 40 - ship - crew)
    #expect(books.networks["ship"]?.registered == 2 * ship && books.networks["crew"]?.registered == 2 * crew)
    let storm = try #require(fleet.storms.first)
    #expect(storm.lost == ship && storm.back == ship && storm.network == "ship")
    #expect(storm.openedPerS.reduce(0, +) == ship && fleet.connections.closed[.storm] == ship)
  }

  @Test("Devices that come and go between networks are on one at a time, and the sums agree")
  func wandering() async throws {
    let (fleet, ledger) = try await Simulation.run {
      $0.localPush = Self.service()
      $0.localPush?.rate = 500
    } body: { simulation in
      var plan = try Self.networkPlan(simulation, count: 8)
      plan.presence.online = .mean(.milliseconds(40))
      plan.presence.offline = .mean(.milliseconds(10))
      return try await Self.run(plan) { runner in
        let haveMoved = await simulation.wait { ledger in
          #expect(ledger.localPush?.networksAreWhole == true && (ledger.localPush?.here ?? 0) <= 8)
          let push = runner.snapshot().localPush
          return (push?.joins.values.min() ?? 0) >= 60 && push?.joins.count == 2
        }
        #expect(haveMoved)
      }
    }
    let (books, push) = (try #require(ledger.localPush), try #require(fleet.localPush))
    for name in Self.names {
      let (server, devices) = (try #require(books.networks[name]), try #require(push.networks[name]))
      // An acknowledgement may be under way when a device goes.
      #expect(devices.registered <= server.registered)
      #expect(server.texts.acknowledged <= devices.texts && devices.texts <= server.texts.sent)
    }
    #expect(books.networks.values.reduce(0) { $0 + $1.registered } <= push.registrations)
  }

  @Test("A network that falls silent says nothing, and is there again for whoever connects anew")
  func silentNetwork() async throws {
    let ledger = try await Simulation.run {
      $0.localPush = Self.service()
      $0.localPush?.heartbeat = .seconds(600)
    } body: { simulation in
      let simulator = simulation.simulator
      let places = simulator.localPushNetworks.map(\.address)
      let (sailor, cook) = (try Speaker(places[0]), try Speaker(places[1]))
      try sailor.register(1)
      try cook.register(2)
      try await simulator.restartLocalPush(.init(pause: .milliseconds(10), network: "ship", ending: .silent))
      let (lost, sent) = (
        simulator.offerLocalPush(.init(.text("a", from: .server), to: .network("ship"))),
        simulator.offerLocalPush(.init(.text("b", from: .server), to: .network("crew")))
      )
      #expect(lost?.outcomes == [.silenced: 1] && sent?.outcomes == [.sent: 1])
      #expect(try cook.next()?.content == .text("b", from: .server, to: .init(device: 2)))
      let again = try Speaker(places[0])
      try again.register(1)
      // The silent connection ends when its user has come anew.
      #expect(try sailor.next() == nil)
      #expect(simulator.localPushStates.map(\.here) == [1, 1])
      let back = simulator.offerLocalPush(.init(.text("c", from: .server), to: .network("ship")))
      #expect(back?.outcomes == [.sent: 1])
      #expect(try again.next()?.content == .text("c", from: .server, to: .init(device: 1)))
      for speaker in [sailor, cook, again] { speaker.client.close() }
      let isOver = await simulation.wait { $0.localPush?.here == 0 }
      #expect(isOver)
    }.ledger
    let books = try #require(ledger.localPush)
    #expect(books.silencedConnections == 1 && books.refused == ["replaced": 1] && books.restarts == 0)
    #expect(books.networks["ship"]?.texts.silenced == 1 && books.networks["crew"]?.texts.silenced == 0)
  }

  @Test("Networks end each for itself, and the end of the server is not held up by one that is away")
  func outages() async throws {
    let ledger = try await Simulation.run {
      $0.localPush = Self.service()
    } body: { simulation in
      let simulator = simulation.simulator
      let unknown = simulator.beginRestartOfLocalPush(.init(pause: .zero, network: "Ship"))
      #expect(!unknown)
      for _ in 0..<2 {
        // The second one finds it away.
        let isKnown = simulator.beginRestartOfLocalPush(.init(pause: .seconds(600), network: "ship"))
        #expect(isKnown)
      }
      try await simulator.restartLocalPush(.init(pause: .zero, network: "crew"))
      let isAway = await simulation.wait { $0.localPush?.networks["ship"]?.restarts == 1 }
      #expect(isAway && simulator.localPushStates.map(\.listens) == [false, true])
      #expect(throws: (any Error).self) { try Speaker(simulator.localPushNetworks[0].address).register(1) }
      try await simulator.restartLocalPush(.init(pause: .zero))
      #expect(simulator.localPushStates.map(\.listens) == [false, true])
      let sailor = try Speaker(simulator.localPushNetworks[1].address)
      try sailor.register(1)
      #expect(simulator.localPushUsers(most: 5)?.users.map(\.network) == ["crew"])
      #expect(simulator.localPushUsers(on: "ship", most: 5)?.count == 0)
      #expect(simulator.localPushUsers(on: "Ship", most: 5) == nil)
      #expect(simulator.localPushUsers(most: 0)?.count == 1 && simulator.localPushUsers(most: 0)?.users.count == 0)
      sailor.client.close()
      let isOver = await simulation.wait { $0.localPush?.here == 0 }
      #expect(isOver)
    }.ledger
    let books = try #require(ledger.localPush)
    // That of the whole server counts for each.
    #expect(books.restarts == 1 && books.networks.mapValues(\.restarts) == ["ship": 2, "crew": 2])
  }

  @Test("Networks that cannot be are refused")
  func impossible() async {
    for names in [["a", "a"], ["", ""], [String(repeating: "x", count: 33)], ["a\nb"], (0...64).map { "\($0)" }] {
      var options = SimulatorOptions()
      (options.gateway, options.feedback) = (nil, nil)
      options.localPush = LocalPushService(networks: names.map { .init(name: $0, address: Self.place) })
      await #expect(throws: SimulatorError.self, "\(names)") {
        try await Simulator.start(options, feedbackList: try FeedbackList(path: nil))
      }
    }
  }
}
