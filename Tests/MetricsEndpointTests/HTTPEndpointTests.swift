import HTTPEndpoint
import NIOPosix
import TestSupport
import Testing

@Suite(.waiting) struct HTTPEndpointTests {
  /// An endpoint whose answer is more than the sockets between it and a client hold, and a client that has asked for it.
  private func withAnswerOnItsWay(
    stopTimeout: Duration, _ body: (HTTPEndpoint, borrowing RawClient) async throws -> Void
  ) async throws {
    let (asked, hasAsked) = AsyncStream.makeStream(of: Void.self)
    let service = HTTPEndpoint.Service { _ in
      hasAsked.finish()
      return HTTPAnswer(status: 200, headers: [], body: [UInt8](repeating: 97, count: 24 << 20))
    } problem: { _ in
      HTTPAnswer(status: 400, headers: [], body: [])
    }
    var limits = HTTPEndpoint.Limits()
    limits.stopTimeout = stopTimeout
    let endpoint = try await HTTPEndpoint.start(
      host: "127.0.0.1", port: 0, group: MultiThreadedEventLoopGroup.singleton, limits: limits, service: service)
    let client = try RawClient(port: endpoint.port)
    client.write("GET / HTTP/1.1\r\n\r\n")
    for await _ in asked {}
    try await body(endpoint, client)
  }

  @Test("An answer that was begun is sent to its end, though the endpoint stops") func stoppingCutsNoAnswer()
    async throws
  {
    try await withAnswerOnItsWay(stopTimeout: .seconds(120)) { endpoint, client in
      async let stopped: Void = endpoint.stop()
      #expect((client.readAll()?.count ?? 0) > 24 << 20)
      await stopped
    }
  }

  @Test("A client that does not read its answer keeps no endpoint from stopping") func stoppingWaitsForNobody()
    async throws
  {
    try await withAnswerOnItsWay(stopTimeout: .seconds(2)) { endpoint, client in
      await endpoint.stop()
      #expect(client.readAll().map { $0.count < 24 << 20 } != false)
    }
  }
}
