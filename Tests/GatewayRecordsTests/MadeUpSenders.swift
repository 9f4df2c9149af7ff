import Bytes
import HTTP2
import Measurement
import NIOCore
import NIOEmbedded
import ProviderAPI
import PushModel
import Synchronization
import TestSupport

@testable import GatewaySimulator

/// Senders of a seed that push over HTTP/2 to one simulated gateway: what its observer is told, and a capture of the same
/// packets, at the same times.
///
/// The gateway is the simulator's own, on channels without sockets.
final class MadeUpSenders {
  /// What a request is about.
  private struct Content: Equatable { var token: Int, text: String, topic: String, type: String }

  private struct Open {
    var stream: UInt32
    /// Content that was not sent yet.
    var rest: [UInt8]
  }

  private final class Connection {
    let channel: EmbeddedChannel
    let line: Int
    let wire: Wire
    var encoder = HPACKEncoder()
    var next: UInt32 = 1
    var open: [Open] = []
    var sent: [UInt32] = []
    /// Written, and not on the wire yet.
    var pending: [UInt8] = []
    let authorization: String?

    init(_ channel: EmbeddedChannel, _ line: Int, _ wire: Wire, _ authorization: String?) {
      (self.channel, self.line, self.wire, self.authorization) = (channel, line, wire, authorization)
    }
  }

  /// The packets, shared by all connections.
  fileprivate final class Tape {
    var capture = CaptureBuilder()
    let loop = EmbeddedEventLoop()

    /// Puts a packet at the loop's time.
    func add(_ body: (inout CaptureBuilder) -> Void) {
      capture.milliseconds = Int(loop.now.uptimeNanoseconds / 1_000_000) - 1
      body(&capture)
    }
  }

  private final class Kept: Sendable {
    let events = Mutex<[ObservedEvent]>([])
  }

  static let beginning: Int64 = 1_450_000_000_000_000_000
  var capture: CaptureBuilder { tape.capture }
  private(set) var events: [ObservedEvent] = []
  private(set) var counts = ServedCounts()
  /// In nanoseconds since 1970.
  var now: Int64 { Self.beginning + Int64(tape.loop.now.uptimeNanoseconds) }

  /// A sender has broken a rule of a connection: the gateway reads nothing behind it.
  private(set) var hasBrokenConnection = false

  private let tape = Tape()
  private let kept = Kept()
  private var random: SeededGenerator
  private let shared: SimulatorContext
  private let books: EventLoopState
  private var connections: [Connection] = []
  private var before: [Content] = []
  private var port: UInt16 = 40_000
  private var number = 0

  /// - Parameter isTame: senders break no rule, and leave no request unfinished at the end.
  init(seed: UInt64, isTame: Bool = false) throws {
    random = SeededGenerator(seed: seed)
    var options = SimulatorOptions()
    var service = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    service.isSandbox = random.happens(oneIn: 2)
    service.session.streamLimit = random.pick([1, 3, 100, 1_000])
    options.http2 = service
    var rules: [Behavior.RejectionRule] = []
    for _ in 0..<random.number(0...3) {
      var rule = Behavior.RejectionRule(
        random.pick([.every(random.number(2...9)), .prefix([UInt8(random.number(1...12))]), .probability(0.2)]),
        status: .invalidToken)
      (rule.reason, rule.httpStatus) = random.pick([
        (.badDeviceToken, 400), (.unregistered, 410), (.serviceUnavailable, 503),
        (ProviderReason(rawValue: "TooManyRequests"), 429),
      ])
      rules.append(rule)
    }
    options.behavior.rejections = rules
    options.devices = DevicePopulation()
    for token in 13...16 {
      options.devices.change([UInt8](repeating: UInt8(token), count: 32).rawBytes, to: .offline, at: 0)
    }
    options.devices.change([UInt8](repeating: 17, count: 32).rawBytes, to: .uninstalled, at: 0)
    let (kept, loop) = (kept, tape.loop)
    let time = NIOLoopBound(loop, eventLoop: loop)
    shared = SimulatorContext(
      options, feedbackList: try FeedbackList(path: nil), log: nil,
      observer: { event in kept.events.withLock { $0.append(event) } },
      wallClock: WallClock { Self.beginning + Int64(time.value.now.uptimeNanoseconds) })
    books = EventLoopState(loop, shared)
    pass(milliseconds: 5)
    for _ in 0..<random.number(1...3) { try open() }
    for _ in 0..<random.number(5...60) { try step(isTame) }
    for connection in connections { end(connection, isTame) }
    counts = books.tally.served
    shared.store.close(now: now / 1_000_000)
    events = kept.events.withLock { $0 }
    try? tape.loop.syncShutdownGracefully()
  }

