import Bytes
import HTTP2
import ProviderAPI
import PushModel
import Testing

private let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

@Suite("Connections with the provider API") struct ProviderSessionTests {
  @Test("An accepted notification has its fields, its answer and its fate") func accepted() throws {
    var talk = Conversation()
    talk.push(
      1,
      Conversation.fields(
        token,
        more: [
          ("apns-push-type", "alert"), ("apns-priority", "10"), ("apns-expiration", "0"),
          ("apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7b"), ("apns-collapse-id", "c"),
          ("content-type", "application/json"), ("user-agent", "x"),
        ]), #"{"aps":{}}"#)
    talk.answer(1, 200, [("apns-id", "EABEAE54-14A8-11E5-B60B-1697F925EC7B"), ("apns-unique-id", "u")])
    let (session, log) = talk.read()
    let request = try #require(log.requests.first)
    #expect(log.requests.count == 1)
    #expect(request.target == .device)
    #expect(request.notification == 0)
    #expect(
      request.fields == [
        "path": "/3/device/" + token, "method": "POST", "authority": "api.push.apple.com", "token": token,
        "topic": "com.example.tide", "push_type": "alert", "priority": "10", "expiration": "0",
        "apns_id": "eabeae54-14a8-11e5-b60b-1697f925ec7b", "collapse_id": "c", "trust": "token",
      ])
    #expect(request.headers == ["content-type: application/json", "user-agent: x"])
    #expect(request.payload == #"{"aps":{}}"#)
    #expect(request.isPayloadWhole)
    #expect(request.token.count == 32 && request.token.prefix(3) == [0x00, 0xfc, 0x13])
    #expect(request.completion == .complete)
    #expect(request.uncertain.isEmpty)
    #expect((request.started, request.ended) == (5, 6))
    #expect((request.openStreams, request.streamLimit) == (1, 1_000))
    // From the HEADERS frame on, both frames.
    #expect(request.offset == talk.written[5].offset)
    #expect(request.length == talk.written[5].bytes.count + talk.written[6].bytes.count)
    let response = try #require(log.responses.first)
    #expect(response.status == 200)
    #expect(response.notification == 0)
    #expect(response.fields["apns_unique_id"] == "u")
    #expect(response.latency == 1_000_000)
    #expect(!response.isUncertain)
    #expect(log.fates.map(\.fate) == [.accepted])
    #expect(session.fates.accepted == 1)
    #expect(session.service == .gateway)
    #expect(log.violations.isEmpty)
  }

