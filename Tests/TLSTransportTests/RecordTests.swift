import COpenSSL
import NIOCore
import NIOEmbedded
import Testing

@testable import TLSTransport

@Suite("plaintext and records")
struct RecordTests {
  static let credentials = TestCredentials.p256

  private func pair(_ agreement: Agreement? = nil) throws -> TLSPair {
    let pair = try TLSPair(
      Self.credentials.client { agreement?.apply(to: &$0) }, Self.credentials.server())
    try pair.connect()
    try #require(pair.server.observer.info != nil)
    return pair
  }

  /// The types and lengths of the records in what was written.
  private func records(_ buffers: [ByteBuffer]) -> [(type: UInt8, length: Int)] {
    var joined = ByteBuffer()
    for buffer in buffers { joined.writeImmutableBuffer(buffer) }
    var records: [(UInt8, Int)] = []
    while let type = joined.readInteger(as: UInt8.self), joined.readInteger(as: UInt16.self) != nil,
      let length = joined.readInteger(as: UInt16.self), joined.readSlice(length: Int(length)) != nil
    { records.append((type, Int(length))) }
    #expect(joined.readableBytes == 0)
    return records
  }

  @Test(
    "16 KB are one record and one write; one more byte makes a second record of the same write",
    arguments: Agreement.some.filter { $0.version != .tls10 })
  func fullRecord(_ agreement: Agreement) throws {
    let pair = try pair(agreement)
    for (size, count) in [(1, 1), (16_383, 1), (16_384, 1), (16_385, 2), (32_768, 2), (100_000, 7)] {
      pair.client.send(pattern(size))
      let sent = pair.client.wire.takeSent()
      #expect(sent.count == 1, "\(size)")
      let records = records(sent)
      #expect(records.count == count, "\(size)")
      #expect(records.allSatisfy { $0.type == 23 })
      pair.server.deliver(sent)
    }
  }

  @Test("In TLS 1.0 an empty record goes before each record of a CBC suite") func emptyFragments() throws {
    let pair = try pair(Agreement.some[0])
    pair.client.send(pattern(16_384))
    let sent = pair.client.wire.takeSent()
    #expect(sent.count == 1)
    #expect(records(sent).count == 2)
  }

  @Test("Writes between two flushes are joined; what was not flushed stays") func joined() throws {
    let pair = try pair()
    var outcomes: [Outcome<Void>] = []
    for index in 0..<100 { outcomes.append(Outcome(pair.client.write(pattern(100, index)))) }
    #expect(pair.client.wire.sent.isEmpty)
    #expect(outcomes.allSatisfy { !$0.isDone })
    pair.client.channel.flush()
    outcomes.append(Outcome(pair.client.write([1])))
    #expect(records(pair.client.wire.sent).count == 1)
    #expect(pair.client.wire.sent.count == 1)
    #expect(outcomes.prefix(100).allSatisfy { $0.isDone && $0.error == nil })
    #expect(outcomes.last?.isDone == false)
    pair.pump()
    #expect(pair.server.observer.received == (0..<100).flatMap { pattern(100, $0) })
    pair.client.channel.flush()
    pair.pump()
    #expect(pair.server.observer.received.count == 10_001)
    // A flush with nothing to send sends nothing.
    pair.client.channel.flush()
    #expect(pair.client.wire.sent.isEmpty)
  }

