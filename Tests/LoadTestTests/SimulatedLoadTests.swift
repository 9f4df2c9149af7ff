import APNSProtocol
import Bytes
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import LoadTest

@Suite("Simulated loads: the engine without sockets or clock")
struct SimulatedLoadTests {
  /// A seed that fails gives the same run again.
  @Test(
    "The books balance and agree with the gateway's, notification by notification",
    arguments: 1...300 as ClosedRange<UInt64>)
  func books(seed: UInt64) throws {
    let run = try SimulatedLoad(seed: seed)
    try run.run()
    let (tally, sendings) = (run.runner.tally, run.runner.tally.sendings)
    func expect(_ condition: Bool, _ law: String) {
      #expect(
        condition,
        Comment(rawValue: "\(law): \(tally), gateway accepted \(run.accepted.count) refused \(run.refused.count)"))
    }
    expect(tally.generated == tally.accepted + tally.rejected + tally.unknown + tally.abandoned, "each has one fate")
    expect(
      sendings.written == sendings.accepted + sendings.rejected + sendings.discarded + sendings.unknown,
      "each sending has one fate")
    expect(tally.up == 0, "no connection is left")
    expect(tally.opened == tally.closed.values.reduce(0, +), "each connection ends once")
    expect(run.received <= sendings.written + sendings.markers, "received at most what was written")
    expect(run.accepted.count >= sendings.accepted, "what is called accepted was")
    expect(run.accepted.count <= sendings.accepted + sendings.unknown, "what was accepted is called so, or unknown")
    if run.plan.usesMarkers, run.plan.resendsUnknown { expect(tally.unknown == 0, "markers leave nothing unknown") }
    if !run.hasTrouble, !run.hasAnonymous, run.plan.usesMarkers {
      expect(tally.generated == run.plan.count, "all of it was sent")
      expect(tally.abandoned == 0, "nothing was given up")
    }
    expect(run.runner.measurements.recover.count <= tally.opened, "a connection recovers once")
    // A loop that asks whenever it may comes to nothing else, and least of all to reading.
    expect(run.mostAsked <= 3, "what is seen to wait is waited for, and not asked for again until it was read")
    guard sendings.unknown == 0, !run.hasAnonymous else { return }
    // No notification was accepted twice, none is missing, and none that was refused was accepted as well.
    let accepted = Set(run.accepted)
    expect(accepted.count == run.accepted.count, "nothing was accepted twice")
    expect(accepted.count == tally.accepted, "the same are accepted")
    expect(accepted.isDisjoint(with: run.refused), "what was refused was not accepted")
    if tally.abandoned == 0 {
      let all = accepted.union(run.refused)
      expect(all.count == tally.generated && all.max() ?? 0 == UInt32(tally.generated), "none is missing")
    }
  }

  @Test("The same seed gives the same run", arguments: [3, 77] as [UInt64])
  func deterministic(seed: UInt64) throws {
    let runs = try (0..<2).map { _ in
      let run = try SimulatedLoad(seed: seed)
      try run.run()
      return (run.accepted, run.runner.tally.sendings.written)
    }
    #expect(runs[0] == runs[1])
  }
}

/// A load's engine on a loop whose time is a number, against gateways whose manners are drawn from a seed.
private final class SimulatedLoad {
  let plan: LoadPlan
  /// The gateway breaks connections, refuses them, or ends them without a word.
  let hasTrouble: Bool
  /// Some notifications have no identifier, and end their connection without a word when they are refused.
  var hasAnonymous: Bool { plan.workload.commands.parts.contains { $0.value == 0 } }
  private(set) var runner: LoopRunner
  private let loop = EmbeddedEventLoop()
  private let world: SimulatedWorld

  var accepted: [UInt32] { world.ended.flatMap(\.accepted) }
  var refused: [UInt32] { world.ended.flatMap(\.refused) }
  var received: Int { world.ended.reduce(0) { $0 + $1.received } }
  /// How often a connection was told within a moment that something waits to be read.
  var mostAsked: Int { world.mostAsked }

