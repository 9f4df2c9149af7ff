import Bytes
import DeviceProtocol
import TestSupport

@testable import GatewaySimulator

/// Devices, their connections, which lose what is under way when they end, and the gateway's rules, in a time that the test
/// has.
///
/// A device remembers what it has; it acknowledges late, or its acknowledgements are lost with a connection.
struct ChannelWorld {
  typealias Link = RegisteredApp.Link

  struct App {
    let device: Int
    let topic: UInt32
    var token: [UInt8]
    var generation: UInt64 = 0
    var received: UInt64 = 0
  }

  /// A notification, as the test knows it.
  struct Sent {
    let index: Int
    let token: [UInt8]
    let topic: UInt32
    let collapseID: [UInt8]
    let expiration: UInt32?
    let priority: UInt8
    let isBackground: Bool
    let time: Int64
    var outcomes: [(kind: DeviceOutcome.Kind, time: Int64)] = []
    var receivedAt: [Int64] = []
  }

  var gateway: RegisteredDevices
  var now: Int64 = 1_764_000_000_000
  private(set) var apps: [App] = []
  private(set) var sent: [Sent] = []
  /// The connection of each device, with the messages that are under way to it.
  private(set) var links: [Int: (link: Link, queue: [DeviceMessage])] = [:]
  /// Times at which each device was not connected: from, to.
  private(set) var absences: [Int: [(from: Int64, to: Int64)]] = [:]
  private(set) var lowPower: Set<Int> = []
  /// Acknowledgements that devices have not sent: place in `apps`, sequence.
  private var owed: [Int: UInt64] = [:]
  private var nextConnection: UInt64 = 0
  private(set) var problems: [String] = []
  let topics: UInt32

  init(_ options: DeviceChannel, devices: Int, topics: UInt32 = 2) {
    gateway = RegisteredDevices(options, seed: 7, keepsOutcomes: true)
    self.topics = topics
    for device in 0..<devices {
      absences[device] = [(now, .max)]
      for topic in 0..<topics { apps.append(App(device: device, topic: topic, token: [])) }
      register(device)
    }
  }

  // MARK: devices

  mutating func register(_ device: Int) {
    let link = Link(loop: 0, connection: 1_000_000)
    for place in apps.indices where apps[place].device == device {
      let registration = DeviceMessage.Registration(
        device: UInt64(device), topic: "topic\(apps[place].topic)", generation: apps[place].generation)
      guard case .token(let token) = gateway.register(registration, topic: apps[place].topic, on: link, now: now) else {
        problems.append("device \(device) gets no token")
        continue
      }
      apps[place].token = token
    }
    collect()
  }

  /// The device is restored: its tokens change.
  mutating func restore(_ device: Int) {
    disconnect(device, delivering: 0)
    for place in apps.indices where apps[place].device == device {
      apps[place].generation += 1
      apps[place].received = 0
    }
    register(device)
  }

  mutating func connect(_ device: Int, hasLowPower: Bool = false) {
    guard links[device] == nil else { return }
    nextConnection += 1
    links[device] = (Link(loop: 0, connection: nextConnection), [])
    let last = (absences[device]?.count ?? 1) - 1
    absences[device]?[last].to = now
    say(device, hasLowPower)
  }

  /// The device says again that it is online.
  mutating func say(_ device: Int, _ hasLowPower: Bool) {
    guard let link = links[device]?.link else { return }
    if hasLowPower { lowPower.insert(device) } else { lowPower.remove(device) }
    let own = apps.filter { $0.device == device }.map {
      (
        topic: $0.topic,
        app: DeviceMessage.Online.App(token: $0.token, topic: "topic\($0.topic)", received: $0.received)
      )
    }
    let refusals = gateway.online(own, hasLowPower: hasLowPower, on: link, now: now)
    if !refusals.isEmpty { problems.append("refused: \(refusals)") }
    collect()
  }

  /// The connection ends after so many of the messages that are under way have arrived.
  mutating func disconnect(_ device: Int, delivering count: Int) {
    guard let (link, _) = links[device] else { return }
    deliver(device, count)
    links[device] = nil
    for place in apps.indices where apps[place].device == device { owed[place] = nil }
    absences[device]?.append((now, .max))
    gateway.offline(link, now: now)
    collect()
  }

