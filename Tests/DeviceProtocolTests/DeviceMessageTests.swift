import Bytes
import DeviceProtocol
import TestSupport
import Testing

/// Messages of the device channel: written, and read as they were.
@Suite("Messages of the device channel")
struct DeviceMessageTests {
  static let token = [UInt8](0..<32)

  static let messages: [(DeviceMessage, String)] = [
    (
      .register(
        .init(device: 7, topic: "com.example.app", environment: .development, language: "de-AT", generation: 2)),
      #"{"message":"register","version":1,"device":7,"topic":"com.example.app","environment":"development","language":"de-AT","generation":2}"#
    ),
    (
      .registered(.init(device: 7, topic: "a\"b", token: [0xab, 0xcd])),
      #"{"message":"registered","device":7,"topic":"a\"b","token":"abcd"}"#
    ),
    (
      .online(
        .init(apps: [.init(token: [1], topic: "a", received: 9), .init(token: [2], topic: "b")], hasLowPower: true)),
      #"{"message":"online","version":1,"tokens":[{"token":"01","topic":"a","received":9},{"token":"02","topic":"b"}],"low_power":true}"#
    ),
    (.online(.init(apps: [])), #"{"message":"online","version":1,"tokens":[]}"#),
    (
      .deliver(
        .init(
          token: [0xff], topic: "a", sequence: 3, payload: Array("{}".utf8), priority: 5, pushType: "alert",
          expiration: 4_294_967_295, collapseID: "c", sent: 1_764_000_000_123_456_789, isStored: true, isRepeated: true)
      ),
      #"{"message":"deliver","token":"ff","topic":"a","sequence":3,"priority":5,"push_type":"alert","expiration":4294967295,"collapse_id":"c","sent_ns":1764000000123456789,"stored":true,"repeated":true,"payload":"e30="}"#
    ),
    (
      .deliver(.init(token: [1], topic: "a", sequence: 1, payload: [0, 255], sent: 0)),
      #"{"message":"deliver","token":"01","topic":"a","sequence":1,"priority":10,"sent_ns":0,"stored":false,"payload":"AP8="}"#
    ),
    (
      .acknowledge(token: [1], topic: "a", sequence: 12),
      #"{"message":"acknowledge","token":"01","topic":"a","sequence":12}"#
    ),
    (
      .tokenChanged(.init(topic: "a", old: [1], new: [2])),
      #"{"message":"token_changed","topic":"a","old":"01","new":"02"}"#
    ),
    (.offline(reason: nil), #"{"message":"offline"}"#),
    (.offline(reason: "shutdown"), #"{"message":"offline","reason":"shutdown"}"#),
    (.refused(reason: .tooMany, topic: "a"), #"{"message":"refused","reason":"too_many","topic":"a"}"#),
    (.refused(reason: .version, topic: nil), #"{"message":"refused","reason":"version"}"#),
  ]

  @Test("Each message is the text that the documentation gives", arguments: messages.indices)
  func text(place: Int) throws {
    let (message, text) = Self.messages[place]
    #expect(String(decoding: written { message.writeBody(to: &$0) }, as: UTF8.self) == text)
    var reader = DeviceMessageReader()
    #expect(try reader.read(Array(text.utf8).rawBytes) == message)
    #expect(text.contains("\"message\":\"\(message.name)\""))
  }

  @Test("A message has its length in network order in front of it")
  func framed() throws {
    for (message, text) in Self.messages {
      let bytes = written { message.write(to: &$0) }
      #expect(Array(bytes[..<4]) == [0, 0, UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)])
      #expect(bytes.count == 4 + text.utf8.count)
    }
  }

  @Test("A member that is not known changes nothing")
  func unknownMembers() throws {
    var reader = DeviceMessageReader()
    for (message, text) in Self.messages {
      let more = text.dropLast() + #","later":{"x":[1,{}]}}"#
      #expect(try reader.read(Array(more.utf8).rawBytes) == message)
    }
  }

  @Test("A device can have had no more than JSON can count on")
  func received() throws {
    var reader = DeviceMessageReader()
    for (number, isRead) in [("9007199254740992", true), ("9007199254740993", false), ("9223372036854775807", false)] {
      let text = #"{"message":"online","version":1,"tokens":[{"token":"01","topic":"a","received":\#(number)}]}"#
      switch try read(text, &reader) {
      case .success: #expect(isRead, "\(number)")
      case .failure(let error): #expect(!isRead && error == .member("received"), "\(number): \(error)")
      }
    }
  }

  @Test("Each member that is left out, or of another kind, is named, or has the meaning that it has when it is absent")
  func members() throws {
    var reader = DeviceMessageReader()
    /// Members that may be missing.
    let optional: Set = [
      "environment", "language", "generation", "low_power", "push_type", "expiration", "collapse_id", "stored",
      "repeated",
      "reason", "topic",
    ]
    for (_, text) in Self.messages {
      for key in text.matches(of: /"([a-z_]+)":/).map({ String($0.1) }) {
        let without = text.replacing("\"\(key)\":", with: "\"other\":")
        let changed = try read(without, &reader)
        if case .failure(let error) = changed {
          #expect(error == .member(key) || error == .member("tokens"), "\(text) without \(key): \(error)")
        } else {
          #expect(optional.contains(key) || key == "received", "\(text) without \(key)")
        }
        let other = text.replacing(
          try Regex("\"\(key)\":(\"(?:[^\"\\\\]|\\\\.)*\"|[0-9]+|true|false)"), with: "\"\(key)\":[]")
        guard other != text else { continue }
        guard case .failure(let error) = try read(other, &reader) else {
          Issue.record("\(other) is read")
          continue
        }
        #expect(error == .member(key) || error == .member("tokens"), "\(other): \(error)")
      }
    }
  }

  private func read(
    _ text: String, _ reader: inout DeviceMessageReader
  ) throws -> Result<DeviceMessage, MessageError> {
    do { return .success(try reader.read(Array(text.utf8).rawBytes)) } catch let error as MessageError {
      return .failure(error)
    }
  }

  @Test(
    "Text that is no message is told with its place",
    arguments: [
      ("[]", .json(offset: 0)), (#"{"message":"deliver""#, .json(offset: 20)), ("{}", .member("message")),
      (#"{"message":"heartbeat"}"#, .unknown("heartbeat")),
      (#"{"message":"acknowledge","token":"0","topic":"a","sequence":1}"#, .member("token")),
      (#"{"message":"acknowledge","token":"00","topic":"a","sequence":-1}"#, .member("sequence")),
      (#"{"message":"acknowledge","token":"00","topic":"a","sequence":99999999999999999999}"#, .member("sequence")),
      (#"{"message":"refused","reason":"mood"}"#, .member("reason")),
    ] as [(String, MessageError)])
  func faults(text: String, error: MessageError) {
    var reader = DeviceMessageReader()
    #expect(throws: error) { try reader.read(Array(text.utf8).rawBytes) }
  }

  @Test("Random bytes and damaged messages never stop the reader")
  func damaged() {
    var reader = DeviceMessageReader()
    for seed in 0..<300 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var bytes = Array((Self.messages.randomElement(using: &random)?.1 ?? "").utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if let message = try? reader.read(bytes.rawBytes) {
        // What is read says the same when it is written.
        let again = written { message.writeBody(to: &$0) }
        #expect((try? reader.read(again.rawBytes)) == message)
      }
    }
  }
}
