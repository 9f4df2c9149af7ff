import BinaryProtocol
import GatewayControl
import GatewaySimulator
import Testing

/// A gateway that your test asks what arrived, and changes while it runs. `apnscope simulate --control` is the same for
/// tests in other languages.
@Suite("A provider, and a gateway that changes")
struct ObservedProviderTests {
  @Test("One notification of a token is rejected, and the gateway has seen all of them")
  func rejection() async throws {
    var options = SimulatorOptions()
    options.gateway = .init(host: "127.0.0.1", port: 0)
    options.feedback = nil
    let gateway = try await ObservedGateway.start(options)
    let place = try #require(gateway.simulator.gateway)
    let provider = Provider(host: place.host, port: place.port)
    let tokens = [0xaa, 0xbb, 0xcc].map { [UInt8](repeating: $0, count: 32) }

    // The next notification of this token, and no later one.
    try await gateway.simulator.reject(.init(.prefix(tokens[1]), status: .invalidToken, times: 1))
    let answer = try await provider.push("Hello", to: tokens)
    #expect(answer.status == .invalidToken)
    #expect(answer.identifier == 1)

    let received = try await gateway.waitForNotifications(3, within: .seconds(60))
    #expect(received.notifications.map(\.token) == tokens)
    #expect(received.notifications.map(\.fate) == [.accepted, .rejected, .discarded])
    let verdict = try await gateway.verdict()
    #expect(verdict.discarded == 1)

    // The next test begins anew with the same gateway.
    try await gateway.reset()
    let none = try await gateway.notifications()
    #expect(none.notifications.isEmpty)
    let counts = await gateway.counts().gateway
    #expect(counts.received == 0)
    _ = await gateway.stop()
  }
}
