import BinaryProtocol
import Measurement
import TestSupport
import Testing

@testable import GatewaySimulator

/// What happens when, to the nanosecond: nothing before its time, and what the gateway looks after four times a second
/// at most half a second behind it.
@Suite("Simulated time: the gateway")
struct GatewayTimeTests {
  private static let lateness = Duration.milliseconds(500)

  @Test("A shutdown for maintenance is not for connections that were made after it was asked for")
  func maintenance() throws {
    let gateway = try SimulatedGateway()
    let earlier = try gateway.connect()
    earlier.send(frames(1...3))
    gateway.advance(by: .milliseconds(1))
    let last = gateway.shared.lastNumber
    // Another event loop may accept it before this one comes to the shutdown.
    let later = try gateway.connect()
    later.send(frames(1...2))
    gateway.advance(by: .milliseconds(1))
    gateway.books.shutDownConnections(upTo: last, forGood: false)
    gateway.advance(by: .milliseconds(1))
    #expect(earlier.received == response(.shutdown, 3))
    #expect(later.received == [] && later.isOpen)
    later.send(frames(3...4))
    gateway.advance(by: .milliseconds(1))
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == 7)
  }

  // MARK: how long connections live

  @Test(
    "A silent connection is closed, and not before its time", arguments: [false, true], seeds(10, of: 100))
  func idle(tls: Bool, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let idle = Duration.milliseconds(random.number(1...5_000))
    let gateway = try SimulatedGateway(tls: tls) { $0.behavior.connection.idle = idle }
    gateway.advance(by: .milliseconds(random.number(0...1_000)))
    let client = try gateway.connect()
    // As silent as it may be, and almost.
    for number in 1...10 {
      gateway.advance(by: random.happens(oneIn: 2) ? idle - .nanoseconds(1) : idle / random.number(1...5))
      #expect(client.isOpen, "notification \(number)")
      client.send(frame(UInt32(number)))
    }
    let last = gateway.now
    gateway.advance(by: idle - .nanoseconds(1))
    #expect(client.isOpen)
    gateway.advance(by: .seconds(10))
    let silence = try #require(client.closedAt) - last
    #expect(silence >= idle && silence <= idle + Self.lateness)
    #expect(client.received == [])
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == 10)
    #expect(ledger.connections.map(\.end) == [.idle])
  }

  @Test(
    "A connection is shut down at the end of its life, and not before", arguments: [false, true], seeds(5, of: 100))
  func lifetime(tls: Bool, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let lifetime = Duration.milliseconds(random.number(1...5_000))
    let gateway = try SimulatedGateway(tls: tls) { $0.behavior.connection.lifetime = lifetime }
    gateway.advance(by: .milliseconds(random.number(0...1_000)))
    let start = gateway.now
    let (client, silent) = (try gateway.connect(), try gateway.connect())
    client.send(frames(1...3))
    gateway.advance(by: lifetime - .nanoseconds(1))
    #expect(client.received == [] && silent.isOpen)
    gateway.advance(by: Self.lateness)
    let arrival = try #require(client.arrivals.first)
    #expect(arrival.bytes == response(.shutdown, 3))
    #expect(arrival.time >= start + lifetime && arrival.time <= start + lifetime + Self.lateness)
    // One that carried nothing is told nothing.
    #expect(silent.received == [])
    #expect(silent.closedAt == arrival.time)
    client.close()
    let ledger = gateway.end()
    #expect(ledger.gateway.binary.errorResponses == ["10": 1])
    #expect(ledger.connections.map(\.end) == [.lifetime, .lifetime])
  }

  @Test(
    "A frame that does not go on is given up, and not before its time", arguments: [false, true], seeds(5, of: 100))
  func frameTimeout(tls: Bool, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let timeout = Duration.milliseconds(random.number(1...5_000))
    let gateway = try SimulatedGateway(tls: tls) { $0.frameTimeout = timeout }
    let client = try gateway.connect()
    gateway.advance(by: .milliseconds(random.number(0...10_000)))
    let bytes = frames(1...2)
    client.send(Array(bytes.prefix(random.number(frame(1).count + 1...bytes.count - 1))))
    let start = gateway.now
    gateway.advance(by: timeout)
    #expect(client.isOpen)
    gateway.advance(by: Self.lateness)
    let closed = try #require(client.closedAt)
    #expect(closed > start + timeout && closed <= start + timeout + Self.lateness)
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == 1)
    #expect(ledger.gateway.binary.incomplete == 1)
    #expect(ledger.connections.map(\.end) == [.frameTimeout])
  }

  @Test("A byte now and then: in its time it is a notification, beyond it is given up", arguments: [false, true])
  func slowLoris(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) { $0.frameTimeout = .seconds(1) }
    let client = try gateway.connect()
    let bytes = frame(1)
    client.send(Array(bytes.dropLast(5)))
    for byte in bytes.suffix(5) {
      gateway.advance(by: .milliseconds(200))
      client.send([byte])
    }
    #expect(gateway.tally.accepted == 1)
    // As slow again, with too much to say: each byte is in time, the frame is not.
    let start = gateway.now
    for byte in bytes where client.isOpen {
      client.send([byte])
      gateway.advance(by: .milliseconds(200))
    }
    let closed = try #require(client.closedAt)
    #expect(closed > start + .seconds(1) && closed <= start + .seconds(1) + Self.lateness)
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == 1)
    #expect(ledger.gateway.binary.incomplete == 1)
    #expect(ledger.connections.map(\.end) == [.frameTimeout])
  }

  @Test("A handshake that is not finished in time is given up, and not before", arguments: [0, 1, 5, 60])
  func handshakeTimeout(length: Int) throws {
    let gateway = try SimulatedGateway(tls: true) { $0.handshakeTimeout = .milliseconds(300) }
    let client = try gateway.connect(raw: true)
    // A record of a handshake that says it has 512 bytes.
    let bytes = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3] + [UInt8](repeating: 7, count: 100)
    gateway.advance(by: .milliseconds(299))
    client.send(Array(bytes.prefix(length)))
    #expect(client.isOpen)
    gateway.advance(by: .milliseconds(1))
    #expect(client.closedAt == .milliseconds(300))
    let ledger = gateway.end()
    #expect(ledger.gateway.handshakeFailures == 1)
    #expect(ledger.connections.map(\.end) == [.handshakeFailed])
  }

  @Test("Nobody can wait for an alert for ever, and somebody who does is closed behind the handshake's time")
  func refusedHandshakeTimeout() throws {
    let gateway = try SimulatedGateway(tls: true) {
      $0.behavior.connection.handshakeFailure = 1
      $0.handshakeTimeout = .seconds(3)
    }
    let client = try gateway.connect(raw: true)
    gateway.advance(by: .seconds(4))
    #expect(client.isOpen)
    gateway.advance(by: Self.lateness)
    #expect(!client.isOpen && client.received == [])
    let ledger = gateway.end()
    #expect(ledger.connections.map(\.end) == [.handshakeFailed])
  }

  @Test("Reconnecting too fast is refused for a while, and then let in again", arguments: [false, true])
  func reconnects(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.connection.reconnectsPerSecond = 2
      $0.behavior.connection.refusal = .seconds(5)
    }
    func isLetIn(after delay: Duration) throws -> Bool {
      gateway.advance(by: delay)
      let client = try gateway.connect()
      defer { client.close() }
      return client.isOpen
    }
    // Two a second for as long as one likes.
    for _ in 0..<5 {
      #expect(try isLetIn(after: .milliseconds(500)))
      #expect(try isLetIn(after: .milliseconds(500)))
    }
    // A third one within the second; from then on none, until the time is over.
    #expect(try !isLetIn(after: .milliseconds(499)))
    #expect(try !isLetIn(after: .zero))
    #expect(try !isLetIn(after: .milliseconds(4_999)))
    #expect(try isLetIn(after: .milliseconds(1)))
    #expect(try isLetIn(after: .zero))
    #expect(try !isLetIn(after: .zero))
    let ledger = gateway.end()
    #expect(ledger.gateway.refused == 4)
    #expect(ledger.gateway.connections == 16)
  }

  @Test("Times that mean never do not come within 100 years", arguments: [false, true])
  func never(tls: Bool) throws {
    let never = Duration.seconds(1 << 56)
    let gateway = try SimulatedGateway(tls: tls) {
      ($0.handshakeTimeout, $0.frameTimeout, $0.linger) = (never, never, never)
      ($0.behavior.connection.reconnectsPerSecond, $0.behavior.connection.refusal) = (6, never)
      ($0.behavior.connection.idle, $0.behavior.connection.lifetime) = (never, never)
      $0.behavior.reading.pauseEvery = 1_000
      $0.behavior.reading.pause = never
      $0.behavior.rejections = [.init(.prefix([9]))]
    }
    let begun = try gateway.connect(raw: true)
    let (silent, cut, lingering) = (try gateway.connect(), try gateway.connect(), try gateway.connect())
    let paused = try gateway.connect()
    cut.send(frames(1...2).dropLast())
    lingering.send(frame(9))
    paused.send(frames(1...100))
    let accepted = gateway.tally.accepted
    while try gateway.connect().isOpen {}
    for _ in 0..<2 {
      gateway.leap(by: .seconds(50 * 365 * 86_400))
      #expect([begun, silent, cut, lingering, paused].allSatisfy { $0.isOpen })
      #expect(gateway.tally.accepted == accepted)
      #expect(try gateway.connect().closedAt == gateway.now)
    }
    #expect(lingering.received == response(.invalidToken, 9))
    _ = gateway.end()
  }

  // MARK: answers

  @Test("The answer waits for the delay, and what comes meanwhile is discarded", arguments: [false, true])
  func delay(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.rejections = [.init(.prefix([1]))]
      $0.behavior.response.delay = .milliseconds(300) ... .milliseconds(400)
    }
    var delays: Set<Duration> = []
    for number in 0..<20 {
      let start = gateway.now
      let client = try gateway.connect()
      client.send(frame(1))
      gateway.advance(by: .milliseconds(299))
      #expect(client.received == [] && client.endedAt == nil)
      client.send(frames(2...3))
      gateway.advance(by: .milliseconds(101))
      let arrival = try #require(client.arrivals.first, "connection \(number)")
      #expect(arrival.bytes == response(.invalidToken, 1))
      #expect((.milliseconds(300) ... .milliseconds(400)).contains(arrival.time - start))
      #expect(client.endedAt == arrival.time)
      delays.insert(arrival.time - start)
      client.close()
    }
    // Each is drawn.
    #expect(delays.count > 15)
    let ledger = gateway.end()
    #expect(ledger.gateway.binary.errorResponses == ["8": 20])
    #expect(ledger.gateway.discarded == 40)
  }

  @Test("The answer comes in pieces, each at its time, and the end with the last", arguments: [false, true])
  func pieces(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.delay = .milliseconds(70) ... .milliseconds(70)
      $0.behavior.response.pieces = [1, 3]
      $0.behavior.response.pieceDelay = .milliseconds(150)
    }
    let client = try gateway.connect()
    client.send(frame(7))
    // Its own end does not hasten the answer.
    client.finishWriting()
    gateway.advance(by: .seconds(1))
    let whole = response(.invalidToken, 7)
    #expect(
      client.arrivals == [
        .init(time: .milliseconds(70), bytes: Array(whole[..<1])),
        .init(time: .milliseconds(220), bytes: Array(whole[1..<4])),
        .init(time: .milliseconds(370), bytes: Array(whole[4...])),
      ])
    #expect(client.endedAt == .milliseconds(370) && client.closedAt == .milliseconds(370))
    #expect(gateway.end().connections.map(\.end) == [.rejected])
  }

  @Test("A client that does not close after an error is closed, and not before its time", arguments: [false, true])
  func linger(tls: Bool) throws {
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.rejections = [.init(.prefix([1]))]
      $0.linger = .seconds(3)
    }
    gateway.advance(by: .milliseconds(100))
    let client = try gateway.connect()
    client.send(frame(1))
    #expect(client.received == response(.invalidToken, 1) && client.endedAt == .milliseconds(100))
    // It goes on sending, which is counted, until the gateway has had enough.
    for _ in 0..<60 {
      client.send(frame(2))
      gateway.advance(by: .milliseconds(50))
      #expect(client.isOpen)
    }
    gateway.advance(by: Self.lateness)
    let lingered = try #require(client.closedAt) - .milliseconds(100)
    #expect(lingered >= .seconds(3) && lingered <= .seconds(3) + Self.lateness)
    client.send(frame(3))
    let ledger = gateway.end()
    #expect(ledger.gateway.discarded == 60)
    #expect(ledger.connections.map(\.end) == [.rejected])
  }

  @Test("A connection whose answer meets a reset ends once", arguments: [false, true], [[], [1, 1]])
  func resetBeforeAnswer(tls: Bool, pieces: [Int]) throws {
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.rejections = [.init(.every(1))]
      $0.behavior.response.delay = .milliseconds(200) ... .milliseconds(200)
      $0.behavior.response.pieces = pieces
    }
    let client = try gateway.connect()
    client.send(frame(1))
    client.breakUnseen()
    gateway.advance(by: .milliseconds(199))
    #expect(client.isOpen)
    gateway.advance(by: .seconds(10))
    #expect(client.closedAt == .milliseconds(200))
    #expect(client.received == [])
    #expect(gateway.end().connections.map(\.end) == [.rejected])
  }

  // MARK: reading

  @Test("Bytes a second: reading is as fast as that and no faster, and nothing is lost", arguments: [false, true])
  func rate(tls: Bool) throws {
    let bytes = frames(1...1_000)
    let rate = 100_000
    let gateway = try SimulatedGateway(tls: tls) { $0.behavior.reading.bytesPerSecond = rate }
    let client = try gateway.connect()
    client.send(bytes)
    client.finishWriting()
    // 10 ms ahead at most; with TLS a record more, with what came of the next one.
    let burst = rate / 100 + (tls ? 16_384 + 256 : 0)
    let time = Int(Double(bytes.count) / Double(rate) * 1_000)
    for millisecond in 1...time {
      gateway.advance(by: .milliseconds(1))
      #expect(gateway.tally.bytes <= rate * millisecond / 1_000 + burst)
    }
    gateway.advance(by: .milliseconds(1))
    #expect(gateway.tally.received == 1_000)
    gateway.advance(by: .seconds(1))
    #expect(!client.isOpen)
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == 1_000)
    #expect(ledger.gateway.bytes == bytes.count)
    #expect(ledger.connections.map(\.end) == [.peerFin])
  }

  @Test("Pauses after so many bytes")
  func pauses() throws {
    let bytes = frames(1...100)
    let gateway = try SimulatedGateway {
      $0.behavior.reading.pauseEvery = 1_000
      $0.behavior.reading.pause = .milliseconds(100)
    }
    let client = try gateway.connect()
    client.send(bytes)
    let length = frame(1).count
    for pause in 0...bytes.count / 1_000 {
      let taken = min(bytes.count, (pause + 1) * 1_000) / length
      #expect(gateway.tally.received == taken)
      gateway.advance(by: .milliseconds(100) - .nanoseconds(1))
      #expect(gateway.tally.received == taken)
      gateway.advance(by: .nanoseconds(1))
    }
    #expect(gateway.tally.received == 100)
    client.close()
    #expect(gateway.end().connections.map(\.end) == [.peerFin])
  }

  @Test(
    "A frame cannot be late, nor a connection idle, while the gateway does not read", arguments: [false, true],
    seeds(10, of: 100))
  func slowIsNotLate(tls: Bool, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let pause = Duration.milliseconds(random.number(1...3_000))
    let (idle, timeout) = (Duration.milliseconds(random.number(1...600)), Duration.milliseconds(random.number(1...600)))
    let gateway = try SimulatedGateway(tls: tls) {
      $0.behavior.reading.pauseEvery = 100
      $0.behavior.reading.pause = pause
      ($0.behavior.connection.idle, $0.frameTimeout) = (idle, timeout)
    }
    let client = try gateway.connect()
    // More than is read at once, and half a frame.
    client.send(frames(1...21).dropLast(20))
    var steps = 0
    while client.isOpen, gateway.tally.received < 20, steps < 1_000 {
      gateway.advance(by: pause / 10)
      steps += 1
    }
    #expect(gateway.tally.received == 20)
    // Once it reads again both can be late.
    gateway.advance(by: pause + max(idle, timeout) + .seconds(1))
    let end = gateway.end()
    #expect([.idle, .frameTimeout].contains(end.connections.first?.end))
    #expect(end.gateway.accepted == 20 && end.gateway.binary.incomplete == 1)
  }

  /// Pauses that lie between two looks at the deadlines, too.
  @Test("Only the time for which the gateway reads counts", arguments: [1, 9, 11, 240, 249])
  func shortPauses(milliseconds: Int) throws {
    let gateway = try SimulatedGateway {
      $0.behavior.reading.pauseEvery = 1
      $0.behavior.reading.pause = .milliseconds(milliseconds)
      $0.frameTimeout = .seconds(1)
    }
    let client = try gateway.connect()
    gateway.advance(by: .milliseconds(1))
    // A byte each time when it reads again, 10 ms later.
    let bytes = frame(1)
    for byte in bytes {
      client.send([byte])
      gateway.advance(by: .milliseconds(milliseconds + 10))
    }
    #expect(gateway.tally.accepted == 1)
    client.close()
    gateway.advance(by: .seconds(1))
    #expect(gateway.end().connections.map(\.end) == [.peerFin])
  }

  // MARK: the time of day

  @Test("Entries have the times at which connections began and ended, and devices those at which notifications expire")
  func timeOfDay() throws {
    let second = UInt32(SimulatedGateway.beginning / 1_000_000_000)
    let gateway = try SimulatedGateway { $0.devices = try DevicePopulation(shares: .init(offline: 1)) }
    gateway.advance(by: .milliseconds(1_507))
    let client = try gateway.connect()
    client.send(frame(1, expiration: second + 1) + frame(2, expiration: second + 2) + frame(3, expiration: second + 3))
    // The second itself is still good.
    gateway.advance(by: .milliseconds(493))
    #expect(gateway.shared.ledger(gateway.tally).devices.expired == 1)
    gateway.advance(by: .milliseconds(1))
    #expect(gateway.shared.ledger(gateway.tally).devices.expired == 2)
    gateway.advance(by: .milliseconds(252))
    client.close()
    gateway.advance(by: .seconds(1))
    let ledger = gateway.end()
    #expect(ledger.started == "2015-09-16T01:02:03.000Z")
    #expect(ledger.connections.map(\.opened) == ["2015-09-16T01:02:04.507Z"])
    #expect(ledger.connections.map(\.closed) == ["2015-09-16T01:02:05.253Z"])
    #expect(ledger.ended == "2015-09-16T01:02:06.253Z")
    #expect(ledger.devices.expired == 3)
  }

  // MARK: cuts

  @Test("Frames cut at every byte over two reads", arguments: [false, true])
  func everyCut(tls: Bool) throws {
    let bytes = frames(1...3)
    let length = frame(1).count
    let gateway = try SimulatedGateway(tls: tls) { $0.behavior.rejections = [.init(.prefix([2]))] }
    for cut in 1..<bytes.count {
      let client = try gateway.connect()
      let before = gateway.tally.received
      client.send(Array(bytes[..<cut]))
      // Frames that are there are taken before the rest comes.
      #expect(gateway.tally.received - before == cut / length, "cut at \(cut)")
      client.send(Array(bytes[cut...]))
      #expect(client.received == response(.invalidToken, 2), "cut at \(cut)")
      client.close()
      #expect(!client.isOpen)
    }
    let runs = bytes.count - 1
    let ledger = gateway.end()
    #expect(ledger.gateway.accepted == runs)
    #expect(ledger.gateway.rejected == ["8": runs])
    #expect(ledger.gateway.discarded == runs)
    #expect(ledger.gateway.binary.incomplete == 0)
  }
}
