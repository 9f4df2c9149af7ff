import Bytes
import HTTP2
import HTTP2Server
import Measurement
import ProviderAPI

@testable import GatewaySimulator

/// A provider and a `ProviderGateway` in memory, at a time that the test sets.
final class HTTP2Conversation {
  struct Answer: Equatable {
    var status = 0
    var fields: [String: String] = [:]
    var content = ""
    var isReset = false
    var reason: String? {
      content.split(separator: "\"").map(String.init).drop { $0 != "reason" }.dropFirst(2).first
    }
  }

  static let token = String(repeating: "0f", count: 32)
  static let start: Int64 = 1_767_225_600_000

  private var gateway: ProviderGateway
  private var encoder = HPACKEncoder()
  private var stream: UInt32 = 1
  private var observer = ConnectionReader()
  private var log = Log()
  private var offsets = (client: 0, server: 0)
  private var counts = ServedCounts()
  private(set) var tokens: [ProviderTokens.Entry] = []
  /// UNIX time in ms.
  var now = HTTP2Conversation.start

  init(
    _ trust: ProviderGateway.Trust = .any, behavior: Behavior = Behavior(),
    devices: DevicePopulation = DevicePopulation(), store: StoredNotifications = StoredNotifications(.init()),
    registered: DeviceDirectory? = nil,
    channels: BroadcastChannels? = nil, payloads: PayloadTally? = nil,
    _ configure: (inout HTTP2Service) -> Void = { _ in }
  ) {
    var service = HTTP2Service(address: .init(host: "127.0.0.1", port: 0))
    configure(&service)
    let conduct = Conduct(behavior, devices)
    gateway = ProviderGateway(
      service, trust, conduct.policy, store, devices: registered, channels: channels, payloads: payloads, connection: 1,
      generator: SplitMix64(seed: 1), unregisteredAt: 42_000)
    for fault in conduct.faults { fault.begin(at: 0) }
    gateway.adopt(conduct.faults, tick: 0)
    var writer = ByteWriter()
    let preface = ByteWriter.http2Preface
    writer.write(preface.rawBytes)
    writer.writeSettings([])
    writer.writeSettingsAcknowledgement()
    send(Array(copying: writer.bytes))
  }

  /// The limits on streams that were announced.
  var limits: [UInt32] {
    log.settings.joined().filter { $0.name == .maximumConcurrentStreams }.map(\.value)
  }
  var violations: [Violation] { log.violations }
  var goAways: [Log.GoAway] { log.goAways }
  /// Error codes of RST_STREAM, by stream.
  var resets: [UInt32: ErrorCode] { log.resets }
  /// Streams in the order of their answers.
  var answered: [UInt32] { log.answered }
  func answer(on stream: UInt32) -> Answer? { log.answers[stream] }
  /// The stream of the next request.
  var nextStream: UInt32 { stream }
  /// The actions of the transport that are due.
  private(set) var effects: [ConnectionFaults.Effect] = []
  var nextDue: Duration? { gateway.nextDue.map { .nanoseconds($0) } }
  var heldBytes: Int { gateway.session.heldBytes }
  var isSilent: Bool { gateway.isSilent }
  /// Bytes of the gateway.
  var received: Int { offsets.server }
  private var tick: Int64 { (now - Self.start) * 1_000_000 }

  /// Time passes without a read; what is due within is done at its end.
  func pass(_ time: Duration) {
    now += time.nanoseconds / 1_000_000
    gateway.advance(now: now, tick: tick)
    flush()
  }

  /// Other faults, from now on.
  func adopt(_ faults: [HTTP2Fault]) {
    var behavior = Behavior()
    behavior.http2Faults = faults
    let conduct = Conduct(behavior, DevicePopulation())
    for fault in conduct.faults { fault.begin(at: tick) }
    gateway.adopt(conduct.faults, tick: tick)
  }

  /// The client ends the connection.
  func finish() { gateway.finish() }

  func takeCounts() -> ServedCounts {
    counts.combine(with: gateway.takeCounts(), +)
    return counts
  }

  func send(_ bytes: [UInt8]) {
    observer.read(bytes.rawBytes, from: .client, at: offsets.client, arrival: .init(time: 0, packet: 0), into: &log)
    offsets.client += bytes.count
    gateway.nanoseconds = now * 1_000_000
    _ = gateway.receive(bytes.rawBytes, now: now, tick: tick)
    tokens += gateway.takeAcceptedTokens()
    flush()
  }

