import NIOCore

/// TLS for a NIO channel, over system OpenSSL; put it first into the pipeline.
///
/// Inbound: plaintext buffers, a `TLSConnectionInfo` event when the handshake is over, `ChannelEvent.inputClosed` when
/// the peer ends its half, and `TLSError` through `errorCaught`, after which the channel is closed. Outbound: plaintext;
/// what is written between two flushes shares records, 16 KB of it is one record and one write. `close(mode: .output)`
/// sends close_notify and ends this half; so does `close()` before it closes; a `TLSClose.abrupt` event before it makes
/// it leave without. Writes before the end of the handshake wait for it.
public final class TLSHandler: ChannelDuplexHandler {
  public typealias InboundIn = ByteBuffer
  public typealias InboundOut = ByteBuffer
  public typealias OutboundIn = ByteBuffer
  public typealias OutboundOut = ByteBuffer

  private enum State { case waiting, handshaking, open, closed }

  private let connection: TLSConnection
  private let handshakeTimeout: TimeAmount?
  private var timeout: Scheduled<Void>?
  private var state = State.waiting
  private var waiting: [ByteBuffer] = []
  private var promises: [EventLoopPromise<Void>] = []
  private var leavesAbruptly = false
  private var hasReportedEnd = false

  /// A server's connection. Throws `TLSError` when OpenSSL has no memory for it.
  public init(server context: TLSContext, handshakeTimeout: TimeAmount? = .seconds(10)) throws(TLSError) {
    connection = try TLSConnection(context)
    self.handshakeTimeout = handshakeTimeout
  }

  /// A client's connection.
  ///
  /// - Parameters:
  ///   - serverName: sent as SNI unless it is an IP address; `nil` sends none.
  ///   - verifiesName: whether the server's certificate must be for `serverName`.
  ///   - sessions: where sessions come from and go to; they are kept under `sessionKey`, or else the server's name.
  public init(
    client context: TLSContext, serverName: String?, verifiesName: Bool = true, sessions: SessionCache? = nil,
    sessionKey: String? = nil, handshakeTimeout: TimeAmount? = .seconds(10)
  ) throws(TLSError) {
    connection = try TLSConnection(
      context, serverName: serverName, verifiesName: verifiesName, sessions: sessions,
      sessionKey: sessionKey ?? serverName ?? "")
    self.handshakeTimeout = handshakeTimeout
  }

  /// The peer said with close_notify that it was done, so what came before is complete.
  public var sawCloseNotify: Bool { connection.isClosedByPeer }

  // MARK: the channel's life

