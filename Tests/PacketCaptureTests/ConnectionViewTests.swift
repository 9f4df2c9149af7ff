import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// Flows with other addresses and the same numbers, segment by segment.
@Suite("Connections under other addresses")
struct ConnectionViewTests {
  // MARK: conversations that several interfaces record

  private struct Interface {
    var client: Endpoint
    var server: Endpoint
  }

  private struct Captured {
    var segment: TCPSegment
    var bytes: [UInt8]
    var time: Int64
  }

  private static func endpoint(_ address: UInt32, _ port: Int) -> Endpoint {
    Endpoint(address: IPAddress(v4: address), port: UInt16(port))
  }

  /// A connection as each interface sees it: a packet passes them in one order, the answer in the other.
  private struct Recording {
    var views: [Interface]
    var clientNumber: UInt32
    var serverNumber: UInt32
    var time: Int64 = 1_000_000_000
    /// Between two interfaces.
    var delay: Int64 = 20_000
    /// Between two packets.
    var pace: ClosedRange<Int64> = 1_000_000...3_000_000
    /// Per mille of the captures that are lost, but not that of every interface.
    var lost = 0
    /// Packets that the last interface did not record at first.
    var late = 0
    private(set) var captured: [Captured] = []
    private(set) var once: [Captured] = []
    private var sent = (client: 0, server: 0)
    private var packets = 0

    init(_ views: [Interface], _ clientNumber: UInt32, _ serverNumber: UInt32) {
      (self.views, self.clientNumber, self.serverNumber) = (views, clientNumber, serverNumber)
    }

    mutating func send(
      fromClient: Bool, _ bytes: [UInt8] = [], _ flags: TCPSegment.Flags = [.ack], _ random: inout SeededGenerator
    ) {
      let own = SequenceNumber(rawValue: fromClient ? clientNumber : serverNumber)
        .advanced(by: fromClient ? sent.client : sent.server)
      let peer = SequenceNumber(rawValue: fromClient ? serverNumber : clientNumber)
        .advanced(by: fromClient ? sent.server : sent.client)
      var isFirst = true
      for place in views.indices {
        let view = fromClient ? views[place] : views[views.count - 1 - place]
        let index = fromClient ? place : views.count - 1 - place
        let isLast = place == views.count - 1
        if index == views.count - 1 && packets < late && index > 0 { continue }
        if random.number(0...999) < lost && !(isLast && isFirst) { continue }
        func segment(_ view: Interface) -> TCPSegment {
          TCPSegment(
            source: fromClient ? view.client : view.server, destination: fromClient ? view.server : view.client,
            sequence: own, acknowledgement: flags.contains(.ack) ? peer : SequenceNumber(rawValue: 0), flags: flags,
            payloadLength: bytes.count)
        }
        let moment = time + Int64(place) * delay
        captured.append(Captured(segment: segment(view), bytes: bytes, time: moment))
        if isFirst { once.append(Captured(segment: segment(views[0]), bytes: bytes, time: moment)) }
        isFirst = false
      }
      let length = bytes.count + (flags.contains(.syn) || flags.contains(.fin) ? 1 : 0)
      if fromClient { sent.client += length } else { sent.server += length }
      packets += 1
      time += pace.lowerBound + Int64(random.number(0...Int((pace.upperBound - pace.lowerBound) / 1_000))) * 1_000
    }

    /// Handshake, data both ways, the end.
    mutating func talk(_ random: inout SeededGenerator, handshake: Bool = true) {
      if handshake {
        send(fromClient: true, [], .syn, &random)
        send(fromClient: false, [], [.syn, .ack], &random)
        send(fromClient: true, &random)
      }
      for _ in 0..<random.number(4...20) {
        send(fromClient: true, random.bytes(random.number(20...600)), [.ack], &random)
        if random.happens(oneIn: 3) { send(fromClient: false, &random) }
      }
      send(fromClient: false, random.bytes(6), [.ack], &random)
      if random.happens(oneIn: 3) { return send(fromClient: true, [], [.rst, .ack], &random) }
      send(fromClient: false, [], [.fin, .ack], &random)
      send(fromClient: true, [], [.fin, .ack], &random)
      send(fromClient: false, &random)
    }

    private mutating func send(fromClient: Bool, _ random: inout SeededGenerator) {
      send(fromClient: fromClient, [], [.ack], &random)
    }
  }

  private func log(_ captured: [Captured], _ options: ReassemblyOptions = ReassemblyOptions()) -> StreamLog {
    var reassembler = TCPReassembler(options: options)
    var log = StreamLog()
    let order = captured.indices.sorted { (captured[$0].time, $0) < (captured[$1].time, $1) }
    for (number, index) in order.enumerated() {
      let (segment, bytes) = (captured[index].segment, captured[index].bytes)
      reassembler.receive(
        segment, bytes.rawBytes, time: Timestamp(nanoseconds: captured[index].time), packet: number + 1
      ) { log.consume($0, at: $1) }
    }
    reassembler.finish { log.consume($0, at: $1) }
    log.checkAllClosed()
    return log
  }

