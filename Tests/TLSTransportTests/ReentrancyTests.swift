import NIOCore
import NIOEmbedded
import Testing

@testable import TLSTransport

/// Handlers further in call back into the connection from within its events.
@Suite("calls from within events")
struct ReentrancyTests {
  static let credentials = TestCredentials.p256

  private func pair(_ agreement: Agreement) throws -> TLSPair {
    try TLSPair(Self.credentials.client(agreement.apply), Self.credentials.server())
  }

  @Test("A close in the event of the handshake", arguments: Agreement.some, [true, false])
  func closeInInfo(_ agreement: Agreement, atServer: Bool) throws {
    let pair = try pair(agreement)
    let side = atServer ? pair.server : pair.client
    side.observer.onInfo = { $0.close(promise: nil) }
    let other = atServer ? pair.client : pair.server
    // Waiting for the handshake, and for nothing when it is over.
    let write = Outcome(side.send([1]))
    try pair.connect()
    #expect(side.wire.closes == [.all])
    #expect(side.observer.events.last == .inactive)
    #expect(side.observer.events.count == 3)
    #expect(write.isDone)
    #expect(other.handler?.sawCloseNotify == true)
    #expect(other.observer.errors == [])
  }

  @Test("A half close in the event of the handshake", arguments: Agreement.some)
  func halfCloseInInfo(_ agreement: Agreement) throws {
    let pair = try pair(agreement)
    pair.server.observer.onInfo = { $0.close(mode: .output, promise: nil) }
    try pair.connect()
    #expect(pair.client.handler?.sawCloseNotify == true)
    pair.client.send([1, 2])
    pair.pump()
    #expect(pair.server.observer.received == [1, 2])
  }

  @Test("A write in the event of the handshake, before what waits", arguments: Agreement.some)
  func writeInInfo(_ agreement: Agreement) throws {
    let pair = try pair(agreement)
    pair.server.observer.onInfo = { context in
      context.writeAndFlush(NIOAny(ByteBuffer(bytes: [2])), promise: nil)
      context.write(NIOAny(ByteBuffer(bytes: [3])), promise: nil)
    }
    pair.server.send([1])
    try pair.connect()
    #expect(pair.client.observer.received == [1, 2])
    pair.server.channel.flush()
    pair.pump()
    #expect(pair.client.observer.received == [1, 2, 3])
  }

  @Test("A close on data that came with the end: nothing follows it", arguments: Agreement.some)
  func closeInRead(_ agreement: Agreement) throws {
    let pair = try pair(agreement)
    try pair.connect()
    pair.server.observer.onRead = { context, _ in context.close(promise: nil) }
    pair.client.send([1, 2, 3])
    pair.client.channel.close(mode: .output, promise: nil)
    pair.delivery = .joined
    pair.pump()
    #expect(pair.server.observer.events.suffix(2) == [.read(3), .inactive])
    #expect(pair.server.observer.errors == [])
  }

  @Test("A close on data that came with a damaged record: no error follows it") func closeBeforeDamage() throws {
    let pair = try pair(Agreement.some[2])
    try pair.connect()
    pair.server.observer.onRead = { context, _ in context.close(promise: nil) }
    pair.client.send([1, 2, 3])
    pair.client.send([4, 5, 6])
    var bytes = pair.client.wire.takeSent().flatMap { Array($0.readableBytesView) }
    bytes[bytes.count - 1] ^= 1
    pair.server.deliver(bytes)
    #expect(pair.server.observer.events.suffix(2) == [.read(3), .inactive])
  }

  @Test("A close in the event of the peer's end, and in an error") func closeInEnds() throws {
    let pair = try pair(Agreement.some[2])
    try pair.connect()
    pair.server.observer.onInputClosed = { $0.close(promise: nil) }
    pair.client.channel.close(mode: .output, promise: nil)
    pair.pump()
    #expect(pair.server.wire.closes == [.all])
    #expect(pair.client.handler?.sawCloseNotify == true)
    #expect(pair.client.observer.events.last == .inputClosed)

    let other = try self.pair(Agreement.some[2])
    other.server.observer.onError = { context in
      context.writeAndFlush(NIOAny(ByteBuffer(bytes: [1])), promise: nil)
      context.close(promise: nil)
    }
    try other.server.activate()
    other.server.deliver(pattern(100))
    #expect(other.server.observer.errors.count == 1)
    #expect(other.server.observer.events.last == .inactive)
    #expect(other.server.observer.events.count == 3)
  }

  @Test("An answer to every piece, over and over", arguments: Agreement.some) func pingPong(_ agreement: Agreement)
    throws
  {
    let pair = try pair(agreement)
    for side in [pair.client, pair.server] {
      side.observer.onRead = { context, buffer in
        guard side.observer.received.count < 5_000 else { return }
        for byte in buffer.readableBytesView.prefix(4) {
          context.write(NIOAny(ByteBuffer(bytes: [byte &+ 1])), promise: nil)
        }
        context.flush()
      }
    }
    try pair.connect()
    pair.client.send([1, 2, 3])
    pair.pump()
    #expect(pair.server.observer.received.count >= 4_998)
    #expect(pair.server.observer.errors == [])
    #expect(pair.client.observer.errors == [])
  }

  @Test("A write in the callback of a write") func writeInPromise() throws {
    let pair = try pair(Agreement.some[3])
    try pair.connect()
    let client = pair.client
    client.send([1]).assumeIsolated().whenSuccess {
      client.write([2]).assumeIsolated().whenSuccess { client.send([3]) }
      client.channel.flush()
    }
    pair.pump()
    #expect(pair.server.observer.received == [1, 2, 3])
  }

  @Test("A close in the callback of a write, and in that of a failed one") func closeInPromise() throws {
    let pair = try pair(Agreement.some[3])
    try pair.connect()
    let client = pair.client
    client.send([1]).assumeIsolated().whenSuccess { client.channel.close(promise: nil) }
    pair.pump()
    #expect(pair.server.observer.received == [1])
    #expect(pair.server.handler?.sawCloseNotify == true)

    let other = try TLSPair(
      Self.credentials.client(Agreement.some[3].apply), Self.credentials.server(Agreement.some[2].apply))
    let server = other.server
    server.write([1]).assumeIsolated().whenFailure { _ in
      server.send([2])
      server.channel.close(promise: nil)
    }
    try server.activate()
    try other.client.activate()
    other.carry(from: other.client, to: server)
    // The alert was written all the same.
    #expect(server.wire.sent.count == 1)
    #expect(server.observer.errors.count == 1)
    #expect(!server.channel.isActive)
  }

  @Test("A channel that dies in the flush of the handshake's last words") func diesInFlush() throws {
    let pair = try pair(Agreement.some[3])
    try pair.server.activate()
    try pair.client.activate()
    pair.carry(from: pair.client, to: pair.server)
    let client = pair.client
    client.wire.onFlush = { client.channel.close(promise: nil) }
    pair.carry(from: pair.server, to: pair.client)
    // Nothing comes after the end, and who ended it himself is told of no error.
    #expect(client.observer.events == [.active, .inactive])
  }

  @Test("A channel that dies in the flush of data") func diesInDataFlush() throws {
    let pair = try pair(Agreement.some[3])
    try pair.connect()
    let client = pair.client
    client.wire.onFlush = { client.channel.pipeline.fireChannelInactive() }
    client.send([1])
    #expect(client.observer.events.last == .inactive)
    #expect(Outcome(client.send([2])).error as? ChannelError == .ioOnClosedChannel)
  }
}
