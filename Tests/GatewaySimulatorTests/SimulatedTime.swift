import Bytes
import Foundation
import Glibc
import Measurement
import NIOCore
import NIOEmbedded
import TLSTransport
import Testing

@testable import GatewaySimulator

/// A gateway without sockets or clock: its time is a number that a test moves on, and nothing else does.
///
/// Connections have the pipeline that the simulator gives to its sockets. All calls are made on one thread.
final class SimulatedGateway {
  /// The time of day at which it begins: 2015-09-16T01:02:03Z.
  static let beginning: Int64 = 1_442_365_323_000_000_000

  let shared: SimulatorContext
  let books: EventLoopState
  fileprivate let loop: EmbeddedEventLoop
  private let usesTLS: Bool
  private var sweeps: RepeatedTask
  private var clients: [SimulatedClient] = []
  private var hasEnded = false

  init(tls: Bool = false, _ configure: (inout SimulatorOptions) throws -> Void = { _ in }) throws {
    var options = SimulatorOptions()
    if tls { options.tls = try Credentials.shared.get().server }
    try configure(&options)
    usesTLS = tls
    let loop = EmbeddedEventLoop()
    self.loop = loop
    shared = SimulatorContext(
      options, feedbackList: try FeedbackList(path: nil), log: nil,
      wallClock: WallClock { Self.beginning + Int64(loop.now.uptimeNanoseconds) })
    books = EventLoopState(loop, shared)
    sweeps = books.startSweeping()
  }

  deinit { shutDown() }

  /// Since the beginning.
  var now: Duration { loop.elapsed }
  var tally: Tally { books.tally }

  /// A new connection; with TLS its handshake takes no time.
  ///
  /// - Parameters:
  ///   - raw: its bytes are those of the socket, also where TLS is expected.
  ///   - service: the service that it connects to.
  func connect(
    topic: String = Simulation.topic, raw: Bool = false, to service: Listener = .gateway
  ) throws -> SimulatedClient {
    let tls = usesTLS && !raw ? try Credentials.shared.get().clients[topic] : nil
    let client = try SimulatedClient(self, service, tls: tls)
    clients.append(client)
    loop.run()
    return client
  }

  func advance(by duration: Duration) { loop.advanceTime(by: .nanoseconds(duration.nanoseconds)) }

  /// Goes so far that looking at the deadlines four times a second would take too long: once, at the end.
  func leap(by duration: Duration) {
    sweeps.cancel()
    advance(by: duration)
    books.sweep()
    loop.run()
    sweeps = books.startSweeping()
  }

  /// Closes what is open, and the books, which have to balance.
  func end() -> Ledger {
    shutDown()
    let ledger = shared.closedLedger(books.tally)
    expectBalance(ledger)
    return ledger
  }

  private func shutDown() {
    guard !hasEnded else { return }
    hasEnded = true
    books.closeConnections()
    loop.run()
    for client in clients { client.leave() }
    loop.run()
    sweeps.cancel()
    try? loop.syncShutdownGracefully()
  }
}

/// A provider's side of a connection to a simulated gateway.
final class SimulatedClient {
  /// What came in one piece, and when.
  struct Arrival: Equatable {
    var time: Duration
    var bytes: [UInt8]
  }

  private let loop: EmbeddedEventLoop
  private let channel: EmbeddedChannel
  private let socket: SimulatedSocket
  private let gatewaySocket: SimulatedSocket
  private let recorder = Recorder()

  fileprivate init(_ gateway: SimulatedGateway, _ service: Listener, tls: TLSContext?) throws {
    loop = gateway.loop
    let gatewayChannel = EmbeddedChannel(loop: loop)
    gatewaySocket = SimulatedSocket(readLength: ReadThrottle.readLength(gateway.shared.options.behavior.reading))
    socket = SimulatedSocket(readLength: .max)
    socket.peer = gatewaySocket
    gatewaySocket.peer = socket
    try gatewayChannel.pipeline.syncOperations.addHandler(gatewaySocket)
    channel = EmbeddedChannel(loop: loop)
    try channel.pipeline.syncOperations.addHandler(socket)
    if let tls {
      let handler = try TLSHandler(client: tls, serverName: "localhost", handshakeTimeout: nil)
      try channel.pipeline.syncOperations.addHandler(handler)
    }
    try channel.pipeline.syncOperations.addHandler(recorder)
    do {
      try Simulator.accept(gatewayChannel, service, gateway.shared, gateway.books)
      try gatewayChannel.activate()
    } catch {
      gatewayChannel.close(promise: nil)
    }
    try channel.activate()
  }

  // MARK: what it does

  func send(_ bytes: [UInt8]) {
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    loop.run()
  }

  func finishWriting() {
    channel.close(mode: .output, promise: nil)
    loop.run()
  }

  func close() {
    leave()
    loop.run()
  }

  fileprivate func leave() { if channel.isActive { channel.close(promise: nil) } }

  /// Resets the connection. The gateway finds out when it writes next.
  func breakUnseen() { gatewaySocket.isBroken = true }

  // MARK: what it sees

  var arrivals: [Arrival] { recorder.arrivals }
  var received: [UInt8] { recorder.arrivals.flatMap(\.bytes) }
  /// When the gateway ended its half.
  var endedAt: Duration? { recorder.endedAt }
  /// When the gateway closed the connection.
  var closedAt: Duration? { gatewaySocket.closedAt }
  var isOpen: Bool { closedAt == nil }

