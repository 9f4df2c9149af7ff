import Bytes
import DeviceProtocol
import Foundation
import Measurement
import TestSupport
import Testing

@testable import GatewaySimulator

/// Devices and a provider on real sockets.
@Suite("Device channel", .waiting)
struct DeviceChannelTests {
  private static func open(
    _ options: inout SimulatorOptions, _ change: (inout DeviceChannel) -> Void = { _ in }
  ) {
    var channel = DeviceChannel(address: .init(host: "127.0.0.1", port: 0))
    change(&channel)
    options.deviceChannel = channel
  }

  private static let topic = Simulation.topic

  @Test("A device has what a provider sends, with the time at which it was read, and the books say so")
  func delivery() async throws {
    let observer = KeptEvents()
    let before = WallClock.system.nanoseconds()
    let ledger = try await Simulation.run(observer: observer) {
      Self.open(&$0)
    } body: { simulation in
      let device = try DeviceClient(simulation)
      let token = try device.begin(device: 12, topic: Self.topic)
      #expect(token == MadeTokens(seed: 1)[12])
      let isOnline = await simulation.wait { $0.devices.channel?.online == 1 }
      #expect(isOnline)
      let provider = try simulation.client()
      let sent = (1...3).flatMap { (number: UInt32) in frame(number, token: token, payload: "{\"number\":\(number)}") }
      try provider.send(sent + frame(4))
      for number in 1...3 as ClosedRange<UInt64> {
        let delivery = try #require(try device.nextDelivery())
        #expect(delivery.token == token && delivery.topic == Self.topic && delivery.sequence == number)
        #expect(String(decoding: delivery.payload, as: UTF8.self) == "{\"number\":\(number)}")
        #expect(!delivery.isStored && !delivery.isRepeated && delivery.priority == 10)
        #expect((before...WallClock.system.nanoseconds()).contains(delivery.sent))
      }
      var isCounted = await simulation.wait { $0.devices.stored == 3 && $0.devices.channel?.unacknowledged == 3 }
      #expect(isCounted)
      try device.send(.acknowledge(token: token, topic: Self.topic, sequence: 2))
      isCounted = await simulation.wait { $0.devices.delivered == 3 && $0.devices.stored == 1 }
      #expect(isCounted)
      try device.send(.acknowledge(token: token, topic: Self.topic, sequence: 3), .offline(reason: nil))
      #expect(try device.next() == nil)
      provider.close()
    }.ledger
    let channel = try #require(ledger.devices.channel)
    #expect(channel.connections == 1 && channel.registrations == 1 && channel.registered == 1 && channel.online == 0)
    #expect(channel.sent == 3 && channel.repeated == 0 && channel.unacknowledged == 0)
    let told = observer.events.flatMap { event -> [DeviceOutcome] in
      if case .devices(let outcomes) = event.change { outcomes } else { [] }
    }
    #expect(told.map(\.kind) == [.delivered, .delivered, .delivered] && told.map(\.origin.index) == [0, 1, 2])
    // The fourth went to nobody's device.
    #expect(observer.received.reduce(0) { $0 + $1.decision.stored } == 3)
  }

  @Test("A device that was away gets the latest, and again what its connection has lost", arguments: [0, 1])
  func away(received: UInt64) async throws {
    _ = try await Simulation.run {
      Self.open(&$0)
    } body: { simulation in
      let provider = try simulation.client()
      var token: [UInt8] = []
      do {
        let device = try DeviceClient(simulation)
        token = try device.begin(device: 1, topic: Self.topic)
        _ = await simulation.wait { $0.devices.channel?.online == 1 }
        try provider.send(frame(1, token: token))
        _ = try device.nextDelivery()
        device.client.close()
      }
      _ = await simulation.wait { $0.devices.channel?.online == 0 }
      let device = try DeviceClient(simulation)
      try device.send(
        .online(.init(apps: [.init(token: token, topic: Self.topic, received: received)])))
      if received == 0 {
        let again = try #require(try device.nextDelivery())
        #expect(again.sequence == 2 && again.isRepeated && again.isStored)
        try device.send(.acknowledge(token: token, topic: Self.topic, sequence: 2))
      }
      let isDelivered = await simulation.wait { $0.devices.delivered == 1 && $0.devices.stored == 0 }
      #expect(isDelivered)
      let ledger = await simulation.snapshot()
      #expect(ledger.devices.channel?.repeated == (received == 0 ? 1 : 0))
      device.client.close()
      provider.close()
    }
  }

