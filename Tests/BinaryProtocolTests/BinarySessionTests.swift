import BinaryProtocol
import Testing

/// One connection told as a conversation: what is written, what the gateway says, what follows from it.
struct Conversation {
  var session: BinarySession

  init(maximumIdentifierRuns: Int = 32_768) {
    session = BinarySession(maximumIdentifierRuns: maximumIdentifierRuns)
  }

  mutating func write(_ identifiers: some Sequence<UInt32>) {
    for identifier in identifiers { _ = session.write(identifier: identifier, isKnownBad: false) }
  }

  mutating func writeWithoutIdentifier(_ count: Int) {
    for _ in 0..<count { _ = session.write(identifier: nil, isKnownBad: false) }
  }

  mutating func writeKnownBad(identifier: UInt32?) { _ = session.write(identifier: identifier, isKnownBad: true) }

  @discardableResult
  mutating func receive(_ status: ErrorResponse.Status, _ identifier: UInt32) -> BinarySession.Naming {
    session.receive(ErrorResponse(status: status, identifier: identifier))
  }

  /// What a response would name, without applying it.
  ///
  /// Status 0 takes identifier 0 at its word, and counts what it names among the accepted ones; here it is not counted.
  func named(by identifier: UInt32) -> BinarySession.Naming {
    var verdict = named(.noError, identifier)
    verdict.accepted = verdict.accepted.map { $0 - 1 }
    return verdict
  }

  func named(_ status: ErrorResponse.Status, _ identifier: UInt32) -> BinarySession.Naming {
    var copy = session
    return copy.receive(ErrorResponse(status: status, identifier: identifier))
  }

  var fates: [Int] { [session.fates.accepted, session.fates.rejected, session.fates.discarded, session.fates.unknown] }
}

extension BinarySession.Naming {
  init(_ notification: Int?, accepted: Int?, candidates: Int = 1) {
    self = BinarySession().verdictTemplate
    self.notification = notification
    self.accepted = accepted
    self.candidates = candidates
  }
}

extension BinarySession {
  /// `Naming` has no public initializer; a response that names nothing yields one to fill in.
  fileprivate var verdictTemplate: Naming {
    var empty = BinarySession()
    return empty.receive(ErrorResponse(status: .none, identifier: 0))
  }
}

/// The expected fates are written as [accepted, rejected, discarded, unknown].
@Suite("Provider session: conversations")
struct BinarySessionTests {
  @Test("Decisions of the gateway are final: later responses name notifications, and settle none")
  func gateway() {
    var talk = Conversation()
    talk.write(1...10)
    talk.session.settle(accepted: 4, rejects: false, discards: false)
    #expect(talk.fates == [4, 0, 0, 6])
    talk.session.settle(accepted: 6, rejects: true, discards: true)
    #expect(talk.fates == [6, 1, 3, 0])
    // An answer with a wrong identifier.
    #expect(talk.receive(.invalidToken, 9).notification == 8)
    #expect(talk.fates == [6, 1, 3, 0])
    // It counts what it names among the accepted ones where its status does.
    #expect(talk.named(.invalidToken, 3) == .init(2, accepted: 2) && talk.named(.shutdown, 3) == .init(2, accepted: 3))
    #expect(talk.named(.invalidToken, 9) == .init(8, accepted: 7) && talk.named(.noError, 9) == .init(8, accepted: 8))
    talk.write(11...12)
    talk.session.settle(accepted: 6, rejects: false, discards: true)
    #expect(talk.fates == [6, 1, 5, 0])
  }

  @Test("A gateway that shuts down rejects none, and one whose rejection was missed rejects none of the others")
  func gatewayEndings() {
    var talk = Conversation()
    talk.write(1...5)
    talk.session.settle(accepted: 3, rejects: false, discards: true)
    #expect(talk.fates == [3, 0, 2, 0])
    // More were accepted than were seen.
    talk.session.settle(accepted: -4, rejects: false, discards: true)
    #expect(talk.fates == [3, 0, 2, 0])
    var nothing = Conversation()
    nothing.session.settle(accepted: 0, rejects: true, discards: true)
    #expect(nothing.fates == [0, 0, 0, 0])
  }

