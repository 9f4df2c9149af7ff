import Bytes
import DeviceProtocol
import Measurement

/// The rules of one simulated device on the device channel, without sockets and clock.
///
/// ```
///            connected                 every app has an answer
///   away ────────────────► registering ───────────────────────► online
///    ▲                          │                                  │
///    │ disconnected             │ refused, offline, no message     │ leave, offline, no message
///    └──────────────────────── ended ◄─────────────────────────────┘
/// ```
///
/// Bytes go in, and bytes and events come out, into the `SessionTools` that all devices of an event loop share. Tokens,
/// sequences and the generation stay from one connection to the next.
struct DeviceSession {
  enum State: Equatable {
    /// There is no connection.
    case away
    /// The apps whose token was asked for and has not come, a bit each.
    case registering(UInt64)
    /// The gateway was told that the device is reachable.
    case online
    /// Nothing more is read or written on this connection.
    case ended
  }

  /// An app of the device; its topic is that of the same place in `FleetRules.topics`.
  struct App: Equatable {
    /// Empty: the device has to ask for one.
    var token: [UInt8] = []
    /// The sequence of the last notification; 0: none came.
    var received: UInt64 = 0
    /// Notifications came that were not acknowledged on this connection.
    var isOwed = false
  }

  /// The number of the device in its population.
  let device: UInt64
  /// Background notifications wait for such a device at the gateway.
  let hasLowPower: Bool
  /// Whether it acknowledges; of one that does not the gateway knows what it has from its next connection on.
  let acknowledges: Bool
  private(set) var state = State.away
  private(set) var apps: [App]
  /// How often the device was restored.
  private(set) var generation: UInt64 = 0
  /// The beginning of a message.
  private var pending: [UInt8] = []

  init(device: UInt64, apps: Int, hasLowPower: Bool = false, acknowledges: Bool = true) {
    (self.device, self.hasLowPower, self.acknowledges) = (device, hasLowPower, acknowledges)
    self.apps = Array(repeating: App(), count: apps)
  }

  /// Bytes that wait for the rest of their message.
  var pendingBytes: Int { pending.count }

  /// Whether `acknowledge` has something to write.
  var owesAcknowledgement: Bool { acknowledges && state == .online && apps.contains { $0.isOwed } }

  // MARK: the connection

  /// The gateway can be written to: apps without a token are registered, and without any such the device is online.
  mutating func connected(_ tools: inout SessionTools) {
    var waiting: UInt64 = 0
    for place in apps.indices where apps[place].token.isEmpty {
      waiting |= 1 << UInt64(place)
      tools.write(
        .register(
          .init(
            device: device, topic: tools.rules.topics[place], environment: tools.rules.environment,
            language: tools.rules.language, generation: generation)))
      tools.events.append(.asked)
    }
    pending = []
    answer(leaves: waiting, &tools)
  }

  /// The connection is gone. What was not acknowledged is told by `received` of the next `online`.
  mutating func disconnected() {
    state = .away
    pending = []
    for place in apps.indices { apps[place].isOwed = false }
  }

  /// The device goes: what is owed is acknowledged, and the gateway told.
  mutating func leave(_ tools: inout SessionTools) {
    guard state != .away, state != .ended else { return }
    acknowledge(&tools)
    tools.write(.offline(reason: nil))
    state = .ended
  }

  /// Nothing more is read or written on this connection.
  mutating func abandon() { if state != .away { state = .ended } }

  /// The device is set up anew from a copy: its apps ask for other tokens, and have no notifications.
  mutating func restore() {
    generation += 1
    for place in apps.indices { apps[place] = App() }
  }

  /// Acknowledges all that came.
  mutating func acknowledge(_ tools: inout SessionTools) {
    guard acknowledges, state == .online else { return }
    for place in apps.indices where apps[place].isOwed {
      apps[place].isOwed = false
      tools.write(
        .acknowledge(
          token: apps[place].token, topic: tools.rules.topics[place], sequence: apps[place].received))
      tools.events.append(.acknowledged)
    }
  }

  // MARK: messages

  /// Reads what the gateway has sent, in pieces of any length.
  mutating func receive(_ bytes: RawSpan, _ tools: inout SessionTools) {
    guard state != .away, state != .ended else { return }
    var waiting: [UInt8] = []
    swap(&waiting, &pending)
    waiting = MessageFraming.rest(of: consume waiting, bytes) { read($0, &tools) }
    if state != .ended { pending = waiting }
  }

