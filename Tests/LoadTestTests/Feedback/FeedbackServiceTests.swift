import Foundation
import GatewaySimulator
import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import LoadTest

/// Loads that poll the simulator's feedback service, or something else, over real sockets.
@Suite("Feedback services", .waiting)
struct FeedbackServiceTests {
  /// The frames that the gateway has read, by time.
  private final class Frames: Sendable {
    private let kept = Mutex<[(time: Int64, bytes: [UInt8])]>([])
    var observer: ConnectionObserver {
      { [self] event in
        guard case .received(let bytes, _) = event.change else { return }
        kept.withLock { $0.append((event.time, Array(buffer: bytes))) }
      }
    }

    /// The end of the longest time in which nothing came.
    var longestSilence: Int64 {
      let times = kept.withLock { $0.map(\.time) }.sorted()
      return zip(times, times.dropFirst()).max { $0.1 - $0.0 < $1.1 - $1.0 }?.1 ?? 0
    }

    /// The numbers of the notifications that were read after a time, or before it.
    func numbers(isWanted: (Int64) -> Bool) throws -> [UInt64] {
      let bytes = kept.withLock { $0.filter { isWanted($0.time) }.map(\.bytes) }
      return try bytes.flatMap { try ReadNotification.all(in: $0) }.compactMap(\.identifier)
        .filter { $0 != BinarySending.markerIdentifier }.map { UInt64($0) - 1 }
    }
  }

  @Test(
    "After a poll lists the uninstalled tokens nothing goes to them, the simulator says; the tuples are in both books",
    arguments: seeds(2, of: 12))
  func pruned(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let frames = Frames()
    let devices = try DevicePopulation(shares: .init(uninstalled: 0.3))
    let rejects = seed.isMultiple(of: 2)
    let isRagged = generator.happens(oneIn: 2)
    let simulation = try await LoadSimulation(tls: !seed.isMultiple(of: 3), isListening: false, hasFeedback: true) {
      $0.devices = devices
      $0.behavior.seed = seed
      $0.behavior.feedback.isRagged = isRagged
      if rejects { $0.behavior.rejections = [.init(.uninstalled(0.05))] }
    }
    simulation.observer = frames.observer
    try await simulation.start()
    let plan = simulation.plan {
      $0.count = nil
      $0.workload.seed = seed
      $0.workload.tokens = 40
      $0.duration = .seconds(18)
      // In between nothing is sent for so long that all has arrived and been listed, however busy the machine is.
      $0.pace = .scheduled(
        Schedule(
          stages: [(2.2, 800.0), (15, 0), (0.8, 800)].map { Schedule.Stage(length: $0, from: $1, to: $1) }),
        isPoisson: false)
      $0.connections.count = 2
      $0.feedback?.interval = .milliseconds(400)
    }
    let outcome = try await simulation.runner(plan).run()
    await simulation.stop()
    let ledger = try #require(simulation.ledgers.last)
    expectBalance(outcome, ledger.gateway)
    let result = outcome.result(Environment())
    let feedback = try #require(result.feedback)
    #expect(feedback.failed == 0 && feedback.incomplete == 0 && feedback.complete >= 2, "\(feedback)")
    #expect(feedback.tuples == ledger.feedback.tuplesSent && feedback.tuples > 0)
    #expect(feedback.complete == ledger.feedback.completed && feedback.polls == ledger.feedback.connections)
    #expect(feedback.unknown == 0 && feedback.notRemembered == 0)
    // Which tokens are uninstalled is the simulator's to say.
    let workload = try Workload(plan.workload)
    let topic = DevicePopulation.topicSeed(LoadSimulation.topic, seed: seed)
    let plain = DevicePopulation.topicSeed(SimulatorOptions().plainTopic, seed: seed)
    let topicSeed = seed.isMultiple(of: 3) ? plain : topic
    let gone = Set(
      (0..<UInt64(40)).filter {
        devices.device(of: workload.token($0).rawBytes, topicSeed: topicSeed) == .uninstalled
      })
    #expect(!gone.isEmpty && feedback.listedTokens == gone.count && feedback.tokens == gone.count)
    let quiet = frames.longestSilence
    let before = try frames.numbers { $0 < quiet }.compactMap { workload.recipient(of: $0) }
    let after = try frames.numbers { $0 >= quiet }.compactMap { workload.recipient(of: $0) }
    #expect(!gone.isDisjoint(with: before))
    #expect(after.count > 100 && gone.isDisjoint(with: after))
    #expect((result.notifications.pruned ?? 0) > 0)
    #expect(!result.verdict.invariants.contains { !$0.holds }, "\(result.verdict.invariants)")
  }

  @Test("Without pruning everything is sent, and the tuples are counted all the same")
  func notPruned() async throws {
    let simulation = try await LoadSimulation(hasFeedback: true) {
      $0.devices = (try? DevicePopulation(shares: .init(uninstalled: 0.3))) ?? DevicePopulation()
    }
    // A tuple lists a token only in a second after that of the registration.
    let plan = simulation.plan {
      $0.count = 4_500
      $0.workload.tokens = 40
      $0.pace = .scheduled(.constant(300), isPoisson: false)
      $0.feedback?.interval = .milliseconds(300)
      $0.feedback?.prunes = false
    }
    let outcome = try await simulation.runner(plan).run()
    await simulation.stop()
    let ledger = try #require(simulation.ledgers.last)
    expectBalance(outcome, ledger.gateway)
    let feedback = try #require(outcome.result(Environment()).feedback)
    #expect(outcome.books.pruned == 0 && outcome.books.accepted == 4_500)
    #expect(feedback.tuples == ledger.feedback.tuplesSent && feedback.listed > 0)
    #expect(feedback.sentToListed > 0 && !feedback.prunes)
  }

