import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import PushModel
import TLSTransport

/// One provider's connection to the gateway: finds frames, decides on notifications, and counts.
///
/// Frames are read in place in the read buffer. Only a frame that continues beyond the buffer is copied, until it is
/// complete.
final class GatewayHandler: ChannelInboundHandler, WatchedConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  typealias End = ConnectionEnd

  enum Phase {
    case handshake
    case open
    /// The gateway has ended it, but its answer is not out yet.
    case answering
    /// The gateway's direction is closed; received frames are counted.
    case lingering
    case closed
  }

  let shared: SimulatorContext
  let loopState: EventLoopState
  let number: UInt64
  var context: ChannelHandlerContext?
  var phase = Phase.handshake
  var end: End?
  /// The error of TLS or the system that ended the connection.
  private var problem: String?
  var generator: SplitMix64
  var session: GatewaySession
  private var filter: NotificationFilter?
  /// The beginning of a frame that is not there in full.
  private var partial = ByteBuffer()
  private var partialSince: NIODeadline?
  /// A long `partial` is counted.
  private var isPartialCounted = false
  /// Counts the values of `partial`.
  private var partialNumber = 0

  private(set) var topic: String?
  private(set) var client = "unknown"
  let openedAt: Int64
  private let openedTick: NIODeadline
  /// The time of the last received bytes, as of the next check; moved on by each time for which the gateway did not
  /// read.
  private var lastRead: NIODeadline
  /// Whether bytes were received since the last check.
  private var hasRead = false
  /// Since when the gateway does not read, or the last check meanwhile; `nil`: it reads.
  private var unreadSince: NIODeadline?
  private var isAdmitted = false
  private var readThrottle: ReadThrottle?

  /// Batches of failures that are not on the feedback list for certain. No answer may prove them accepted before.
  var undurable = 0
  var isAnswerHeld = false
  var unfinishedAnswer: UnfinishedAnswer?
  var lingerUntil: NIODeadline?
  var hasPeerEnded = false

  init(_ shared: SimulatorContext, _ loopState: EventLoopState, number: UInt64) {
    self.shared = shared
    self.loopState = loopState
    self.number = number
    generator = shared.generator(number)
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
      peerEnded()
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func begin(topic: String?, _ info: TLSConnectionInfo?) {
    guard phase == .handshake, let context else { return }
    phase = .open
    self.topic = topic
    loopState.tally.handshakes += 1
    if info?.isResumed == true { loopState.tally.resumed += 1 }
    if let refusal = refusal(topic) {
      end = .refused
      loopState.tally.refused += 1
      shared.log?.write(event("refused", reason: refusal, info))
      context.close(promise: nil)
      return
    }
    shared.log?.write(event("accepted", info))
    let standing: ErrorResponse.Status? =
      if let topic { topic.utf8.count > 255 || topic.isEmpty ? .invalidTopicSize : nil } else { .missingTopic }
    var rules = shared.options.rules
    // Where payloads are judged, the tally checks and counts priorities too, before the session would.
    if loopState.payloads != nil { rules.push.checksPriority = false }
    session = GatewaySession(rules: rules, standing: standing)
    session.shutdownAfter = shared.behavior.shutdownAfter ?? .max
    filter = NotificationFilter(
      shared.policy, topic: topic ?? "", connection: number, payloads: loopState.payloads,
      checksPriority: shared.options.rules.push.checksPriority)
    readThrottle = ReadThrottle(shared.behavior.reading, at: loopState.loop.now)
  }

  private func refusal(_ topic: String?) -> String? {
    let name = topic ?? ""
    if let refusal = shared.admission.admit(name, now: Int64(clamping: loopState.loop.now.uptimeNanoseconds)) {
      return refusal.rawValue
    }
    isAdmitted = true
    let rules = shared.behavior.connection
    if rules.wrongEnvironmentTopics.contains(name) { return "wrong_environment" }
    return generator.isHit(rules.acceptThenClose) ? "accept_then_close" : nil
  }

  // MARK: reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard phase != .handshake, phase != .closed, end != .refused else { return }
    var bytes = unwrapInboundIn(data)
    let length = bytes.readableBytes
    hasRead = true
    let wasOpen = session.ending == nil
    if partial.readableBytes == 0 || completePartial(from: &bytes) {
      take(&bytes)
      if bytes.readableBytes > 0 {
        // A separate buffer: the read buffer is 64 KB, and this one may be kept for long.
        partial = context.channel.allocator.buffer(capacity: max(512, bytes.readableBytes))
        partial.writeImmutableBuffer(bytes)
        partialSince = loopState.loop.now
        partialNumber += 1
      }
    }
    if partial.capacity > Self.uncountedBytes || isPartialCounted { countPartial() }
    // Only after everything that was read is counted: a failed write or a RST ends the connection at once.
    if let failures = filter?.takeFailures(), !failures.isEmpty, shared.options.keepsFeedback {
      putOnFeedbackList(failures)
    }
    if wasOpen, let ending = session.ending { answer(ending) }
    if let delay = readThrottle?.delay(after: length, at: loopState.loop.now) { pauseReading(delay) }
  }

  /// Completes the partial frame and processes it; `false` if it is still incomplete.
  private func completePartial(from bytes: inout ByteBuffer) -> Bool {
    while true {
      let needed: Int
      switch BinaryFrame.extent(of: partial.readableBytesSpan, at: 0, limits: shared.options.rules.limits) {
      case .incomplete(let least): needed = least
      case .complete, .malformed:
        var frame = partial
        partial = ByteBuffer()
        partialSince = nil
        take(&frame)
        return true
      }
      let missing = needed - partial.readableBytes
      guard var piece = bytes.readSlice(length: min(missing, bytes.readableBytes)), piece.readableBytes > 0 else {
        return false
      }
      let isEnough = piece.readableBytes == missing
      partial.writeBuffer(&piece)
      if !isEnough { return false }
    }
  }

  /// A buffer for a frame of usual length costs no counting.
  private static let uncountedBytes = 4 << 10

  /// Counts the buffer of a long frame. If the buffers of all connections exceed the limit, the oldest is dropped.
  private func countPartial() {
    isPartialCounted = partial.capacity > Self.uncountedBytes
    guard isPartialCounted else { return shared.unfinishedFrames.end(number) }
    shared.unfinishedFrames.note(number, partial.capacity, giveUp: givingUp())
  }

  private func givingUp() -> @Sendable () -> Void {
    let (loop, number) = (loopState.loop, partialNumber)
    let handler = NIOLoopBound(self, eventLoop: loop)
    return { loop.execute { handler.value.giveUpFrame(number) } }
  }

  private func giveUpFrame(_ frame: Int) {
    // The frame may have been completed meanwhile.
    guard partial.readableBytes > 0, isPartialCounted, partialNumber == frame else { return }
    if phase == .open {
      close(as: .memory)
    } else {
      shared.unfinishedFrames.end(number)
      isPartialCounted = false
      partial = ByteBuffer()
      partialSince = nil
    }
  }

  /// Processes all complete frames and advances the reader index.
  private func take(_ bytes: inout ByteBuffer) {
    guard bytes.readableBytes > 0, var filter else { return }
    let (received, accepted, discarded, taken) = (session.received, session.accepted, session.discarded, session.bytes)
    let (offline, uninstalled) = (filter.offline, filter.uninstalled)
    if !shared.policy.acceptsEverything || loopState.payloads != nil { filter.now = shared.milliseconds }
    let wasOpen = session.ending == nil
    // The value moves out of the object and back: its counters are then not looked up for every notification.
    self.filter = nil
    let consumed = session.receive(bytes.readableBytesSpan) { filter.decide($0) }
    self.filter = filter
    if wasOpen, !filter.hasRefused, let ending = session.ending, ending.cause == .rejected {
      loopState.payloads?.note(refused: ending.status)
    }
    bytes.moveReaderIndex(forwardBy: consumed)

    loopState.tally.received += session.received - received
    loopState.tally.accepted += session.accepted - accepted
    loopState.tally.discarded += session.discarded - discarded
    loopState.tally.bytes += session.bytes - taken
    loopState.tally.offline += filter.offline - offline
    loopState.tally.uninstalled += filter.uninstalled - uninstalled
  }

  /// Puts failures on the feedback list. Reading stops while the list is behind, so pending failures are bounded by the
  /// bytes read.
  private func putOnFeedbackList(_ failures: [FeedbackList.Failure]) {
    undurable += 1
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
      if waiting > 1 << 20 { setReading(false) }
    } catch {
      if error.kind == .tooMuchPending {
        setReading(false)
        loop.assumeIsolated().scheduleTask(in: .milliseconds(10)) { self.add(failures) }
      } else {
        becameDurable(failures.count, error)
      }
    }
  }

  /// Notes that `count` failures are durable on the list, or the reason why none of them is.
  private func becameDurable(_ count: Int, _ error: FeedbackListError?) {
    undurable -= 1
    loopState.undurable -= 1
    if let error { lost(count, error) }
    guard undurable == 0 else { return }
    if readThrottle?.isPausing != true { setReading(true) }
    if isAnswerHeld { sendAnswer() }
  }

  /// Nothing may prove these failures accepted any more: the connection ends without an answer, now or when it is due.
  private func lost(_ count: Int, _ error: FeedbackListError) {
    shared.note(error)
    loopState.tally.feedbackLost += count
    guard phase == .open || phase == .answering else { return }
    problem = problem ?? error.description
    if phase == .open { close(as: .feedbackLost) } else { end = .feedbackLost }
  }

  private func pauseReading(_ delay: TimeAmount) {
    readThrottle?.isPausing = true
    setReading(false)
    context?.eventLoop.assumeIsolated().scheduleTask(in: delay) {
      self.readThrottle?.isPausing = false
      if self.undurable == 0 { self.setReading(true) }
    }
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

  private func peerEnded() {
    guard !hasPeerEnded else { return }
    hasPeerEnded = true
    switch phase {
    case .answering: break
    case .lingering: leave()
    case .handshake, .open, .closed:
      if end == nil { end = phase == .handshake ? .handshakeFailed : .peerFin }
      leave()
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is TLSError || error is IOError { problem = problem ?? SimulatorError.reason(error) }
    if let error = error as? TLSError {
      switch error.kind {
      case .handshake, .closedDuringHandshake:
        if phase == .handshake, end == nil {
          end = .handshakeFailed
          shared.log?.write(event("handshake_failed", reason: error.message))
        }
      default:
        if end == nil { end = .tlsError }
      }
    } else if end == nil {
      end = phase == .handshake ? .handshakeFailed : .peerRst
    }
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    finish()
    self.context = nil
  }

  /// Finishes the counts of the connection.
  private func finish() {
    guard phase != .closed else { return }
    if phase == .handshake {
      loopState.tally.handshakeFailures += 1
      if end == nil { end = .handshakeFailed }
    } else if partial.readableBytes > 0 {
      loopState.tally.incomplete += 1
    }
    abandonAnswer()
    if isPartialCounted { shared.unfinishedFrames.end(number) }
    isPartialCounted = false
    phase = .closed
    loopState.tally.open -= 1
    loopState.remove(number: number)
    if isAdmitted { shared.admission.release(topic ?? "") }
    shared.ended()
    let end = end ?? .peerRst
    let closedAt = shared.wallClock.nanoseconds()
    if let log = shared.log {
      var event = event("closed", reason: end.rawValue)
      event.accepted = session.accepted
      event.discarded = session.discarded
      event.error = problem
      log.write(event)
    }
    shared.list.add(listed(end, closedAt))
  }

  private func listed(_ end: End, _ closedAt: Int64) -> Ledger.Connection {
    var connection = Ledger.Connection(
      client: client, topic: topic, opened: rfc3339(openedAt), closed: rfc3339(closedAt), end: end)
    connection.received = session.received
    connection.accepted = session.accepted
    connection.discarded = session.discarded
    connection.error = problem
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
    if let begun = partialSince { partialSince = begun + (now - since) }
  }

  func check(_ now: NIODeadline) {
    excuseUnread(now)
    if hasRead { lastRead = now }
    hasRead = false
    switch phase {
    case .answering, .closed: break
    case .handshake:
      // Later than the timeout of the handshake itself, which reports a reason.
      if now - openedTick > shared.options.handshakeTimeout.timeAmount + .seconds(1) { close(as: .handshakeFailed) }
    case .lingering: if let lingerUntil, now >= lingerUntil { leave() }
    case .open:
      let rules = shared.behavior.connection
      if let partialSince, partial.readableBytes > 0, now - partialSince > shared.options.frameTimeout.timeAmount {
        close(as: .frameTimeout)
      } else if let idle = rules.idle, now - lastRead >= idle.timeAmount {
        close(as: .idle)
      } else if let lifetime = rules.lifetime, now - openedTick >= lifetime.timeAmount {
        end = .lifetime
        shutDown()
      }
    }
  }

  /// Closes without an answer.
  private func close(as end: End) {
    self.end = end
    leave()
  }

  func shutDown(forGood: Bool) { shutDown() }

  private func shutDown() {
    switch phase {
    case .open where session.received > 0:
      session.shutDown()
      if let ending = session.ending { answer(ending) }
    case .handshake, .open:
      if end == nil { end = .local }
      leave()
    case .answering, .lingering, .closed: break
    }
  }

  func leave() {
    if end == nil { end = .local }
    context?.close(promise: nil)
  }
}
