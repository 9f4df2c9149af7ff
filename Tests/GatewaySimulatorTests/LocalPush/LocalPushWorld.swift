import Bytes
import DeviceProtocol
import Measurement
import TestSupport
import Testing

@testable import DeviceFleet
@testable import GatewaySimulator

/// The server of local push and devices, without sockets and clock: chance cuts bytes, ends connections, loses time, moves
/// devices between networks and causes faults. After each step the books have to balance, those of networks as well.
struct LocalPushWorld {
  typealias Link = LocalPushServer.Link

  /// One direction of a connection.
  private struct Pipe {
    var bytes: [UInt8] = []

    mutating func take(_ count: Int) -> [UInt8] {
      let taken = Array(bytes.prefix(count))
      bytes.removeFirst(taken.count)
      return taken
    }
  }

  private struct Wire {
    let device: Int
    let channel: LocalPushChannel
    var up = Pipe()
    var down = Pipe()
    /// The beginning of a message that has arrived, and how messages are read, at either end.
    var atServer: [UInt8] = []
    var atDevice: [UInt8] = []
    /// The server knows that it is over, or the device does.
    var isOverAtServer = false
    var isOverAtDevice = false
    /// Requests of the device, and those of them that the server has acknowledged.
    var asked: [UInt32] = []
    var answered: [UInt32] = []
    var hasRegistered = false
    var lastBeat: Int64?
  }

  private var draws: SplitMix64
  private var server: LocalPushServer
  private var now: Int64 = 1_000_000_000
  private var wires: [UInt64: Wire] = [:]
  private var lastLink: UInt64 = 0
  private var sessions: [LocalPushSession]
  private var links: [UInt64?]
  private var heard: [Int64]
  private var texts = 0
  private var shown: Set<String> = []
  /// Who was where when a text for a network was offered, by the text.
  private var audiences: [String: Set<Int>] = [:]
  /// Those who were sent it, and those who have got it.
  private var writtenTo: [String: Set<Int>] = [:]
  private var got: [String: Set<Int>] = [:]
  private let networks: Int
  private(set) var moves = 0
  private(set) var unheard = 0
  private var askedControl: UInt32 = 100
  private let acknowledgeShare: Double
  private let heartbeat: Int64
  private(set) var givenUp = 0

  var counts: LocalPushServer.Counts { server.counts }

  init(seed: UInt64) {
    draws = SplitMix64(seed: seed, stream: 5)
    networks = 1 + Int(draws.next() % 4)
    var options = LocalPushService(
      networks: (0..<networks).map { .init(name: "network \($0)", address: .init(host: "", port: 0)) })
    options.maximumUnacknowledged = 1 + Int(draws.next() % 12)
    options.rate = draws.isHit(0.3) ? 2 : 0
    options.callShare = 0.3
    options.faults.lostHeartbeats = draws.isHit(0.2) ? 0.5 : 0
    if draws.isHit(0.3) { options.faults.silences = [.init(time: .seconds(20), share: 0.5)] }
    heartbeat = options.heartbeat.nanoseconds
    acknowledgeShare = [0.2, 0.8, 1][Int(draws.next() % 3)]
    server = LocalPushServer(options, seed: seed, start: now)
    let devices = 1 + Int(draws.next() % 5)
    sessions = (0..<devices).map { LocalPushSession(device: UInt64($0), LocalPushPlan()) }
    links = Array(repeating: nil, count: devices)
    heard = Array(repeating: 0, count: devices)
  }

  /// Lets chance do one thing.
  mutating func step() throws {
    let device = Int(draws.next() % UInt64(sessions.count))
    switch draws.next() % 100 {
    case 0..<20: try pass(Int64(draws.next() % 1_000_000_000))
    case 20..<24: try pass(Int64(draws.next() % 45) * 1_000_000_000)
    case 24..<34: try connect(device)
    case 34..<38: try connectControl(device)
    case 38..<41: die()
    case 41: try restart(draws.isHit(0.5) ? nil : Int(draws.next() % UInt64(networks)))
    case 42: server.silence(0.3, now: now)
    case 43: server.loseHeartbeats(draws.isHit(0.5) ? 0 : 0.5, now: now)
    case 44..<52: send(to: device, from: .control)
    case 52..<56: send(toNetwork: Int(draws.next() % UInt64(networks)))
    case 56..<62: askControl(from: device, to: Int(draws.next() % UInt64(sessions.count)))
    case 62..<80: for link in wires.keys.sorted() { try moveUp(link, Int(draws.next() % 400)) }
    default: for link in wires.keys.sorted() { try moveDown(link, Int(draws.next() % 400)) }
    }
    try obey()
    expectBooks()
  }