  // MARK: services that are none

  /// What somebody says who is connected to.
  enum Manner: String, CaseIterable, CustomTestStringConvertible {
    case nobody, closed, garbage, halfTuple, reset, foreignToken, endless, silent
    var testDescription: String { rawValue }
  }

  /// A listener that says something to each of its connections.
  private final class Talker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let manner: Manner

    init(_ manner: Manner) { self.manner = manner }

    func channelActive(context: ChannelHandlerContext) {
      let tuple: [UInt8] = [0x7f, 0, 0, 0, 0, 32] + [UInt8](repeating: 7, count: 32)
      switch manner {
      case .nobody, .silent: break
      case .closed: context.close(promise: nil)
      case .garbage: say([UInt8](repeating: 0xff, count: 100), context)
      case .halfTuple: say(tuple + tuple.prefix(20), context)
      case .foreignToken: say(tuple + tuple, context)
      case .reset:
        context.writeAndFlush(NIOAny(ByteBuffer(bytes: tuple + tuple.prefix(5))), promise: nil)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        // Not before the client knows that it is connected.
        context.eventLoop.scheduleTask(in: .seconds(2)) {
          _ = (bound.value.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .map { bound.value.close(promise: nil) }
        }
      case .endless: pour(context, ByteBuffer(bytes: (0..<500).flatMap { _ in tuple }))
      }
      context.fireChannelActive()
    }

    private func say(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    private func pour(_ context: ChannelHandlerContext, _ bytes: ByteBuffer) {
      let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
      context.writeAndFlush(NIOAny(bytes)).whenSuccess { bound.value.0.pour(bound.value.1, bytes) }
    }
  }

  @Test(
    "A service that is none, or ends too early, lists nothing; the run is as without it", arguments: Manner.allCases)
  func faults(manner: Manner) async throws {
    let reserved = try ReservedPort()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    if manner != .nobody {
      _ = try await ServerBootstrap(group: group)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Talker(manner)) }
        }
        .bind(host: "127.0.0.1", port: reserved.number).get()
    }
    let simulation = try await LoadSimulation()
    let plan = simulation.plan {
      $0.count = 3_000
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      var feedback = LoadPlan.Feedback()
      (feedback.service.host, feedback.service.port) = ("127.0.0.1", reserved.number)
      feedback.interval = .milliseconds(100)
      feedback.timeout = manner == .silent ? .milliseconds(200) : .seconds(300)
      feedback.maximumTuples = 10_000
      $0.feedback = feedback
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    try await group.shutdownGracefully()
    let result = outcome.result(Environment())
    let feedback = try #require(result.feedback)
    #expect(outcome.books.accepted == 3_000 && result.notifications.pruned == 0)
    #expect(feedback.listed == 0 && feedback.listedTokens == 0 && feedback.polls > 0)
    #expect(feedback.polls == feedback.complete + feedback.incomplete + feedback.failed)
    let reason = feedback.failures.keys.first ?? ""
    switch manner {
    case .nobody:
      #expect(feedback.failed == feedback.polls && reason == "Connection refused")
    case .silent:
      #expect(feedback.failed == feedback.polls && reason == "no end of the list within 0.2 s")
    case .closed:
      // An empty list.
      #expect(feedback.complete == feedback.polls && feedback.tuples == 0 && feedback.failures.isEmpty)
    case .garbage:
      #expect(feedback.incomplete == feedback.polls && feedback.tuplesCutOff == 0)
      #expect(reason == "the bytes are not a list of tokens")
    case .halfTuple:
      #expect(feedback.incomplete == feedback.polls && feedback.tuplesCutOff == feedback.polls)
      #expect(reason == "the list ended within a tuple")
    case .reset:
      #expect(feedback.incomplete == feedback.polls && reason == "Connection reset by peer")
    case .foreignToken:
      #expect(feedback.complete == feedback.polls && feedback.unknown == 2 * feedback.polls)
      #expect(feedback.tuples == feedback.unknown && feedback.tokens == 0)
    case .endless:
      #expect(feedback.incomplete == feedback.polls && feedback.tuplesCutOff == 10_000 * feedback.polls)
      #expect(reason == "the list has more than 10000 tuples")
    }
    let isWarned = result.warnings.contains { $0.contains("the feedback service") }
    #expect(isWarned == (feedback.complete < feedback.polls))
  }

  @Test("A run that is shorter than the time to the first poll says so")
  func neverPolled() async throws {
    let simulation = try await LoadSimulation(hasFeedback: true)
    let outcome = try await simulation.runner(simulation.plan { $0.count = 10 }).run()
    expectBalance(outcome, await simulation.books())
    let result = outcome.result(Environment())
    #expect(result.feedback?.polls == 0 && result.notifications.pruned == 0)
    #expect(result.warnings.contains { $0.contains("was not polled") })
  }

  @Test("A service whose certificate is not trusted is a failed poll, and the load goes on")
  func untrusted() async throws {
    let other = try await LoadSimulation(tls: true, hasFeedback: true)
    let simulation = try await LoadSimulation(tls: true)
    let service = other.plan().feedback?.service.port ?? 0
    let plan = simulation.plan {
      $0.count = 3_000
      $0.pace = .scheduled(.constant(1_000), isPoisson: false)
      var feedback = LoadPlan.Feedback()
      (feedback.service.host, feedback.service.port) = ("127.0.0.1", service)
      feedback.interval = .milliseconds(200)
      $0.feedback = feedback
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    await other.stop()
    let feedback = try #require(outcome.result(Environment()).feedback)
    #expect(outcome.books.accepted == 3_000 && feedback.failed == feedback.polls && feedback.polls > 0)
    #expect(feedback.failures.keys.allSatisfy { $0.contains("certificate") }, "\(feedback.failures)")
  }
}
