import Bytes
import Glibc
import NIOCore
import NIOPosix

/// Runs a closure after its event loop has polled its sockets, even when it is busy.
///
/// A task or a timer does not work: a loop runs all that are due before it polls its sockets, and long ones, such as a
/// burst of writes and a tick over many connections, make each other due, so that nothing is read. So this is a socket
/// itself: a pipe, to which a byte is written.
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

  /// Throws `LoadRunner.Failure` when the system has none, or NIO's errors.
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

  /// Runs it once, after the next poll of the sockets; one closure at a time.
  func next(_ body: @escaping () -> Void) {
    self.body = body
    channel.writeAndFlush(Self.byte, promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  /// Only here: a byte written earlier would be read before the loop polls the other sockets.
  func channelReadComplete(context: ChannelHandlerContext) {
    let body = body
    self.body = nil
    body?()
  }

  func channelInactive(context: ChannelHandlerContext) { body = nil }
}
