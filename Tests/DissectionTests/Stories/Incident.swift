import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import TestSupport

@testable import Dissection

/// How a provider treats what an error response throws away.
enum Provider: CaseIterable {
  /// Sends everything again that was lost, and nothing else.
  case perfect
  /// Begins some before the bad one, which was accepted or is bad again.
  case early
  /// Begins some after the first lost one.
  case late
  /// Sends the bad one again as well.
  case stubborn
  /// Sends nothing again.
  case forgetful
}

/// A recording of providers and gateways where things go wrong, and what became of each notification, known from who made
/// it: the gateway that took or refused it.
struct Incident {
  /// A notification as a provider means it.
  struct Content: Hashable {
    var token: [UInt8]
    var payload: [UInt8]
    var expiration: UInt32
  }

  struct Sending: Equatable {
    var connection: Int
    var index: Int
    /// UNIX nanoseconds.
    var time: Int64
    var fate: Fate
    var status: UInt8?
    var identifier: UInt32
  }

  /// A connection as both of its ends know it.
  private struct Connection {
    var line: Int
    var sendings: [(content: Content, identifier: UInt32, time: Int64, isRecorded: Bool)] = []
    /// The first that the gateway refuses, and the writes after it until the answer comes.
    var refused: (position: Int, status: UInt8, patience: Int)?
    var isOver = false
    /// The client's FIN or RST is in the recording.
    var isEnded = false
    /// The answer is in the recording.
    var isAnswered = false
  }

  private(set) var capture = CaptureBuilder()
  private(set) var sendings: [(content: Content, sending: Sending)] = []
  private(set) var feedback: [(token: [UInt8], timestamp: UInt32, time: Int64)] = []
  private var connections: [Connection] = []
  private var random: SeededGenerator
  private var identifier: UInt32 = 0
  private var badTokens: Set<[UInt8]> = []
  /// The client's port of the next connection.
  private var port: UInt16 = 40_000

