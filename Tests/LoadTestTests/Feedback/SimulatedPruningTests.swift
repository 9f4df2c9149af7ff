import BinaryProtocol
import Bytes
import Foundation
import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// What pruning promises, as the gateway sees it, in simulated time.
@Suite("Pruning in simulated time")
struct SimulatedPruningTests {
  /// UNIX seconds, after the registration of any run's tokens.
  private static let later = UInt32(clamping: Int(Date().timeIntervalSince1970)) + 100_000

  private static func tuple(_ token: [UInt8], at time: UInt32 = later) -> [UInt8] {
    var output = ByteWriter()
    FeedbackTuple(timestamp: time, token: token.rawBytes).encode(into: &output)
    return Array(copying: output.bytes)
  }

  private struct Listing {
    var time: Int64
    var tokens: Set<UInt64>
  }

  /// Whatever the gateway does: rejections, shutdowns, broken connections, silence.
  private static func behavior(_ generator: inout SeededGenerator) -> SimulatedLink.GatewayBehavior {
    var behavior = SimulatedLink.GatewayBehavior()
    if generator.happens(oneIn: 2) { behavior.rejectsOneIn = generator.number(10...200) }
    if generator.happens(oneIn: 3) { behavior.shutsDownAfter = generator.number(20...400) }
    if generator.happens(oneIn: 3) { behavior.breaksOneIn = generator.number(200...2_000) }
    if generator.happens(oneIn: 4) { behavior.answerDelay = 0...generator.number(1...20_000_000) }
    if generator.happens(oneIn: 5) { behavior.ending = .fin }
    return behavior
  }

