import GatewayControl
import GatewaySimulator
import NIOPosix
import Testing

extension LibraryExamples {
  @Test("GatewayControl: a test asks a gateway what arrived, and so does a program over HTTP")
  func gatewayControl() async throws {
    var options = SimulatorOptions()
    options.gateway = .init(host: "127.0.0.1", port: 0)
    options.feedback = nil
    let gateway = try await ObservedGateway.start(options)
    try await gateway.simulator.reject(.init(.prefix([0xbb]), status: .invalidToken, times: 1))
    // … the provider pushes …
    let received = try await gateway.notifications()
    let verdict = try await gateway.verdict()
    // The same for programs in other languages, over HTTP.
    let group = MultiThreadedEventLoopGroup.singleton
    let endpoint = try await ControlEndpoint.start(for: gateway, port: 0, group: group)
    let page = "http://\(endpoint.address)/notifications"
    await endpoint.stop()
    let ledger = await gateway.stop()

    #expect(received.notifications.isEmpty && received.last == 0)
    #expect(verdict.sendings == 0)
    #expect(page.hasPrefix("http://127.0.0.1:"))
    #expect(ledger.gateway.received == 0)
  }
}
