import GatewaySimulator
import TestSupport
import Testing

@testable import LoadTest

/// As `SimulatedLoadTests`, over real sockets and with the simulator's own manners.
@Suite("Random loads")
struct RandomLoadTests {
  @Test("The books balance, whatever the gateway does", arguments: seeds(4, of: 20))
  func random(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let behavior = generator.behavior(seed)
    let simulation = try await LoadSimulation(tls: seed.isMultiple(of: 4)) { options in
      options.behavior = behavior
      options.threads = 1
    }
    let plan = simulation.plan {
      generator.change(&$0, seed)
      // Then nothing is ever proven, and the run goes on until its time is over.
      if behavior.response.ending != .response { ($0.duration, $0.drain) = (.seconds(2), .seconds(1)) }
    }
    let outcome = try await simulation.runner(plan).run()
    let gateway = await simulation.books()
    // A gateway that names another one than it means is believed.
    expectBalance(outcome, behavior.response.identifier == .wrong ? nil : gateway)
    #expect(outcome.books.generated <= plan.count ?? 0)
    if behavior.response.ending == .response, behavior.response.identifier == .right {
      #expect(outcome.books.generated == plan.count)
      // Only those that end their connection without an answer are given up.
      let silent = plan.workload.commands.parts.contains { $0.value == 0 }
      if !silent { #expect(outcome.books.abandoned == 0, "\(outcome.books)") }
    }
  }
}

extension SeededGenerator {
  fileprivate mutating func behavior(_ seed: UInt64) -> Behavior {
    var behavior = Behavior()
    behavior.seed = seed
    if happens(oneIn: 2) {
      behavior.rejections.append(.init(.every(number(50...600)), status: pick([.invalidToken, .processingError])))
    }
    if happens(oneIn: 3) { behavior.rejections.append(.init(.probability(0.003))) }
    if happens(oneIn: 3) { behavior.shutdownAfter = number(100...800) }
    if happens(oneIn: 3) { behavior.response.delay = .zero ... .milliseconds(number(1...50)) }
    if happens(oneIn: 3) {
      behavior.response.pieces = (0..<number(1...4)).map { _ in number(1...3) }
      behavior.response.pieceDelay = .milliseconds(number(0...3))
    }
    if happens(oneIn: 4) { behavior.response.identifier = pick([.wrong, .zero]) }
    if happens(oneIn: 4) { behavior.response.ending = pick([.fin, .rst]) }
    if happens(oneIn: 5) { behavior.connection.lifetime = .milliseconds(number(1_000...2_000)) }
    return behavior
  }

  fileprivate mutating func change(_ plan: inout LoadPlan, _ seed: UInt64) {
    plan.count = number(500...4_000)
    plan.threads = number(1...2)
    plan.connections.count = number(plan.threads...5)
    plan.workload.seed = seed
    plan.workload.commands = pick([
      .init(2), .init(2), .init(1), .init([(0, 1), (2, 50)]), .init([(0, 1), (1, 1), (2, 1)]),
    ])
    for fault in [.missingToken, .tokenSize, .oversize, .malformed, .missingPayload] as [WorkloadPlan.Fault]
    where happens(oneIn: 3) {
      plan.workload.faults[fault] = pick([0.0005, 0.002, 0.01])
    }
    if happens(oneIn: 3) { plan.batching.notifications = number(1...20) }
    if happens(oneIn: 3) { plan.batching.bytes = number(100...4_000) }
    if happens(oneIn: 4) { plan.connections.lifetime = .milliseconds(number(20...200)) }
    if happens(oneIn: 4) { plan.connections.notifications = number(20...500) }
    if happens(oneIn: 5) { plan.usesMarkers = false }
    if happens(oneIn: 5) { plan.resendsUnknown = false }
    if happens(oneIn: 4) {
      plan.pace = .scheduled(.constant(Double(number(1_000...20_000))), isPoisson: happens(oneIn: 2))
    }
  }
}
