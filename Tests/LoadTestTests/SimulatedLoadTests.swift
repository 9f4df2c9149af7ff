import Measurement
import TestSupport
import Testing

@testable import LoadTest

@Suite("Simulated loads: runs without sockets or clock")
struct SimulatedLoadTests {
  /// A seed that fails gives the same run again.
  @Test(
    "The books balance and agree with the gateway's, notification by notification", arguments: seeds(10, of: 100))
  func books(seed: UInt64) throws {
    let load = try SimulatedLoad(seed: seed)
    let outcome = try load.run.run()
    let (plan, environment, tally, sendings) = (
      load.run.plan, load.run.environment, outcome.books, outcome.books.sendings
    )
    // A gateway that names another one than it means is believed.
    expectBalance(outcome, load.behavior.identifier == .wrong ? nil : environment.books)
    func expect(_ condition: Bool, _ law: String) {
      #expect(condition, "\(law): \(tally), gateway \(environment.books)")
    }
    expect(tally.generated <= plan.count ?? 0, "no more than was asked for")
    if !load.hasTrouble, !load.hasAnonymous, plan.usesMarkers {
      expect(tally.generated == plan.count, "all of it was sent")
      expect(tally.abandoned == 0, "nothing was given up")
    }
    expect(
      outcome.phases.reduce(0) { $0 + $1.measurements.latency.recoverUs.count } <= tally.opened,
      "a connection recovers once")
    // A loop that asks whenever it may comes to nothing else, and least of all to reading.
    expect(environment.mostAsked <= 3, "what is seen to wait is waited for, and not asked for again until it was read")
    guard sendings.unknown == 0, !load.hasAnonymous, load.behavior.identifier != .wrong else { return }
    // No notification was accepted twice, none is missing, and none that was refused was accepted as well.
    let accepted = Set(environment.accepted)
    expect(accepted.count == environment.accepted.count, "nothing was accepted twice")
    expect(accepted.count == tally.accepted, "the same are accepted")
    expect(accepted.isDisjoint(with: environment.refused), "what was refused was not accepted")
    if tally.abandoned == 0 {
      let all = accepted.union(environment.refused)
      expect(all.count == tally.generated, "none is missing")
      // Of two loops that were ended early one may be ahead.
      if plan.threads == 1 || tally.generated == plan.count {
        expect(all.max() ?? 0 == UInt32(tally.generated), "they are the first ones")
      }
    }
  }

  @Test("The same seed gives the same run", arguments: [3, 77] as [UInt64])
  func deterministic(seed: UInt64) throws {
    let runs = try (0..<2).map { _ in
      let load = try SimulatedLoad(seed: seed)
      let outcome = try load.run.run()
      return (load.run.environment.accepted, outcome.books.sendings.written, load.run.length)
    }
    #expect(runs[0] == runs[1])
  }
}

/// A run whose plan, and whose gateway's manners, are drawn from a seed.
private struct SimulatedLoad {
  let run: SimulatedRun
  let behavior: SimulatedLink.GatewayBehavior
  /// The gateway breaks connections, refuses them, or ends them without a word.
  let hasTrouble: Bool
  /// Some notifications have no identifier, and end their connection without a word when they are refused.
  var hasAnonymous: Bool { run.plan.workload.commands.parts.contains { $0.value == 0 } }

  init(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var behavior = SimulatedLink.GatewayBehavior()
    if generator.happens(oneIn: 2) { behavior.rejectsOneIn = generator.number(30...400) }
    if generator.happens(oneIn: 3) { behavior.shutsDownAfter = generator.number(1...500) }
    if generator.happens(oneIn: 4) { behavior.breaksOneIn = generator.number(20...400) }
    if generator.happens(oneIn: 6) { behavior.ending = generator.pick([.fin, .rst]) }
    if generator.happens(oneIn: 6) { behavior.identifier = generator.pick([.wrong, .zero]) }
    if generator.happens(oneIn: 3) { behavior.status = .processingError }
    if generator.happens(oneIn: 3) { behavior.answerDelay = 0...generator.number(1_000_000...50_000_000) }
    if generator.happens(oneIn: 6) { behavior.lifetime = Int64(generator.number(20_000_000...500_000_000)) }
    if generator.happens(oneIn: 8) { behavior.closesOneIn = generator.number(2...6) }
    if generator.happens(oneIn: 4) { behavior.receiveBuffer = generator.pick([1_000, 16_384]) }
    behavior.readsAtMost = generator.pick([200, 3_000, 1 << 16])
    behavior.room = generator.pick([100, 4_000, 1 << 15])
    let refusesOneIn = generator.happens(oneIn: 4) ? generator.number(2...6) : 0
    let tokenLength = generator.pick([32, 32, 32, 16])
    // A gateway that refuses every token discards each notification so often that some are given up.
    hasTrouble =
      tokenLength != 32 || behavior.breaksOneIn > 0 || behavior.ending != .response || behavior.identifier != .right
      || refusesOneIn > 0 || behavior.closesOneIn > 0

    var plan = LoadPlan()
    plan.workload.seed = seed
    plan.workload.tokenLength = tokenLength
    plan.workload.commands = generator.pick([.init(2), .init(2), .init(1), .init([(0, 1), (2, 20)])])
    plan.workload.payload = .sizes(.init(30...generator.pick([60, 300])))
    plan.count = generator.number(100...1_500)
    plan.threads = generator.number(1...2)
    plan.connections.count = generator.number(plan.threads...4)
    plan.connections.stagger = .milliseconds(generator.number(0...5))
    plan.connections.backoff = .milliseconds(5)
    plan.connections.maximumBackoff = .milliseconds(50)
    plan.markerTimeout = .seconds(2)
    // More than any needs that can end at all.
    (plan.duration, plan.drain) = hasTrouble ? (.seconds(4), .seconds(6)) : (.seconds(20), .seconds(30))
    for fault in [
      .invalidToken, .missingToken, .tokenSize, .oversize, .malformed, .missingPayload,
    ] as [WorkloadPlan.Fault]
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
    let environment = SimulatedEnvironment(behavior, generator)
    environment.refusesOneIn = refusesOneIn
    self.behavior = behavior
    run = try SimulatedRun(plan, environment, seed: seed)
  }
}
