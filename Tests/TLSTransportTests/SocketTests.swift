import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TLSFoundation
import Testing

@testable import TLSTransport

/// What the end of a pipeline saw, read from any thread.
final class InboundObserver: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  struct Seen {
    var received: [UInt8] = []
    var info: TLSConnectionInfo?
    var errors: [any Error] = []
    var ends = 0
    var isInactive = false
  }

  private let state = Mutex(Seen())
  private let echoes: Bool

  init(echoes: Bool = false) { self.echoes = echoes }

  var seen: Seen { state.withLock { $0 } }
  var errorText: String { seen.errors.map { "\($0)" }.joined(separator: " | ") }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    state.withLock { $0.received += Array(buffer.readableBytesView) }
    if echoes { context.writeAndFlush(data, promise: nil) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo { state.withLock { $0.info = info } }
    if case .some(.inputClosed) = event as? ChannelEvent {
      state.withLock { $0.ends += 1 }
      if echoes { context.close(promise: nil) }
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { state.withLock { $0.errors.append(error) } }

  func channelInactive(context: ChannelHandlerContext) { state.withLock { $0.isInactive = true } }
}

/// Waits until that is so. The bound is for what hangs, and no measure of how fast a machine is.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(120)
  while ContinuousClock.now < end {
    if try await condition() { return true }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return false
}

/// A listening server whose connections' ends can be looked at.
final class TLSServer: Sendable {
  let channel: any Channel
  private let witnesses: Accepted

  private final class Accepted: Sendable { let all = Mutex<[InboundObserver]>([]) }

  init(_ context: TLSContext, echoes: Bool = true, options: SocketOptions = SocketOptions()) async throws {
    let accepted = Accepted()
    witnesses = accepted
    var bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let witness = InboundObserver(echoes: echoes)
          accepted.all.withLock { $0.append(witness) }
          try channel.pipeline.syncOperations.addHandlers([TLSHandler(server: context), witness])
        }
      }
    for (option, value) in options.channelOptions {
      bootstrap = bootstrap.serverChannelOption(option, value: value).childChannelOption(option, value: value)
    }
    channel = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  var accepted: [InboundObserver] { witnesses.all.withLock { $0 } }

  func close() async { try? await channel.close() }
}

/// Connects to a port of this machine, without waiting for the handshake.
func connectTLS(
  _ context: TLSContext, port: Int, sessions: SessionCache? = nil, options: SocketOptions = SocketOptions(),
  autoRead: Bool = true
) async throws -> (channel: any Channel, witness: InboundObserver) {
  let witness = InboundObserver()
  var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    .channelOption(.allowRemoteHalfClosure, value: true)
    .channelOption(.autoRead, value: autoRead)
    .channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHandlers([
          TLSHandler(client: context, serverName: "localhost", sessions: sessions), witness,
        ])
      }
    }
  for (option, value) in options.channelOptions { bootstrap = bootstrap.channelOption(option, value: value) }
  return (try await bootstrap.connect(host: "127.0.0.1", port: port).get(), witness)
}

@Suite("connections over sockets")
struct SocketTests {
  static let credentials = TestCredentials.p256

  @Test("A megabyte there and back, half closes, and the ends", arguments: Agreement.some)
  func echo(_ agreement: Agreement) async throws {
    let server = try await TLSServer(Self.credentials.server())
    let (channel, witness) = try await connectTLS(Self.credentials.client(agreement.apply), port: server.port)
    let bytes = pattern(1_000_000)
    for start in stride(from: 0, to: bytes.count, by: 30_000) {
      try await channel.writeAndFlush(ByteBuffer(bytes: bytes[start..<min(start + 30_000, bytes.count)]))
    }
    #expect(await eventually { witness.seen.received.count == bytes.count })
    try await channel.close(mode: .output)
    #expect(await eventually { witness.seen.ends == 1 })
    try? await channel.close()
    #expect(witness.seen.received == bytes)
    #expect(await eventually { server.accepted.first?.seen.isInactive == true })
    #expect(server.accepted.first?.seen.info?.version == agreement.version)
    #expect(server.accepted.first?.errorText == "")
    #expect(witness.errorText == "")
    await server.close()
  }

  @Test("A big write that ends with a half close arrives in full", arguments: [Agreement.some[2], Agreement.some[3]])
  func bigThenEnd(_ agreement: Agreement) async throws {
    let server = try await TLSServer(Self.credentials.server(), echoes: false)
    let (channel, _) = try await connectTLS(Self.credentials.client(agreement.apply), port: server.port)
    // Both before the handshake is over.
    channel.writeAndFlush(ByteBuffer(repeating: 7, count: 8_000_000), promise: nil)
    try await channel.close(mode: .output)
    #expect(await eventually { server.accepted.first?.seen.ends == 1 })
    #expect(server.accepted.first?.seen.received.count == 8_000_000)
    try? await channel.close()
    await server.close()
  }

