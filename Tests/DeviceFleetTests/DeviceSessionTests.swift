import Bytes
import DeviceProtocol
import Measurement
import TestSupport
import Testing

@testable import DeviceFleet

/// A device and what it says and tells, event by event.
struct Conversation: ~Copyable {
  var session: DeviceSession
  var tools: SessionTools

  init(
    topics: [String] = ["a"], device: UInt64 = 7, seed: UInt64? = nil, acknowledges: Bool = true,
    hasLowPower: Bool = false, longestMessage: Int = 64 << 10
  ) {
    session = DeviceSession(
      device: device, apps: topics.count, hasLowPower: hasLowPower, acknowledges: acknowledges)
    var rules = FleetRules(topics: topics)
    (rules.tokenSeed, rules.longestMessage) = (seed, longestMessage)
    tools = SessionTools(rules)
  }

  /// Bytes that the device has written since the last call.
  mutating func said() throws -> [DeviceMessage] {
    let bytes = Array(copying: tools.output.bytes)
    tools.output.removeAll()
    return try messages(in: bytes)
  }

  mutating func told() -> [SessionEvent] { tools.takeEvents() }

  mutating func hear(_ messages: DeviceMessage...) {
    hear(written { for message in messages { message.write(to: &$0) } })
  }

  mutating func hear(_ bytes: [UInt8]) { session.receive(bytes.rawBytes, &tools) }

  mutating func connect() { session.connected(&tools) }

  /// Registers all apps, and is online.
  mutating func comeOnline(token: [UInt8] = [1, 2]) throws {
    connect()
    for topic in tools.rules.topics {
      hear(.registered(.init(device: session.device, topic: topic, token: token)))
    }
    _ = try said()
    _ = told()
  }
}

/// Whole messages of the device channel.
func messages(in bytes: [UInt8]) throws -> [DeviceMessage] {
  var (framing, reader) = (MessageFraming(order: .bigEndian), DeviceMessageReader())
  var (start, found) = (0, [DeviceMessage]())
  while let body = try framing.next(bytes.rawBytes.extracting(start...)) {
    found.append(try reader.read(bytes.rawBytes.extracting(start + body.lowerBound..<start + body.upperBound)))
    start += body.upperBound
  }
  #expect(start == bytes.count)
  return found
}

func delivery(_ sequence: UInt64, token: [UInt8] = [1, 2], topic: String = "a") -> DeviceMessage.Delivery {
  .init(token: token, topic: topic, sequence: sequence, payload: [1], sent: 5)
}

