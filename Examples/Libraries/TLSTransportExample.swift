import Foundation
import NIOCore
import NIOPosix
import TLSTransport
import Testing

extension LibraryExamples {
  @Test("TLSTransport: throw-away certificates, and a channel that speaks mutual TLS")
  func transport() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }

    let identities = IdentityDirectory(folder)
    _ = try identities.issue(.init(topics: ["com.example.app"]))
    var configuration = TLSConfiguration.server(identity: try identities.gateway())
    configuration.authorityFile = identities.authorityFile
    let context = try TLSContext(configuration)
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(TLSHandler(server: context))  // then handlers of plaintext
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()

    var client = TLSConfiguration.client(identity: try identities.provider(topic: "com.example.app"))
    client.authorityFile = identities.authorityFile
    let clientContext = try TLSContext(client)
    let handshake = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: listener.localAddress?.port ?? 0) { channel in
        channel.eventLoop.makeCompletedFuture {
          let promise = channel.eventLoop.makePromise(of: TLSConnectionInfo.self)
          try channel.pipeline.syncOperations.addHandlers(
            TLSHandler(client: clientContext, serverName: "localhost"), HandshakeObserver(promise))
          return promise.futureResult
        }
      }
    #expect(try await handshake.get().version == .tls13)
    try await listener.close()
  }
}

private final class HandshakeObserver: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let promise: EventLoopPromise<TLSConnectionInfo>

  init(_ promise: EventLoopPromise<TLSConnectionInfo>) { self.promise = promise }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo { promise.succeed(info) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { promise.fail(error) }

  func channelInactive(context: ChannelHandlerContext) { promise.fail(ChannelError.eof) }
}
