import NIOCore
import NIOPosix
import TLSTransport

/// What an event loop's part of a load needs of the world outside: a simulation puts its own in its place.
struct World {
  /// Nanoseconds of a clock that only goes forward.
  var clock: () -> Int64
  /// What the jitter of waits comes from.
  var jitter: UInt64
  /// Whether something has come over a connection that is not read yet.
  var hasInput: (ProviderConnection) -> Bool
  /// Does something soon, when the event loop has come to its sockets: what waits there was read. One thing at a time.
  var afterSockets: (@escaping () -> Void) -> Void
  /// Tries to connect. A channel with a `ProviderHandler` comes of it, or the connection's `failedToOpen`.
  var connect: (ProviderConnection) -> Void

  static func real(_ connector: GatewayConnector, _ turn: SocketTurn) -> World {
    World(
      clock: Clock.nanoseconds, jitter: .random(in: .min ... .max), hasInput: \.hasUnread,
      afterSockets: { turn.next($0) }, connect: { connector.connect($0) })
  }
}

/// Makes TCP connections to the plan's gateway, with TLS or without.
struct GatewayConnector {
  private let plan: LoadPlan
  private let tls: TLSContext?
  private let sessions: SessionCache

  init(_ plan: LoadPlan, _ tls: TLSContext?, _ sessions: SessionCache) {
    self.plan = plan
    self.tls = tls
    self.sessions = sessions
  }

  func connect(_ connection: ProviderConnection) {
    let loop = connection.runner.loop
    let bound = NIOLoopBound(connection, eventLoop: loop)
    let life = connection.life
    var bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(Int64(plan.connections.connectTimeout / .nanoseconds(1))))
      .channelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
      .channelOption(.allowRemoteHalfClosure, value: true)
    for (option, value) in plan.connections.socket.channelOptions {
      bootstrap = bootstrap.channelOption(option, value: value)
    }
    let (plan, tls, sessions) = (plan, tls, sessions)
    bootstrap =
      bootstrap.channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              TLSHandler(
                client: tls, serverName: plan.gateway.host, verifiesName: plan.verifiesName,
                sessions: plan.resumesSessions ? sessions : nil,
                handshakeTimeout: .nanoseconds(Int64(plan.connections.handshakeTimeout / .nanoseconds(1)))))
          }
          try channel.pipeline.syncOperations.addHandler(ProviderHandler(bound.value, usesTLS: tls != nil))
        }
      }
    // What is an address already needs no other thread to look it up.
    let connected =
      if let address = try? SocketAddress(ipAddress: plan.gateway.host, port: plan.gateway.port) {
        bootstrap.connect(to: address)
      } else {
        bootstrap.connect(host: plan.gateway.host, port: plan.gateway.port)
      }
    connected.whenFailure { error in
      bound.value.note(error, life: life)
      bound.value.failedToOpen(life: life)
    }
  }
}
