import Bytes
import DequeModule
import DeviceProtocol
import HeapModule
import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// The devices of one event loop, their connections and counts. Used only on its loop.
///
/// The loop has one timer, which takes from a heap the devices whose time has come. A device costs what its session and
/// its channel take: there is no timer, task or closure of its own while it is connected.
final class FleetLoop {
  /// The time between two looks at the heap.
  static let period = TimeAmount.milliseconds(5)
  /// A connection that was online for this long has come to stay: the next one begins with the first back-off.
  private static let lasting: Int64 = 1_000_000_000

  let plan: FleetPlan
  let usesTLS: Bool
  private let tls: TLSContext?
  private let sessions: SessionCache
  private let loop: any EventLoop
  /// Called with each notification, on the loop.
  private let notified: (@Sendable (DeviceNotification) -> Void)?
  /// Nanoseconds of the monotonic clock at the fleet's start.
  private let start: Int64
  private let share: Int
  var tally = FleetTally()
  private var tools: SessionTools
  /// Reads the times in payloads.
  private var stamps = JSONObject()
  private var devices: [FleetDevice] = []
  private var wakes = Heap<DeviceWake>()
  private var queue = Deque<FleetDevice>()
  private var isPumping = false
  private var isOver = false
  /// Bytes of unfinished messages.
  private var buffered = 0
  private var addressIndex = 0

  /// - Parameters:
  ///   - places: those of the loop's devices in the whole fleet.
  ///   - share: the number of event loops that limits are divided among.
  init(
    _ plan: FleetPlan, _ tls: TLSContext?, _ sessions: SessionCache, _ loop: any EventLoop, places: [Int], share: Int,
    start: Int64, notified: (@Sendable (DeviceNotification) -> Void)?
  ) {
    (self.plan, self.tls, self.sessions, self.loop) = (plan, tls, sessions, loop)
    (self.share, self.start, self.notified) = (max(1, share), start, notified)
    usesTLS = tls != nil
    tools = SessionTools(plan.rules)
    tally.storms = plan.presence.storms.map {
      FleetResult.Storm(atS: $0.time / .seconds(1), withinS: $0.within / .seconds(1), network: $0.network)
    }
    devices.reserveCapacity(places.count)
    for (index, place) in places.enumerated() {
      let number = plan.first + UInt64(place)
      let draws = DeviceDraws(seed: plan.seed, device: number)
      devices.append(
        FleetDevice(
          place: Int32(index), draws: draws,
          session: Self.session(number, plan, draws),
          presence: DevicePresence(
            plan.presence, draws, start: plan.start(of: place), population: plan.count)))
    }
    for device in devices { schedule(device, at: 0) }
  }

  private static func session(_ number: UInt64, _ plan: FleetPlan, _ draws: DeviceDraws) -> any FleetSession {
    let acknowledges = !draws.isHit(plan.acknowledging.neverShare, .acknowledge)
    if let localPush = plan.localPush {
      return LocalPushSession(device: number, localPush, acknowledges: acknowledges)
    }
    return DeviceSession(
      device: number, apps: plan.topics.count, hasLowPower: draws.isHit(plan.presence.lowPowerShare, .lowPower),
      acknowledges: acknowledges)
  }

  /// Nanoseconds since the fleet's start.
  private var now: Int64 { MonotonicClock.nanoseconds() - start }

  // MARK: time

  /// Looks at the devices whose time has come, from now on.
  func startTicking() -> RepeatedTask {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return loop.scheduleRepeatedTask(initialDelay: .zero, delay: Self.period) { _ in bound.value.tick() }
  }

  private func tick() {
    guard !isOver else { return }
    let now = now
    while let next = wakes.min, next.time <= now {
      wakes.removeMin()
      let device = devices[Int(next.place)]
      guard device.wakeAt == next.time else { continue }
      device.wakeAt = .max
      look(device, now)
    }
    pump()
  }

