import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// Connections that the gateway closes before it has settled anything on them. Each of these runs once had exit status 0, no
/// warning and the word "proven", or the wrong reason.
@Suite("Refused connections")
struct RefusalTests {
  /// Asks for 6 connections and a thousand notifications a second for two seconds.
  private func run(
    _ behavior: SimulatedLink.GatewayBehavior = .init(), seed: UInt64 = 1, _ change: (inout LoadPlan) -> Void = { _ in }
  ) throws -> SimulatedRun {
    try SimulatedRun(behavior, seed: seed) {
      ($0.count, $0.duration) = (nil, .seconds(2))
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      $0.connections.count = 6
      $0.connections.maximumBackoff = .milliseconds(300)
      change(&$0)
    }
  }

  private func result(_ outcome: LoadOutcome) -> RunResult { outcome.result(Environment()) }

  private func warning(_ connections: RunResult.Connections) -> String {
    "\(connections.refused ?? -1) of \(connections.opened) connections were closed by the gateway before anything on them was proven accepted"
  }

  @Test("Fewer than asked were ever up, because the gateway serves three: the run has failed, and says why")
  func limit() throws {
    let run = try run()
    run.environment.served = 3
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = result(outcome)
    let connections = result.connections
    #expect(outcome.books.accepted == outcome.books.generated && outcome.books.generated > 1_900)
    #expect(connections.everUp == 3 && connections.opened == 3 + (connections.refused ?? 0))
    #expect(result.verdict.outcome == .failed)
    #expect(
      result.verdict.reasons == [
        "3 of 6 connections came up: \(connections.refused ?? -1) of \(connections.opened) were closed by the gateway before anything on them was proven accepted"
      ])
    #expect(result.warnings.contains(warning(connections)))
    // They are told apart, and still among the closed ones.
    #expect((connections.refused ?? 0) <= connections.closed[.peerFin] ?? 0)
    #expect(result.phases.reduce(0) { $0 + ($1.connections.refused ?? 0) } == connections.refused)
  }

  @Test("Half of the connections are refused and all six were up: everything is proven, with a warning")
  func half() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.closesOneIn = 2
    let run = try run(behavior)
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = result(outcome)
    #expect(result.connections.everUp == 6 && (result.connections.refused ?? 0) > 0)
    #expect(result.verdict.outcome == .proven)
    #expect(result.warnings.contains(warning(result.connections)))
  }

  @Test("A gateway that shuts every connection down at once, with status 10, serves nobody")
  func shutDown() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.shutsDownAfter = 0
    let run = try run(behavior) { $0.connections.giveUp = .seconds(1) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = result(outcome)
    #expect(result.connections.everUp == 0 && result.connections.refused == result.connections.opened)
    #expect(result.verdict.outcome == .failed)
    #expect(result.verdict.reasons?.first?.hasPrefix("gave up: for 1 s the gateway closed every connection") == true)
    #expect(result.verdict.reasons?.contains { $0.contains("no connection could be established") } == false)
  }

  @Test(
    "What the load closes itself is not refused, however little was on it",
    arguments: [
      { $0.connections.lifetime = .milliseconds(20) }, { $0.connections.notifications = 1 },
      { ($0.count, $0.duration) = (3, .seconds(50)) },
    ] as [@Sendable (inout LoadPlan) -> Void])
  func closedHere(change: @Sendable (inout LoadPlan) -> Void) throws {
    for usesMarkers in [true, false] {
      let run = try run {
        change(&$0)
        $0.usesMarkers = usesMarkers
      }
      let outcome = try run.run()
      expectBalance(outcome, run.environment.books)
      let result = result(outcome)
      #expect(result.connections.refused == 0 && result.connections.everUp == 6)
      #expect(result.verdict.outcome == (usesMarkers ? .proven : .unproven))
      #expect(!result.warnings.contains { $0.contains("were closed by the gateway") })
    }
  }

  @Test("A connection that nothing was sent on is not taken for up before the gateway has answered on it")
  func unused() throws {
    // The run is over before the refusals arrive.
    let run = try run {
      ($0.count, $0.duration) = (2, .seconds(50))
      $0.connections.stagger = .zero
    }
    run.environment.served = 3
    run.environment.refusalDelay = .milliseconds(300)
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = result(outcome)
    #expect(outcome.books.accepted == 2 && result.connections.everUp == 3 && result.connections.refused == 3)
    #expect(result.verdict.outcome == .failed)
  }

  @Test("A gateway that holds a connection for longer than the settling time has served it, proof or none")
  func held() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.ending, behavior.lifetime) = (.fin, LoadPlan.settling.nanoseconds + 20_000_000)
    let run = try run(behavior) {
      $0.usesMarkers = false
      $0.connections.count = 2
      $0.connections.stagger = .zero
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let served = result(outcome)
    #expect(served.connections.everUp == 2 && served.connections.refused == 0)
    // Just shorter, and nothing on it is proven: refused.
    behavior.lifetime = LoadPlan.settling.nanoseconds - 20_000_000
    let short = try self.run(behavior) {
      $0.usesMarkers = false
      $0.connections.count = 2
      $0.connections.stagger = .zero
    }
    let refused = result(try short.run())
    #expect((refused.connections.refused ?? 0) >= 2)
    #expect(refused.warnings.contains(warning(refused.connections)))
    #expect(refused.verdict.outcome != .proven)
  }

  /// `kill -STOP` of the load, right after its connections were opened.
  @Test("A refusal that the load reads late, because it stood still, is one all the same")
  func stopped() throws {
    let run = try run { $0.connections.stagger = .zero }
    run.environment.served = 3
    run.environment.refusalDelay = .milliseconds(20)
    var isStopped = false
    let outcome = try run.run { run in
      guard !isStopped, run.environment.links.count == 6 else { return }
      isStopped = true
      run.environment.stop(for: .seconds(5))
    }
    let result = result(outcome)
    #expect(isStopped && result.connections.everUp == 3 && result.verdict.outcome == .failed)
  }

  @Test("Refusals are warned of from one in a hundred on")
  func threshold() {
    func warning(_ refused: Int?, of opened: Int) -> String? {
      var connections = RunResult.Connections()
      (connections.refused, connections.opened) = (refused, opened)
      return connections.refusalWarning
    }
    #expect(warning(1, of: 100) != nil && warning(1, of: 101) == nil && warning(2, of: 101) != nil)
    #expect(warning(0, of: 0) == nil && warning(0, of: 100) == nil && warning(nil, of: 100) == nil)
  }

  // MARK: reasons

  @Test(
    "Connections that end after something was written are not said to be closed right after the handshake",
    arguments: [SimulatedLink.GatewayBehavior.Ending.fin, .rst], [0, 50])
  func endings(ending: SimulatedLink.GatewayBehavior.Ending, rejectsOneIn: Int) throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.ending, behavior.rejectsOneIn) = (ending, rejectsOneIn)
    let run = try run(behavior) { $0.connections.count = 1 }
    var outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(run.environment.books.accepted > 0 && outcome.books.accepted == 0 && outcome.books.endedUnused == 0)
    for usesTLS in [true, false] {
      outcome.usesTLS = usesTLS
      let verdict = result(outcome).verdict
      #expect(verdict.outcome == .failed)
      let reasons = (verdict.reasons ?? []).joined(separator: "\n")
      #expect(reasons.contains("nothing was proven accepted"), "\(reasons)")
      #expect(!reasons.contains("right after") && !reasons.contains("certificate"), "\(reasons)")
      #expect(!reasons.contains("no connection could be established"), "\(reasons)")
    }
  }

  @Test("A gateway that closes every connection is told from one that closes on what it reads, also by one connection")
  func closesAll() throws {
    // With a delay the load has written on each connection before its end is read.
    for (seed, delay) in [(1, 0), (2, 0), (3, 50), (4, 50)] as [(UInt64, Int)] {
      let run = try run(seed: seed) { $0.connections.count = 1 }
      run.environment.served = 0
      run.environment.refusalDelay = .milliseconds(delay)
      var outcome = try run.run()
      outcome.usesTLS = true
      #expect(outcome.books.endedUnused > 0)
      let reasons = result(outcome).verdict.reasons ?? []
      #expect(reasons.contains { $0.hasSuffix("certificate of the other environment, or revoked?") }, "\(reasons)")
    }
  }

  @Test("Error responses that name nothing are the reason, and not a lack of connections")
  func wrongIdentifiers() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.identifier = .wrong
    let run = try run(behavior) {
      $0.connections.count = 1
      $0.connections.giveUp = .seconds(1)
      // So that a wrong identifier is that of nothing that was sent.
      ($0.count, $0.duration, $0.drain) = (1, .seconds(4), .seconds(4))
    }
    let outcome = try run.run()
    let reasons = result(outcome).verdict.reasons ?? []
    #expect(outcome.books.unresolvedResponses > 0 && result(outcome).verdict.outcome == .failed)
    #expect(
      reasons.contains {
        $0.hasSuffix(
          "none of \(outcome.books.unresolvedResponses) error responses names a notification that was sent on its connection"
        )
      }, "\(reasons)")
    #expect(!reasons.contains { $0.contains("no connection could be established") }, "\(reasons)")
  }

  // MARK: duplicates

  @Test("Notifications that are sent again though the gateway may have accepted them are a warning")
  func duplicates() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    (behavior.rejectsOneIn, behavior.identifier) = (200, .zero)
    let run = try run(behavior) { $0.connections.count = 2 }
    let outcome = try run.run()
    let result = result(outcome)
    let extra = run.environment.accepted.count - Set(run.environment.accepted).count
    #expect(extra > 0)
    let warning = try #require(result.warnings.first { $0.contains("more than once") })
    let most = try #require(Int(warning.prefix { $0.isNumber }))
    #expect(extra <= most && most <= result.sendings.resent)

    (behavior.identifier, behavior.answerDelay) = (.right, 50_000_000...50_000_000)
    let clean = self.result(try self.run(behavior).run())
    #expect(clean.sendings.resent > 0 && !clean.warnings.contains { $0.contains("more than once") })
  }
}
