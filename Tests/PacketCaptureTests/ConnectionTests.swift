import Testing

@testable import PacketCapture

/// Conversations about beginnings and ends: which segments are one connection, and who opened it.
struct ConnectionTests {
  private typealias Gap = StreamLog.Gap

  // MARK: beginnings

  @Test("The SYN-ACK may be recorded before the SYN") func theSYNACKMayBeRecordedBeforeTheSYN() {
    var talk = Conversation()
    talk.server(0, ack: 1, .syn)
    talk.client(0, "", .syn)
    talk.client(1, "abc", ack: 1)
    talk.server(1, "def", ack: 4)
    talk.finish()
    #expect(talk.connections.count == 1)
    #expect(talk.connections[0].initiator == .forward)
    #expect(talk.sent() == "abc" && talk.answered() == "def")
    #expect(talk.connections[0].low.gaps.isEmpty && talk.connections[0].high.gaps.isEmpty)
  }

  @Test("Data may be recorded before the SYN") func dataMayBeRecordedBeforeTheSYN() {
    var talk = Conversation()
    talk.client(4, "def", ack: 1)
    talk.client(1, "abc", ack: 1)
    talk.client(0, "", .syn)
    #expect(talk.connections.count == 1)
    #expect(talk.sent() == "abcdef")
  }

  @Test("A capture may begin in the middle") func aCaptureMayBeginInTheMiddle() {
    var talk = Conversation()
    talk.client(5_004, "def", ack: 90)
    talk.client(5_001, "abc", ack: 90)
    talk.server(90, "xyz", ack: 5_007)
    talk.finish()
    #expect(talk.sent() == "abcdef" && talk.answered() == "xyz")
    #expect(talk.connections[0].initiator == nil)
    #expect(talk.connections[0].low.gaps.isEmpty && talk.connections[0].high.gaps.isEmpty)
  }

  @Test("What the peer expected is where a stream begins") func whatThePeerExpectedIsWhereAStreamBegins() {
    var talk = Conversation()
    talk.server(1, ack: 101)
    talk.client(104, "def", ack: 1)
    talk.finish()
    #expect(talk.sent() == "def")
    #expect(talk.connections[0].low.gaps == [Gap(offset: 0, length: 3, reason: .lost)])
  }

  @Test("Streams that wrap around are one stream") func streamsThatWrapAroundAreOneStream() {
    for start: UInt32 in [.max, .max - 1, .max - 3, (1 << 31) - 2, 0] {
      var talk = Conversation()
      talk.clientStart = start
      talk.handshake()
      talk.client(4, "def", ack: 1)
      talk.client(1, "abc", ack: 1)
      talk.server(1, ack: 7)
      talk.client(7, ack: 1, .fin)
      #expect(talk.sent() == "abcdef")
      #expect(talk.connections[0].low.hasEnded)
      #expect(talk.connections[0].low.gaps.isEmpty)
    }
  }

  // MARK: port reuse