  @Test("Rejections have their reason and the server's timestamp") func rejected() throws {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(
      1, 410, [("apns-id", "x")], body: #"{"reason":"Unregistered","timestamp":1764013168321}"#)
    let (session, log) = talk.read()
    let response = try #require(log.responses.first)
    #expect(response.status == 410)
    #expect(response.reason == "Unregistered")
    #expect(response.timestamp == 1_764_013_168_321)
    #expect(log.fates.map(\.fate) == [.rejected])
    #expect(log.fates.first?.reason?.rawValue == "Unregistered")
    #expect(session.fates.rejected == 1)
  }

  @Test("Answers come in any order, and each goes to its request") func order() {
    var talk = Conversation()
    for stream in [1, 3, 5] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    talk.answer(5, 200)
    talk.answer(1, 400, body: #"{"reason":"BadDeviceToken"}"#)
    talk.answer(3, 200)
    let (session, log) = talk.read()
    #expect(log.responses.map(\.notification) == [2, 0, 1])
    #expect(log.fates.map(\.fate) == [.accepted, .rejected, .accepted])
    #expect(session.openStreamsMaximum == 3)
    #expect(log.requests.map(\.openStreams) == [1, 2, 3])
  }

  @Test("REFUSED_STREAM discards, other resets leave a notification unknown") func resets() {
    var talk = Conversation()
    for stream in [1, 3, 5, 7] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    talk.headers(9, Conversation.fields(token))
    talk.server { $0.writeReset(.refusedStream, stream: 1) }
    talk.server { $0.writeReset(.internalError, stream: 3) }
    talk.client { $0.writeReset(.cancel, stream: 5) }
    talk.client { $0.writeReset(.cancel, stream: 9) }
    // A client that refuses is no server that has not processed.
    talk.client { $0.writeReset(.refusedStream, stream: 7) }
    let (session, log) = talk.read()
    let fates = Dictionary(uniqueKeysWithValues: log.fates.map { ($0.stream, $0) })
    #expect(fates[1]?.fate == .discarded && fates[1]?.cause == .refusedStream)
    #expect(fates[3]?.fate == .unknown)
    #expect(fates[5]?.fate == .unknown)
    #expect(fates[7]?.fate == .unknown)
    #expect(fates[9]?.fate == .discarded && fates[9]?.cause == .incomplete)
    #expect(log.requests.last?.completion == .incomplete)
    #expect(session.resets == 5)
    #expect(session.fates.discarded == 2 && session.fates.unknown == 3)
  }

  @Test("GOAWAY discards what is above its last stream; the rest is what its answers say") func goAway() {
    var talk = Conversation()
    for stream in [1, 3, 5, 7] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    talk.answer(1, 200)
    talk.server {
      $0.writeGoAway(lastStream: 3, .noError, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    }
    // Opened before the client has read it.
    talk.push(9, Conversation.fields(token))
    let (session, log) = talk.read()
    #expect(log.goAways.count == 1)
    #expect(log.goAways.first?.reason == "Shutdown")
    #expect(log.goAways.first?.discarded == 2)
    #expect(log.goAways.first?.open == 1)
    let fates = Dictionary(uniqueKeysWithValues: log.fates.map { ($0.stream, $0) })
    #expect(fates[1]?.fate == .accepted)
    #expect(fates[3]?.fate == .unknown)
    for stream in [5, 7, 9] as [UInt32] {
      #expect(fates[stream]?.fate == .discarded && fates[stream]?.cause == .goAway)
    }
    #expect(session.fates.discarded == 3)
  }

  @Test("An answer counts more than a GOAWAY that excludes its stream") func contradiction() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.server { $0.writeGoAway(lastStream: 0x7fff_ffff, .noError) }
    talk.server { $0.writeGoAway(lastStream: 0, .noError) }
    talk.answer(1, 200)
    let (session, log) = talk.read()
    #expect(log.fates.map(\.fate) == [.accepted])
    #expect(session.goAways == 2)
  }

  @Test(
    "A provider token is in nothing that is told, whatever field it stands in",
    arguments: [
      "apns-topic", "apns-id", "apns-collapse-id", "apns-push-type", "apns-channel-id", "apns-request-id", "x-a",
    ])
  func misplaced(name: String) {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token, jwt: nil, more: [(name, "Bearer " + ProviderJWT.first)]))
    let spaced = ProviderJWT.base64(#"{ "alg":"ES256"}"#) + "." + ProviderJWT.base64(#"{"iss":"A"}"#) + "."
    talk.push(3, Conversation.fields(token + "?a=" + ProviderJWT.first, jwt: nil, topic: spaced + ProviderJWT.secret))
    talk.answer(1, 200, [("apns-id", ProviderJWT.first)])
    let (_, log) = talk.read()
    #expect(log.requests.count == 2 && log.fates.count == 2)
    #expect(!log.everything.contains(ProviderJWT.secret))
  }

  @Test(
    "Long topics are none",
    arguments: [
      "com.example.tide.voip", "eyes.example.tide",
      "com.example-company.a-very-very-very-very-very-long-name-of-an-app",
    ])
  func topics(topic: String) {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token, topic: topic))
    let (_, log) = talk.read()
    #expect(log.requests.first?.fields["topic"] == topic)
  }

  @Test("A session that gives up tells first what has happened")
  func givenUp() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.push(3, Conversation.fields(token))
    var (session, log) = (ProviderSession(), ProviderLog())
    let (client, server) = (talk.bytes(of: .client), talk.bytes(of: .server))
    let arrival = Arrival(time: 0, packet: 1)
    session.read(server.rawBytes, from: .server, at: 0, arrival: arrival, into: &log)
    session.read(client.rawBytes, from: .client, at: 0, arrival: arrival, into: &log)
    session.drop(at: (client.count, server.count), arrival: arrival) { log.receive($0, $1) }
    #expect(log.fates.map(\.fate) == [.unknown, .unknown] && log.requests.count == 2)
  }

  @Test("A last stream below one with an answer proves nothing of the streams between", arguments: [false, true])
  func untrueLastStream(isAnswerFirst: Bool) {
    var talk = Conversation()
    for stream in [1, 3, 5, 7] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    if isAnswerFirst { talk.answer(5, 200) }
    talk.server { $0.writeGoAway(lastStream: 1, .noError) }
    if !isAnswerFirst { talk.answer(5, 200) }
    let (_, log) = talk.read()
    let fates = Dictionary(uniqueKeysWithValues: log.fates.map { ($0.stream, $0.fate) })
    #expect(fates == [1: .unknown, 3: .unknown, 5: .accepted, 7: .discarded])
    #expect(log.goAways.first?.discarded == (isAnswerFirst ? 1 : 3))
  }

  @Test("A request that has not ended is incomplete at the connection's end, and unknown at the recording's")
  func incomplete() {
    var talk = Conversation()
    talk.headers(1, Conversation.fields(token))
    talk.data(1, "{", end: false)
    let (_, closed) = talk.read(ending: .closed)
    #expect(closed.fates.map(\.cause) == [.incomplete])
    #expect(closed.requests.map(\.completion) == [.incomplete])
    #expect(closed.requests.first?.payload == "{")
    let (_, open) = talk.read(ending: .recordingEnds)
    #expect(open.fates.map(\.fate) == [.unknown])
    #expect(open.requests.map(\.completion) == [.unknown])
  }

  @Test("A complete request without an answer is unknown, whatever ended the connection") func unanswered() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    for ending in [ProviderSession.Ending.closed, .recordingEnds] {
      #expect(talk.read(ending: ending).1.fates.map(\.fate) == [.unknown])
    }
  }

  @Test("The stream limit is in force when the client has acknowledged it") func streamLimit() {
    var talk = Conversation(streamLimit: 1)
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 200)
    talk.server { $0.writeSettings([Setting(.maximumConcurrentStreams, 1_000)]) }
    talk.push(3, Conversation.fields(token))
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.push(5, Conversation.fields(token))
    let (session, log) = talk.read()
    #expect(log.requests.map(\.streamLimit) == [1, 1, 1_000])
    #expect(session.firstStreamLimit == 1)
    #expect(session.streamLimit == 1_000)
    #expect(log.violations == [])
  }

  @Test("More streams than the limit in force are a violation, but not when answers are missing") func tooMany() {
    var talk = Conversation(streamLimit: 2)
    for stream in [1, 3, 5] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    #expect(talk.read().1.violations.map(\.rule) == [.tooManyStreams])
    var pieces = talk.written.map { Conversation.Piece.bytes($0.side, $0.range) }
    let end = talk.bytes(of: .server).count
    pieces.insert(.gap(.server, end..<end + 100), at: pieces.count)
    #expect(talk.read(pieces).1.violations.isEmpty)
  }

  @Test("A client may use a higher limit before it acknowledges it, and a lower one binds it from then on")
  func changedLimit() {
    var talk = Conversation(streamLimit: 1)
    talk.push(1, Conversation.fields(token))
    talk.server { $0.writeSettings([Setting(.maximumConcurrentStreams, 4)]) }
    for stream in [3, 5] as [UInt32] { talk.push(stream, Conversation.fields(token)) }
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.server { $0.writeSettings([Setting(.maximumConcurrentStreams, 1)]) }
    talk.push(7, Conversation.fields(token))
    #expect(talk.read().1.violations == [])
    talk.client { $0.writeSettingsAcknowledgement() }
    talk.push(9, Conversation.fields(token))
    #expect(talk.read().1.violations.map(\.rule) == [.tooManyStreams])
  }

  @Test("Provider tokens are numbered, however they are coded, and their signatures are nowhere") func tokens() throws {
    var talk = Conversation()
    var stream: UInt32 = 1
    for indexing in HPACKEncoder.Indexing.allCases {
      for jwt in [ProviderJWT.first, ProviderJWT.second, ProviderJWT.first, ProviderJWT.first] {
        var fields = Conversation.fields(token, jwt: nil)
        fields.append(("authorization", "bearer " + jwt, indexing))
        // A second one is no header of others, either.
        fields.append(("authorization", "bearer " + ProviderJWT.second, indexing))
        talk.push(stream, fields)
        talk.answer(stream, 200)
        stream += 2
      }
    }
    let (session, log) = talk.read()
    #expect(log.requests.map(\.providerToken) == [1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1])
    #expect(session.providerTokens.count == 2)
    let first = try session.providerTokens[0].get()
    #expect(first.keyID == "ABC123DEFG")
    #expect(first.teamID == "DEF123GHIJ")
    #expect(first.issuedAt == 1_795_578_551)
    #expect(first.issuedAtForm == .integer)
    #expect(first.signatureForm == .raw)
    #expect(log.requests.allSatisfy { $0.headers.isEmpty })
    var dumped = ""
    dump(session.providerTokens, to: &dumped)
    #expect(!(log.everything + dumped).contains("SIGNATURE"))
    #expect(log.everything.contains(token))
  }

  @Test("Beyond the limit provider tokens have no number") func tokenLimit() {
    var talk = Conversation()
    for number in 0..<4 {
      let jwt = ProviderJWT.make(keyID: "K\(number)", teamID: "T", issuedAt: "1")
      talk.push(UInt32(2 * number + 1), Conversation.fields(token, jwt: jwt))
    }
    var limits = ProviderSession.Limits()
    limits.providerTokens = 2
    let (session, log) = talk.read(limits: limits)
    #expect(log.requests.map(\.providerToken) == [1, 2, nil, nil])
    #expect(log.requests.allSatisfy { $0.fields["trust"] == "token" })
    #expect(session.providerTokens.count == 2)
  }

  @Test("Content beyond the limit has its length only") func longContent() {
    var talk = Conversation()
    talk.headers(1, Conversation.fields(token))
    talk.data(1, String(repeating: "a", count: 5_000), end: false)
    talk.data(1, String(repeating: "b", count: 5_000))
    let (_, log) = talk.read()
    #expect(log.requests.first?.payloadLength == 10_000)
    #expect(log.requests.first?.payload.count == 8_192)
    #expect(log.requests.first?.isPayloadWhole == false)
    #expect(log.requests.first?.uncertain == [])
  }

  @Test("A repeated field, and a number that is none, are headers") func oddFields() {
    var talk = Conversation()
    talk.push(
      1,
      Conversation.fields(
        token, more: [("apns-priority", "high"), ("apns-topic", "second"), ("apns-expiration", "1.5")]))
    let (_, log) = talk.read()
    #expect(log.requests.first?.fields["topic"] == "com.example.tide")
    #expect(log.requests.first?.fields["priority"] == nil)
    #expect(log.requests.first?.headers == ["apns-priority: high", "apns-topic: second", "apns-expiration: 1.5"])
  }

  @Test("Broadcasts and channel requests have their bundle, and only broadcasts are notifications") func channels() {
    var talk = Conversation()
    func request(_ stream: UInt32, _ method: String, _ path: String, _ more: [(String, String)] = []) {
      let fields: [Conversation.Field] = [
        (":method", method, .incremental), (":scheme", "https", .incremental), (":path", path, .withoutIndexing),
        (":authority", "x", .incremental),
      ]
      talk.headers(stream, fields + more.map { ($0.0, $0.1, .incremental) }, end: true)
    }
    request(1, "POST", "/1/apps/com.example.tide/channels")
    talk.answer(1, 201, [("apns-channel-id", "c2lkZQ=="), ("apns-request-id", "r")])
    request(3, "GET", "/1/apps/com.example.tide/channels", [("apns-channel-id", "c2lkZQ==")])
    request(5, "DELETE", "/1/apps/com.example.tide/channels", [("apns-channel-id", "c2lkZQ==")])
    request(7, "GET", "/1/apps/com.example.tide/all-channels")
    request(9, "GET", "/status")
    let (session, log) = talk.read()
    #expect(
      log.requests.map(\.target) == [
        .channel(.create), .channel(.read), .channel(.delete), .channel(.readAll), .other,
      ])
    #expect(log.requests.allSatisfy { $0.notification == nil })
    #expect(log.requests.first?.fields["bundle"] == "com.example.tide")
    #expect(log.responses.first?.fields["channel_id"] == "c2lkZQ==")
    #expect(log.fates.isEmpty)
    #expect(session.service == .channels)
    request(11, "POST", "/4/broadcasts/apps/com.example.tide", [("apns-channel-id", "c2lkZQ==")])
    let (later, all) = talk.read()
    #expect(all.requests.last?.notification == 0)
    #expect(all.requests.last?.fields["bundle"] == "com.example.tide")
    #expect(later.service == .gateway)
  }

  @Test("After a lost request others have what is certain, and name what is not") func lostRequest() throws {
    var talk = Conversation()
    for stream in [1, 3, 5] as [UInt32] {
      talk.push(stream, Conversation.fields(token, more: [("apns-push-type", "alert"), ("apns-priority", "5")]))
      talk.answer(stream, 200)
    }
    // Stream 3's HEADERS are lost, and its DATA are there.
    let lost = talk.written.filter { $0.side == .client }[5].range
    let pieces = talk.written.map { written in
      written.side == .client && written.range == lost
        ? Conversation.Piece.gap(.client, lost) : .bytes(written.side, written.range)
    }
    let (session, log) = talk.read(pieces)
    #expect(log.missing == [true])
    #expect(log.requests.map(\.stream) == [1, 3, 5])
    #expect(log.requests.map(\.notification) == [0, 1, 2])
    let without = log.requests[1]
    #expect(without.fields.isEmpty)
    #expect(without.payload == #"{"aps":{"alert":"x"}}"#)
    #expect(without.completion == .complete)
    #expect(without.uncertain.isSuperset(of: ["token", "topic", "push_type", "priority", "trust"]))
    let after = log.requests[2]
    #expect(after.fields["token"] == token)
    #expect(after.fields["method"] == "POST")
    #expect(after.providerToken == 1)
    #expect(after.fields["topic"] == nil)
    #expect(after.uncertain.isSuperset(of: ["topic", "push_type", "priority"]))
    #expect(!after.uncertain.contains("token") && !after.uncertain.contains("trust"))
    #expect(log.fates.map(\.fate) == [.accepted, .accepted, .accepted])
    #expect(!session.isTableKnown(of: .client))
    #expect(log.violations.isEmpty)
  }

  @Test("The beginning of a cut HEADERS frame has the fields that are there") func cutHeaders() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token, more: [("apns-collapse-id", "collapse")]))
    let frame = talk.written[5].range
    let cut = frame.upperBound - 3
    let data = talk.written[6].range
    var pieces = talk.written.prefix(5).map { Conversation.Piece.bytes($0.side, $0.range) }
    pieces += [.bytes(.client, frame.lowerBound..<cut), .gap(.client, cut..<frame.upperBound), .bytes(.client, data)]
    let (_, log) = talk.read(pieces)
    #expect(log.requests.first?.fields["token"] == token)
    #expect(log.requests.first?.fields["topic"] == "com.example.tide")
    #expect(log.requests.first?.fields["collapse_id"] == nil)
    #expect(log.requests.first?.uncertain.contains("collapse_id") == true)
    #expect(log.requests.first?.uncertain.contains("topic") == false)
    #expect(log.requests.first?.isPayloadWhole == true)
  }

  @Test("An answer whose fields are lost leaves the fate unknown") func lostAnswer() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 400, body: #"{"reason":"BadDeviceToken"}"#)
    let lost = talk.written[7].range
    let pieces = talk.written.map { written in
      written.side == .server && written.range == lost
        ? Conversation.Piece.gap(.server, lost) : .bytes(written.side, written.range)
    }
    let (session, log) = talk.read(pieces)
    #expect(log.responses.map(\.status) == [nil])
    #expect(log.responses.map(\.reason) == ["BadDeviceToken"])
    #expect(log.responses.map(\.isUncertain) == [true])
    #expect(session.fates.unknown == 1)
  }

  @Test("An answer that was captured before its request has no latency, and the fate is right") func early() {
    var talk = Conversation()
    talk.push(1, Conversation.fields(token))
    talk.answer(1, 200)
    var pieces = talk.written.map { Conversation.Piece.bytes($0.side, $0.range) }
    pieces.swapAt(5, 7)
    pieces.swapAt(6, 7)
    let (_, log) = talk.read(pieces)
    #expect(log.responses.map(\.latency) == [nil])
    #expect(log.responses.map(\.notification) == [0])
    #expect(log.fates.map(\.fate) == [.accepted])
    #expect(log.violations.isEmpty)
    #expect(log.requests.first?.fields["token"] == token)
    #expect(log.requests.first?.openStreams == nil)
  }

  @Test("More open streams than the limit forget the oldest, whose fate is unknown") func openStreams() {
    var talk = Conversation()
    for number in 0..<20 { talk.push(UInt32(2 * number + 1), Conversation.fields(token)) }
    talk.answer(39, 200)
    var limits = ProviderSession.Limits()
    limits.connection.openStreams = 5
    let (session, log) = talk.read(limits: limits)
    #expect(log.requests.count == 20)
    #expect(session.fates.unknown == 19 && session.fates.accepted == 1)
  }
}

