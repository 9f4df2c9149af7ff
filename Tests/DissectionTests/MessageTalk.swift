import Bytes
import DeviceProtocol
import TestSupport

@testable import Dissection
@testable import Records

/// What both ends of a connection of the device channel or of local push write, message by message.
struct MessageTalk {
  struct Word {
    var isClient: Bool
    var message: ObservedMessage
    var bytes: [UInt8]
  }

  let kind: MessageProtocol
  private(set) var words: [Word] = []

  init(_ kind: MessageProtocol) { self.kind = kind }

  mutating func device(_ message: DeviceMessage, isClient: Bool) {
    words.append(
      Word(isClient: isClient, message: .device(message), bytes: written { message.write(to: &$0) }))
  }

  mutating func localPush(_ message: LocalPushMessage, isClient: Bool) {
    words.append(
      Word(isClient: isClient, message: .localPush(message), bytes: written { message.write(to: &$0) }))
  }

  /// All bytes of an end.
  func bytes(isClient: Bool) -> [UInt8] { words.filter { $0.isClient == isClient }.flatMap(\.bytes) }

  static let token = Array(repeating: UInt8(0x0f), count: 32)
  static let topic = "com.example.tide"

  /// A device that registers, comes online, and acknowledges notifications.
  static func devices(_ random: inout SeededGenerator, notifications: Int = 5) -> MessageTalk {
    var talk = MessageTalk(.devices)
    let device = UInt64(random.number(0...9_999))
    let token = random.bytes(32)
    talk.device(
      .register(.init(device: device, topic: topic, language: random.pick(["", "de", "en-GB"]))), isClient: true)
    talk.device(.registered(.init(device: device, topic: topic, token: token)), isClient: false)
    talk.device(
      .online(
        .init(
          apps: [.init(token: token, topic: topic, received: UInt64(random.number(0...3)))],
          hasLowPower: random.happens(oneIn: 3))), isClient: true)
    var sequence: UInt64 = 3
    for number in 0..<notifications {
      sequence += UInt64(random.number(1...3))
      talk.device(
        .deliver(
          .init(
            token: token, topic: topic, sequence: sequence, payload: Array(#"{"aps":{"alert":"\#(number)"}}"#.utf8),
            priority: random.pick([10, 5, 1]), pushType: random.pick([nil, "alert", "background"]),
            expiration: random.pick([nil, 0, .max]), collapseID: random.pick([nil, "c\"1"]),
            sent: 1_450_000_000_000_000_000 + Int64(number), isStored: random.happens(oneIn: 2),
            isRepeated: random.happens(oneIn: 4))), isClient: false)
      if !random.happens(oneIn: 3) {
        talk.device(.acknowledge(token: token, topic: topic, sequence: sequence), isClient: true)
      }
    }
    if random.happens(oneIn: 3) {
      talk.device(.tokenChanged(.init(topic: topic, old: token, new: random.bytes(32))), isClient: false)
    }
    if random.happens(oneIn: 3) { talk.device(.refused(reason: .replaced, topic: nil), isClient: false) }
    talk.device(.offline(reason: random.pick([nil, "off"])), isClient: true)
    return talk
  }

  /// A client that says who it is, and requests of both ends.
  static func localPush(_ random: inout SeededGenerator, requests: Int = 6) -> MessageTalk {
    var talk = MessageTalk(.localPush)
    let users = (0..<3).map { LocalPushMessage.User(identifier: "0000-\($0)", deviceName: "Deck \($0)") }
    talk.localPush(.init(request: 1, .user(users[0])), isClient: true)
    talk.localPush(.init(acknowledging: 1), isClient: false)
    for number in 0..<requests {
      let identifier = UInt32(10 + number)
      let contents: [LocalPushMessage.Content] = [
        .heartbeat(count: UInt64(number)), .text("m \(number)", from: users[1], to: users[0]),
        .invite(from: users[1], to: users[0]), .callAction("answer", of: users[1]), .directory(users), .directory([]),
        .other(key: 9, Array(#"{"x": 1}"#.utf8)), .other(key: 3, [0xff, 0]), .other(key: 200, []),
      ]
      let isClient = random.happens(oneIn: 2)
      talk.localPush(.init(request: identifier, random.pick(contents)), isClient: isClient)
      if !random.happens(oneIn: 3) { talk.localPush(.init(acknowledging: identifier), isClient: !isClient) }
    }
    return talk
  }

  static func any(_ random: inout SeededGenerator) -> MessageTalk {
    random.happens(oneIn: 2) ? devices(&random) : localPush(&random)
  }

  /// A capture of it: pieces of at most `size` bytes, one packet each.
  func capture(
    port: UInt16 = 7_777, size: Int = 1_000_000, isFromStart: Bool = true, hasEnd: Bool = true
  ) -> CaptureBuilder {
    var capture = CaptureBuilder()
    let line = capture.connect(to: port, handshake: isFromStart)
    for word in words {
      for start in stride(from: 0, to: word.bytes.count, by: size) {
        let piece = Array(word.bytes[start..<min(start + size, word.bytes.count)])
        if word.isClient { capture.client(line, piece) } else { capture.server(line, piece) }
      }
    }
    if hasEnd { capture.finish(line) }
    return capture
  }
}

extension CaptureBuilder {
  /// One packet for each message.
  mutating func send(_ talk: MessageTalk, on line: Int) {
    for word in talk.words {
      if word.isClient { client(line, word.bytes) } else { server(line, word.bytes) }
    }
  }
}
