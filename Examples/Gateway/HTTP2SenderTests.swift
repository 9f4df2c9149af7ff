import Bytes
import GatewayControl
import GatewaySimulator
import HTTP2
import NIOCore
import NIOPosix
import Testing

/// The HTTP/2 provider API in your own test: it answers as APNs does, fails as you tell it, and knows what came.
@Suite("A sender over HTTP/2")
struct HTTP2SenderTests {
  @Test("One notification is refused and another one rejected, and the gateway has seen all")
  func rejection() async throws {
    var options = SimulatorOptions()
    (options.gateway, options.feedback) = (nil, nil)
    // In cleartext; `HTTP2Service.tls` takes a TLSContext, `trust` and `providerKeys` verify provider tokens.
    options.http2 = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    let gateway = try await ObservedGateway.start(options)
    let place = try #require(gateway.simulator.http2)
    let sender = HTTP2Sender(host: place.host, port: place.port)

    try await gateway.simulator.disturb(HTTP2Fault("answer,status=503,token=bb,times=1"))
    #expect(try await sender.push("Hello", to: "aa") == "200")
    #expect(try await sender.push("Hello", to: "bb") == "503")
    // Sent again, as a sender should.
    #expect(try await sender.push("Hello", to: "bb") == "200")
    try await gateway.simulator.setDevices([([0xcc], .uninstalled)])
    #expect(try await sender.push("Hello", to: "cc") == "410")

    let received = try await gateway.waitForNotifications(4, within: .seconds(60))
    #expect(received.notifications.map(\.token) == [[0xaa], [0xbb], [0xbb], [0xcc]])
    #expect(received.notifications.map(\.request?.status) == [200, 503, 200, 410])
    #expect(received.notifications.last?.request?.reason == "Unregistered")
    let ledger = await gateway.stop()
    #expect(ledger.gateway.accepted == 2 && ledger.gateway.rejected.values.reduce(0, +) == 2)
  }
}

/// Your sender: this one makes a connection for each notification.
struct HTTP2Sender {
  var host: String
  var port: Int

  /// The status of the answer; `nil`: there was none.
  func push(_ alert: String, to token: String) async throws -> String? {
    var encoder = HPACKEncoder()
    var block = ByteWriter()
    var request = ByteWriter()
    for (name, value) in [
      (":method", "POST"), (":scheme", "http"), (":path", "/3/device/\(token)"), (":authority", host),
      ("apns-topic", "com.example.app"), ("apns-push-type", "alert"),
    ] {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, to: &block)
    }
    request.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).rawBytes)
    request.writeSettings([])
    request.writeFrame(.headers, flags: .endHeaders, stream: 1, block.bytes)
    request.writeFrame(
      .data, flags: .endStream, stream: 1, Array(#"{"aps":{"alert":"\#(alert)"}}"#.utf8).rawBytes)
    let written = ByteBuffer(bytes: Array(copying: request.bytes))
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(written)
      var received: [UInt8] = []
      for try await bytes in inbound {
        received += bytes.readableBytesView
        if let status = Self.status(in: received) { return status }
      }
      return nil
    }
  }

  /// `:status` of the first answer, which is its first field.
  private static func status(in received: [UInt8]) -> String? {
    var start = 0
    while let header = FrameHeader(parsing: received.rawBytes.extracting(start..<received.count)) {
      let payload = start + header.frameLength - header.payloadLength
      start += header.frameLength
      guard start <= received.count else { return nil }
      guard header.type == .headers else { continue }
      var (decoder, fields) = (HPACKDecoder(), FieldList())
      guard decoder.decode(received.rawBytes.extracting(payload..<start), into: &fields) == nil else { return nil }
      return fields.fields.first.map { String(decoding: Array(copying: fields.value(of: $0)), as: UTF8.self) }
    }
    return nil
  }
}
