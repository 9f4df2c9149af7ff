import NIOCore

/// TLS for a NIO channel, over the system's OpenSSL; the first handler of a pipeline.
///
/// Inbound: plaintext buffers; a `TLSConnectionInfo` event after the handshake; `ChannelEvent.inputClosed` when the
/// peer ends its direction; and a `TLSError` through `errorCaught`, after which the channel is closed.
///
/// Outbound: plaintext. Writes between two flushes share records; 16 KB are one record and one write. Writes before the
/// end of the handshake are delayed until then. `close(mode: .output)` sends close_notify and ends this direction; so
/// does `close()` before it closes the channel. After a `TLSClose.abrupt` event `close()` sends no close_notify.
public final class TLSHandler: ChannelDuplexHandler {
  public typealias InboundIn = ByteBuffer
  public typealias InboundOut = ByteBuffer
  public typealias OutboundIn = ByteBuffer
  public typealias OutboundOut = ByteBuffer

  private enum State { case waiting, handshaking, open, closed }

  private struct Write {
    var plaintext: ByteBuffer
    var promise: EventLoopPromise<Void>?
  }

  let connection: TLSConnection
  private let handshakeTimeout: TimeAmount?
  private var timeout: Scheduled<Void>?
  private var state = State.waiting
  /// The error from encrypting borrowed bytes, which the next flush reports.
  private var failure: TLSError?
  /// Writes that are not encrypted yet; the first `flushed` of these are flushed.
  private var writes: [Write] = []
  private var flushed = 0
  /// The end of this direction follows the flushed writes.
  private var isClosingOutput = false
  private var outputClose: EventLoopPromise<Void>?
  /// Somebody asked for bytes and got none yet.
  private var isReadWanted = false
  private var leavesAbruptly = false
  private var hasReportedEnd = false

  /// Makes the handler of a server's connection.
  ///
  /// - Parameters:
  ///   - context: the context of a server.
  ///   - handshakeTimeout: the longest time of the handshake; then the channel is closed with an error. `nil`: no
  ///     limit.
  /// - Throws: a `TLSError` if the context is a client's, or OpenSSL has no memory for the connection.
  public init(server context: TLSContext, handshakeTimeout: TimeAmount? = .seconds(10)) throws(TLSError) {
    guard context.side == .server else { throw TLSError(.configuration, "a server with a client's TLS context") }
    connection = try TLSConnection(context)
    self.handshakeTimeout = handshakeTimeout
  }

  /// Makes the handler of a client's connection.
  ///
  /// - Parameters:
  ///   - context: the context of a client.
  ///   - serverName: sent as SNI unless it is an IP address; `nil` sends none.
  ///   - verifiesName: whether the server's certificate must be for `serverName`.
  ///   - sessions: the cache of sessions to resume. Only connections of the same context that verify the same name
  ///     resume a session.
  ///   - sessionKey: the key in the cache; `nil`: the server's name.
  ///   - handshakeTimeout: the longest time of the handshake; then the channel is closed with an error. `nil`: no
  ///     limit.
  /// - Throws: a `TLSError` if the context is a server's, or OpenSSL refuses the name or has no memory.
  public init(
    client context: TLSContext, serverName: String?, verifiesName: Bool = true, sessions: SessionCache? = nil,
    sessionKey: String? = nil, handshakeTimeout: TimeAmount? = .seconds(10)
  ) throws(TLSError) {
    guard context.side == .client else { throw TLSError(.configuration, "a client with a server's TLS context") }
    connection = try TLSConnection(
      context, serverName: serverName, verifiesName: verifiesName, sessions: sessions,
      sessionKey: sessionKey ?? serverName ?? "")
    self.handshakeTimeout = handshakeTimeout
  }

  /// Whether each record is passed on by itself; otherwise all that is there is passed on at once.
  package var readsByRecord = false

