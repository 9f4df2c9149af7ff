import Bytes
import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TLSTransport

/// A gateway and a feedback service with configurable behavior and faults.
///
/// ```swift
/// let simulator = try await Simulator.start(options, feedbackList: list)
/// …
/// let ledger = try await simulator.stop()
/// ```
public final class Simulator: Sendable {
  let shared: SimulatorContext
  private let group: MultiThreadedEventLoopGroup
  let loopState: [(loop: any EventLoop, loopState: NIOLoopBound<EventLoopState>)]
  /// The counts at the latest reset; `nil`: there was none.
  let baseline = Mutex<SimulatorContext.Counts?>(nil)
  private let channels: [any Channel]
  private let sweeps: [RepeatedTask]
  private let ending = Mutex<Task<Ledger, Never>?>(nil)
  /// The addresses of the gateway and the feedback service; `nil` if not running.
  public let gateway: SimulatorOptions.Address?
  public let feedback: SimulatorOptions.Address?
  /// The address of the HTTP/2 provider API; `nil` if not running.
  public let http2: SimulatorOptions.Address?
  /// The address of the device channel; `nil` if not running.
  public let deviceChannel: SimulatorOptions.Address?
  /// The networks of local push, with the addresses that they have.
  public let localPushNetworks: [LocalPushService.Network]
  /// The address of the control channel of local push; `nil` if not running.
  public let localPushControl: SimulatorOptions.Address?
  let localPushPorts: Mutex<LocalPushPorts>
  private let lookup: [ObjectIdentifier: NIOLoopBound<EventLoopState>]
  /// The address of the management of broadcast channels; `nil` if not running.
  public let channelManagement: SimulatorOptions.Address?

  /// Listens. Throws `SimulatorError` when a port cannot be had.
  public static func start(
    _ options: SimulatorOptions, feedbackList: FeedbackList, log: EventLog? = nil
  ) async throws -> Simulator {
    try await start(options, feedbackList: feedbackList, log: log, observer: nil)
  }