  @Test(
    "After a list was read, nothing goes to the tokens that it lists after their registration; the books balance",
    arguments: seeds(12, of: 200))
  func nothingLater(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let behavior = Self.behavior(&generator)
    let rate = Double(generator.number(500...4_000))
    let hasSchedule = !generator.happens(oneIn: 4)
    let (loops, connections) = (generator.number(1...2), generator.number(2...4))
    let segments = generator.number(1...3)
    let run = try SimulatedRun(behavior, seed: seed) {
      $0.count = generator.number(2_000...6_000)
      $0.duration = .seconds(20)
      if hasSchedule { $0.pace = .scheduled(.constant(rate), isPoisson: generator.happens(oneIn: 2)) }
      $0.threads = loops
      $0.connections.count = connections
      $0.workload.seed = seed
      $0.workload.tokens = generator.pick([20, 300])
      ($0.workload.segments, $0.workload.segment) = (segments, segments - 1)
      $0.usesMarkers = !generator.happens(oneIn: 5)
      $0.feedback = LoadPlan.Feedback()
      $0.feedback?.interval = .milliseconds(generator.number(50...400))
    }
    let workload = try Workload(run.plan.workload)
    let tokens = UInt64(run.plan.workload.tokens)
    var listings: [Listing] = []
    run.feedbackService = {
      let numbers = (0..<generator.number(0...5)).map { _ in UInt64(generator.number(0...Int(tokens) - 1)) }
      let isComplete = !generator.happens(oneIn: 4)
      if isComplete { listings.append(Listing(time: run.environment.now, tokens: Set(numbers))) }
      // Tokens that were registered since, and those that the load does not have, stay.
      let others = Self.tuple(workload.token(tokens - 1), at: 1) + Self.tuple([1, 2, 3])
      return (isComplete ? .complete : .incomplete("cut"), numbers.flatMap { Self.tuple(workload.token($0)) } + others)
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    // A step of the run, a batch that lingers, a step of the link with what a socket holds.
    let slack: Int64 = 60_000_000
    var arrivals = 0
    for arrival in run.environment.arrivals where arrival.identifier != BinarySending.markerIdentifier {
      let number = UInt64(arrival.identifier) - 1
      guard let token = workload.recipient(of: number) else { continue }
      arrivals += 1
      let listed = listings.first { $0.tokens.contains(token) }
      if let listed { #expect(arrival.time <= listed.time + slack, "\(number) to \(token)") }
    }
    #expect(arrivals > 0)
    let books = try #require(outcome.feedback)
    #expect(books.complete == listings.count)
    #expect(books.listedTokens == Set(listings.flatMap(\.tokens)).count)
    let result = outcome.result(Environment())
    #expect(result.notifications.pruned == outcome.books.pruned)
    if run.plan.usesMarkers {
      let silent = outcome.books.prunedOpen + outcome.books.abandonedOpen
      #expect(result.verdict.invariants.allSatisfy { $0.holds || ($0.isAboutProof && silent > 0) })
    }
  }

  private static func quiet(
    prunes: Bool, _ list: @escaping (Workload) -> [UInt8]
  ) throws -> (SimulatedRun, LoadOutcome) {
    let run = try SimulatedRun {
      $0.count = 4_000
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.workload.tokens = 10
      $0.feedback = LoadPlan.Feedback()
      $0.feedback?.interval = .milliseconds(500)
      $0.feedback?.prunes = prunes
    }
    let workload = try Workload(run.plan.workload)
    run.feedbackService = { (.complete, list(workload)) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    return (run, outcome)
  }

  @Test("Pruned notifications change no other: the rest is the same as without")
  func others() throws {
    let (pruned, outcome) = try Self.quiet(prunes: true) { Self.tuple($0.token(3)) + Self.tuple($0.token(7)) }
    let (whole, other) = try Self.quiet(prunes: false) { Self.tuple($0.token(3)) + Self.tuple($0.token(7)) }
    let workload = try Workload(pruned.plan.workload)
    let all = Set(whole.environment.accepted)
    let some = Set(pruned.environment.accepted)
    #expect(all.count == 4_000 && outcome.books.generated == 4_000)
    #expect(outcome.books.pruned == 4_000 - some.count && some.isSubset(of: all))
    let left = Set(all.subtracting(some).compactMap { workload.recipient(of: UInt64($0) - 1) })
    #expect(left == [3, 7])
    // About a fifth of the last three quarters: 600, and half of it is more than ten standard deviations.
    #expect((300...900).contains(outcome.books.pruned))
    // What was in batches at the time was still written, and is counted; of the other run it is the rest.
    #expect(other.books.pruned == 0 && outcome.books.listed.written < 20)
    #expect(abs(other.books.listed.written - outcome.books.pruned) < 20)
    #expect(other.result(Environment()).feedback?.sentToListed == other.books.listed.written)
  }

  @Test("Tokens that were registered at the time of their listing, or after it, stay")
  func registeredSince() throws {
    let now = UInt32(clamping: Int(Date().timeIntervalSince1970))
    let (_, outcome) = try Self.quiet(prunes: true) { Self.tuple($0.token(3), at: now - 1) }
    #expect(outcome.books.pruned == 0)
    let books = try #require(outcome.feedback)
    #expect(books.counts.registeredSince == books.counts.tuples && books.listedTokens == 0 && books.tokens == 1)
    #expect(outcome.result(Environment()).verdict.outcome == .proven)
  }

  @Test("With all tokens listed the run ends, and everything else is pruned", arguments: [false, true])
  func all(isPaced: Bool) throws {
    let run = try SimulatedRun {
      $0.count = isPaced ? 4_000 : 2_000_000
      if isPaced { $0.pace = .scheduled(.constant(2_000), isPoisson: false) }
      $0.workload.tokens = 5
      $0.feedback = LoadPlan.Feedback()
      $0.feedback?.interval = .milliseconds(100)
    }
    let workload = try Workload(run.plan.workload)
    run.feedbackService = { (.complete, (0..<5).flatMap { Self.tuple(workload.token($0)) }) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    #expect(outcome.books.generated == run.plan.count)
    #expect(outcome.books.pruned > 0 && outcome.books.accepted > 0)
    #expect(outcome.books.pruned == outcome.books.generated - outcome.books.accepted)
  }

  @Test("A service that says nothing of use changes nothing, and is a warning", arguments: [false, true])
  func unreachable(isCut: Bool) throws {
    let run = try SimulatedRun {
      $0.count = 2_000
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.workload.tokens = 5
      $0.feedback = LoadPlan.Feedback()
      $0.feedback?.interval = .milliseconds(100)
    }
    let workload = try Workload(run.plan.workload)
    run.feedbackService = {
      isCut ? (.incomplete("cut"), Self.tuple(workload.token(1))) : (.failed("Connection refused"), [])
    }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let result = outcome.result(Environment())
    let feedback = try #require(result.feedback)
    #expect(result.notifications.pruned == 0 && result.notifications.accepted == 2_000)
    #expect(feedback.complete == 0 && feedback.polls > 0 && feedback.listedTokens == 0 && feedback.tuples == 0)
    #expect(feedback.tuplesCutOff == (isCut ? feedback.polls : 0))
    #expect(
      result.warnings.contains {
        $0.contains(isCut ? "polls of the feedback service were cut off" : "not reachable in \(feedback.polls) of")
      })
  }

  @Test("Rejections are counted by whether their token was listed")
  func rejections() throws {
    var behavior = SimulatedLink.GatewayBehavior()
    behavior.rejectsOneIn = 40
    let run = try SimulatedRun(behavior) {
      $0.count = 4_000
      $0.pace = .scheduled(.constant(2_000), isPoisson: false)
      $0.workload.tokens = 4
      $0.feedback = LoadPlan.Feedback()
      $0.feedback?.interval = .milliseconds(500)
      $0.feedback?.prunes = false
    }
    let workload = try Workload(run.plan.workload)
    run.feedbackService = { (.complete, Self.tuple(workload.token(0)) + Self.tuple(workload.token(1))) }
    let outcome = try run.run()
    expectBalance(outcome, run.environment.books)
    let listed = outcome.books.listed
    // The gateway's own books say the same of both together, and of each what its tokens and times say.
    let refused = run.environment.refused.map { workload.recipient(of: UInt64($0) - 1) }
    #expect(listed.rejected + listed.otherRejected == refused.count)
    let some = refused.count { $0 == 0 || $0 == 1 }
    #expect(listed.rejected <= some && listed.rejected > 0 && listed.otherRejected >= refused.count - some)
    #expect(listed.discarded <= outcome.books.sendings.discarded)
  }
}