  @Test("Borrowed bytes are encrypted at once, and go out with the next flush, in order with writes")
  func borrowed() throws {
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server())
    func encrypt(_ bytes: [UInt8]) -> Bool { pair.client.handler?.encrypt(bytes.rawBytes) == true }
    #expect(!encrypt([1]), "before the handshake")
    try pair.connect()
    pair.pump()
    let pieces = [pattern(100, 1), pattern(40_000, 2), pattern(5_000, 3), pattern(7, 4)]
    #expect(encrypt(pieces[0]) && encrypt(pieces[1]))
    #expect(pair.client.wire.sent.isEmpty)
    pair.client.channel.flush()
    #expect(pair.client.wire.sent.count == 1)
    pair.client.write(pieces[2])
    #expect(!encrypt([2]), "it would overtake a write")
    pair.client.channel.flush()
    #expect(encrypt(pieces[3]))
    pair.client.channel.flush()
    pair.pump()
    #expect(pair.server.observer.received == pieces.flatMap { $0 })
    pair.client.channel.close(mode: .output, promise: nil)
    #expect(!encrypt([3]), "after the end")
    pair.client.channel.flush()
    pair.pump()
    #expect(pair.server.observer.received == pieces.flatMap { $0 })
  }

  @Test("Many buffers of many sizes") func many() throws {
    let pair = try pair()
    var expected: [UInt8] = []
    for turn in 0..<50 {
      for index in 0...(turn % 7) {
        let bytes = pattern((turn * 331 + index * 977) % 9_000, turn)
        expected += bytes
        pair.client.write(bytes)
      }
      pair.client.channel.flush()
      if turn % 3 == 0 { pair.pump() }
    }
    pair.pump()
    #expect(pair.server.observer.received == expected)
  }

  @Test("Promises are kept in the order of the writes, when the channel has written") func promises() throws {
    let pair = try pair()
    pair.client.wire.holdsPromises = true
    let order = Order()
    for (index, bytes) in [[1], [], [2, 3], [], []].enumerated() {
      pair.client.write(bytes.map { UInt8($0) }).assumeIsolated().whenSuccess { order.seen.append(index) }
      if index != 2 { pair.client.channel.flush() }
    }
    #expect(order.seen == [])
    pair.client.wire.releasePromises()
    #expect(order.seen == [0, 1, 2, 3, 4])
    pair.pump()
    #expect(pair.server.observer.received == [1, 2, 3])
  }

  final class Order { var seen: [Int] = [] }

  @Test("Zero-length writes succeed and send nothing", arguments: [1, 3]) func empty(count: Int) throws {
    let pair = try pair()
    let outcomes = (0..<count).map { _ in Outcome(pair.client.write([])) }
    pair.client.channel.flush()
    #expect(outcomes.allSatisfy { $0.isDone && $0.error == nil })
    #expect(pair.client.wire.sent.isEmpty)
    pair.client.channel.writeAndFlush(ByteBuffer(), promise: nil)
    #expect(pair.client.wire.sent.isEmpty)
    pair.pump()
    #expect(pair.server.observer.received == [])
  }

  @Test("Writes before the end of the handshake wait for it, in their order", arguments: Agreement.some)
  func early(_ agreement: Agreement) throws {
    let pair = try TLSPair(Self.credentials.client(agreement.apply), Self.credentials.server())
    var outcomes = [Outcome(pair.client.send([1])), Outcome(pair.server.send([11]))]
    try pair.server.activate()
    try pair.client.activate()
    outcomes += [Outcome(pair.client.send([2, 3])), Outcome(pair.server.send([12]))]
    #expect(outcomes.allSatisfy { !$0.isDone })
    let unflushed = Outcome(pair.client.write([4]))
    pair.pump()
    #expect(outcomes.allSatisfy { $0.isDone && $0.error == nil })
    #expect(pair.server.observer.received == [1, 2, 3])
    #expect(pair.client.observer.received == [11, 12])
    #expect(!unflushed.isDone)
    pair.client.channel.flush()
    pair.pump()
    #expect(pair.server.observer.received == [1, 2, 3, 4])
  }

  @Test("Writes fail when the connection closes, and afterwards") func failing() throws {
    let pair = try pair()
    let pending = Outcome(pair.client.write([1]))
    pair.client.channel.close(promise: nil)
    #expect(pending.error as? ChannelError == .ioOnClosedChannel)
    let late = Outcome(pair.client.send([2]))
    #expect(late.error != nil)
    let server = Outcome(pair.server.write([3]))
    pair.server.channel.close(promise: nil)
    #expect(server.error as? ChannelError == .ioOnClosedChannel)

    let other = try TLSPair(Self.credentials.client(), Self.credentials.server())
    try other.client.activate()
    let waiting = [Outcome(other.client.send([1])), Outcome(other.client.write([2]))]
    other.client.channel.close(promise: nil)
    #expect(waiting.allSatisfy { $0.error as? ChannelError == .ioOnClosedChannel })
  }

  @Test("Data of both directions at once") func duplex() throws {
    let pair = try pair()
    pair.delivery = .pieces(1_000)
    for turn in 0..<20 {
      pair.client.send(pattern(5_000, turn))
      pair.server.send(pattern(7_000, turn))
      if turn % 4 == 0 { pair.pump() }
    }
    pair.pump()
    #expect(pair.server.observer.received == (0..<20).flatMap { pattern(5_000, $0) })
    #expect(pair.client.observer.received == (0..<20).flatMap { pattern(7_000, $0) })
  }

  /// A client that has got the first record of a ticket that takes two, and what it has not got.
  private func pairWithHalfTicket() throws -> (TLSPair, rest: ByteBuffer) {
    let server = try Self.credentials.server { $0.ticketCount = 1 }
    // The smallest records: a ticket that holds a certificate is longer.
    unsafe SSL_CTX_ctrl(server.pointer, SSL_CTRL_SET_MAX_SEND_FRAGMENT, 512, nil)
    let pair = try TLSPair(Self.credentials.client { $0.versions = .tls13 ... .tls13 }, server)
    try pair.server.activate()
    try pair.client.activate()
    pair.carry(from: pair.client, to: pair.server)
    pair.carry(from: pair.server, to: pair.client)
    pair.carry(from: pair.client, to: pair.server)
    var ticket = ByteBuffer()
    for buffer in pair.server.wire.takeSent() { ticket.writeImmutableBuffer(buffer) }
    let length = Int(try #require(ticket.getInteger(at: ticket.readerIndex + 3, as: UInt16.self))) + 5
    try #require(ticket.readableBytes > length)
    pair.client.deliver([ticket.readSlice(length: length) ?? ByteBuffer()])
    return (pair, ticket)
  }

  @Test("What is written while a ticket is there in part goes out when it is whole") func halfTicket() throws {
    let (pair, rest) = try pairWithHalfTicket()
    let bytes = pattern(20_000)
    let outcomes = [Outcome(pair.client.send(bytes)), Outcome(pair.client.send([42]))]
    #expect(outcomes.allSatisfy { !$0.isDone })
    #expect(pair.client.wire.sent.isEmpty)
    pair.client.deliver([rest])
    #expect(outcomes.allSatisfy { $0.isDone && $0.error == nil })
    pair.pump()
    #expect(pair.server.observer.received == bytes + [42])
    #expect(pair.client.observer.errors == [])
  }

  @Test("An end of this half waits for what waits for a ticket") func halfTicketThenEnd() throws {
    let (pair, rest) = try pairWithHalfTicket()
    pair.client.send([1, 2, 3])
    pair.client.channel.close(mode: .output, promise: nil)
    #expect(pair.client.wire.closes == [])
    pair.client.deliver([rest])
    #expect(pair.client.wire.closes == [.output])
    pair.pump()
    #expect(pair.server.observer.received == [1, 2, 3])
    #expect(pair.server.observer.events.last == .inputClosed)
    #expect(pair.server.handler?.sawCloseNotify == true)
  }
}