  private func look(_ device: FleetDevice, _ now: Int64) {
    let wasOnline = device.presence.wantsOnline
    let change = device.presence.advance(
      to: now, plan.presence, population: plan.count, on: wasOnline ? networkName(device.network) : nil)
    if let storm = change.storm { hit(device, by: storm) }
    noteJoining(device, wasOnline: wasOnline, storm: change.storm)
    for _ in 0..<change.restores { restore(device) }
    if device.acknowledgeAt <= now { acknowledge(device) }
    if device.link == .open, device.session.deadline <= now { expire(device, now) }
    if device.link == .open, !device.wantsLink {
      leave(device)
    } else if device.link == .queued, !device.wantsConnection {
      device.link = .down
    } else if device.wantsConnection {
      reconsider(device, now)
    }
    schedule(device, now)
  }

  /// Lets a device wait for its next time.
  private func schedule(_ device: FleetDevice, _ now: Int64) {
    var next = device.presence.nextChange(plan.presence) ?? .max
    next = min(next, device.acknowledgeAt)
    if device.link == .open { next = min(next, device.session.deadline) }
    if device.link == .down, device.wantsConnection { next = min(next, max(now, device.retryAt)) }
    schedule(device, at: next)
  }

  private func schedule(_ device: FleetDevice, at time: Int64) {
    guard time != device.wakeAt else { return }
    device.wakeAt = time
    if time < .max { wakes.insert(DeviceWake(time: time, place: device.place)) }
  }

  // MARK: presence

  /// A storm takes the connection away, without a word.
  private func hit(_ device: FleetDevice, by storm: Int) {
    device.awaitedAfter = -1
    switch device.link {
    case .open:
      if device.onlineSince > 0 {
        tally.storms[storm].lost += 1
        device.awaitedAfter = Int32(storm)
      }
      reset(device, .storm)
    case .connecting: device.cause = .storm
    case .queued: device.link = .down
    case .down, .closing: break
    }
    // Who comes back does so at a time of its own.
    device.retryAt = 0
    device.failures = 0
  }

  private func restore(_ device: FleetDevice) {
    tally.restored += 1
    switch device.link {
    case .down, .queued: device.session.restore()
    case .connecting, .closing: device.restores += 1
    case .open:
      device.restores += 1
      device.session.leave(&tools)
      finish(device)
      close(device, .restored)
    }
  }

  /// The device goes: it says so, or resets the connection.
  private func leave(_ device: FleetDevice) {
    device.leavings += 1
    if device.draws.isHit(plan.presence.resetShare, .reset, UInt64(device.leavings)) { return reset(device, .reset) }
    device.session.leave(&tools)
    finish(device)
    close(device, .left)
  }

  // MARK: connecting

  /// Lets the device wait for its turn if it wants to be online and may try.
  private func reconsider(_ device: FleetDevice, _ now: Int64) {
    guard device.link == .down, device.wantsConnection, device.retryAt <= now, !isOver else { return }
    device.link = .queued
    queue.append(device)
  }

  /// Begins as many attempts as may be made at a time.
  private func pump() {
    guard !isPumping, !isOver else { return }
    isPumping = true
    defer { isPumping = false }
    let most = max(1, plan.connections.maximumConnecting / share)
    while tally.connecting < most, let device = queue.popFirst() {
      // It may have changed its mind.
      if device.link == .queued { connect(device) }
    }
  }

