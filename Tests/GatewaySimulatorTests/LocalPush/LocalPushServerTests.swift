import DeviceProtocol
import Measurement
import Testing

@testable import GatewaySimulator

/// The server of local push as a value: event, decision, event, decision.
@Suite("Server of local push")
struct LocalPushServerTests {
  typealias Link = LocalPushServer.Link
  private static let second: Int64 = 1_000_000_000
  private let one = Link(loop: 0, connection: 1)
  private let two = Link(loop: 0, connection: 2)
  private let alice = LocalPushMessage.User(device: 1)
  private let bob = LocalPushMessage.User(device: 2)

  private func server(_ change: (inout LocalPushService) -> Void = { _ in }) -> LocalPushServer {
    var options = LocalPushService(
      networks: ["ship", "crew"].map { .init(name: $0, address: .init(host: "", port: 0)) })
    change(&options)
    return LocalPushServer(options, seed: 1, start: 0)
  }

  /// What was decided, without sending times.
  private func decided(_ server: inout LocalPushServer) -> [String] {
    server.takeOrders().map { link, order in
      switch order {
      case .close: "\(link.connection) close"
      case .write(let message): "\(link.connection) \(message.content?.name ?? "acknowledge") \(message.identifier)"
      }
    }
  }

  private func register(
    _ server: inout LocalPushServer, _ link: Link, _ user: LocalPushMessage.User,
    _ channel: LocalPushChannel = .notification(network: 0), now: Int64 = 0
  ) {
    server.connected(link, channel, now: now)
    server.receive(LocalPushMessage(request: 9, .user(user)), on: link, now: now)
    _ = server.takeOrders()
  }

  @Test(
    "Chance ends connections, cuts bytes and loses time, and the books balance", arguments: 0..<400 as Range<UInt64>)
  func simulation(seed: UInt64) throws {
    var world = LocalPushWorld(seed: seed)
    for _ in 0..<220 { try world.step() }
    try world.settle()
  }

