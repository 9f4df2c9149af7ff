import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import LoadTest

/// A gateway's name, looked up once.
@Suite("the gateway's addresses", .waiting)
struct GatewayAddressesTests {
  private typealias Answer = GatewayAddresses.Answer

  /// What comes of these answers, one after another and then the last again and again; and how often was asked.
  private func lookUp(_ answers: Answer...) -> (
    result: Result<GatewayAddresses, GatewayAddresses.LookupError>, asked: Int
  ) {
    var asked = 0
    let result = Result { () throws(GatewayAddresses.LookupError) in
      try GatewayAddresses(
        host: "gateway.invalid", port: 2195,
        resolver: { _, _ in
          asked += 1
          return answers[min(asked, answers.count) - 1]
        }, pause: {})
    }
    return (result, asked)
  }

  private func addresses(_ texts: [String]) throws -> GatewayAddresses {
    let list = try texts.map { try SocketAddress(ipAddress: $0, port: 2195) }
    return try lookUp(.addresses(list)).result.get()
  }

  @Test(
    "Loopback are 127.0.0.0/8 and ::1",
    arguments: ["127.0.0.1", "127.255.255.254", "127.0.1.1", "::1", "::ffff:127.0.0.1", "::ffff:127.9.8.7"])
  func loopback(text: String) throws { #expect(try addresses([text]).foreign == nil) }

  @Test(
    "All else is another machine's",
    arguments: [
      "128.0.0.1", "126.255.255.255", "0.0.0.0", "192.0.2.1", "::", "::2", "1::1", "fe80::1", "::ffff:198.51.100.7",
      "::127.0.0.1", "::ffff:0:127.0.0.1",
    ])
  func foreign(text: String) throws {
    #expect(try addresses([text]).foreign != nil)
    // One among those that a name stands for is enough, wherever it stands.
    #expect(try addresses(["127.0.0.1", text]).foreign != nil)
    #expect(try addresses([text, "::1"]).foreign != nil)
  }

  @Test("A name that stands for nothing is no such host at once; what is temporary is asked again for 3 seconds")
  func failures() throws {
    let local = try SocketAddress(ipAddress: "127.0.0.1", port: 2195)
    var (result, asked) = lookUp(.noSuchHost)
    #expect(throws: GatewayAddresses.LookupError.noSuchHost) { try result.get() }
    #expect(asked == 1 && "\(GatewayAddresses.LookupError.noSuchHost)" == "no such host")
    (result, asked) = lookUp(.addresses([]))
    #expect(throws: GatewayAddresses.LookupError.noSuchHost) { try result.get() }
    (result, asked) = lookUp(.failed("broken"), .addresses([local]))
    #expect(throws: GatewayAddresses.LookupError.failed("broken")) { try result.get() }
    (result, asked) = lookUp(.temporary("later"), .temporary("later"), .addresses([local]))
    #expect(try result.get().all == [local] && asked == 3)
    (result, asked) = lookUp(.temporary("later"))
    #expect(throws: GatewayAddresses.LookupError.failed("later")) { try result.get() }
    // Twelve pauses of a quarter of a second.
    #expect(asked == 13)
  }

  @Test("The system's resolver knows this machine, and digits are an address without it")
  func system() throws {
    let local = try GatewayAddresses(host: "localhost", port: 7)
    #expect(local.foreign == nil && local.all.allSatisfy { $0.port == 7 })
    // 127.0.0.1 as one number.
    #expect(try GatewayAddresses(host: "2130706433", port: 7).all == [SocketAddress(ipAddress: "127.0.0.1", port: 7)])
    #expect(GatewayAddresses(literal: "::1", port: 7)?.foreign == nil)
    #expect(GatewayAddresses(literal: "192.0.2.1", port: 7)?.foreign == "192.0.2.1")
    #expect(GatewayAddresses(literal: "localhost", port: 7) == nil)
  }

  @Test("What was looked up is connected, one address after another, and the name is not looked up again")
  func connected() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let server = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
    var plan = LoadPlan()
    // Nobody knows this name.
    (plan.gateway.host, plan.gateway.port) = ("gateway.invalid", try #require(server.localAddress?.port))
    // Nobody listens at the first.
    let list = try ["127.0.0.2", "127.0.0.1"].map { try SocketAddress(ipAddress: $0, port: plan.gateway.port) }
    plan.gateway.addresses = try lookUp(.addresses(list)).result.get()
    (plan.count, plan.usesMarkers, plan.drain) = (1, false, .zero)
    (plan.connections.count, plan.connections.giveUp) = (3, .seconds(240))
    plan.connections.connectTimeout = .seconds(300)
    let outcome = try await LoadRunner(plan, tls: nil).run()
    #expect(outcome.tally.opened >= 3 && outcome.tally.failed == 0)
    try await server.close()
    try await group.shutdownGracefully()
  }
}