  /// What a connection is, whatever its addresses are.
  private func contents(_ log: StreamLog, clients: Set<Endpoint>) -> [String] {
    log.connections.map { connection in
      let isLow = clients.contains(connection.flow.low)
      let (client, server) = isLow ? (connection.low, connection.high) : (connection.high, connection.low)
      // A view that is known from its FIN on repeats it, as a sender does that got no answer.
      let closings = Set(
        connection.closings.map { ($0.direction == .forward) == isLow ? "c\($0.isReset)" : "s\($0.isReset)" }
      ).sorted()
      return "\(client.bytes) \(client.gaps) \(server.bytes) \(server.gaps) \(closings) \(connection.conflicts.count)"
    }.sorted()
  }

  private static func views(_ random: inout SeededGenerator, _ number: Int) -> [Interface] {
    var views = [Interface(client: endpoint(0xac11_0002, 40_000 + number), server: endpoint(0x11bc_0109, 2_195))]
    for place in 1...random.number(1...3) {
      var view = views[place - 1]
      let kind = place == 1 ? random.number(0...2) : random.number(0...3)
      if kind == 0 || kind == 2 {
        view.client = endpoint(
          random.pick([0x0a01_0005, 0xc0a8_0001]) + UInt32(place), random.pick([40_000, 50_000]) + number)
      }
      if kind == 1 || kind == 2 {
        view.server = endpoint(random.pick([0x0a09_0001, 0xdc09_0001]) + UInt32(place), 2_195)
      }
      views.append(view)
    }
    return views
  }

  @Test("What several interfaces record of connections is what one records", arguments: seeds(60, of: 2_000))
  func law(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (several, one): ([Captured], [Captured]) = ([], [])
    var clients: Set<Endpoint> = []
    var expected = 0
    let isMiddle = random.happens(oneIn: 4)
    for number in 0..<random.pick([1, 2, 12]) {
      var recording = Recording(Self.views(&random, number), random.uint32(), random.uint32())
      recording.delay = random.pick([0, 5_000, 20_000, 200_000])
      if random.happens(oneIn: 3) { recording.late = random.number(1...5) }
      if random.happens(oneIn: 3) { recording.lost = 20 }
      recording.talk(&random, handshake: !isMiddle)
      several += recording.captured
      one += recording.once
      clients.formUnion(recording.views.map(\.client))
      expected += Set(recording.views.map { [$0.client, $0.server] }).count - 1
    }
    let (found, known) = (log(several), log(one))
    #expect(contents(found, clients: clients) == contents(known, clients: clients))
    #expect(found.violations == [])
    #expect(found.connections.reduce(0) { $0 + $1.views.count } <= expected)
    if several.count > 2 * one.count - 4 { #expect(found.connections.contains { !$0.views.isEmpty }) }
  }

  // MARK: one after the other

  private static let here = Interface(client: endpoint(0xac11_0002, 40_000), server: endpoint(0x11bc_0109, 2_195))
  private static let there = Interface(client: endpoint(0x0a01_0005, 40_000), server: endpoint(0x11bc_0109, 2_195))

  private func talk(
    _ view: Interface, numbers: (UInt32, UInt32) = (1_000, 9_000), at time: Int64 = 1_000_000_000, seed: UInt64 = 1
  ) -> [Captured] {
    var recording = Recording([view], numbers.0, numbers.1)
    recording.time = time
    var random = SeededGenerator(seed: seed)
    recording.talk(&random)
    return recording.captured
  }

  @Test("The same numbers and bytes at another time are a replay: two connections", arguments: [1_000_001, 5_000_000])
  func replay(delay: Int64) {
    let found = log(talk(Self.here) + talk(Self.there, at: 1_000_000_000 + delay))
    #expect(found.connections.count == 2 && found.connections.allSatisfy(\.views.isEmpty))
    #expect(found.violations == [])
  }

  @Test("They are one up to a millisecond", arguments: [0, 20_000, 1_000_000]) func near(delay: Int64) {
    let found = log(talk(Self.here) + talk(Self.there, at: 1_000_000_000 + delay))
    #expect(found.connections.count == 1 && found.connections[0].views.count == 1)
  }

  @Test("The same content under other numbers is sent twice") func otherNumbers() {
    let found = log(talk(Self.here) + talk(Self.there, numbers: (1_001, 9_000), at: 1_000_020_000))
    #expect(found.connections.count == 2 && found.connections.allSatisfy(\.views.isEmpty))
  }

  @Test("The same numbers by accident are two connections, each with its views") func accident() {
    var random = SeededGenerator(seed: 9)
    var all: [Captured] = []
    for (index, view) in [Self.here, Self.there].enumerated() {
      let other = Interface(
        client: Self.endpoint(0xc0a8_0001 + UInt32(index), 40_000), server: view.server)
      var recording = Recording([view, other], 1_000, 9_000)
      recording.time += Int64(index) * 5_000
      recording.send(fromClient: true, [], .syn, &random)
      recording.send(fromClient: false, [], [.syn, .ack], &random)
      for _ in 0..<6 { recording.send(fromClient: true, random.bytes(100), [.ack], &random) }
      all += recording.captured
    }
    let found = log(all)
    #expect(found.connections.count == 2 && found.connections.allSatisfy { $0.views.count == 1 })
    #expect(found.connections.allSatisfy { $0.low.bytes.count + $0.high.bytes.count == 600 && $0.conflicts.isEmpty })
    #expect(found.violations == [])
  }

  /// The interface whose packets come first has lost its first ones, so that the connection begins under the other
  /// addresses, before or after its first packet here.
  @Test(
    "The beginning of one interface is missing: one connection, also when the ends' numbers are near each other",
    arguments: [(101, 201), (2_757_050_342, 1_411_543_618)] as [(UInt32, UInt32)], [1, 2, 3, 4, 5])
  func beginningIsMissing(numbers: (UInt32, UInt32), missing: Int) {
    // Numbers that are near each other tell the ends apart only until one has sent more than they differ by.
    for delay: Int64 in [1_000, 20_000, 100_000] + (numbers.0 > 1_000 ? [500_000] : []) {
      for pace: Int64 in [200_000, 2_000_000] {
        var recording = Recording([Self.here, Self.there], numbers.0, numbers.1)
        var random = SeededGenerator(seed: 5)
        recording.delay = delay
        recording.pace = pace...pace
        recording.talk(&random)
        var left = missing
        let captured = recording.captured.filter { captured in
          guard left > 0, [captured.segment.source, captured.segment.destination].contains(Self.here.client) else {
            return true
          }
          left -= 1
          return false
        }
        let found = log(captured)
        #expect(
          contents(found, clients: [Self.here.client, Self.there.client])
            == contents(log(recording.once), clients: [Self.here.client]), "\(missing), \(delay), \(pace)")
        #expect(found.violations == [])
      }
    }
  }

