import Bytes
import HTTP2
import ProviderAPI
import TestSupport
import Testing

/// What is not claimed when frames of either side are missing.
@Suite("Nothing is claimed that a loss may hide") struct LossTests {
  private let token = String(repeating: "0f", count: 32)

  /// The pieces of a conversation, with those at some places missing.
  private func pieces(_ talk: Conversation, without lost: Set<Int>) -> [Conversation.Piece] {
    talk.written.enumerated().map { place, written in
      lost.contains(place) ? .gap(written.side, written.range) : .bytes(written.side, written.range)
    }
  }

  @Test("Content whose beginning is lost with the HEADERS is not whole", arguments: ["", "llo\"}}"])
  func contentWithoutHeaders(rest: String) throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.headers(3, Conversation.fields(token))
    talk.data(3, #"{"aps":{"alert":"he"#, end: false)
    talk.data(3, rest)
    let lost: Set = [talk.written.count - 3, talk.written.count - 2]
    let (_, log) = talk.read(pieces(talk, without: lost))
    let request = try #require(log.requests.first { $0.stream == 3 })
    #expect(request.uncertain.contains("payload") && !request.isPayloadWhole)
  }

  @Test("The reason of an answer whose content is lost is uncertain", arguments: [true, false])
  func answerContent(isCut: Bool) throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 410, body: #"{"reason":"Unregistered","timestamp":1}"#)
    let last = talk.written.count - 1
    let read =
      isCut
      ? talk.read(Array(pieces(talk, without: []).dropLast()), ending: .recordingEnds)
      : talk.read(pieces(talk, without: [last]))
    let answer = try #require(read.1.responses.first)
    #expect(answer.status == 410 && answer.reason == nil && answer.isUncertain)
  }

  @Test("An answer without content, and one that was reset, are certain")
  func certainAnswers() {
    var talk = Conversation()
    for stream: UInt32 in [1, 3, 5] { talk.push(stream, Conversation.fields(token)) }
    talk.answer(1, 200)
    talk.answer(3, 400, body: #"{"reason":"BadTopic"}"#)
    // What is lost concerns none of those before.
    talk.answer(5, 200)
    let (_, log) = talk.read(pieces(talk, without: [talk.written.count - 1]))
    #expect(log.responses.map(\.isUncertain) == [false, false])
  }

  @Test("Streams are counted only while nothing is lost", arguments: [0, 1, 2])
  func openStreams(lost: Int) throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 200)
    talk.push(3, Conversation.fields(token))
    talk.answer(3, 200)
    talk.push(5, Conversation.fields(token))
    // The request's HEADERS, its DATA, or the answer.
    let (session, log) = talk.read(pieces(talk, without: [talk.written.count - 8 + lost]))
    #expect(log.requests.first { $0.stream == 5 }?.openStreams == nil)
    #expect(log.requests.first { $0.stream == 5 }?.uncertain.contains("open_streams") == true)
    #expect(session.openStreamsMaximum == nil)
    let (whole, all) = talk.read()
    #expect(all.requests.map(\.openStreams) == [1, 1, 1] && whole.openStreamsMaximum == 1)
  }

  @Test("A request whose sender had received more than was read has no count of streams, and no limit")
  func ahead() throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    var (session, log) = (ProviderSession(), ProviderLog())
    for (place, written) in talk.written.enumerated() {
      session.read(
        written.bytes.rawBytes, from: written.side, at: written.offset, arrival: Arrival(time: 0, packet: place),
        isAhead: place == 5, into: &log)
    }
    let request = try #require(log.requests.first)
    #expect(request.openStreams == nil && request.streamLimit == nil)
    #expect(request.uncertain.isSuperset(of: ["open_streams", "stream_limit"]))
  }

  @Test("An acknowledgement of SETTINGS that were not seen leaves the limit unknown")
  func unseenSettings() throws {
    var talk = Conversation(streamLimit: 10)
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.push(1, Conversation.fields(token))
    let (session, log) = talk.read()
    #expect(session.streamLimit == nil && log.requests.first?.streamLimit == nil)
    #expect(log.requests.first?.uncertain.contains("stream_limit") == true)
  }

  @Test("What a server's gap may have answered is not discarded", arguments: [false, true])
  func hiddenAnswer(isIncomplete: Bool) {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 200)
    talk.headers(3, Conversation.fields(token))
    if !isIncomplete { talk.data(3, "{}") }
    talk.answer(3, 413)
    if !isIncomplete { talk.server { $0.writeGoAway(lastStream: 1, .noError) } }
    let lost = talk.written.count - (isIncomplete ? 1 : 2)
    let (session, log) = talk.read(pieces(talk, without: [lost]))
    #expect(session.fates.discarded == 0 && session.fates.unknown == 1)
    #expect(log.goAways.allSatisfy { $0.discarded == nil && $0.open == nil })
    // Without an answer, and without a gap, it is.
    talk.written.remove(at: lost)
    let rest = talk.written.map { Conversation.Piece.bytes($0.side, $0.range) }
    if isIncomplete { #expect(talk.read(rest).0.fates.discarded == 1) }
  }

  @Test("A request that its sender reset after more than was read is unknown")
  func resetAhead() {
    for isAhead in [false, true] {
      var talk = Conversation()
      talk.headers(1, Conversation.fields(token))
      talk.client { $0.writeReset(.cancel, stream: 1) }
      var (session, log) = (ProviderSession(), ProviderLog())
      for written in talk.written {
        let arrival = Arrival(time: 0, packet: 1)
        session.read(
          written.bytes.rawBytes, from: written.side, at: written.offset, arrival: arrival,
          isAhead: isAhead && written.range == talk.written.last?.range, into: &log)
      }
      #expect(log.fates.map(\.fate) == [isAhead ? .unknown : .discarded])
    }
  }

  @Test("Provider tokens after a loss have no number, and those before keep theirs")
  func tokenNumbers() throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token, jwt: ProviderJWT.first))
    talk.push(3, Conversation.fields(token, jwt: ProviderJWT.first))
    talk.push(5, Conversation.fields(token, jwt: ProviderJWT.second))
    talk.push(7, Conversation.fields(token, jwt: ProviderJWT.first))
    let (session, log) = talk.read(pieces(talk, without: [7]))
    #expect(log.requests.filter { $0.stream != 3 }.map(\.isNumbered) == [true, false, true])
    #expect(!session.areProviderTokensCounted)
    let whole = talk.read()
    #expect(whole.1.requests.map(\.providerToken) == [1, 1, 2, 1] && whole.1.requests.allSatisfy { $0.isNumbered })
    #expect(whole.0.areProviderTokensCounted)
  }

  @Test(
    "Only three parts behind bearer are a provider token",
    arguments: [
      ("Basic c2VjcmV0OnNlY3JldA==", false), ("bearer e30.e30", false), ("bearer a.b.c", true), ("x.y.z", false),
    ]) func schemes(value: String, isToken: Bool) throws
  {
    var talk = Conversation()
    var fields = Conversation.fields(token, jwt: nil)
    fields.append(("authorization", value, .neverIndexed))
    talk.push(1, fields)
    let request = try #require(talk.read().1.requests.first)
    #expect(request.fields["trust"] == (isToken ? "token" : nil) && request.uncertain.contains("trust") == !isToken)
  }

  @Test("A status is three digits", arguments: ["42", "99999999999", "2000", "abc"]) func status(text: String) throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, text)
    let (session, log) = talk.read()
    #expect(log.responses.map(\.status) == [nil] && session.fates.unknown == 1)
    #expect(log.violations.map(\.rule) == [.statusMissing])
  }

  @Test("A table that a broken block loses is told") func brokenBlock() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.client { $0.writeFrame(.headers, flags: [.endHeaders, .endStream], stream: 3, [UInt8(0x80)].rawBytes) }
    let (_, log) = talk.read()
    #expect(log.tableLosses == [.client] && log.missing.isEmpty)
    #expect(talk.read(pieces(talk, without: [5])).1.tableLosses == [.client])
  }
}

