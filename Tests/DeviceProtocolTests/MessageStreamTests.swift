import Bytes
import DeviceProtocol
import TestSupport
import Testing

/// Messages of recorded directions: in any pieces, behind losses, and among bytes that are none.
@Suite("Streams of messages")
struct MessageStreamTests {
  typealias Event = MessageStream.Event

  /// A direction as it was sent: its bytes, and where its messages are.
  struct Direction: Sendable {
    var kind: MessageProtocol
    var bytes: [UInt8] = []
    var messages: [Event] = []

    init(_ kind: MessageProtocol) { self.kind = kind }

    mutating func send(_ message: ObservedMessage, _ order: MessageFraming.ByteOrder) {
      var writer = ByteWriter()
      switch message {
      case .device(let message): message.write(to: &writer)
      case .localPush(let message): message.write(order, to: &writer)
      }
      messages.append(.message(message, at: bytes.count..<bytes.count + writer.count))
      bytes += Array(copying: writer.bytes)
    }

    mutating func send(body: String) {
      let length = UInt32(body.utf8.count)
      bytes += (0..<4).reversed().map { UInt8(truncatingIfNeeded: length >> (8 * UInt32($0))) } + Array(body.utf8)
    }
  }

  static func devices() -> Direction {
    var direction = Direction(.devices)
    let messages: [DeviceMessage] = [
      .registered(.init(device: 3, topic: "com.example.app", token: [1, 2])),
      .deliver(
        .init(
          token: [1, 2], topic: "com.example.app", sequence: 1, payload: [UInt8](repeating: 0x61, count: 300), sent: 5)),
      .acknowledge(token: [1, 2], topic: "com.example.app", sequence: 1),
      .refused(reason: .unknownToken, topic: nil), .offline(reason: "end"),
    ]
    for message in messages { direction.send(.device(message), .bigEndian) }
    return direction
  }

  static func localPush(_ order: MessageFraming.ByteOrder) -> Direction {
    var direction = Direction(.localPush)
    let (one, other) = (
      LocalPushMessage.User(identifier: "1", deviceName: "a"), LocalPushMessage.User(identifier: "2", deviceName: "b")
    )
    let messages = [
      LocalPushMessage(request: 1, .user(one)), LocalPushMessage(acknowledging: 7),
      LocalPushMessage(request: 2, .text(String(repeating: "x", count: 200), from: one, to: other)),
      LocalPushMessage(request: 3, .heartbeat(count: 9)), LocalPushMessage(request: 4, .other(key: 200, [0, 1, 2])),
    ]
    for message in messages { direction.send(.localPush(message), order) }
    return direction
  }

  static let directions = [devices(), localPush(.littleEndian), localPush(.bigEndian)]

  /// Reads pieces; a piece without bytes is a gap.
  static func read(
    _ kind: MessageProtocol, _ pieces: [(bytes: [UInt8], gap: Int)], isFromStart: Bool = true, isWhole: Bool = true,
    longestBody: Int = 64 << 10
  ) -> [Event] {
    var stream = MessageStream(kind, isFromStart: isFromStart, longestBody: longestBody)
    var events: [Event] = []
    for piece in pieces {
      if piece.gap > 0 {
        stream.gap(piece.gap) { events.append($0) }
      } else {
        stream.read(piece.bytes.rawBytes) { events.append($0) }
      }
      #expect(stream.heldBytes <= 2 * (longestBody + 4) + piece.bytes.count)
    }
    stream.finish(isWhole: isWhole) { events.append($0) }
    return events
  }

  static func range(_ event: Event) -> Range<Int> {
    switch event {
    case .message(_, let range), .malformed(_, let range), .unread(_, let range): range
    }
  }

  /// Whether the events have each byte once, in order, but those that are missing.
  static func isComplete(_ events: [Event], _ count: Int, missing: Range<Int>? = nil) -> Bool {
    var next = 0
    for range in events.map(range) {
      if next == missing?.lowerBound { next = missing?.upperBound ?? next }
      guard range.lowerBound == next, !range.isEmpty else { return false }
      next = range.upperBound
    }
    if next == missing?.lowerBound { next = missing?.upperBound ?? next }
    return next == count
  }

