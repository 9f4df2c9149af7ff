import COpenSSL
import NIOCore
import NIOEmbedded
import TLSFoundation
import Testing

@testable import TLSTransport

@Suite("how connections end")
struct EndTests {
  static let credentials = TestCredentials.p256

  private func pair(_ agreement: Agreement? = nil) throws -> TLSPair {
    let pair = try TLSPair(
      Self.credentials.client { agreement?.apply(to: &$0) }, Self.credentials.server())
    try pair.connect()
    try #require(pair.server.observer.info != nil)
    return pair
  }

  private func ends(_ side: TLSPair.Side) -> Int { side.observer.events.count { $0 == .inputClosed } }

  @Test("One half closes, the other goes on, either side first", arguments: Agreement.some, [true, false])
  func halfClose(_ agreement: Agreement, clientFirst: Bool) throws {
    let pair = try pair(agreement)
    let (first, second) = clientFirst ? (pair.client, pair.server) : (pair.server, pair.client)
    first.send([1])
    let closed = Outcome(first.channel.close(mode: .output))
    #expect(closed.isDone && closed.error == nil)
    #expect(first.wire.closes == [.output])
    pair.pump()
    #expect(second.observer.received == [1])
    #expect(second.handler?.sawCloseNotify == true)
    #expect(first.handler?.sawCloseNotify == false)
    #expect(ends(second) == 1)
    #expect(Outcome(first.send([9])).error as? ChannelError == .outputClosed)
    #expect(Outcome(first.channel.close(mode: .output)).isDone)

    second.send(pattern(40_000))
    pair.pump()
    #expect(first.observer.received == pattern(40_000))
    #expect(ends(first) == 0)
    second.channel.close(mode: .output, promise: nil)
    pair.pump()
    #expect(first.handler?.sawCloseNotify == true)
    #expect(ends(first) == 1)
    #expect(ends(second) == 1)
    #expect(first.observer.errors + second.observer.errors == [])
    #expect(first.observer.received.count == 40_000)
  }

  @Test("A close says so first, an abrupt one does not", arguments: Agreement.some) func closes(_ agreement: Agreement)
    throws
  {
    for isAbrupt in [false, true] {
      let pair = try pair(agreement)
      if isAbrupt {
        let told = Outcome(pair.client.channel.triggerUserOutboundEvent(TLSClose.abrupt))
        #expect(told.isDone && told.error == nil)
      }
      pair.client.channel.close(promise: nil)
      #expect(pair.client.wire.closes == [.all])
      #expect(pair.client.wire.sent.count == (isAbrupt ? 0 : 1))
      pair.pump()
      #expect(pair.server.handler?.sawCloseNotify == !isAbrupt)
      #expect(ends(pair.server) == 1)
      #expect(pair.server.observer.errors == [])
      #expect(pair.client.observer.events.last == .inactive)
    }
  }

  @Test("An abrupt half close") func abruptHalf() throws {
    let pair = try pair()
    pair.client.channel.triggerUserOutboundEvent(TLSClose.abrupt, promise: nil)
    pair.client.send([1])
    pair.client.channel.close(mode: .output, promise: nil)
    #expect(pair.client.wire.closes == [.output])
    pair.pump()
    #expect(pair.server.observer.received == [1])
    #expect(pair.server.handler?.sawCloseNotify == false)
    #expect(ends(pair.server) == 1)
    #expect(Outcome(pair.client.send([2])).error as? ChannelError == .outputClosed)
  }

  @Test("Flushed data goes before a close, unflushed does not") func dataBeforeClose() throws {
    let pair = try pair()
    pair.client.send([1])
    let lost = Outcome(pair.client.write([2]))
    pair.client.channel.close(promise: nil)
    pair.pump()
    #expect(pair.server.observer.received == [1])
    #expect(lost.error as? ChannelError == .ioOnClosedChannel)
  }

  @Test("close(mode: .output) in the middle of a handshake waits for its end", arguments: Agreement.some)
  func earlyHalfClose(_ agreement: Agreement) throws {
    let pair = try TLSPair(Self.credentials.client(agreement.apply), Self.credentials.server())
    try pair.server.activate()
    try pair.client.activate()
    pair.client.send([1, 2])
    let closed = Outcome(pair.client.channel.close(mode: .output))
    #expect(!closed.isDone)
    #expect(Outcome(pair.client.send([3])).error as? ChannelError == .outputClosed)
    pair.pump()
    #expect(closed.isDone && closed.error == nil)
    #expect(pair.server.observer.received == [1, 2])
    #expect(pair.server.handler?.sawCloseNotify == true)
    pair.server.send([4])
    pair.pump()
    #expect(pair.client.observer.received == [4])
  }