  private func connect(_ device: FleetDevice) {
    device.link = .connecting
    device.attempt &+= 1
    device.cause = nil
    device.began = now
    device.linkNetwork = device.network
    tally.attempted += 1
    tally.connecting += 1
    let bound = NIOLoopBound((fleet: self, device: device), eventLoop: loop)
    let (tls, sessions, plan, server) = (tls, sessions, plan, server(for: device))
    let bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(plan.connections.connectTimeout.nanoseconds))
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .channelOption(.maxMessagesPerRead, value: 1)
      // A device waits most of the time, and what it reads is small.
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2_048))
      .channelOption(.writeBufferWaterMark, value: .init(low: 1_024, high: 4_096))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let (fleet, device) = bound.value
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              TLSHandler(
                client: tls, serverName: server.host, verifiesName: plan.verifiesName, sessions: sessions,
                handshakeTimeout: .nanoseconds(plan.connections.handshakeTimeout.nanoseconds)))
          }
          try channel.pipeline.syncOperations.addHandler(DeviceHandler(fleet, device))
        }
      }
    let attempt = device.attempt
    let addresses = server.addresses
    let connected =
      addresses.isEmpty
      ? bootstrap.connect(host: server.host, port: server.port)
      : bootstrap.connect(to: addresses[addressIndex % addresses.count])
    connected.assumeIsolated().whenFailure { error in
      let (fleet, device) = bound.value
      // Another address may be the one that answers.
      fleet.addressIndex += 1
      fleet.failed(device, error, attempt: attempt)
    }
  }

  private func failed(_ device: FleetDevice, _ error: any Error, attempt: UInt32) {
    guard device.attempt == attempt, device.link == .connecting else { return }
    tally.connecting -= 1
    tally.noteFailure(ConnectionFailure.reason(error), most: plan.limits.reasons)
    device.link = .down
    backOff(device)
    settle(device)
  }

  /// The connection can be written to.
  func opened(_ device: FleetDevice, _ channel: any Channel, attempt: UInt32) {
    guard device.attempt == attempt, device.link == .connecting else { return channel.close(promise: nil) }
    let now = now
    tally.connecting -= 1
    tally.opened += 1
    tally.open += 1
    tally.latency.connectUs.record(Int((now - device.began) / 1_000))
    if let storm = plan.presence.lastStorm(at: now, on: networkName(device.linkNetwork)) {
      let second = (now - plan.presence.storms[storm].time.nanoseconds) / 1_000_000_000
      tally.storms[storm].noteOpened(after: Int(second), most: plan.limits.stormSeconds)
    }
    device.link = .open
    device.channel = channel
    if let cause = device.cause {
      reset(device, cause)
    } else if !device.wantsLink || isOver {
      close(device, isOver ? .end : .left)
    } else {
      while device.restores > 0 {
        device.session.restore()
        device.restores -= 1
      }
      tools.now = now
      device.session.connected(&tools)
      finish(device)
      if device.session.deadline < .max { schedule(device, now) }
    }
    pump()
  }

  /// The connection is gone, whoever ended it.
  func ended(_ device: FleetDevice, _ error: (any Error)?, attempt: UInt32) {
    guard device.attempt == attempt else { return }
    switch device.link {
    case .down, .queued: return
    case .connecting:
      return failed(device, error ?? ChannelError.eof, attempt: attempt)
    case .open, .closing: break
    }
    let cause = device.cause ?? ConnectionFailure.cause(error)
    tally.open -= 1
    tally.closed[cause, default: 0] += 1
    let lasted = device.onlineSince > 0 && now - device.onlineSince >= Self.lasting
    if device.onlineSince > 0 { tally.online -= 1 }
    (device.onlineSince, device.returnedAfter) = (0, -1)
    buffered -= device.session.pendingBytes
    device.session.disconnected()
    (device.link, device.channel, device.cause, device.acknowledgeAt) = (.down, nil, nil, .max)
    while device.restores > 0 {
      device.session.restore()
      device.restores -= 1
    }
    switch cause {
    case .left, .reset, .storm, .restored, .end: device.retryAt = 0
    case .gatewayOffline, .refused, .silence, .unanswered, .peerFin, .peerRst, .message, .memory, .error:
      if lasted { device.failures = 0 }
      backOff(device)
    }
    settle(device)
  }

  /// A wait that doubles with each failure, and varies by half, so that devices do not come back together.
  private func backOff(_ device: FleetDevice) {
    let doubled = Double(plan.connections.backoff.nanoseconds) * Double(UInt64(1) << UInt64(min(32, device.failures)))
    let longest = Double(plan.connections.maximumBackoff.nanoseconds)
    let varied = min(doubled, longest) * (0.5 + device.draws.unit(.backoff, UInt64(device.attempt)))
    device.retryAt = now + Int64(min(varied, Double(Int64.max / 4)))
    device.failures &+= 1
  }

  /// The device has no connection: it may want one, and another device may have its turn.
  private func settle(_ device: FleetDevice) {
    guard !isOver else { return }
    let now = now
    reconsider(device, now)
    schedule(device, now)
    pump()
  }

  // MARK: messages

  func received(_ bytes: ByteBuffer, _ device: FleetDevice, attempt: UInt32) {
    guard device.attempt == attempt, device.link == .open else { return }
    let before = device.session.pendingBytes
    tools.now = now
    device.session.receive(bytes.readableBytesSpan, &tools)
    buffered += device.session.pendingBytes - before
    finish(device)
    guard device.link == .open else { return }
    if buffered > plan.limits.bufferedBytes / share, device.session.pendingBytes > 0 {
      device.session.abandon()
      return close(device, .memory)
    }
    oweAcknowledgement(device)
  }

  /// The gateway reads again.
  func writable(_ device: FleetDevice, attempt: UInt32) {
    guard device.attempt == attempt, device.link == .open else { return }
    oweAcknowledgement(device)
  }

  private func oweAcknowledgement(_ device: FleetDevice) {
    guard device.session.owesAcknowledgement, device.acknowledgeAt == .max else { return }
    let delay = plan.acknowledging.delay.nanoseconds
    guard delay > 0 else { return acknowledge(device) }
    let now = now
    device.acknowledgeAt = now + delay
    schedule(device, now)
  }

  /// The other end has not answered in time.
  private func expire(_ device: FleetDevice, _ now: Int64) {
    tools.now = now
    device.session.expire(&tools)
    finish(device)
  }

  private func acknowledge(_ device: FleetDevice) {
    device.acknowledgeAt = .max
    // Nothing is written to a gateway that does not read; one acknowledgement is for all that came.
    guard device.link == .open, let channel = device.channel, channel.isWritable else { return }
    device.session.acknowledge(&tools)
    finish(device)
  }

  /// Counts what the session tells, sends what it has written, and closes the connection if it asks for that.
  private func finish(_ device: FleetDevice) {
    var end: FleetResult.Connections.Cause?
    if !tools.events.isEmpty {
      let time = WallClock.system.nanoseconds()
      for event in tools.takeEvents() { if let cause = note(event, device, time) { end = cause } }
    }
    send(device)
    if let end { close(device, end) }
  }

  private func send(_ device: FleetDevice) {
    let count = tools.output.count
    guard count > 0 else { return }
    if let channel = device.channel {
      var buffer = channel.allocator.buffer(capacity: count)
      buffer.writeBytes(tools.output.bytes)
      // Before the write, whose failure may end the connection at once.
      tools.output.removeAll()
      return channel.writeAndFlush(buffer, promise: nil)
    }
    tools.output.removeAll()
  }

  /// - Parameter time: UNIX nanoseconds.
  /// - Returns: why the connection is to be closed; `nil`: it is not.
  private func note(
    _ event: SessionEvent, _ device: FleetDevice, _ time: Int64
  ) -> FleetResult.Connections.Cause? {
    switch event {
    case .asked: tally.asked += 1
    case .registered: tally.tokens += 1
    case .online: noteOnline(device)
    case .received(let delivery):
      note(delivery, device, time)
      notified?(DeviceNotification(time: time, device: device.session.device, delivery: delivery))
    case .acknowledged: tally.notifications.acknowledgements += 1
    case .tokenChanged: tally.tokenChanges += 1
    case .refused(let reason): tally.refused[reason.rawValue, default: 0] += 1
    case .fault(let fault):
      tally.faults[fault.rawValue, default: 0] += 1
      if fault == .duplicate { tally.notifications.duplicates += 1 }
    case .ends(.gatewayOffline): return .gatewayOffline
    case .ends(.refused): return .refused
    case .ends(.message): return .message
    case .ends(.memory): return .memory
    case .ends(.silence): return .silence
    case .ends(.unanswered): return .unanswered
    case .localPush(let event): note(event, device, time)
    }
    return nil
  }

  private func noteOnline(_ device: FleetDevice) {
    let now = now
    device.onlineSince = max(1, now)
    tally.online += 1
    if !device.wasOnline { tally.everOnline += 1 }
    device.wasOnline = true
    tally.latency.readyUs.record(Int((now - device.began) / 1_000))
    guard device.awaitedAfter >= 0 else { return }
    let storm = Int(device.awaitedAfter)
    (device.returnedAfter, device.awaitedAfter) = (device.awaitedAfter, -1)
    tally.storms[storm].back += 1
    let seconds = Double(now - plan.presence.storms[storm].time.nanoseconds) / 1e9
    tally.storms[storm].lastBackS = max(tally.storms[storm].lastBackS ?? 0, seconds)
  }

  private func note(_ delivery: DeviceMessage.Delivery, _ device: FleetDevice, _ time: Int64) {
    tally.lastReceived = time
    tally.notifications.received += 1
    tally.notifications.payloadBytes += delivery.payload.count
    let stamp = PushStamp(of: delivery.payload.rawBytes, &stamps)
    let isOnline = !delivery.isStored && !delivery.isRepeated
    let (sent, due, written) = (
      Self.microseconds(delivery.sent, time), stamp?.due.map { Self.microseconds($0, time) },
      stamp?.written.map { Self.microseconds($0, time) }
    )
    if min(sent, due ?? 0, written ?? 0) < 0 { tally.notifications.early += 1 }
    if delivery.isRepeated {
      tally.notifications.repeated += 1
      tally.latency.repeatedUs.record(sent)
      if let due { tally.latency.fromDue.repeatedUs.record(due) }
      if let written { tally.latency.fromWritten.repeatedUs.record(written) }
    } else if delivery.isStored {
      tally.notifications.stored += 1
      tally.latency.storedUs.record(sent)
      if let due { tally.latency.fromDue.storedUs.record(due) }
      if let written { tally.latency.fromWritten.storedUs.record(written) }
    } else {
      tally.notifications.online += 1
      tally.latency.onlineUs.record(sent)
      if let due { tally.latency.fromDue.onlineUs.record(due) }
      if let written { tally.latency.fromWritten.onlineUs.record(written) }
    }
    tally.campaigns.note(
      stamp, time: time, sent: delivery.sent, isOnline: isOnline, most: plan.limits.campaigns)
    // It waited for a device that a storm took, and not for a window or an acknowledgement.
    guard !isOnline, device.returnedAfter >= 0 else { return }
    let (storm, now) = (Int(device.returnedAfter), now)
    guard sent > Int((now - device.onlineSince) / 1_000) else { return }
    let seconds = Double(now - plan.presence.storms[storm].time.nanoseconds) / 1e9
    tally.storms[storm].lastStoredS = max(tally.storms[storm].lastStoredS ?? 0, seconds)
  }

  /// From one time to another in microseconds, both in UNIX nanoseconds; below 0 if the first is the later one.
  static func microseconds(_ start: Int64, _ end: Int64) -> Int {
    let (difference, overflows) = end.subtractingReportingOverflow(start)
    guard !overflows else { return end > start ? LatencyHistogram.highest : -1 }
    return difference < 0 ? -1 : Int(difference / 1_000)
  }

  // MARK: the end of a connection

  private func close(_ device: FleetDevice, _ cause: FleetResult.Connections.Cause) {
    guard device.link == .open else { return }
    device.cause = cause
    device.link = .closing
    device.channel?.close(promise: nil)
  }

  /// With a linger time of 0, a close sends a RST.
  private func reset(_ device: FleetDevice, _ cause: FleetResult.Connections.Cause) {
    guard device.link == .open else { return }
    device.session.abandon()
    (device.channel as? any SocketOptionProvider)?.setSoLinger(NIOLinger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
    if usesTLS { device.channel?.triggerUserOutboundEvent(TLSClose.abrupt, promise: nil) }
    close(device, cause)
  }

  /// Devices go in good order, and none comes any more.
  func finish() {
    isOver = true
    queue.removeAll()
    for device in devices {
      switch device.link {
      case .open:
        device.session.leave(&tools)
        finish(device)
        close(device, .end)
      case .connecting: device.cause = .end
      case .queued: device.link = .down
      case .down, .closing: break
      }
    }
  }

  /// Neither connections nor attempts are left.
  var isSettled: Bool { tally.open == 0 && tally.connecting == 0 }
}