  @Test("Many connections on all loops, resumed and not") func many() async throws {
    let server = try await TLSServer(Self.credentials.server { $0.ticketCount = 2 })
    let client = try Self.credentials.client()
    let sessions = SessionCache()
    for round in 0..<2 {
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in 0..<40 {
          group.addTask {
            let (channel, witness) = try await connectTLS(client, port: server.port, sessions: sessions)
            let bytes = pattern(20_000, index)
            try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
            let isWhole = await eventually { witness.seen.received == bytes }
            try await channel.close()
            return isWhole && witness.errorText.isEmpty
          }
        }
        for try await isRight in group { #expect(isRight) }
      }
      #expect(server.accepted.count == 40 * (round + 1))
    }
    #expect(server.accepted.dropFirst(40).allSatisfy { $0.seen.info?.isResumed == true })
    #expect(server.accepted.allSatisfy { $0.seen.info?.peer?.topic == TestCredentials.topic })
    await server.close()
  }

  @Test("A client that is refused reads why, also when it has written already", arguments: [TLSVersion.tls12, .tls13])
  func refused(version: TLSVersion) async throws {
    let server = try await TLSServer(Self.credentials.server())
    let (channel, witness) = try await connectTLS(
      Self.credentials.client {
        $0.identity = try? TestCredentials.p256.provider(.revoked)
        $0.versions = version...version
      }, port: server.port)
    channel.writeAndFlush(ByteBuffer(repeating: 1, count: 1_000), promise: nil)
    #expect(await eventually { witness.seen.isInactive })
    #expect(witness.errorText.contains("alert certificate revoked"), "\(witness.errorText)")
    #expect(await eventually { server.accepted.first?.errorText.contains("[certificate revoked]") == true })
    await server.close()
  }

  @Test("With reading by hand the handshake goes on by itself, data comes when asked for") func byHand() async throws {
    let server = try await TLSServer(Self.credentials.server())
    let (channel, witness) = try await connectTLS(Self.credentials.client(), port: server.port, autoRead: false)
    try await channel.writeAndFlush(ByteBuffer(bytes: [1, 2, 3]))
    #expect(await eventually { server.accepted.first?.seen.received == [1, 2, 3] })
    #expect(witness.seen.info != nil)
    // The echo waits in the socket, also when the loop has come to its sockets again and again.
    #expect(try await eventually { try await hasInput(channel) })
    for _ in 0..<3 { try #expect(await hasInput(channel)) }
    #expect(witness.seen.received == [])
    channel.read()
    #expect(await eventually { witness.seen.received == [1, 2, 3] })
    try await channel.close()
    await server.close()
  }

  /// Whether something has come over the connection that nobody has read, asked in a turn of its loop.
  private func hasInput(_ channel: any Channel) async throws -> Bool {
    try await channel.eventLoop.flatSubmit {
      channel.eventLoop.makeCompletedFuture {
        let answer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
          var request = pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
          // Safe: one structure, which lives through the call.
          return unsafe poll(&request, 1, 0) > 0
        }
        return answer ?? false
      }
    }.get()
  }

  @Test("The system's handles show the options") func options() async throws {
    let options = SocketOptions(sendBuffer: 32_768, receiveBuffer: 16_384, noDelay: true, notSentLowWater: 16_384)
    let server = try await TLSServer(
      Self.credentials.server(), options: SocketOptions(receiveBuffer: 8_192, noDelay: nil))
    let (channel, _) = try await connectTLS(Self.credentials.client(), port: server.port, options: options)
    func value(_ level: Int32, _ name: Int32, _ channel: any Channel) async throws -> Int {
      let option = ChannelOptions.Types.SocketOption(level: .init(level), name: .init(name))
      return Int(try await channel.getOption(option).get())
    }
    // The kernel doubles the buffers.
    #expect(try await value(SOL_SOCKET, SO_SNDBUF, channel) == 65_536)
    #expect(try await value(SOL_SOCKET, SO_RCVBUF, channel) == 32_768)
    #expect(try await value(Int32(IPPROTO_TCP), TCP_NODELAY, channel) == 1)
    #expect(try await value(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, channel) == 16_384)
    #expect(try await value(SOL_SOCKET, SO_RCVBUF, server.channel) == 16_384)

    try await SocketOptions(sendBuffer: 20_000, noDelay: false, notSentLowWater: 5_000).apply(to: channel).get()
    #expect(try await value(SOL_SOCKET, SO_SNDBUF, channel) == 40_000)
    #expect(try await value(SOL_SOCKET, SO_RCVBUF, channel) == 32_768)
    #expect(try await value(Int32(IPPROTO_TCP), TCP_NODELAY, channel) == 0)
    #expect(try await value(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, channel) == 5_000)
    #expect(SocketOptions(noDelay: nil).channelOptions.isEmpty)
    #expect(SocketOptions().channelOptions.count == 1)
    try await channel.close()
    await server.close()
  }
}