  @Test("Notifications are numbered in the order they are written, and nothing is known of them")
  func writing() {
    var session = BinarySession()
    #expect(session.write(identifier: 9, isKnownBad: false) == 0)
    #expect(session.write(identifier: nil, isKnownBad: false) == 1)
    #expect(session.write(identifier: 9, isKnownBad: true) == 2)
    #expect(session.written == 3)
    #expect(session.fates.unknown == 3 && session.fates.accepted == 0)
    #expect(!session.isTerminated)
  }

  @Test(
    "A rejection: all before it accepted, all after it discarded",
    arguments: [1, 2, 3, 4, 5, 6, 7, 8, 128, 255, 44] as [UInt8])
  func rejection(status: UInt8) {
    var talk = Conversation()
    talk.write(1...10)
    #expect(talk.receive(.init(rawValue: status), 4) == .init(3, accepted: 3))
    #expect(talk.fates == [3, 1, 6, 0])
    #expect(talk.session.isTerminated)
    #expect(talk.session.discarded(after: 3) == 6)
  }

  @Test("The first and the last notification can be rejected too")
  func edges() {
    var first = Conversation()
    first.write(1...5)
    #expect(first.receive(.invalidToken, 1) == .init(0, accepted: 0))
    #expect(first.fates == [0, 1, 4, 0])

    var last = Conversation()
    last.write(1...5)
    #expect(last.receive(.invalidToken, 5) == .init(4, accepted: 4))
    #expect(last.fates == [4, 1, 0, 0])
    #expect(last.session.discarded(after: 4) == 0)
  }

  @Test("The error comes late: what was written meanwhile, before and after it is read, is discarded")
  func lateError() {
    var talk = Conversation()
    talk.write(1...826)
    #expect(talk.receive(.invalidToken, 26) == .init(25, accepted: 25))
    #expect(talk.fates == [25, 1, 800, 0])
    talk.write(827...900)
    #expect(talk.fates == [25, 1, 874, 0])
    #expect(talk.session.discarded(after: 25) == 874)
  }

  @Test("Status 10 is the opposite: it names the last accepted one")
  func shutdown() {
    var talk = Conversation()
    talk.write(1...10)
    #expect(talk.receive(.shutdown, 4) == .init(3, accepted: 4))
    #expect(talk.fates == [4, 0, 6, 0])
    #expect(talk.session.discarded(after: 3) == 6)
    talk.write(11...12)
    #expect(talk.fates == [4, 0, 8, 0])
  }

  @Test("Status 0 accepts what it names and all before, and discards nothing")
  func acknowledgement() {
    var talk = Conversation()
    talk.write(1...10)
    #expect(talk.receive(.noError, 4) == .init(3, accepted: 4))
    #expect(talk.fates == [4, 0, 0, 6])
    #expect(!talk.session.isTerminated)
    #expect(talk.session.discarded(after: 3) == 0)
  }

  @Test("Identifier 0 names nothing when nobody used it: all stays open")
  func identifierZero() {
    var talk = Conversation()
    talk.write(1...10)
    #expect(talk.receive(.processingError, 0) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.fates == [0, 0, 0, 10])
    #expect(talk.session.unresolvedResponses == 1)
    #expect(!talk.session.isTerminated)
  }

  @Test("An identifier nobody used names nothing, whatever the status", arguments: [0, 7, 8, 10] as [UInt8])
  func unknownIdentifier(status: UInt8) {
    var talk = Conversation()
    talk.write(1...10)
    #expect(talk.receive(.init(rawValue: status), 77) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.receive(.init(rawValue: status), 11) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.session.unresolvedResponses == 2)
    #expect(talk.fates == [0, 0, 0, 10])
    // A later response that does name one settles them.
    #expect(talk.receive(.invalidToken, 10) == .init(9, accepted: 9))
    #expect(talk.fates == [9, 1, 0, 0])
    #expect(talk.session.unresolvedResponses == 2)
  }

  @Test("A response before anything was written names nothing")
  func nothingWritten() {
    var talk = Conversation()
    #expect(talk.receive(.invalidToken, 0).notification == nil)
    talk.write(0...4)
    #expect(talk.fates == [0, 0, 0, 5])
  }

  @Test("Command 0 and a close: no response can name anything, all stays open")
  func noIdentifiers() {
    var talk = Conversation()
    talk.writeWithoutIdentifier(50)
    #expect(talk.fates == [0, 0, 0, 50])
    // Without an identifier of its own a notification is not number 0.
    #expect(talk.receive(.invalidToken, 0).notification == nil)
    #expect(talk.fates == [0, 0, 0, 50])
  }