  @Test("A new SYN on used ports is a new connection") func aNewSYNOnUsedPortsIsANewConnection() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "first", ack: 1)
    talk.clientStart &+= 100_000
    talk.serverStart &+= 777
    talk.handshake()
    talk.client(1, "second", ack: 1)
    talk.finish()
    #expect(talk.connections.count == 2)
    #expect(talk.sent(0) == "first" && talk.sent(1) == "second")
    #expect(talk.connections.allSatisfy { $0.initiator == .forward && $0.low.gaps.isEmpty })
    #expect(talk.log.violations.isEmpty)
  }

  @Test("A repeated SYN is the same connection") func aRepeatedSYNIsTheSameConnection() {
    var talk = Conversation()
    talk.client(0, "", .syn)
    talk.client(0, "", .syn)
    talk.server(0, ack: 1, .syn)
    talk.server(0, ack: 1, .syn)
    talk.client(1, "abc", ack: 1)
    talk.client(0, "", .syn)
    talk.client(4, "def", ack: 1)
    #expect(talk.connections.count == 1)
    #expect(talk.sent() == "abcdef")
  }

  @Test("A SYN that is recorded too late to count is still not a new connection")
  func aSYNThatIsRecordedTooLateToCountIsStillNotANewConnection() {
    var talk = Conversation(ReassemblyOptions(startPatience: 2))
    talk.client(4, "def", ack: 1)
    talk.client(7, "ghi", ack: 1)
    talk.client(0, "", .syn)
    talk.client(0, "", .syn)
    talk.client(10, "jkl", ack: 1)
    talk.finish()
    #expect(talk.connections.count == 1)
    #expect(talk.sent() == "defghijkl")
  }

  @Test("A closed connection whose successor has no SYN") func aClosedConnectionWhoseSuccessorHasNoSYN() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, ack: 1, .fin)
    talk.server(1, ack: 2, .fin)
    #expect(talk.connections[0].isClosed)
    talk.clientStart &+= 50_000_000
    talk.client(1, "next", ack: 70_000_000)
    talk.finish()
    #expect(talk.connections.count == 2)
    #expect(talk.sent(1) == "next")
  }

  @Test("Late packets after the close do not open a connection") func latePacketsAfterTheCloseDoNotOpenAConnection() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1, .fin)
    talk.server(1, ack: 5, .fin)
    talk.client(1, "abc", ack: 1, .fin)
    talk.server(1, ack: 5, .fin)
    talk.client(5, ack: 2)
    talk.client(5, ack: 2, .rst)
    talk.finish()
    #expect(talk.connections.count == 1)
    #expect(talk.sent() == "abc")
    #expect(talk.log.violations.isEmpty)
  }

  // MARK: resets

  @Test("A reset outside the window is ignored") func aResetOutsideTheWindowIsIgnored() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.client(-500, ack: 1, .rst)
    talk.client(50_000_000, ack: 1, .rst)
    talk.time += 10
    talk.client(4, "def", ack: 1)
    #expect(talk.connections[0].closings.isEmpty)
    #expect(talk.sent() == "abcdef")
  }

  @Test("A reset in front of the receiver's window is ignored, wherever that ends", arguments: [nil, 0, 7] as [UInt8?])
  func aResetInFrontOfTheWindowIsIgnored(scale: UInt8?) {
    var talk = Conversation()
    (talk.window, talk.windowScale) = (500, scale)
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.server(1, ack: 4)
    let edge = 4 + 500 << Int(scale ?? 0)
    talk.client(edge + 1, ack: 1, .rst)
    talk.server(1, "", ack: 4, .fin)
    talk.client(4, "", ack: 2, .fin)
    talk.finish()
    #expect(talk.connections[0].closings.map(\.isReset) == [false, false])
  }

  @Test("A reset behind bytes that were not captured ends the connection, unless its sender goes on before it")
  func doubtfulReset() {
    for goesOn in [false, true] {
      var talk = Conversation()
      talk.handshake()
      talk.client(1, "abc", ack: 1)
      talk.server(1, ack: 4)
      talk.client(400, ack: 1, .rst)
      #expect(talk.connections[0].closings.isEmpty)
      if goesOn { talk.client(4, "", ack: 1, .fin) }
      talk.finish()
      #expect(talk.connections[0].closings.map(\.isReset) == [!goesOn])
      #expect(talk.log.violations.isEmpty)
    }
  }

  @Test("A reset ends the connection after a silence") func aResetEndsTheConnectionAfterASilence() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.server(1, ack: 4, .rst)
    #expect(!talk.connections[0].isClosed)
    #expect(talk.connections[0].closings.map(\.isReset) == [true])
    talk.time += 3
    talk.clientPort = 1
    talk.client(0, "", .syn)
    #expect(talk.connections[0].isClosed)
    #expect(talk.connections.count == 2)
  }

  @Test("Without times a reset ends the connection after many packets")
  func withoutTimesAResetEndsTheConnectionAfterManyPackets() {
    var talk = Conversation()
    talk.hasTimes = false
    talk.handshake()
    talk.server(1, ack: 1, .rst)
    talk.client(1, "recorded late", ack: 1)
    #expect(talk.sent() == "recorded late")
    talk.clientPort = 1
    for _ in 0..<2_000 { talk.client(0, "", .syn) }
    #expect(talk.connections[0].isClosed)
  }

  @Test("Data recorded behind a reset still counts") func dataRecordedBehindAResetStillCounts() {
    var talk = Conversation()
    talk.handshake()
    talk.client(4, "def", ack: 1)
    talk.client(7, ack: 1, .rst)
    talk.client(1, "abc", ack: 1)
    #expect(talk.sent() == "abcdef")
  }

  @Test("An injected reset does not end a connection that goes on")
  func anInjectedResetDoesNotEndAConnectionThatGoesOn() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.client(4, ack: 1, .rst)
    talk.client(4, "def", ack: 1)
    talk.time += 100
    talk.server(1, "answer", ack: 7)
    talk.client(7, "ghi", ack: 7)
    talk.finish()
    #expect(talk.connections.count == 1)
    #expect(talk.sent() == "abcdefghi" && talk.answered() == "answer")
    #expect(talk.log.violations.isEmpty)
  }

  @Test("Data after a reset and a long silence is read as a connection of its own")
  func dataAfterAResetAndALongSilenceIsReadAsAConnectionOfItsOwn() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.client(4, ack: 1, .rst)
    talk.time += 100
    talk.client(4, "def", ack: 1)
    talk.finish()
    #expect(talk.connections.count == 2)
    #expect(talk.sent(0) == "abc" && talk.sent(1) == "def")
  }

  @Test("A reset that does not answer the SYN is ignored") func aResetThatDoesNotAnswerTheSYNIsIgnored() {
    var talk = Conversation()
    talk.client(0, "", .syn)
    talk.server(5_000, ack: 0, .rst)
    talk.time += 10
    talk.server(0, ack: 1, .syn)
    talk.client(1, "abc", ack: 1)
    #expect(talk.sent() == "abc")
    #expect(talk.connections.count == 1)
    #expect(talk.connections[0].closings.isEmpty)
  }

  @Test("A refused SYN is a reset") func aRefusedSYNIsAReset() {
    var talk = Conversation()
    talk.client(0, "", .syn)
    talk.server(0, ack: 1, .rst)
    #expect(talk.connections[0].closings.map(\.isReset) == [true])
    #expect(talk.connections[0].closings.map(\.direction) == [.reverse])
  }

  // MARK: limits

  @Test("At the limit of connections the longest silent one gives way")
  func atTheLimitOfConnectionsTheLongestSilentOneGivesWay() {
    var talk = Conversation(ReassemblyOptions(maximumConnections: 3))
    for port: UInt16 in 1...3 {
      talk.clientPort = port
      talk.client(0, "", .syn)
      talk.client(1, "from \(port)", ack: 1)
    }
    talk.clientPort = 1
    talk.client(7, ", again", ack: 1)
    talk.clientPort = 4
    talk.client(0, "", .syn)
    #expect(talk.connections.map(\.isClosed) == [false, true, false, false])
    #expect(talk.connections[1].limits == [.connections])
    #expect(talk.sent(1) == "from 2")
    // It is not forgotten that the port was used, only what was known of it.
    talk.clientPort = 2
    talk.client(7, ", again", ack: 1)
    talk.finish()
    #expect(talk.connections.count == 5)
    #expect(talk.sent(0) == "from 1, again" && talk.sent(4) == ", again")
    #expect(talk.log.violations.isEmpty)
  }

  @Test("An ended connection gives way before a live one") func anEndedConnectionGivesWayBeforeALiveOne() {
    var talk = Conversation(ReassemblyOptions(maximumConnections: 2))
    talk.clientPort = 1
    talk.handshake()
    talk.clientPort = 2
    talk.handshake()
    talk.client(1, ack: 1, .fin)
    talk.server(1, ack: 2, .fin)
    talk.clientPort = 3
    talk.handshake()
    #expect(talk.connections.map(\.isClosed) == [false, true, false])
    #expect(talk.connections.allSatisfy { $0.limits.isEmpty })
    talk.finish()
    #expect(talk.log.violations.isEmpty)
  }

  @Test("Many connections are found again while others come and go")
  func manyConnectionsAreFoundAgainWhileOthersComeAndGo() {
    var talk = Conversation(ReassemblyOptions(maximumConnections: 200))
    for round in 0..<5 {
      for port in UInt16(1)...200 {
        talk.clientPort = port
        talk.clientStart = UInt32(round) &* 123_456_789
        talk.handshake()
        talk.client(1, "\(round)/\(port)", ack: 1)
      }
    }
    talk.finish()
    #expect(talk.connections.count == 1_000)
    let expected = (0..<5).flatMap { round in (1...200).map { "\(round)/\($0)" } }
    #expect((0..<1_000).map { talk.sent($0) } == expected)
    #expect(talk.log.violations.isEmpty)
  }
}
