import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// Polls the feedback service over the network, on an event loop of its own: the load's loops do not wait for it.
struct FeedbackConnector: Sendable {
  let plan: LoadPlan
  let feedback: LoadPlan.Feedback
  let tls: TLSContext?
  let loop: any EventLoop

  /// Connects, reads the list to its end, and closes. `done` is called once, on the loop.
  func poll(_ reader: FeedbackListReader, _ done: @escaping @Sendable (FeedbackPoll) -> Void) {
    let service = feedback.service
    let addresses =
      service.addresses?.all ?? GatewayAddresses(literal: service.host, port: service.port)?.all ?? []
    loop.execute {
      let handover = FeedbackHandover(reader, done)
      let timeout = TimeAmount.nanoseconds(feedback.timeout.nanoseconds)
      let bound = NIOLoopBound(handover, eventLoop: loop)
      handover.timeout = loop.scheduleTask(in: timeout) {
        bound.value.cut("no end of the list within \(feedback.timeout.inSeconds)")
      }
      attempt(addresses[...], bound)
    }
  }

  private func attempt(_ addresses: ArraySlice<SocketAddress>, _ poll: NIOLoopBound<FeedbackHandover>) {
    let bootstrap = bootstrap(poll)
    let connected =
      addresses.first.map { bootstrap.connect(to: $0) }
      ?? bootstrap.connect(host: feedback.service.host, port: feedback.service.port)
    connected.whenFailure { error in
      guard addresses.count > 1, !poll.value.isDone else { return poll.value.fail(error) }
      attempt(addresses.dropFirst(), poll)
    }
  }

  private func bootstrap(_ poll: NIOLoopBound<FeedbackHandover>) -> ClientBootstrap {
    let (plan, tls, host) = (plan, tls, feedback.service.host)
    return ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(plan.connections.connectTimeout.nanoseconds))
      .channelOption(.allowRemoteHalfClosure, value: true)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              TLSHandler(
                client: tls, serverName: host, verifiesName: plan.verifiesName,
                handshakeTimeout: .nanoseconds(plan.connections.handshakeTimeout.nanoseconds)))
          }
          try channel.pipeline.syncOperations.addHandler(FeedbackPollHandler(poll.value))
        }
      }
  }
}

/// One poll, until its outcome is known; on the poll's event loop.
private final class FeedbackHandover {
  private var reader: FeedbackListReader
  /// The tokens before the poll.
  private let earlier: ListedTokens
  private var done: (@Sendable (FeedbackPoll) -> Void)?
  var timeout: Scheduled<Void>?
  /// Closed when the outcome is known.
  var channel: (any Channel)?

  init(_ reader: FeedbackListReader, _ done: @escaping @Sendable (FeedbackPoll) -> Void) {
    (self.reader, earlier, self.done) = (reader, reader.tokens, done)
  }

  var isDone: Bool { done == nil }

  func receive(_ bytes: [UInt8]) {
    guard !isDone else { return }
    do {
      try reader.receive(bytes)
    } catch {
      cut("\(error)")
    }
  }

  /// The service has ended the list.
  ///
  /// - Parameter isWhole: no bytes can be missing, as far as TLS tells.
  func receiveEnd(isWhole: Bool) {
    guard isWhole else { return cut("the connection ended without close_notify") }
    guard reader.isBetweenTuples else { return cut("the list ended within a tuple") }
    finish(.complete)
  }

  /// An error, of which this is the reason unless one is known.
  func fail(_ error: any Error) { cut(ConnectFailure(error, peer: "the feedback service").reason) }

  func cut(_ reason: String) { finish(reader.received == 0 ? .failed(reason) : .incomplete(reason)) }

  private func finish(_ end: FeedbackPoll.End) {
    guard let done else { return }
    self.done = nil
    timeout?.cancel()
    let tokens = end == .complete ? reader.tokens : earlier
    done(FeedbackPoll(end: end, counts: reader.counts, tokens: tokens))
    channel?.close(promise: nil)
  }
}

/// Passes the events of a channel to its poll.
private final class FeedbackPollHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let poll: FeedbackHandover

  init(_ poll: FeedbackHandover) { self.poll = poll }

  func handlerAdded(context: ChannelHandlerContext) { poll.channel = context.channel }

  func channelActive(context: ChannelHandlerContext) {
    // The poll may have timed out while the connection was made.
    if poll.isDone { context.close(promise: nil) }
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    poll.receive(bytes.readBytes(length: bytes.readableBytes) ?? [])
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .some(.inputClosed) = event as? ChannelEvent {
      let tls = try? context.pipeline.syncOperations.handler(type: TLSHandler.self)
      poll.receiveEnd(isWhole: tls?.sawCloseNotify != false)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    poll.fail(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    poll.cut("the connection was closed")
    context.fireChannelInactive()
  }
}

extension Duration {
  /// "30 s", "0.5 s".
  fileprivate var inSeconds: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(nearest: seconds)) s" : "\(seconds) s"
  }
}
