import NIOCore
import TLSTransport

/// Hands what happens on a channel to its connection.
final class ProviderHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let connection: ProviderConnection
  private let runner: LoopRunner
  private let usesTLS: Bool
  private let began: Int64
  private var cause = LoadTally.Cause.peerFin
  private var hasEnded = false

  init(_ connection: ProviderConnection, usesTLS: Bool) {
    self.connection = connection
    self.usesTLS = usesTLS
    runner = connection.runner
    began = runner.clock()
  }

  private var connectedAt: Int64 = 0

  func channelActive(context: ChannelHandlerContext) {
    connectedAt = runner.clock()
    runner.measurements.tcpConnect.record(Int((connectedAt - began) / 1_000))
    if !usesTLS { connection.opened(context.channel, isResumed: false) }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      runner.measurements.handshake.record(Int((runner.clock() - connectedAt) / 1_000))
      connection.opened(context.channel, isResumed: info.isResumed)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    connection.receive(&bytes)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { runner.pump() }
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is IOError { cause = .peerRst }
    runner.note(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  private func end() {
    guard !hasEnded else { return }
    hasEnded = true
    connection.ended(by: cause)
  }
}