  /// As above, with an observer of all connections.
  package static func start(
    _ options: SimulatorOptions, feedbackList: FeedbackList, log: EventLog?, observer: ConnectionObserver?
  ) async throws -> Simulator {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, options.threads))
    do {
      if let problem = options.localPush?.problem { throw SimulatorError(problem) }
      let file = try options.deviceChannel?.file.map { path throws(SimulatorError) in try DeviceFile(path) }
      let simulator = try await Simulator(
        SimulatorContext(options, feedbackList: feedbackList, log: log, observer: observer, deviceFile: file), group)
      simulator.beginLocalPush()
      return simulator
    } catch {
      try? await group.shutdownGracefully()
      throw error
    }
  }

  private init(_ shared: SimulatorContext, _ group: MultiThreadedEventLoopGroup) async throws {
    self.shared = shared
    self.group = group
    var loopState: [(loop: any EventLoop, loopState: NIOLoopBound<EventLoopState>)] = []
    var sweeps: [RepeatedTask] = []
    let wallClock = shared.wallClock
    try shared.devices?.restore(now: shared.milliseconds) { [store = shared.store] topic in
      store.number(of: topic, limit: StoredNotifications.maximumTopics)
    }
    for (index, loop) in group.makeIterator().enumerated() {
      let (bound, sweep) = try await loop.submit {
        shared.options.scheduling.apply()
        let loopState = EventLoopState(loop, shared, index: index)
        if index == 0, let devices = shared.devices {
          loopState.onSweep = { devices.use { $0.advance(to: wallClock.nanoseconds() / 1_000_000) } }
        }
        return (NIOLoopBound(loopState, eventLoop: loop), loopState.startSweeping())
      }.get()
      loopState.append((loop, bound))
      sweeps.append(sweep)
    }
    self.loopState = loopState
    if let localPush = shared.localPush, let first = loopState.first?.loop {
      localPush.begin(
        loopState.map { loop, state in LocalPushMailbox { box in loop.execute { state.value.deliver(box) } } })
      // The rate of its messages is even to this time.
      sweeps.append(
        first.scheduleRepeatedTask(initialDelay: .milliseconds(10), delay: .milliseconds(10)) { _ in
          localPush.use { $0.advance(to: wallClock.nanoseconds()) }
        })
    }
    self.sweeps = sweeps
    let mailboxes = loopState.map { loop, state in
      DeviceMailbox { box in loop.execute { state.value.deliver(box) } }
    }
    shared.devices?.begin(mailboxes) { [weak shared] in shared?.note($0) }
    let lookup = Dictionary(uniqueKeysWithValues: loopState.map { (ObjectIdentifier($0.loop), $0.loopState) })

    self.lookup = lookup

    var channels: [any Channel] = []
    var ports: [LocalPushPort] = []
    func listen(_ address: SimulatorOptions.Address?, _ service: Listener) async throws -> SimulatorOptions.Address? {
      guard let address else { return nil }
      let channel = try await Self.listen(address, service, shared, group, lookup)
      let place = SimulatorOptions.Address(host: address.host, port: channel.localAddress?.port ?? address.port)
      if service.isLocalPush {
        ports.append(LocalPushPort(address: place, service: service, state: .listening(channel)))
      } else {
        channels.append(channel)
      }
      return place
    }
    do {
      gateway = try await listen(shared.options.gateway, .gateway)
      feedback = try await listen(shared.options.feedback, .feedback)
      http2 = try await listen(shared.options.http2?.address, .http2)
      deviceChannel = try await listen(shared.options.deviceChannel?.address, .devices)
      var networks = shared.options.localPush?.networks ?? []
      for place in networks.indices {
        let address = try await listen(networks[place].address, .localPush(network: place))
        networks[place].address = address ?? networks[place].address
      }
      localPushNetworks = networks
      localPushControl = try await listen(shared.options.localPush?.control, .localPushControl)
      channelManagement = try await listen(shared.options.http2 == nil ? nil : shared.options.channels, .channels)
    } catch {
      for channel in channels + ports.compactMap(\.state.channel) { try? await channel.close() }
      throw error
    }
    self.channels = channels
    localPushPorts = Mutex(LocalPushPorts(ports: ports))
  }

  /// Listens for further connections of a service.
  func listen(_ address: SimulatorOptions.Address, _ service: Listener) async throws -> any Channel {
    try await Self.listen(address, service, shared, group, lookup)
  }

  private static func listen(
    _ address: SimulatorOptions.Address, _ service: Listener, _ shared: SimulatorContext,
    _ group: MultiThreadedEventLoopGroup,
    _ loopState: [ObjectIdentifier: NIOLoopBound<EventLoopState>]
  ) async throws -> any Channel {
    let reading = shared.options.behavior.reading
    var bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.backlog, value: 4_096)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptPause())
        }
      }
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(
        .recvAllocator,
        // A device sends little, and there are many of them.
        value: service == .devices || service.isLocalPush
          ? FixedSizeRecvByteBufferAllocator(capacity: 1 << 10) : ReadThrottle.allocator(reading)
      )
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard let loopState = loopState[ObjectIdentifier(channel.eventLoop)]?.value else {
            throw ChannelError.unknownLocalAddress
          }
          try accept(channel, service, shared, loopState)
        }
      }
    if service.isDisturbed, let length = reading.receiveBuffer {
      // Set on the listening socket, because the window is negotiated before a connection is accepted.
      bootstrap = bootstrap.serverChannelOption(
        .socketOption(.so_rcvbuf), value: SocketOptionValue(clamping: length))
    }
    do {
      // The resolver may take seconds, and `bind(host:port:)` asks it on the thread it is called on.
      let resolved = try await NIOThreadPool.singleton.runIfActive {
        try SocketAddress.makeAddressResolvingHost(address.host, port: address.port)
      }
      return try await bootstrap.bind(to: resolved).get()
    } catch {
      throw SimulatorError("\(service.name) \(address): \(SimulatorError.reason(error))")
    }
  }

  /// Sets up a connection that was accepted, on its loop.
  static func accept(
    _ channel: any Channel, _ service: Listener, _ shared: SimulatorContext, _ loopState: EventLoopState
  ) throws {
    let pipeline = channel.pipeline.syncOperations
    let number: UInt64
    do throws(SimulatorContext.ExceededLimit) {
      number = try shared.begin()
    } catch {
      loopState.refuseConnection(
        from: service, client: channel.remoteAddress?.text ?? "unknown", because: error, shared)
      throw error
    }
    do {
      if let context = service.tls(shared.options) {
        var generator = shared.handshakeGenerator(number)
        if service.isDisturbed, generator.isHit(loopState.conduct.behavior.connection.handshakeFailure) {
          try pipeline.addHandler(HandshakeRefuser())
        } else {
          let handler = try TLSHandler(
            server: context, handshakeTimeout: shared.options.handshakeTimeout.timeAmount)
          // An observer is told how the provider batches.
          handler.readsByRecord = shared.observer != nil && service.isBinary
          try pipeline.addHandler(handler)
        }
      }
      switch service {
      case .gateway: try pipeline.addHandler(GatewayHandler(shared, loopState, number: number))
      case .feedback: try pipeline.addHandler(FeedbackHandler(shared, loopState, number: number))
      case .devices:
        guard let devices = shared.devices, let channel = shared.options.deviceChannel else {
          throw ChannelError.operationUnsupported
        }
        try pipeline.addHandler(
          DeviceHandler(
            shared, loopState, devices, longestMessage: channel.maximumMessageLength, number: number))
      case .localPush, .localPushControl:
        guard let center = shared.localPush, let options = shared.options.localPush else {
          throw ChannelError.operationUnsupported
        }
        let channel: LocalPushChannel =
          if case .localPush(let network) = service { .notification(network: network) } else { .control }
        try pipeline.addHandler(
          LocalPushHandler(shared, loopState, center, options, channel, number: number))
      case .http2, .channels:
        guard var http2 = shared.options.http2 else { throw ChannelError.operationUnsupported }
        if service == .channels { http2.purpose = .channels }
        try pipeline.addHandler(HTTP2Handler(shared, loopState, http2, number: number))
      }
    } catch {
      shared.ended()
      throw error
    }
  }

  // MARK: while it runs

  /// The current ledger, without the list of connections.
  public func snapshot() async -> Ledger { shared.ledger(await tally()) }

  func tally() async -> Tally {
    var tally = Tally()
    for (loop, loopState) in loopState {
      if let part = try? await loop.submit({ loopState.value.fullTally }).get() { tally += part }
    }
    return tally
  }

  /// Connections that are open now.
  public func openConnections() async -> (gateway: Int, feedback: Int) {
    var (gateway, feedback) = (0, 0)
    for (loop, loopState) in loopState {
      guard let part = try? await loop.submit({ loopState.value.tally }).get() else { continue }
      gateway += part.open
      feedback += part.feedbackOpen
    }
    return (gateway, feedback)
  }

  /// Problems with the feedback list since the last call.
  public func takeFailures() -> [String] { shared.takeFailures() }

  /// Shuts down all connections to the gateway as for maintenance (status 10); new ones are accepted.
  public func shutDownConnections() {
    shutDownConnections(forGood: false)
  }

  private func shutDownConnections(forGood: Bool) {
    // A loop may run this late: later connections are excluded.
    let last = forGood ? UInt64.max : shared.lastNumber
    for (loop, loopState) in loopState {
      loop.execute { loopState.value.shutDownConnections(upTo: last, forGood: forGood) }
    }
  }

  /// All offline devices come online, get their notifications, and go offline again.
  public func bringDevicesOnline() {
    shared.store.bringOnline(now: shared.milliseconds)
  }

  // MARK: the end

  /// Shuts down gracefully, and returns the final ledger.
  ///
  /// New connections are refused. Connections that received something get a shutdown response (status 10), and further
  /// bytes from their peers are counted until these close, for at most `options.linger`. A second call returns the same
  /// ledger.
  public func stop() async -> Ledger {
    let task = ending.withLock { ending in
      // A separate task: it completes even if the caller is cancelled.
      let task = ending ?? Task { await end() }
      ending = task
      return task
    }
    return await task.value
  }

  private func end() async -> Ledger {
    for channel in channels { try? await channel.close() }
    await endLocalPush()
    shutDownConnections(forGood: true)
    await settle(for: shared.options.linger)
    for (loop, loopState) in loopState { try? await loop.submit { loopState.value.closeConnections() }.get() }
    // Connections end in the next ticks of the loop, but their failures wait for the disk.
    await settle(for: .seconds(30))
    await shared.settle()
    await shared.feedbackList.flush()
    shared.store.close(now: shared.milliseconds)
    shared.devices?.close(now: shared.milliseconds)
    let ledger = shared.closedLedger(await tally())
    for sweep in sweeps { sweep.cancel() }
    try? await group.shutdownGracefully()
    return ledger
  }

  /// Waits until nothing more happens.
  private func settle(for limit: Duration) async {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline, await !isSettled() { try? await Task.sleep(for: .milliseconds(5)) }
  }

  private func isSettled() async -> Bool {
    for (loop, loopState) in loopState {
      if (try? await loop.submit { loopState.value.isSettled }.get()) != true { return false }
    }
    return true
  }
}

