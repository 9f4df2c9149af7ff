import Bytes
import HTTP2
import HTTP2Server
import Measurement
import ProviderAPI
import PushModel

@testable import GatewaySimulator

/// A provider that keeps to the rules, with habits that are drawn, and a gateway with faults, in memory; an observer of
/// both directions has the books that a recording would have.
final class DisturbedRun {
  private var random: SplitMix64
  private var gateway: ProviderGateway
  private var encoder = HPACKEncoder()
  private(set) var recorded = ProviderSession()
  private var reader = ConnectionReader()
  private var log = Log()
  private(set) var counts = ServedCounts()
  let faults: [String]

  private var now: Int64 = 1_767_225_600_000
  private var tick: Int64 = 0
  private var offsets = (client: 0, server: 0)
  private var unread: [UInt8] = []
  /// The limits that the gateway has told.
  private var streamLimit = Int.max
  private var window = 65_535
  private var nextStream: UInt32 = 1
  /// Streams without an answer, and those of them whose content is not complete.
  private var open: Set<UInt32> = []
  private var incomplete: Set<UInt32> = []
  private var lastStream: UInt32 = .max
  /// SETTINGS that are not acknowledged yet: between two frames of the client.
  private var acknowledgements = 0
  private(set) var requests = 0
  /// The gateway has closed its direction, and reads what still comes; or has reset the connection.
  private var (isEnding, isReset) = (false, false)
  private var isDraining = false

  var hasFailed: Bool { gateway.session.hasFailed }
  var serverViolations: [Violation] { log.violations.filter { $0.side == .server }.map(\.violation) }
  var clientViolations: [Violation] { log.violations.filter { $0.side == .client }.map(\.violation) }
  /// The most answers on one stream.
  var mostAnswers: Int { log.answers.values.max() ?? 0 }

  static let kinds = [
    "delay,time=0ms..50ms", "delay,exponential=10ms", "disorder,depth=3", "silence", "silence,of=connection", "goaway",
    "goaway,last=answered", "goaway,last=notice,grace=20ms", "goaway,end=fin", "goaway,last=answered,end=rst", "refuse",
    "reset,code=INTERNAL_ERROR", "streams,limit=1", "streams,limit=5", "throttle,rate=2", "close",
    "close,way=rst,bytes=3",
    "close,bytes=70", "answer,status=503", "answer,status=299", "answer,content=html", "answer,status=599,content=none",
    "frame,wrong=unknown-type", "slow",
  ]
  static let occasions = ["every=7", "probability=0.05", "every=30ms", "times=2", "index=3..9", "from=100ms,every=3"]