  /// Reads whole messages, and returns the number of their bytes.
  private mutating func read(_ bytes: RawSpan, _ tools: inout SessionTools) -> Int {
    var start = 0
    while state != .ended {
      let rest = bytes.extracting(start...)
      let body: Range<Int>
      do throws(MessageFraming.Fault) {
        guard let next = try tools.framing.next(rest) else { break }
        body = next
      } catch {
        end(.message, fault: .framing, &tools)
        break
      }
      do throws(MessageError) {
        take(try tools.reader.read(rest.extracting(body)), &tools)
      } catch {
        if case .unknown = error { fault(.unknownMessage, &tools) } else { fault(.unreadable, &tools) }
      }
      start += body.upperBound
    }
    return start
  }

  private mutating func take(_ message: DeviceMessage, _ tools: inout SessionTools) {
    switch message {
    case .registered(let registered): take(registered, &tools)
    case .deliver(let delivery): take(delivery, &tools)
    case .tokenChanged(let change):
      guard let place = apps.indices.first(where: { tools.rules.topics[$0] == change.topic }),
        !apps[place].token.isEmpty, apps[place].token == change.old, tools.rules.isPossible(change.new)
      else { return fault(.unexpected, &tools) }
      apps[place].token = change.new
      tools.events.append(.tokenChanged)
    case .refused(let reason, let topic): take(reason, topic, &tools)
    case .offline:
      state = .ended
      tools.events.append(.ends(.gatewayOffline))
    // Only devices send these.
    case .register, .online, .acknowledge: fault(.unexpected, &tools)
    }
  }

  private mutating func take(_ registered: DeviceMessage.Registered, _ tools: inout SessionTools) {
    guard case .registering(let waiting) = state, registered.device == device,
      let place = tools.rules.topics.firstIndex(of: registered.topic), waiting & 1 << UInt64(place) != 0,
      tools.rules.isPossible(registered.token)
    else { return fault(.unexpected, &tools) }
    apps[place].token = registered.token
    tools.events.append(.registered)
    if let expected = tools.rules.token(of: device, generation: generation), expected != registered.token {
      fault(.wrongToken, &tools)
    }
    answer(leaves: waiting & ~(1 << UInt64(place)), &tools)
  }

  /// When every app has an answer, those that got a token are online.
  private mutating func answer(leaves waiting: UInt64, _ tools: inout SessionTools) {
    state = .registering(waiting)
    guard waiting == 0 else { return }
    var installed: [DeviceMessage.Online.App] = []
    for (place, app) in apps.enumerated() where !app.token.isEmpty {
      installed.append(.init(token: app.token, topic: tools.rules.topics[place], received: app.received))
    }
    guard !installed.isEmpty else {
      state = .ended
      tools.events.append(.ends(.refused))
      return
    }
    tools.write(.online(.init(apps: installed, hasLowPower: hasLowPower)))
    state = .online
    tools.events.append(.online)
  }

  private mutating func take(_ delivery: DeviceMessage.Delivery, _ tools: inout SessionTools) {
    guard state == .online else { return fault(.unexpected, &tools) }
    let place = apps.indices.first {
      apps[$0].token == delivery.token && tools.rules.topics[$0] == delivery.topic
    }
    guard let place, !delivery.token.isEmpty else { return fault(.unknownToken, &tools) }
    // The gateway is told either way what the device has, so that it need not send it again.
    apps[place].isOwed = true
    guard delivery.sequence > apps[place].received else { return fault(.duplicate, &tools) }
    apps[place].received = delivery.sequence
    tools.events.append(.received(delivery))
  }

  private mutating func take(_ reason: DeviceMessage.Refusal, _ topic: String?, _ tools: inout SessionTools) {
    tools.events.append(.refused(reason))
    let place = topic.flatMap { topic in apps.indices.first { tools.rules.topics[$0] == topic } }
    switch reason {
    case .unknownToken:
      // Its next connection asks for a token, and has nothing of what the old one got.
      for other in apps.indices where place == nil || place == other { apps[other] = App() }
      end(.refused, &tools)
    case .version, .environment, .oldGeneration: end(.refused, &tools)
    case .tooMany, .storage:
      guard case .registering(let waiting) = state else { return }
      answer(leaves: place.map { waiting & ~(1 << UInt64($0)) } ?? 0, &tools)
    // The gateway closes the connection.
    case .message, .replaced: break
    }
  }

  private func fault(_ fault: SessionFault, _ tools: inout SessionTools) { tools.events.append(.fault(fault)) }

  private mutating func end(_ cause: SessionEnd, fault: SessionFault? = nil, _ tools: inout SessionTools) {
    if let fault { tools.events.append(.fault(fault)) }
    state = .ended
    tools.events.append(.ends(cause))
  }
}