@Suite("Provider tokens") struct ProviderTokenTests {
  private func read(_ value: String) throws(ProviderToken.Problem) -> ProviderToken {
    try ProviderToken(parsing: Array(value.utf8).rawBytes)
  }

  @Test("The forms of issue times that clients write are told apart") func issueTimes() throws {
    let times: [(String, Int, ProviderToken.TimeForm)] = [
      ("1795578551", 1_795_578_551, .integer), ("1795578551.75", 1_795_578_551, .fraction),
      ("\"1795578551\"", 1_795_578_551, .string), ("1795578551.0", 1_795_578_551, .integer),
      ("1.795578551e9", 1_795_578_551, .integer),
    ]
    for (text, seconds, form) in times {
      let token = try read("bearer " + ProviderJWT.make(keyID: "K", teamID: "T", issuedAt: text))
      #expect(token.issuedAt == seconds, "\(text)")
      #expect(token.issuedAtForm == form, "\(text)")
    }
    for text in ["null", "\"soon\"", "1e400", "[]"] {
      let token = try read("Bearer " + ProviderJWT.make(keyID: "K", teamID: "T", issuedAt: text))
      #expect(token.issuedAt == nil && token.issuedAtForm == nil, "\(text)")
    }
  }

  @Test("Signatures are raw, DER or neither") func signatures() throws {
    let der: [UInt8] =
      [0x30, 68, 2, 32] + [UInt8](repeating: 1, count: 32) + [2, 32] + [UInt8](repeating: 1, count: 32)
    let forms: [([UInt8], ProviderToken.SignatureForm)] = [
      ([UInt8](repeating: 7, count: 64), .raw), (der, .der), ([], .other), ([UInt8](repeating: 7, count: 63), .other),
      ([0x30] + [UInt8](repeating: 9, count: 69), .other),
    ]
    for (signature, form) in forms {
      let jwt = ProviderJWT.make(keyID: "K", teamID: "T", issuedAt: "1", signature: ProviderJWT.base64(signature))
      #expect(try read("bearer " + jwt).signatureForm == form)
    }
  }

