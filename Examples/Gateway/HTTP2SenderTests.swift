import Foundation
import GatewayControl
import GatewaySimulator
import Testing

/// The HTTP/2 provider API in your own test: it answers as APNs does, fails as you tell it, and knows what came.
@Suite("A sender over HTTP/2")
struct HTTP2SenderTests {
  @Test(
    "One notification is refused and another one rejected, and the gateway has seen all", .enabled(if: Sender.isThere))
  func rejection() async throws {
    var options = SimulatorOptions()
    (options.gateway, options.feedback) = (nil, nil)
    // In cleartext; `HTTP2Service.tls` takes a TLSContext, `trust` and `providerKeys` verify provider tokens.
    options.http2 = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    let gateway = try await ObservedGateway.start(options)
    let sender = Sender(address: "\(try #require(gateway.simulator.http2))")

    try await gateway.simulator.disturb(HTTP2Fault("answer,status=503,token=bb,times=1"))
    #expect(try await sender.push("Hello", to: "aa") == 200)
    #expect(try await sender.push("Hello", to: "bb") == 503)
    // Sent again, as a sender should.
    #expect(try await sender.push("Hello", to: "bb") == 200)
    try await gateway.simulator.setDevices([([0xcc], .uninstalled)])
    #expect(try await sender.push("Hello", to: "cc") == 410)

    let received = try await gateway.waitForNotifications(4, within: .seconds(10))
    #expect(received.notifications.map(\.token) == [[0xaa], [0xbb], [0xbb], [0xcc]])
    #expect(received.notifications.map(\.request?.status) == [200, 503, 200, 410])
    #expect(received.notifications.last?.request?.reason == "Unregistered")
    let ledger = await gateway.stop()
    #expect(ledger.gateway.accepted == 2 && ledger.gateway.rejected.values.reduce(0, +) == 2)
  }
}

/// Your sender: this one is curl.
struct Sender {
  var address: String

  private static let curl = URL(filePath: "/usr/bin/curl")
  static var isThere: Bool { FileManager.default.isExecutableFile(atPath: curl.path) }

  /// The status of the answer.
  @concurrent func push(_ alert: String, to token: String) async throws -> Int? {
    let (process, output) = (Process(), Pipe())
    process.executableURL = Self.curl
    process.arguments = [
      "--silent", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}", "--http2-prior-knowledge",
      "--header", "apns-topic: com.example.app", "--header", "apns-push-type: alert",
      "--data", #"{"aps":{"alert":"\#(alert)"}}"#, "http://\(address)/3/device/\(token)",
    ]
    process.standardOutput = output
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Int(String(decoding: text, as: UTF8.self))
  }
}
