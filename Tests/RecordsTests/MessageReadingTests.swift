import Bytes
import DeviceProtocol
import PacketCapture
import TestSupport
import Testing

@testable import Records

/// Messages with any values, of which the extreme ones come often.
private struct AnyMessages {
  var random: SeededGenerator

  mutating func text() -> String {
    random.pick([
      "", "com.example.tide", "\u{1b}[31m\"\\\u{2028} é", "\u{0}", String(repeating: "k", count: 3_000), ",",
    ])
  }

  mutating func optionalText() -> String? { random.happens(oneIn: 2) ? nil : text() }

  mutating func number() -> UInt64 { random.pick([0, 1, UInt64(Int64.max), UInt64(random.number(0...9_999))]) }

  mutating func token() -> [UInt8] { random.bytes(random.pick([0, 1, 32, 400])) }

  mutating func payload() -> [UInt8] {
    switch random.number(0...5) {
    case 0: []
    case 1: Array(#"{"aps":{"alert":"x"}}"#.utf8)
    case 2: Array(("{ \"aps\" :" + String(repeating: " ", count: random.number(0...2_000)) + "{} }").utf8)
    case 3: random.bytes(random.number(1...900))
    case 4: Array("[1e999,-0.0,\"\\ud800\"]".utf8)
    default: Array(#""text""#.utf8)
    }
  }

  mutating func user() -> LocalPushMessage.User { .init(identifier: text(), deviceName: text()) }

  mutating func device() -> DeviceMessage {
    switch random.number(0...7) {
    case 0:
      .register(
        .init(
          version: random.pick([1, 0, -5, Int.max, Int.min]), device: number(), topic: text(),
          environment: random.pick(DeviceMessage.Registration.Environment.allCases), language: text(),
          generation: number()))
    case 1: .registered(.init(device: number(), topic: text(), token: token()))
    case 2:
      .online(
        .init(
          version: random.number(-1...3),
          apps: (0..<random.number(0...4)).map { _ in .init(token: token(), topic: text(), received: number()) },
          hasLowPower: random.happens(oneIn: 2)))
    case 3:
      .deliver(
        .init(
          token: token(), topic: text(), sequence: number(), payload: payload(),
          priority: UInt8(random.number(0...255)), pushType: optionalText(),
          expiration: random.pick([nil, 0, UInt32.max]), collapseID: optionalText(),
          sent: random.pick([0, -1, 1_795_578_551_123_456_789, Int64.max, Int64.min]),
          isStored: random.happens(oneIn: 2), isRepeated: random.happens(oneIn: 2)))
    case 4: .acknowledge(token: token(), topic: text(), sequence: number())
    case 5: .tokenChanged(.init(topic: text(), old: token(), new: token()))
    case 6: .offline(reason: optionalText())
    default: .refused(reason: random.pick(DeviceMessage.Refusal.allCases), topic: optionalText())
    }
  }

  mutating func localPush() -> LocalPushMessage {
    let content: LocalPushMessage.Content =
      switch random.number(0...6) {
      case 0: .invite(from: user(), to: user())
      case 1: .user(user())
      case 2: .callAction(text(), of: user())
      case 3: .text(text(), from: user(), to: user())
      case 4: .heartbeat(count: number())
      case 5: .directory((0..<random.number(0...3)).map { _ in user() })
      default: .other(key: UInt8(random.number(0...255)), payload())
      }
    var message = LocalPushMessage(
      request: random.pick([0, 7, .max]), content, sent: random.pick([nil, nil, 0, 1_795_578_551_123_456_789, .max]))
    // An acknowledgement usually has no content.
    if random.happens(oneIn: 3) { message.command = .acknowledge }
    if message.command == .acknowledge, random.happens(oneIn: 2) { message.content = nil }
    return message
  }

  mutating func record() -> MessageRecord {
    let place = RecordPlace(
      connection: 1, time: Timestamp(nanoseconds: 1_795_578_551_123_456_789), packet: random.number(1...99),
      offset: random.pick([0, 1 << 36]), length: random.number(6...70_000))
    let message: ObservedMessage = random.happens(oneIn: 2) ? .device(device()) : .localPush(localPush())
    return MessageRecord(message, at: place, random.pick([.client, .server]))
  }
}

/// Keeps messages.
private struct Messages: ConnectionSink {
  var records: [MessageRecord] = []
  var connections: [ConnectionRecord] = []
  var isOpen: Bool { true }
  mutating func receive(_ record: MessageRecord) { records.append(record) }
  mutating func receive(_ record: CaptureRecord) {}
  mutating func receive(_ record: ErrorResponseRecord) {}
  mutating func receive(_ record: borrowing FeedbackRecord) {}
  mutating func receive(_ record: GapRecord) {}
  mutating func receive(_ record: MalformedRecord) {}
  mutating func receive(_ record: ConnectionRecord) { connections.append(record) }
  mutating func receive(_ record: SummaryRecord) {}
}

@Suite("Records of messages to devices")
struct MessageReadingTests {
  @Test("What is written is read back as it was", arguments: seeds(60, of: 600))
  func readBack(seed: UInt64) throws {
    var any = AnyMessages(random: SeededGenerator(seed: seed))
    let records = (0..<any.random.number(1...12)).map { _ in any.record() }
    var text: [UInt8] = []
    let writer = JSONLinesWriter {
      text.append(copying: $0)
      return true
    }
    for record in records { writer.receive(record) }
    writer.flush()
    let lines = text.split(separator: UInt8(ascii: "\n")).map(Array.init)
    #expect(lines.count == records.count)
    var reader = RecordReader()
    var sink = SharedSink(Messages())
    for line in lines { reader.scan(line.rawBytes) }
    for line in lines { try reader.read(line.rawBytes, into: &sink) }
    reader.finish(into: &sink)
    // White space outside of strings may have moved within a payload.
    text = []
    for record in sink.sink.records { writer.receive(record) }
    writer.flush()
    let again = text.split(separator: UInt8(ascii: "\n")).map(Array.init)
    for (first, second) in zip(lines, again) where first != second {
      Issue.record("\(String(decoding: first, as: UTF8.self))\nis read as\n\(String(decoding: second, as: UTF8.self))")
    }
    #expect(again.count == lines.count)
    #expect(sink.sink.records.count == records.count && reader.summary.messages == records.count)
    // A connection without a record of its own has the messages that were found.
    #expect(sink.sink.connections.first?.messages == records.count)
  }

  @Test(
    "A line that lacks a field, or has a wrong one, is refused",
    arguments: [
      #"{"type":"device","connection":1,"kind":"deliver"}"#, #"{"type":"device","connection":1}"#,
      #"{"type":"device","connection":1,"kind":"acknowledge","token":"0g","topic":"t","sequence":1}"#,
      #"{"type":"device","connection":1,"kind":"acknowledge","token":"00","topic":"t","sequence":-1}"#,
      #"{"type":"device","connection":1,"kind":"online","tokens":["00"],"topics":["t"],"sequences":[]}"#,
      #"{"type":"device","connection":1,"kind":"refused","reason":"sulks"}"#,
      #"{"type":"device","connection":1,"kind":"sulks"}"#,
      #"{"type":"local_push","connection":1,"command":"ask","identifier":1}"#,
      #"{"type":"local_push","connection":1,"command":"request"}"#,
      #"{"type":"local_push","connection":1,"command":"request","identifier":1,"kind":"user"}"#,
      #"{"type":"local_push","connection":1,"command":"request","identifier":1,"kind":"directory","users":["a"]}"#,
    ])
  func refused(line: String) {
    var reader = RecordReader()
    var sink = SharedSink(Messages())
    #expect(throws: (any Error).self) { try reader.read(Array(line.utf8).rawBytes, into: &sink) }
    #expect(sink.sink.records.isEmpty && reader.summary.connections == 0)
  }
}