  @Test("What is no provider token says why") func problems() {
    let object = ProviderJWT.base64("{}")
    let cases: [(String, ProviderToken.Problem)] = [
      ("", .notBearer), ("bearer", .notBearer), ("basic abc", .notBearer), ("bearer abc", .partCount),
      ("bearer a.b", .partCount), ("bearer a.b.c.d", .partCount), ("bearer a.b.c", .encoding),
      ("bearer \(object).\(object).!!!!", .encoding), ("bearer \(object).W10.aaaa", .notObject),
      ("bearer aaaa.\(object).aaaa", .notObject), ("bearer " + String(repeating: "a", count: 5_000), .tooLong),
    ]
    for (value, problem) in cases {
      #expect(throws: problem) { try read(value) }
    }
    #expect(throws: Never.self) { try read("bearer \(object).\(object).aaaa") }
  }
}

@Suite("Words of the provider API") struct ProviderWordTests {
  @Test("Topics and push types belong together by the topic's end") func topics() {
    #expect(PushType.type(ofTopic: "com.example.tide") == nil)
    #expect(PushType.type(ofTopic: "com.example.tide.voip")?.rawValue == "voip")
    #expect(PushType.type(ofTopic: "com.example.tide.voip-ptt")?.rawValue == "pushtotalk")
    #expect(PushType.type(ofTopic: "com.example.tide.push-type.liveactivity")?.rawValue == "liveactivity")
    #expect(PushType(rawValue: "Liveactivity").topicSuffix == ".push-type.liveactivity")
    #expect(PushType(rawValue: "new").topicSuffix == nil)
    #expect(PushType(rawValue: "voip").longestPayload == 5_120)
  }

  @Test("Reasons say their status and when to repeat; others are values") func reasons() {
    #expect(ProviderReason(rawValue: "Unregistered").documentedStatus == 410)
    #expect(ProviderReason(rawValue: "Unregistered").retry == .never)
    #expect(ProviderReason(rawValue: "TooManyRequests").retry == .later)
    #expect(ProviderReason(rawValue: "Shutdown").retry == .afterFifteenMinutes)
    #expect(ProviderReason(rawValue: "ExpiredProviderToken").retry == .afterCorrection)
    let unknown = ProviderReason(rawValue: "NewReason")
    #expect(!unknown.isDocumented && unknown.retry == nil && unknown.documentedStatus == nil)
  }
}