  /// Nothing is lost any more, and all that is under way arrives.
  mutating func settle() throws {
    for _ in 0..<4 {
      for link in wires.keys.sorted() {
        try moveUp(link, .max)
        try moveDown(link, .max)
        if let wire = wires[link], wire.isOverAtServer != wire.isOverAtDevice { end(link) }
      }
      try obey()
    }
    expectBooks()
    for (number, wire) in wires where !wire.isOverAtServer && !wire.isOverAtDevice {
      guard !isSilent(number) else { continue }
      #expect(wire.asked == wire.answered, "each request of a device is acknowledged, in order")
    }
    server.end(now: now)
    now += 11_000_000_000
    server.advance(to: now)
    expectBooks()
    for kind in LocalPushKind.allCases {
      #expect(counts[kind].unacknowledged == 0)
    }
    for (text, audience) in audiences {
      #expect((got[text] ?? []).isSubset(of: audience), "a text for a network reaches none but those who were there")
    }
  }

  private func isSilent(_ number: UInt64) -> Bool { server.isSilent(Link(loop: 0, connection: number)) }

  // MARK: what happens

  /// Time passes in short steps, as for a process that runs.
  private mutating func pass(_ time: Int64) throws {
    let end = now + time
    while now < end {
      now = min(end, now + 250_000_000)
      server.advance(to: now)
      try obey()
      for device in sessions.indices { expire(device) }
    }
  }

  private mutating func expire(_ device: Int) {
    guard let link = links[device] else { return }
    let hasHeard = now - heard[device] < 30_000_000_000
    var tools = newTools()
    sessions[device].expire(&tools)
    let events = tools.takeEvents()
    if hasHeard {
      #expect(!events.contains(.ends(.silence)), "a device waits for 30 s")
    } else {
      #expect(events == [.ends(.silence)], "after 30 s without a word a device gives up")
    }
    guard !events.isEmpty else { return }
    givenUp += 1
    sessions[device].disconnected()
    links[device] = nil
    wires[link]?.isOverAtDevice = true
  }

  private func newTools() -> SessionTools {
    var tools = SessionTools(FleetRules(topics: []))
    tools.now = now
    return tools
  }

  private mutating func connect(_ device: Int) throws {
    // One that moves has another connection at once; the server may know of the end of the earlier one later.
    if let earlier = links[device] {
      guard draws.isHit(0.3) else { return }
      moves += 1
      endAtDevice(earlier)
    }
    let link = open(device, .notification(network: Int(draws.next() % UInt64(networks))))
    links[device] = link
    heard[device] = now
    var tools = newTools()
    sessions[device].connected(&tools)
    wires[link]?.asked.append(1)
    wires[link]?.up.bytes += Array(copying: tools.output.bytes)
  }

  private mutating func connectControl(_ device: Int) throws {
    let link = open(device, .control)
    // Some say something else first, for which the server ends the connection.
    let content: LocalPushMessage.Content = draws.isHit(0.2) ? .directory([]) : .user(.init(device: UInt64(device)))
    if case .user = content { wires[link]?.asked.append(1) }
    write(LocalPushMessage(request: 1, content), up: link)
  }

  private mutating func open(_ device: Int, _ channel: LocalPushChannel) -> UInt64 {
    lastLink += 1
    wires[lastLink] = Wire(device: device, channel: channel)
    server.connected(Link(loop: 0, connection: lastLink), channel, now: now)
    return lastLink
  }

  private mutating func write(_ message: LocalPushMessage, up link: UInt64) {
    wires[link]?.up.bytes += written { message.write(to: &$0) }
  }

  /// A connection ends at one of its ends, and the other one knows at once or later.
  private mutating func die() {
    guard let link = wires.keys.sorted().randomElement(using: &draws) else { return }
    if draws.isHit(0.5) {
      end(link)
    } else if draws.isHit(0.5) {
      endAtServer(link)
    } else {
      endAtDevice(link)
    }
  }

  private mutating func end(_ link: UInt64) {
    endAtServer(link)
    endAtDevice(link)
  }

  private mutating func endAtServer(_ link: UInt64) {
    guard wires[link]?.isOverAtServer == false else { return }
    wires[link]?.isOverAtServer = true
    server.disconnected(Link(loop: 0, connection: link), now: now)
  }

  private mutating func endAtDevice(_ link: UInt64) {
    guard let wire = wires[link], !wire.isOverAtDevice else { return }
    wires[link]?.isOverAtDevice = true
    guard wire.channel != .control, links[wire.device] == link else { return }
    sessions[wire.device].disconnected()
    links[wire.device] = nil
  }

