import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import LoadTest

@Suite("A loop comes to its sockets, however much it has to write")
struct SocketTurnTests {
  @Test("timers alone bring no further burst: that waits until the loop has come to its sockets")
  func bursts() throws {
    var plan = LoadPlan()
    plan.batching.notifications = 1
    plan.connections.count = 4
    plan.connections.stagger = .zero
    let loop = EmbeddedEventLoop()
    var now: Int64 = 1_000_000_000
    var waiting: [() -> Void] = []
    var links: [SimulatedLink] = []
    // A socket that takes whatever it is given never brings the loop to an end of itself.
    var manners = SimulatedLink.Manners()
    manners.room = .max
    let runner = LoopRunner(
      plan, try Workload(plan.workload), loop, part: 0, of: 1,
      World(
        clock: { now }, jitter: 1, hasInput: { _ in false }, afterSockets: { waiting.append($0) },
        connect: { connection in
          guard let link = try? SimulatedLink(manners, loop: loop),
            (try? link.channel.pipeline.syncOperations.addHandler(ProviderHandler(connection, usesTLS: false))) != nil
          else { return connection.failedToOpen(life: connection.life) }
          links.append(link)
          if let address = try? SocketAddress(ipAddress: "127.0.0.1", port: 2195) {
            link.channel.connect(to: address, promise: nil)
          }
        }))
    runner.openAll(Array(0..<4), of: 4)
    loop.run()
    runner.begin(at: now)
    for visit in 1...20 {
      let written = runner.tally.sendings.written
      for _ in 0..<50 {
        now += 1_000_000
        loop.advanceTime(by: .milliseconds(1))
        runner.tick()
      }
      #expect(runner.tally.sendings.written == written, "visit \(visit): 50 ms of timers")
      #expect(waiting.count == 1, "it is asked for once")
      let visits = waiting
      waiting = []
      for body in visits { body() }
      #expect((1...64).contains(runner.tally.sendings.written - written), "visit \(visit): a burst")
    }
    runner.finish()
    try loop.syncShutdownGracefully()
  }

  @Test("who asks for the next turn at each turn keeps no other socket waiting", .timeLimit(.minutes(1)))
  func turns() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let (pipe, other) = (try await SocketTurn.makePipe(on: loop), try await SocketTurn.makePipe(on: loop))
    let turnsBefore = try await loop.flatSubmit {
      let promise = loop.makePromise(of: Int.self)
      do {
        let turn = try SocketTurn(pipe)
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