  /// Messages arrive at a device.
  mutating func deliver(_ device: Int, _ count: Int = .max) {
    guard let queue = links[device]?.queue else { return }
    let arriving = queue.prefix(count)
    links[device]?.queue.removeFirst(arriving.count)
    for message in arriving { receive(message, device) }
  }

  private mutating func receive(_ message: DeviceMessage, _ device: Int) {
    guard case .deliver(let delivery) = message else {
      problems.append("\(message)")
      return
    }
    guard
      let place = apps.firstIndex(where: {
        $0.device == device && $0.token == delivery.token && "topic\($0.topic)" == delivery.topic
      })
    else {
      problems.append("a notification for another device")
      return
    }
    if delivery.sequence <= apps[place].received {
      problems.append("sequence \(delivery.sequence) after \(apps[place].received)")
    }
    apps[place].received = max(apps[place].received, delivery.sequence)
    owed[place] = delivery.sequence
    sent[Int(String(decoding: delivery.payload, as: UTF8.self)) ?? 0].receivedAt.append(now)
  }

  /// A device acknowledges what it has.
  mutating func acknowledge(_ device: Int) {
    guard let link = links[device]?.link else { return }
    for (place, sequence) in owed.sorted(by: { $0.key < $1.key }) where apps[place].device == device {
      owed[place] = nil
      let app = apps[place]
      if !gateway.acknowledge(topic: app.topic, token: app.token, sequence: sequence, on: link, now: now) {
        problems.append("an acknowledgement is not taken")
      }
    }
    collect()
  }

  // MARK: the provider

  @discardableResult
  mutating func push(
    _ app: Int, collapseID: [UInt8] = [], expiration: UInt32? = nil, priority: UInt8 = 10, isBackground: Bool = false
  ) -> Int {
    let index = sent.count
    let (token, topic) = (apps[app].token, apps[app].topic)
    let payload = Array(String(index).utf8)
    var push = OfferedPush(topic: topic, token: token.rawBytes, payload: payload.rawBytes, sent: now * 1_000_000)
    push.collapseID = collapseID
    push.expiration = expiration
    push.priority = priority
    push.isBackground = isBackground
    push.origin = .init(connection: 1, index: index)
    sent.append(
      Sent(
        index: index, token: token, topic: topic, collapseID: collapseID, expiration: expiration, priority: priority,
        isBackground: isBackground, time: now))
    let decision = gateway.accept(push, now: now)
    if decision != .accepted { problems.append("\(decision)") }
    collect()
    return index
  }

  mutating func wait(_ time: Int64) {
    now += time
    gateway.advance(to: now)
    collect()
  }

  /// Nothing is under way, and everybody has acknowledged what they have.
  mutating func settle() {
    for _ in 0..<1_000 {
      for device in links.keys.sorted() {
        deliver(device)
        acknowledge(device)
      }
      if links.values.allSatisfy({ $0.queue.isEmpty }) { return }
    }
  }

  private mutating func collect() {
    for (link, message) in gateway.takeMessages() {
      if case .registered = message { continue }
      guard let device = links.first(where: { $0.value.link == link })?.key else {
        problems.append("a message for a connection that has ended")
        continue
      }
      links[device]?.queue.append(message)
    }
    for outcome in gateway.takeOutcomes() {
      sent[outcome.origin.index].outcomes.append((outcome.kind, outcome.time))
    }
    let counts = gateway.counts
    if counts.accepted != counts.delivered + counts.coalesced + counts.expired + counts.dropped + counts.stored {
      problems.append("the books do not balance: \(counts)")
    }
  }

  /// Notifications that were sent and have not arrived.
  var underWay: Set<Int> {
    Set(
      links.values.flatMap(\.queue).compactMap { message in
        guard case .deliver(let delivery) = message else { return nil }
        return Int(String(decoding: delivery.payload, as: UTF8.self))
      })
  }

  mutating func close() {
    gateway.close(now: now)
    collect()
  }

  /// Whether the device of an app was away at any time between two.
  func wasAway(_ token: [UInt8], from: Int64, to: Int64) -> Bool {
    guard let app = apps.first(where: { $0.token == token }) else { return true }
    return absences[app.device]?.contains { $0.from <= to && $0.to >= from } ?? false
  }
}
