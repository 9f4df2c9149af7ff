import Measurement
import NIOCore
import NIOPosix
import TLSTransport

/// The environment of an event loop's part of a load; simulations replace it.
struct LoopEnvironment {
  /// Nanoseconds of a clock that only goes forward.
  var clock: () -> Int64
  /// Processor time of the calling thread, in nanoseconds.
  var processor: () -> Int64
  /// The seed of the jitter of waits.
  var jitter: UInt64
  /// Whether a connection has unread input.
  var hasInput: (ProviderConnection) -> Bool
  /// Runs a closure after the event loop has polled its sockets and read their input. One closure at a time.
  var afterSockets: (@escaping () -> Void) -> Void
  /// Tries to connect. Results in a channel with a `ProviderHandler`, or in `failedToOpen`.
  var connect: (ProviderConnection) -> Void

  static func real(_ connector: GatewayConnector, _ turn: LoopTickPipe) -> LoopEnvironment {
    LoopEnvironment(
      clock: MonotonicClock.nanoseconds, processor: ProcessorTime.ofThread, jitter: .random(in: .min ... .max),
      hasInput: \.hasUnread,
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

  /// Tries the gateway's addresses one after another, beginning with the one that was last tried.
  func connect(_ connection: ProviderConnection) {
    // A literal address needs no lookup on another thread.
    let addresses =
      plan.gateway.addresses?.all
      ?? GatewayAddresses(literal: plan.gateway.host, port: plan.gateway.port)?.all ?? []
    attempt(connection, addresses, tried: 0)
  }

  private func attempt(_ connection: ProviderConnection, _ addresses: [SocketAddress], tried: Int) {
    let runner = connection.runner
    let bootstrap = self.bootstrap(connection)
    let index = addresses.isEmpty ? 0 : runner.addressIndex % addresses.count
    let connected =
      addresses.isEmpty
      ? bootstrap.connect(host: plan.gateway.host, port: plan.gateway.port) : bootstrap.connect(to: addresses[index])
    let bound = NIOLoopBound(connection, eventLoop: runner.loop)
    let number = connection.attempt
    connected.whenFailure { error in
      let runner = bound.value.runner
      guard tried + 1 < addresses.count, !runner.machine.isOver else {
        bound.value.note(error, attempt: number)
        return bound.value.failedToOpen(attempt: number)
      }
      runner.addressIndex = index + 1
      attempt(bound.value, addresses, tried: tried + 1)
    }
  }

  private func bootstrap(_ connection: ProviderConnection) -> ClientBootstrap {
    let loop = connection.runner.loop
    let bound = NIOLoopBound(connection, eventLoop: loop)
    var bootstrap = ClientBootstrap(group: loop)
      .connectTimeout(.nanoseconds(plan.connections.connectTimeout.nanoseconds))
      .channelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
      .channelOption(.allowRemoteHalfClosure, value: true)
    for (option, value) in plan.connections.socket.channelOptions {
      bootstrap = bootstrap.channelOption(option, value: value)
    }
    let (plan, tls, sessions) = (plan, tls, sessions)
    return bootstrap.channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        if let tls {
          try channel.pipeline.syncOperations.addHandler(
            TLSHandler(
              client: tls, serverName: plan.gateway.host, verifiesName: plan.verifiesName,
              sessions: plan.resumesSessions ? sessions : nil,
              handshakeTimeout: .nanoseconds(plan.connections.handshakeTimeout.nanoseconds)))
        }
        try channel.pipeline.syncOperations.addHandler(ProviderHandler(bound.value, usesTLS: tls != nil))
      }
    }
  }
}
