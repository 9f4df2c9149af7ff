import Bytes
import DeviceFleet
import DeviceProtocol
import Measurement
import NIOCore
import NIOPosix
import Testing

extension LibraryExamples {
  @Test("DeviceFleet: a storm takes the connections of a fleet, which comes back")
  func deviceFleet() async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(TokenGateway()) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(channel.localAddress?.port)

    var plan = FleetPlan(gateway: .init(host: "127.0.0.1", port: port))
    plan.count = 10
    plan.topics = ["com.example.app"]
    plan.presence.storms = [.init(time: .seconds(5), within: .milliseconds(200))]
    plan.untilIdle = .seconds(8)
    let runner = try FleetRunner(plan, tls: nil)
    let result = try await runner.run { progress in print(progress.online) }
    let isBack = result.storms.first?.back == 10 && result.faults.isEmpty

    try await channel.close()
    #expect(isBack)
    #expect(result.devices.everOnline == 10 && result.registrations.tokens == 10)
  }
}

/// A gateway that gives each device a token and nothing else.
private final class TokenGateway: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var reader = DeviceMessageReader()
  private var framing = MessageFraming(order: .bigEndian)
  private var pending: [UInt8] = []

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    pending += Array(unwrapInboundIn(data).readableBytesView)
    while let body = try? framing.next(pending.rawBytes) {
      let message = try? reader.read(pending.rawBytes.extracting(body))
      pending.removeFirst(body.upperBound)
      guard case .register(let registration)? = message else { continue }
      var output = ByteWriter()
      DeviceMessage.registered(.init(device: registration.device, topic: registration.topic, token: [1])).write(
        to: &output)
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: Array(copying: output.bytes))), promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
