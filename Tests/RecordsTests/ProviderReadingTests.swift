import Bytes
import HTTP2
import PacketCapture
import ProviderAPI
import PushModel
import TestSupport
import Testing

@testable import Records

/// Records of the provider API with any values, of which the extreme ones come often.
private struct AnyProviderRecords {
  var random: SeededGenerator

  mutating func number(_ extremes: [Int]) -> Int { random.pick(extremes + [random.number(0...1_000)]) }

  mutating func text() -> [UInt8] {
    switch random.number(0...4) {
    case 0: Array("com.example.tide".utf8)
    case 1: Array("\u{1b}[31m\"\\\u{2028} é".utf8)
    case 2: random.bytes(random.number(0...20))
    case 3: Array(String(repeating: "k", count: random.number(0...5_000)).utf8)
    default: []
    }
  }

  mutating func optionalText() -> String? {
    random.happens(oneIn: 3) ? nil : String(decoding: text(), as: UTF8.self)
  }

  mutating func place(_ connection: Int) -> RecordPlace {
    RecordPlace(
      connection: connection, time: Timestamp(nanoseconds: 1_795_578_551_123_456_789), packet: random.number(1...99),
      offset: number([0, 1 << 36]), length: number([0, 1 << 32]))
  }

  mutating func payload() -> [UInt8] {
    switch random.number(0...5) {
    case 0: []
    case 1: Array(#"{"aps":{"alert":"\#(String(repeating: "x", count: random.number(0...200_000)))"}}"#.utf8)
    case 2: Array(("{ \"aps\" :" + String(repeating: " ", count: random.number(0...100_000)) + "{} }").utf8)
    case 3: random.bytes(random.number(1...90_000))
    case 4: Array("[1e999,-0.0,\"\\ud800\"]".utf8)
    default: Array(#""text""#.utf8)
    }
  }

  mutating func write(_ writer: JSONLinesWriter, index: Int, stream: Int) {
    var bytes: [UInt8] = [0]
    func keep(_ text: [UInt8]?) -> ByteField {
      guard let text else { return ByteField() }
      defer { bytes += text }
      return ByteField(offset: bytes.count, length: text.count)
    }
    let targets: [RequestTarget] = [.device, .broadcast, .badPath, .unknown]
    var request = ProviderRequest(
      target: random.pick(targets), stream: UInt32(stream), offset: 0,
      openStreams: random.happens(oneIn: 2) ? nil : number([0, Int(UInt32.max)]),
      streamLimit: random.happens(oneIn: 2) ? nil : number([0, Int(UInt32.max)]))
    switch request.target {
    case .device where random.happens(oneIn: 2):
      let token = random.bytes(random.number(1...400))
      request.token = keep(token)
    case .device: request.path = keep(Array("/3/device/".utf8) + text())
    case .broadcast: request.bundle = keep(text())
    case .badPath: request.path = keep(Array("/x".utf8) + text())
    default: request.uncertain.insert(.token)
    }
    for field in [\ProviderRequest.topic, \.pushType, \.apnsID, \.collapseID, \.channelID, \.requestID] {
      if random.happens(oneIn: 2) { request[keyPath: field] = keep(text()) }
    }
    if random.happens(oneIn: 3) { request.method = keep(Array("PUT".utf8)) }
    if random.happens(oneIn: 2) { request.priority = UInt8(random.number(0...255)) }
    if random.happens(oneIn: 2) { request.expiration = random.pick([0, UInt64(Int64.max), 1 << 32]) }
    for _ in 0..<random.number(0...3) {
      request.headers.append(.init(name: keep(text()), value: keep(text())))
    }
    let content = payload()
    request.payload = keep(content)
    request.payloadLength = content.count
    if random.happens(oneIn: 4) { (request.payload, request.payloadLength) = (ByteField(), 1 << 31) }
    if random.happens(oneIn: 4) { request.uncertain.insert(.payload) }
    var token: ProviderToken?
    if random.happens(oneIn: 2) {
      request.hasAuthorization = true
      if random.happens(oneIn: 2) { (request.providerToken, request.isProviderTokenNumbered) = (number([1]) + 1, true) }
      let issued = random.pick([nil, Int.min, -5, Int.max, 1_795_578_551])
      token = ProviderToken(keyID: optionalText(), teamID: optionalText(), issuedAt: issued)
    }
    request.started = .init(time: 1_795_578_551_000_000_001, packet: 1)
    writer.receive(
      ProviderNotificationRecord(
        request, bytes.rawBytes, at: place(1), index: index, trust: request.hasAuthorization ? .token : nil,
        providerToken: token))
  }

  mutating func record(_ stream: Int) -> ProviderRecord {
    switch random.number(0...4) {
    case 0:
      var record = ResponseRecord(place: place(1), stream: stream)
      record.status = random.pick([nil, 0, 200, 999])
      record.reason = optionalText()
      record.timestamp = random.pick([nil, Int.min, -5, Int.max])
      (record.apnsID, record.channelID) = (optionalText(), optionalText())
      record.notification = random.pick([nil, 0, 1 << 36])
      record.latencyNanoseconds = random.pick([nil, 0, 999, 4_500_000_000_000_000])
      record.isUncertain = random.happens(oneIn: 2)
      return .response(record)
    case 1:
      let counts = [nil, 0, 1 << 31]
      return .goAway(
        GoAwayRecord(
          place: place(1), direction: .server, lastStream: number([0, Int(Int32.max)]), error: optionalText() ?? "",
          reason: optionalText(), discarded: random.pick(counts), unknown: random.pick(counts)))
    case 2:
      return .reset(
        ResetRecord(
          place: place(1), direction: .client, stream: stream, error: optionalText(),
          notification: random.pick([nil, 1 << 36])))
    case 3:
      let values = (0..<random.number(0...3)).map { SettingsRecord.Value(name: "S\($0)", value: number([1 << 32 - 1])) }
      return .settings(SettingsRecord(place: place(1), direction: .server, values: values))
    default:
      var record = ChannelRequestRecord(place: place(1), stream: stream, action: random.pick(ChannelAction.allCases))
      (record.bundle, record.channelID, record.reason) = (optionalText(), optionalText(), optionalText())
      record.status = random.pick([nil, 201])
      return .channelRequest(record)
    }
  }
}

/// What is written, and what is written of what was read back.
private final class Lines {
  var text: [UInt8] = []
  private(set) lazy var writer = JSONLinesWriter { [self] bytes in
    text.append(copying: bytes)
    return true
  }
  var lines: [String] {
    writer.flush()
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
  }
}

@Suite("Records of the provider API")
struct ProviderReadingTests {
  @Test("What is written is read back as it was", arguments: seeds(40, of: 400))
  func readBack(seed: UInt64) throws {
    var any = AnyProviderRecords(random: SeededGenerator(seed: seed))
    let first = Lines()
    for number in 0..<any.random.number(1...12) {
      let stream = any.random.pick([2 * number + 1, Int(UInt32.max)])
      if any.random.happens(oneIn: 2) {
        any.write(first.writer, index: any.random.pick([number, 1 << 36]), stream: stream)
      } else {
        first.writer.receive(any.record(stream))
      }
    }
    let lines = first.lines
    let second = Lines()
    var reader = RecordReader()
    var sink = SharedSink(second.writer)
    for line in lines { reader.scan(Array(line.utf8).rawBytes) }
    for line in lines { try reader.read(Array(line.utf8).rawBytes, into: &sink) }
    let others = second.lines
    #expect(others.count == lines.count)
    for (line, other) in zip(lines, others) where line != other {
      Issue.record("\(line.prefix(600))\nis read as\n\(other.prefix(600))")
    }
  }
}