  private static let firstSecond: Int64 = 1_450_000_000
  private var now: Int64 { (Self.firstSecond * 1_000 + Int64(capture.milliseconds)) * 1_000_000 }
  /// The first packet's time, and the last one's.
  let start = Incident.firstSecond * 1_000_000_000 + 1_000_000
  private(set) var end: Int64 = 0
  /// A packet of a client is missing from the recording.
  private(set) var hasGaps = false
  /// The end of each connection is in the recording.
  var isFinished: Bool { connections.allSatisfy(\.isEnded) }

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    let contents = Self.contents(&random)
    let tokens = Array(Set(contents.map(\.token))).sorted { $0[3] < $1[3] }
    for _ in 0...tokens.count / 12 { badTokens.insert(random.pick(tokens)) }
    var queues = (0..<random.number(1...3)).map { _ in [Content]() }
    for content in contents { queues[random.number(0...queues.count - 1)].append(content) }
    let providers = queues.map { _ in random.pick(Provider.allCases) }
    var lanes = queues.map { _ in open() }
    while let lane = queues.indices.filter({ !queues[$0].isEmpty }).randomElement(using: &random) {
      step(&queues[lane], providers[lane], &lanes[lane], contents)
      if random.happens(oneIn: 40) { tellFeedback(tokens) }
    }
    for connection in Set(lanes).sorted() where !connections[connection].isOver { finish(connection) }
    if random.happens(oneIn: 2) { tellFeedback(tokens) }
    end = now
    settle()
  }

  private static func contents(_ random: inout SeededGenerator) -> [Content] {
    let devices = random.number(3...30)
    return (0..<random.number(1...120)).map { number in
      let device = UInt32(random.number(1...devices))
      let token = [UInt8](repeating: 0, count: 3) + [UInt8(device)] + [UInt8](repeating: 7, count: 28)
      // Some are the same as others, on purpose.
      let text = random.happens(oneIn: 8) ? "again" : "number \(number)"
      let past = UInt32(Int(firstSecond) + random.number(-5...5))
      return Content(
        token: token, payload: Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8),
        expiration: text == "again" ? 0 : random.pick([0, past, 1_900_000_000]))
    }
  }

  // MARK: what happens

  private mutating func open() -> Int {
    port += 1
    connections.append(Connection(line: capture.connect(from: port)))
    return connections.count - 1
  }

  /// One provider writes, or learns what became of what it wrote.
  private mutating func step(_ queue: inout [Content], _ provider: Provider, _ lane: inout Int, _ all: [Content]) {
    if random.happens(oneIn: 10) { capture.milliseconds += random.pick([5, 900, 30_000, 599_000, 700_000]) }
    if connections[lane].isOver { lane = open() }
    if let refused = connections[lane].refused, refused.patience == 0 {
      queue = answer(refused.position, refused.status, provider, lane) + queue
      return
    }
    connections[lane].refused?.patience -= 1
    // A gateway may go away without a word, and a provider may then send again what it is not sure of.
    if connections[lane].sendings.count > 2, random.happens(oneIn: 60) {
      let unsure = connections[lane].sendings.suffix(random.number(0...3)).map(\.content)
      capture.finish(connections[lane].line, byServer: random.happens(oneIn: 2))
      connections[lane].isOver = true
      connections[lane].isEnded = true
      if provider != .forgetful { queue = unsure + queue }
      return
    }
    write(queue.removeFirst(), lane)
  }

  private mutating func write(_ content: Content, _ lane: Int) {
    identifier += 1
    let frame = written {
      BinaryFrame.encodeEnhanced(
        identifier: identifier, expiration: content.expiration, token: content.token.rawBytes,
        payload: content.payload.rawBytes, into: &$0)
    }
    // The capturing program may miss a packet in the middle of a connection.
    let isRecorded = connections[lane].sendings.isEmpty || !random.happens(oneIn: 80)
    if isRecorded {
      capture.client(connections[lane].line, frame)
    } else {
      capture.lose(connections[lane].line, frame.count)
      hasGaps = true
    }
    connections[lane].sendings.append((content, identifier, now, isRecorded))
    guard connections[lane].refused == nil else { return }
    let position = connections[lane].sendings.count - 1
    if badTokens.contains(content.token) {
      connections[lane].refused = (position, 8, random.number(0...25))
    } else if random.happens(oneIn: 90) {
      connections[lane].refused = (position, random.pick([1, 10]), random.number(0...5))
    }
  }

  /// The gateway's answer arrives, or is lost; the provider turns to a new connection with what it sends again.
  private mutating func answer(_ position: Int, _ status: UInt8, _ provider: Provider, _ lane: Int) -> [Content] {
    let line = connections[lane].line
    let sent = connections[lane].sendings
    if random.happens(oneIn: 15) {
      capture.lose(line, 6, fromServer: true)
    } else {
      capture.server(line, refusal(status, sent[position].identifier))
      connections[lane].isAnswered = true
    }
    capture.finish(line, byServer: true)
    connections[lane].isOver = true
    connections[lane].isEnded = true
    let lost = sent[(position + 1)...].map(\.content)
    // Stubborn ones give up some day, or this would never end.
    let isPatient = !random.happens(oneIn: 4)
    switch provider {
    case .perfect: return lost
    case .late: return Array(lost.dropFirst(random.number(1...4)))
    case .early where isPatient: return sent[max(0, position - random.number(0...20))...].map(\.content)
    case .stubborn where isPatient: return [sent[position].content] + lost
    case .early, .stubborn: return lost
    case .forgetful: return []
    }
  }

  private mutating func finish(_ connection: Int) {
    if let refused = connections[connection].refused, random.happens(oneIn: 2) {
      _ = answer(refused.position, refused.status, .forgetful, connection)
    } else if random.happens(oneIn: 3) {
      let byServer = random.happens(oneIn: 2)
      capture.reset(connections[connection].line, byServer: byServer)
      connections[connection].isEnded = !byServer
    }
  }

  private mutating func tellFeedback(_ tokens: [[UInt8]]) {
    port += 1
    let line = capture.connect(from: port, to: 2196)
    // It has a place among the numbers of connections.
    connections.append(Connection(line: line, isOver: true, isEnded: true))
    for _ in 0..<random.number(0...3) {
      let token = random.pick(tokens)
      let timestamp = random.happens(oneIn: 6) ? 0 : UInt32(now / 1_000_000_000 - Int64(random.number(0...1_000)))
      capture.server(line, written { FeedbackTuple(timestamp: timestamp, token: token.rawBytes).encode(into: &$0) })
      feedback.append((token, timestamp, now))
    }
    capture.finish(line, byServer: true)
  }

  // MARK: what became of it

  /// What the recording proves: the answer of a gateway, if it and the notification that it names were recorded.
  private mutating func settle() {
    for connection in connections {
      var index = 0
      let refused = connection.isAnswered ? connection.refused.map { ($0.position, $0.status) } : nil
      let named = refused.flatMap { connection.sendings[$0.0].isRecorded ? $0 : nil }
      for (position, sent) in connection.sendings.enumerated() where sent.isRecorded {
        var fate = Fate.unknown
        if let (refused, status) = named {
          fate = position < refused ? .accepted : position > refused ? .discarded : status == 10 ? .accepted : .rejected
        }
        let sending = Sending(
          connection: connection.line + 1, index: index, time: sent.time, fate: fate,
          status: fate == .rejected ? named?.1 : nil, identifier: sent.identifier)
        sendings.append((sent.content, sending))
        index += 1
      }
    }
  }
}
