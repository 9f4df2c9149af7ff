import Bytes
import NIOCore
import NIOPosix
import Synchronization

/// A small HTTP server for one service of a program: it answers one request a connection, and closes.
///
/// There is no encryption and no authentication: whoever listens on an address trusts all clients that can reach it.
package final class HTTPEndpoint: Sendable {
  /// Limits on the resources that untrusted clients can use.
  package struct Limits: Sendable {
    /// Simultaneous connections; a further one closes the oldest, so that hanging peers do not lock others out.
    package var maximumConnections = 64
    /// The most bytes of a request, including its body and everything after it.
    package var maximumRequestBytes = 16 << 10
    /// The time within which a request has to arrive; then its connection is closed.
    package var timeout = Duration.seconds(10)
    /// The time for making an answer and for its transfer, if that is more than what is left of `timeout`.
    package var answerTimeout = Duration.zero
    /// The time that answers on their way have when the endpoint stops.
    package var stopTimeout = Duration.seconds(2)
    package init() {}
  }

  /// What answers requests.
  package struct Service: Sendable {
    /// Called for each request, also concurrently; cancelled when the client goes away.
    package var answer: @Sendable (HTTPRequest) async -> HTTPAnswer
    /// The answer to what is no request.
    package var problem: @Sendable (HTTPProblem) -> HTTPAnswer

    package init(
      answer: @escaping @Sendable (HTTPRequest) async -> HTTPAnswer,
      problem: @escaping @Sendable (HTTPProblem) -> HTTPAnswer
    ) {
      (self.answer, self.problem) = (answer, problem)
    }
  }

  /// The reason why the endpoint cannot listen.
  package struct StartError: Error, CustomStringConvertible {
    /// A sentence with the address.
    package let description: String
  }

  /// The listening address: `127.0.0.1:9102`, `[::1]:9102`.
  package let address: String
  /// The listening port, also if port 0 was requested.
  package let port: Int
  private let listener: any Channel
  private let connections: Connections
  private let stopTimeout: TimeAmount

  private init(
    listener: any Channel, at address: SocketAddress?, connections: Connections, stopTimeout: Duration
  ) {
    port = address?.port ?? 0
    let host = address?.ipAddress ?? "?"
    self.address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    self.listener = listener
    self.connections = connections
    self.stopTimeout = TimeAmount(stopTimeout)
  }

  /// Listens at a host and a port, and serves until `stop()`.
  ///
  /// - Parameters:
  ///   - host: a name or an IP address; a name is resolved on another thread.
  ///   - port: the port; 0 selects a free one.
  ///   - acceptsRemote: whether the address may be another one than the machine's loopback.
  ///   - group: the event loops of the server.
  /// - Throws: a `StartError` if the host is unknown, or the address cannot be bound.
  package static func start(
    host: String, port: Int, acceptsRemote: Bool = true, group: any EventLoopGroup, limits: Limits, service: Service
  ) async throws -> HTTPEndpoint {
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
          try HTTPRequestHandler.addHandlers(to: channel, limits: limits, service: service)
        }
      }
    let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    do {
      guard (0...65_535).contains(port) else { throw StartError(description: "invalid port number") }
      // The resolver may take seconds, and `bind(host:port:)` asks it on the thread it is called on.
      let address = try await NIOThreadPool.singleton.runIfActive {
        try SocketAddress.makeAddressResolvingHost(host, port: port)
      }
      guard acceptsRemote || address.isLoopback else {
        throw StartError(description: "not an address of this machine alone")
      }
      let listener = try await bootstrap.bind(to: address).get()
      return HTTPEndpoint(
        listener: listener, at: listener.localAddress, connections: connections, stopTimeout: limits.stopTimeout)
    } catch {
      throw StartError(description: "cannot listen at \(place): \(reason(of: error))")
    }
  }

  /// Stops listening and closes all connections: those with an answer on its way when the client has it, and
  /// after `Limits.stopTimeout` all. What makes an answer is cancelled.
  package func stop() async {
    // Closing fails only if it is closed already.
    try? await listener.close()
    let open = connections.end()
    for channel in open { channel.pipeline.fireUserInboundEventTriggered(EndOfService()) }
    let limit = listener.eventLoop.scheduleTask(in: stopTimeout) {
      for channel in open { channel.close(promise: nil) }
    }
    for channel in open { try? await channel.closeFuture.get() }
    limit.cancel()
  }

  private static func reason(of error: any Error) -> String {
    switch error {
    case let error as IOError: SystemError.text(error.errnoCode)
    case let error as SocketAddressError.UnknownHost: error.errorDescription
    case let error as StartError: error.description
    default: "\(error)"
    }
  }
}

/// Tells a connection that the endpoint stops.
struct EndOfService: Sendable {}

extension SocketAddress {
  /// Whether only this machine can reach it: 127.0.0.0/8, ::1, or a path.
  fileprivate var isLoopback: Bool {
    guard let text = ipAddress else { return true }
    return text == "::1" || text.hasPrefix("127.") || text.hasPrefix("::ffff:127.")
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