  init(seed: UInt64) throws {
    random = SplitMix64(seed: seed, stream: 7)
    var faults: [String] = []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let kind = Self.kinds[Int.random(in: Self.kinds.indices, using: &random)]
      faults.append("\(kind),\(Self.occasions[Int.random(in: Self.occasions.indices, using: &random)])")
    }
    if Int.random(in: 0..<8, using: &random) == 0 { faults.append("silence,idle=40ms") }
    if Int.random(in: 0..<8, using: &random) == 0 { faults.append("goaway,idle=30ms") }
    self.faults = faults
    var behavior = Behavior()
    behavior.seed = seed
    behavior.http2Faults = try faults.map { try HTTP2Fault($0) }
    behavior.rejections = [Behavior.RejectionRule(.every(9))]
    var service = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    service.session.streamLimit = [1, 3, 100][Int.random(in: 0..<3, using: &random)]
    let conduct = Conduct(behavior, DevicePopulation())
    gateway = ProviderGateway(
      service, .any, conduct.policy, StoredNotifications(.init()), connection: 1, generator: SplitMix64(seed: seed),
      unregisteredAt: 42_000)
    for fault in conduct.faults { fault.begin(at: 0) }
    gateway.adopt(conduct.faults, tick: 0)
    flush()
    var writer = ByteWriter()
    let preface = ByteWriter.http2Preface
    writer.write(preface.rawBytes)
    writer.writeSettings([])
    send(writer)
  }

  func run(steps: Int) {
    for _ in 0..<steps where !isReset {
      step()
      // What is on its way when the gateway closes is little.
      if isEnding, Int.random(in: 0..<4, using: &random) == 0 { break }
    }
    gateway.finish()
    count()
    recorded.finish(.client, .closed, arrival: arrival) { _, _ in }
    endServer()
    reader.finish(.client, into: &log)
  }

  /// The end of the gateway's direction, which a recording has before what still comes from the client.
  private func endServer() {
    guard !hasServerEnded else { return }
    hasServerEnded = true
    recorded.finish(.server, .closed, arrival: arrival) { _, _ in }
    reader.finish(.server, into: &log)
  }
  private var hasServerEnded = false

  // MARK: the provider

  private func step() {
    var writer = ByteWriter()
    for _ in 0..<acknowledgements { writer.writeSettingsAcknowledgement() }
    acknowledgements = 0
    send(writer)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<10: request()
    case 10..<13: complete()
    case 13:
      guard let stream = open.sorted().randomElement(using: &random) else { return }
      finish(stream)
      var writer = ByteWriter()
      writer.writeReset(.cancel, stream: stream)
      send(writer)
    case 14:
      var writer = ByteWriter()
      writer.writePing(1)
      send(writer)
    case 15:
      var writer = ByteWriter()
      writer.writeSettings([Setting(.initialWindowSize, UInt32.random(in: 0...100, using: &random))])
      send(writer)
    case 16:
      var writer = ByteWriter()
      writer.writeWindowUpdate(1_000)
      for stream in open.sorted().prefix(5) { writer.writeWindowUpdate(50, stream: stream) }
      send(writer)
    default: pass(Int64.random(in: 0...40, using: &random))
    }
  }

  private func request() {
    guard open.count < streamLimit, lastStream == .max else { return }
    let stream = nextStream
    nextStream += 2
    requests += 1
    var block = ByteWriter()
    encoder.beginBlock(&block)
    let token = String(repeating: "0\(Int.random(in: 1...5, using: &random))", count: 32)
    var fields = [
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(token)"), (":authority", "localhost"),
      ("apns-topic", ["a.b", "c.d"].randomElement(using: &random) ?? ""),
    ]
    if Int.random(in: 0..<10, using: &random) == 0 { fields.append(("apns-priority", "3")) }
    for (name, value) in fields {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .incremental, to: &block)
    }
    var writer = ByteWriter()
    writer.writeFrame(.headers, flags: .endHeaders, stream: stream, block.bytes)
    open.insert(stream)
    incomplete.insert(stream)
    send(writer)
    if Int.random(in: 0..<4, using: &random) > 0 { complete(stream) }
  }

  private func complete(_ stream: UInt32? = nil) {
    guard let stream = stream ?? incomplete.sorted().randomElement(using: &random), incomplete.contains(stream) else {
      return
    }
    let content = [UInt8](repeating: 0x20, count: Int.random(in: 0..<10, using: &random) == 0 ? 4_000 : 20)
    guard window >= content.count else { return }
    window -= content.count
    incomplete.remove(stream)
    var writer = ByteWriter()
    writer.writeFrame(.data, flags: .endStream, stream: stream, content.rawBytes)
    send(writer)
  }

  private func finish(_ stream: UInt32) {
    open.remove(stream)
    incomplete.remove(stream)
  }

  private func send(_ writer: borrowing ByteWriter) {
    var rest = Array(copying: writer.bytes)[...]
    while !rest.isEmpty, !isReset {
      let piece = Array(rest.prefix(Int.random(in: 1...200, using: &random)))
      rest = rest.dropFirst(piece.count)
      observe(piece, from: .client, at: offsets.client)
      offsets.client += piece.count
      unread += piece
      let bytes = unread
      unread.removeFirst(gateway.receive(bytes.rawBytes, now: now, tick: tick))
      flush()
    }
  }

  /// Time passes: what is due is done when it is.
  private func pass(_ milliseconds: Int64) {
    let end = tick + milliseconds * 1_000_000
    while let due = gateway.nextDue, due <= end, !isEnding, !isReset {
      now += max(0, due - tick) / 1_000_000
      tick = max(tick, due)
      gateway.advance(now: now, tick: tick)
      flush()
    }
    now += (end - tick) / 1_000_000
    tick = max(tick, end)
  }

  // MARK: the gateway

  private func flush() {
    count()
    let bytes = Array(copying: gateway.session.output.bytes)
    gateway.session.output.removeAll()
    if !isEnding, !isReset {
      observe(bytes, from: .server, at: offsets.server)
      offsets.server += bytes.count
      take(bytes)
    }
    for effect in gateway.takeEffects() {
      switch effect {
      case .drain: isDraining = true
      case .close(let isReset): if isReset { self.isReset = true } else { isEnding = true }
      case .slow: break
      }
    }
    if isDraining, gateway.session.isDrained { isEnding = true }
    if isEnding || isReset { endServer() }
  }

  private func count() { counts.combine(with: gateway.takeCounts(), +) }

  /// What a client learns of whole frames.
  private func take(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while rest.count >= FrameHeader.length {
      let frame = Array(rest)
      let header = FrameHeader(frame.rawBytes, at: 0)
      guard rest.count >= header.frameLength else { return }
      let payload = Array(frame[FrameHeader.length..<header.frameLength])
      rest = rest.dropFirst(header.frameLength)
      switch header.type {
      case .headers, .data: if header.flags.contains(.endStream) { finish(header.stream) }
      case .reset: finish(header.stream)
      case .windowUpdate: if header.stream == 0 { window += Int(payload.rawBytes.uint32(at: 0)) }
      case .goAway:
        lastStream = payload.rawBytes.uint32(at: 0)
        for stream in open where stream > lastStream { finish(stream) }
      case .settings:
        guard !header.flags.contains(.acknowledgement) else { continue }
        for setting in Setting.list(payload.rawBytes) where setting.name == .maximumConcurrentStreams {
          streamLimit = Int(setting.value)
        }
        acknowledgements += 1
      default: break
      }
    }
  }

  private var arrival: Arrival { Arrival(time: tick, packet: 0) }

  private func observe(_ bytes: [UInt8], from side: FrameReader.Side, at offset: Int) {
    recorded.read(bytes.rawBytes, from: side, at: offset, arrival: arrival) { _, _ in }
    reader.read(bytes.rawBytes, from: side, at: offset, arrival: arrival, into: &log)
  }

  private struct Log: ConnectionHandler {
    var violations: [(side: FrameReader.Side, violation: Violation)] = []
    var answers: [UInt32: Int] = [:]

    mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {
      if origin.side == .server { answers[place.stream, default: 0] += 1 }
    }
    mutating func receive(_ violation: Violation, _ origin: FrameOrigin) {
      violations.append((origin.side, violation))
    }
    mutating func receive(
      content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
    ) {}
    mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {}
    mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {}
    mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin) {}
    mutating func receive(settings: [Setting], _ origin: FrameOrigin) {}
    mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) {}
    mutating func receiveLossOfSettings() {}
    mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) {}
    mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {}
    mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {}
    mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {}
  }
}