  @Test("Commands are mixed: those without identifier count, but are never named")
  func mixedCommands() {
    var talk = Conversation()
    talk.write([1])
    talk.writeWithoutIdentifier(1)
    talk.write([2])
    talk.writeWithoutIdentifier(2)
    talk.write([3, 4])
    #expect(talk.receive(.invalidToken, 3) == .init(5, accepted: 5))
    #expect(talk.fates == [5, 1, 1, 0])
  }

  // MARK: the known-bad frame

  @Test("The answer to a deliberately bad closing frame proves all before it accepted")
  func knownBadClosingFrame() {
    var talk = Conversation()
    talk.write(1...30)
    talk.writeKnownBad(identifier: 31)
    #expect(talk.fates == [0, 0, 0, 31])
    #expect(talk.receive(.missingDeviceToken, 31) == .init(30, accepted: 30))
    #expect(talk.fates == [30, 1, 0, 0])
  }

  @Test(
    "Identifier 0 names the empty-token frame when the status says what is wrong with it", arguments: [2, 5] as [UInt8])
  func identifierZeroWithKnownBad(status: UInt8) {
    var talk = Conversation()
    talk.write(1...30)
    talk.writeKnownBad(identifier: nil)
    talk.write(32...33)
    #expect(talk.receive(.init(rawValue: status), 0) == .init(30, accepted: 30))
    #expect(talk.fates == [30, 1, 2, 0])
  }

  @Test(
    "Identifier 0 with a status that is about something else does not name the empty-token frame",
    arguments: [1, 4, 7, 8, 255] as [UInt8])
  func identifierZeroOfAnother(status: UInt8) {
    var talk = Conversation()
    talk.write(1...30)
    talk.writeKnownBad(identifier: 31)
    #expect(talk.receive(.init(rawValue: status), 0) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.fates == [0, 0, 0, 31])
  }

  @Test(
    "Status 7 with identifier 0 names the first payload that the writer knows to be too long, and no other status does")
  func identifierZeroWithOversize() {
    var talk = Conversation()
    talk.write(1...3)
    #expect(talk.named(.invalidPayloadSize, 0) == .init(nil, accepted: nil, candidates: 0))
    talk.write(4...4)
    talk.session.noteOversize()
    talk.write(5...6)
    talk.session.noteOversize()
    #expect(talk.named(.invalidPayloadSize, 0) == .init(3, accepted: 3))
    for status in [1, 2, 4, 5, 8, 255] as [UInt8] {
      #expect(talk.named(.init(rawValue: status), 0) == .init(nil, accepted: nil, candidates: 0))
    }
    #expect(talk.receive(.invalidPayloadSize, 0) == .init(3, accepted: 3))
    #expect(talk.fates == [3, 1, 2, 0])
  }

  @Test("Status 5 with identifier 0 names nothing when another token has an odd length, too")
  func identifierZeroAndOddTokens() {
    var talk = Conversation()
    talk.write(1...3)
    talk.session.noteFaults([.tokenSize], identifier: 3)
    talk.writeKnownBad(identifier: 4)
    talk.session.noteFaults([.tokenSize, .missingToken], identifier: 4)
    #expect(talk.named(.invalidTokenSize, 0) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.named(.missingDeviceToken, 0) == .init(3, accepted: 3))
  }

  @Test("A token that is missing is none of an odd length")
  func identifierZeroAndMissingToken() {
    var talk = Conversation()
    talk.write(1...3)
    talk.session.noteFaults([.payloadSize], identifier: 3)
    talk.writeKnownBad(identifier: 4)
    talk.session.noteFaults([.tokenSize, .missingToken], identifier: 4)
    #expect(talk.named(.invalidTokenSize, 0) == .init(3, accepted: 3))
  }

  // MARK: identifier 0

  @Test("Identifier 0 is ambiguous when it was used and the notification shows no such fault: all stays open")
  func ambiguousZero() {
    for status in [1, 4, 5, 7, 8, 10, 128, 255] as [UInt8] {
      var talk = Conversation()
      talk.write(0...9)
      let verdict = talk.receive(.init(rawValue: status), 0)
      #expect(verdict.notification == nil && verdict.accepted == nil && verdict.isAmbiguous, "status \(status)")
      #expect(talk.fates == [0, 0, 0, 10], "status \(status)")
      #expect(!talk.session.isTerminated)
    }
  }