  private final class Recorder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    var arrivals: [Arrival] = []
    var endedAt: Duration?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      arrivals.append(Arrival(time: context.eventLoop.elapsed, bytes: Array(buffer: unwrapInboundIn(data))))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .some(.inputClosed) = event as? ChannelEvent { endedAt = endedAt ?? context.eventLoop.elapsed }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}

/// A socket and its kernel's buffers, at the head of a pipeline: it is read when its channel asks for it, a piece at a
/// time, and what is written arrives at its peer at once.
final class SimulatedSocket: ChannelInboundHandler, ChannelOutboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer

  fileprivate weak var peer: SimulatedSocket?
  private let readLength: Int
  private var context: ChannelHandlerContext?
  private var unread = ByteBuffer()
  /// The peer's FIN has come; it is told behind what is unread.
  private var hasPeerEnded = false
  private var isPeerEndTold = false
  private var isReadWanted = false
  private var isDeliveryScheduled = false
  private var unflushed: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)] = []
  private var held: [EventLoopPromise<Void>] = []
  /// The peer has reset the connection, which the next write finds out.
  fileprivate(set) var isBroken = false
  /// Writes are not done before `release()`: the peer does not read.
  var holdsWrites = false
  /// Bytes that were flushed.
  private(set) var sent = 0
  private(set) var outputEndedAt: Duration?
  private(set) var closedAt: Duration?

  init(readLength: Int) { self.readLength = readLength }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  // MARK: in

  func read(context: ChannelHandlerContext) {
    isReadWanted = true
    scheduleDelivery()
  }

  private func arrive(_ bytes: ByteBuffer) {
    unread.writeImmutableBuffer(bytes)
    scheduleDelivery()
  }

  private func arriveEnd() {
    hasPeerEnded = true
    scheduleDelivery()
  }

  private func scheduleDelivery() {
    guard let context, isReadWanted, !isDeliveryScheduled, unread.readableBytes > 0 || hasPeerEnded && !isPeerEndTold
    else { return }
    isDeliveryScheduled = true
    context.eventLoop.assumeIsolated().execute {
      self.isDeliveryScheduled = false
      self.deliver()
    }
  }

  /// One read, and the next one if that is asked for.
  private func deliver() {
    // As NIO does, also with a read that is wanted already.
    guard let context, context.channel.isActive, isReadWanted, isAutoRead else { return }
    if let piece = unread.readSlice(length: min(readLength, unread.readableBytes)), piece.readableBytes > 0 {
      isReadWanted = false
      context.fireChannelRead(wrapInboundOut(piece))
      context.fireChannelReadComplete()
      if context.channel.isActive, isAutoRead { context.channel.pipeline.read() }
    } else {
      isPeerEndTold = true
      context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
  }

  private var isAutoRead: Bool {
    let options = (context?.channel as? EmbeddedChannel)?.options ?? []
    return options.first { $0.option is ChannelOptions.Types.AutoReadOption }?.value as? Bool ?? true
  }

  // MARK: out

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    unflushed.append((unwrapOutboundIn(data), promise))
  }

  func flush(context: ChannelHandlerContext) {
    let writes = unflushed
    unflushed = []
    for (bytes, promise) in writes {
      if isBroken || outputEndedAt != nil {
        promise?.fail(IOError(errnoCode: EPIPE, reason: "write"))
        continue
      }
      sent += bytes.readableBytes
      peer?.arrive(bytes)
      if let promise { held.append(promise) }
    }
    if !holdsWrites { release() }
    // As NIO does: within the write.
    if isBroken, !writes.isEmpty { context.close(promise: nil) }
  }

  func release() {
    let done = held
    held = []
    for promise in done { promise.succeed(()) }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode != .input, outputEndedAt == nil {
      outputEndedAt = context.eventLoop.elapsed
      peer?.arriveEnd()
    }
    if mode == .output { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    closedAt = context.eventLoop.elapsed
    for promise in held { promise.fail(ChannelError.ioOnClosedChannel) }
    held = []
    context.fireChannelInactive()
  }
}

extension EventLoop {
  /// A simulated loop's time, which begins at 0.
  fileprivate var elapsed: Duration { .nanoseconds(Int64(now.uptimeNanoseconds)) }
}

extension EmbeddedChannel {
  /// Becomes active and reads, as an accepted connection does.
  fileprivate func activate() throws {
    try connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 50_000)).wait()
    pipeline.read()
  }
}

/// What simulated connections show each other; made once for all of them.
private struct Credentials {
  let server: TLSContext
  let clients: [String: TLSContext]

  static let shared = Result { try Credentials() }

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let directory = IdentityDirectory(folder.path)
    let topics = [Simulation.topic, Simulation.otherTopic]
    _ = try directory.issue(.init(topics: topics))
    var configuration = TLSConfiguration.server(identity: try directory.gateway())
    configuration.authorityFile = directory.authorityFile
    server = try TLSContext(configuration)
    var clients: [String: TLSContext] = [:]
    for topic in topics {
      var configuration = TLSConfiguration.client(identity: try directory.provider(topic: topic))
      configuration.authorityFile = directory.authorityFile
      clients[topic] = try TLSContext(configuration)
    }
    self.clients = clients
  }
}
