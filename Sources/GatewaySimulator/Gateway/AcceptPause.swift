import Glibc
import NIOCore

/// Stops accepting for a moment when the system has no file descriptors or memory; meanwhile connections wait in the
/// backlog.
///
/// NIO's `AcceptBackoffHandler` delays the next read only. The listening socket stays registered when the first accept of
/// a turn fails, and the loop goes round and round.
final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let pause = TimeAmount.milliseconds(100)
  private var isPausing = false

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
      return context.fireErrorCaught(error)
    }
    guard !isPausing else { return }
    isPausing = true
    setAccepting(false, context)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      self.isPausing = false
      self.setAccepting(true, context)
    }
  }

  private func setAccepting(_ isOn: Bool, _ context: ChannelHandlerContext) {
    guard context.channel.isActive else { return }
    try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
  }
}