  init(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var manners = SimulatedLink.Manners()
    if generator.happens(oneIn: 2) { manners.rejectsOneIn = generator.number(30...400) }
    if generator.happens(oneIn: 3) { manners.shutsDownAfter = generator.number(1...500) }
    if generator.happens(oneIn: 4) { manners.breaksOneIn = generator.number(20...400) }
    if generator.happens(oneIn: 6) { manners.isSilent = true }
    if generator.happens(oneIn: 6) { manners.namesNothing = true }
    manners.readsAtMost = generator.pick([200, 3_000, 1 << 16])
    manners.room = generator.pick([100, 4_000, 1 << 15])
    let refusesOneIn = generator.happens(oneIn: 4) ? generator.number(2...6) : 0
    let tokenLength = generator.pick([32, 32, 32, 16])
    // A gateway that refuses every token discards each notification so often that some are given up.
    hasTrouble =
      tokenLength != 32 || manners.breaksOneIn > 0 || manners.isSilent || manners.namesNothing || refusesOneIn > 0

    var plan = LoadPlan()
    plan.workload.seed = seed
    plan.workload.tokenLength = tokenLength
    plan.workload.commands = generator.pick([.init(2), .init(2), .init(1), .init([(0, 1), (2, 20)])])
    plan.workload.payload = .sizes(.init(30...generator.pick([60, 300])))
    plan.count = generator.number(100...1_500)
    plan.connections.count = generator.number(1...4)
    plan.connections.stagger = .milliseconds(generator.number(0...5))
    plan.connections.backoff = .milliseconds(5)
    plan.connections.maximumBackoff = .milliseconds(50)
    plan.markerTimeout = .seconds(2)
    plan.drain = .seconds(30)
    for fault in [.invalidToken, .missingToken, .tokenSize, .oversize, .malformed] as [WorkloadPlan.Fault]
    where generator.happens(oneIn: 4) {
      plan.workload.faults[fault] = generator.pick([0.001, 0.01])
    }
    if generator.happens(oneIn: 3) { plan.batching.notifications = generator.number(1...20) }
    if generator.happens(oneIn: 3) { plan.batching.bytes = generator.number(100...4_000) }
    if generator.happens(oneIn: 4) { plan.connections.lifetime = .milliseconds(generator.number(5...100)) }
    if generator.happens(oneIn: 4) { plan.connections.notifications = generator.number(10...300) }
    if generator.happens(oneIn: 6) { plan.usesMarkers = false }
    if generator.happens(oneIn: 6) { plan.resendsUnknown = false }
    if generator.happens(oneIn: 3) {
      plan.pace = .scheduled(
        .constant(Double(generator.number(1_000...50_000))), isPoisson: generator.happens(oneIn: 2))
    }
    self.plan = plan
    let world = SimulatedWorld(manners, refusesOneIn: refusesOneIn, generator, loop)
    self.world = world
    runner = LoopRunner(
      plan, try Workload(plan.workload), loop, part: 0, of: 1,
      World(
        clock: { world.now }, jitter: seed, hasInput: { world.hasInput($0) }, afterSockets: { world.afterSockets($0) },
        connect: { world.connect($0) }))
  }

  /// To its end; 20 seconds of simulated time are more than any needs that can end at all.
  func run() throws {
    runner.openAll(Array(0..<plan.connections.count), of: plan.connections.count)
    runner.begin(at: world.now)
    let start = world.now
    while !runner.isAllSent, world.now < start + 20_000_000_000 { try pass() }
    runner.drain()
    let end = world.now + Int64(plan.drain / .nanoseconds(1))
    while !runner.drainStep(), world.now < end { try pass() }
    runner.finish()
    // What was written before the end arrives all the same.
    for _ in 0..<2_000 where !world.links.isEmpty { try pass() }
    world.end()
    try loop.syncShutdownGracefully()
  }

  private func pass() throws {
    try world.pass()
    runner.tick()
  }
}

/// Time, and the connections that are open in it.
private final class SimulatedWorld {
  private(set) var now: Int64 = 1_000_000_000
  private(set) var links: [SimulatedLink] = []
  private(set) var ended: [SimulatedLink] = []
  private(set) var mostAsked = 0
  private var asked: [Int: Int] = [:]
  private let manners: SimulatedLink.Manners
  private let refusesOneIn: Int
  private var generator: SeededGenerator
  private let loop: EmbeddedEventLoop

  init(_ manners: SimulatedLink.Manners, refusesOneIn: Int, _ generator: SeededGenerator, _ loop: EmbeddedEventLoop) {
    self.manners = manners
    self.refusesOneIn = refusesOneIn
    self.generator = generator
    self.loop = loop
  }

  /// A moment of up to a millisecond.
  func pass() throws {
    asked.removeAll(keepingCapacity: true)
    let step = Int64(generator.number(10_000...1_000_000))
    now += step
    loop.advanceTime(by: .nanoseconds(step))
    for link in links where try !link.step(&generator) { end(link) }
  }

  func end() { for link in links { end(link) } }

  private func end(_ link: SimulatedLink) {
    links.removeAll { $0 === link }
    ended.append(link)
    if link.channel.isActive { link.channel.close(promise: nil) }
  }

  func hasInput(_ connection: ProviderConnection) -> Bool {
    guard links.first(where: { connection.carries($0.channel) })?.hasInput == true else { return false }
    asked[connection.number, default: 0] += 1
    mostAsked = max(mostAsked, asked[connection.number] ?? 0)
    return true
  }

  func afterSockets(_ body: @escaping () -> Void) {
    _ = loop.scheduleTask(in: .microseconds(5), body)
  }

  func connect(_ connection: ProviderConnection) {
    let life = connection.life
    let isRefused = refusesOneIn > 0 && generator.happens(oneIn: refusesOneIn)
    _ = loop.scheduleTask(in: .microseconds(Int64(generator.number(10...2_000)))) { [self] in
      guard !isRefused, let link = try? SimulatedLink(manners, loop: loop) else {
        return connection.failedToOpen(life: life)
      }
      try link.channel.pipeline.syncOperations.addHandler(ProviderHandler(connection, usesTLS: false))
      links.append(link)
      link.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 2195), promise: nil)
    }
  }
}