  @Test("The simulations meet every outcome")
  func coverage() throws {
    var (givenUp, moves, unheard, sums) = (0, 0, 0, Ledger.LocalPush.Requests())
    var restarts = 0
    var refused: Set<LocalPushServer.Refusal> = []
    for seed in 0..<60 as Range<UInt64> {
      var world = LocalPushWorld(seed: seed)
      for _ in 0..<220 { try world.step() }
      try world.settle()
      givenUp += world.givenUp
      moves += world.moves
      unheard += world.unheard
      restarts += world.counts.networks.reduce(0) { $0 + $1.restarts }
      for kind in LocalPushKind.allCases { sums.add(world.counts[kind]) }
      refused.formUnion(world.counts.refused.keys)
    }
    #expect(moves > 0 && unheard > 0 && restarts > 0)
    #expect(givenUp > 0 && refused.isSuperset(of: [.unregistered, .replaced]))
    for (name, count) in sums.outcomes where name != "unacknowledged" { #expect(count > 0, "\(name)") }
  }

  @Test("Whoever says something else first is refused")
  func unregistered() {
    for message in [
      LocalPushMessage(request: 1, .directory([])), LocalPushMessage(acknowledging: 1),
      LocalPushMessage(request: 1, .user(.init(identifier: "", deviceName: "x"))),
      LocalPushMessage(request: 1, .user(.init(identifier: String(repeating: "x", count: 65), deviceName: "x"))),
    ] {
      var server = server()
      server.connected(one, .notification(network: 0), now: 0)
      server.receive(message, on: one, now: 0)
      #expect(decided(&server) == ["1 close"])
      #expect(server.counts.open == 0 && server.counts.requests == [:])
      #expect(server.counts.refused.values.reduce(0, +) == 1)
    }
  }

  @Test("A user who connects anew gets what comes from then on, and the earlier connection ends")
  func replaced() {
    var server = server()
    register(&server, one, alice)
    server.connected(two, .notification(network: 0), now: 1)
    server.receive(LocalPushMessage(request: 3, .user(alice)), on: two, now: 1)
    #expect(decided(&server) == ["2 acknowledge 3", "1 close"])
    #expect(server.counts.here == 1 && server.counts.refused == [.replaced: 1])
    // The end of the earlier one takes nothing from the later one.
    server.disconnected(one, now: 2)
    let outcome = server.offer(.text("a", from: bob, to: alice), from: .control, now: 3)
    #expect(outcome == .sent && decided(&server) == ["2 text 1"])
    // Another user on the same connection is none.
    server.receive(LocalPushMessage(request: 4, .user(bob)), on: two, now: 4)
    #expect(decided(&server) == ["2 close"] && server.counts.refused == [.replaced: 1, .user: 1])
    #expect(server.counts.texts.lost == 1 && server.counts.here == 0)
  }

  @Test("A request times out at its time, not before, and a late acknowledgement is counted")
  func timeout() {
    var server = server()
    register(&server, one, alice)
    server.offer(.invite(from: bob, to: alice), from: .control, now: 0)
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 1)
    server.receive(LocalPushMessage(acknowledging: 2), on: one, now: 10 * Self.second - 1)
    #expect(server.counts.texts.acknowledged == 1 && server.counts.invitations.unacknowledged == 1)
    // The time comes before what is done at it.
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 10 * Self.second)
    #expect(server.counts.invitations.timedOut == 1 && server.counts.invitations.acknowledged == 0)
    #expect(server.counts.strayAcknowledgements == 1)
    // The connection stays.
    let outcome = server.offer(.text("b", from: bob, to: alice), from: .control, now: 10 * Self.second)
    #expect(outcome == .sent)
  }

  @Test("Heartbeats come each 10 s from the registration on, on the notification channel alone")
  func heartbeats() {
    var server = server()
    register(&server, one, alice)
    register(&server, two, bob, .control)
    server.advance(to: 10 * Self.second - 1)
    #expect(server.counts.heartbeats.offered == 0)
    server.advance(to: 10 * Self.second)
    #expect(server.counts.heartbeats.sent == 1)
    server.advance(to: 20 * Self.second)
    // After a pause of the process there is one.
    server.advance(to: 100 * Self.second)
    #expect(server.counts.heartbeats.sent == 3)
    let beats = server.takeOrders().compactMap { link, order -> UInt64? in
      guard case .write(let message) = order, case .heartbeat(let count)? = message.content else { return nil }
      return link == one ? count : nil
    }
    #expect(beats == [1, 2, 3])
    server.loseHeartbeats(1, now: 100 * Self.second)
    server.advance(to: 110 * Self.second)
    #expect(server.counts.heartbeats.sent == 3 && server.counts.heartbeats.silenced == 1)
    server.disconnected(one, now: 111 * Self.second)
    server.advance(to: 200 * Self.second)
    #expect(server.counts.heartbeats.offered == 4)
  }

  @Test(
    "The directory is told at once to whoever registers, and to all after changes, not more often than once a second")
  func directory() throws {
    var server = server()
    register(&server, one, alice)
    server.connected(two, .control, now: 0)
    server.receive(LocalPushMessage(request: 7, .user(bob)), on: two, now: 0)
    #expect(decided(&server) == ["2 acknowledge 7", "2 directory 1"])
    server.advance(to: 2 * Self.second)
    // The first one is not acknowledged.
    #expect(decided(&server) == [])
    server.receive(LocalPushMessage(acknowledging: 1), on: two, now: 2 * Self.second)
    #expect(decided(&server) == ["2 directory 2"])
    server.receive(LocalPushMessage(acknowledging: 2), on: two, now: 2 * Self.second)
    for number in 10..<14 as Range<UInt64> {
      register(&server, Link(loop: 0, connection: number), .init(device: number), now: 3 * Self.second)
    }
    server.advance(to: 4 * Self.second - 1)
    #expect(decided(&server) == [])
    server.advance(to: 4 * Self.second)
    let order = try #require(server.takeOrders().first?.order)
    guard case .write(let message) = order, case .directory(let users)? = message.content else {
      Issue.record("\(order)")
      return
    }
    #expect(users == ([1] + Array(10..<14)).map { LocalPushMessage.User(device: $0) })
    server.advance(to: 8 * Self.second)
    #expect(decided(&server) == [])
  }

  @Test("Texts and invitations of a device go to the notification channel, actions to the control channel")
  func routing() {
    var server = server()
    register(&server, one, alice)
    register(&server, two, bob, .control)
    for (number, content) in [
      LocalPushMessage.Content.text("a", from: bob, to: alice), .invite(from: bob, to: alice),
      .callAction("end", of: bob), .callAction("end", of: alice), .text("b", from: bob, to: bob),
    ].enumerated() {
      server.receive(LocalPushMessage(request: 20 + UInt32(number), content), on: two, now: 0)
    }
    #expect(
      decided(&server) == [
        "2 acknowledge 20", "1 text 1", "2 acknowledge 21", "1 invite 2", "2 acknowledge 22", "2 call_action 2",
        "2 acknowledge 23", "2 acknowledge 24",
      ])
    #expect(server.counts.texts.absent == 1 && server.counts.callActions.absent == 1)
    #expect(server.counts.sources == [.device: 5])
  }

  @Test("A silent connection gets nothing and says nothing, and its user is still here")
  func silence() {
    var server = server()
    register(&server, one, alice)
    server.silence(1, now: 1)
    server.receive(LocalPushMessage(request: 5, .directory([])), on: one, now: 1)
    let outcome = server.offer(.text("a", from: bob, to: alice), from: .control, now: 1)
    #expect(outcome == .silenced && decided(&server) == [])
    #expect(server.counts.silencedConnections == 1 && server.counts.here == 1 && server.counts.open == 1)
    // A later one is not.
    register(&server, two, alice, now: 2)
    let second = server.offer(.text("b", from: bob, to: alice), from: .control, now: 2)
    #expect(second == .sent)
  }

  @Test("Planned silence hits those who are connected then, each once")
  func plannedSilence() {
    var server = server {
      $0.faults.silences = [.init(time: .seconds(5), share: 1), .init(time: .seconds(6), share: 1)]
    }
    register(&server, one, alice)
    server.advance(to: 5 * Self.second - 1)
    #expect(server.counts.silencedConnections == 0)
    server.advance(to: 5 * Self.second)
    #expect(server.counts.silencedConnections == 1 && server.isSilent(one))
    register(&server, two, bob, now: 5 * Self.second)
    #expect(!server.isSilent(two))
    server.advance(to: 60 * Self.second)
    #expect(server.counts.silencedConnections == 2)
    #expect(server.counts.heartbeats.sent == 0 && server.counts.heartbeats.silenced == 2)
  }

  @Test("A server that ends takes acknowledgements, and sends nothing more")
  func ending() {
    var server = server { $0.rate = 10 }
    register(&server, one, alice)
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    #expect(decided(&server) == ["1 text 1"])
    server.end(now: 0)
    let outcome = server.offer(.text("b", from: bob, to: alice), from: .control, now: 1)
    server.receive(LocalPushMessage(request: 5, .directory([])), on: one, now: 1)
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 2)
    server.advance(to: 30 * Self.second)
    #expect(outcome == .absent && decided(&server) == [] && server.counts.texts.acknowledged == 1)
    #expect(server.counts.heartbeats.offered == 0 && server.counts.sources == [.control: 2])
  }

  @Test("Further changes do not put a directory off")
  func busyDirectory() {
    var server = server()
    register(&server, two, bob, .control)
    server.receive(LocalPushMessage(acknowledging: 1), on: two, now: 0)
    for number in 10..<20 as Range<UInt64> {
      register(
        &server, Link(loop: 0, connection: number), .init(device: number),
        now: Self.second + Int64(number - 10) * Self.second / 10)
    }
    server.advance(to: 2 * Self.second)
    #expect(decided(&server) == ["2 directory 2"])
  }

  @Test("No more is under way on a connection than the limit")
  func overloaded() {
    var server = server { $0.maximumUnacknowledged = 2 }
    register(&server, one, alice)
    let outcomes = (0..<4).map { _ in server.offer(.text("a", from: bob, to: alice), from: .control, now: 0) }
    #expect(outcomes == [.sent, .sent, .overloaded, .overloaded])
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 0)
    let next = server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    #expect(next == .sent)
  }

  @Test("What is acknowledged takes no memory, and what is not still times out")
  func forgotten() {
    var server = server()
    register(&server, one, alice)
    server.offer(.text("never", from: bob, to: alice), from: .control, now: 0)
    for number in 2...5_000 as ClosedRange<UInt32> {
      server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
      server.receive(LocalPushMessage(acknowledging: number), on: one, now: 0)
    }
    #expect(server.counts.texts.acknowledged == 4_999 && server.deadlineCount < 1_100)
    server.advance(to: 10 * Self.second)
    #expect(server.counts.texts.timedOut == 1 && server.counts.texts.unacknowledged == 0)
  }

  @Test("The rate is one of messages for those who are here, the same ones with the same seed")
  func rate() {
    func run() -> (counts: LocalPushServer.Counts, orders: [String]) {
      var server = server {
        $0.rate = 5
        $0.callShare = 0.5
        $0.maximumUnacknowledged = 1_000
      }
      server.advance(to: 2 * Self.second)
      register(&server, one, alice, now: 2 * Self.second)
      register(&server, two, bob, now: 2 * Self.second)
      for tick in 200...1_000 as ClosedRange<Int64> { server.advance(to: tick * Self.second / 100) }
      return (server.counts, decided(&server))
    }
    let first = run()
    #expect(first.counts.sources == [.rate: 50])
    let absent = first.counts.texts.absent + first.counts.invitations.absent
    #expect(absent == 10 && first.counts.texts.sent + first.counts.invitations.sent == 40)
    #expect(first.counts.texts.sent > 5 && first.counts.invitations.sent > 5)
    #expect(first.orders.contains { $0.hasPrefix("1 ") } && first.orders.contains { $0.hasPrefix("2 ") })
    #expect(first.orders == run().orders)
  }

  @Test("Planned messages are sent at their times, once")
  func planned() {
    var server = server { options in
      options.planned = (1...3).map {
        .init(time: .seconds($0), message: .init(.text("\($0)", from: bob), to: .user(alice)))
      }
    }
    register(&server, one, alice)
    server.advance(to: Self.second - 1)
    #expect(server.counts.texts.offered == 0)
    server.advance(to: 2 * Self.second)
    #expect(server.counts.texts.sent == 2)
    server.advance(to: 9 * Self.second)
    #expect(server.counts.texts.sent == 3 && server.counts.sources == [.file: 3])
  }

  // MARK: networks

  private let three = Link(loop: 1, connection: 3)
  private let carol = LocalPushMessage.User(device: 3)

  @Test("A message for a network reaches those who are there at the moment, and nobody else")
  func network() throws {
    var server = server { $0.maximumUnacknowledged = 1 }
    register(&server, one, alice)
    register(&server, two, bob, .notification(network: 1))
    register(&server, three, carol)
    let text = LocalPushOffer(.text("a", from: .server), to: .network("ship"))
    let outcomes = server.offer(text, from: .control, now: 0)
    #expect(outcomes == [.sent, .sent] && Set(decided(&server)) == ["1 text 1", "3 text 1"])
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 0)
    let again = server.offer(text, from: .control, now: 0)
    #expect(again.map(Set.init) == [.sent, .overloaded] && decided(&server) == ["1 text 2"])
    let nowhere = server.offer(.init(.invite(from: bob), to: .network("Ship")), from: .control, now: 0)
    #expect(nowhere == nil && server.counts.sources == [.control: 4])
    #expect(server.counts[0].texts.offered == 4 && server.counts[1].texts.offered == 0)
  }

  @Test("A message for a network with nobody on it is one that is absent")
  func emptyNetwork() {
    var server = server()
    register(&server, one, alice)
    let outcomes = server.offer(.init(.invite(from: bob), to: .network("crew")), from: .file, now: 0)
    #expect(outcomes == [] && decided(&server) == [])
    #expect(server.counts[1].invitations.offered == 1 && server.counts[1].invitations.absent == 1)
    #expect(server.counts.sources == [.file: 1] && server.counts.invitations == server.counts[1].invitations)
  }

  @Test("An action in a call reaches the apps of those who are on a network")
  func actions() {
    var server = server()
    register(&server, one, alice)
    register(&server, two, alice, .control)
    register(&server, three, bob, .notification(network: 1))
    let outcomes = server.offer(.init(.callAction("end"), to: .network("ship")), from: .control, now: 0)
    #expect(outcomes == [.sent] && decided(&server) == ["2 call_action 2"])
    let others = server.offer(.init(.callAction("end"), to: .network("crew")), from: .control, now: 0)
    #expect(others == [.absent] && server.counts[nil].callActions.absent == 1)
  }

  @Test("Whoever joins another network is there, and no longer where it was")
  func moved() {
    var server = server()
    register(&server, one, alice)
    #expect(server.network(of: alice.identifier) == 0)
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    register(&server, two, alice, .notification(network: 1), now: 1)
    #expect(server.network(of: alice.identifier) == 1 && server.users(on: 0) == [])
    #expect(server.users(on: 1) == [.init(user: alice, network: 1)] && server.users().count == 1)
    #expect(server.counts[0].here == 0 && server.counts[1].here == 1 && server.counts.here == 1)
    #expect(server.counts[0].registered == 1 && server.counts[1].registered == 1)
    // What was under way stays with the network on which it was sent.
    #expect(server.counts[0].texts.lost == 1 && server.counts[1].texts.sent == 0)
    server.offer(.text("b", from: bob, to: alice), from: .control, now: 2)
    server.receive(LocalPushMessage(acknowledging: 1), on: two, now: 2)
    #expect(server.counts[1].texts.acknowledged == 1 && server.counts[0].texts.offered == 1)
    server.disconnected(two, now: 3)
    #expect(server.network(of: alice.identifier) == nil && server.counts[1].here == 0)
    let absent = server.offer(.text("c", from: bob, to: alice), from: .control, now: 4)
    #expect(absent == .absent && server.counts[nil].texts.absent == 1)
    #expect(server.counts.ledger(["ship", "crew"]).networksAreWhole)
  }

  @Test("The end of a network ends its connections alone", arguments: LocalPushFaults.Outage.Ending.allCases)
  func outage(ending: LocalPushFaults.Outage.Ending) {
    var server = server()
    register(&server, one, alice)
    register(&server, two, bob, .notification(network: 1))
    register(&server, three, bob, .control)
    server.advance(to: 0)
    _ = decided(&server)
    let (crew, none) = (server.counts[1], server.counts[nil])
    server.restart(0, ending, now: 0)
    #expect(decided(&server) == (ending == .closed ? ["1 close"] : []))
    #expect(server.counts[1] == crew && server.counts[nil] == none)
    #expect(server.counts[0].restarts == 1 && server.counts.restarts == 0)
    #expect(!server.isSilent(two) && !server.isSilent(three) && server.isSilent(one) == (ending == .silent))
    // Who is on a network that fell silent is there to the server.
    #expect(server.counts[0].here == (ending == .closed ? 0 : 1))
    let outcome = server.offer(.text("a", from: bob, to: alice), from: .control, now: 1)
    #expect(outcome == (ending == .closed ? .absent : .silenced))
    let other = server.offer(.text("a", from: alice, to: bob), from: .control, now: 1)
    #expect(other == .sent)
    server.restart(ending == .closed ? nil : 1, .closed, now: 2)
    #expect(server.counts[1].here == 0 && server.counts[1].restarts == 1)
    #expect(server.counts.restarts == (ending == .closed ? 1 : 0))
  }

  @Test("Planned messages for a network are for those who are there at their time")
  func plannedForNetwork() {
    var server = server { options in
      options.planned = (1...2).map {
        .init(time: .seconds($0), message: .init(.text("\($0)", from: bob), to: .network("ship")))
      }
    }
    server.advance(to: Self.second)
    register(&server, one, alice, now: Self.second + 1)
    server.advance(to: 2 * Self.second)
    #expect(server.counts[0].texts.absent == 1 && server.counts[0].texts.sent == 1)
    #expect(decided(&server) == ["1 text 1"])
  }

  @Test("Counts of a network since a time leave out what was before")
  func networkBaseline() throws {
    var server = server()
    register(&server, one, alice, .notification(network: 1))
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 0)
    server.restart(0, .closed, now: 0)
    let earlier = server.counts
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    var counts = server.counts
    counts.subtract(earlier)
    let networks = counts.ledger(["ship", "crew"]).networks
    #expect(networks["ship"] == Ledger.LocalPush.Network())
    let crew = try #require(networks["crew"])
    #expect(crew.registered == 0 && crew.here == 1 && crew.texts.sent == 1 && crew.texts.unacknowledged == 1)
  }

  @Test("Counts since a time balance, with what was under way then")
  func baseline() {
    var server = server()
    register(&server, one, alice)
    for _ in 0..<3 { server.offer(.text("a", from: bob, to: alice), from: .control, now: 0) }
    server.receive(LocalPushMessage(acknowledging: 1), on: one, now: 0)
    let earlier = server.counts
    server.receive(LocalPushMessage(acknowledging: 2), on: one, now: 0)
    server.offer(.text("a", from: bob, to: alice), from: .control, now: 0)
    server.offer(.text("a", from: alice, to: bob), from: .control, now: 0)
    var counts = server.counts
    counts.subtract(earlier)
    let texts = counts.texts
    #expect(texts.offered == 4 && texts.sent == 3 && texts.absent == 1)
    #expect(texts.acknowledged == 1 && texts.unacknowledged == 2)
    #expect(counts.sources == [.control: 2] && counts.requests == [:] && counts.here == 1)
  }
}