  private func flush() {
    effects += gateway.takeEffects()
    let answer = Array(copying: gateway.session.output.bytes)
    gateway.session.output.removeAll()
    observer.read(answer.rawBytes, from: .server, at: offsets.server, arrival: .init(time: 0, packet: 0), into: &log)
    offsets.server += answer.count
  }

  /// The fields of a notification as most clients send them.
  static func fields(
    _ changes: [String: String?] = [:], more: [(String, String)] = []
  ) -> [(String, String)] {
    let usual = [
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(token)"), (":authority", "api.push.apple.com"),
      ("apns-topic", "com.example.app"), ("apns-push-type", "alert"),
    ]
    var fields: [(String, String)] = []
    for (name, value) in usual {
      guard let change = changes[name] else {
        fields.append((name, value))
        continue
      }
      if let change { fields.append((name, change)) }
    }
    for (name, value) in changes.sorted(by: { $0.key < $1.key }) where !usual.contains(where: { $0.0 == name }) {
      if let value { fields.append((name, value)) }
    }
    return fields + more
  }

  /// HEADERS of a request whose content never comes.
  func begin() {
    var block = ByteWriter()
    encoder.beginBlock(&block)
    for (name, value) in Self.fields() {
      encoder.write(Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, .neverIndexed, to: &block)
    }
    var writer = ByteWriter()
    writer.writeFrame(.headers, flags: .endHeaders, stream: stream, block.bytes)
    stream += 2
    send(Array(copying: writer.bytes))
  }

  @discardableResult
  func push(
    _ changes: [String: String?] = [:], more: [(String, String)] = [],
    content: [UInt8] = Array(#"{"aps":{"alert":"x"}}"#.utf8)
  ) -> Answer {
    var block = ByteWriter()
    encoder.beginBlock(&block)
    for (name, value) in Self.fields(changes, more: more) {
      let isLiteral = name == ":path" || name == "authorization"
      encoder.write(
        Array(name.utf8).rawBytes, Array(value.utf8).rawBytes, isLiteral ? .neverIndexed : .incremental, to: &block)
    }
    var writer = ByteWriter()
    writer.writeFrame(.headers, flags: .endHeaders, stream: stream, block.bytes)
    var rest = content[...]
    repeat {
      let part = Array(rest.prefix(16_000))
      rest = rest.dropFirst(16_000)
      writer.writeFrame(.data, flags: rest.isEmpty ? .endStream : [], stream: stream, part.rawBytes)
    } while !rest.isEmpty
    send(Array(copying: writer.bytes))
    defer { stream += 2 }
    return log.answers[stream] ?? Answer()
  }

  struct Log: ConnectionHandler {
    struct GoAway: Equatable {
      var last: UInt32
      var code: ErrorCode
      var debug: String
    }
    var answers: [UInt32: Answer] = [:]
    var answered: [UInt32] = []
    var goAways: [GoAway] = []
    var resets: [UInt32: ErrorCode] = [:]
    var settings: [[Setting]] = []
    var violations: [Violation] = []

    mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin) {
      guard origin.side == .server else { return }
      var answer = Answer(status: section.status ?? 0)
      for field in fields.fields {
        let name = String(decoding: Array(copying: fields.name(of: field)), as: UTF8.self)
        answer.fields[name] = String(decoding: Array(copying: fields.value(of: field)), as: UTF8.self)
      }
      answers[place.stream] = answer
      answered.append(place.stream)
    }
    mutating func receive(
      content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin
    ) {
      guard origin.side == .server else { return }
      answers[place.stream]?.content += String(decoding: Array(copying: content), as: UTF8.self)
    }
    mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin) {
      answers[place.stream, default: Answer()].isReset = true
      if origin.side == .server { resets[place.stream] = code }
    }
    mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin) {}
    mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin) {
      guard origin.side == .server else { return }
      goAways.append(
        GoAway(last: lastStream, code: code, debug: String(decoding: Array(copying: debugData), as: UTF8.self)))
    }
    mutating func receive(settings: [Setting], _ origin: FrameOrigin) {
      if origin.side == .server { self.settings.append(settings) }
    }
    mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin) {}
    mutating func receiveLossOfSettings() {}
    mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin) {}
    mutating func receive(_ violation: Violation, _ origin: FrameOrigin) { violations.append(violation) }
    mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool) {}
    mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin) {}
    mutating func closed(_ place: StreamPlace, _ reason: StreamEnd) {}
  }
}
