import NIOCore
import TLSTransport

/// Passes the events of a channel to its connection.
final class ProviderHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let connection: ProviderConnection
  private let runner: LoopRunner
  private let attempt: Int
  private let usesTLS: Bool
  private let began: Int64
  private var cause = LoadTally.Cause.peerFin

  init(_ connection: ProviderConnection, usesTLS: Bool) {
    self.connection = connection
    attempt = connection.attempt
    self.usesTLS = usesTLS
    runner = connection.runner
    began = runner.clock()
  }

  private var connectedAt: Int64 = 0

  func channelActive(context: ChannelHandlerContext) {
    connectedAt = runner.clock()
    noteConnect(context.channel)
    if !usesTLS { connection.opened(context.channel, attempt: attempt, isResumed: false) }
    context.fireChannelActive()
  }

  /// Records the duration of the TCP connect as the kernel measured it, if known: the event loop may have handled the
  /// event much later. No other figure shows that a segment was lost.
  private func noteConnect(_ channel: any Channel) {
    let (runner, seen) = (runner, Int((connectedAt - began) / 1_000))
    guard let socket = channel as? any SocketOptionProvider else {
      return runner.measurements.latency.tcpConnectUs.record(seen)
    }
    TCPInfo.of(socket).assumeIsolated().whenComplete { info in
      runner.measurements.latency.tcpConnectUs.record((try? info.get())?.roundTrip ?? seen)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      runner.noteHandshake(runner.clock() - connectedAt, info)
      connection.opened(context.channel, attempt: attempt, isResumed: info.isResumed)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      if connection.carries(context.channel) { connection.leave() } else { context.close(promise: nil) }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard connection.carries(context.channel) else { return }
    var bytes = unwrapInboundIn(data)
    connection.receive(&bytes)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if connection.carries(context.channel) { connection.readComplete() }
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if connection.carries(context.channel) { connection.changeWritability(context.channel.isWritable) }
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is IOError { cause = .peerRst }
    connection.note(error, attempt: attempt)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    connection.ended(context.channel, attempt: attempt, by: cause)
    context.fireChannelInactive()
  }
}

extension LoopRunner {
  fileprivate func noteHandshake(_ nanoseconds: Int64, _ info: TLSConnectionInfo) {
    tally.suites["\(info.version) \(info.cipherSuite)", default: 0] += 1
    let microseconds = Int(nanoseconds / 1_000)
    if info.isResumed {
      measurements.latency.tlsResumedUs.record(microseconds)
    } else {
      measurements.latency.tlsHandshakeUs.record(microseconds)
    }
  }
}