  private static func cut(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [(bytes: [UInt8], gap: Int)] {
    var (pieces, start): ([(bytes: [UInt8], gap: Int)], Int) = ([], 0)
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 1...90, using: &random))
      pieces.append((Array(bytes[start..<end]), 0))
      start = end
    }
    return pieces
  }

  @Test("Pieces of any lengths give the same messages", arguments: directions)
  func pieces(direction: Direction) {
    for seed in 0..<100 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      #expect(Self.read(direction.kind, Self.cut(direction.bytes, &random)) == direction.messages, "seed \(seed)")
    }
    #expect(Self.read(direction.kind, direction.bytes.map { ([$0], 0) }) == direction.messages)
  }

  @Test("A gap takes the messages that it touches, and no other one", arguments: directions)
  func gaps(direction: Direction) {
    let count = direction.bytes.count
    for seed in 0..<400 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let start = Int.random(in: 0..<count, using: &random)
      let missing = start..<min(count, start + Int.random(in: 1...200, using: &random))
      let events = Self.read(
        direction.kind,
        Self.cut(Array(direction.bytes[..<start]), &random) + [([], missing.count)]
          + Self.cut(Array(direction.bytes[missing.upperBound...]), &random))
      let whole = direction.messages.filter { !Self.range($0).overlaps(missing) }
      let found = events.filter { if case .message = $0 { true } else { false } }
      #expect(found == whole && Self.isComplete(events, count, missing: missing), "seed \(seed)")
      #expect(events.count { if case .malformed = $0 { true } else { false } } == 0)
    }
  }

  @Test("A message behind a gap needs another one or the end of the direction", arguments: directions)
  func proof(direction: Direction) throws {
    let last = try #require(direction.messages.last)
    let range = Self.range(last)
    let pieces: [(bytes: [UInt8], gap: Int)] = [([], 5), (Array(direction.bytes[range]), 0)]
    let at = 5..<5 + range.count
    #expect(Self.read(direction.kind, pieces, isWhole: false) == [.unread(.gap, at: at)])
    guard case .message(let message, _) = last else { return }
    #expect(Self.read(direction.kind, pieces) == [.message(message, at: at)])
  }

  @Test("A direction that was recorded from within a message is read from the next one on", arguments: directions)
  func middle(direction: Direction) {
    for start in 1..<direction.bytes.count {
      let events = Self.read(direction.kind, [(Array(direction.bytes[start...]), 0)], isFromStart: false)
      let expected = direction.messages.filter { Self.range($0).lowerBound >= start }.count
      #expect(events.count { if case .message = $0 { true } else { false } } == expected, "from \(start)")
      #expect(Self.isComplete(events, direction.bytes.count - start))
    }
  }

  @Test("A direction that ends within a message leaves it unread")
  func end() throws {
    let direction = Self.devices()
    let last = Self.range(try #require(direction.messages.last))
    let events = Self.read(.devices, [(Array(direction.bytes.dropLast()), 0)])
    #expect(events == direction.messages.dropLast() + [.unread(.end, at: last.lowerBound..<last.upperBound - 1)])
  }

  @Test("Bodies that are no message are malformed, and reading goes on behind them")
  func malformed() {
    var direction = Direction(.devices)
    direction.send(body: #"{"message":"later"}"#)
    direction.send(body: #"{"message":"offline" }}"#)
    direction.send(body: #"{"message":"acknowledge","token":"0g","topic":"a","sequence":1}"#)
    direction.send(.device(.offline(reason: nil)), .bigEndian)
    #expect(
      Self.read(.devices, [(direction.bytes, 0)]) == [
        .malformed(.unknown("later"), at: 0..<23), .malformed(.json(offset: 22), at: 23..<50),
        .malformed(.member("token"), at: 50..<117), .message(.device(.offline(reason: nil)), at: 117..<142),
      ])
  }

  @Test("Bytes among messages that begin none are unread, and the next messages are found", arguments: directions)
  func framing(direction: Direction) {
    var expected = direction.messages
    let garbage = Array("GET / HTTP/1.1\r\n\r\n".utf8)
    expected.append(.unread(.framing, at: direction.bytes.count..<direction.bytes.count + garbage.count))
    let shift = direction.bytes.count + garbage.count
    for case .message(let message, let range) in direction.messages {
      expected.append(.message(message, at: range.lowerBound + shift..<range.upperBound + shift))
    }
    let bytes = direction.bytes + garbage + direction.bytes
    #expect(Self.read(direction.kind, [(bytes, 0)]) == expected)
    #expect(Self.read(direction.kind, bytes.map { ([$0], 0) }) == expected)
  }

  @Test("Damaged streams have each byte in one event, the same for any pieces", arguments: directions)
  func damage(direction: Direction) {
    for seed in 0..<200 as Range<UInt64> {
      let isWhole = seed % 2 == 0
      var random = SeededGenerator(seed: seed)
      var bytes = direction.bytes + direction.bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: place)
        default: bytes.insert(contentsOf: [0, 0, 0, 40, 0x7b], at: place)
        }
      }
      let whole = Self.read(direction.kind, [(bytes, 0)], isWhole: isWhole, longestBody: 1024)
      #expect(Self.isComplete(whole, bytes.count), "seed \(seed)")
      #expect(
        Self.read(direction.kind, Self.cut(bytes, &random), isWhole: isWhole, longestBody: 1024) == whole,
        "seed \(seed)")
    }
  }
}

