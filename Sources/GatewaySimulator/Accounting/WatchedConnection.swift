import Bytes
import NIOCore
import TLSTransport

/// A connection as seen by the state of its event loop.
protocol WatchedConnection: ChannelInboundHandler {
  /// `nil` before the connection is there, and after it is gone.
  var context: ChannelHandlerContext? { get set }

  /// Finishes the counts of the connection. Called once or twice: with the end of the channel, and when the handler leaves it.
  func finish()
  func check(_ now: NIODeadline)
  /// Shuts the connection down gracefully: for maintenance, which concerns the gateway only, or because the service
  /// ends.
  func shutDown(forGood: Bool)
  /// Closes the connection at once.
  func leave()
  /// The gateway behaves otherwise from now on.
  func adopt(_ conduct: Conduct)
  /// The gateway is silent until then; `nil`: it no longer is.
  func beSilent(until end: NIODeadline?)
  /// Closes a connection of the gateway, if it is of this topic; `nil`: of any.
  func close(_ way: ClosingWay, topic: String?)
}

/// The service of the feedback list has none of these.
extension WatchedConnection {
  func adopt(_ conduct: Conduct) {}
  func beSilent(until end: NIODeadline?) {}
  func close(_ way: ClosingWay, topic: String?) {}
}

/// The end is that of all connections.
extension WatchedConnection {
  func channelInactive(context: ChannelHandlerContext) {
    finish()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    finish()
    self.context = nil
  }

  /// Reads only while the peer reads what is written to it: the answers that wait are then those to one read.
  func read(_ isOn: Bool, _ context: ChannelHandlerContext) {
    try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    if isOn { context.read() }
  }

  /// Closes the connection with a RST.
  func closeAbruptly() {
    guard let context else { return }
    // With a linger time of 0, a close sends a RST.
    (context.channel as? any SocketOptionProvider)?.setSoLinger(NIOLinger(l_onoff: 1, l_linger: 0))
      .whenComplete { _ in }
    context.triggerUserOutboundEvent(TLSClose.abrupt, promise: nil)
    context.close(promise: nil)
  }
}

extension ByteBufferAllocator {
  /// A buffer with what was written. One copy.
  func buffer(copying output: borrowing ByteWriter) -> ByteBuffer {
    var bytes = buffer(capacity: output.count)
    output.withBytes { span in
      // Safe: the bytes are copied within the call.
      _ = unsafe span.withUnsafeBytes { unsafe bytes.writeBytes($0) }
    }
    return bytes
  }
}
