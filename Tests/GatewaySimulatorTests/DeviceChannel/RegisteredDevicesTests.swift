import Bytes
import DeviceProtocol
import TestSupport
import Testing

@testable import GatewaySimulator

/// The rules of delivery to registered devices, whatever ends when.
@Suite("Registered devices")
struct RegisteredDevicesTests {
  private static func options(_ change: (inout DeviceChannel) -> Void = { _ in }) -> DeviceChannel {
    var options = DeviceChannel(address: .init(host: "", port: 0))
    change(&options)
    return options
  }

  // MARK: laws

  /// Devices come and go, connections lose what is under way, for 400 steps.
  private static func run(_ seed: UInt64, advancing: Bool = false) -> ChannelWorld {
    var random = SeededGenerator(seed: seed)
    // Times of its own, so that both worlds have the same steps.
    var extra = SeededGenerator(seed: seed &+ 1)
    var world = ChannelWorld(
      options {
        $0.maximumUnacknowledged = Int.random(in: 1...4, using: &random)
        if Bool.random(using: &random) { $0.delivery.window = .milliseconds(Int.random(in: 1...5_000, using: &random)) }
        if Bool.random(using: &random) { $0.delivery.backgroundBudget = Int.random(in: 0...3, using: &random) }
      }, devices: 4)
    let names: [[UInt8]] = [[], [], [1], [2]]
    for _ in 0..<400 {
      let device = Int.random(in: 0..<4, using: &random)
      let time = Int64.random(in: 0...(Int.random(in: 0..<40, using: &random) == 0 ? 90_000_000 : 300), using: &random)
      if advancing {
        for step in (0..<3).map({ _ in Int64.random(in: 0...time, using: &extra) }).sorted() {
          world.gateway.advance(to: world.now + step)
        }
      }
      world.wait(time)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9:
        let expiration: UInt32? = [nil, nil, 0, UInt32(world.now / 1_000) + 1].randomElement(using: &random) ?? nil
        world.push(
          Int.random(in: 0..<8, using: &random), collapseID: names.randomElement(using: &random) ?? [],
          expiration: expiration, priority: [10, 10, 5, 1].randomElement(using: &random) ?? 10,
          isBackground: Int.random(in: 0..<4, using: &random) == 0)
      case 9..<12: world.connect(device, hasLowPower: Int.random(in: 0..<4, using: &random) == 0)
      case 12: world.disconnect(device, delivering: Int.random(in: 0...6, using: &random))
      case 13..<16: world.deliver(device, Int.random(in: 0...3, using: &random))
      case 16..<18: world.acknowledge(device)
      case 18: world.say(device, Bool.random(using: &random))
      default: if Int.random(in: 0..<6, using: &random) == 0 { world.restore(device) }
      }
    }
    return world
  }

  @Test("A device gets nothing twice, and each outcome is that of the device, in 300 runs")
  func outcomes() {
    var seen: [DeviceOutcome.Kind: Int] = [:]
    for seed in 0..<300 as Range<UInt64> {
      var world = Self.run(seed)
      world.close()
      #expect(world.problems == [], "seed \(seed)")
      for push in world.sent {
        let word = Comment(
          rawValue: "seed \(seed): notification \(push.index) has \(push.outcomes), \(push.receivedAt)")
        #expect(push.receivedAt.count <= 1, word)
        #expect(push.outcomes.count == 1, word)
        guard let (kind, time) = push.outcomes.first else { continue }
        seen[kind, default: 0] += 1
        switch kind {
        case .delivered: #expect(push.receivedAt.count == 1, word)
        // It may be under way, or its acknowledgement.
        case .stored: break
        case .coalesced:
          #expect(push.receivedAt == [], word)
          let later = world.sent.filter {
            $0.index > push.index && $0.token == push.token && $0.topic == push.topic
              && $0.collapseID == push.collapseID
              && $0.time <= time
          }
          #expect(!later.isEmpty, word)
          if push.collapseID == [] { #expect(world.wasAway(push.token, from: push.time, to: time), word) }
        case .expired:
          #expect(push.receivedAt == [], word)
          let end = push.expiration == 0 ? push.time : push.expiration.map { Int64($0) * 1_000 } ?? .max
          #expect(time > min(end, push.time + 28 * 86_400_000) || push.expiration == 0, word)
        case .dropped: #expect(push.receivedAt == [] && !world.apps.contains { $0.token == push.token }, word)
        case .uninstalled: Issue.record(word)
        }
      }
    }
    for kind in [.delivered, .stored, .coalesced, .expired, .dropped] as [DeviceOutcome.Kind] {
      #expect(seen[kind, default: 0] > 300, "\(seen)")
    }
  }

  @Test("When all devices are back, each has the latest of each name that has not expired, in 300 runs")
  func promises() {
    for seed in 0..<300 as Range<UInt64> {
      var world = Self.run(seed)
      for device in 0..<4 { world.disconnect(device, delivering: 0) }
      // A day later nothing is held back by a budget, and a window is over.
      world.wait(86_400_000)
      for device in 0..<4 { world.connect(device) }
      world.settle()
      for _ in 0..<200 {
        world.wait(86_400_000 / 4)
        world.settle()
      }
      #expect(world.problems == [], "seed \(seed)")
      #expect(world.gateway.counts.unacknowledged == world.sent.count { $0.outcomes.first?.kind == .stored })
      let isSpent = world.gateway.options.delivery.backgroundBudget == 0
      for app in world.apps {
        for name in [[], [1], [2]] as [[UInt8]] {
          let own = world.sent.filter { $0.token == app.token && $0.topic == app.topic && $0.collapseID == name }
          guard let last = own.last, last.expiration == nil, !(isSpent && last.isBackground) else { continue }
          #expect(last.outcomes.first?.kind == .delivered, "seed \(seed): \(last)")
        }
      }
    }
  }

  @Test("It does not matter how often the time is told")
  func lateTime() {
    for seed in 0..<100 as Range<UInt64> {
      let (seldom, often) = (Self.run(seed), Self.run(seed, advancing: true))
      #expect(seldom.gateway.counts == often.gateway.counts, "seed \(seed)")
      #expect(
        seldom.sent.map { $0.outcomes.map(\.kind) } == often.sent.map { $0.outcomes.map(\.kind) }, "seed \(seed)")
    }
  }

  @Test("What is held never exceeds its limits, and what is dropped has waited longest")
  func limits() {
    for seed in 0..<50 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var world = ChannelWorld(
        Self.options {
          $0.maximumNotifications = 10
          $0.maximumBytes = 400
        }, devices: 6)
      for _ in 0..<200 {
        world.wait(1)
        if Int.random(in: 0..<4, using: &random) == 0 { world.connect(Int.random(in: 0..<2, using: &random)) }
        world.push(Int.random(in: 0..<12, using: &random), collapseID: [UInt8.random(in: 1...9, using: &random)])
        #expect(world.gateway.counts.stored <= 10 && world.gateway.bytes <= 400, "seed \(seed)")
      }
      #expect(world.gateway.counts.dropped > 0)
      // Nothing has arrived yet, so all that is not settled waits or is under way.
      let underWay = world.underWay
      let waiting = world.sent.filter { $0.outcomes.isEmpty && !underWay.contains($0.index) }.map(\.index)
      let dropped = world.sent.filter { $0.outcomes.first?.kind == .dropped }.map(\.index)
      #expect(dropped.max() ?? 0 < waiting.min() ?? .max, "seed \(seed): \(dropped), \(waiting)")
      world.settle()
      #expect(world.problems == [], "seed \(seed)")
    }
  }

  // MARK: examples

  @Test("A device that is away gets the latest without a name, and the latest of each name, in their order")
  func storing() {
    var world = ChannelWorld(Self.options(), devices: 1, topics: 1)
    for name in [[], [1], [2], [], [1]] as [[UInt8]] { world.push(0, collapseID: name) }
    world.wait(5_000)
    world.connect(0)
    world.deliver(0)
    #expect(world.sent.map(\.receivedAt.count) == [0, 0, 1, 1, 1])
    #expect(world.sent.map { $0.outcomes.map(\.kind) } == [[.coalesced], [.coalesced], [], [], []])
    world.acknowledge(0)
    #expect(world.gateway.counts.delivered == 3 && world.gateway.counts.stored == 0)
  }

  @Test("A device that is connected gets all, also those that wait for a window")
  func connected() {
    var world = ChannelWorld(Self.options { $0.delivery.window = .seconds(30) }, devices: 1, topics: 1)
    world.connect(0)
    for _ in 0..<3 { world.push(0, priority: 5) }
    world.push(0, collapseID: [1], priority: 5)
    world.push(0, collapseID: [1], priority: 5)
    world.deliver(0)
    #expect(world.sent.allSatisfy { $0.receivedAt == [] })
    let boundary = (world.now / 30_000 + 1) * 30_000
    world.wait(boundary - world.now - 1)
    world.deliver(0)
    #expect(world.sent.allSatisfy { $0.receivedAt == [] })
    world.wait(1)
    world.deliver(0)
    #expect(world.sent.map(\.receivedAt) == [[boundary], [boundary], [boundary], [], [boundary]])
  }

  @Test("Priority 1 waits until something of priority 10 comes, or the device is back")
  func asleep() {
    var world = ChannelWorld(Self.options(), devices: 1, topics: 1)
    world.connect(0)
    world.push(0, priority: 1)
    world.wait(86_400_000)
    world.push(0, priority: 5)
    world.deliver(0)
    #expect(world.sent.map(\.receivedAt.count) == [0, 1])
    world.push(0)
    world.deliver(0)
    #expect(world.sent.map(\.receivedAt.count) == [1, 1, 1])
    world.push(0, priority: 1)
    world.disconnect(0, delivering: 0)
    world.connect(0)
    world.deliver(0)
    #expect(world.sent.map(\.receivedAt.count) == [1, 1, 1, 1])
  }

  @Test("Background notifications have a budget for each day, and wait while a device saves power")
  func background() {
    var world = ChannelWorld(Self.options { $0.delivery.backgroundBudget = 2 }, devices: 1, topics: 1)
    world.connect(0)
    for _ in 0..<3 { world.push(0, isBackground: true) }
    world.push(0)
    world.settle()
    #expect(world.sent.map(\.receivedAt.count) == [1, 1, 0, 1])
    let midnight = (world.now / 86_400_000 + 1) * 86_400_000
    world.wait(midnight - world.now - 1)
    world.settle()
    #expect(world.sent[2].receivedAt == [])
    world.wait(1)
    world.settle()
    #expect(world.sent[2].receivedAt == [midnight])
    world.say(0, true)
    world.push(0, isBackground: true)
    world.settle()
    #expect(world.sent[4].receivedAt == [])
    world.say(0, false)
    world.settle()
    #expect(world.sent[4].receivedAt == [midnight])
  }

  @Test("A restored device has another token, and the old one is no longer valid")
  func restored() {
    var world = ChannelWorld(Self.options(), devices: 1, topics: 1)
    let old = world.apps[0].token
    world.push(0)
    world.wait(10)
    world.restore(0)
    #expect(world.apps[0].token != old && world.sent[0].outcomes.map(\.kind) == [.dropped])
    let decisions = [(0, old), (1, world.apps[0].token), (0, [1, 2])].map { topic, token in
      world.gateway.take("x", topic: topic, token: token, now: world.now)
    }
    #expect(decisions == [.unregistered(since: world.now), .otherTopic, .unknown])
    let late = DeviceMessage.Registration(device: 0, topic: "topic0", generation: 0)
    let link = RegisteredApp.Link(loop: 0, connection: 9)
    let refusal = world.gateway.register(late, topic: 0, on: link, now: world.now)
    #expect(refusal == .refused(.oldGeneration))
  }

  @Test("A device that is connected elsewhere takes its notifications with it")
  func elsewhere() {
    var gateway = RegisteredDevices(Self.options(), seed: 1)
    let links = (0..<2).map { RegisteredApp.Link(loop: $0, connection: 5) }
    let registration = DeviceMessage.Registration(device: 3, topic: "a")
    guard case .token(let token) = gateway.register(registration, topic: 0, on: links[0], now: 1) else {
      Issue.record("no token")
      return
    }
    func online(_ received: UInt64) -> [(topic: UInt32, app: DeviceMessage.Online.App)] {
      [(0, .init(token: token, topic: "a", received: received))]
    }
    let answers = gateway.takeMessages().map(\.message)
    #expect(answers == [.registered(.init(device: 3, topic: "a", token: token))])
    _ = gateway.online(online(0), hasLowPower: false, on: links[0], now: 2)
    for text in ["one", "two"] {
      let decision = gateway.take(text, topic: 0, token: token, now: 2)
      #expect(decision == .accepted)
    }
    _ = gateway.takeMessages()
    // The device has the first one; its connection hangs.
    _ = gateway.online(online(1), hasLowPower: false, on: links[1], now: 3)
    let messages = gateway.takeMessages()
    #expect(messages.map(\.link) == links && messages.count == 2)
    #expect(messages.first?.message == .refused(reason: .replaced, topic: "a"))
    guard case .deliver(let delivery)? = messages.last?.message else {
      Issue.record("\(messages)")
      return
    }
    #expect(delivery.payload == Array("two".utf8) && delivery.sequence == 3 && delivery.isRepeated && delivery.isStored)
    #expect(gateway.counts.delivered == 1)
    let isTaken = links.map { gateway.acknowledge(topic: 0, token: token, sequence: 3, on: $0, now: 4) }
    #expect(isTaken == [false, true])
    // The old connection ends, and changes nothing.
    gateway.offline(links[0], now: 5)
    #expect(gateway.counts.online == 1 && gateway.counts.delivered == 2)
  }

  @Test("A gateway that has forgotten what a device has goes on behind it")
  func forgotten() {
    var world = ChannelWorld(Self.options(), devices: 1, topics: 1)
    let link = RegisteredApp.Link(loop: 0, connection: 1)
    let app = DeviceMessage.Online.App(token: world.apps[0].token, topic: "topic0", received: 40)
    _ = world.gateway.online([(0, app)], hasLowPower: false, on: link, now: world.now)
    _ = world.gateway.take("", topic: 0, token: app.token, now: world.now)
    guard case .deliver(let delivery)? = world.gateway.takeMessages().last?.message else {
      Issue.record("nothing is delivered")
      return
    }
    #expect(delivery.sequence == 41)
  }
}

extension RegisteredDevices {
  /// A notification of a text.
  fileprivate mutating func take(_ text: String, topic: UInt32, token: [UInt8], now: Int64) -> Decision {
    let payload = Array(text.utf8)
    return accept(
      OfferedPush(topic: topic, token: token.rawBytes, payload: payload.rawBytes, sent: now * 1_000_000), now: now)
  }
}
