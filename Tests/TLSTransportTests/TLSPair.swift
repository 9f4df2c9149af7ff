import NIOCore
import NIOEmbedded

@testable import TLSTransport

/// A client and a server, each a channel with a `TLSHandler`, joined in memory.
///
/// Nothing moves from one to the other before `pump()`.
final class TLSPair {
  /// How what one side writes reaches the other.
  enum Delivery {
    case asWritten, joined
    case pieces(Int)
  }

  let loop = EmbeddedEventLoop()
  let client: Side
  let server: Side
  var delivery = Delivery.asWritten
  /// Sees what goes from one to the other, in its order.
  var onCarry: (_ isClient: Bool, _ bytes: ByteBuffer) -> Void = { _, _ in }

  init(_ client: TLSHandler, _ server: TLSHandler) throws {
    self.client = try Side(client, loop)
    self.server = try Side(server, loop)
  }

  /// A pair of these settings. `serverName` is sent, and verified if `verifiesName`.
  convenience init(
    _ client: TLSContext, _ server: TLSContext, serverName: String? = "localhost", verifiesName: Bool = true,
    sessions: SessionCache? = nil, timeout: TimeAmount? = nil
  ) throws {
    try self.init(
      TLSHandler(
        client: client, serverName: serverName, verifiesName: verifiesName, sessions: sessions,
        handshakeTimeout: timeout), TLSHandler(server: server, handshakeTimeout: timeout))
  }

  deinit {
    for side in [client, server] { side.finish() }
    loop.run()
  }

  /// Makes both active and lets them talk until nobody has anything to say.
  func connect() throws {
    try server.activate()
    try client.activate()
    pump()
  }

  func pump() {
    var hasMoved = true
    while hasMoved {
      hasMoved = carry(from: client, to: server)
      if carry(from: server, to: client) { hasMoved = true }
      loop.run()
    }
  }

  /// Delivers what one side has written, and its end.
  @discardableResult
  func carry(from: Side, to: Side) -> Bool {
    var hasMoved = false
    let buffers = from.wire.takeSent()
    if !buffers.isEmpty {
      hasMoved = true
      for buffer in buffers { onCarry(from === client, buffer) }
      to.deliver(arranged(buffers))
    }
    if from.wire.isEnded, !from.isEndDelivered {
      from.isEndDelivered = true
      hasMoved = true
      to.deliverEnd()
    }
    return hasMoved
  }

  private func arranged(_ buffers: [ByteBuffer]) -> [ByteBuffer] {
    var joined = ByteBuffer()
    for buffer in buffers { joined.writeImmutableBuffer(buffer) }
    switch delivery {
    case .asWritten: return buffers
    case .joined: return [joined]
    case .pieces(let length):
      var pieces: [ByteBuffer] = []
      while let piece = joined.readSlice(length: min(length, joined.readableBytes)), piece.readableBytes > 0 {
        pieces.append(piece)
      }
      return pieces
    }
  }

  final class Side {
    let channel: EmbeddedChannel
    let wire = Wire()
    let observer = Observer()
    fileprivate var isEndDelivered = false
    weak var handler: TLSHandler?

    init(_ handler: TLSHandler, _ loop: EmbeddedEventLoop) throws {
      channel = EmbeddedChannel(loop: loop)
      self.handler = handler
      try channel.pipeline.syncOperations.addHandlers([wire, handler, observer])
    }

    func activate() throws { try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait() }

    func deliver(_ buffers: [ByteBuffer]) {
      for buffer in buffers where channel.isActive {
        channel.pipeline.fireChannelRead(buffer)
        channel.pipeline.fireChannelReadComplete()
      }
    }

    func deliver(_ bytes: [UInt8]) { deliver([ByteBuffer(bytes: bytes)]) }

    /// The peer's FIN, on a channel that allows half closure.
    func deliverEnd() {
      if channel.isActive { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    }

    @discardableResult
    func write(_ bytes: [UInt8]) -> EventLoopFuture<Void> { channel.write(ByteBuffer(bytes: bytes)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> EventLoopFuture<Void> { channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    func finish() {
      if channel.isActive { _ = try? channel.finish(acceptAlreadyClosed: true) }
      channel.embeddedEventLoop.run()
    }
  }
}

/// The head of a pipeline: keeps what would go to the socket.
final class Wire: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// What was written and not taken, a buffer for each write that was flushed.
  private(set) var sent: [ByteBuffer] = []
  private var unflushed: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)] = []
  private var held: [EventLoopPromise<Void>] = []
  private(set) var closes: [CloseMode] = []
  private(set) var reads = 0
  /// Promises of writes wait for `releasePromises()`, as with a peer that does not read.
  var holdsPromises = false
  /// Called in each flush that sends something.
  var onFlush: () -> Void = {}

  var isEnded: Bool { closes.contains(.output) || closes.contains(.all) }

  func takeSent() -> [ByteBuffer] {
    defer { sent = [] }
    return sent
  }

  func releasePromises() {
    let promises = held
    held = []
    for promise in promises { promise.succeed(()) }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    unflushed.append((unwrapOutboundIn(data), promise))
  }

  func flush(context: ChannelHandlerContext) {
    let writes = unflushed
    unflushed = []
    for write in writes where write.bytes.readableBytes > 0 { sent.append(write.bytes) }
    if !writes.isEmpty { onFlush() }
    for case let promise? in writes.map(\.promise) {
      if holdsPromises { held.append(promise) } else { promise.succeed(()) }
    }
  }

  func read(context: ChannelHandlerContext) {
    reads += 1
    context.read()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    closes.append(mode)
    if mode == .all { context.close(promise: promise) } else { promise?.succeed(()) }
  }
}

/// The end of a pipeline: keeps what came, in order.
final class Observer: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  enum Event: Equatable {
    case active, inactive, inputClosed
    case read(Int)
    case info(TLSConnectionInfo)
    case error(TLSError)
    case otherError(String)
  }

  private(set) var events: [Event] = []
  private(set) var received: [UInt8] = []
  var onInfo: (ChannelHandlerContext) -> Void = { _ in }
  var onRead: (ChannelHandlerContext, ByteBuffer) -> Void = { _, _ in }
  var onInputClosed: (ChannelHandlerContext) -> Void = { _ in }
  var onError: (ChannelHandlerContext) -> Void = { _ in }

  var info: TLSConnectionInfo? {
    for case .info(let info) in events { return info }
    return nil
  }

  var errors: [TLSError] { events.compactMap { if case .error(let error) = $0 { error } else { nil } } }

  /// All error texts.
  var errorText: String { errors.map(\.message).joined(separator: " | ") }

  func channelActive(context: ChannelHandlerContext) { events.append(.active) }

  func channelInactive(context: ChannelHandlerContext) { events.append(.inactive) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    events.append(.read(buffer.readableBytes))
    received += Array(buffer.readableBytesView)
    onRead(context, buffer)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let info = event as? TLSConnectionInfo {
      events.append(.info(info))
      onInfo(context)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      events.append(.inputClosed)
      onInputClosed(context)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    events.append((error as? TLSError).map { .error($0) } ?? .otherError("\(error)"))
    onError(context)
  }
}

/// What became of a future on an embedded loop.
final class Outcome<T: Sendable> {
  private(set) var result: Result<T, any Error>?

  init(_ future: EventLoopFuture<T>) {
    future.assumeIsolated().whenComplete { self.result = $0 }
  }

  var isDone: Bool { result != nil }

  var error: (any Error)? {
    if case .failure(let error)? = result { return error }
    return nil
  }
}