  @Test("Identifier 0 is taken at its word when only that one was written")
  func onlyZero() {
    var talk = Conversation()
    talk.write([0])
    #expect(talk.receive(.invalidToken, 0) == .init(0, accepted: 0))
    #expect(talk.fates == [0, 1, 0, 0])
    var shutdown = Conversation()
    shutdown.write([0])
    #expect(shutdown.receive(.shutdown, 0) == .init(0, accepted: 1))
  }

  @Test("Identifier 0 is taken at its word when that one shows the fault that the status names")
  func faultOfZero() {
    let faults: [(BinaryFaults, UInt8)] = [
      (.silentAtOnce, 1), (.missingPayload, 4), (.tokenSize, 5), (.payloadSize, 7),
    ]
    for (fault, status) in faults {
      for (seen, isNamed) in [(fault, true), (BinaryFaults(), false)] {
        var talk = Conversation()
        talk.write(7...9)
        talk.write([0])
        talk.session.noteFaults(seen, identifier: 0)
        talk.write(1...5)
        let verdict = talk.receive(.init(rawValue: status), 0)
        #expect(verdict.notification == (isNamed ? 3 : nil), "status \(status)")
        #expect(verdict.isAmbiguous == !isNamed)
        #expect(talk.fates == (isNamed ? [3, 1, 5, 0] : [0, 0, 0, 9]))
      }
    }
  }

  @Test("A fault of the topic is that of the first notification", arguments: [3, 6] as [UInt8])
  func topicOfZero(status: UInt8) {
    var first = Conversation()
    first.write(0...4)
    #expect(first.receive(.init(rawValue: status), 0) == .init(0, accepted: 0))
    var later = Conversation()
    later.write([9, 0, 1])
    #expect(later.receive(.init(rawValue: status), 0).isAmbiguous)
  }

  // MARK: frames whose items do not fit

  @Test("Status 128 names a frame whose items do not fit by its identifier, or the first such frame by 0")
  func malformedFrame() {
    var talk = Conversation()
    talk.write(0...9)
    #expect(talk.session.write(malformedWith: 10) == 10)
    talk.write(11...20)
    #expect(talk.named(.protocolError, 10) == .init(10, accepted: 10))
    #expect(talk.receive(.protocolError, 0) == .init(10, accepted: 10))
    #expect(talk.fates == [10, 1, 10, 0])

    var nameless = Conversation()
    nameless.write(1...4)
    _ = nameless.session.write(malformedWith: nil)
    _ = nameless.session.write(malformedWith: nil)
    #expect(nameless.receive(.protocolError, 0) == .init(4, accepted: 4))
    #expect(nameless.fates == [4, 1, 1, 0])
  }

  @Test(
    "What a gateway may answer bad items with names the first such frame by identifier 0, and no other status does",
    arguments: [1, 2, 3, 4, 5, 6, 7, 8, 10, 128, 255] as [UInt8])
  func badItems(status: UInt8) {
    let isOfItems = [1, 2, 4, 5, 7, 128].contains(status)
    var talk = Conversation()
    talk.write(1...4)
    _ = talk.session.write(malformedWith: nil)
    talk.write(6...8)
    // Behind that one: the gateway reads no further.
    talk.writeKnownBad(identifier: 9)
    talk.session.noteFaults([.tokenSize, .missingToken, .missingPayload], identifier: 9)
    _ = talk.session.write(malformedWith: 10)
    let verdict = talk.receive(.init(rawValue: status), 0)
    #expect(verdict == (isOfItems ? .init(4, accepted: 4) : .init(nil, accepted: nil, candidates: 0)))
    #expect(talk.fates == (isOfItems ? [4, 1, 5, 0] : [0, 0, 0, 10]))
  }

