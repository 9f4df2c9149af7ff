import Bytes
import NIOCore
import NIOPosix
import Synchronization

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
    /// 431.
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
  public let address: String
  /// The listening port, also if port 0 was requested.
  public let port: Int
  private let listener: any Channel
  private let connections: Connections

  private init(listener: any Channel, at address: SocketAddress?, connections: Connections) {
    port = address?.port ?? 0
    let host = address?.ipAddress ?? "?"
    self.address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    self.listener = listener
    self.connections = connections
  }

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
    let connections = Connections(limit: limits.maximumConnections)
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 64)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // A client that closes its direction after a request still gets the answer.
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
      .childChannelInitializer { channel in
        guard connections.add(channel) else { return channel.eventLoop.makeFailedFuture(ChannelError.eof) }
        return channel.eventLoop.makeCompletedFuture {
          try RequestHandler.addHandlers(to: channel, limits: limits, metrics: metrics)
        }
      }
    do {
      guard (0...65_535).contains(port) else { throw StartError(description: "invalid port number") }
      // The resolver may take seconds, and `bind(host:port:)` asks it on the thread it is called on.
      let address = try await NIOThreadPool.singleton.runIfActive {
        try SocketAddress.makeAddressResolvingHost(host, port: port)
      }
      let listener = try await bootstrap.bind(to: address).get()
      return MetricsEndpoint(listener: listener, at: listener.localAddress, connections: connections)
    } catch {
      let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
      throw StartError(description: "cannot listen at \(place): \(reason(of: error))")
    }
  }

  /// Stops listening and closes all connections.
  public func stop() async {
    // Closing fails only if it is closed already.
    try? await listener.close()
    for channel in connections.end() { try? await channel.close() }
  }

  private static func reason(of error: any Error) -> String {
    switch error {
    case let error as IOError: SystemError.text(error.errnoCode)
    case let error as SocketAddressError.UnknownHost: error.errorDescription
    default: "\(error)"
    }
  }
}

/// The open connections, which are counted and can be closed together.
private final class Connections: Sendable {
  private struct State {
    var open: [ObjectIdentifier: (number: Int, channel: any Channel)] = [:]
    var last = 0
    var hasEnded = false
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) { self.limit = limit }

  /// `false` when none are wanted any more. When there are too many the oldest is closed.
  func add(_ channel: any Channel) -> Bool {
    let key = ObjectIdentifier(channel)
    let (isAdded, oldest) = state.withLock { state -> (Bool, (any Channel)?) in
      guard !state.hasEnded else { return (false, nil) }
      var oldest: (any Channel)?
      if state.open.count >= limit, let entry = state.open.min(by: { $0.value.number < $1.value.number }) {
        oldest = state.open.removeValue(forKey: entry.key)?.channel
      }
      state.last += 1
      state.open[key] = (state.last, channel)
      return (true, oldest)
    }
    oldest?.close(promise: nil)
    if isAdded {
      channel.closeFuture.whenComplete { _ in self.state.withLock { state in state.open[key] = nil } }
    }
    return isAdded
  }

  /// Stops accepting connections, and returns the open ones.
  func end() -> [any Channel] {
    state.withLock { state in
      state.hasEnded = true
      return state.open.values.map(\.channel)
    }
  }
}