  @Test("A restored device's old token is accepted once more, and put on the feedback list")
  func restored() async throws {
    _ = try await Simulation.run {
      Self.open(&$0)
    } body: { simulation in
      let device = try DeviceClient(simulation)
      let old = try device.begin(device: 1, topic: Self.topic)
      let new = try device.begin(device: 1, topic: Self.topic, generation: 1)
      #expect(new == MadeTokens(seed: 1, generation: 1)[1])
      _ = await simulation.wait { $0.devices.channel?.online == 1 }
      let provider = try simulation.client()
      try provider.send(frame(1, token: old) + frame(2, token: new))
      #expect(try device.nextDelivery()?.token == new)
      let isListed = await simulation.wait { $0.devices.uninstalled == 1 && $0.feedback.waiting == 1 }
      #expect(isListed)
      // Another topic's token is none of this connection's.
      try device.send(.register(.init(device: 2, topic: Simulation.otherTopic)))
      guard case .registered(let other)? = try device.next() else {
        Issue.record("no token")
        return
      }
      try provider.send(frame(3, token: other.token))
      #expect(try provider.receive() == response(.invalidToken, 3))
      device.client.close()
      provider.close()
    }
  }

  @Test("A device that does not read its answers is not read, and ended", arguments: [false, true])
  func deaf(isEnded: Bool) async throws {
    let most = 20_000
    let ledger = try await Simulation.run {
      Self.open(&$0)
      $0.frameTimeout = isEnded ? .milliseconds(500) : .seconds(600)
    } body: { simulation in
      let deaf = try DeviceClient(simulation, patience: isEnded ? Simulation.patience : .seconds(3))
      // 80 MB of registrations, and of answers: more than sockets hold.
      let topic = String(repeating: "t", count: 4_000)
      var output = ByteWriter(capacity: 1 << 18)
      for _ in 0..<50 { DeviceMessage.register(.init(device: 1, topic: topic)).write(to: &output) }
      let registrations = Array(copying: output.bytes)
      var (sent, error) = (0, ClientError?.none)
      while sent < most, error == nil {
        error = deaf.client.sendSome(registrations).error
        sent += 50
      }
      #expect(sent < most && (error == .late) == !isEnded, "\(sent) \(error as Any)")
      deaf.client.close()
      // Others do not notice.
      let other = try DeviceClient(simulation)
      #expect(try other.begin(device: 2, topic: Self.topic) == MadeTokens(seed: 1)[2])
      other.client.close()
      let isOver = await simulation.wait { $0.devices.channel?.online == 0 && $0.devices.channel?.connections == 2 }
      #expect(isOver)
    }.ledger
    let registrations = try #require(ledger.devices.channel?.registrations)
    #expect(registrations > 0 && registrations < most)
  }

  @Test(
    "A message that is none, or has no meaning, ends the connection with its reason",
    arguments: [
      #"{"message":"none"}"#, "[]", "{}", #"{"message":"registered","device":1,"topic":"a","token":"00"}"#,
      #"{"message":"acknowledge","topic":"a","token":"00","sequence":1}"#, "x",
    ])
  func malformed(body: String) async throws {
    let ledger = try await Simulation.run {
      Self.open(&$0)
    } body: { simulation in
      let device = try DeviceClient(simulation)
      let length = UInt8(body.utf8.count)
      try device.client.send([0, 0, 0, length] + Array(body.utf8))
      #expect(try device.next() == .refused(reason: .message, topic: nil))
      #expect(try device.next() == nil)
    }.ledger
    #expect(ledger.devices.channel?.malformed == 1 && ledger.devices.channel?.refused == ["message": 1])
  }

  @Test("What a device cannot have is refused with its reason, and the connection goes on")
  func refusals() async throws {
    _ = try await Simulation.run {
      Self.open(&$0) { $0.maximumTokens = 1 }
    } body: { simulation in
      let device = try DeviceClient(simulation)
      try device.send(.register(.init(device: 1, topic: "a", environment: .development)))
      #expect(try device.next() == .refused(reason: .environment, topic: "a"))
      try device.send(.online(.init(apps: [.init(token: [1], topic: "unheard")])))
      #expect(try device.next() == .refused(reason: .unknownToken, topic: "unheard"))
      let token = try device.begin(device: 1, topic: "a")
      #expect(!token.isEmpty)
      try device.send(.register(.init(device: 2, topic: "a")))
      #expect(try device.next() == .refused(reason: .tooMany, topic: "a"))
      try device.send(.register(.init(version: 2, device: 2, topic: "a")))
      #expect(try device.next() == .refused(reason: .version, topic: nil))
      #expect(try device.next() == nil)
    }
  }

