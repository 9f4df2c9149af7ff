import Bytes
import Glibc
import NIOCore
import NIOPosix

/// Does something when its event loop has come to its sockets, however busy it is.
///
/// A task or a timer does not do: a loop runs all that are due before it looks at its sockets, and those that take long
/// make each other due, as a burst of writes and a tick over many connections, until nothing is read any more. So this
/// is a socket itself: a pipe, whose other end gets a byte.
final class LoopTickPipe: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let channel: any Channel
  private var body: (() -> Void)?
  private static let byte = ByteBuffer(integer: 1 as UInt8)

  /// On the channel's event loop.
  ///
  /// - Parameter channel: made by `makePipe(on:)`; it ends with its event loop.
  init(_ channel: any Channel) throws {
    self.channel = channel
    try channel.pipeline.syncOperations.addHandler(self)
  }

  /// Throws `LoadRunner.Failure` when the system gives none, or NIO's errors.
  static func makePipe(on loop: any EventLoop) async throws -> any Channel {
    var ends: [Int32] = [-1, -1]
    // Safe: room for two descriptors, which lives through the call.
    guard unsafe Glibc.pipe(&ends) == 0 else {
      throw LoadRunner.Failure.unreachable("no pipe: \(SystemError.text(errno))")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    do {
      return try await NIOPipeBootstrap(group: loop).takingOwnershipOfDescriptors(input: ends[0], output: ends[1]).get()
    } catch {
      for end in ends { close(end) }
      throw error
    }
  }

  /// Does it once, the next time that the loop has come to its sockets; one thing at a time.
  func next(_ body: @escaping () -> Void) {
    self.body = body
    channel.writeAndFlush(Self.byte, promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  /// Only here: what is written to the pipe before would be read before the loop comes to other sockets.
  func channelReadComplete(context: ChannelHandlerContext) {
    let body = body
    self.body = nil
    body?()
  }

  func channelInactive(context: ChannelHandlerContext) { body = nil }
}