/// The service that a port is for.
enum Listener: Equatable {
  case gateway, feedback, http2, channels, devices
  /// The notification channel on the network of this place.
  case localPush(network: Int)
  case localPushControl

  /// The name in messages.
  var name: String {
    switch self {
    case .gateway: "gateway"
    case .feedback: "feedback"
    case .http2: "http2"
    case .channels: "channels"
    case .devices: "devices"
    case .localPush: "local push"
    case .localPushControl: "local push control"
    }
  }

  var isLocalPush: Bool {
    switch self {
    case .localPush, .localPushControl: true
    case .gateway, .feedback, .http2, .channels, .devices: false
    }
  }
  var speaksHTTP2: Bool { self == .http2 || self == .channels }
  var isBinary: Bool { self == .gateway || self == .feedback }
  /// Whether faults of the gateway's connections concern it.
  var isDisturbed: Bool { self != .feedback && self != .devices && !isLocalPush }

  /// `nil`: plain TCP.
  func tls(_ options: SimulatorOptions) -> TLSContext? {
    switch self {
    case .gateway, .feedback: options.tls
    case .http2, .channels: options.http2?.tls
    case .devices: options.deviceChannel?.tls
    case .localPush, .localPushControl: options.localPush?.tls
    }
  }
}

/// Why a simulator cannot run.
public struct SimulatorError: Error, Sendable, CustomStringConvertible {
  public let description: String

  init(_ description: String) { self.description = description }

  /// The failure in the words of TLS, the system or the resolver, without the names of functions.
  static func reason(_ error: any Error) -> String {
    switch error {
    case let error as IOError: SystemError.text(error.errnoCode)
    case let error as SocketAddressError.UnknownHost: error.errorDescription
    default: "\(error)"
    }
  }
}
