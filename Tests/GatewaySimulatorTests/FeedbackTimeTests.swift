import BinaryProtocol
import Bytes
import Glibc
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import GatewaySimulator

/// How long the feedback service waits for a provider, and what it holds meanwhile, on a clock that a test moves on.
@Suite("Simulated time: the feedback service")
struct FeedbackTimeTests {
  @Test("A client that goes on waiting is given up, and not before its time; its list stays", arguments: [false, true])
  func timeout(neverCloses: Bool) async throws {
    let feedback = try await SimulatedFeedback(tuples: 5) {
      $0.behavior.feedback.neverCloses = neverCloses
      $0.feedbackTimeout = .seconds(60)
    }
    try await feedback.wait { $0.sent == 5 * 38 }
    // It finds that there is no more.
    await feedback.settle()
    await feedback.advance(by: .seconds(60))
    // The end is left to the client by a service that does not close.
    #expect(try await feedback.state == .init(sent: 5 * 38, isOutputEnded: !neverCloses, isClosed: false))
    await feedback.advance(by: .milliseconds(500))
    #expect(try await feedback.state.isClosed)
    let tally = try await feedback.end()
    #expect(tally.feedbackConnections == 1 && tally.feedbackOpen == 0)
    #expect(tally.tuplesSent == 5 && tally.feedbackCompleted == 0)
    #expect(feedback.list.waiting == 5)
  }

  @Test("Of a list of any length a piece is read when the one before it is sent, which may take its time each")
  func pieces() async throws {
    let feedback = try await SimulatedFeedback(tuples: 2_500, holdsWrites: true) { $0.feedbackTimeout = .seconds(60) }
    for sent in [1_000, 2_000, 2_500] {
      try await feedback.wait { $0.sent == sent * 38 }
      await feedback.advance(by: .seconds(59))
      // No further one is asked for.
      await feedback.settle()
      #expect(try await feedback.state == .init(sent: sent * 38, isOutputEnded: false, isClosed: false))
      try await feedback.release()
    }
    try await feedback.wait { $0.isOutputEnded }
    let tally = try await feedback.end()
    #expect(tally.tuplesSent == 2_500)
    #expect(feedback.list.waiting == 2_500)
  }

  enum Leaving: CaseIterable { case client, service }

  @Test("A transfer that breaks off in the middle leaves the list as it was", arguments: Leaving.allCases)
  func breaksOff(leaving: Leaving) async throws {
    let feedback = try await SimulatedFeedback(tuples: 2_500, holdsWrites: true)
    try await feedback.wait { $0.sent == 1_000 * 38 }
    switch leaving {
    case .client: try await feedback.reset()
    case .service:
      // It ends its transfers in good order if it can, and breaks them off when its patience is at its end.
      try await feedback.shutDown()
      #expect(try await !feedback.state.isClosed)
      try await feedback.release()
      try await feedback.wait { $0.sent == 2_000 * 38 }
    }
    let tally = try await feedback.end()
    #expect(try await feedback.state.isClosed)
    #expect(tally.tuplesSent == (leaving == .client ? 0 : 1_000) && tally.feedbackCompleted == 0)
    #expect(feedback.list.waiting == 2_500)
  }

  @Test("A client that stops reading is given up, and not before its time; its list stays")
  func stopsReading() async throws {
    let feedback = try await SimulatedFeedback(tuples: 2_500, holdsWrites: true) { $0.feedbackTimeout = .seconds(60) }
    try await feedback.wait { $0.sent == 1_000 * 38 }
    await feedback.advance(by: .seconds(50))
    try await feedback.release()
    try await feedback.wait { $0.sent == 2_000 * 38 }
    await feedback.advance(by: .seconds(60))
    #expect(try await !feedback.state.isClosed)
    await feedback.advance(by: .milliseconds(500))
    #expect(try await feedback.state.isClosed)
    let tally = try await feedback.end()
    #expect(tally.tuplesSent == 1_000 && tally.feedbackCompleted == 0)
    #expect(feedback.list.waiting == 2_500)
  }
}

/// One connection to a feedback service, without a socket. The list is read on other threads, which its loop waits for.
private final class SimulatedFeedback: Sendable {
  struct State: Equatable, Sendable {
    /// Bytes.
    var sent = 0
    var isOutputEnded = false
    var isClosed = false
  }

  let list: FeedbackList
  private let shared: SimulatorContext
  private let loop = NIOAsyncTestingEventLoop()
  private let channel: NIOAsyncTestingChannel
  private let parts: NIOLoopBound<(books: EventLoopState, sweeps: RepeatedTask, socket: SimulatedSocket)>

  init(tuples: Int, holdsWrites: Bool = false, _ configure: (inout SimulatorOptions) -> Void = { _ in }) async throws {
    list = try FeedbackList(path: nil)
    try await list.put((0..<tuples).map { Failure(topic: Simulation.topic, token: token($0), time: 1) })
    var options = SimulatorOptions()
    options.plainTopic = Simulation.topic
    configure(&options)
    let shared = SimulatorContext(options, feedbackList: list, log: nil)
    self.shared = shared
    let (loop, channel) = (loop, NIOAsyncTestingChannel(loop: loop))
    self.channel = channel
    parts = try await loop.executeInContext {
      let (books, socket) = (EventLoopState(loop, shared), SimulatedSocket(readLength: .max))
      socket.holdsWrites = holdsWrites
      try channel.pipeline.syncOperations.addHandler(socket)
      try Simulator.accept(channel, .feedback, shared, books)
      return NIOLoopBound((books, books.startSweeping(), socket), eventLoop: loop)
    }
    try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 50_000))
  }

  var state: State {
    get async throws {
      try await loop.executeInContext { [parts] in
        let socket = parts.value.socket
        return State(
          sent: socket.sent, isOutputEnded: socket.outputEndedAt != nil, isClosed: socket.closedAt != nil)
      }
    }
  }

  /// Waits until other threads have done so much; the clock stands still.
  func wait(until isReached: (State) -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try await !isReached(state) {
      let state = try await state
      try #require(ContinuousClock.now < deadline, "it does not come to that: \(state)")
      try await Task.sleep(for: .milliseconds(1))
      await settle()
    }
  }

  /// Everything that was asked of the list is done, and the loop has seen it.
  func settle() async {
    await shared.settle()
    await loop.run()
  }

  func advance(by duration: Duration) async { await loop.advanceTime(by: duration.timeAmount) }

  /// The client reads.
  func release() async throws { try await loop.executeInContext { [parts] in parts.value.socket.release() } }

  func reset() async throws {
    try await loop.executeInContext { [channel] in
      channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
    }
  }

  func shutDown() async throws {
    try await loop.executeInContext { [parts] in parts.value.books.shutDownConnections(upTo: .max, forGood: true) }
  }

  func end() async throws -> Tally {
    try await loop.executeInContext { [parts] in
      parts.value.sweeps.cancel()
      parts.value.books.closeConnections()
    }
    await settle()
    let tally = try await loop.executeInContext { [parts] in parts.value.books.tally }
    await loop.shutdownGracefully()
    return tally
  }
}
