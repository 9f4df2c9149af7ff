import NIOCore
import NIOPosix
import Testing

@testable import LoadTest

@Suite("Turns of the sockets")
struct LoopTickPipeTests {
  @Test("Who asks for the next turn at each turn keeps no other socket waiting")
  func turns() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let (pipe, other) = (try await LoopTickPipe.makePipe(on: loop), try await LoopTickPipe.makePipe(on: loop))
    let turnsBefore = try await loop.flatSubmit {
      let promise = loop.makePromise(of: Int.self)
      do {
        let turn = try LoopTickPipe(pipe)
        var turns = 0
        var turnsBefore: Int?
        try other.pipeline.syncOperations.addHandler(Reader { turnsBefore = turnsBefore ?? turns })
        other.writeAndFlush(ByteBuffer(integer: 1 as UInt8), promise: nil)
        func again() {
          turns += 1
          if turns < 100 { turn.next(again) } else { promise.succeed(turnsBefore ?? turns) }
        }
        turn.next(again)
      } catch { promise.fail(error) }
      return promise.futureResult
    }.get()
    #expect(turnsBefore <= 2, "turns until the other was read")
    try await group.shutdownGracefully()
  }
}

/// Tells of what it reads.
private final class Reader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let tell: () -> Void

  init(_ tell: @escaping () -> Void) { self.tell = tell }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { tell() }
}
