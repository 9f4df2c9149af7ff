import Measurement
import NIOCore

/// The state of one event loop: its counts and its open connections.
///
/// Accessed only on its loop. Deadlines of connections are checked here four times a second, so that reading needs no
/// timers; a connection ends up to half a second after its deadline, never before.
final class EventLoopState {
  static let period = TimeAmount.milliseconds(250)

  let loop: any EventLoop
  var tally = Tally()
  /// `nil`: payloads are not judged.
  let payloads: PayloadTally?
  /// Batches of failures that are not on the feedback list for certain, of open and of ended connections.
  var undurable = 0
  /// The result of writes after the end.
  let failed: EventLoopFuture<Void>
  private var connections: [UInt64: any WatchedConnection] = [:]

  init(_ loop: any EventLoop, payloads: PayloadScrutiny? = nil) {
    self.payloads = payloads.map { PayloadTally($0) }
    self.loop = loop
    failed = loop.makeFailedFuture(ChannelError.ioOnClosedChannel)
  }

  /// The counts, with those of payloads.
  var fullTally: Tally {
    var tally = tally
    tally.payloads = payloads?.counts
    return tally
  }

  func add(_ connection: any WatchedConnection, number: UInt64) { connections[number] = connection }
  func remove(number: UInt64) { connections[number] = nil }

  /// Counts a connection that is closed at once because there are too many, or they hold too much.
  func refuseConnection(
    from service: Listener, client: String, because excess: SimulatorContext.ExceededLimit, _ shared: SimulatorContext
  ) {
    var event = EventLog.Event(
      service == .gateway ? "refused" : "feedback_refused", time: shared.wallClock.nanoseconds())
    event.client = client
    event.reason = excess.rawValue
    shared.log?.write(event)
    switch service {
    case .gateway:
      tally.connections += 1
      tally.handshakeFailures += 1
      let now = rfc3339(event.time)
      shared.list.add(
        Ledger.Connection(
          client: client, topic: nil, opened: now, closed: now, end: .refused))
    case .feedback:
      tally.feedbackConnections += 1
      tally.feedbackHandshakeFailures += 1
    }
  }

  /// Sweeps from now on, a period apart.
  func startSweeping() -> RepeatedTask {
    let loopState = NIOLoopBound(self, eventLoop: loop)
    return loop.scheduleRepeatedTask(initialDelay: Self.period, delay: Self.period) { _ in loopState.value.sweep() }
  }

  /// Lets every connection check its deadlines.
  func sweep() {
    let now = loop.now
    for connection in Array(connections.values) { connection.check(now) }
  }

  /// The gateway shuts down: connections with notifications get a shutdown response.
  ///
  /// - Parameter last: the number of the last connection to shut down.
  func shutDownConnections(upTo last: UInt64, forGood: Bool) {
    for (number, connection) in connections where number <= last { connection.shutDown(forGood: forGood) }
  }

  func closeConnections() {
    for connection in Array(connections.values) { connection.leave() }
  }

  /// No more counts or failures will follow.
  var isSettled: Bool { connections.isEmpty && undurable == 0 }
}

/// A connection as seen by the state of its event loop.
protocol WatchedConnection: AnyObject {
  func check(_ now: NIODeadline)
  /// Shuts the connection down gracefully: for maintenance, which concerns the gateway only, or because the service
  /// ends.
  func shutDown(forGood: Bool)
  /// Closes the connection at once.
  func leave()
}