  @Test("Behind one without an identifier, only status 128 with identifier 0 is about bad items")
  func badItemsBehindNameless() {
    var talk = Conversation()
    talk.write(1...2)
    _ = talk.session.write(identifier: nil, isKnownBad: false)
    _ = talk.session.write(malformedWith: nil)
    for status in [1, 2, 4, 5, 7] as [UInt8] { #expect(talk.named(.init(rawValue: status), 0).notification == nil) }
    #expect(talk.named(.protocolError, 0) == .init(3, accepted: 3))
  }

  @Test("An empty token or payload before the bad items is what the gateway came to first")
  func faultBeforeBadItems() {
    for (status, fault) in [(2, .missingToken), (4, .missingPayload)] as [(UInt8, BinaryFaults)] {
      var talk = Conversation()
      talk.write(1...2)
      if status == 2 { talk.writeKnownBad(identifier: 3) } else { talk.write([3]) }
      talk.session.noteFaults(fault, identifier: 3)
      talk.write([4])
      _ = talk.session.write(malformedWith: nil)
      #expect(talk.named(.init(rawValue: status), 0) == .init(2, accepted: 2))
      #expect(talk.named(.protocolError, 0) == .init(4, accepted: 4))
    }
  }

  @Test("An answer is about none of the notifications that cannot have arrived, whatever they look like")
  func onlyWhatArrived() {
    var talk = Conversation()
    talk.write([7, 8, 9, 7])
    #expect(talk.session.receive(.init(status: .invalidToken, identifier: 7), sent: 3) == .init(0, accepted: 0))
    var bad = Conversation()
    bad.write([7, 8])
    _ = bad.session.write(malformedWith: nil)
    var early = bad
    #expect(early.session.receive(.init(status: .protocolError, identifier: 0), sent: 2).notification == nil)
    #expect(bad.session.receive(.init(status: .protocolError, identifier: 0), sent: 3).notification == 2)
  }

  @Test("Status 128 with identifier 0 names no frame when bytes that are no frame came before")
  func unreadableBytes() {
    var talk = Conversation()
    talk.write(1...4)
    talk.session.noteUnreadableBytes()
    _ = talk.session.write(malformedWith: nil)
    #expect(talk.receive(.protocolError, 0) == .init(nil, accepted: nil, candidates: 0))
    #expect(talk.fates == [0, 0, 0, 5])
    // Nor the notification 0, though there is one.
    for count in [1, 5] as [UInt32] {
      var zero = Conversation()
      zero.write(0..<count)
      zero.session.noteUnreadableBytes()
      #expect(zero.receive(.protocolError, 0) == .init(nil, accepted: nil, candidates: 0))
      #expect(zero.fates == [0, 0, 0, Int(count)])
    }
  }

  @Test("Where bytes are missing, the only notification that was seen may not be the only one")
  func missingBytes() {
    for status in [3, 8] as [UInt8] {
      var talk = Conversation()
      talk.session.noteMissingBytes()
      talk.write([0])
      #expect(talk.receive(.init(rawValue: status), 0).isAmbiguous)
      #expect(talk.fates == [0, 0, 0, 1])
    }
  }

  @Test("Behind one without an identifier, identifier 0 may mean either: only status 2 names the empty token")
  func identifierZeroUnidentifiedAndKnownBad() {
    for status in [1, 4, 5, 7, 8, 128, 255] as [UInt8] {
      var talk = Conversation()
      talk.write(1...3)
      talk.writeWithoutIdentifier(1)
      talk.writeKnownBad(identifier: 5)
      #expect(talk.receive(.init(rawValue: status), 0) == .init(nil, accepted: nil, candidates: 0))
      #expect(talk.fates == [0, 0, 0, 5])
      #expect(talk.receive(.missingDeviceToken, 0) == .init(4, accepted: 4))
    }
    // What could not be parsed is some other frame, whose identifier stood behind the mistake.
    var unparsed = Conversation()
    unparsed.write(1...3)
    unparsed.writeKnownBad(identifier: 4)
    #expect(unparsed.receive(.protocolError, 0) == .init(nil, accepted: nil, candidates: 0))
    #expect(unparsed.receive(.protocolError, 4) == .init(3, accepted: 3))
    var behind = Conversation()
    behind.write(1...3)
    behind.writeKnownBad(identifier: nil)
    behind.writeWithoutIdentifier(2)
    #expect(behind.receive(.invalidTokenSize, 0) == .init(3, accepted: 3))
    #expect(behind.fates == [3, 1, 2, 0])
  }

  @Test("A token of odd length and bad items: status 5 with identifier 0 may mean either, and names none")
  func oddTokenAndBadItems() {
    var talk = Conversation()
    talk.write(1...3)
    var usual = talk
    _ = usual.session.write(malformedWith: 4)
    #expect(usual.receive(.invalidTokenSize, 0).notification == 3)
    talk.session.noteFaults(.tokenSize, identifier: 3)
    _ = talk.session.write(malformedWith: 4)
    var other = talk
    #expect(talk.receive(.invalidTokenSize, 0).notification == nil)
    #expect(other.receive(.missingPayload, 0).notification == 3)
  }

  @Test("Identifier 0 was used and a token was empty: the status decides which one is meant")
  func identifierZeroUsedAndKnownBad() {
    var talk = Conversation()
    talk.write(0...9)
    talk.writeKnownBad(identifier: 10)
    #expect(talk.named(by: 10).notification == 10)
    var token = talk
    #expect(token.receive(.missingDeviceToken, 0).notification == 10)
    var size = talk
    #expect(size.receive(.invalidTokenSize, 0).notification == 10)
    var payload = talk
    #expect(payload.receive(.invalidPayloadSize, 0).isAmbiguous)
  }

  @Test("An empty token cannot be accepted, so neither shutdown nor status 0 names it by identifier 0")
  func knownBadIsNotAccepted() {
    for status in [ErrorResponse.Status.shutdown, .noError] {
      var talk = Conversation()
      talk.write(1...5)
      talk.writeKnownBad(identifier: nil)
      #expect(talk.receive(status, 0) == .init(nil, accepted: nil, candidates: 0))
      #expect(talk.fates == [0, 0, 0, 6])
    }
  }

  // MARK: several responses on one connection

  @Test("A mock server that answers everything")
  func everythingAnswered() {
    var talk = Conversation()
    for identifier in 1...20 as ClosedRange<UInt32> {
      talk.write([identifier])
      let index = Int(identifier) - 1
      if identifier % 5 == 0 {
        // Every fifth is bad, so identifier / 5 - 1 were rejected before.
        #expect(talk.receive(.invalidToken, identifier) == .init(index, accepted: index - (index / 5)))
      } else {
        #expect(talk.receive(.noError, identifier) == .init(index, accepted: index + 1 - (index / 5)))
      }
    }
    #expect(talk.fates == [16, 4, 0, 0])
  }

  @Test("A later response that names a later one proves those between were taken after all")
  func laterResponse() {
    var talk = Conversation()
    talk.write(1...10)
    talk.receive(.invalidToken, 3)
    #expect(talk.fates == [2, 1, 7, 0])
    #expect(talk.receive(.invalidToken, 7) == .init(6, accepted: 5))
    #expect(talk.fates == [5, 2, 3, 0])
    #expect(talk.session.discarded(after: 2) == 0)
    #expect(talk.session.discarded(after: 6) == 3)
  }

  @Test("A response that names an earlier one after a later one")
  func earlierResponse() {
    var talk = Conversation()
    talk.write(1...10)
    talk.receive(.invalidToken, 7)
    #expect(talk.receive(.invalidToken, 3) == .init(2, accepted: 2))
    #expect(talk.fates == [5, 2, 3, 0])
  }

  @Test("The same response twice counts once")
  func repeatedResponse() {
    var talk = Conversation()
    talk.write(1...10)
    let first = talk.receive(.invalidToken, 3)
    #expect(talk.receive(.invalidToken, 3) == first)
    #expect(talk.fates == [2, 1, 7, 0])
  }

  @Test("What was rejected stays rejected when a server accepts it later, and is not counted as accepted")
  func contradiction() {
    for status in [ErrorResponse.Status.noError, .shutdown] {
      var talk = Conversation()
      talk.write(1...10)
      talk.receive(.invalidToken, 6)
      #expect(talk.receive(status, 6) == .init(5, accepted: 5))
      #expect(talk.fates == [5, 1, 4, 0])
    }
  }

  @Test("Thousands of rejections on one connection: repeated ones never count twice")
  func manyRejections() {
    var talk = Conversation()
    talk.write(1...10_000)
    for identifier in 1...10_000 as ClosedRange<UInt32> { talk.receive(.invalidToken, identifier) }
    #expect(talk.fates == [0, 10_000, 0, 0])
    for identifier in [1, 2, 5_000, 9_000, 10_000] as [UInt32] {
      let verdict = talk.receive(.invalidToken, identifier)
      #expect(verdict == .init(Int(identifier) - 1, accepted: 0))
      #expect(talk.fates == [0, 10_000, 0, 0])
    }
  }
}