  @Test("close() in the middle of a handshake just closes") func earlyClose() throws {
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server())
    try pair.server.activate()
    try pair.client.activate()
    let half = Outcome(pair.client.channel.close(mode: .output))
    pair.client.channel.close(promise: nil)
    #expect(half.error as? ChannelError == .ioOnClosedChannel)
    #expect(pair.client.observer.events == [.active, .inactive])
    pair.pump()
    #expect(pair.server.observer.errors == [TLSError(.closedDuringHandshake, "")])
    #expect(pair.server.observer.events.last == .inactive)
  }

  @Test("A FIN without close_notify, whole or in the middle of a record") func truncated() throws {
    for isMidway in [false, true] {
      let pair = try pair()
      pair.client.send([1, 2, 3])
      pair.pump()
      if isMidway {
        pair.client.send(pattern(100))
        let bytes = pair.client.wire.takeSent().flatMap { Array($0.readableBytesView) }
        pair.server.deliver(Array(bytes.dropLast()))
      }
      pair.server.deliverEnd()
      #expect(pair.server.handler?.sawCloseNotify == false)
      #expect(ends(pair.server) == 1)
      #expect(pair.server.observer.received == [1, 2, 3])
      #expect(pair.server.observer.errors == [])
      pair.server.deliverEnd()
      #expect(ends(pair.server) == 1)
    }
  }

  @Test("What comes after close_notify is passed over, and not kept") func afterTheEnd() throws {
    let pair = try pair()
    pair.client.channel.close(mode: .output, promise: nil)
    pair.pump()
    let events = pair.server.observer.events
    for _ in 0..<100 { pair.server.deliver(pattern(10_000)) }
    #expect(pair.server.observer.events == events)
    #expect(pair.server.handler?.connection.input.readableBytes == 0)
    pair.server.send([5])
    pair.pump()
    #expect(pair.client.observer.received == [5])
  }

  @Test("A channel that goes away says so once") func inactive() throws {
    let pair = try pair()
    let write = Outcome(pair.server.write([1]))
    pair.server.channel.pipeline.fireChannelInactive()
    #expect(pair.server.observer.events.last == .inactive)
    #expect(ends(pair.server) == 0)
    #expect(write.error as? ChannelError == .ioOnClosedChannel)
    let count = pair.server.observer.events.count
    pair.server.deliver([1, 2, 3])
    #expect(pair.server.observer.events.count == count)
  }

  // MARK: handshakes

  @Test("A handshake that takes too long") func timeout() throws {
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server(), timeout: .milliseconds(1_500))
    try pair.server.activate()
    pair.loop.advanceTime(by: .milliseconds(1_499))
    #expect(pair.server.observer.errors == [])
    pair.loop.advanceTime(by: .milliseconds(1))
    #expect(pair.server.observer.errorText == "TLS handshake not completed within 1500 ms")
    #expect(pair.server.observer.errors.first?.kind == .handshake)
    #expect(pair.server.wire.closes == [.all])
    #expect(pair.server.observer.events.last == .inactive)
    #expect(pair.server.observer.events.count == 3)
  }

  @Test("A handshake that was in time is not ended later") func inTime() throws {
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server(), timeout: .milliseconds(1_500))
    try pair.connect()
    pair.loop.advanceTime(by: .seconds(10))
    #expect(pair.server.observer.errors == [])
    #expect(pair.server.channel.isActive)
  }

  @Test("The peer ends in the middle of its first flight, at every byte") func cutHello() throws {
    let (client, server) = (try Self.credentials.client(), try Self.credentials.server())
    let source = try TLSPair(client, server)
    try source.client.activate()
    let hello = source.client.wire.takeSent().flatMap { Array($0.readableBytesView) }
    try #require(hello.count > 200)
    for length in 0..<hello.count {
      for isHalf in [true, false] {
        let pair = try TLSPair(client, server)
        try pair.server.activate()
        pair.server.deliver(Array(hello.prefix(length)))
        if isHalf { pair.server.deliverEnd() } else { pair.server.channel.close(promise: nil) }
        #expect(!pair.server.channel.isActive)
        #expect(pair.server.observer.events.last == .inactive, "\(length)")
        // Who closes himself is told of no error.
        #expect(pair.server.observer.errors.map(\.kind) == (isHalf ? [.closedDuringHandshake] : []), "\(length)")
      }
    }
  }

  @Test("The server ends in the middle of its flight, at every 7th byte", arguments: [TLSVersion.tls12, .tls13])
  func cutServer(version: TLSVersion) throws {
    let (client, server) = (
      try Self.credentials.client { $0.versions = version...version }, try Self.credentials.server()
    )
    var total = Int.max
    var length = 0
    while length < total {
      let pair = try TLSPair(client, server)
      try pair.server.activate()
      try pair.client.activate()
      pair.carry(from: pair.client, to: pair.server)
      let flight = pair.server.wire.takeSent().flatMap { Array($0.readableBytesView) }
      // Signatures are not all of one length.
      total = flight.count
      if length >= total { break }
      pair.client.deliver(Array(flight.prefix(length)))
      pair.client.channel.pipeline.fireChannelInactive()
      #expect(pair.client.observer.errors.map(\.kind) == [.closedDuringHandshake], "\(length)")
      length += 7
    }
    #expect(total > 500)
  }

  // MARK: what is left

  @Test("Handlers and connections are gone after the end, however it came")
  func leaks() throws {
    let (client, server) = (try Self.credentials.client(), try Self.credentials.server())
    let endings: [(String, (TLSPair) throws -> Void)] = [
      (
        "closed",
        { pair in
          try pair.connect()
          pair.client.channel.close(promise: nil)
          pair.pump()
          pair.server.channel.close(promise: nil)
        }
      ),
      (
        "failed",
        { pair in
          try pair.connect()
          for side in [pair.client, pair.server] { side.deliver(pattern(100)) }
        }
      ),
      (
        "refused",
        { pair in
          for side in [pair.client, pair.server] {
            try side.activate()
            side.deliver(pattern(100))
          }
        }
      ),
      (
        "timed out",
        { pair in
          try pair.server.activate()
          try pair.client.activate()
          pair.client.send([1])
          pair.loop.advanceTime(by: .seconds(11))
        }
      ),
      (
        "never active",
        { pair in
          for side in [pair.client, pair.server] { side.channel.close(promise: nil) }
        }
      ),
      (
        "closed midway",
        { pair in
          try pair.server.activate()
          try pair.client.activate()
          pair.client.channel.close(promise: nil)
          pair.pump()
        }
      ),
      (
        "went away",
        { pair in
          try pair.connect()
          for side in [pair.client, pair.server] { side.channel.close(promise: nil) }
        }
      ),
    ]
    for (name, end) in endings {
      let pair = try TLSPair(client, server, timeout: .seconds(10))
      try #require(pair.client.handler != nil && pair.server.handler != nil)
      weak let here = pair.client.handler?.connection
      weak let there = pair.server.handler?.connection
      try #require(here != nil && there != nil)
      try end(pair)
      pair.loop.run()
      #expect(pair.client.handler == nil && pair.server.handler == nil, "\(name)")
      #expect(here == nil && there == nil, "\(name)")
    }
  }

  @Test("A context lives as long as its connections") func contexts() throws {
    var server: TLSContext? = try Self.credentials.server()
    weak let remaining = server
    let pair = try TLSPair(Self.credentials.client(), try #require(server))
    server = nil
    try pair.connect()
    #expect(pair.server.observer.info != nil)
    #expect(remaining != nil)
    for side in [pair.client, pair.server] { side.finish() }
    pair.loop.run()
    #expect(remaining == nil)
  }

  @Test("A handler that is taken out keeps no promise waiting") func removed() throws {
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server(), timeout: .seconds(1))
    try pair.client.activate()
    let write = Outcome(pair.client.send([1]))
    pair.client.finish()
    pair.loop.run()
    #expect(write.error as? ChannelError == .ioOnClosedChannel)
    #expect(pair.client.handler == nil)
    pair.loop.advanceTime(by: .seconds(2))
    #expect(pair.client.observer.errors == [])
  }

  @Test("Nothing stays in OpenSSL's error queue") func errorQueue() throws {
    // What others left there does not count either.
    func spoil() {
      _ = SSL_CTX_use_certificate(nil, nil)
      #expect(ERR_peek_error() != 0)
    }
    spoil()
    let pair = try TLSPair(Self.credentials.client(), Self.credentials.server())
    #expect(ERR_peek_error() == 0)
    spoil()
    try pair.connect()
    #expect(pair.server.observer.info != nil)
    spoil()
    pair.client.send([1])
    spoil()
    pair.pump()
    #expect(pair.server.observer.received == [1])
    #expect(ERR_peek_error() == 0)
    spoil()
    pair.client.channel.close(promise: nil)
    #expect(ERR_peek_error() == 0)
    pair.pump()
    #expect(pair.server.handler?.sawCloseNotify == true)
    #expect(pair.server.observer.errors == [])
  }
}
