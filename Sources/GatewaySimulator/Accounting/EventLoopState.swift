import Bytes
import DeviceProtocol
import Measurement
import NIOCore

/// The state of one event loop: its counts and its open connections.
///
/// Accessed only on its loop. Deadlines of connections are checked here four times a second, so that reading needs no
/// timers; a connection ends up to half a second after its deadline, never before.
final class EventLoopState {
  static let period = TimeAmount.milliseconds(250)

  let loop: any EventLoop
  /// Its number among the loops, from 0.
  let index: Int
  var tally = Tally()
  /// The gateway's behavior at the moment.
  private(set) var conduct: Conduct
  /// Until when the gateway neither reads nor answers; `nil`: it does.
  private(set) var silentUntil: NIODeadline?
  /// `nil`: payloads are not judged.
  let payloads: PayloadTally?
  /// Batches of failures that are not on the feedback list for certain, of open and of ended connections.
  var undurable = 0
  /// The result of writes after the end.
  let failed: EventLoopFuture<Void>
  private var connections: [UInt64: any WatchedConnection] = [:]
  /// The connections of devices.
  private var devices: [UInt64: DeviceHandler] = [:]
  private var localPush: [UInt64: LocalPushHandler] = [:]
  /// Reads the messages of all devices of the loop, and holds the one that is being written.
  var deviceMessages = DeviceMessageReader()
  var localPushMessages = LocalPushReader()
  var deviceOutput = ByteWriter(capacity: 1 << 10)
  /// Called with each sweep.
  var onSweep: (() -> Void)?

  init(_ loop: any EventLoop, _ shared: SimulatorContext, index: Int = 0) {
    self.index = index
    payloads = shared.options.payloads.map { PayloadTally($0) }
    conduct = shared.conduct.withLock { $0 }
    self.loop = loop
    failed = loop.makeFailedFuture(ChannelError.ioOnClosedChannel)
    beginFaults()
  }

  /// ns of the loop's clock.
  var tick: Int64 { Int64(clamping: loop.now.uptimeNanoseconds) }

  /// Faults that are new begin now.
  private func beginFaults() { for fault in conduct.faults { fault.begin(at: tick) } }

  /// The counts, with those of payloads.
  var fullTally: Tally {
    var tally = tally
    tally.payloads = payloads?.counts
    return tally
  }

  func add(_ connection: any WatchedConnection, number: UInt64) { connections[number] = connection }
  func remove(number: UInt64) { connections[number] = nil }
  func addDevice(_ device: DeviceHandler, number: UInt64) { devices[number] = device }
  func removeDevice(number: UInt64) { devices[number] = nil }

  func addLocalPush(_ device: LocalPushHandler, number: UInt64) { localPush[number] = device }
  func removeLocalPush(number: UInt64) { localPush[number] = nil }

  /// Carries out the orders of a mailbox. For a connection that has ended there is nothing to be done.
  func deliver(_ mailbox: LocalPushMailbox) {
    let orders = mailbox.take()
    for (connection, order) in orders { localPush[connection]?.take(order) }
    for (connection, _) in orders { localPush[connection]?.flush() }
  }

  /// Connections of local push end.
  ///
  /// - Parameter network: whose connections; `nil`: all.
  func endLocalPush(_ network: Int?, _ ending: LocalPushFaults.Outage.Ending) {
    for connection in Array(localPush.values) { connection.end(network, ending) }
  }

  /// Sends the messages of a mailbox. A connection that has ended gets none; what it lacks is sent on the next one.
  func deliver(_ mailbox: DeviceMailbox) {
    let messages = mailbox.take()
    for (connection, message) in messages { devices[connection]?.write(message) }
    for (connection, _) in messages { devices[connection]?.flush() }
  }

  /// Counts a connection that is closed at once because there are too many, or they hold too much.
  func refuseConnection(
    from service: Listener, client: String, because excess: SimulatorContext.ExceededLimit, _ shared: SimulatorContext
  ) {
    var event = EventLog.Event(
      service == .feedback ? "feedback_refused" : "refused", time: shared.wallClock.nanoseconds())
    event.client = client
    event.reason = excess.rawValue
    shared.log?.write(event)
    switch service {
    case .gateway, .http2, .channels:
      if service.speaksHTTP2 { tally.http2Connections += 1 }
      tally.connections += 1
      tally.handshakeFailures += 1
      let now = rfc3339(event.time)
      shared.list.add(
        Ledger.Connection(
          client: client, topic: nil, opened: now, closed: now, end: .refused))
    case .devices:
      tally.devices.connections += 1
      tally.devices.handshakeFailures += 1
    case .localPush, .localPushControl:
      shared.localPush?.use {
        $0.noteConnection()
        $0.noteFailedHandshake()
      }
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
    onSweep?()
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

  // MARK: changes at run time

  /// Behaves so from now on, on open connections as well.
  func adopt(_ conduct: Conduct) {
    self.conduct = conduct
    beginFaults()
    for connection in Array(connections.values) { connection.adopt(conduct) }
  }

  /// Neither reads nor answers for this time, from now; zero ends an earlier silence.
  func beSilent(for time: TimeAmount) {
    silentUntil = time > .zero ? loop.now + time : nil
    for connection in Array(connections.values) { connection.beSilent(until: silentUntil) }
  }

  /// Closes connections to the gateway.
  func closeConnections(_ way: ClosingWay, topic: String?) {
    for connection in Array(connections.values) { connection.close(way, topic: topic) }
  }

  /// No more counts or failures will follow.
  var isSettled: Bool { connections.isEmpty && undurable == 0 }
}

/// How the gateway closes connections on request.
public enum ClosingWay: String, Sendable, CaseIterable, Codable {
  /// As for maintenance: a connection with notifications gets status 10 and the identifier of the last accepted one.
  case shutdown
  /// Without an answer: close_notify and FIN.
  case fin
  /// Without an answer: RST, which also destroys bytes that the peer's kernel has not delivered yet.
  case rst
}
