import Glibc
import NIOCore

/// Stops accepting for a moment when file descriptors or memory are short; meanwhile connections wait in the backlog.
///
/// NIO's `AcceptBackoffHandler` delays the next read only. The listening socket stays registered when the first accept
/// of a turn fails, so the loop spins. And it waits for the failure: then nothing else in the process can open a file
/// either, and libdispatch ends a process in which it cannot read `/proc` (`_dispatch_workq_monitor_pools`).
final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let pause = TimeAmount.milliseconds(100)
  /// Descriptors that connections leave to the rest of the process. A turn may accept some more before it stops.
  private static let spare = 16
  private var isPausing = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.fireChannelRead(data)
    if Self.areDescriptorsShort { pause(context) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
      return context.fireErrorCaught(error)
    }
    pause(context)
  }

  private func pause(_ context: ChannelHandlerContext) {
    guard !isPausing else { return }
    isPausing = true
    setAccepting(false, context)
    scheduleEnd(context)
  }

  private func scheduleEnd(_ context: ChannelHandlerContext) {
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      guard context.channel.isActive, !Self.areDescriptorsShort else {
        if context.channel.isActive { self.scheduleEnd(context) }
        return
      }
      self.isPausing = false
      self.setAccepting(true, context)
    }
  }

  private func setAccepting(_ isOn: Bool, _ context: ChannelHandlerContext) {
    guard context.channel.isActive else { return }
    try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
  }

  /// Whether few descriptors are left: a new descriptor is the lowest free one, so its number shows how many are in
  /// use. The limit may change while the process runs.
  private static var areDescriptorsShort: Bool {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
    let probe = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    guard probe >= 0 else { return errno == EMFILE || errno == ENFILE }
    close(probe)
    return UInt64(probe) + UInt64(spare) >= UInt64(limit.rlim_cur)
  }
}