/// The memory that input can make a session keep.
@Suite("What a session holds is counted") struct HeldBytesTests {
  private let token = String(repeating: "0f", count: 32)

  @Test("Provider tokens count with their texts, and are given up") func tokens() {
    var talk = Conversation()
    for number in 0..<100 {
      let jwt = ProviderJWT.make(
        keyID: String(repeating: "K", count: 1_000) + "\(number)", teamID: String(repeating: "T", count: 1_000),
        issuedAt: "1")
      talk.push(UInt32(2 * number + 1), Conversation.fields(token, jwt: jwt))
      talk.answer(UInt32(2 * number + 1), 200)
    }
    var (session, log) = (ProviderSession(), ProviderLog())
    for written in talk.written {
      session.read(
        written.bytes.rawBytes, from: written.side, at: written.offset, arrival: Arrival(time: 0, packet: 1), into: &log
      )
    }
    #expect(session.heldBytes > 200_000)
    session.drop(
      at: (talk.bytes(of: .client).count, talk.bytes(of: .server).count), arrival: Arrival(time: 0, packet: 2)
    ) { log.receive($0, $1) }
    #expect(session.heldBytes < 20_000, "\(session.heldBytes)")
    #expect(!session.areProviderTokensCounted)
  }

  @Test("Fields of open requests count, also those without a value") func headers() {
    var talk = Conversation()
    let more = (0..<1_000).map { _ in ("x", "") }
    talk.headers(1, Conversation.fields(token, more: more))
    var (session, log) = (ProviderSession(), ProviderLog())
    for written in talk.written {
      session.read(
        written.bytes.rawBytes, from: written.side, at: written.offset, arrival: Arrival(time: 0, packet: 1), into: &log
      )
    }
    var plain = (ProviderSession(), ProviderLog())
    var short = Conversation()
    short.headers(1, Conversation.fields(token))
    for written in short.written {
      plain.0.read(
        written.bytes.rawBytes, from: written.side, at: written.offset, arrival: Arrival(time: 0, packet: 1),
        into: &plain.1)
    }
    session.freeSpare()
    plain.0.freeSpare()
    #expect(session.heldBytes - plain.0.heldBytes > 15_000)
  }
}
