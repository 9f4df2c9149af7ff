import Bytes
import DeviceProtocol
import Measurement
import TestSupport
import Testing

@testable import DeviceFleet

/// A gateway in memory that keeps what is not acknowledged, as the documentation of the device channel says.
private struct KeepingGateway {
  struct App {
    var token: [UInt8]
    var sequence: UInt64 = 0
    /// What waits, and what was sent on this connection and is not acknowledged: contents by sequence.
    var waiting: [(content: Int, isRepeated: Bool)] = []
    var sent: [(sequence: UInt64, content: Int)] = []
    var delivered: [Int] = []
  }

  private(set) var apps: [String: App] = [:]
  private(set) var isOnline = false
  private var pending: [UInt8] = []
  private(set) var output: [UInt8] = []
  let seed: UInt64

  init(seed: UInt64) { self.seed = seed }

  mutating func push(_ content: Int, topic: String) {
    apps[topic]?.waiting.append((content, false))
    flush()
  }

  /// Notifications that are not acknowledged wait again when the connection ends.
  mutating func disconnected() {
    (isOnline, pending, output) = (false, [], [])
  }

  mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  mutating func receive(_ bytes: [UInt8]) throws {
    pending += bytes
    var (framing, reader) = (MessageFraming(order: .bigEndian), DeviceMessageReader())
    while let body = try framing.next(pending.rawBytes) {
      let message = try reader.read(pending.rawBytes.extracting(body))
      pending.removeFirst(body.upperBound)
      try take(message)
    }
  }

  private mutating func take(_ message: DeviceMessage) throws {
    switch message {
    case .register(let registration):
      let token = MadeTokens(seed: seed, generation: registration.generation)[registration.device]
      if apps[registration.topic]?.token != token { apps[registration.topic] = App(token: token) }
      say(.registered(.init(device: registration.device, topic: registration.topic, token: token)))
    case .online(let online):
      for app in online.apps {
        settle(app.topic, upTo: app.received)
        let left = apps[app.topic]?.sent.map { ($0.content, true) } ?? []
        apps[app.topic]?.waiting.insert(contentsOf: left, at: 0)
        apps[app.topic]?.sent = []
      }
      isOnline = true
      flush()
    case .acknowledge(_, let topic, let sequence): settle(topic, upTo: sequence)
    case .offline: isOnline = false
    default: Issue.record("a device said \(message)")
    }
  }

  private mutating func settle(_ topic: String, upTo sequence: UInt64) {
    guard var app = apps[topic] else { return }
    app.delivered += app.sent.filter { $0.sequence <= sequence }.map(\.content)
    app.sent.removeAll { $0.sequence <= sequence }
    apps[topic] = app
  }

  private mutating func flush() {
    guard isOnline else { return }
    for topic in apps.keys.sorted() {
      guard var app = apps[topic] else { continue }
      for (content, isRepeated) in app.waiting {
        app.sequence += 1
        app.sent.append((app.sequence, content))
        say(
          .deliver(
            .init(
              token: app.token, topic: topic, sequence: app.sequence, payload: Array("\(content)".utf8), sent: 0,
              isRepeated: isRepeated)))
      }
      app.waiting = []
      apps[topic] = app
    }
  }

  private mutating func say(_ message: DeviceMessage) { output += written { message.write(to: &$0) } }
}

/// Connections that end at any byte, in either direction.
@Suite("Sessions that are interrupted")
struct InterruptedSessionTests {
  @Test(
    "Nothing is received twice, and whatever was acknowledged was received, wherever connections end",
    arguments: seeds(100, of: 1_000))
  func law(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let topics = generator.happens(oneIn: 2) ? ["a"] : ["a", "b", "c"]
    var talk = Conversation(topics: topics, seed: seed)
    var gateway = KeepingGateway(seed: seed)
    var received: [String: [Int]] = [:]
    var (pushed, content) = ([String: [Int]](), 0)
    let connections = generator.number(2...12)
    for connection in 1...connections {
      talk.connect()
      // Bytes that get through before the connection ends; the last connection stays until all is quiet.
      let isLast = connection == connections
      var (toGateway, toDevice) = (
        isLast ? Int.max : generator.number(0...900), isLast ? Int.max : generator.number(0...1_500)
      )
      var quiet = 0
      while toGateway > 0, toDevice > 0, quiet < 3 {
        if generator.happens(oneIn: 3), content < 200,
          let topic = gateway.apps.keys.sorted().randomElement(using: &generator)
        {
          content += 1
          pushed[topic, default: []].append(content)
          gateway.push(content, topic: topic)
        }
        let up = Array(copying: talk.tools.output.bytes).prefix(toGateway)
        talk.tools.output.removeAll()
        toGateway -= up.count
        try gateway.receive(Array(up))
        let down = gateway.takeOutput().prefix(toDevice)
        toDevice -= down.count
        talk.hear(Array(down))
        if generator.happens(oneIn: 2) || isLast { talk.session.acknowledge(&talk.tools) }
        for event in talk.told() {
          switch event {
          case .received(let delivery):
            received[delivery.topic, default: []].append(Int(String(decoding: delivery.payload, as: UTF8.self)) ?? -1)
          case .fault(let fault): Issue.record("\(fault)")
          default: break
          }
        }
        quiet = up.isEmpty && down.isEmpty ? quiet + 1 : 0
        if quiet >= 3, !isLast { break }
      }
      if generator.happens(oneIn: 4), !isLast, toGateway > 0 {
        // Nothing is missing before what it says last, of which any part gets through.
        talk.session.leave(&talk.tools)
        let last = Array(copying: talk.tools.output.bytes)
        try gateway.receive(Array(last.prefix(generator.number(0...last.count))))
      }
      if isLast { break }
      talk.tools.output.removeAll()
      _ = talk.told()
      talk.session.disconnected()
      gateway.disconnected()
    }
    for topic in topics {
      let (mine, books) = (received[topic] ?? [], gateway.apps[topic]?.delivered ?? [])
      #expect(Set(mine).count == mine.count, "received twice")
      #expect(Set(books).isSubset(of: mine), "acknowledged and not received")
      // The last connection was not interrupted: everything has come, and the gateway knows.
      #expect(Set(mine) == Set(pushed[topic] ?? []))
      #expect(Set(books) == Set(mine))
    }
  }
}