  private func pass(milliseconds: Int) { tape.loop.advanceTime(by: .milliseconds(Int64(milliseconds))) }

  /// The events before which no request was open: each had its answer, or was reset.
  private(set) var idle: [Int] = []

  // MARK: what they do

  private func step(_ isTame: Bool) throws {
    pass(milliseconds: random.happens(oneIn: 12) ? random.pick([30, 1_200, 15_000]) : random.number(1...4))
    connections.removeAll { !$0.channel.isActive || $0.wire.hasEnded && finish($0) }
    guard let connection = connections.randomElement(using: &random) else { return try open() }
    if connections.allSatisfy({ $0.open.isEmpty && $0.pending.isEmpty }) {
      idle.append(kept.events.withLock { $0.count })
    }
    switch random.number(1...24) {
    case 1: try open()
    case 2: control(connection) { $0.writePing(7, isAcknowledgement: false) }
    case 3: control(connection) { $0.writeSettings([Setting(.enablePush, 0)]) }
    case 4:
      guard let open = connection.open.popLast() else { return }
      control(connection) { $0.writeReset(.cancel, stream: open.stream) }
    case 5: if random.happens(oneIn: 3) { books.closeConnections(.shutdown, topic: nil) }
    case 6:
      guard !isTame, random.happens(oneIn: 4) else { return }
      hasBrokenConnection = true
      control(connection) { $0.writeFrame(.data, flags: [], stream: 0, [1, 2].rawBytes) }
    case 7: if random.happens(oneIn: 3) { end(connection, isTame) }
    case 8...12: goOn(connection)
    default: for _ in 0..<random.number(1...4) { push(connection, isTame) }
    }
    deliver(connection, all: random.happens(oneIn: 2))
  }

  private func open() throws {
    port += 1
    pass(milliseconds: 3)
    var line = 0
    // Three packets, the last of them now.
    tape.add {
      $0.milliseconds -= 2
      line = $0.connect(from: port, to: 443)
    }
    let wire = Wire(tape, line)
    let channel = EmbeddedChannel(loop: tape.loop)
    try channel.pipeline.syncOperations.addHandler(wire)
    let address = try SocketAddress(ipAddress: "10.0.0.5", port: Int(port))
    let server = try SocketAddress(ipAddress: "10.0.0.9", port: 443)
    (channel.remoteAddress, channel.localAddress) = (address, server)
    try Simulator.accept(channel, .http2, shared, books)
    channel.pipeline.fireChannelActive()
    channel.pipeline.connect(to: address, promise: nil)
    // A provider token's form, with a signature that nobody checks.
    let authorization =
      random.happens(oneIn: 2)
      ? "bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IktFWSJ9.eyJpc3MiOiJURUFNIiwiaWF0IjoxNDQ5OTk5OTAwfQ.c2lnbmF0dXJl\(random.number(1...3))"
      : nil
    let connection = Connection(channel, line, wire, authorization)
    connections.append(connection)
    control(connection) {
      let preface = ByteWriter.http2Preface
      $0.write(preface.rawBytes)
      $0.writeSettings([Setting(.enablePush, 0)])
      $0.writeSettingsAcknowledgement()
    }
    deliver(connection, all: true)
  }

  private func control(_ connection: Connection, _ body: (inout ByteWriter) -> Void) {
    connection.pending += written(body)
  }

  private func content() -> Content {
    if let again = before.randomElement(using: &random), random.happens(oneIn: 3) { return again }
    number += 1
    return Content(
      token: random.number(1...20), text: "number \(number)", topic: random.pick(["com.example.app", "com.example.b"]),
      type: random.pick(["alert", "alert", "background", "wrong"]))
  }