  /// Whether the peer has sent close_notify, so the received data is complete.
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
        let milliseconds = handshakeTimeout.nanoseconds / 1_000_000
        self.fail(context, TLSError(.handshake, "TLS handshake not completed within \(milliseconds) ms"))
      }
    }
    continueHandshake(context)
    if state == .handshaking { context.read() }
  }

  public func channelInactive(context: ChannelHandlerContext) {
    let isEarly = state == .handshaking || state == .waiting
    end(failing: ChannelError.ioOnClosedChannel)
    if isEarly { context.fireErrorCaught(Self.closedEarly) }
    context.fireChannelInactive()
  }

  public func handlerRemoved(context: ChannelHandlerContext) { end(failing: ChannelError.ioOnClosedChannel) }

  private func end(failing error: any Error) {
    state = .closed
    timeout?.cancel()
    timeout = nil
    let unkept = writes.map(\.promise) + [outputClose]
    writes = []
    flushed = 0
    outputClose = nil
    for promise in unkept { promise?.fail(error) }
  }

  private static let closedEarly = TLSError(
    .closedDuringHandshake, "closed by the peer during the TLS handshake")

  // MARK: in

  public func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard state != .closed else { return }
    let ciphertext = unwrapInboundIn(data)
    let length = ciphertext.readableBytes
    connection.take(ciphertext)
    if state != .open { continueHandshake(context) }
    if state == .open { read(context, expected: length) }
  }

  /// With manual reads, one read is requested; handshakes and partial records need further ones.
  public func read(context: ChannelHandlerContext) {
    isReadWanted = true
    context.read()
  }

  public func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    if state == .handshaking || (state == .open && isReadWanted) { context.read() }
  }

  public func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .some(.inputClosed) = event as? ChannelEvent {
      // The FIN after close_notify is not a second end.
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
    if case .failed(let error) = progress { return fail(context, error) }
    sendOutput(context)
    guard state == .handshaking else { return }
    switch progress {
    case .needsInput, .failed: break
    case .done:
      state = .open
      timeout?.cancel()
      timeout = nil
      context.fireUserInboundEventTriggered(connection.info)
      if state == .open { continueWriting(context) }
    case .closed: fail(context, Self.closedEarly)
    }
  }

  /// Each callback may close the connection, so the state is checked after each.
  private func read(_ context: ChannelHandlerContext, expected: Int) {
    reading: while true {
      let capacity = readsByRecord ? max(64, connection.nextRecordLength) : max(1_024, expected)
      var plaintext = context.channel.allocator.buffer(capacity: capacity)
      let progress = connection.read(into: &plaintext, isOneRecord: readsByRecord)
      if plaintext.readableBytes > 0 {
        isReadWanted = false
        context.fireChannelRead(wrapInboundOut(plaintext))
      }
      guard state == .open else { return }
      switch progress {
      case .done: continue
      case .needsInput: break reading
      case .closed:
        reportEnd(context)
        break reading
      case .failed(let error): return fail(context, error)
      }
    }
    // Answers to key updates, say; and what could not be encrypted before these bytes were there.
    sendOutput(context)
    if state == .open { continueWriting(context) }
  }

  /// The alert that OpenSSL wrote goes out before the end.
  private func fail(_ context: ChannelHandlerContext, _ error: TLSError) {
    guard state != .closed else { return }
    state = .closed
    sendOutput(context)
    end(failing: error)
    context.fireErrorCaught(error)
    context.close(promise: nil)
  }

  // MARK: out

  public func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard state != .closed, !isClosingOutput else {
      promise?.fail(state == .closed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
      return
    }
    writes.append(Write(plaintext: unwrapOutboundIn(data), promise: promise))
  }

  /// Encrypts borrowed bytes, which are sent with the next flush, like a write, but without a buffer.
  ///
  /// Returns `false` without accepting anything if a regular write is required: during the handshake, after unflushed
  /// writes, and after the end. Called on the channel's event loop; makes no callbacks.
  package func encrypt(_ plaintext: RawSpan) -> Bool {
    guard state == .open, !isClosingOutput, writes.isEmpty else { return false }
    var count = 0
    switch connection.write(plaintext, &count) {
    case .done, .closed: break
    case .failed(let error): failure = error
    case .needsInput:
      // A handshake message of the peer comes first.
      var rest = ByteBuffer()
      rest.writeBytes(plaintext.extracting(count...))
      writes.append(Write(plaintext: rest, promise: nil))
    }
    return true
  }

  public func flush(context: ChannelHandlerContext) {
    flushed = writes.count
    if let failure {
      fail(context, failure)
    } else if state == .open, flushed > 0 {
      continueWriting(context)
    } else if let output = connection.takeOutput() {
      context.writeAndFlush(wrapOutboundOut(output), promise: nil)
    } else {
      context.flush()
    }
  }

  /// Encrypts the flushed writes, and ends this direction if requested.
  private func continueWriting(_ context: ChannelHandlerContext) {
    if flushed > 0 { encrypt(context) }
    guard state == .open, flushed == 0, isClosingOutput, let promise = takeOutputClose() else { return }
    if !leavesAbruptly {
      connection.shutDown()
      sendOutput(context)
    }
    context.close(mode: .output, promise: promise)
  }

  private func encrypt(_ context: ChannelHandlerContext) {
    var write = takeFlushed(context)
    switch connection.write(&write.plaintext) {
    case .failed(let error):
      write.promise?.fail(error)
      fail(context, error)
    case .needsInput:
      writes.insert(write, at: 0)
      flushed += 1
      sendOutput(context)
    case .done, .closed:
      if let output = connection.takeOutput() {
        context.writeAndFlush(wrapOutboundOut(output), promise: write.promise)
      } else if let promise = write.promise {
        // Nothing to send, but the promise must not complete before earlier writes.
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: promise)
      }
    }
  }

  /// Small writes are joined, so that they do not become a record each.
  private func takeFlushed(_ context: ChannelHandlerContext) -> Write {
    defer { flushed = 0 }
    guard flushed > 1 else { return writes.removeFirst() }
    let taken = writes[..<flushed]
    writes = Array(writes[flushed...])
    var joined = Write(
      plaintext: context.channel.allocator.buffer(capacity: taken.reduce(0) { $0 + $1.plaintext.readableBytes }))
    for write in taken {
      joined.plaintext.writeImmutableBuffer(write.plaintext)
      guard let promise = write.promise else { continue }
      if joined.promise == nil { joined.promise = context.eventLoop.makePromise() }
      joined.promise?.futureResult.cascade(to: promise)
    }
    return joined
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
    switch mode {
    case .input: context.close(mode: mode, promise: promise)
    case .output: closeOutput(context, promise)
    case .all:
      if state == .open {
        if flushed > 0 { encrypt(context) }
        if state == .open, !leavesAbruptly {
          connection.shutDown()
          sendOutput(context)
        }
      }
      end(failing: ChannelError.ioOnClosedChannel)
      context.close(promise: promise)
    }
  }

  /// close_notify can only follow a handshake, so the close waits for its end, as writes do.
  private func closeOutput(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
    guard !isClosingOutput, state != .closed else { return context.close(mode: .output, promise: promise) }
    isClosingOutput = true
    let unflushed = writes[flushed...].map(\.promise)
    writes.removeLast(unflushed.count)
    outputClose = promise ?? context.eventLoop.makePromise()
    for promise in unflushed { promise?.fail(ChannelError.outputClosed) }
    if state == .open {
      continueWriting(context)
    } else if leavesAbruptly, let promise = takeOutputClose() {
      context.close(mode: .output, promise: promise)
    }
  }

  private func takeOutputClose() -> EventLoopPromise<Void>? {
    defer { outputClose = nil }
    return outputClose
  }
}

/// How to close a TLS connection: a user outbound event to `TLSHandler` before the close.
public enum TLSClose: Sendable {
  /// Without close_notify: the peer sees a bare FIN, or a RST if the channel is set to close with one.
  case abrupt
}

@available(*, unavailable)
extension TLSHandler: Sendable {}
