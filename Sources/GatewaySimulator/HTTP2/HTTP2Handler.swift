import Bytes
import HTTP2
import Measurement
import NIOCore
import ProviderAPI
import TLSTransport

/// One provider's connection over HTTP/2: the transport under its `ProviderGateway`, and its counts.
///
/// Frames are read in place in the read buffer. Only what continues beyond the buffer is copied: a frame of 16 KB at most.
final class HTTP2Handler: ChannelInboundHandler, WatchedConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase: Equatable {
    case handshake
    case open
    /// GOAWAY is sent, and the connection is closed when no stream is open, or then.
    case draining(until: NIODeadline)
    /// The gateway's direction is closed. What still comes is read and dropped: closing with unread bytes would send a RST,
    /// which can destroy the GOAWAY in the peer's kernel.
    case lingering(until: NIODeadline)
    case closed
  }

  private let shared: SimulatorContext
  private let loopState: EventLoopState
  private let service: HTTP2Service
  private let number: UInt64
  var context: ChannelHandlerContext?
  private var phase = Phase.handshake
  private var gateway: ProviderGateway
  private var hasGateway = false
  /// The beginning of a frame.
  private var rest = ByteBuffer()
  private var totals = (received: 0, accepted: 0, rejections: 0, discarded: 0)
  private var bytes = 0
  private var topic: String?
  private var client = "unknown"
  private var end: ConnectionEnd?
  private var problem: String?
  private let openedAt: Int64
  private let openedTick: NIODeadline
  private var lastRead: NIODeadline
  private var hasRead = false
  /// Nothing was read since memory was freed.
  private var hasFreedSpare = false
  private var isAdmitted = false
  private var pauses: Pauses = []
  private var held = HeldMemory()

  private struct Pauses: OptionSet {
    let rawValue: UInt8
    /// The peer does not read its answers.
    static let output = Pauses(rawValue: 1)
    static let silence = Pauses(rawValue: 2)
    /// The rate or the pauses of `Behavior.Reading`, or of a fault.
    static let throttle = Pauses(rawValue: 4)
  }

  init(_ shared: SimulatorContext, _ loopState: EventLoopState, _ service: HTTP2Service, number: UInt64) {
    (self.shared, self.loopState, self.service, self.number) = (shared, loopState, service, number)
    openedAt = shared.wallClock.nanoseconds()
    openedTick = loopState.loop.now
    lastRead = openedTick
    gateway = Self.gateway(shared, loopState, service, .any, number)
  }

  private static func gateway(
    _ shared: SimulatorContext, _ loopState: EventLoopState, _ service: HTTP2Service, _ trust: ProviderGateway.Trust,
    _ number: UInt64
  ) -> ProviderGateway {
    ProviderGateway(
      service, trust, loopState.conduct.policy, shared.store, devices: shared.devices,
      channels: shared.broadcastChannels,
      payloads: loopState.payloads, connection: number,
      generator: shared.generator(number), unregisteredAt: shared.started / 1_000_000,
      isObserved: shared.observer != nil)
  }

  // MARK: the beginning

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    client = context.remoteAddress?.text ?? "unknown"
    loopState.add(self, number: number)
    loopState.tally.connections += 1
    loopState.tally.http2Connections += 1
    loopState.tally.open += 1
  }

  func channelActive(context: ChannelHandlerContext) {
    if service.tls == nil { begin(nil) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      begin(info)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      if phase != .handshake { shared.observe(number, .closing(byPeer: true, isReset: false)) }
      close(as: phase == .handshake ? .handshakeFailed : .peerFin)
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func begin(_ info: TLSConnectionInfo?) {
    guard phase == .handshake else { return }
    phase = .open
    topic = info?.peer?.topic
    loopState.tally.handshakes += 1
    if info?.isResumed == true { loopState.tally.resumed += 1 }
    shared.observe(
      number,
      .opened(
        .init(service: .http2, client: client, server: context?.localAddress?.text ?? "unknown", tls: info)))
    if let refusal = refusal() {
      loopState.tally.refused += 1
      shared.log?.write(event("refused", reason: refusal, info))
      return close(as: .refused)
    }
    shared.log?.write(event("accepted", info))
    let trust: ProviderGateway.Trust =
      switch service.trust {
      case .any: .any
      case .certificate: .certificate(info?.peer?.topics)
      case .token: .token
      }
    gateway = Self.gateway(shared, loopState, service, trust, number)
    gateway.adopt(loopState.conduct.faults, tick: loopState.tick)
    hasGateway = true
    throttle(loopState.conduct.behavior.reading)
    flush()
    waitForDue()
    if let end = loopState.silentUntil, loopState.loop.now < end { beSilent(until: end) }
  }

  private func refusal() -> String? {
    let name = topic ?? ""
    if let refusal = shared.admission.admit(name, now: Int64(clamping: loopState.loop.now.uptimeNanoseconds)) {
      return refusal.rawValue
    }
    isAdmitted = true
    let rules = loopState.conduct.behavior.connection
    if rules.wrongEnvironmentTopics.contains(name) { return "wrong_environment" }
    var generator = shared.generator(number)
    return generator.isHit(rules.acceptThenClose) ? "accept_then_close" : nil
  }

  // MARK: reading

  private var isReading: Bool {
    switch phase {
    // Also behind the gateway's close: what comes is counted, and not answered.
    case .open, .draining, .lingering: true
    case .handshake, .closed: false
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard hasGateway, isReading else { return }
    var bytes = unwrapInboundIn(data)
    hasRead = true
    self.bytes += bytes.readableBytes
    loopState.tally.bytes += bytes.readableBytes
    let read = shared.observer == nil ? nil : bytes
    if rest.readableBytes > 0 {
      rest.writeBuffer(&bytes)
      bytes = rest
      rest = ByteBuffer()
    }
    let length = bytes.readableBytes
    let tick = gateway.isDisturbed ? loopState.tick : 0
    let now = shared.wallClock.nanoseconds()
    gateway.nanoseconds = now
    let consumed = gateway.receive(bytes.readableBytesSpan, now: now / 1_000_000, tick: tick)
    bytes.moveReaderIndex(forwardBy: consumed)
    if bytes.readableBytes > 0 {
      // A large buffer does not wait for the end of a small frame.
      rest = bytes.readableBytes < bytes.storageCapacity / 4 ? ByteBuffer(buffer: bytes) : bytes
    }
    let decided = count()
    if let read { observe(read, decided) }
    flush()
    if case .lingering = phase { return }
    if gateway.session.hasFailed {
      logGoAway(gateway.failureCode?.description ?? "")
      return closeOutput(as: .protocolError)
    }
    if gateway.isDisturbed { performFaults() }
    if case .draining = phase, gateway.session.isDrained { return closeOutput(as: .shutdown) }
    if let delay = readThrottle?.delay(after: length, at: loopState.loop.now) { pauseReading(delay) }
    reserveMemory()
  }

  // MARK: faults

  /// Does what faults ask of the connection, and waits for what they have delayed.
  private func performFaults() {
    for effect in gateway.takeEffects() {
      switch effect {
      case .slow(let rate):
        var rules = Behavior.Reading()
        rules.bytesPerSecond = rate
        throttle(rules)
      case .drain: if phase == .open { drain() }
      case .close(let isReset):
        end = end ?? .local
        if isReset { reset() } else { closeOutput(as: .local) }
      }
    }
    waitForDue()
  }

  /// Waits for the next time at which the gateway has to do something by itself.
  private func waitForDue() {
    guard gateway.isDisturbed, let due = gateway.nextDue, due < awaited, isOpenForFaults else { return }
    awaited = due
    loopState.loop.assumeIsolated().scheduleTask(deadline: .uptimeNanoseconds(UInt64(clamping: due))) {
      // A task that another one has overtaken finds nothing that is due, or another time.
      if self.awaited == due { self.awaited = .max }
      guard self.isOpenForFaults else { return }
      self.gateway.nanoseconds = self.shared.wallClock.nanoseconds()
      self.gateway.advance(now: self.gateway.nanoseconds / 1_000_000, tick: self.loopState.tick)
      let decided = self.count()
      if self.shared.observer != nil, decided.received > 0 { self.observe(ByteBuffer(), decided) }
      self.flush()
      self.performFaults()
      if case .draining = self.phase, self.gateway.session.isDrained { self.closeOutput(as: .shutdown) }
    }
  }
  /// The time for which a task waits; `Int64.max`: none does.
  private var awaited = Int64.max

  private var isOpenForFaults: Bool {
    switch phase {
    case .open, .draining: hasGateway
    case .handshake, .lingering, .closed: false
    }
  }

  private func throttle(_ rules: Behavior.Reading) {
    readThrottle = ReadThrottle(rules, at: loopState.loop.now)
    guard readThrottle != nil else { return }
    try? context?.channel.syncOptions?.setOption(.recvAllocator, value: ReadThrottle.allocator(rules))
  }
  private var readThrottle: ReadThrottle?
  private var throttlePauses = 0

  private func pauseReading(_ delay: TimeAmount) {
    pause(.throttle)
    throttlePauses += 1
    context?.eventLoop.assumeIsolated().scheduleTask(in: delay) { [pause = throttlePauses] in
      // A changed rate ends the pause, and may have begun another one.
      if pause == self.throttlePauses { self.resume(.throttle) }
    }
  }

  /// Adds what was decided to the counts of the loop and of the connection.
  @discardableResult
  private func count() -> ServedCounts {
    let counts = gateway.takeCounts()
    loopState.tally.served.combine(with: counts, +)
    totals.received += counts.received
    totals.accepted += counts.accepted
    totals.rejections += counts.rejections
    totals.discarded += counts.discarded
    for token in gateway.takeAcceptedTokens() {
      shared.providerTokens.add(token, now: shared.wallClock.nanoseconds())
      guard let log = shared.log else { continue }
      var event = event("provider_token")
      (event.keyID, event.teamID) = (token.keyID, token.teamID)
      event.issuedAt = Int64(token.issuedAt) * 1_000_000_000
      log.write(event)
    }
    if gateway.tokens.renewals > renewals {
      // One read may have several.
      shared.providerTokens.addRenewals(gateway.tokens.renewals - renewals)
      renewals = gateway.tokens.renewals
    }
    return counts
  }
  private var renewals = 0

  /// Tells the observer of one read, before its answers are sent.
  private func observe(_ bytes: ByteBuffer, _ counts: ServedCounts) {
    var decision = ObservedEvent.Decision()
    (decision.received, decision.accepted, decision.stored) = (counts.received, counts.accepted, counts.offline)
    decision.acceptedInAll = totals.accepted
    decision.served = gateway.takeServed()
    shared.observe(number, .received(bytes, decision))
  }

  private func flush() {
    guard let context, gateway.session.output.count > 0 else { return }
    if case .lingering = phase { return gateway.session.output.removeAll() }
    let bytes = context.channel.allocator.buffer(copying: gateway.session.output)
    gateway.session.output.removeAll()
    // When it is written: the client's next bytes may be read before the system says that it has taken these.
    shared.observe(number, .sent(bytes))
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    // Requests that are not read get no answer: the answers that wait are those of one read.
    if context.channel.isWritable { resume(.output) } else { pause(.output) }
    context.fireChannelWritabilityChanged()
  }

  private func pause(_ reason: Pauses) {
    pauses.insert(reason)
    try? context?.channel.syncOptions?.setOption(.autoRead, value: false)
  }

  private func resume(_ reason: Pauses) {
    guard pauses.contains(reason) else { return }
    pauses.remove(reason)
    guard pauses.isEmpty, let context, context.channel.isActive else { return }
    lastRead = loopState.loop.now
    try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    context.read()
  }

  /// Counts the content that waits for the end of its requests, in steps of 64 KiB.
  private func reserveMemory() {
    let held = gateway.session.heldBytes & ~0xffff
    if !self.held.change(to: held, of: shared.memory) { close(as: .memory) }
  }

  // MARK: the end

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is TLSError || error is IOError { problem = problem ?? SimulatorError.reason(error) }
    switch (error as? TLSError)?.kind {
    case .handshake, .closedDuringHandshake:
      guard phase == .handshake, end == nil else { return close(as: .tlsError) }
      shared.log?.write(event("handshake_failed", reason: (error as? TLSError)?.message ?? ""))
      close(as: .handshakeFailed)
    case .some: close(as: .tlsError)
    case nil: close(as: phase == .handshake ? .handshakeFailed : .peerRst)
    }
  }

  private func close(as end: ConnectionEnd) {
    self.end = self.end ?? end
    context?.close(promise: nil)
  }

  /// Closes when the peer does, or after a while.
  private func closeOutput(as end: ConnectionEnd) {
    self.end = self.end ?? end
    phase = .lingering(until: loopState.loop.now + shared.options.linger.timeAmount)
    observeClosing()
    context?.close(mode: .output, promise: nil)
  }

  /// Tells the observer once that the gateway has closed its direction.
  private func observeClosing() {
    guard !isEndObserved else { return }
    isEndObserved = true
    shared.observe(number, .closing(byPeer: false, isReset: isReset))
  }
  private var isEndObserved = false
  /// The gateway has reset the connection.
  private var isReset = false

  func finish() {
    guard phase != .closed else { return }
    let hadHandshake = phase != .handshake
    phase = .closed
    if !hadHandshake { loopState.tally.handshakeFailures += 1 }
    if hasGateway {
      gateway.finish()
      let decided = count()
      if shared.observer != nil, decided.received > 0 { observe(ByteBuffer(), decided) }
    }
    if hadHandshake, shared.observer != nil {
      if end == .peerRst || end == nil {
        shared.observe(number, .closing(byPeer: true, isReset: true))
      } else {
        observeClosing()
      }
      var last = ObservedEvent.Decision()
      last.acceptedInAll = totals.accepted
      shared.observe(number, .closed(last))
    }
    rest = ByteBuffer()
    held.giveBack(to: shared.memory)
    loopState.tally.open -= 1
    loopState.remove(number: number)
    if isAdmitted { shared.admission.release(topic ?? "") }
    shared.ended()
    let end = end ?? (hadHandshake ? .peerRst : .handshakeFailed)
    let closedAt = shared.wallClock.nanoseconds()
    if let log = shared.log {
      var event = event("closed", reason: end.rawValue)
      event.accepted = totals.accepted
      event.discarded = totals.discarded
      event.error = problem
      log.write(event)
    }
    shared.list.add(listed(end, closedAt))
  }

  private func listed(_ end: ConnectionEnd, _ closedAt: Int64) -> Ledger.Connection {
    var connection = Ledger.Connection(
      client: client, topic: topic, opened: rfc3339(openedAt), closed: rfc3339(closedAt), end: end)
    connection.received = totals.received
    connection.accepted = totals.accepted
    connection.discarded = totals.discarded
    connection.rejections = totals.rejections
    connection.error = problem
    return connection
  }

  private func event(_ name: String, reason: String? = nil, _ info: TLSConnectionInfo? = nil) -> EventLog.Event {
    shared.event(name, number, client: client, topic: topic, reason: reason, info)
  }

  // MARK: watched

  func check(_ now: NIODeadline) {
    if hasRead || !pauses.isEmpty { lastRead = now }
    if hasRead { hasFreedSpare = false }
    hasRead = false
    if hasGateway, !hasFreedSpare, now - lastRead >= .seconds(1) {
      gateway.session.freeSpare()
      hasFreedSpare = true
    }
    switch phase {
    case .closed: break
    case .handshake:
      let allowed = shared.options.handshakeTimeout.timeAmount + .seconds(1)
      if now - openedTick > allowed { close(as: .handshakeFailed) }
    case .draining(let until), .lingering(let until): if now >= until { close(as: .shutdown) }
    case .open:
      let rules = loopState.conduct.behavior.connection
      // A silent connection does nothing by itself.
      if gateway.isSilent { break }
      let isWithin = rest.readableBytes > 0 || gateway.isWithinRequest
      if isWithin, now - lastRead >= shared.options.frameTimeout.timeAmount {
        close(as: .frameTimeout)
      } else if let idle = rules.idle, now - lastRead >= idle.timeAmount {
        goAway(.idleTimeout)
        closeOutput(as: .idle)
      } else if let lifetime = rules.lifetime, now - openedTick >= lifetime.timeAmount {
        end = .lifetime
        shutDown(forGood: false)
      }
    }
  }

  private func goAway(_ reason: ProviderReason) {
    guard hasGateway, !gateway.isSilent else { return }
    gateway.session.goAway(
      lastStream: gateway.session.highestStream, debugData: Array("{\"reason\":\"\(reason.rawValue)\"}".utf8))
    count()
    flush()
    logGoAway(reason.rawValue)
  }

  private func logGoAway(_ reason: String) {
    guard let log = shared.log else { return }
    var event = event("goaway", reason: reason)
    event.lastStream = Int(gateway.session.highestStream)
    log.write(event)
  }

  func shutDown(forGood: Bool) {
    guard phase == .open, hasGateway else {
      if phase == .handshake { close(as: .local) }
      return
    }
    goAway(.shutdown)
    drain()
  }

  /// Closes when all streams are answered, or after a while.
  private func drain() {
    phase = .draining(until: loopState.loop.now + shared.options.linger.timeAmount)
    if gateway.session.isDrained { closeOutput(as: .shutdown) }
  }

  func leave() { close(as: .local) }

  // MARK: changes at run time

  func adopt(_ conduct: Conduct) {
    gateway.adopt(conduct.policy)
    guard phase == .open, hasGateway else { return }
    gateway.adopt(conduct.faults, tick: loopState.tick)
    throttle(conduct.behavior.reading)
    resume(.throttle)
    waitForDue()
  }

  func beSilent(until end: NIODeadline?) {
    guard phase != .handshake else { return }
    guard let end else { return resume(.silence) }
    pause(.silence)
    loopState.loop.assumeIsolated().scheduleTask(deadline: end) {
      if let later = self.loopState.silentUntil, self.loopState.loop.now < later { return }
      self.resume(.silence)
    }
  }

  func close(_ way: ClosingWay, topic: String?) {
    guard topic == nil || topic == self.topic else { return }
    switch way {
    case .shutdown: shutDown(forGood: false)
    case .fin: close(as: .local)
    case .rst: reset()
    }
  }

  private func reset() {
    end = end ?? .local
    isReset = true
    closeAbruptly()
  }
}
