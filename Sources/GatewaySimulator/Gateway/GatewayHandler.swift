import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import PushModel
import TLSTransport

/// One provider's connection to the gateway: the transport under its session (`GatewaySession`), its rules
/// (`NotificationFilter`) and its life (`GatewayLife`), and its counts.
///
/// Frames are read in place in the read buffer. Only a frame that continues beyond the buffer is copied, until it is
/// complete.
final class GatewayHandler: ChannelInboundHandler, WatchedConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  let shared: SimulatorContext
  let loopState: EventLoopState
  let number: UInt64
  var context: ChannelHandlerContext?
  var life: GatewayLife
  private(set) var session: GatewaySession
  private var filter: NotificationFilter?
  private var partial = PartialFrame()

  private(set) var topic: String?
  private(set) var client = "unknown"
  private let openedAt: Int64
  private let openedTick: NIODeadline
  /// The time of the last received bytes, as of the next check; moved on by each time for which the gateway did not
  /// read.
  private var lastRead: NIODeadline
  /// Whether bytes were received since the last check.
  private var hasRead = false
  /// Since when the gateway does not read, or the last check meanwhile; `nil`: it reads.
  private var unreadSince: NIODeadline?
  /// Why the gateway does not read; empty: it does.
  private var pauses: Pauses = []
  private var isAdmitted = false
  private var readThrottle: ReadThrottle?
  /// Pauses of the throttle so far.
  private var throttlePauses = 0
  /// What the observer is told at the end of a read; `nil`: nothing yet.
  private var observed: ObservedFrames?
  /// The observer knows that the gateway has closed its direction.
  var isEndObserved = false

  private struct Pauses: OptionSet {
    let rawValue: UInt8
    /// The rate or the pauses of `Behavior.Reading`.
    static let throttle = Pauses(rawValue: 1)
    /// The feedback list is behind.
    static let feedbackList = Pauses(rawValue: 2)
    static let silence = Pauses(rawValue: 4)
  }

  init(_ shared: SimulatorContext, _ loopState: EventLoopState, number: UInt64) {
    self.shared = shared
    self.loopState = loopState
    self.number = number
    life = GatewayLife(
      loopState.conduct.behavior.response, linger: shared.options.linger.timeAmount, generator: shared.generator(number)
    )
    session = GatewaySession(rules: shared.options.rules)
    openedAt = shared.wallClock.nanoseconds()
    openedTick = loopState.loop.now
    lastRead = openedTick
  }

  // MARK: the beginning

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    client = context.remoteAddress?.text ?? "unknown"
    loopState.add(self, number: number)
    loopState.tally.connections += 1
    loopState.tally.open += 1
  }

  func channelActive(context: ChannelHandlerContext) {
    if shared.options.tls == nil { begin(topic: shared.options.plainTopic, nil) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      begin(topic: info.peer?.topic, info)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      shared.observe(number, .closing(byPeer: true, isReset: false))
      perform(life.peerEnded())
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func begin(topic: String?, _ info: TLSConnectionInfo?) {
    guard life.phase == .handshake else { return }
    life.open()
    self.topic = topic
    loopState.tally.handshakes += 1
    if info?.isResumed == true { loopState.tally.resumed += 1 }
    shared.observe(
      number,
      .opened(
        .init(
          service: .gateway, client: client, server: context?.localAddress?.text ?? "unknown", tls: info)))
    if let refusal = refusal(topic) {
      loopState.tally.refused += 1
      shared.log?.write(event("refused", reason: refusal, info))
      return perform(life.refuse())
    }
    shared.log?.write(event("accepted", info))
    let standing: ErrorResponse.Status? =
      if let topic { topic.utf8.count > 255 || topic.isEmpty ? .invalidTopicSize : nil } else { .missingTopic }
    var rules = shared.options.rules
    // Where payloads are judged, the tally checks and counts priorities too, before the session would.
    if loopState.payloads != nil { rules.push.checksPriority = false }
    session = GatewaySession(rules: rules, standing: standing)
    session.shutdownAfter = loopState.conduct.behavior.shutdownAfter ?? .max
    filter = NotificationFilter(
      loopState.conduct.policy, shared.store, topic: topic ?? "", connection: number, devices: shared.devices,
      payloads: loopState.payloads,
      checksPriority: shared.options.rules.push.checksPriority, isObserved: shared.observer != nil)
    throttle(loopState.conduct.behavior.reading)
    if let end = loopState.silentUntil, loopState.loop.now < end { beSilent(until: end) }
  }

  private func refusal(_ topic: String?) -> String? {
    let name = topic ?? ""
    if let refusal = shared.admission.admit(name, now: Int64(clamping: loopState.loop.now.uptimeNanoseconds)) {
      return refusal.rawValue
    }
    isAdmitted = true
    let rules = loopState.conduct.behavior.connection
    if rules.wrongEnvironmentTopics.contains(name) { return "wrong_environment" }
    return life.isHit(rules.acceptThenClose) ? "accept_then_close" : nil
  }

  // MARK: reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard life.isReading else { return }
    var bytes = unwrapInboundIn(data)
    let length = bytes.readableBytes
    hasRead = true
    let wasOpen = session.ending == nil
    if !partial.isEmpty, var frame = partial.complete(from: &bytes, shared.options.rules.limits) { take(&frame) }
    if partial.isEmpty {
      take(&bytes)
      observeFrames()
      if bytes.readableBytes > 0 { partial.begin(bytes, context.channel.allocator, at: loopState.loop.now) }
    }
    if partial.needsCounting { countPartial() }
    // Only after everything that was read is counted: a failed write or a RST ends the connection at once.
    if let failures = filter?.takeFailures(), !failures.isEmpty, shared.options.keepsFeedback {
      putOnFeedbackList(failures)
    }
    if wasOpen, let ending = session.ending { perform(life.answer(ending, at: loopState.loop.now)) }
    if let delay = readThrottle?.delay(after: length, at: loopState.loop.now) { pauseReading(delay) }
  }

  /// Counts the buffer of a long frame. If the buffers of all connections exceed the limit, the oldest is dropped.
  private func countPartial() {
    guard partial.count() else { return shared.unfinishedFrames.end(number) }
    shared.unfinishedFrames.note(number, partial.capacity, giveUp: givingUp())
  }

  private func givingUp() -> @Sendable () -> Void {
    let (loop, number) = (loopState.loop, partial.number)
    let handler = NIOLoopBound(self, eventLoop: loop)
    return { loop.execute { handler.value.giveUpFrame(number) } }
  }

  private func giveUpFrame(_ frame: Int) {
    // The frame may have been completed meanwhile.
    guard !partial.isEmpty, partial.isCounted, partial.number == frame else { return }
    if life.phase == .open { return perform(life.close(as: .memory)) }
    shared.unfinishedFrames.end(number)
    partial.uncount()
    partial.drop()
  }

  /// Processes all complete frames and advances the reader index.
  private func take(_ bytes: inout ByteBuffer) {
    guard bytes.readableBytes > 0, var filter else { return }
    let (received, accepted, discarded, taken) = (session.received, session.accepted, session.discarded, session.bytes)
    let (offline, uninstalled) = (filter.offline, filter.uninstalled)
    if !loopState.conduct.policy.acceptsEverything || loopState.payloads != nil || shared.devices != nil {
      filter.nanoseconds = shared.wallClock.nanoseconds()
      filter.now = filter.nanoseconds / 1_000_000
    }
    let wasOpen = session.ending == nil
    // The value moves out of the object and back: its counters are then not looked up for every notification.
    self.filter = nil
    let consumed = session.receive(bytes.readableBytesSpan) { filter.decide($0) }
    self.filter = filter
    if wasOpen, !filter.hasRefused, let ending = session.ending, ending.cause == .rejected {
      loopState.payloads?.note(refused: ending.status)
    }
    if consumed > 0, shared.observer != nil, let frames = bytes.getSlice(at: bytes.readerIndex, length: consumed) {
      var decision = self.decision
      decision.received = session.received - received
      decision.accepted = session.accepted - accepted
      decision.stored = filter.offline - offline
      if wasOpen, session.hasRejectedFrame, let ending = session.ending { decision.rejection = .status(ending.status) }
      observed = observed.map { $0.followed(by: decision, of: frames) } ?? ObservedFrames(bytes: frames, decision)
    }
    bytes.moveReaderIndex(forwardBy: consumed)

    loopState.tally.received += session.received - received
    loopState.tally.accepted += session.accepted - accepted
    loopState.tally.discarded += session.discarded - discarded
    loopState.tally.bytes += session.bytes - taken
    loopState.tally.offline += filter.offline - offline
    loopState.tally.uninstalled += filter.uninstalled - uninstalled
  }

  /// Tells the observer what has come with one read: the rest of a frame, and those after it.
  private func observeFrames() {
    guard let frames = observed else { return }
    observed = nil
    shared.observe(number, .received(frames.bytes, frames.decision))
    if let outcomes = filter?.takeOutcomes(), !outcomes.isEmpty { shared.observe(0, .devices(outcomes)) }
  }

  /// Frames of one read, and the decisions on them.
  private struct ObservedFrames {
    private(set) var bytes: ByteBuffer
    private(set) var decision: ObservedEvent.Decision

    init(bytes: ByteBuffer, _ decision: ObservedEvent.Decision) { (self.bytes, self.decision) = (bytes, decision) }

    func followed(by later: ObservedEvent.Decision, of more: ByteBuffer) -> ObservedFrames {
      var (bytes, sum) = (bytes, later)
      bytes.writeImmutableBuffer(more)
      sum.received += decision.received
      sum.accepted += decision.accepted
      sum.stored += decision.stored
      sum.rejection = decision.rejection ?? later.rejection
      return ObservedFrames(bytes: bytes, sum)
    }
  }

  /// The gateway's decisions on the connection so far.
  private var decision: ObservedEvent.Decision {
    var decision = ObservedEvent.Decision()
    decision.acceptedInAll = session.accepted
    decision.discardsRest = session.ending != nil
    return decision
  }

  /// Puts failures on the feedback list. Reading stops while the list is behind, so pending failures are bounded by the
  /// bytes read.
  private func putOnFeedbackList(_ failures: [FeedbackList.Failure]) {
    life.noteUndurable()
    loopState.undurable += 1
    add(failures)
  }

  /// Retries until the list accepts them, even if the connection has ended meanwhile: the notifications were accepted.
  private func add(_ failures: [FeedbackList.Failure]) {
    let loop = loopState.loop
    let handler = NIOLoopBound(self, eventLoop: loop)
    do {
      let waiting = try shared.feedbackList.add(failures) { error in
        loop.execute { handler.value.becameDurable(failures.count, error) }
      }
      if waiting > 1 << 20 { pause(.feedbackList) }
    } catch {
      if error.kind == .tooMuchPending {
        pause(.feedbackList)
        loop.assumeIsolated().scheduleTask(in: .milliseconds(10)) { self.add(failures) }
      } else {
        becameDurable(failures.count, error)
      }
    }
  }

  /// Notes that `count` failures are durable on the list, or the reason why none of them is.
  private func becameDurable(_ count: Int, _ error: FeedbackListError?) {
    loopState.undurable -= 1
    if let error {
      shared.note(error)
      loopState.tally.feedbackLost += count
    }
    perform(life.noteDurable(lostBecause: error?.description, at: loopState.loop.now))
    if life.undurable == 0 { resume(.feedbackList) }
  }

  private func pauseReading(_ delay: TimeAmount) {
    pause(.throttle)
    throttlePauses += 1
    context?.eventLoop.assumeIsolated().scheduleTask(in: delay) { [pause = throttlePauses] in
      // A changed rate ends the pause, and may have begun another one.
      if pause == self.throttlePauses { self.resume(.throttle) }
    }
  }

  private func pause(_ reason: Pauses) {
    pauses.insert(reason)
    setReading(false)
  }

  private func resume(_ reason: Pauses) {
    pauses.remove(reason)
    if pauses.isEmpty { setReading(true) }
  }

  private func setReading(_ isOn: Bool) {
    guard let context, context.channel.isActive, isOn != (unreadSince == nil) else { return }
    let now = loopState.loop.now
    excuseUnread(now)
    unreadSince = isOn ? nil : now
    try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    if isOn { context.read() }
  }

  // MARK: the end

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is TLSError || error is IOError { life.note(problem: SimulatorError.reason(error)) }
    switch (error as? TLSError)?.kind {
    case .handshake, .closedDuringHandshake:
      perform(life.fail(.handshake(reason: (error as? TLSError)?.message ?? "")))
    case .some: perform(life.fail(.tls))
    case nil: perform(life.fail(.network))
    }
  }

  /// Finishes the counts of the connection.
  func finish() {
    guard let (end, hadHandshake, reports) = life.finish() else { return }
    if !hadHandshake {
      loopState.tally.handshakeFailures += 1
    } else if !partial.isEmpty {
      loopState.tally.incomplete += 1
    }
    for report in reports { note(report) }
    if hadHandshake { observeEnd(end) }
    if partial.isCounted { shared.unfinishedFrames.end(number) }
    partial.uncount()
    loopState.tally.open -= 1
    loopState.remove(number: number)
    if isAdmitted { shared.admission.release(topic ?? "") }
    shared.ended()
    let closedAt = shared.wallClock.nanoseconds()
    if let log = shared.log {
      var event = event("closed", reason: end.rawValue)
      event.accepted = session.accepted
      event.discarded = session.discarded
      event.error = life.problem
      log.write(event)
    }
    shared.list.add(listed(end, closedAt))
  }

  private func observeEnd(_ end: ConnectionEnd) {
    guard shared.observer != nil else { return }
    if !partial.isEmpty { shared.observe(number, .received(partial.bytes, decision)) }
    if end == .peerRst {
      shared.observe(number, .closing(byPeer: true, isReset: true))
    } else if !isEndObserved {
      shared.observe(number, .closing(byPeer: false, isReset: false))
    }
    shared.observe(number, .closed(decision))
  }

  private func listed(_ end: ConnectionEnd, _ closedAt: Int64) -> Ledger.Connection {
    var connection = Ledger.Connection(
      client: client, topic: topic, opened: rfc3339(openedAt), closed: rfc3339(closedAt), end: end)
    connection.received = session.received
    connection.accepted = session.accepted
    connection.discarded = session.discarded
    connection.error = life.problem
    if let ending = session.ending, ending.cause != .shutdown, let notification = ending.notification {
      connection.rejected = Ledger.Rejection(
        status: Int(ending.status.rawValue), identifier: ending.identifier, notification: notification)
    }
    return connection
  }

  // MARK: watched

  /// While the gateway does not read, the peer cannot be late.
  private func excuseUnread(_ now: NIODeadline) {
    guard let since = unreadSince else { return }
    unreadSince = now
    lastRead = lastRead + (now - since)
    partial.excuse(now - since)
  }

  func check(_ now: NIODeadline) {
    excuseUnread(now)
    if hasRead { lastRead = now }
    hasRead = false
    switch life.phase {
    case .answering, .closed: break
    case .handshake:
      // Later than the timeout of the handshake itself, which reports a reason.
      let allowed = shared.options.handshakeTimeout.timeAmount + .seconds(1)
      if now - openedTick > allowed { perform(life.close(as: .handshakeFailed)) }
    case .lingering: perform(life.passed(now))
    case .open:
      let rules = loopState.conduct.behavior.connection
      if partial.isLate(now, shared.options.frameTimeout.timeAmount) {
        perform(life.close(as: .frameTimeout))
      } else if let idle = rules.idle, now - lastRead >= idle.timeAmount {
        perform(life.close(as: .idle))
      } else if let lifetime = rules.lifetime, now - openedTick >= lifetime.timeAmount {
        life.noteLifetime()
        shutDown()
      }
    }
  }

  func shutDown(forGood: Bool) { shutDown() }
  func leave() { perform(life.leave()) }

  // MARK: changes at run time

  func adopt(_ conduct: Conduct) {
    life.adopt(conduct.behavior.response)
    session.shutdownAfter = conduct.behavior.shutdownAfter ?? .max
    filter?.adopt(conduct.policy)
    guard life.phase == .open else { return }
    throttlePauses += 1
    throttle(conduct.behavior.reading)
    resume(.throttle)
  }

  private func throttle(_ reading: Behavior.Reading) {
    readThrottle = ReadThrottle(reading, at: loopState.loop.now)
    // It fails when the connection is closed.
    try? context?.channel.syncOptions?.setOption(.recvAllocator, value: ReadThrottle.allocator(reading))
  }

  func beSilent(until end: NIODeadline?) {
    // A connection whose handshake is not complete asks when it is.
    guard life.phase != .handshake else { return }
    guard let end else { return endSilence() }
    life.beSilent()
    pause(.silence)
    loopState.loop.assumeIsolated().scheduleTask(deadline: end) {
      // Another silence may have begun meanwhile.
      if let later = self.loopState.silentUntil, self.loopState.loop.now < later { return }
      self.endSilence()
    }
  }

  private func endSilence() {
    perform(life.endSilence(at: loopState.loop.now))
    resume(.silence)
  }

  func close(_ way: ClosingWay, topic: String?) {
    guard topic == nil || topic == self.topic else { return }
    switch way {
    case .shutdown: shutDown()
    case .fin: perform(life.leave())
    case .rst: perform(life.cut())
    }
  }

  private func shutDown() {
    if life.phase == .open, session.received > 0 { session.shutDown() }
    perform(life.shutDown(session.ending, at: loopState.loop.now))
  }
}
