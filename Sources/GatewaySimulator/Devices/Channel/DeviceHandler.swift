import Bytes
import DeviceProtocol
import Measurement
import NIOCore
import TLSTransport

/// A device's connection to the gateway.
final class DeviceHandler: ChannelInboundHandler, MessageConnection {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase {
    case handshake, open
    /// Nothing is read any more; the peer closes, or is closed at its deadline.
    case ending(until: NIODeadline)
    case closed
  }

  let shared: SimulatorContext
  let loopState: EventLoopState
  private let directory: DeviceDirectory
  private let link: RegisteredApp.Link
  var context: ChannelHandlerContext?
  private var phase = Phase.handshake
  private var framing: MessageFraming
  var pending: [UInt8] = []
  var held = HeldMemory()
  private var openedTick: NIODeadline
  var lastRead: NIODeadline
  private var hasUnflushed = false
  var unwritableSince: NIODeadline?

  init(
    _ shared: SimulatorContext, _ loopState: EventLoopState, _ directory: DeviceDirectory, longestMessage: Int,
    number: UInt64
  ) {
    (self.shared, self.loopState, self.directory) = (shared, loopState, directory)
    link = RegisteredApp.Link(loop: loopState.index, connection: number)
    framing = MessageFraming(order: .bigEndian, longestBody: longestMessage)
    openedTick = loopState.loop.now
    lastRead = openedTick
  }

  // MARK: the connection

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    loopState.add(self, number: link.connection)
    loopState.addDevice(self, number: link.connection)
    loopState.tally.devices.connections += 1
  }

  func channelActive(context: ChannelHandlerContext) {
    if shared.options.deviceChannel?.tls == nil { phase = .open }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is TLSConnectionInfo {
      phase = .open
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func finish() {
    switch phase {
    case .closed: return
    case .handshake: loopState.tally.devices.handshakeFailures += 1
    case .open, .ending: directory.use { $0.offline(link, now: shared.milliseconds) }
    }
    phase = .closed
    held.giveBack(to: shared.memory)
    loopState.remove(number: link.connection)
    loopState.removeDevice(number: link.connection)
    shared.ended()
  }

  // MARK: reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .open = phase else { return }
    let bytes = unwrapInboundIn(data)
    lastRead = loopState.loop.now
    var waiting: [UInt8] = []
    swap(&waiting, &pending)
    waiting = MessageFraming.rest(of: consume waiting, bytes.readableBytesSpan, after: read)
    if case .open = phase { keep(waiting) }
    flush()
  }

  /// Reads whole messages, and returns the number of their bytes.
  private func read(_ bytes: RawSpan) -> Int {
    var start = 0
    do {
      while case .open = phase, let body = try framing.next(bytes.extracting(start...)) {
        let message = try loopState.deviceMessages.read(bytes.extracting(start...).extracting(body))
        start += body.upperBound
        try take(message)
      }
    } catch {
      loopState.tally.devices.malformed += 1
      refuse(.message, topic: nil, closes: true)
    }
    return start
  }

  private func take(_ message: DeviceMessage) throws(MessageError) {
    switch message {
    case .register(let registration): register(registration)
    case .online(let online): goOnline(online)
    case .acknowledge(let token, let topic, let sequence):
      guard let number = shared.store.knownNumber(of: topic) else { throw .member("topic") }
      let isTaken = directory.use {
        $0.acknowledge(topic: number, token: token, sequence: sequence, on: link, now: shared.milliseconds)
      }
      if !isTaken { throw .member("sequence") }
    case .offline: context?.close(promise: nil)
    case .registered, .deliver, .tokenChanged, .refused: throw .unknown(message.name)
    }
  }

  private func register(_ registration: DeviceMessage.Registration) {
    let topic = registration.topic
    guard registration.version == DeviceMessage.version else { return refuse(.version, topic: nil, closes: true) }
    guard (registration.environment == .development) == shared.isSandbox else {
      return refuse(.environment, topic: topic)
    }
    guard !topic.isEmpty, let number = shared.store.number(of: topic, limit: StoredNotifications.maximumTopics) else {
      return refuse(.tooMany, topic: topic)
    }
    let result = directory.use { $0.register(registration, topic: number, on: link, now: shared.milliseconds) }
    switch result {
    case .token: loopState.tally.devices.registrations += 1
    case .refused(let reason): refuse(reason, topic: topic)
    }
  }

  private func goOnline(_ online: DeviceMessage.Online) {
    guard online.version == DeviceMessage.version else { return refuse(.version, topic: nil, closes: true) }
    var apps: [(topic: UInt32, app: DeviceMessage.Online.App)] = []
    for app in online.apps {
      guard let number = shared.store.knownNumber(of: app.topic) else {
        refuse(.unknownToken, topic: app.topic)
        continue
      }
      apps.append((number, app))
    }
    let refusals = directory.use {
      $0.online(apps, hasLowPower: online.hasLowPower, on: link, now: shared.milliseconds)
    }
    for refusal in refusals { refuse(refusal.reason, topic: refusal.topic) }
  }

  private func refuse(_ reason: DeviceMessage.Refusal, topic: String?, closes: Bool = false) {
    write(.refused(reason: reason, topic: topic))
    if closes { end() }
  }

  // MARK: writing

  /// Writes a message; `flush` sends it.
  func write(_ message: DeviceMessage) {
    if case .refused(let reason, _) = message { loopState.tally.devices.refused[reason.rawValue, default: 0] += 1 }
    guard let context else { return }
    loopState.deviceOutput.removeAll()
    message.write(to: &loopState.deviceOutput)
    context.write(
      wrapOutboundOut(context.channel.allocator.buffer(copying: loopState.deviceOutput)), promise: nil)
    hasUnflushed = true
    // The device is connected elsewhere.
    if case .refused(.replaced, _) = message { end() }
  }

  func flush() {
    guard hasUnflushed else { return }
    hasUnflushed = false
    context?.flush()
  }

  /// Ends the connection behind what was written.
  private func end() {
    guard case .open = phase else { return }
    directory.use { $0.offline(link, now: shared.milliseconds) }
    phase = .ending(until: loopState.loop.now + shared.options.linger.timeAmount)
    hasUnflushed = false
    context?.flush()
    context?.close(mode: .output, promise: nil)
  }

  // MARK: watched

  func check(_ now: NIODeadline) {
    switch phase {
    case .closed: break
    case .handshake:
      if now - openedTick > shared.options.handshakeTimeout.timeAmount + .seconds(1) { context?.close(promise: nil) }
    case .ending(let until): if now >= until { context?.close(promise: nil) }
    case .open:
      let limit = shared.options.frameTimeout.timeAmount
      if let since = unwritableSince {
        if now - since >= limit { context?.close(promise: nil) }
      } else if !pending.isEmpty, now - lastRead >= limit {
        context?.close(promise: nil)
      }
    }
  }

  func shutDown(forGood: Bool) {
    guard forGood else { return }
    guard case .open = phase else { return leave() }
    write(.offline(reason: "shutdown"))
    end()
  }

  func leave() { context?.close(promise: nil) }
}