/// One device and its gateway, message by message.
@Suite("Session of a device")
struct DeviceSessionTests {
  @Test("A device registers its apps, says that it is online, and acknowledges what comes")
  func firstConnection() throws {
    var talk = Conversation(topics: ["a", "b"], hasLowPower: true)
    talk.connect()
    #expect(
      try talk.said() == [
        .register(.init(device: 7, topic: "a")), .register(.init(device: 7, topic: "b")),
      ])
    talk.hear(.registered(.init(device: 7, topic: "b", token: [2])))
    #expect(try talk.said() == [])
    talk.hear(.registered(.init(device: 7, topic: "a", token: [1])))
    #expect(
      try talk.said() == [
        .online(.init(apps: [.init(token: [1], topic: "a"), .init(token: [2], topic: "b")], hasLowPower: true))
      ])
    #expect(talk.told() == [.asked, .asked, .registered, .registered, .online])
    let first = delivery(3, token: [1])
    talk.hear(.deliver(first), .deliver(delivery(4, token: [1])), .deliver(delivery(1, token: [2], topic: "b")))
    #expect(talk.session.owesAcknowledgement)
    talk.session.acknowledge(&talk.tools)
    #expect(
      try talk.said() == [
        .acknowledge(token: [1], topic: "a", sequence: 4), .acknowledge(token: [2], topic: "b", sequence: 1),
      ])
    #expect(talk.told().prefix(1) == [.received(first)])
    #expect(!talk.session.owesAcknowledgement)
    talk.session.acknowledge(&talk.tools)
    #expect(try talk.said() == [])
  }

  @Test("The next connection begins with the tokens and sequences of the one before")
  func nextConnection() throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.deliver(delivery(9)))
    talk.session.disconnected()
    talk.connect()
    #expect(try talk.said() == [.online(.init(apps: [.init(token: [1, 2], topic: "a", received: 9)]))])
    #expect(!talk.session.owesAcknowledgement, "what came before is told by its sequence")
  }

  @Test("A sequence that is not above the last one is a duplicate, and acknowledged again", arguments: [4, 5])
  func duplicate(sequence: UInt64) throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.deliver(delivery(5)))
    talk.session.acknowledge(&talk.tools)
    _ = talk.told()
    _ = try talk.said()
    talk.hear(.deliver(delivery(sequence)))
    #expect(talk.told() == [.fault(.duplicate)])
    talk.session.acknowledge(&talk.tools)
    #expect(try talk.said() == [.acknowledge(token: [1, 2], topic: "a", sequence: 5)])
  }

  @Test("A token that is not the one of the seed is counted, and used all the same")
  func wrongToken() throws {
    var talk = Conversation(seed: 3)
    talk.connect()
    talk.hear(.registered(.init(device: 7, topic: "a", token: [9])))
    #expect(talk.told() == [.asked, .registered, .fault(.wrongToken), .online])
    var right = Conversation(seed: 3)
    right.connect()
    right.hear(.registered(.init(device: 7, topic: "a", token: MadeTokens(seed: 3)[7])))
    #expect(right.told() == [.asked, .registered, .online])
  }

  @Test("A restored device asks for tokens of its next generation, and has no notifications")
  func restored() throws {
    var talk = Conversation(seed: 3)
    try talk.comeOnline(token: MadeTokens(seed: 3)[7])
    talk.hear(.deliver(delivery(5, token: MadeTokens(seed: 3)[7])))
    talk.session.disconnected()
    talk.session.restore()
    talk.connect()
    #expect(try talk.said() == [.register(.init(device: 7, topic: "a", generation: 1))])
    let token = MadeTokens(seed: 3, generation: 1)[7]
    talk.hear(.registered(.init(device: 7, topic: "a", token: token)))
    #expect(try talk.said() == [.online(.init(apps: [.init(token: token, topic: "a")]))])
    #expect(!talk.told().contains(.fault(.wrongToken)))
  }

  @Test("A device that leaves acknowledges what it owes and says so, and hears nothing more")
  func leaving() throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.deliver(delivery(1)))
    talk.session.leave(&talk.tools)
    #expect(try talk.said() == [.acknowledge(token: [1, 2], topic: "a", sequence: 1), .offline(reason: nil)])
    _ = talk.told()
    talk.hear(.deliver(delivery(2)))
    #expect(talk.told() == [])
    talk.session.leave(&talk.tools)
    #expect(try talk.said() == [])
  }

  @Test("A device that never acknowledges owes nothing")
  func silent() throws {
    var talk = Conversation(acknowledges: false)
    try talk.comeOnline()
    talk.hear(.deliver(delivery(1)))
    #expect(!talk.session.owesAcknowledgement)
    talk.session.leave(&talk.tools)
    #expect(try talk.said() == [.offline(reason: nil)])
  }

  @Test("A changed token replaces the one that it names, and no other")
  func changedToken() throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.tokenChanged(.init(topic: "a", old: [8], new: [9])))
    talk.hear(.tokenChanged(.init(topic: "a", old: [1, 2], new: [9])))
    talk.hear(.deliver(delivery(1)), .deliver(delivery(2, token: [9])))
    #expect(
      talk.told() == [
        .fault(.unexpected), .tokenChanged, .fault(.unknownToken), .received(delivery(2, token: [9])),
      ])
  }

  @Test("An app that is refused a token does without, and a device without any goes")
  func refusedApps() throws {
    var talk = Conversation(topics: ["a", "b"])
    talk.connect()
    talk.hear(.refused(reason: .tooMany, topic: "b"), .registered(.init(device: 7, topic: "a", token: [1])))
    #expect(try talk.said().last == .online(.init(apps: [.init(token: [1], topic: "a")])))
    #expect(talk.told().contains(.refused(.tooMany)))
    var other = Conversation(topics: ["a", "b"])
    other.connect()
    other.hear(.refused(reason: .tooMany, topic: nil))
    #expect(other.told() == [.asked, .asked, .refused(.tooMany), .ends(.refused)])
    #expect(other.session.state == .ended)
  }

  @Test("A refused token is forgotten, and asked for on the next connection")
  func refusedToken() throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.deliver(delivery(4)), .refused(reason: .unknownToken, topic: "a"))
    #expect(talk.told().suffix(2) == [.refused(.unknownToken), .ends(.refused)])
    talk.session.disconnected()
    talk.connect()
    #expect(try talk.said() == [.register(.init(device: 7, topic: "a"))])
  }

  @Test("Refusals of a version and of an old generation end the connection, others do not")
  func refusals() throws {
    for reason in DeviceMessage.Refusal.allCases {
      var talk = Conversation()
      try talk.comeOnline()
      talk.hear(.refused(reason: reason, topic: nil))
      let ends = [.version, .environment, .oldGeneration, .unknownToken].contains(reason)
      #expect(talk.told() == [.refused(reason)] + (ends ? [.ends(.refused)] : []), "\(reason)")
    }
  }

  @Test("Messages that make no sense where they come change nothing and are counted")
  func unexpected() throws {
    var talk = Conversation()
    talk.connect()
    _ = talk.told()
    talk.hear(
      .deliver(delivery(1)), .registered(.init(device: 8, topic: "a", token: [1])),
      .registered(.init(device: 7, topic: "b", token: [1])), .registered(.init(device: 7, topic: "a", token: [])),
      .registered(.init(device: 7, topic: "a", token: Array(repeating: 1, count: 129))),
      .register(.init(device: 7, topic: "a")), .acknowledge(token: [1], topic: "a", sequence: 1))
    #expect(talk.told() == Array(repeating: .fault(.unexpected), count: 7))
    talk.hear(.registered(.init(device: 7, topic: "a", token: [1, 2])))
    talk.hear(.registered(.init(device: 7, topic: "a", token: [3])))
    #expect(talk.told() == [.registered, .online, .fault(.unexpected)])
    #expect(talk.session.apps == [.init(token: [1, 2])])
  }

  @Test("Unknown members are ignored, unknown and unreadable messages are counted and passed over")
  func unknown() throws {
    var talk = Conversation()
    talk.connect()
    func framed(_ text: String) -> [UInt8] { [0, 0, 0, UInt8(text.utf8.count)] + Array(text.utf8) }
    talk.hear(framed(#"{"message":"greeting","x":1}"#) + framed(#"{"message":"registered"}"#) + framed("{x}"))
    talk.hear(framed(#"{"message":"registered","device":7,"later":[{}],"topic":"a","token":"0102"}"#))
    #expect(
      talk.told() == [.asked, .fault(.unknownMessage), .fault(.unreadable), .fault(.unreadable), .registered, .online])
  }

  @Test("Bytes that are no message, or too long a one, end the connection")
  func framing() throws {
    for bytes: [UInt8] in [Array("HTTP/1.1 200 OK".utf8), [0, 0, 0, 5, 0x5b], [0, 0, 0, 0], [0, 0, 4, 1, 0x7b]] {
      var talk = Conversation(longestMessage: 1_024)
      try talk.comeOnline()
      talk.hear(bytes)
      #expect(talk.told() == [.fault(.framing), .ends(.message)], "\(bytes)")
      #expect(talk.session.pendingBytes == 0)
      talk.hear(.deliver(delivery(1)))
      #expect(talk.told() == [])
    }
  }

  @Test("When the gateway says that it goes, the device reads no further")
  func gatewayOffline() throws {
    var talk = Conversation()
    try talk.comeOnline()
    talk.hear(.offline(reason: "shutdown"), .deliver(delivery(1)))
    #expect(talk.told() == [.ends(.gatewayOffline)])
  }

  @Test("Pieces of any length make the same of what the gateway sends", arguments: seeds(10, of: 200))
  func pieces(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let bytes = written { output in
      DeviceMessage.registered(.init(device: 7, topic: "a", token: [1, 2])).write(to: &output)
      for sequence in 1...8 as ClosedRange<UInt64> {
        var notification = delivery(sequence)
        notification.payload = generator.bytes(generator.number(0...600))
        DeviceMessage.deliver(notification).write(to: &output)
      }
    }
    var whole = Conversation()
    var cut = Conversation()
    whole.connect()
    cut.connect()
    whole.hear(bytes)
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = rest.prefix(generator.happens(oneIn: 3) ? 1 : generator.number(1...700))
      cut.hear(Array(piece))
      rest = rest.dropFirst(piece.count)
    }
    let told = whole.told()
    #expect(told == cut.told() && told.count == 11)
    #expect(cut.session.pendingBytes == 0)
  }
}
