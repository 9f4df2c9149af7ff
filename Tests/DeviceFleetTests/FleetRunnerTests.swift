import DeviceProtocol
import Measurement
import NIOCore
import Synchronization
import TLSTransport
import TestSupport
import Testing

@testable import DeviceFleet

/// Fleets over real sockets, against a gateway of the tests.
@Suite("Fleets of devices", .waiting)
struct FleetRunnerTests {
  /// Runs a fleet to its end; `patience` bounds a test that hangs.
  private func run(
    _ gateway: ScriptedGateway, tls: TLSContext? = nil, _ change: (inout FleetPlan) -> Void = { _ in },
    until isDone: @escaping @Sendable (FleetResult) -> Bool = { _ in false },
    meanwhile: @escaping @Sendable (FleetResult) -> Void = { _ in }
  ) async throws -> (result: FleetResult, notifications: [DeviceNotification]) {
    var plan = FleetPlan(gateway: .init(host: "127.0.0.1", port: gateway.port))
    plan.gateway.addresses = [try SocketAddress(ipAddress: "127.0.0.1", port: gateway.port)]
    plan.duration = .seconds(60)
    plan.connections.rate = 10_000
    change(&plan)
    let runner = try FleetRunner(plan, tls: tls)
    let received = Mutex<[DeviceNotification]>([])
    let watch = Task {
      while !Task.isCancelled {
        try await Task.sleep(for: .milliseconds(20))
        let now = runner.snapshot()
        meanwhile(now)
        if isDone(now) { runner.stop() }
      }
    }
    defer { watch.cancel() }
    let result = try await runner.run { _ in
    } notified: { notification in
      received.withLock { $0.append(notification) }
    }
    for invariant in result.invariants { #expect(invariant.holds, "\(invariant.name): \(invariant.detail)") }
    return (result, received.withLock { $0 })
  }

  @Test("Each device registers, gets its notifications once, acknowledges them and goes")
  func delivery() async throws {
    let gateway = try await ScriptedGateway()
    let (result, notifications) = try await run(gateway) {
      $0.count = 40
      $0.first = 100
      $0.topics = ["a", "b"]
      $0.tokenSeed = 1
      $0.threads = 2
      $0.presence.lowPowerShare = 1
    } until: {
      $0.notifications.received == 240
    }
    #expect(result.devices.asked == 40 && result.devices.everOnline == 40 && result.devices.onlineAtEnd == 40)
    #expect(result.notifications.received == 240 && result.notifications.online == 240)
    #expect(result.notifications.payloadBytes == 240 * 7 && result.faults == [:])
    #expect(result.registrations.asked == 80 && result.registrations.tokens == 80)
    #expect(result.registrations.wrongTokens == 0)
    #expect(result.connections.opened == 40 && result.connections.closed == [.end: 40])
    #expect(result.latency.onlineUs.count == 240 && result.latency.connectUs.count == 40)
    #expect(result.latency.readyUs.count == 40 && result.lastReceived != nil)
    let perDevice = Dictionary(grouping: notifications, by: \.device)
    #expect(Set(perDevice.keys) == Set(100..<140))
    #expect(perDevice.values.allSatisfy { Set($0.map { "\($0.delivery.topic)\($0.delivery.sequence)" }).count == 6 })
    try await gateway.end(after: { $0.offline == 40 })
    gateway.books.withLock { books in
      #expect(books.acknowledged.count == 80 && books.acknowledged.values.allSatisfy { $0 == 3 })
      #expect(books.offline == 40 && books.lowPower == 40)
      #expect(books.acknowledgements == result.notifications.acknowledgements)
    }
  }

  @Test("Over TLS the gateway's certificate is verified")
  func tls() async throws {
    try await withTLS { server, client, stranger in
      let gateway = try await ScriptedGateway(tls: server)
      let (result, _) = try await run(gateway, tls: client) {
        $0.count = 5
        $0.gateway.host = "localhost"
      } until: {
        $0.notifications.received == 15
      }
      #expect(result.devices.everOnline == 5 && result.notifications.received == 15)
      let (refused, _) = try await run(gateway, tls: stranger) {
        $0.gateway.host = "localhost"
        $0.giveUp = .milliseconds(300)
        $0.connections.backoff = .milliseconds(10)
      }
      #expect(refused.devices.everOnline == 0 && refused.connections.opened == 0)
      #expect(refused.connections.failed.keys.contains { $0.contains("certificate") }, "\(refused.connections.failed)")
      #expect(refused.warnings.first?.hasPrefix("no device was ever online: ") == true)
      try await gateway.end()
    }
  }

  private func withTLS(_ body: (TLSContext, TLSContext, TLSContext) async throws -> Void) async throws {
    let (server, client, stranger) = try withTemporaryFolder { folder in
      let directory = IdentityDirectory(folder.appending(path: "ids").path)
      _ = try directory.issue(.init(topics: ["com.example.app"]))
      var server = TLSConfiguration.server(identity: try directory.gateway())
      server.peerCertificate = .notAsked
      var client = TLSConfiguration.client(identity: nil)
      let stranger = try TLSContext(client)
      client.authorityFile = directory.authorityFile
      return (try TLSContext(server), try TLSContext(client), stranger)
    }
    try await body(server, client, stranger)
  }

  @Test("A device whose connection ends comes back with its tokens, and gets what it lacks")
  func comingBack() async throws {
    let gateway = try await ScriptedGateway(.init(notifications: 2, closes: 3))
    let hasClosed = Mutex(false)
    let (result, _) = try await run(gateway) {
      $0.count = 6
      $0.connections.backoff = .milliseconds(5)
    } until: {
      $0.devices.everOnline == 6 && $0.connections.opened >= 15 && $0.devices.onlineAtEnd == 6
    } meanwhile: { now in
      guard now.devices.onlineAtEnd == 6 else { return }
      let closes = hasClosed.withLock { has in
        defer { has = true }
        return !has
      }
      if closes { gateway.closeConnections() }
    }
    #expect(result.notifications.received == 12 && result.notifications.duplicates == 0)
    #expect(result.registrations.tokens == 6, "tokens are kept")
    let byGateway = result.connections.closed[.peerFin, default: 0] + result.connections.closed[.peerRst, default: 0]
    #expect(byGateway >= 9, "\(result.connections.closed)")
    try await gateway.end()
  }

  @Test("A storm takes all connections, and all devices come back within its time")
  func storm() async throws {
    let gateway = try await ScriptedGateway()
    let (result, _) = try await run(gateway) {
      $0.count = 50
      $0.presence.storms = [.init(time: .seconds(12), within: .milliseconds(500))]
    } until: {
      $0.storms.first?.back == 50
    }
    let storm = result.storms[0]
    #expect(storm.lost == 50 && storm.back == 50 && storm.openedPerS.reduce(0, +) == 50)
    #expect(storm.peakOpenedPerS == storm.openedPerS.max())
    #expect((storm.lastBackS ?? 0) > 0.2)
    #expect(result.connections.closed[.storm] == 50 && result.connections.opened == 100)
    #expect(result.notifications.received == 150 && result.faults == [:])
    try await gateway.end()
  }

  @Test(
    "A storm has drained when devices have what had waited for them, and not what came after they were back",
    arguments: [true, false])
  func drained(hasWaited: Bool) async throws {
    let gateway = try await ScriptedGateway(.init(waiting: 1, age: hasWaited ? .seconds(600) : .zero))
    let (result, _) = try await run(gateway) {
      $0.count = 20
      $0.presence.storms = [.init(time: .seconds(12), within: .milliseconds(100))]
    } until: {
      $0.notifications.received == 80
    }
    let storm = result.storms[0]
    #expect(storm.back == 20 && result.notifications.stored == 20)
    #expect((storm.lastStoredS != nil) == hasWaited)
    if hasWaited { #expect(try #require(storm.lastStoredS) >= #require(storm.lastBackS)) }
    try await gateway.end()
  }

  @Test("Devices that are restored register as their next generation and get notifications anew")
  func restores() async throws {
    let gateway = try await ScriptedGateway(.init(notifications: 1))
    let (result, _) = try await run(gateway) {
      $0.count = 10
      $0.tokenSeed = 1
      $0.presence.storms = [.init(time: .seconds(12), within: .milliseconds(100))]
      $0.presence.restoring = .share(1)
    } until: {
      $0.notifications.received == 20
    }
    #expect(result.devices.restored == 10 && result.registrations.wrongTokens == 0)
    gateway.books.withLock { #expect($0.registered.count { $0.hasSuffix(" 1") } == 10) }
    try await gateway.end()
  }

  @Test("Devices leave by chance, some without a word, and acknowledge late or never")
  func chance() async throws {
    let gateway = try await ScriptedGateway()
    let (result, _) = try await run(gateway) {
      $0.count = 20
      $0.presence.online = .range(.milliseconds(300) ... .milliseconds(500))
      $0.presence.offline = .range(.milliseconds(50) ... .milliseconds(100))
      $0.presence.resetShare = 0.5
      $0.acknowledging.delay = .milliseconds(10)
      $0.acknowledging.neverShare = 0.5
    } until: {
      $0.connections.closed.sum > 60
    }
    let closed = result.connections.closed
    #expect(closed[.left, default: 0] > 10 && closed[.reset, default: 0] > 10, "\(closed)")
    #expect(result.faults == [:] && result.notifications.received == 60)
    try await gateway.end()
  }

  @Test("Wrong tokens and repeated sequences are counted as the gateway's errors")
  func faults() async throws {
    let gateway = try await ScriptedGateway(.init(repeatsSequences: true))
    let (result, _) = try await run(gateway) {
      $0.count = 3
      $0.tokenSeed = 2
    } until: {
      $0.notifications.duplicates == 9
    }
    #expect(result.faults == ["duplicate": 9, "wrong_token": 3])
    #expect(result.registrations.wrongTokens == 3 && result.notifications.received == 9)
    try await gateway.end()
  }

  @Test("Devices that are refused, or find nobody, wait longer and longer and are counted by reason")
  func refused() async throws {
    let gateway = try await ScriptedGateway(.init(refusal: .tooMany))
    let (result, _) = try await run(gateway) {
      $0.count = 2
      $0.connections.backoff = .milliseconds(20)
      $0.giveUp = .seconds(5)
    }
    #expect(result.devices.everOnline == 0 && result.registrations.refused.keys.sorted() == ["too_many"])
    #expect((4...24).contains(result.connections.opened), "\(result.connections.opened) in 5 s")
    // The last connection of either device may be under way when the fleet gives up.
    let (opened, closed) = (result.connections.opened, result.connections.closed)
    #expect((opened - 2...opened).contains(closed[.refused, default: 0]) && closed.sum == opened, "\(closed)")
    try await gateway.end()

    let port = try ReservedPort()
    var plan = FleetPlan(gateway: .init(host: "127.0.0.1", port: port.number))
    plan.giveUp = .milliseconds(200)
    plan.connections.backoff = .milliseconds(20)
    let nobody = try await FleetRunner(plan, tls: nil).run()
    #expect(nobody.connections.failed.keys.contains { $0.contains("refused") }, "\(nobody.connections.failed)")
    #expect(nobody.connections.opened == 0 && nobody.warnings.count == 1)
  }

  @Test("A fleet ends when nothing has happened for a while")
  func idle() async throws {
    let gateway = try await ScriptedGateway()
    let (result, _) = try await run(gateway) {
      $0.count = 3
      $0.untilIdle = .seconds(5)
    }
    #expect(result.notifications.received == 9 && !result.interrupted)
    try await gateway.end()
  }

  @Test("Segments are all devices of the fleet together, and a seed gives the same restores and low power again")
  func segments() async throws {
    let gateway = try await ScriptedGateway(.init(notifications: 1))
    var parts: [FleetResult.Part] = []
    for segment in [0, 1, 2] {
      let (result, notifications) = try await run(gateway) {
        $0.count = 10
        ($0.segment, $0.segments) = (segment, 3)
        $0.presence.lowPowerShare = 0.5
      } until: {
        $0.notifications.received == (segment == 0 ? 4 : 3)
      }
      #expect(Set(notifications.map { $0.device % 3 }) == [UInt64(segment)])
      parts.append(.init("part \(segment)", result))
    }
    let merged = try FleetResult.merging(parts)
    #expect(merged.devices.everOnline == 10 && merged.notifications.received == 10 && merged.warnings == [])
    let expected = (0..<10 as Range<UInt64>).count { DeviceDraws(seed: 1, device: $0).isHit(0.5, .lowPower) }
    gateway.books.withLock {
      #expect($0.lowPower == expected && Set($0.registered).count == 10)
    }
    try await gateway.end()
  }

  @Test("Unfinished messages that take more than their limit end their connections")
  func unfinished() async throws {
    let gateway = try await ScriptedGateway(.init(unfinished: 3_000))
    let (result, _) = try await run(gateway) {
      $0.count = 4
      $0.limits.bufferedBytes = 8_000
      $0.connections.maximumBackoff = .milliseconds(50)
    } until: {
      $0.connections.closed[.memory, default: 0] > 3
    }
    #expect(result.devices.everOnline == 4 && result.devices.onlineAtEnd >= 2)
    #expect(result.notifications.received == 12 && result.faults == [:])
    try await gateway.end()
  }

  @Test("All devices come up when only one may connect at a time")
  func oneByOne() async throws {
    let gateway = try await ScriptedGateway()
    let (result, _) = try await run(gateway) {
      $0.count = 30
      $0.connections.maximumConnecting = 1
    } until: {
      $0.devices.onlineAtEnd == 30
    }
    #expect(result.devices.everOnline == 30 && result.connections.opened == 30)
    try await gateway.end()
  }

  @Test("A plan that makes no sense is refused")
  func plans() {
    func problem(_ change: (inout FleetPlan) -> Void) -> Bool {
      var plan = FleetPlan(gateway: .init(host: "localhost", port: 1))
      change(&plan)
      return (try? FleetRunner(plan, tls: nil)) == nil
    }
    #expect(!problem { _ in })
    #expect(problem { $0.count = 0 })
    #expect(problem { $0.topics = [] })
    #expect(problem { $0.topics = ["a", "a"] })
    #expect(problem { $0.topics = (0...64).map { "\($0)" } })
    #expect(problem { ($0.segment, $0.segments) = (2, 2) })
    #expect(problem { ($0.count, $0.segment, $0.segments) = (2, 2, 3) })
    #expect(problem { $0.connections.rate = 0 })
    #expect(problem { $0.presence.resetShare = 1.5 })
    #expect(problem { $0.presence.storms = Array(repeating: .init(time: .seconds(1), within: .zero), count: 2) })
    func storm(of network: String) -> (inout FleetPlan) -> Void {
      { plan in
        plan.localPush = LocalPushPlan()
        plan.localPush?.networks = [.init(name: "ship", share: 1)]
        plan.presence.storms = [.init(time: .seconds(1), within: .zero, network: network)]
      }
    }
    #expect(!problem(storm(of: "ship")) && problem(storm(of: "crew")))
  }
}
