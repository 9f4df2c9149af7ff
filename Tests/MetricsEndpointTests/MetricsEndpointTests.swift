import Foundation
import MetricsEndpoint
import NIOCore
import NIOPosix
import TestSupport
import Testing

@Suite(.waiting) struct MetricsEndpointTests {
  private static let metrics: @Sendable () async -> [Metric] = {
    [Metric(.counter, "apnscope_received_total", help: "Frames that arrived whole.", 42)]
  }
  private static let page = """
    # HELP apnscope_received_total Frames that arrived whole.
    # TYPE apnscope_received_total counter
    apnscope_received_total 42

    """

  /// Pages are made by tasks, and other tests of the process can keep all threads of those for a while.
  private static let patient: MetricsEndpoint.Limits = {
    var limits = MetricsEndpoint.Limits()
    limits.timeout = .seconds(120)
    return limits
  }()

  private func withEndpoint(
    port: Int = 0, limits: MetricsEndpoint.Limits = Self.patient,
    metrics: @escaping @Sendable () async -> [Metric] = Self.metrics,
    _ body: (MetricsEndpoint) async throws -> Void
  ) async throws {
    // On one loop, connections are counted in the order in which they came.
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let endpoint = try await MetricsEndpoint.start(
      host: "127.0.0.1", port: port, group: loop, limits: limits, metrics: metrics)
    do {
      try await body(endpoint)
    } catch {
      await endpoint.stop()
      throw error
    }
    await endpoint.stop()
  }

  private func answer(_ endpoint: MetricsEndpoint, to request: String) throws -> String? {
    let client = try RawClient(port: endpoint.port)
    client.write(request)
    return client.readToEnd()
  }

  // MARK: requests

  @Test("curl gets the page") func curlGetsThePage() async throws {
    guard ExternalTool.isInstalled("curl") else { return }
    try await withEndpoint { endpoint in
      #expect(endpoint.address == "127.0.0.1:\(endpoint.port)")
      let address = endpoint.address
      let answer = try ExternalTool.run("curl", ["-sS", "-i", "http://\(address)/metrics?a=b"])
      let text = String(decoding: answer, as: UTF8.self)
      #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(text.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
      #expect(text.hasSuffix("\r\n\r\n" + Self.page))
      let root = try ExternalTool.run("curl", ["-sS", "http://\(address)/"])
      #expect(String(decoding: root, as: UTF8.self) == "Metrics: /metrics\n")
    }
  }

  @Test("HEAD has the length and no page") func headHasTheLengthAndNoPage() async throws {
    try await withEndpoint { endpoint in
      let answer = try #require(try answer(endpoint, to: "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))
      #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(answer.contains("Content-Length: \(Self.page.utf8.count)\r\n"))
      #expect(answer.hasSuffix("\r\n\r\n"))
    }
  }

  @Test(
    "Other requests get the status that says why",
    arguments: [
      ("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", "404"), ("GET /metrics/ HTTP/1.0\r\n\r\n", "404"),
      ("GET * HTTP/1.1\r\n\r\n", "404"), ("GET /../metrics HTTP/1.1\r\n\r\n", "404"),
      ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "405"),
      ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "405"), ("OPTIONS /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
      ("POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "405"),
      ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
      ("GET /metrics HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "200"),
    ])
  func otherRequests(_ request: String, _ status: String) async throws {
    try await withEndpoint { endpoint in
      let answer = try #require(try answer(endpoint, to: request))
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.contains("Connection: close\r\n"))
      #expect(answer.contains("Allow: GET, HEAD\r\n") == (status == "405"))
    }
  }

  @Test("A request whose client has closed its side is answered") func aRequestOfWhichTheClientClosedItsSide()
    async throws
  {
    try await withEndpoint { endpoint in
      let client = try RawClient(port: endpoint.port)
      client.write("GET /metrics HTTP/1.0\r\n\r\n")
      client.endWriting()
      #expect(client.readToEnd()?.hasSuffix(Self.page) == true)
    }
  }

  @Test("Request in single bytes") func requestInSingleBytes() async throws {
    try await withEndpoint { endpoint in
      let client = try RawClient(port: endpoint.port)
      for byte in "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".utf8 { client.write([byte]) }
      #expect(client.readToEnd()?.hasSuffix(Self.page) == true)
    }
  }

  @Test("One answer for many requests at once") func oneAnswerForManyRequestsAtOnce() async throws {
    try await withEndpoint { endpoint in
      let requests = String(repeating: "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", count: 400)
      let answer = try #require(try answer(endpoint, to: requests))
      #expect(answer.components(separatedBy: "HTTP/1.1 200 OK").count == 2)
      #expect(answer.hasSuffix(Self.page))
    }
  }

  // MARK: hostile clients

