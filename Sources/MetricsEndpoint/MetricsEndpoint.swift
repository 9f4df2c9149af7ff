import HTTPEndpoint
import NIOCore

/// Serves a program's metrics over HTTP, to Prometheus and to browsers.
///
/// `GET /metrics` is the page, generated for every request; `GET /` links to it. There is no encryption and no
/// authentication: listen only on an address that only trusted clients can reach.
public final class MetricsEndpoint: Sendable {
  /// Limits on the resources that untrusted clients can use.
  public struct Limits: Sendable {
    /// Simultaneous connections; a further one closes the oldest, so that hanging peers do not lock others out.
    public var maximumConnections = 64
    /// The most bytes of a request, including its body and everything after it; a longer one is answered with status
    /// 431, or 413 if its body is too long.
    public var maximumRequestBytes = 16 << 10
    /// The lifetime of a connection, after which it is closed, answered or not. The default is Prometheus' default
    /// timeout.
    public var timeout = Duration.seconds(10)

    /// Makes the default limits.
    public init() {}
  }

  /// The reason why the endpoint cannot listen.
  public struct StartError: Error, CustomStringConvertible {
    /// A sentence with the address.
    public let description: String
  }

  /// The listening address: `127.0.0.1:9102`, `[::1]:9102`.
  public var address: String { endpoint.address }
  /// The listening port, also if port 0 was requested.
  public var port: Int { endpoint.port }
  private let endpoint: HTTPEndpoint

  private init(_ endpoint: HTTPEndpoint) { self.endpoint = endpoint }

  /// Listens at a host and a port, and serves pages until `stop()`.
  ///
  /// - Parameters:
  ///   - host: a name or an IP address; a name is resolved on another thread.
  ///   - port: the port; 0 selects a free one.
  ///   - group: the event loops of the server.
  ///   - limits: limits on the resources that clients can use.
  ///   - metrics: returns the metrics of a page; called for each request, also concurrently.
  /// - Throws: a `StartError` if the host is unknown, or the address cannot be bound.
  public static func start(
    host: String, port: Int, group: any EventLoopGroup, limits: Limits = Limits(),
    metrics: @escaping @Sendable () async -> [Metric]
  ) async throws -> MetricsEndpoint {
    var serverLimits = HTTPEndpoint.Limits()
    serverLimits.maximumConnections = limits.maximumConnections
    serverLimits.maximumRequestBytes = limits.maximumRequestBytes
    serverLimits.timeout = limits.timeout
    let service = HTTPEndpoint.Service {
      await answer($0, metrics)
    } problem: {
      .text($0.status, $0.sentence)
    }
    do {
      return MetricsEndpoint(
        try await HTTPEndpoint.start(host: host, port: port, group: group, limits: serverLimits, service: service))
    } catch {
      throw StartError(description: "\(error)")
    }
  }

  /// Stops listening and closes all connections.
  public func stop() async { await endpoint.stop() }

  private static func answer(
    _ request: HTTPRequest, _ metrics: @Sendable () async -> [Metric]
  ) async -> HTTPAnswer {
    guard request.path == "/metrics" || request.path == "/" else {
      return .text(404, "Not found; the only path is /metrics.")
    }
    guard request.method == "GET" else {
      return .text(405, "Method not allowed; use GET or HEAD.", headers: [("Allow", "GET, HEAD")])
    }
    guard request.path == "/metrics" else { return .text(200, "Metrics: /metrics") }
    return HTTPAnswer(
      status: 200, headers: [("Content-Type", PrometheusText.contentType)],
      body: Array(PrometheusText.page(of: await metrics()).utf8))
  }
}