  private func push(_ connection: Connection, _ isTame: Bool) {
    let content = content()
    before.append(content)
    let token = String(repeating: String(format: content.token), count: 32)
    var fields = [
      (":method", "POST"), (":scheme", "http"), (":authority", "localhost"),
      (":path", random.happens(oneIn: 15) ? "/3/nowhere" : "/3/device/\(token)"), ("apns-topic", content.topic),
      ("apns-push-type", content.type),
    ]
    if let authorization = connection.authorization { fields.append(("authorization", authorization)) }
    if random.happens(oneIn: 3) { fields.append(("apns-priority", random.pick(["5", "10", "7"]))) }
    if random.happens(oneIn: 3) { fields.append(("apns-expiration", random.pick(["0", "1449999999", "1900000000"]))) }
    if random.happens(oneIn: 3) { fields.append(("apns-collapse-id", "c\(random.number(1...3))")) }
    if random.happens(oneIn: 2) {
      fields.append(("apns-id", "0F0E0D0C-0000-4000-8000-\(String(100_000_000_000 + number))"))
    }
    if !isTame, random.happens(oneIn: 12) {
      fields.append(random.pick([("connection", "close"), ("te", "gzip"), ("content-length", "1")]))
    }
    let payload = Array(#"{"aps":{"alert":"\#(content.text)"}}"#.utf8)
    let stream = connection.next
    connection.next += 2
    control(connection) { output in
      var block = ByteWriter()
      connection.encoder.beginBlock(&block)
      for (name, value) in fields {
        let isLiteral = name == ":path" || name == "apns-id"
        connection.encoder.write(
          Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, isLiteral ? .withoutIndexing : .incremental,
          to: &block)
      }
      let cut = random.happens(oneIn: 6) ? random.number(1...block.count - 1) : block.count
      output.writeFrame(
        .headers, flags: cut == block.count ? .endHeaders : [], stream: stream, block.bytes.extracting(0..<cut))
      if cut < block.count {
        output.writeFrame(
          .continuation, flags: .endHeaders, stream: stream, block.bytes.extracting(cut..<block.count))
      }
    }
    connection.sent.append(stream)
    connection.open.append(Open(stream: stream, rest: payload))
    if random.happens(oneIn: 2) { goOn(connection) }
  }

  /// Sends content of an open request.
  private func goOn(_ connection: Connection) {
    guard let place = connection.open.indices.randomElement(using: &random) else { return }
    let count = random.happens(oneIn: 3) ? random.number(0...connection.open[place].rest.count) : .max
    let (stream, part) = (connection.open[place].stream, Array(connection.open[place].rest.prefix(count)))
    connection.open[place].rest.removeFirst(part.count)
    let isLast = connection.open[place].rest.isEmpty
    control(connection) { $0.writeFrame(.data, flags: isLast ? .endStream : [], stream: stream, part.rawBytes) }
    if isLast { connection.open.remove(at: place) }
  }

  // MARK: the wire

  private func deliver(_ connection: Connection, all: Bool) {
    while !connection.pending.isEmpty, connection.channel.isActive, !connection.wire.hasEnded {
      let count = all ? random.number(1...4_000) : random.number(1...200)
      let piece = Array(connection.pending.prefix(count))
      connection.pending.removeFirst(piece.count)
      tape.add { $0.client(connection.line, piece) }
      connection.channel.pipeline.fireChannelRead(NIOAny(ByteBuffer(bytes: piece)))
      tape.loop.run()
      if !all { return }
    }
  }

  /// The client closes as well.
  @discardableResult
  private func finish(_ connection: Connection) -> Bool {
    guard connection.channel.isActive else { return true }
    tape.add { $0.halfClose(connection.line) }
    connection.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    tape.loop.run()
    return true
  }

  private func end(_ connection: Connection, _ isTame: Bool) {
    if isTame { while !connection.open.isEmpty { goOn(connection) } }
    deliver(connection, all: true)
    guard connection.channel.isActive else { return }
    pass(milliseconds: 1)
    guard !isTame, random.happens(oneIn: 5), !connection.wire.hasEnded else {
      finish(connection)
      return
    }
    tape.add { $0.reset(connection.line) }
    connection.wire.hasEnded = true
    connection.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "read"))
    tape.loop.run()
  }

  /// The socket's side of a channel.
  fileprivate final class Wire: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private let tape: Tape
    private let line: Int
    /// The gateway has closed its direction, or the client has reset the connection.
    var hasEnded = false

    init(_ tape: Tape, _ line: Int) { (self.tape, self.line) = (tape, line) }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let bytes = Array(buffer: unwrapOutboundIn(data))
      tape.add { $0.server(line, bytes) }
      promise?.succeed(())
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      if !hasEnded { tape.add { $0.halfClose(line, byServer: true) } }
      hasEnded = true
      if mode == .output { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
    }
  }
}

extension String {
  /// Two hexadecimal digits.
  fileprivate init(format value: Int) {
    let text = String(value, radix: 16)
    self = text.count == 1 ? "0" + text : text
  }
}
