import BinaryProtocol
import Bytes
import Foundation
import Measurement
import NIOCore
import NIOEmbedded
import PushModel
import TestSupport

@testable import LoadTest

/// One connection between a load's engine and a gateway, without sockets: bytes take time, come in other pieces than they
/// were written in, and can be lost with the connection. On the other side a `GatewaySession` decides.
final class SimulatedLink {
  /// What the gateway does that is not the protocol's.
  struct GatewayBehavior {
    enum Ending { case response, fin, rst, nothing }
    enum Identifier { case right, wrong, zero, zeroWhenOversize }

    /// One in so many notifications is refused; 0: none.
    var rejectsOneIn = 0
    var status = ErrorResponse.Status.invalidToken
    /// How it ends a connection after a refusal: with a response, or without one.
    var ending = Ending.response
    /// What a response names.
    var identifier = Identifier.right
    /// It is no gateway, and says this when something has come, and no more.
    var page: [UInt8]?
    /// Nanoseconds between a refusal and its response.
    var answerDelay: ClosedRange<Int> = 0...0
    var shutsDownAfter = Int.max
    /// It shuts a connection down after so many nanoseconds.
    var lifetime = Int64.max
    /// One in so many connections is closed as soon as it is open; 0: none.
    var closesOneIn = 0
    /// One in so many steps the connection breaks, with all that is on its way; 0: none.
    var breaksOneIn = 0
    /// Most bytes that the gateway reads in a step.
    var readsAtMost = 1 << 16
    /// It reads so much in a second at most.
    var bytesPerSecond = Int.max
    /// Bytes that the gateway's socket holds while it is not read.
    var receiveBuffer = Int.max
    /// Bytes that the sender's socket takes before it is full.
    var room = 1 << 15
  }

  let channel: EmbeddedChannel
  private let behavior: GatewayBehavior
  private let socket: SenderSocket
  private let openedAt: Int64
  private var session: GatewaySession
  private var unread: [UInt8] = []
  /// What was read of a frame that is not whole yet.
  private var frame: [UInt8] = []
  /// What is left of the answer, which is on its way from some time on.
  private var answer: (bytes: [UInt8], from: Int64)?
  private var isOver = false
  /// Identifiers that this gateway has accepted or refused.
  private(set) var accepted: [UInt32] = []
  private(set) var refused: [UInt32] = []
  /// Identifiers of all notifications that it has read, with their times.
  private(set) var arrivals: [(identifier: UInt32, time: Int64)] = []
  private(set) var books = Ledger.Gateway()
  private var now: Int64
  /// Whether it refuses anything beside what is bad.
  var isRefusing = true
  /// It reads nothing of it.
  var isServed = true

  /// Something has arrived that the sender has not read.
  var hasInput: Bool { answer.map { !$0.bytes.isEmpty && $0.from <= now } ?? false }

  init(_ behavior: GatewayBehavior, loop: EmbeddedEventLoop, at time: Int64 = 0) throws {
    self.behavior = behavior
    (openedAt, now) = (time, time)
    socket = SenderSocket(room: behavior.room)
    channel = EmbeddedChannel(loop: loop)
    try channel.pipeline.syncOperations.addHandler(socket)
    session = GatewaySession()
    session.shutdownAfter = behavior.shutsDownAfter
    books.connections = 1
  }

  /// The gateway closes it without having read anything.
  func closeAtOnce() {
    isOver = true
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }

  /// What is on its way is lost, on both ways.
  func breakOff() {
    (unread, answer, isOver) = ([], nil, true)
    _ = take()
    channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "reset"))
  }

  /// A moment passes: some bytes arrive, some of an answer is delivered. Returns `false` when both sides are done.
  func step(_ generator: inout SeededGenerator, at time: Int64, isReading: Bool) throws -> Bool {
    let passed = time - now
    now = time
    if behavior.breaksOneIn > 0, channel.isActive, generator.happens(oneIn: behavior.breaksOneIn) {
      breakOff()
      return false
    }
    let hasRoom = unread.count < behavior.receiveBuffer
    if hasRoom { unread += take() }
    if isReading, isServed, !unread.isEmpty {
      let most = min(Double(behavior.readsAtMost), Double(behavior.bytesPerSecond) * Double(passed) / 1e9)
      receive(unread.prefix(generator.number(0...Int(most.rounded(.up)))), &generator)
    }
    if now - openedAt >= behavior.lifetime, session.ending == nil, !isOver {
      session.shutDown()
      conclude(&generator)
    }
    try deliver(&generator)
    if hasRoom { socket.drain() }
    return channel.isActive || !unread.isEmpty
  }

  private func take() -> [UInt8] {
    var bytes: [UInt8] = []
    while let buffer = try? channel.readOutbound(as: ByteBuffer.self) { bytes += Array(buffer: buffer) }
    return bytes
  }

  private func receive(_ bytes: ArraySlice<UInt8>, _ generator: inout SeededGenerator) {
    guard !bytes.isEmpty else { return }
    if let page = behavior.page {
      unread.removeFirst(bytes.count)
      if answer == nil { answer = (page, now + Int64(generator.number(behavior.answerDelay))) }
      return
    }
    let wasOpen = session.ending == nil
    frame += bytes
    unread.removeFirst(bytes.count)
    let consumed = session.receive(frame.rawBytes) { notification in
      let identifier = notification.fields.identifier ?? 0
      arrivals.append((identifier, now))
      if DeviceToken.isInvalid(notification.token)
        || isRefusing && behavior.rejectsOneIn > 0 && generator.happens(oneIn: behavior.rejectsOneIn)
      {
        return .status(behavior.status)
      }
      accepted.append(identifier)
      return nil
    }
    frame.removeFirst(consumed)
    (books.received, books.accepted, books.discarded) = (session.received, session.accepted, session.discarded)
    if wasOpen, session.ending != nil { conclude(&generator) }
  }

  /// The session has ended: what is to be said of that.
  private func conclude(_ generator: inout SeededGenerator) {
    guard let ending = session.ending else { return }
    if ending.cause != .shutdown {
      books.rejected["\(ending.status.rawValue)", default: 0] += 1
      if let identifier = ending.identifier, identifier != BinarySending.markerIdentifier {
        refused.append(identifier)
      }
    }
    var bytes = ByteWriter(capacity: ErrorResponse.length)
    if behavior.ending == .response, let response = ending.response {
      let identifier =
        switch behavior.identifier {
        case .right: response.identifier
        case .wrong: response.identifier &+ UInt32(generator.number(1...1_000))
        case .zero: 0 as UInt32
        case .zeroWhenOversize: response.status == .invalidPayloadSize ? 0 : response.identifier
        }
      ErrorResponse(status: response.status, identifier: identifier).encode(into: &bytes)
    }
    answer = (Array(copying: bytes.bytes), now + Int64(generator.number(behavior.answerDelay)))
  }

  private func deliver(_ generator: inout SeededGenerator) throws {
    guard channel.isActive, !isOver else { return }
    if var rest = answer {
      guard rest.from <= now, behavior.ending != .nothing else { return }
      if behavior.ending == .rst { return breakOff() }
      let length = generator.number(0...rest.bytes.count)
      if length > 0 {
        let piece = ByteBuffer(bytes: rest.bytes[..<length])
        rest.bytes.removeFirst(length)
        answer = rest
        try channel.writeInbound(piece)
      }
      // Its end comes with the last byte, or a while later.
      guard rest.bytes.isEmpty, generator.happens(oneIn: 2) else { return }
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