/// Protocols told by the first bytes of a direction.
@Suite("Recognition of messages")
struct MessageProtocolTests {
  private static func recognition(_ bytes: [UInt8], isFinal: Bool = false) -> MessageProtocol.Verdict {
    MessageProtocol.recognition(of: bytes.rawBytes, isFinal: isFinal)
  }

  private static func framed(_ body: String) -> [UInt8] {
    var direction = MessageStreamTests.Direction(.devices)
    direction.send(body: body)
    return direction.bytes
  }

  @Test(
    "Beginnings of conversations are recognised with their first whole message",
    arguments: MessageStreamTests.directions)
  func prefixes(direction: MessageStreamTests.Direction) throws {
    let first = MessageStreamTests.range(try #require(direction.messages.first)).upperBound
    for length in 0..<direction.bytes.count {
      let bytes = Array(direction.bytes[..<length])
      #expect(Self.recognition(bytes) == (length < first ? .needsMore : .yes(direction.kind)), "\(length) bytes")
      #expect(Self.recognition(bytes, isFinal: true) == (length < first ? .no : .yes(direction.kind)))
    }
  }

  @Test(
    "Other protocols are never taken for messages",
    arguments: [
      Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8),
      Array("SSH-2.0-OpenSSH_9.6\r\n".utf8), Array("220 mail.example.com ESMTP\r\n".utf8),
      Array(#"{"message":"register","version":1,"device":1,"topic":"a"}"#.utf8),
      // SETTINGS of HTTP/2, a handshake of TLS, notifications and an error response of the binary protocol, BSON.
      [0, 0, 0, 4, 0, 0, 0, 0, 0], [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
      [0, 0, 32] + [UInt8](repeating: 7, count: 32),
      [2, 0, 0, 0, 60, 1, 0, 32] + [UInt8](repeating: 7, count: 60), [8, 8, 0, 0, 0, 1],
      [22, 0, 0, 0, 2, 104, 101, 108, 108, 111, 0],
    ] as [[UInt8]])
  func others(bytes: [UInt8]) {
    #expect(Self.recognition(bytes) == .no)
    #expect(Self.recognition(bytes, isFinal: true) == .no)
  }

  @Test(
    "Objects that others send behind a length are not taken for messages",
    arguments: [
      #"{"jsonrpc":"2.0","method":"register","id":1}"#, #"{"message":"hello","device":1}"#, "{}",
      #"{"message":"offline"}"#, #"{"message":"refused","reason":"message"}"#, #"{"command":"request"}"#,
      #"{"command":"publish","requestIdentifier":1}"#, #"{"message":"register","version":"1","device":1,"topic":"a"}"#,
      #"{"message":"register","version":1,"device":1,"topic":"a","command":"acknowledge","requestIdentifier":1}"#,
    ])
  func objects(body: String) { #expect(Self.recognition(Self.framed(body)) == .no) }

  @Test("An object with white space behind it is recognised when its length is reached")
  func whiteSpace() {
    var direction = MessageStreamTests.Direction(.devices)
    direction.send(body: #"{"message":"registered","device":1,"topic":"a","token":"01"}"# + " \n")
    for missing in 1...3 { #expect(Self.recognition(Array(direction.bytes.dropLast(missing))) == .needsMore) }
    #expect(Self.recognition(direction.bytes) == .yes(.devices))
  }

  @Test("A body whose beginning is no JSON is refused before its end")
  func beginnings() {
    let body = "{" + String(repeating: "\u{0}", count: 40)
    #expect(Self.recognition([0, 0, 16, 0] + Array(body.utf8)) == .no)
  }
}
