import APNSProtocol
import Bytes
import NIOCore
import NIOEmbedded
import TestSupport

@testable import LoadTest

/// One connection between a load's engine and a gateway, without sockets: bytes take time, come in other pieces than they
/// were written in, and can be lost with the connection. On the other side a `GatewaySession` decides.
final class SimulatedLink {
  /// What the gateway does that is not the protocol's.
  struct Manners {
    /// One in so many notifications is refused; 0: none.
    var rejectsOneIn = 0
    /// A refusal ends the connection without a response.
    var isSilent = false
    var shutsDownAfter = Int.max
    /// Responses name identifier 0, whichever they mean.
    var namesNothing = false
    /// One in so many steps the connection breaks, with all that is on its way; 0: none.
    var breaksOneIn = 0
    /// Most bytes that the gateway reads in a step; 0 for a while is a gateway that has stopped reading.
    var readsAtMost = 1 << 16
    /// Bytes that the sender's socket takes before it is full.
    var room = 1 << 15
  }

  let channel: EmbeddedChannel
  private let manners: Manners
  private let socket: SenderSocket
  private var session: GatewaySession
  private var unread: [UInt8] = []
  /// What was read of a frame that is not whole yet.
  private var frame: [UInt8] = []
  private var answer: [UInt8]?
  private var isOver = false
  /// Identifiers that this gateway has accepted or refused.
  private(set) var accepted: [UInt32] = []
  private(set) var refused: [UInt32] = []
  var received: Int { session.received }
  /// Something has arrived that the sender has not read.
  var hasInput: Bool { answer.map { !$0.isEmpty } ?? false }

  init(_ manners: Manners, loop: EmbeddedEventLoop) throws {
    self.manners = manners
    socket = SenderSocket(room: manners.room)
    channel = EmbeddedChannel(loop: loop)
    try channel.pipeline.syncOperations.addHandler(socket)
    session = GatewaySession()
    session.shutdownAfter = manners.shutsDownAfter
  }

  /// A moment passes: some bytes arrive, some of an answer is delivered. Returns `false` when both sides are done.
  func step(_ generator: inout SeededGenerator) throws -> Bool {
    if manners.breaksOneIn > 0, channel.isActive, generator.happens(oneIn: manners.breaksOneIn) {
      // What was on its way is lost, on both ways.
      (unread, isOver) = ([], true)
      _ = take()
      channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
      return false
    }
    unread += take()
    receive(&generator)
    try deliver(&generator)
    socket.drain()
    return channel.isActive || !unread.isEmpty
  }

  private func take() -> [UInt8] {
    var bytes: [UInt8] = []
    while let buffer = try? channel.readOutbound(as: ByteBuffer.self) { bytes += Array(buffer: buffer) }
    return bytes
  }

  private func receive(_ generator: inout SeededGenerator) {
    let length = min(unread.count, generator.number(0...manners.readsAtMost))
    guard length > 0 else { return }
    let wasOpen = session.ending == nil
    frame += unread[..<length]
    unread.removeFirst(length)
    let consumed = session.receive(frame.rawBytes) { notification in
      let identifier = notification.layout.identifier ?? 0
      if SyntheticToken.isInvalid(notification.token)
        || manners.rejectsOneIn > 0 && generator.happens(oneIn: manners.rejectsOneIn)
      {
        return .invalidToken
      }
      accepted.append(identifier)
      return nil
    }
    frame.removeFirst(consumed)
    guard wasOpen, let ending = session.ending else { return }
    if ending.cause != .shutdown, let identifier = ending.identifier, identifier != ProviderConnection.markerIdentifier
    {
      refused.append(identifier)
    }
    var bytes = ByteWriter(capacity: ErrorResponse.length)
    if !manners.isSilent, let response = ending.response {
      let identifier = manners.namesNothing ? 0 : response.identifier
      ErrorResponse(status: response.status, identifier: identifier).encode(into: &bytes)
    }
    answer = Array(copying: bytes.bytes)
  }

  private func deliver(_ generator: inout SeededGenerator) throws {
    guard channel.isActive, !isOver else { return }
    if var rest = answer {
      let length = generator.number(0...rest.count)
      if length > 0 {
        let piece = ByteBuffer(bytes: rest[..<length])
        rest.removeFirst(length)
        answer = rest
        try channel.writeInbound(piece)
      }
      // Its end comes with the last byte, or a while later.
      guard rest.isEmpty, generator.happens(oneIn: 2) else { return }
    } else if !socket.isOutputClosed || !unread.isEmpty {
      return
    }
    isOver = true
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }
}

/// A sender's socket: it is full when it holds more than its room, and empties with time.
///
/// As a channel whose watermark is one byte it is not writable from each write on, and again as soon as the socket has
/// taken that, which it tells within the flush.
private final class SenderSocket: ChannelOutboundHandler {
  typealias OutboundIn = ByteBuffer

  private let room: Int
  private var held = 0
  private var queued = 0
  private var isFlushing = false
  private var isFlushWanted = false
  private var context: ChannelHandlerContext?
  private(set) var isOutputClosed = false

  init(room: Int) { self.room = room }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    queued += unwrapOutboundIn(data).readableBytes
    context.write(data, promise: promise)
    setWritable(false)
  }

  func flush(context: ChannelHandlerContext) {
    isFlushWanted = true
    guard !isFlushing else { return }
    isFlushing = true
    defer { isFlushing = false }
    while isFlushWanted, held <= room {
      isFlushWanted = false
      held += queued
      queued = 0
      context.flush()
      setWritable(true)
    }
  }

  private func setWritable(_ isWritable: Bool) {
    guard let context, let channel = context.channel as? EmbeddedChannel, channel.isActive,
      channel.isWritable != isWritable
    else { return }
    channel.isWritable = isWritable
    channel.pipeline.fireChannelWritabilityChanged()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    isOutputClosed = true
    promise?.succeed(())
  }

  func drain() {
    held = 0
    if isFlushWanted, let context { flush(context: context) }
  }
}
