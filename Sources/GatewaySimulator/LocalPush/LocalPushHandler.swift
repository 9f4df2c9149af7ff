import Bytes
import DeviceProtocol
import Measurement
import NIOCore
import TLSTransport

/// A device's connection to the server of local push.
final class LocalPushHandler: ChannelInboundHandler, MessageConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase {
    case handshake
    /// - Parameter isKnown: a user has registered.
    case open(isKnown: Bool)
    /// The server sends nothing any more; the peer closes, or is closed at its deadline.
    case ending(until: NIODeadline)
    case closed
  }

  let shared: SimulatorContext
  let loopState: EventLoopState
  private let center: LocalPushCenter
  private let channel: LocalPushChannel
  private let usesTLS: Bool
  private let link: LocalPushServer.Link
  var context: ChannelHandlerContext?
  private var phase = Phase.handshake
  private var framing: MessageFraming
  var pending: [UInt8] = []
  var held = HeldMemory()
  private let opened: NIODeadline
  var lastRead: NIODeadline
  private var hasUnflushed = false
  var unwritableSince: NIODeadline?

  init(
    _ shared: SimulatorContext, _ loopState: EventLoopState, _ center: LocalPushCenter, _ service: LocalPushService,
    _ channel: LocalPushChannel, number: UInt64
  ) {
    (self.shared, self.loopState, self.center, self.channel) = (shared, loopState, center, channel)
    (usesTLS, unwritableLimit) = (service.tls != nil, service.requestTimeout.timeAmount)
    link = LocalPushServer.Link(loop: loopState.index, connection: number)
    framing = MessageFraming(longestBody: service.maximumMessageLength)
    opened = loopState.loop.now
    lastRead = opened
  }

  private var now: Int64 { shared.wallClock.nanoseconds() }

  // MARK: the connection

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    loopState.add(self, number: link.connection)
    loopState.addLocalPush(self, number: link.connection)
    center.use { $0.noteConnection() }
  }

  func channelActive(context: ChannelHandlerContext) {
    if !usesTLS { begin() }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is TLSConnectionInfo {
      begin()
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  private func begin() {
    guard case .handshake = phase else { return }
    phase = .open(isKnown: false)
    center.use { $0.connected(link, channel, now: now) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func finish() {
    switch phase {
    case .closed: return
    case .handshake: center.use { $0.noteFailedHandshake() }
    case .open, .ending: center.use { $0.disconnected(link, now: now) }
    }
    phase = .closed
    held.giveBack(to: shared.memory)
    loopState.remove(number: link.connection)
    loopState.removeLocalPush(number: link.connection)
    shared.ended()
  }

  // MARK: reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard reads else { return }
    let bytes = unwrapInboundIn(data)
    lastRead = loopState.loop.now
    var waiting: [UInt8] = []
    swap(&waiting, &pending)
    waiting = MessageFraming.rest(of: consume waiting, bytes.readableBytesSpan, after: read)
    if reads { keep(waiting) }
  }

  /// Reads whole messages, and returns the number of their bytes.
  private func read(_ bytes: RawSpan) -> Int {
    var start = 0
    do {
      while reads, let body = try framing.next(bytes.extracting(start...)) {
        let message = try loopState.localPushMessages.read(bytes.extracting(start...).extracting(body))
        start += body.upperBound
        if case .open = phase, case .user? = message.content { phase = .open(isKnown: true) }
        center.use { $0.receive(message, on: link, now: now) }
      }
    } catch {
      center.use { $0.noteMalformed(link, now: now) }
      context?.close(promise: nil)
      return bytes.byteCount
    }
    return start
  }

  /// Whether what comes has a meaning. A server that ends still takes acknowledgements.
  private var reads: Bool {
    switch phase {
    case .open, .ending: true
    case .handshake, .closed: false
    }
  }

  // MARK: writing

  /// How long a peer may not read: what it does not acknowledge has timed out by then.
  private let unwritableLimit: TimeAmount

  /// Carries out an order; `flush` sends what it has written.
  func take(_ order: LocalPushServer.Order) {
    guard let context, case .open = phase else { return }
    switch order {
    case .write(let message):
      loopState.deviceOutput.removeAll()
      // In the order of the peer's lengths.
      message.write(framing.order ?? .littleEndian, to: &loopState.deviceOutput)
      context.write(
        wrapOutboundOut(context.channel.allocator.buffer(copying: loopState.deviceOutput)), promise: nil)
      hasUnflushed = true
    case .close:
      flush()
      context.close(promise: nil)
    }
  }

  func flush() {
    guard hasUnflushed else { return }
    hasUnflushed = false
    context?.flush()
  }

  // MARK: watched

  func check(_ now: NIODeadline) {
    switch phase {
    case .closed: break
    case .handshake:
      if now - opened > shared.options.handshakeTimeout.timeAmount + .seconds(1) { context?.close(promise: nil) }
    case .open(isKnown: false):
      // A user registers at once, so the time is that of a handshake once more.
      let time = shared.options.handshakeTimeout
      if now - opened > (time + time).timeAmount + .seconds(1) { refuse(.late) }
    case .ending(let until): if now >= until { context?.close(promise: nil) }
    case .open:
      if let since = unwritableSince, now - since > unwritableLimit { refuse(.slow) }
      if !pending.isEmpty, now - lastRead >= shared.options.frameTimeout.timeAmount {
        context?.close(promise: nil)
      }
    }
  }

  private func refuse(_ reason: LocalPushServer.Refusal) {
    center.use { $0.refuse(link, reason, now: self.now) }
    // Not behind what is written, which the peer may never read.
    context?.close(promise: nil)
  }

  func shutDown(forGood: Bool) {
    guard forGood else { return }
    guard case .open = phase else { return leave() }
    flush()
    phase = .ending(until: loopState.loop.now + shared.options.linger.timeAmount)
    context?.close(mode: .output, promise: nil)
  }

  func leave() { context?.close(promise: nil) }

  /// Ends with its network or its server, unless the connection stays and is silent from now on. A handshake cannot go on
  /// silently: it ends.
  func end(_ network: Int?, _ ending: LocalPushFaults.Outage.Ending) {
    guard network == nil || channel.network == network else { return }
    switch (ending, phase) {
    case (.silent, .open), (.silent, .ending): break
    case (.closed, _), (.silent, .handshake), (.silent, .closed): leave()
    }
  }
}
