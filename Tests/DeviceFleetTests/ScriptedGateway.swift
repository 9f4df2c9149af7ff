import Bytes
import DeviceProtocol
import Measurement
import NIOCore
import NIOPosix
import Synchronization
import TLSTransport
import Testing

@testable import DeviceFleet

/// A gateway over real sockets that registers devices, sends each a few notifications, and keeps what is not acknowledged.
final class ScriptedGateway: Sendable {
  struct Script: Sendable {
    /// Notifications for each app, the first time that a device is online.
    var notifications = 3
    /// Further ones for each app whenever its device comes back, and how long ago the gateway has read them.
    var waiting = 0
    var age = Duration.zero
    var seed: UInt64 = 1
    /// Answers to registrations are refusals for this reason.
    var refusal: DeviceMessage.Refusal?
    /// Connections that are closed as soon as they are there.
    var closes = 0
    /// Whether each notification is sent twice with the same sequence.
    var repeatsSequences = false
    /// Bytes of a message that are sent behind the first notifications, and that no others follow.
    var unfinished = 0
  }

  struct Books: Sendable {
    var connections = 0
    var registered: [String] = []
    var online = 0
    var offline = 0
    var lowPower = 0
    /// Unacknowledged sequences by device's token and topic, and sequences that were acknowledged.
    var sent: [String: UInt64] = [:]
    var acknowledged: [String: UInt64] = [:]
    var acknowledgements = 0
  }

  let script: Script
  let books = Mutex(Books())
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let channel: any Channel
  private let open: Mutex<[any Channel]>
  let port: Int

  init(_ script: Script = Script(), tls: TLSContext? = nil) async throws {
    self.script = script
    let box = Mutex<[any Channel]>([])
    open = box
    let reference = Reference()
    channel = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1_024)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls { try channel.pipeline.syncOperations.addHandler(TLSHandler(server: tls)) }
          try channel.pipeline.syncOperations.addHandler(GatewayEnd(reference))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = try #require(channel.localAddress?.port)
    reference.gateway.withLock { $0 = self }
  }

  /// Ends when its books are as they should become, at most two minutes later: what its devices wrote last may still be
  /// under way when they have ended.
  func end(after isReady: (Books) -> Bool = { _ in true }) async throws {
    for _ in 0..<12_000 where !books.withLock({ isReady($0) }) { try await Task.sleep(for: .milliseconds(10)) }
    try await channel.close()
    try await group.shutdownGracefully()
  }

  /// Closes all connections that are open.
  func closeConnections() {
    for channel in open.withLock({ $0 }) { channel.close(promise: nil) }
  }

  fileprivate func add(_ channel: any Channel) { open.withLock { $0.append(channel) } }

  fileprivate final class Reference: Sendable {
    let gateway = Mutex<ScriptedGateway?>(nil)
  }
}

/// One connection of the gateway.
private final class GatewayEnd: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let reference: ScriptedGateway.Reference
  private var reader = DeviceMessageReader()
  private var framing = MessageFraming(order: .bigEndian)
  private var pending: [UInt8] = []

  init(_ reference: ScriptedGateway.Reference) { self.reference = reference }

  func channelActive(context: ChannelHandlerContext) {
    guard let gateway = reference.gateway.withLock({ $0 }) else { return }
    gateway.add(context.channel)
    let number = gateway.books.withLock { books in
      books.connections += 1
      return books.connections
    }
    if number <= gateway.script.closes { context.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    pending += bytes.readBytes(length: bytes.readableBytes) ?? []
    while let body = try? framing.next(pending.rawBytes) {
      let message = try? reader.read(pending.rawBytes.extracting(body))
      pending.removeFirst(body.upperBound)
      guard let message, let gateway = reference.gateway.withLock({ $0 }) else { continue }
      for answer in answers(to: message, gateway.script, gateway) { write(answer, context) }
      if case .online = message, gateway.script.unfinished > 0 {
        let bytes = [0, 0, 0xff, 0xff, UInt8(ascii: "{")] + [UInt8](repeating: 0x20, count: gateway.script.unfinished)
        context.write(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
      }
    }
    context.flush()
  }

  private func answers(
    to message: DeviceMessage, _ script: ScriptedGateway.Script, _ gateway: ScriptedGateway
  ) -> [DeviceMessage] {
    gateway.books.withLock { books in
      switch message {
      case .register(let registration):
        if let refusal = script.refusal { return [.refused(reason: refusal, topic: registration.topic)] }
        books.registered.append("\(registration.device) \(registration.topic) \(registration.generation)")
        let token = MadeTokens(seed: script.seed, generation: registration.generation)[registration.device]
        return [.registered(.init(device: registration.device, topic: registration.topic, token: token))]
      case .online(let online):
        books.online += 1
        if online.hasLowPower { books.lowPower += 1 }
        var answers: [DeviceMessage] = []
        for app in online.apps {
          let name = "\(app.token) \(app.topic)"
          let isNew = books.sent[name] == nil
          let last = isNew ? UInt64(script.notifications) : (books.sent[name] ?? 0) + UInt64(script.waiting)
          books.sent[name] = last
          books.acknowledged[name] = max(books.acknowledged[name] ?? 0, app.received)
          guard app.received < last else { continue }
          for sequence in app.received + 1...last {
            let delivery = DeviceMessage.Delivery(
              token: app.token, topic: app.topic, sequence: sequence, payload: Array("{\"n\":\(sequence)}".utf8),
              sent: WallClock.system.nanoseconds() - (isNew ? 0 : script.age.nanoseconds), isStored: !isNew)
            answers += Array(repeating: .deliver(delivery), count: script.repeatsSequences ? 2 : 1)
          }
        }
        return answers
      case .acknowledge(let token, let topic, let sequence):
        books.acknowledgements += 1
        books.acknowledged["\(token) \(topic)"] = sequence
        return []
      case .offline:
        books.offline += 1
        return []
      default: return []
      }
    }
  }

  private func write(_ message: DeviceMessage, _ context: ChannelHandlerContext) {
    var output = ByteWriter(capacity: 256)
    message.write(to: &output)
    var buffer = context.channel.allocator.buffer(capacity: output.count)
    buffer.writeBytes(output.bytes)
    context.write(wrapOutboundOut(buffer), promise: nil)
  }

  typealias OutboundOut = ByteBuffer

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
