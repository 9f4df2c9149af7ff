import Foundation
import Measurement
import NIOCore
import NIOEmbedded
import TestSupport

@testable import LoadTest

/// Time that is a number, a gateway whose manners are drawn from a seed, and the connections that are open to it.
final class SimulatedEnvironment {
  /// What becomes of who connects.
  enum ConnectResponse { case open, refusing, silent }

  let loop = EmbeddedEventLoop()
  /// The gateway's; changed while time passes, it has gone away, or hangs.
  var door = ConnectResponse.open
  var isReading = true
  /// It refuses as its manners say.
  var isRefusing = true
  /// Most connections at a time; others are refused.
  var maximumConnections = Int.max
  /// How many of the load's connections the gateway serves; it closes the others as soon as they are open, or later.
  var served = Int.max
  var refusalDelay = Duration.zero
  /// One in so many attempts to connect is refused; 0: none.
  var refusesOneIn = 0
  private(set) var links: [SimulatedLink] = []
  private(set) var ended: [SimulatedLink] = []
  private(set) var mostAsked = 0
  private var asked: [Int: Int] = [:]
  private let behavior: SimulatedLink.GatewayBehavior
  private let step: ClosedRange<Int>
  private var generator: SeededGenerator

  /// - Parameter step: how many nanoseconds pass at a time.
  init(
    _ behavior: SimulatedLink.GatewayBehavior, _ generator: SeededGenerator, step: ClosedRange<Int> = 10_000...1_000_000
  ) {
    self.behavior = behavior
    self.generator = generator
    self.step = step
  }

  /// Nanoseconds that passed while the load was stopped, and nothing of it ran.
  private var stopped: Int64 = 0

  /// Nanoseconds.
  var now: Int64 { 1_000_000_000 + stopped + Int64(loop.now.uptimeNanoseconds) }

  /// Stops the load for this time, as SIGSTOP and SIGCONT do.
  func stop(for time: Duration) { stopped += time.nanoseconds }

  func pass() throws {
    asked.removeAll(keepingCapacity: true)
    loop.advanceTime(by: .nanoseconds(Int64(generator.number(step))))
    for link in links { link.isRefusing = isRefusing }
    for link in links where try !link.step(&generator, at: now, isReading: isReading) { end(link) }
  }

  /// The gateway goes away, with all that is on its way to it.
  func goAway() {
    door = .refusing
    for link in links {
      link.breakOff()
      end(link)
    }
  }

  func comeBack() { door = .open }

  /// One of the gateway's connections says something out of turn.
  func say(_ bytes: [UInt8]) {
    guard let link = links.first(where: \.channel.isActive) else { return }
    _ = try? link.channel.writeInbound(ByteBuffer(bytes: bytes))
  }

  /// What was written before the end arrives all the same.
  func end() throws {
    for _ in 0..<2_000 where !links.isEmpty { try pass() }
    for link in links { end(link) }
    try loop.syncShutdownGracefully()
  }

  private func end(_ link: SimulatedLink) {
    links.removeAll { $0 === link }
    ended.append(link)
    if link.channel.isActive { link.channel.close(promise: nil) }
  }

  // MARK: what the engine sees of it

  func loopEnvironment(jitter: UInt64) -> LoopEnvironment {
    LoopEnvironment(
      clock: { self.now }, processor: { 0 }, jitter: jitter, hasInput: { self.hasInput($0) },
      afterSockets: { _ = self.loop.scheduleTask(in: .microseconds(5), $0) }, connect: { self.connect($0) })
  }

  private func hasInput(_ connection: ProviderConnection) -> Bool {
    guard links.first(where: { connection.carries($0.channel) })?.hasInput == true else { return false }
    asked[connection.number, default: 0] += 1
    mostAsked = max(mostAsked, asked[connection.number] ?? 0)
    return true
  }

  private func connect(_ connection: ProviderConnection) {
    let (attempt, plan) = (connection.attempt, connection.runner.plan)
    let isRefused = refusesOneIn > 0 && generator.happens(oneIn: refusesOneIn)
    if door == .silent {
      let patience = TimeAmount.nanoseconds(plan.connections.connectTimeout.nanoseconds)
      _ = loop.scheduleTask(in: patience) { fail(ChannelError.connectTimeout(patience)) }
      return
    }
    _ = loop.scheduleTask(in: .microseconds(Int64(generator.number(10...2_000)))) { [self] in
      guard door == .open, !isRefused, links.count < maximumConnections else {
        return fail(IOError(errnoCode: ECONNREFUSED, reason: "connect"))
      }
      let isServed = connection.number < served
      let link = try SimulatedLink(behavior, loop: loop, at: now)
      try link.channel.pipeline.syncOperations.addHandler(ProviderHandler(connection, usesTLS: false))
      links.append(link)
      link.channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 2195), promise: nil)
      if behavior.closesOneIn > 0, generator.happens(oneIn: behavior.closesOneIn) { link.closeAtOnce() }
      guard !isServed else { return }
      if refusalDelay == .zero { return link.closeAtOnce() }
      link.isServed = false
      _ = loop.scheduleTask(in: .nanoseconds(refusalDelay.nanoseconds)) { link.closeAtOnce() }
    }
    func fail(_ error: any Error) {
      connection.note(error, attempt: attempt)
      connection.failedToOpen(attempt: attempt)
    }
  }

  // MARK: the gateway's books

  var accepted: [UInt32] { ended.flatMap(\.accepted) }
  var arrivals: [(identifier: UInt32, time: Int64)] { ended.flatMap(\.arrivals) }
  var refused: [UInt32] { ended.flatMap(\.refused) }

  var books: Ledger.Gateway {
    ended.reduce(into: Ledger.Gateway()) { sum, link in
      sum.connections += link.books.connections
      sum.received += link.books.received
      sum.accepted += link.books.accepted
      sum.discarded += link.books.discarded
      sum.rejected.merge(link.books.rejected, uniquingKeysWith: +)
    }
  }
}
