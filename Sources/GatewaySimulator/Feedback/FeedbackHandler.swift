import BinaryProtocol
import Bytes
import Measurement
import NIOCore
import TLSTransport

/// One provider's connection to the feedback service: sends the topic's list, and clears it after it was read
/// completely.
///
/// A list counts as read when the peer's kernel has acknowledged it and the service's FIN after it. The peer's own
/// close is not required: clients that leave it to their garbage collector would get the list again and again. A
/// service that never closes sends no FIN; there, the peer's close without a reset counts instead: a peer that closes
/// with unread bytes resets the connection, and so does one that had closed before they arrived. A close_notify proves
/// nothing, as it may be sent with bytes unread; the FIN or the reset after it is conclusive. A peer that ends its half
/// of the TCP connection first has read the list when all is acknowledged. When in doubt the list is kept and sent
/// again.
///
/// The FIN is sent when the list is acknowledged, and not before: a connection closed in both directions leaves the
/// event loop, which would not see a reset that answers data in flight.
final class FeedbackHandler: ChannelInboundHandler, WatchedConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase {
    case handshake, sending
    /// Everything is in the kernel's hands.
    case sent
    /// Everything has arrived: the list is cleared, and the peer closes the socket.
    case complete
    case closed
  }

  private static let chunk = 1_000

  private let shared: SimulatorContext
  private let loopState: EventLoopState
  private let number: UInt64
  var context: ChannelHandlerContext?
  private var phase = Phase.handshake
  private var topic = ""
  private var client = "unknown"
  private var snapshot: FeedbackList.Snapshot?
  private var last: Int64 = 0
  private var tuples = 0
  private var generator: SplitMix64
  private var progress: NIODeadline
  private var hasPeerEnded = false
  private var isClosingOutput = false
  private var isOutputClosed = false
  /// Or was left by the service itself.
  private var hasFailed = false
  /// The error of TLS or the system that ended the connection.
  private var problem: String?

  init(_ shared: SimulatorContext, _ loopState: EventLoopState, number: UInt64) {
    self.shared = shared
    self.loopState = loopState
    self.number = number
    generator = shared.generator(number)
    progress = loopState.loop.now
  }

  // MARK: events

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    client = context.remoteAddress?.text ?? "unknown"
    loopState.add(self, number: number)
    loopState.tally.feedbackConnections += 1
    loopState.tally.feedbackOpen += 1
  }

  func channelActive(context: ChannelHandlerContext) {
    client = context.remoteAddress?.text ?? client
    if shared.options.tls == nil { begin(topic: shared.options.plainTopic, nil) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      begin(topic: info.peer?.topic, info)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      hasPeerEnded = true
      shared.observe(number, .closing(byPeer: true, isReset: false))
      switch phase {
      case .sent where !isClosingOutput: conclude(context)
      case .complete: context.close(promise: nil)
      case .handshake, .sending, .sent, .closed: break
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// A provider sends nothing here; received data is ignored.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    hasFailed = true
    if error is IOError { shared.observe(number, .closing(byPeer: true, isReset: true)) }
    if error is TLSError || error is IOError { problem = problem ?? SimulatorError.reason(error) }
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    // Both directions are closed without an error, ours after the list was acknowledged.
    if isOutputClosed, !hasFailed { complete() }
    finish()
    context.fireChannelInactive()
  }

  func finish() {
    guard phase != .closed else { return }
    if phase == .handshake {
      loopState.tally.feedbackHandshakeFailures += 1
      shared.log?.write(event("feedback_handshake_failed", reason: problem))
    } else {
      var event = event("feedback_closed", reason: phase == .complete ? "complete" : "incomplete", tuples: tuples)
      // Once the list has arrived, it does not matter how the connection ends.
      if phase != .complete { event.error = problem }
      shared.log?.write(event)
    }
    if phase != .handshake {
      if !isOutputClosed { shared.observe(number, .closing(byPeer: false, isReset: false)) }
      shared.observe(number, .closed(.init()))
    }
    phase = .closed
    loopState.tally.feedbackOpen -= 1
    loopState.remove(number: number)
    shared.ended()
  }

  // MARK: the transfer

  private func begin(topic: String?, _ info: TLSConnectionInfo?) {
    guard phase == .handshake, let context else { return }
    phase = .sending
    progress = loopState.loop.now
    shared.observe(
      number,
      .opened(.init(service: .feedback, client: client, server: context.localAddress?.text ?? "unknown", tls: info)))
    shared.log?.write(event("feedback_accepted", topic: topic, info))
    // A certificate without a topic has no list.
    guard let topic else { return sent() }
    self.topic = topic
    let (shared, handler, loop) = (shared, NIOLoopBound(self, eventLoop: context.eventLoop), context.eventLoop)
    shared.run {
      do {
        let snapshot = try await shared.feedbackList.snapshot(topic: topic)
        loop.execute { handler.value.send(snapshot) }
      } catch {
        shared.note(error)
        loop.execute { handler.value.leave() }
      }
    }
  }

  private func send(_ snapshot: FeedbackList.Snapshot) {
    self.snapshot = snapshot
    if snapshot.count == 0 { sent() } else { sendNext() }
  }

  /// Reads one piece of the list from the file, sends it, and waits until it is written: memory does not grow with the
  /// list.
  private func sendNext() {
    guard phase == .sending, let context, let snapshot else { return }
    let (shared, topic, last, end, chunk) = (shared, topic, last, snapshot.sequence, Self.chunk)
    let loop = context.eventLoop
    let handler = NIOLoopBound(self, eventLoop: loop)
    shared.run {
      do {
        let entries = try await shared.feedbackList.read(topic: topic, after: last, through: end, limit: chunk)
        loop.execute { handler.value.send(entries) }
      } catch {
        shared.note(error)
        loop.execute { handler.value.leave() }
      }
    }
  }

  private func send(_ entries: [FeedbackList.Entry]) {
    guard phase == .sending, let context else { return }
    guard let sequence = entries.last?.sequence else { return sent() }
    last = sequence
    var writer = ByteWriter(capacity: 64 * entries.count)
    for entry in entries {
      FeedbackTuple(timestamp: entry.time, token: entry.token.rawBytes).encode(into: &writer)
    }
    let bytes = ByteBuffer(bytes: Array(copying: writer.bytes))
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    let (count, size, shared) = (entries.count, bytes.readableBytes, shared)
    guard shared.memory.take(size) else {
      shared.memory.giveBack(size)
      return leave()
    }
    write(bytes).whenComplete { result in
      let handler = handler.value
      shared.memory.giveBack(size)
      guard case .success = result else { return handler.leave() }
      shared.observe(handler.number, .sent(bytes))
      handler.tuples += count
      handler.loopState.tally.tuplesSent += count
      handler.progress = handler.loopState.loop.now
      handler.sendNext()
    }
  }

  private func write(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
    guard let context else { return loopState.failed }
    guard loopState.conduct.behavior.feedback.isRagged else { return context.writeAndFlush(wrapOutboundOut(bytes)) }
    let done = context.eventLoop.makePromise(of: Void.self)
    writeRagged(bytes, done)
    return done.futureResult
  }

  private func writeRagged(_ bytes: ByteBuffer, _ done: EventLoopPromise<Void>) {
    var bytes = bytes
    guard let context,
      let piece = bytes.readSlice(length: min(bytes.readableBytes, Int.random(in: 1...7, using: &generator)))
    else { return done.fail(ChannelError.ioOnClosedChannel) }
    let written = context.writeAndFlush(wrapOutboundOut(piece))
    if bytes.readableBytes == 0 { return written.cascade(to: done) }
    written.cascadeFailure(to: done)
    let rest = bytes
    context.eventLoop.assumeIsolated().scheduleTask(in: .microseconds(200)) { self.writeRagged(rest, done) }
  }

  private func sent() {
    guard phase == .sending, let context else { return }
    phase = .sent
    progress = loopState.loop.now
    if hasPeerEnded {
      conclude(context)
    } else if !loopState.conduct.behavior.feedback.neverCloses {
      guard context.channel is any SocketOptionProvider else { return closeOutput(context) }
      awaitSocket(until: \.isAcknowledged) { handler, context in
        if !handler.hasPeerEnded { handler.closeOutput(context) }
      }
    }
  }

  /// Closes the output. With TLS, close_notify precedes the FIN.
  private func closeOutput(_ context: ChannelHandlerContext) {
    isClosingOutput = true
    let closed = context.eventLoop.makePromise(of: Void.self)
    closed.futureResult.assumeIsolated().whenSuccess {
      self.isOutputClosed = true
      self.shared.observe(self.number, .closing(byPeer: false, isReset: false))
      self.awaitSocket(until: \.isEndAcknowledged)
    }
    context.close(mode: .output, promise: closed)
  }

  /// Everything was sent, and the peer has closed its direction.
  private func conclude(_ context: ChannelHandlerContext) {
    let tls = try? context.pipeline.syncOperations.handler(type: TLSHandler.self)
    guard tls?.sawCloseNotify == true else { return awaitSocket(until: \.isAcknowledged) }
    // How its TCP connection ends is still to come, and is waited for: a close_notify of ours could meet a socket that
    // is closed already, and the reset it draws would hide the FIN.
    awaitFIN(until: loopState.loop.now + Self.patience)
  }

  /// How long a peer may take to close its TCP connection after close_notify.
  private static let patience = TimeAmount.seconds(1)

  private func awaitFIN(until deadline: NIODeadline) {
    inspectSocket { handler, context, info in
      if info.hasPeerEnded { return handler.awaitSocket(until: \.isAcknowledged) }
      if handler.loopState.loop.now >= deadline {
        // The peer waits for our close.
        handler.closeOutput(context)
      } else {
        context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(10)) { handler.awaitFIN(until: deadline) }
      }
    }
  }

  /// Asks again and again, more and more seldom, until all has arrived; the list is cleared then, or `action` taken.
  private func awaitSocket(
    until hasArrived: @escaping @Sendable (TCPInfo) -> Bool, after pause: TimeAmount = .milliseconds(1),
    _ action: @escaping @Sendable (FeedbackHandler, ChannelHandlerContext) -> Void = { handler, _ in
      handler.complete()
    }
  ) {
    inspectSocket { handler, context, info in
      if hasArrived(info) { return action(handler, context) }
      let next = min(pause + pause, .milliseconds(200))
      context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
        handler.awaitSocket(until: hasArrived, after: next, action)
      }
    }
  }

  /// Queries the state of the connection from the kernel, until the transfer is over.
  private func inspectSocket(
    _ body: @escaping @Sendable (FeedbackHandler, ChannelHandlerContext, TCPInfo) -> Void
  ) {
    guard phase == .sent, let context, let provider = context.channel as? any SocketOptionProvider else { return }
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    TCPInfo.of(provider).whenSuccess { info in
      let handler = handler.value
      guard handler.phase == .sent, let context = handler.context else { return }
      body(handler, context, info)
    }
  }

  /// Everything has arrived: it is taken off the list. The socket is closed when the peer has done so, or at its deadline.
  private func complete() {
    guard phase == .sent else { return }
    phase = .complete
    loopState.tally.feedbackCompleted += 1
    if let snapshot, snapshot.count > 0 { shared.clear(topic: topic, through: snapshot.sequence) }
    if hasPeerEnded { context?.close(promise: nil) }
  }

  // MARK: watched

  func check(_ now: NIODeadline) {
    guard phase != .handshake, phase != .closed, now - progress > shared.options.feedbackTimeout.timeAmount else {
      return
    }
    leave()
  }

  func shutDown(forGood: Bool) {
    if forGood, phase != .sending { leave() }
  }

  func leave() {
    hasFailed = true
    context?.close(promise: nil)
  }

  private func event(
    _ name: String, topic: String? = nil, reason: String? = nil, tuples: Int? = nil, _ info: TLSConnectionInfo? = nil
  ) -> EventLog.Event {
    var event = shared.event(
      name, number, client: client, topic: topic ?? (self.topic.isEmpty ? nil : self.topic), reason: reason, info)
    event.tuples = tuples
    return event
  }
}
