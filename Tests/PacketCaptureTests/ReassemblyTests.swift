import Testing

@testable import PacketCapture

/// Conversations about order: what is emitted, when, and as what.
struct ReassemblyTests {
  private typealias Gap = StreamLog.Gap

  @Test("A whole conversation") func aWholeConversation() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "hello", ack: 1)
    #expect(talk.sent() == "hello")
    talk.server(1, "good ", ack: 6)
    talk.server(6, "day", ack: 6)
    talk.client(6, ack: 9, .fin)
    talk.server(9, ack: 7, .fin)
    #expect(talk.connections[0].isClosed)
    talk.client(7, ack: 10)
    talk.finish()
    #expect(talk.answered() == "good day")
    #expect(talk.connections.count == 1)
    #expect(talk.connections[0].initiator == .forward)
    #expect(talk.connections[0].closings.map(\.direction) == [.forward, .reverse])
    #expect(talk.connections[0].low.gaps.isEmpty && talk.connections[0].high.gaps.isEmpty)
    #expect(talk.log.violations.isEmpty)
  }

  @Test("Late bytes keep their own packet number") func lateBytesKeepTheirOwnPacketNumber() {
    var talk = Conversation()
    talk.handshake()
    talk.client(4, "def", ack: 1)
    talk.client(7, "ghi", ack: 1)
    #expect(talk.sent() == "")
    talk.client(1, "abc", ack: 1)
    #expect(talk.sent() == "abcdefghi")
    #expect(talk.connections[0].low.packets == [6, 4, 5])
  }

  @Test("The first bytes for a place win and a conflict is reported")
  func theFirstBytesForAPlaceWinAndAConflictIsReported() {
    var talk = Conversation()
    talk.handshake()
    talk.client(4, "def", ack: 1)
    talk.client(1, "abcXeY", ack: 1)
    #expect(talk.sent() == "abcdef")
    #expect(talk.connections[0].conflicts.map(\.offset) == [3])
    #expect(talk.connections[0].conflicts.map(\.length) == [2])
    #expect(talk.connections[0].conflicts.map(\.direction) == [.forward])
  }

  @Test("A retransmission with other bytes is a conflict also after delivery")
  func aRetransmissionWithOtherBytesIsAConflictAlsoAfterDelivery() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "GOOD", ack: 1)
    talk.client(1, "GOOD", ack: 1)
    #expect(talk.connections[0].conflicts.isEmpty)
    talk.client(1, "EVIL", ack: 1)
    #expect(talk.sent() == "GOOD")
    #expect(talk.connections[0].conflicts.map(\.offset) == [0])
  }

  @Test("A retransmission may carry more") func aRetransmissionMayCarryMore() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.client(1, "abcdef", ack: 1)
    talk.client(2, "bcdefgh", ack: 1)
    #expect(talk.sent() == "abcdefgh")
    #expect(talk.connections[0].conflicts.isEmpty)
  }

  @Test("Data on the SYN is the beginning") func dataOnTheSYNIsTheBeginning() {
    var talk = Conversation()
    talk.client(0, "early", .syn)
    talk.server(0, "reply", ack: 6, .syn)
    talk.client(6, "late", ack: 6)
    talk.finish()
    #expect(talk.sent() == "earlylate")
    #expect(talk.answered() == "reply")
  }

  @Test("Data on a SYN that was not taken is sent again") func dataOnASYNThatWasNotTakenIsSentAgain() {
    var talk = Conversation()
    talk.client(0, "early", .syn)
    talk.server(0, ack: 1, .syn)
    talk.client(1, "early, late", ack: 1)
    #expect(talk.sent() == "early, late")
    #expect(talk.connections[0].conflicts.isEmpty)
  }

  @Test("A keep alive is not data") func aKeepAliveIsNotData() {
    var talk = Conversation()
    talk.handshake()
    talk.client(0, "\0", ack: 1)
    talk.client(1, "abc", ack: 1)
    talk.client(3, "\0", ack: 1)
    talk.client(3, "", ack: 1)
    talk.client(4, "def", ack: 1)
    talk.finish()
    #expect(talk.sent() == "abcdef")
    #expect(talk.connections[0].conflicts.isEmpty)
    #expect(talk.connections[0].low.gaps.isEmpty)
  }

  @Test("A capture may begin with a keep alive", arguments: [false, true])
  func aCaptureMayBeginWithAKeepAlive(answered: Bool) {
    // An idle push connection: the capture starts, a keep-alive comes, hours later a notification.
    var talk = Conversation()
    talk.client(500, ack: 1)
    if answered { talk.server(1, ack: 501) }
    talk.client(501, "hello", ack: 1)
    talk.finish()
    #expect(talk.sent() == "hello")
    #expect(talk.connections[0].low.gaps.isEmpty)
  }

  @Test("The FIN may come before the last data") func theFINMayComeBeforeTheLastData() {
    var talk = Conversation()
    talk.handshake()
    talk.client(7, ack: 1, .fin)
    talk.client(4, "def", ack: 1)
    #expect(!talk.connections[0].low.hasEnded)
    talk.client(1, "abc", ack: 1)
    #expect(talk.sent() == "abcdef")
    #expect(talk.connections[0].low.hasEnded)
  }

  @Test("Data behind the end is not emitted") func dataBehindTheEndIsNotEmitted() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1, .fin)
    talk.client(4, "def", ack: 1)
    talk.finish()
    #expect(talk.sent() == "abc")
    #expect(talk.log.violations.isEmpty)
  }

  // MARK: gaps

  @Test("An acknowledgement recorded before its data is no gap") func anAcknowledgementRecordedBeforeItsDataIsNoGap() {
    var talk = Conversation(ReassemblyOptions(gapPatience: 4))
    talk.handshake()
    talk.server(1, ack: 7)
    talk.client(4, "def", ack: 1)
    talk.server(1, ack: 7)
    #expect(talk.connections[0].low.gaps.isEmpty)
    talk.client(1, "abc", ack: 1)
    talk.finish()
    #expect(talk.sent() == "abcdef")
    #expect(talk.connections[0].low.gaps.isEmpty)
  }

  @Test("Missing bytes that the peer has are lost after a while") func missingBytesThatThePeerHasAreLostAfterAWhile() {
    var talk = Conversation(ReassemblyOptions(gapPatience: 4))
    talk.handshake()
    talk.client(4, "def", ack: 1)
    talk.server(1, ack: 7)
    talk.server(1, ack: 7)
    talk.server(1, ack: 7)
    #expect(talk.connections[0].low.gaps.isEmpty)
    talk.server(1, ack: 7)
    #expect(talk.connections[0].low.gaps == [Gap(offset: 0, length: 3, reason: .lost)])
    #expect(talk.sent() == "def")
    talk.client(1, "abc", ack: 1)
    #expect(talk.sent() == "def")
  }

  @Test("Missing bytes that nobody acknowledged are waited for to the end")
  func missingBytesThatNobodyAcknowledgedAreWaitedForToTheEnd() {
    var talk = Conversation(ReassemblyOptions(gapPatience: 4))
    talk.handshake()
    for number in 1...100 { talk.client(1 + 3 * number, "abc", ack: 1) }
    #expect(talk.sent() == "")
    talk.finish()
    #expect(talk.connections[0].low.bytes.count == 300)
    #expect(talk.connections[0].low.gaps == [Gap(offset: 0, length: 3, reason: .lost)])
    #expect(talk.connections[0].limits.isEmpty)
  }

  @Test("Bytes missing at the end are shown by the FIN or by the peer")
  func bytesMissingAtTheEndAreShownByTheFINOrByThePeer() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.client(10, ack: 1, .fin)
    talk.server(1, ack: 11)
    talk.client(11, ack: 21)
    talk.finish()
    #expect(talk.connections[0].low.gaps == [Gap(offset: 3, length: 6, reason: .lost)])
    #expect(talk.connections[0].high.gaps == [Gap(offset: 0, length: 20, reason: .lost)])
  }

  @Test("One direction alone is read and its acknowledgements tell of the other")
  func oneDirectionAloneIsReadAndItsAcknowledgementsTellOfTheOther() {
    var talk = Conversation()
    talk.client(1, "abc", ack: 1)
    talk.client(4, "def", ack: 101)
    talk.client(10, "jkl", ack: 301)
    talk.finish()
    #expect(talk.sent() == "abcdefjkl")
    #expect(talk.connections[0].low.gaps == [Gap(offset: 6, length: 3, reason: .lost)])
    #expect(talk.connections[0].high.gaps == [Gap(offset: 0, length: 300, reason: .lost)])
  }

  @Test("An acknowledged FIN that was not captured is no missing byte")
  func anAcknowledgedFINThatWasNotCapturedIsNoMissingByte() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1)
    talk.server(1, ack: 5)
    talk.finish()
    #expect(talk.connections[0].low.gaps.isEmpty)
  }

  // MARK: snap length

  @Test("Bytes that the snap length cut are truncated not lost") func bytesThatTheSnapLengthCutAreTruncatedNotLost() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "abc", ack: 1, wireLength: 10)
    talk.client(11, "def", ack: 1)
    #expect(talk.sent() == "abcdef")
    #expect(talk.connections[0].low.gaps == [Gap(offset: 3, length: 7, reason: .truncated)])
  }

  @Test("A cut segment out of order truncates only itself") func aCutSegmentOutOfOrderTruncatesOnlyItself() {
    var talk = Conversation()
    talk.handshake()
    talk.client(21, "uvw", ack: 1, wireLength: 10)
    talk.client(1, "abc", ack: 1, wireLength: 10)
    #expect(talk.sent() == "abc")
    talk.client(11, "klm", ack: 1, wireLength: 10)
    talk.client(41, "end", ack: 1)
    talk.finish()
    #expect(talk.sent() == "abcklmuvwend")
    #expect(
      talk.connections[0].low.gaps == [
        Gap(offset: 3, length: 7, reason: .truncated), Gap(offset: 13, length: 7, reason: .truncated),
        Gap(offset: 23, length: 7, reason: .truncated), Gap(offset: 30, length: 10, reason: .lost),
      ])
  }

  @Test("A capture of headers alone") func aCaptureOfHeadersAlone() {
    var talk = Conversation()
    talk.handshake()
    talk.client(1, "", ack: 1, wireLength: 100)
    talk.client(201, "", ack: 1, wireLength: 100)
    talk.client(301, ack: 1, .fin)
    talk.finish()
    #expect(talk.sent() == "")
    #expect(
      talk.connections[0].low.gaps == [
        Gap(offset: 0, length: 100, reason: .truncated), Gap(offset: 100, length: 100, reason: .lost),
        Gap(offset: 200, length: 100, reason: .truncated),
      ])
  }

  // MARK: limits

  @Test("The limit of a connection ends the waiting") func theLimitOfAConnectionEndsTheWaiting() {
    var talk = Conversation(ReassemblyOptions(maximumBufferedBytes: 1_000))
    talk.handshake()
    for number in 1...4 { talk.client(1 + 300 * number, [UInt8](repeating: 1, count: 300), ack: 1) }
    #expect(talk.connections[0].limits == [.bufferedBytes])
    #expect(talk.connections[0].low.gaps == [Gap(offset: 0, length: 300, reason: .lost)])
    #expect(talk.connections[0].low.bytes.count == 1_200)
  }
}