  @Test("A server that begins at another number is another connection, whatever the client's is")
  func otherServerNumber() {
    let found = log(talk(Self.here) + talk(Self.there, numbers: (1_000, 9_001), at: 1_000_300_000))
    #expect(found.connections.count == 2 && found.connections.allSatisfy(\.views.isEmpty))
    #expect(found.violations == [])
  }

  @Test("Thousands of flows that begin at one number are as many connections", arguments: [false, true])
  func oneNumber(hasData: Bool) {
    var all: [Captured] = []
    for index in 0..<3_000 {
      var random = SeededGenerator(seed: UInt64(index))
      let view = Interface(client: Self.endpoint(0x0a01_0000 + UInt32(index), 40_000), server: Self.here.server)
      var recording = Recording([view], 1_000, 9_000)
      recording.time += Int64(index) * 100
      recording.pace = 400_000...400_000
      recording.send(fromClient: true, [], .syn, &random)
      if hasData { recording.send(fromClient: true, random.bytes(40), [.ack], &random) }
      all += recording.captured
    }
    let found = log(all)
    #expect(found.connections.count == 3_000 && found.connections.allSatisfy(\.views.isEmpty))
    #expect(found.violations == [])
  }

  @Test("A used pair of ports is a new connection under both addresses") func reused() {
    let found = log(
      talk(Self.here) + talk(Self.there, at: 1_000_020_000)
        + talk(Self.here, numbers: (70_000, 3), at: 9_000_000_000, seed: 2)
        + talk(Self.there, numbers: (70_000, 3), at: 9_000_020_000, seed: 2))
    #expect(found.connections.count == 2 && found.connections.allSatisfy { $0.views.count == 1 })
    #expect(found.violations == [])
  }

  @Test("A refused connection without data is one; a single SYN on both is not enough") func withoutData() {
    var random = SeededGenerator(seed: 4)
    var recording = Recording([Self.here, Self.there], 77, 88)
    recording.send(fromClient: true, [], .syn, &random)
    #expect(log(recording.captured).connections.count == 2)
    recording.send(fromClient: false, [], [.rst, .ack], &random)
    let found = log(recording.captured)
    #expect(found.connections.count == 1 && found.connections[0].views.count == 1)
  }

  @Test("Packets without times, a delay of 0, and more connections than are compared are taken as they come")
  func limits() {
    let both = talk(Self.here) + talk(Self.there, at: 1_000_020_000)
    var options = ReassemblyOptions()
    options.maximumViewDelay = 0
    #expect(log(both, options).connections.count == 2)
    options = ReassemblyOptions()
    options.maximumComparedConnections = 1
    #expect(log(both, options).connections.count == 1)
    let other = Interface(client: Self.endpoint(0x0a01_0006, 40_001), server: Self.here.server)
    let between = talk(other, numbers: (5, 6), at: 1_000_010_000)
    #expect(log(both + between).connections.count == 2)
    #expect(log(both + between, options).connections.count == 3)
  }
}
