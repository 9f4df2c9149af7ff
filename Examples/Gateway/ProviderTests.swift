import BinaryProtocol
import Bytes
import GatewaySimulator
import NIOCore
import NIOPosix
import Testing

/// A gateway in your own test: it refuses what the test tells it to, and its books say what really came.
@Suite("A provider")
struct ProviderTests {
  @Test("It learns which notification was refused, and that the one after it is lost")
  func refusal() async throws {
    var options = SimulatorOptions()
    // Plain TCP; `options.tls` takes a TLSContext for mutual TLS. Port 0 picks one that is free.
    options.gateway = .init(host: "127.0.0.1", port: 0)
    options.feedback = nil
    options.behavior.rejections = [.init(.prefix([0xbb]), status: .invalidToken)]
    let simulator = try await Simulator.start(options, feedbackList: FeedbackList(path: nil))
    let gateway = try #require(simulator.gateway)

    let tokens: [UInt8] = [0xaa, 0xbb, 0xcc]
    let answer = try await Provider(host: gateway.host, port: gateway.port)
      .push("Hello", to: tokens.map { Array(repeating: $0, count: 32) })
    let books = await simulator.stop().gateway

    #expect(answer.status == .invalidToken)
    #expect(answer.identifier == 1)
    #expect(books.accepted == 1)
    #expect(books.rejected == ["8": 1])
    #expect(books.discarded == 1)
  }
}

/// Your provider: this one writes all notifications at once, and waits until the gateway hangs up.
struct Provider {
  var host: String
  var port: Int

  func push(_ alert: String, to tokens: [[UInt8]]) async throws -> ErrorResponse {
    let payload = Array(#"{"aps":{"alert":"\#(alert)"}}"#.utf8)
    var frames = ByteWriter()
    for (index, token) in tokens.enumerated() {
      BinaryFrame.encodeEnhanced(
        identifier: UInt32(index), expiration: 0, token: token.rawBytes, payload: payload.rawBytes, into: &frames)
    }
    let written = ByteBuffer(bytes: Array(copying: frames.bytes))
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    let answer = try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(written)
      return try await inbound.reduce(into: [UInt8]()) { $0 += $1.readableBytesView }
    }
    var offset = 0
    return try ErrorResponse(parsing: answer.rawBytes, at: &offset)
  }
}