  @Test(
    "What is no HTTP",
    arguments: [
      "\r\n\r\nfoo\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\u{16}\u{3}\u{1}\0\u{5}hello\r\n\r\n", "GET /metrics HTTP/9.9\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nbad header\r\n\r\n",
      "POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST /metrics HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
      "POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ])
  func whatIsNoHTTP(_ request: String) async throws {
    try await withEndpoint { endpoint in
      let answer = try #require(try answer(endpoint, to: request))
      #expect(answer.hasPrefix("HTTP/1.1 400 "))
      try #expect(self.answer(endpoint, to: "GET /metrics HTTP/1.1\r\n\r\n")?.hasSuffix(Self.page) == true)
    }
  }

  @Test("Garbage is answered, and the page can be had afterwards") func garbage() async throws {
    try await withEndpoint { endpoint in
      var random = SeededGenerator(seed: 7)
      for length in [1, 5, 100, 5_000, 100_000] {
        for _ in 0..<(TestRun.isWhole ? 20 : 4) {
          let client = try RawClient(port: endpoint.port)
          client.write(random.bytes(length))
          client.endWriting()
          #expect(client.readToEnd() != nil)
        }
      }
      try #expect(self.answer(endpoint, to: "GET /metrics HTTP/1.1\r\n\r\n")?.hasSuffix(Self.page) == true)
    }
  }

  @Test(
    "Long requests are cut off",
    arguments: [
      "GET /" + String(repeating: "a", count: 1 << 20),
      "GET /metrics HTTP/1.1\r\nA: " + String(repeating: "a", count: 1 << 20),
      "GET /metrics HTTP/1.1\r\n" + String(repeating: "A: a\r\n", count: 1 << 16),
      "POST /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + String(repeating: "a", count: 1_000_000),
    ])
  func longRequestsAreCutOff(_ request: String) async throws {
    try await withEndpoint { endpoint in
      let answer = try #require(try answer(endpoint, to: request))
      // 413 for a body.
      #expect(["431", "413", "400"].contains { answer.hasPrefix("HTTP/1.1 \($0) ") })
    }
  }

  @Test(
    "Half a request times out, and not before its time",
    arguments: ["", "G", "GET /metrics HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\na"])
  func halfRequestsTimeOut(_ request: String) async throws {
    var limits = MetricsEndpoint.Limits()
    limits.timeout = .milliseconds(100)
    try await withEndpoint(limits: limits) { endpoint in
      let began = ContinuousClock.now
      try #expect(self.answer(endpoint, to: request) == "")
      #expect(ContinuousClock.now - began >= .milliseconds(100))
    }
  }

  @Test("A page that is never made times out") func aPageThatIsNeverMadeTimesOut() async throws {
    var limits = MetricsEndpoint.Limits()
    limits.timeout = .milliseconds(100)
    let never: @Sendable () async -> [Metric] = {
      try? await Task.sleep(for: .seconds(3_600))
      return []
    }
    try await withEndpoint(limits: limits, metrics: never) { endpoint in
      try #expect(self.answer(endpoint, to: "GET /metrics HTTP/1.1\r\n\r\n") == "")
    }
  }

  @Test("Peers that hang keep nobody out: for one too many the oldest is closed")
  func hangingPeers() async throws {
    var limits = Self.patient
    limits.maximumConnections = 2
    try await withEndpoint(limits: limits) { endpoint in
      let port = endpoint.port
      let oldest = try RawClient(port: port)
      let other = try RawClient(port: port)
      oldest.write("GET /met")
      other.write("GET /met")
      #expect(try self.answer(endpoint, to: "GET / HTTP/1.1\r\n\r\n")?.hasPrefix("HTTP/1.1 200 OK\r\n") == true)
      // The oldest made room; the other still gets its answer.
      #expect(oldest.readToEnd() == "")
      other.write("rics HTTP/1.1\r\n\r\n")
      #expect(other.readToEnd()?.hasPrefix("HTTP/1.1 200 OK\r\n") == true)
    }
  }

  // MARK: starting and stopping

  @Test("A port in use is a clear error") func aPortInUseIsAClearError() async throws {
    try await withEndpoint { endpoint in
      let error = await #expect(throws: MetricsEndpoint.StartError.self) {
        _ = try await MetricsEndpoint.start(
          host: "127.0.0.1", port: endpoint.port, group: MultiThreadedEventLoopGroup.singleton, metrics: Self.metrics)
      }
      #expect(error?.description == "cannot listen at \(endpoint.address): Address already in use")
    }
  }

  @Test(
    "Where it cannot listen",
    arguments: [("127.0.0.1", 65_536), ("127.0.0.1", -1), ("no.such.host.invalid", 0), ("192.0.2.1", 0), ("", 0)])
  func whereItCannotListen(_ host: String, _ port: Int) async throws {
    let error = await #expect(throws: MetricsEndpoint.StartError.self) {
      _ = try await MetricsEndpoint.start(
        host: host, port: port, group: MultiThreadedEventLoopGroup.singleton, metrics: Self.metrics)
    }
    #expect(error?.description.hasPrefix("cannot listen at \(host):\(port): ") == true, "\(String(describing: error))")
  }

  @Test("Stopping closes what is open and frees the port") func stoppingClosesWhatIsOpenAndFreesThePort() async throws {
    var limits = Self.patient
    limits.maximumConnections = 2
    let reserved = try ReservedPort()
    let port = reserved.number
    try await withEndpoint(port: port, limits: limits) { endpoint in
      let client = try RawClient(port: port)
      client.write("GET /met")
      // The endpoint takes connections in the order in which they come.
      #expect(try self.answer(endpoint, to: "GET / HTTP/1.1\r\n\r\n")?.hasPrefix("HTTP/1.1 200 OK\r\n") == true)
      async let stopped: Void = endpoint.stop()
      #expect(client.readToEnd() == "")
      await stopped
      #expect(throws: RawClient.Failure.self) { _ = try RawClient(port: port) }
      await endpoint.stop()
    }
  }
}