  public func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { start(context) }
  }

  public func channelActive(context: ChannelHandlerContext) {
    start(context)
    context.fireChannelActive()
  }

  private func start(_ context: ChannelHandlerContext) {
    guard state == .waiting else { return }
    state = .handshaking
    if let handshakeTimeout {
      timeout = context.eventLoop.assumeIsolated().scheduleTask(in: handshakeTimeout) {
        guard self.state == .handshaking else { return }
        self.fail(context, TLSError(.handshake, "TLS handshake not finished after \(handshakeTimeout.nanoseconds / 1_000_000) ms"))
      }
    }
    continueHandshake(context)
  }

  public func channelInactive(context: ChannelHandlerContext) {
    if state == .handshaking || state == .waiting {
      context.fireErrorCaught(TLSError(.closedDuringHandshake, "closed by the peer before the TLS handshake was over"))
    }
    end()
    context.fireChannelInactive()
  }

  public func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    state = .closed
    timeout?.cancel()
    timeout = nil
    waiting = []
    let unkept = promises
    promises = []
    for promise in unkept { promise.fail(ChannelError.ioOnClosedChannel) }
  }

  // MARK: in

  public func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard state != .closed else { return }
    let ciphertext = unwrapInboundIn(data)
    let length = ciphertext.readableBytes
    connection.take(ciphertext)
    if state != .open { continueHandshake(context) }
    if state == .open { read(context, expected: length) }
  }

  public func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .some(.inputClosed) = event as? ChannelEvent {
      // The end of the TCP half after close_notify is no second end.
      if state == .open { reportEnd(context) } else { context.close(promise: nil) }
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  private func reportEnd(_ context: ChannelHandlerContext) {
    guard !hasReportedEnd else { return }
    hasReportedEnd = true
    context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }

  private func continueHandshake(_ context: ChannelHandlerContext) {
    let progress = connection.handshake()
    sendOutput(context)
    switch progress {
    case .needsInput: break
    case .done:
      state = .open
      timeout?.cancel()
      timeout = nil
      context.fireUserInboundEventTriggered(connection.info)
      if state == .open, !waiting.isEmpty { encrypt(context) }
    case .closed:
      fail(context, TLSError(.closedDuringHandshake, "closed by the peer before the TLS handshake was over"))
    case .failed(let error): fail(context, error)
    }
  }

  private func read(_ context: ChannelHandlerContext, expected: Int) {
    var plaintext = context.channel.allocator.buffer(capacity: max(1_024, expected))
    let progress = connection.read(into: &plaintext)
    // Answers to key updates, say.
    sendOutput(context)
    if plaintext.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(plaintext)) }
    switch progress {
    case .done, .needsInput: break
    case .closed: reportEnd(context)
    case .failed(let error): fail(context, error)
    }
  }

  /// The alert that OpenSSL wrote goes out before the end.
  private func fail(_ context: ChannelHandlerContext, _ error: TLSError) {
    guard state != .closed else { return }
    end()
    sendOutput(context)
    context.fireErrorCaught(error)
    context.close(promise: nil)
  }

  // MARK: out

  public func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard state != .closed, !connection.hasSentClose else {
      promise?.fail(ChannelError.outputClosed)
      return
    }
    waiting.append(unwrapOutboundIn(data))
    if let promise { promises.append(promise) }
  }

  public func flush(context: ChannelHandlerContext) {
    if state == .open, !waiting.isEmpty { encrypt(context) } else { context.flush() }
  }

  /// Small writes are joined first, so that they do not become a record each.
  private func encrypt(_ context: ChannelHandlerContext) {
    let plaintext: ByteBuffer
    if waiting.count == 1 {
      plaintext = waiting[0]
    } else {
      var joined = context.channel.allocator.buffer(capacity: waiting.reduce(0) { $0 + $1.readableBytes })
      for piece in waiting { joined.writeImmutableBuffer(piece) }
      plaintext = joined
    }
    waiting.removeAll(keepingCapacity: waiting.count <= 16)
    let progress = connection.write(plaintext)
    let done = promiseForWaiting(context)
    if let output = connection.takeOutput() {
      context.writeAndFlush(wrapOutboundOut(output), promise: done)
    } else {
      done?.succeed(())
    }
    if case .failed(let error) = progress { fail(context, error) }
  }

  private func promiseForWaiting(_ context: ChannelHandlerContext) -> EventLoopPromise<Void>? {
    guard let first = promises.first else { return nil }
    defer { promises.removeAll(keepingCapacity: true) }
    if promises.count == 1 { return first }
    let all = context.eventLoop.makePromise(of: Void.self)
    for promise in promises { all.futureResult.cascade(to: promise) }
    return all
  }

  private func sendOutput(_ context: ChannelHandlerContext) {
    if let output = connection.takeOutput() { context.writeAndFlush(wrapOutboundOut(output), promise: nil) }
  }

  // MARK: the end

  public func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    if event is TLSClose {
      leavesAbruptly = true
      promise?.succeed(())
    } else {
      context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  public func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode != .input, state == .open {
      if !waiting.isEmpty { encrypt(context) }
      if state == .open, !leavesAbruptly {
        connection.shutDown()
        sendOutput(context)
      }
    }
    if mode == .all { end() }
    context.close(mode: mode, promise: promise)
  }
}

/// How a TLS connection is left, told to `TLSHandler` by a user outbound event before the close.
public enum TLSClose: Sendable {
  /// No close_notify: the peer sees a bare FIN, or a RST if the channel is set to close with one.
  case abrupt
}

@available(*, unavailable)
extension TLSHandler: Sendable {}
