import BinaryProtocol
import Bytes
import NIOCore
import PushModel
import TestSupport

@testable import GatewayRecords
@testable import GatewaySimulator

/// Providers of a seed that send to one gateway, from perfect to forgetful: the gateway's events, and a capture of the
/// same packets.
struct JudgedProviders {
  /// What a provider does after an error response.
  enum Habit: CaseIterable {
    /// It sends again what was discarded.
    case perfect
    /// It begins before the rejected notification.
    case early
    /// It leaves some out.
    case late
    /// It sends the rejected one again as well.
    case stubborn
    /// It sends nothing again.
    case forgetful
  }

  private struct Content { let token: [UInt8], payload: [UInt8], expiration: UInt32 }

  private struct Connection {
    let number: UInt64
    let line: Int
    var session = GatewaySession()
    var sent: [Content] = []
    /// Writes until the provider reads the error response.
    var patience = 0
    var isAnswered = false
  }

  private struct Provider {
    let host: UInt8
    let habit: Habit
    var queue: [Content]
    var connection: Connection?
  }

  private(set) var capture = CaptureBuilder()
  private(set) var events: [ObservedEvent] = []
  private var random: SeededGenerator
  private var port: UInt16 = 40_000
  private var identifier: UInt32 = 0
  private var connections: UInt64 = 0
  private let provesAll: Bool
  private let tokens: ClosedRange<Int>

  private static let badToken = [UInt8](repeating: 0xad, count: 32)

  /// The time of the latest packet, in nanoseconds.
  private(set) var now: Int64 {
    get { (1_450_000_000_000 + Int64(capture.milliseconds)) * 1_000_000 }
    set { capture.milliseconds = Int(newValue / 1_000_000 - 1_450_000_000_000) }
  }

  /// - Parameters:
  ///   - provesAll: each connection ends with an error response, so that the capture proves each fate.
  ///   - tokens: the bytes that tokens repeat.
  init(seed: UInt64, provesAll: Bool, tokens: ClosedRange<Int> = 1...30) {
    random = SeededGenerator(seed: seed)
    self.provesAll = provesAll
    self.tokens = tokens
    var providers: [Provider] = []
    for host in 0..<random.number(1...4) {
      let habit = random.pick(Habit.allCases)
      let queue = (0..<random.number(0...80)).map { number in content(number) }
      providers.append(Provider(host: UInt8(5 + host), habit: habit, queue: queue))
    }
    while let place = providers.indices.filter({ !providers[$0].queue.isEmpty || providers[$0].connection != nil })
      .randomElement(using: &random)
    {
      if random.happens(oneIn: 15) { capture.milliseconds += random.pick([3, 800, 20_000, 700_000]) }
      step(&providers[place])
      if random.happens(oneIn: 40) { readFeedback(of: providers[place].host) }
    }
  }

  private mutating func content(_ number: Int) -> Content {
    let isBad = random.happens(oneIn: 15)
    let text = random.happens(oneIn: 8) ? "again" : "number \(number)"
    let past = UInt32(1_450_000_000 + random.number(-5...5))
    return Content(
      token: isBad ? Self.badToken : [UInt8](repeating: UInt8(random.number(tokens)), count: 32),
      payload: Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8), expiration: random.pick([0, past, 1_900_000_000]))
  }

  // MARK: a provider

  private mutating func step(_ provider: inout Provider) {
    guard var connection = provider.connection else {
      provider.connection = open(provider.host, .gateway)
      return
    }
    if connection.isAnswered, connection.patience == 0 || provider.queue.isEmpty {
      let rejected = connection.session.accepted
      provider.queue = resent(connection.sent, rejected, provider.habit) + provider.queue
      close(connection, byServer: true)
      provider.connection = nil
      return
    }
    if provider.queue.isEmpty {
      // A notification that no gateway accepts, as some clients send it, or none.
      if provesAll || random.happens(oneIn: 2) {
        write([Content(token: Self.badToken, payload: Array("{}".utf8), expiration: 0)], on: &connection)
        provider.connection = connection
      } else {
        close(connection, byServer: random.happens(oneIn: 2))
        provider.connection = nil
      }
      return
    }
    let batch = Array(provider.queue.prefix(random.number(1...5)))
    provider.queue.removeFirst(batch.count)
    connection.patience = max(0, connection.patience - 1)
    write(batch, on: &connection)
    provider.connection = connection
  }

  private mutating func resent(_ sent: [Content], _ rejected: Int, _ habit: Habit) -> [Content] {
    let lost = sent.dropFirst(rejected + 1)
    // It would never end if nobody gave up.
    let isPatient = random.happens(oneIn: 2)
    switch habit {
    case .early where isPatient:
      return sent[max(0, rejected - 3)..<rejected] + Array(lost)
    case .stubborn where isPatient: return Array(sent[rejected...])
    case .perfect, .early, .stubborn: return Array(lost)
    case .late: return Array(lost.dropFirst(random.number(1...4)))
    case .forgetful: return []
    }
  }

  // MARK: the wire

  private mutating func add(_ connection: UInt64, _ change: ObservedEvent.Change) {
    events.append(ObservedEvent(connection: connection, time: now, change: change))
  }

  private mutating func open(_ host: UInt8, _ service: ObservedEvent.Service) -> Connection {
    port += 1
    connections += 1
    let server: UInt16 = service == .gateway ? 2195 : 2196
    let began = now + 1_000_000
    let line = capture.connect(from: port, of: host, to: server)
    events.append(
      ObservedEvent(
        connection: connections, time: began,
        change: .opened(
          .init(service: service, client: "10.0.0.\(host):\(port)", server: "10.0.0.9:\(server)", tls: nil)))
    )
    return Connection(number: connections, line: line)
  }

  private mutating func write(_ batch: [Content], on connection: inout Connection) {
    let bytes = written { output in
      for content in batch {
        identifier += 1
        BinaryFrame.encodeFramed(
          token: content.token.rawBytes, payload: content.payload.rawBytes, identifier: identifier,
          expiration: content.expiration, priority: 10, into: &output)
      }
    }
    connection.sent += batch
    capture.client(connection.line, bytes)
    let before = connection.session
    _ = connection.session.receive(bytes.rawBytes) { push in
      push.token.byteCount > 0 && push.token.byte(at: 0) == 0xad ? .status(.invalidToken) : nil
    }
    add(connection.number, .received(ByteBuffer(bytes: bytes), connection.session.decision(since: before)))
    guard before.ending == nil, let response = connection.session.ending?.response else { return }
    let answer = written { response.encode(into: &$0) }
    capture.server(connection.line, answer)
    add(connection.number, .sent(ByteBuffer(bytes: answer)))
    (connection.isAnswered, connection.patience) = (true, random.number(0...6))
  }

  private mutating func close(_ connection: Connection, byServer: Bool) {
    for isPeer in [!byServer, byServer] {
      capture.halfClose(connection.line, byServer: !isPeer)
      add(connection.number, .closing(byPeer: isPeer, isReset: false))
    }
    add(connection.number, .closed(connection.session.decision()))
  }

  private mutating func readFeedback(of host: UInt8) {
    let connection = open(host, .feedback)
    for _ in 0..<random.number(0...3) {
      let token = [UInt8](repeating: UInt8(random.number(tokens)), count: 32)
      let tuple = written {
        FeedbackTuple(timestamp: UInt32(now / 1_000_000_000), token: token.rawBytes).encode(into: &$0)
      }
      capture.server(connection.line, tuple)
      add(connection.number, .sent(ByteBuffer(bytes: tuple)))
    }
    close(connection, byServer: true)
  }
}