  @Test("A device that is connected elsewhere is told so on its first connection")
  func replaced() async throws {
    _ = try await Simulation.run {
      Self.open(&$0)
    } body: { simulation in
      let first = try DeviceClient(simulation)
      let token = try first.begin(device: 1, topic: Self.topic)
      _ = await simulation.wait { $0.devices.channel?.online == 1 }
      let second = try DeviceClient(simulation)
      try second.send(.online(.init(apps: [.init(token: token, topic: Self.topic)])))
      #expect(try first.next() == .refused(reason: .replaced, topic: Self.topic))
      #expect(try first.next() == nil)
      let provider = try simulation.client()
      try provider.send(frame(1, token: token))
      #expect(try second.nextDelivery()?.sequence == 1)
      second.client.close()
      provider.close()
    }
  }

  @Test("A store keeps tokens, what waits, and what was not acknowledged, for the next run")
  func store() async throws {
    try await inTemporaryFolder { folder in
      let file = "\(folder.path)/devices.sqlite"
      var tokens: [[UInt8]] = []
      _ = try await Simulation.run {
        Self.open(&$0) { $0.file = file }
      } body: { simulation in
        let device = try DeviceClient(simulation)
        tokens = [
          try device.begin(device: 1, topic: Self.topic, generation: 0),
          try device.begin(device: 1, topic: Self.topic, generation: 1),
        ]
        _ = await simulation.wait { $0.devices.channel?.online == 1 }
        let provider = try simulation.client()
        try provider.send(frame(1, token: tokens[1], payload: "one") + frame(2, token: tokens[1], payload: "two"))
        _ = try device.nextDelivery()
        try device.send(.acknowledge(token: tokens[1], topic: Self.topic, sequence: 1))
        _ = try device.nextDelivery()
        _ = await simulation.wait { $0.devices.delivered == 1 }
        device.client.close()
        _ = await simulation.wait { $0.devices.channel?.online == 0 }
        try provider.send(frame(3, token: tokens[1], payload: "three"))
        let isKept = await simulation.wait { $0.devices.stored == 2 && $0.devices.channel?.unacknowledged == 1 }
        #expect(isKept)
        provider.close()
      }
      var status = stat()
      #expect(unsafe stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
      for received in [2, 1] as [UInt64] {
        let copy = "\(folder.path)/copy\(received).sqlite"
        try FileManager.default.copyItem(atPath: file, toPath: copy)
        let ledger = try await Simulation.run {
          Self.open(&$0) { $0.file = copy }
        } body: { simulation in
          let device = try DeviceClient(simulation)
          try device.send(.online(.init(apps: [.init(token: tokens[1], topic: Self.topic, received: received)])))
          let delivery = try #require(try device.nextDelivery())
          // The second was sent, and either has arrived or is replaced by the third.
          #expect(delivery.sequence == 3 && String(decoding: delivery.payload, as: UTF8.self) == "three")
          try device.send(.acknowledge(token: tokens[1], topic: Self.topic, sequence: 3))
          let isDelivered = await simulation.wait { $0.devices.stored == 0 }
          #expect(isDelivered)
          let provider = try simulation.client()
          try provider.send(frame(1, token: tokens[0]))
          let isGone = await simulation.wait { $0.devices.uninstalled == 1 }
          #expect(isGone)
          device.client.close()
          provider.close()
        }.ledger
        #expect(ledger.devices.channel?.restored == 2)
        #expect(ledger.devices.delivered == (received == 2 ? 2 : 1))
        #expect(ledger.devices.coalesced == (received == 2 ? 0 : 1))
      }
    }
  }

  @Test("A file that is none of its own is left as it is")
  func foreignStore() async throws {
    try await inTemporaryFolder { folder in
      let file = "\(folder.path)/notes.txt"
      try Data("notes".utf8).write(to: URL(fileURLWithPath: file))
      let error = await #expect(throws: SimulatorError.self) {
        try await Simulation.run {
          Self.open(&$0) { $0.file = file }
        } body: { _ in
        }
      }
      #expect(error?.description == "\(file): is not a store of devices")
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data("notes".utf8))
    }
  }
}
