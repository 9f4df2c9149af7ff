import Bytes
import HTTP2
import HTTP2Server
import TestSupport
import Testing

/// The server's side of a connection, as conversations.
@Suite("The session of an HTTP/2 server")
struct ServerSessionTests {
  // MARK: requests and answers

  @Test("A request is answered, and its stream closed") func answered() {
    let pair = Pair()
    pair.request(1, Array("{}".utf8))
    #expect(pair.paths == [1: "/1"])
    #expect(pair.contents == [1: Array("{}".utf8)])
    #expect(pair.seen.statuses == [1: [200]])
    #expect(pair.seen.ended == [1])
    #expect(pair.openStreams == 0)
    #expect(pair.seen.violations.isEmpty)
  }

  @Test(
    "Bytes that come one by one mean the same, also when the session frees memory between them",
    arguments: [1, 2, 3, 7, 23], [false, true])
  func drip(pieces: Int, freesSpare: Bool) {
    let pair = Pair(greets: false)
    var writer = ByteWriter()
    writer.writePreface()
    writer.writeSettings([])
    let block = pair.block(Pair.fields("/3", [("content-length", "5")]))
    writer.writeFrame(.headers, flags: .endHeaders, stream: 3, block.rawBytes)
    writer.writeFrame(.data, stream: 3, Array("ab".utf8).rawBytes)
    writer.writeFrame(.data, flags: .endStream, stream: 3, Array("cde".utf8).rawBytes)
    // The second block refers to the first one's fields, and comes in two frames.
    let second = pair.block(Pair.fields("/3", [("content-length", "1")]))
    writer.writeFrame(.headers, stream: 5, Array(second.prefix(2)).rawBytes)
    writer.writeFrame(.continuation, flags: .endHeaders, stream: 5, Array(second.dropFirst(2)).rawBytes)
    writer.writeFrame(.data, flags: .endStream, stream: 5, Array("f".utf8).rawBytes)
    pair.send(Array(copying: writer.bytes), pieces: pieces, freesSpare: freesSpare)
    #expect(pair.contents == [3: Array("abcde".utf8), 5: Array("f".utf8)])
    #expect(pair.seen.statuses == [3: [200], 5: [200]])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("Answers come in another order than requests") func outOfOrder() {
    let pair = Pair()
    pair.answers = false
    for stream: UInt32 in [1, 3, 5] { pair.request(stream) }
    pair.answer = (400, Array(#"{"reason":"X"}"#.utf8))
    for stream: UInt32 in [5, 1, 3] { pair.respond(stream) }
    #expect(pair.seen.statuses == [1: [400], 3: [400], 5: [400]])
    #expect(pair.seen.contents[3] == Array(#"{"reason":"X"}"#.utf8))
    #expect(pair.seen.ended == [1, 3, 5])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test(
    "Every status of three digits is written as such",
    arguments: [200, 204, 206, 304, 400, 403, 404, 405, 410, 413, 429, 500, 503])
  func statuses(status: Int) {
    let pair = Pair()
    pair.answer = (status, [])
    pair.request(1)
    #expect(pair.seen.statuses == [1: [status]])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("A field block in CONTINUATION frames, with padding and priority, is one block") func continuation() {
    let pair = Pair()
    let block = pair.block(Pair.fields("/1"))
    let (first, rest) = (Array(block.prefix(5)), Array(block.dropFirst(5)))
    let padded = [4, 0, 0, 0, 0, 15] + first + [0, 0, 0, 0]
    pair.send {
      $0.writeFrame(.headers, flags: [.padded, .priority, .endStream], stream: 1, padded.rawBytes)
      $0.writeFrame(.continuation, stream: 1, [UInt8]().rawBytes)
      $0.writeFrame(.continuation, flags: .endHeaders, stream: 1, rest.rawBytes)
    }
    #expect(pair.paths == [1: "/1"])
    #expect(pair.seen.statuses == [1: [200]])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("Trailers end a request, and are no other one") func trailers() {
    let pair = Pair()
    pair.open(1)
    pair.data(1, Array("x".utf8), ends: false)
    let block = pair.block([("x-sum", "1")])
    pair.send { $0.writeFrame(.headers, flags: [.endHeaders, .endStream], stream: 1, block.rawBytes) }
    #expect(pair.contents == [1: Array("x".utf8)])
    #expect(pair.seen.statuses == [1: [200]])
    #expect(pair.events.count == 2)
  }

  @Test("Content beyond the limit is counted and not kept") func longContent() {
    var options = ServerOptions()
    (options.keptContent, options.maximumContent) = (10, 100_000)
    let pair = Pair(options)
    pair.open(1)
    for _ in 0..<5 { pair.data(1, [UInt8](repeating: 7, count: 10_000), ends: false) }
    pair.data(1, [7])
    #expect(pair.contents[1]?.count == 10)
    #expect(pair.events.last.map { if case .ended(_, _, length: 50_001) = $0 { true } else { false } } == true)
    #expect(pair.seen.statuses == [1: [200]])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("Content without an end is answered at the limit, and the stream reset without an error") func endless() {
    var options = ServerOptions()
    options.maximumContent = 20_000
    let pair = Pair(options)
    pair.open(1)
    for _ in 0..<3 { pair.data(1, [UInt8](repeating: 7, count: 10_000), ends: false) }
    #expect(pair.seen.statuses == [1: [200]])
    #expect(pair.seen.resets == [1: .noError])
    #expect(pair.openStreams == 0)
    // What is on its way is ignored, and the connection goes on.
    pair.data(1, [7])
    #expect(pair.frames(.reset).count == 1)
    pair.request(3)
    #expect(pair.seen.statuses == [1: [200], 3: [200]])
  }

  @Test("The limit on content is reached once") func endlessOnce() {
    var options = ServerOptions()
    options.maximumContent = 1_000
    let pair = Pair(options)
    pair.answers = false
    pair.open(1)
    for _ in 0..<3 { pair.data(1, [UInt8](repeating: 7, count: 600), ends: false) }
    pair.data(1, [7])
    #expect(pair.events.count == 2)
  }

  @Test("After an error nothing is answered") func answerAfterError() {
    let pair = Pair()
    pair.answers = false
    pair.request(1)
    pair.frame(.ping, [], 1, [UInt8](repeating: 0, count: 8))
    #expect(pair.session.answer(0, status: 200) == 0 && pair.session.output.count == 0)
    #expect(pair.hasSaidGoAway && pair.isDrained)
    let more: [UInt8] = [1, 2, 3]
    var offset = 0
    #expect(pair.session.next(more.rawBytes, &offset, second: 0) == nil && offset == 3)
  }

  @Test("What is not sent yet is kept when memory is given back") func keptOutput() {
    let pair = Pair()
    pair.session.goAway(lastStream: 0)
    pair.session.freeSpare()
    pair.flush()
    #expect(pair.seen.goAways.map(\.last) == [0])
    #expect(pair.hasSaidGoAway)
  }

  @Test("Many streams that are reset while they wait leave the line to the others") func longLine() {
    var options = ServerOptions()
    (options.streamLimit, options.floods.resets) = (5_000, Allowance(burst: 5_000, perSecond: 0))
    let pair = Pair(options)
    pair.answer = (400, [UInt8](repeating: 1, count: 65_535))
    pair.request(1)
    pair.answer = (400, [1])
    let streams = Array(stride(from: UInt32(3), to: 3_003, by: 2))
    for stream in streams { pair.request(stream) }
    for stream in streams.prefix(1_400) { pair.send { $0.writeReset(.cancel, stream: stream) } }
    pair.send { $0.writeWindowUpdate(99) }
    #expect(pair.seen.ended == Set([1] + streams.suffix(100).prefix(99)))
    pair.send { $0.writeWindowUpdate(1) }
    #expect(pair.seen.ended.count == 101 && pair.openStreams == 0)
  }

  // MARK: windows

  @Test("Windows are opened as content comes, and none is exceeded") func windows() {
    let pair = Pair()
    for stream in stride(from: UInt32(1), to: 401, by: 2) { pair.request(stream, [UInt8](repeating: 1, count: 4_000)) }
    #expect(pair.seen.statuses.count == 200)
    pair.finish()
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("A client's small window cuts an answer, which goes on with each WINDOW_UPDATE") func smallWindow() {
    let pair = Pair(settings: [Setting(.initialWindowSize, 3)])
    let content = Array("0123456789".utf8)
    pair.answer = (400, content)
    pair.request(1)
    #expect(pair.seen.contents[1] == Array("012".utf8))
    pair.send { $0.writeWindowUpdate(1, stream: 1) }
    #expect(pair.seen.contents[1] == Array("0123".utf8))
    pair.send { $0.writeSettings([Setting(.initialWindowSize, 5)]) }
    #expect(pair.seen.contents[1] == Array("012345".utf8))
    // Below what was sent: the window is negative, and needs more than one byte.
    pair.send { $0.writeSettings([Setting(.initialWindowSize, 0)]) }
    pair.send { $0.writeWindowUpdate(5, stream: 1) }
    #expect(pair.seen.contents[1] == Array("012345".utf8))
    pair.send { $0.writeWindowUpdate(100, stream: 1) }
    #expect(pair.seen.contents[1] == content)
    #expect(pair.seen.ended == [1])
    #expect(pair.seen.serverViolations.isEmpty)
  }

  @Test("The connection's window holds answers of all streams together") func connectionWindow() {
    let pair = Pair(settings: [Setting(.initialWindowSize, 100_000)])
    pair.answer = (400, [UInt8](repeating: 1, count: 40_000))
    pair.request(1)
    pair.request(3)
    #expect(pair.seen.contents.values.reduce(0) { $0 + $1.count } == 65_535)
    pair.send { $0.writeWindowUpdate(14_464) }
    #expect(pair.seen.contents[3]?.count == 39_999)
    pair.send { $0.writeWindowUpdate(1) }
    #expect(pair.seen.ended == [1, 3])
    pair.finish()
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("Without WINDOW_UPDATE a client comes to the end of its window") func closedWindows() {
    var options = ServerOptions()
    options.opensWindows = false
    let pair = Pair(options)
    for stream in stride(from: UInt32(1), to: 33, by: 2) { pair.request(stream, [UInt8](repeating: 1, count: 4_000)) }
    #expect(pair.seen.statuses.count == 16)
    #expect(pair.counts.windowUpdatesSent == 0)
    pair.request(33, [UInt8](repeating: 1, count: 4_000))
    #expect(pair.failure == .flowControlError)
  }

  @Test("The connection's window is given back when more than half of it is used") func halfWindow() {
    let pair = Pair()
    pair.open(1)
    for round in 1...2 {
      for length in [16_384, 16_383] { pair.data(1, [UInt8](repeating: 1, count: length), ends: false) }
      #expect(pair.frames(.windowUpdate).filter { $0.header.stream == 0 }.count == round - 1)
      pair.data(1, [1], ends: false)
      #expect(pair.frames(.windowUpdate).filter { $0.header.stream == 0 }.map(\.payload).last == [0, 0, 0x80, 0])
      #expect(pair.counts.windowUpdatesSent == pair.frames(.windowUpdate).count)
    }
  }

  @Test("Content and answers that wait are held, and no longer") func heldBytes() {
    let pair = Pair(settings: [Setting(.initialWindowSize, 10)])
    pair.answers = false
    pair.answer = (400, [UInt8](repeating: 1, count: 100))
    pair.open(1)
    pair.data(1, [UInt8](repeating: 7, count: 30), ends: false)
    pair.data(1, [UInt8](repeating: 7, count: 40), ends: false)
    #expect(pair.session.heldBytes == 70)
    pair.data(1, [])
    #expect(pair.session.heldBytes == 0)
    pair.respond(1)
    #expect(pair.session.heldBytes == 90 && pair.session.unsentBytes == 90)
    pair.send { $0.writeWindowUpdate(20, stream: 1) }
    #expect(pair.session.heldBytes == 70)
    pair.send { $0.writeReset(.cancel, stream: 1) }
    #expect(pair.session.heldBytes == 0)
    pair.frame(.headers, [], 3, [UInt8](repeating: 0, count: 50))
    #expect(pair.session.heldBytes == 50)
  }

  @Test("After memory was given back, answers wait for the connection's window in their order") func freedQueue() {
    let pair = Pair(settings: [Setting(.initialWindowSize, 100_000)])
    pair.answer = (400, [UInt8](repeating: 1, count: 65_535))
    pair.request(1)
    pair.session.freeSpare()
    pair.answer = (400, [1, 2])
    for stream: UInt32 in [3, 5] { pair.request(stream) }
    pair.send { $0.writeWindowUpdate(3) }
    #expect(pair.seen.ended == [1, 3])
    pair.session.freeSpare()
    pair.send { $0.writeWindowUpdate(1) }
    #expect(pair.seen.ended == [1, 3, 5])
  }

  @Test("A stream whose own window is closed lets others go before it, and comes back into the line") func line() {
    let pair = Pair()
    pair.answer = (400, [UInt8](repeating: 1, count: 65_535))
    pair.request(1)
    pair.send { $0.writeSettings([Setting(.initialWindowSize, 5)]) }
    pair.answer = (400, [UInt8](repeating: 1, count: 10))
    for stream: UInt32 in [3, 5] { pair.request(stream) }
    pair.send { $0.writeWindowUpdate(6) }
    #expect(pair.seen.contents[3]?.count == 5 && pair.seen.contents[5]?.count == 1)
    pair.send { $0.writeWindowUpdate(5, stream: 3) }
    pair.send { $0.writeWindowUpdate(9) }
    #expect(pair.seen.ended == [1, 3] && pair.seen.contents[5]?.count == 5)
    #expect(pair.seen.serverViolations.isEmpty)
  }

  @Test("A request that is answered before its end does not end again") func earlyAnswer() {
    let pair = Pair(settings: [Setting(.initialWindowSize, 1)])
    pair.answers = false
    pair.answer = (400, [1, 2])
    pair.open(1)
    pair.respond(1)
    let events = pair.events
    pair.data(1, [1])
    #expect(pair.events == events)
    pair.send { $0.writeWindowUpdate(1, stream: 1) }
    #expect(pair.seen.ended == [1] && pair.seen.resets.isEmpty)
    #expect(pair.seen.serverViolations.isEmpty)
  }

  @Test("It is known what a client has begun and not ended") func unfinished() {
    let pair = Pair()
    pair.answers = false
    #expect(!pair.session.isWithinRequest && !pair.session.hasUnfinishedRequest)
    pair.frame(.headers, [], 1, pair.block(Pair.fields("/a")))
    #expect(pair.session.isWithinRequest && pair.session.hasUnfinishedRequest)
    pair.frame(.continuation, .endHeaders, 1)
    #expect(pair.session.isWithinRequest && pair.session.hasUnfinishedRequest)
    #expect(pair.session.stream(of: 0) == 1 && pair.session.stream(of: 1) == 0)
    pair.data(1, [1])
    // It waits for the server.
    #expect(pair.session.isWithinRequest && !pair.session.hasUnfinishedRequest)
    pair.respond(1)
    #expect(!pair.session.isWithinRequest && pair.session.stream(of: 0) == 0)
  }

  @Test("Frames are counted") func counted() {
    let pair = Pair()
    for number in 0..<3 { pair.send { $0.writePing(UInt64(number)) } }
    pair.answers = false
    pair.open(1)
    pair.open(3)
    pair.send { $0.writeReset(.cancel, stream: 1) }
    pair.session.reset(1, .internalError)
    pair.session.goAway(lastStream: 3)
    #expect(pair.counts.pings == 3 && pair.counts.resetsReceived == 1 && pair.counts.resetsSent == 1)
    #expect(pair.counts.goAways == 1 && pair.counts.windowUpdatesSent == 0)
  }

  @Test("The limits are those of the page, if nobody sets others") func defaults() {
    let options = ServerOptions()
    #expect(options.streamLimit == 1_000 && options.streamWindow == 65_535 && options.announcedFieldListSize == 8_000)
    #expect(options.maximumOpenStreams == 10_000 && options.maximumBlock == 65_536)
    #expect(options.maximumFieldList == 65_536 && options.keptContent == 8_192 && options.maximumContent == 1_048_576)
    let many = Allowance(burst: 10_000, perSecond: 1_000)
    let some = Allowance(burst: 1_000, perSecond: 100)
    #expect(options.floods.windowUpdates == many && options.floods.ignoredFrames == many)
    #expect(options.floods.resets == some && options.floods.pings == some && options.floods.emptyFrames == some)
    #expect(options.floods.settings == Allowance(burst: 100, perSecond: 10) && options.floods.continuations == 16)
  }

  // MARK: streams

  @Test("Before a client has acknowledged a limit it may open more") func unacknowledgedLimit() {
    var options = ServerOptions()
    options.streamLimit = 1
    let pair = Pair(options, greets: false)
    pair.answers = false
    pair.send {
      $0.writePreface()
      $0.writeSettings([])
    }
    for stream: UInt32 in [1, 3, 5] { pair.open(stream) }
    #expect(pair.seen.resets.isEmpty)
    pair.send { $0.writeSettingsAcknowledgement() }
    pair.open(7)
    #expect(pair.seen.resets == [7: .refusedStream])
    #expect(pair.events.last == .refused(stream: 7, .streamLimit))
  }

  @Test("A lower limit holds once it is acknowledged, a higher one at once") func changedLimit() {
    var options = ServerOptions()
    options.streamLimit = 2
    let pair = Pair(options)
    pair.answers = false
    pair.open(1)
    pair.open(3)
    pair.open(5)
    #expect(pair.seen.resets == [5: .refusedStream])
    pair.session.setStreamLimit(3)
    pair.flush()
    pair.open(7)
    #expect(pair.seen.resets[7] == nil)
    pair.send { $0.writeSettingsAcknowledgement() }
    pair.session.setStreamLimit(1)
    pair.flush()
    for stream: UInt32 in [1, 3, 7] {
      pair.data(stream, [1])
      pair.respond(stream)
    }
    pair.open(9)
    pair.open(11)
    #expect(pair.seen.resets == [5: .refusedStream])
    pair.send { $0.writeSettingsAcknowledgement() }
    pair.open(13)
    #expect(pair.seen.resets == [5: .refusedStream, 13: .refusedStream])
    pair.finish()
    #expect(pair.seen.serverViolations.isEmpty)
  }

  @Test("Streams above the limit end as told", arguments: ServerOptions.Excess.allCases)
  func excess(excess: ServerOptions.Excess) {
    var options = ServerOptions()
    (options.streamLimit, options.excess) = (1, excess)
    let pair = Pair(options)
    pair.answers = false
    pair.open(1)
    pair.open(3)
    switch excess {
    case .refused: #expect(pair.seen.resets == [3: .refusedStream])
    case .protocolError: #expect(pair.seen.resets == [3: .protocolError])
    case .goAway:
      #expect(pair.seen.goAways.map(\.last) == [1])
      #expect(pair.failure == .protocolError)
    }
    #expect(pair.events.contains(.refused(stream: 3, .streamLimit)))
  }

  @Test("Fields of a refused request are decoded: later blocks refer to them") func refusedFields() {
    var options = ServerOptions()
    options.streamLimit = 1
    let pair = Pair(options)
    pair.answers = false
    pair.open(1)
    pair.open(3, "/refused")
    pair.data(1, [1])
    pair.respond(1)
    pair.open(5, "/refused")
    #expect(pair.paths == [1: "/a", 5: "/refused"])
  }

  @Test("A client's reset ends the stream, and nothing is answered") func cancelled() {
    let pair = Pair()
    pair.answers = false
    pair.request(1)
    pair.send { $0.writeReset(.cancel, stream: 1) }
    pair.respond(1)
    #expect(pair.seen.statuses.isEmpty)
    #expect(pair.openStreams == 0)
    #expect(pair.events.last == .abandoned(.init(number: 1, slot: 0), .cancel, by: .client))
  }

  // MARK: the connection

  @Test("PING and SETTINGS are acknowledged") func acknowledgements() {
    let pair = Pair()
    pair.send { $0.writePing(42) }
    pair.send { $0.writePing(7, isAcknowledgement: true) }
    #expect(pair.seen.pings == [42])
    #expect(pair.seen.acknowledgements == 1)
    #expect(pair.seen.settings.first?.contains(Setting(.maximumConcurrentStreams, 1_000)) == true)
  }

  @Test("A smaller header table is confirmed with the next answer") func tableSize() {
    let pair = Pair(settings: [Setting(.headerTableSize, 0)])
    pair.request(1)
    pair.request(3)
    #expect(pair.seen.statuses == [1: [200], 3: [200]])
    #expect(pair.seen.violations.isEmpty)
  }

  @Test("GOAWAY: streams above are ignored, those below are answered") func goAway() {
    let pair = Pair()
    pair.answers = false
    pair.open(1)
    pair.session.goAway(lastStream: 0x7fff_ffff)
    pair.open(3)
    pair.session.goAway(lastStream: 3, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    pair.flush()
    pair.request(5)
    pair.data(1, [1])
    pair.data(3, [1])
    pair.respond(1)
    #expect(!pair.isDrained)
    pair.respond(3)
    #expect(pair.isDrained)
    #expect(pair.seen.statuses == [1: [200], 3: [200]])
    #expect(pair.seen.goAways.map(\.last) == [0x7fff_ffff, 3])
    #expect(pair.seen.goAways.last?.debug == #"{"reason":"Shutdown"}"#)
    #expect(pair.events.contains(.refused(stream: 5, .goAway)))
    #expect(pair.seen.resets.isEmpty)
  }

  @Test("A stream that the server resets is closed, and what follows on it ignored") func serverReset() {
    let pair = Pair()
    pair.answers = false
    pair.open(1)
    pair.session.reset(0, .internalError)
    pair.flush()
    pair.data(1, [1])
    #expect(pair.seen.resets == [1: .internalError])
    #expect(pair.failure == nil)
  }
}