  /// - Parameter network: the only one that ends; `nil`: the server.
  private mutating func restart(_ network: Int?) throws {
    // What is due is done first, so that nothing else happens.
    server.advance(to: now)
    try obey()
    let before = counts
    let isSilent = draws.isHit(0.3)
    server.restart(network, isSilent ? .silent : .closed, now: now)
    for (link, order) in server.takeOrders() {
      #expect(order == .close || wires[link.connection] != nil)
      if order == .close { end(link.connection) }
    }
    for (number, wire) in wires where !wire.isOverAtServer {
      guard network == nil || wire.channel.network == network else { continue }
      #expect(isSilent && self.isSilent(number), "a connection outlives its network")
    }
    for other in 0..<networks where network != nil && other != network {
      #expect(counts[other] == before[other], "another network notices")
    }
    if !isSilent {
      #expect(network != nil || counts.open == 0)
      for ended in 0..<networks where network == nil || ended == network { #expect(counts[ended].here == 0) }
    }
    #expect(counts.restarts == before.restarts + (network == nil ? 1 : 0))
  }

  /// A text for all who are on a network: it is written to each of them once, unless the connection has no room for it or is
  /// silent, and to nobody else.
  private mutating func send(toNetwork network: Int) {
    texts += 1
    server.advance(to: now)
    let text = "news \(texts)"
    let audience = Set(sessions.indices.filter { isHere($0, on: network) })
    let before = counts[network].texts
    let outcomes = server.offer(
      .init(.text(text, from: .server), to: .network("network \(network)")), from: .control, now: now)
    #expect(outcomes?.count == audience.count)
    let after = counts[network].texts
    #expect(after.offered == before.offered + max(1, audience.count))
    #expect(after.sent == before.sent + (outcomes ?? []).count { $0 == .sent })
    #expect(after.absent == before.absent + (audience.isEmpty ? 1 : 0))
    if audience.isEmpty { unheard += 1 }
    audiences[text] = audience
    let nobody = server.offer(.init(.invite(from: .server), to: .network("nowhere")), from: .control, now: now)
    #expect(nobody == nil)
    expectedWrites = (text, (outcomes ?? []).count { $0 == .sent })
  }

  /// The text for a network that was offered last, and to how many it is to be written.
  private var expectedWrites: (text: String, count: Int)?

  private mutating func send(to device: Int, from source: LocalPushServer.Source) {
    texts += 1
    let receiver = LocalPushMessage.User(device: UInt64(device))
    let before = counts.texts
    let outcome = server.offer(.text("control \(texts)", from: .server, to: receiver), from: source, now: now)
    #expect(counts.texts.offered == before.offered + 1 || counts.sources[.rate] != nil)
    if !isHere(device) { #expect(outcome == .absent) }
  }

  /// Whether the server has a user's notification channel.
  private func isHere(_ device: Int) -> Bool { (0..<networks).contains { isHere(device, on: $0) } }

  private func isHere(_ device: Int, on network: Int) -> Bool {
    wires.values.contains {
      $0.device == device && $0.channel.network == network && $0.hasRegistered && !$0.isOverAtServer
    }
  }

  private mutating func askControl(from device: Int, to other: Int) {
    let mine = wires.keys.sorted().last {
      wires[$0]?.device == device && wires[$0]?.channel == .control && wires[$0]?.isOverAtDevice == false
    }
    guard let link = mine, wires[link]?.asked.isEmpty == false else { return }
    askedControl += 1
    texts += 1
    let (sender, receiver) = (
      LocalPushMessage.User(device: UInt64(device)), LocalPushMessage.User(device: UInt64(other))
    )
    let contents: [LocalPushMessage.Content] = [
      .text("device \(texts)", from: sender, to: receiver), .invite(from: sender, to: receiver),
      .callAction("end", of: receiver), .directory([]), .heartbeat(count: 1), .other(key: 77, [1]),
    ]
    wires[link]?.asked.append(askedControl)
    write(LocalPushMessage(request: askedControl, contents[Int(draws.next() % 6)]), up: link)
  }

  // MARK: bytes

  private static func messages(_ bytes: inout [UInt8]) throws -> [LocalPushMessage] {
    var (framing, reader) = (MessageFraming(), LocalPushReader())
    var found: [LocalPushMessage] = []
    while let body = try framing.next(bytes.rawBytes) {
      found.append(try reader.read(bytes.rawBytes.extracting(body)))
      bytes.removeFirst(body.upperBound)
    }
    return found
  }

  /// Some bytes of a device reach the server.
  private mutating func moveUp(_ link: UInt64, _ count: Int) throws {
    guard var wire = wires[link], !wire.isOverAtServer else { return }
    wire.atServer += wire.up.take(count)
    let messages = try Self.messages(&wire.atServer)
    wires[link] = wire
    for message in messages {
      server.receive(message, on: Link(loop: 0, connection: link), now: now)
      try obey()
      if wires[link]?.isOverAtServer == true { return }
    }
  }

  /// Some bytes of the server reach a device.
  private mutating func moveDown(_ link: UInt64, _ count: Int) throws {
    guard var wire = wires[link], !wire.isOverAtDevice else { return }
    let bytes = wire.down.take(count)
    wire.atDevice += bytes
    let messages = try Self.messages(&wire.atDevice)
    wires[link] = wire
    for message in messages { note(message, wire) }
    guard wire.channel != .control else {
      for message in messages where message.command == .request && draws.isHit(acknowledgeShare) {
        write(LocalPushMessage(acknowledging: message.identifier), up: link)
      }
      return
    }
    guard !bytes.isEmpty, links[wire.device] == link else { return }
    heard[wire.device] = now
    var tools = newTools()
    sessions[wire.device].receive(bytes.rawBytes, &tools)
    if draws.isHit(acknowledgeShare) { sessions[wire.device].acknowledge(&tools) }
    wires[link]?.up.bytes += Array(copying: tools.output.bytes)
    for event in tools.takeEvents() {
      if case .fault(let fault) = event { Issue.record("the server does what it must not: \(fault)") }
    }
  }

  /// A message that a device has read.
  private mutating func note(_ message: LocalPushMessage, _ wire: Wire) {
    guard case .text(let text, _, let receiver)? = message.content else { return }
    #expect(receiver == .init(device: UInt64(wire.device)), "a text reaches its receiver alone")
    if audiences[text] != nil { got[text, default: []].insert(wire.device) }
    let isFirst = shown.insert("\(text) for \(wire.device)").inserted
    #expect(isFirst, "nothing is delivered twice")
  }

  /// Does what the server has decided.
  private mutating func obey() throws {
    let expected = expectedWrites
    expectedWrites = nil
    for (link, order) in server.takeOrders() {
      if case .write(let message) = order, case .text(let text, _, _)? = message.content, text == expected?.text,
        let wire = wires[link.connection]
      {
        let isFirst = writtenTo[text, default: []].insert(wire.device).inserted
        #expect(isFirst, "a text for a network is written once to each")
      }
      let number = link.connection
      switch order {
      case .close: endAtServer(number)
      case .write(let message):
        guard let wire = wires[number] else {
          Issue.record("a message for a connection that never was")
          continue
        }
        #expect(!wire.isOverAtServer, "nothing is written to a connection that is over")
        if message.command == .acknowledge {
          wires[number]?.answered.append(message.identifier)
          wires[number]?.hasRegistered = true
        } else {
          #expect(wire.hasRegistered, "nobody is asked anything before the user is known")
          #expect(message.sent.map { $0 <= now } == true)
        }
        if case .heartbeat? = message.content {
          #expect(wire.channel != .control)
          if let last = wire.lastBeat {
            #expect(now - last >= heartbeat - 250_000_000, "heartbeats keep their distance")
          }
          wires[number]?.lastBeat = now
        }
        wires[number]?.down.bytes += written { message.write(to: &$0) }
      }
    }
    guard let expected else { return }
    let receivers = writtenTo[expected.text] ?? []
    #expect(receivers.count == expected.count, "a text for a network is written to those to whom it was sent")
    #expect(receivers.isSubset(of: audiences[expected.text] ?? []))
  }

  private func expectBooks() {
    let counts = counts
    for kind in LocalPushKind.allCases {
      let requests = counts[kind]
      #expect(requests.offered == requests.sent + requests.absent + requests.overloaded + requests.silenced)
      #expect(
        requests.sent == requests.acknowledged + requests.timedOut + requests.lost + requests.unacknowledged)
      #expect(requests.outcomes.allSatisfy { $0.count >= 0 })
    }
    #expect(
      counts.sources.values.reduce(0, +)
        == counts.texts.offered + counts.invitations.offered + counts.callActions.offered)
    #expect(counts.open == wires.values.count { !$0.isOverAtServer })
    #expect(counts.here == sessions.indices.count { isHere($0) })
    for network in 0..<networks {
      #expect(counts[network].here == sessions.indices.count { isHere($0, on: network) })
    }
    // Who is on a network is on that one alone.
    let located = server.users()
    #expect(located.count == counts.here && Set(located.map(\.user)).count == located.count)
    for one in located {
      #expect(sessions.indices.contains { one.user == .init(device: UInt64($0)) && isHere($0, on: one.network) })
    }
    #expect(server.counts.ledger((0..<networks).map { "network \($0)" }).networksAreWhole)
  }
}
