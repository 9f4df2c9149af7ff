import NIOCore

/// What one event loop knows: its counts, its open connections, and what time it is, roughly.
///
/// Touched on its loop only. Connections look at `now` instead of the clock, and their deadlines are looked after here
/// four times a second, so that reading costs no timers.
final class LoopBooks {
  static let period = TimeAmount.milliseconds(250)

  var tally = Tally()
  /// For a write that cannot be made any more.
  let failed: EventLoopFuture<Void>
  private(set) var now = NIODeadline.now()
  private var connections: [UInt64: any WatchedConnection] = [:]

  init(_ loop: any EventLoop) { failed = loop.makeFailedFuture(ChannelError.ioOnClosedChannel) }

  func add(_ connection: any WatchedConnection, number: UInt64) { connections[number] = connection }
  func remove(number: UInt64) { connections[number] = nil }

  /// Lets every connection look at its deadlines.
  func sweep() {
    now = .now()
    for connection in Array(connections.values) { connection.check(now) }
  }

  /// The gateway goes away: connections that carried something are told so.
  func shutDownConnections() {
    for connection in Array(connections.values) { connection.shutDown() }
  }

  func closeConnections() {
    for connection in Array(connections.values) { connection.leave() }
  }

  var isEmpty: Bool { connections.isEmpty }
}

/// A connection as its loop's books see it.
protocol WatchedConnection: AnyObject {
  func check(_ now: NIODeadline)
  /// In good order, as for maintenance.
  func shutDown()
  /// At once.
  func leave()
}
