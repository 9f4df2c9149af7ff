import Bytes
import TestSupport
import Testing

@testable import TLSDecryption

/// What nobody sends who wants to be understood. Nothing here may end the program, and what is kept, tried and given out
/// stays within its limits. Work must grow with the bytes, not faster: what would take hours otherwise has a time limit.
@Suite struct HostileInputTests {
  typealias Conversation = SealedConversation

  // MARK: lengths that are claimed

  @Test("Headers that claim 64 KB are passed over", arguments: [1, 7, 1_448, 1 << 20])
  func headersThatClaim64KBArePassedOver(pieces: Int) {
    let conversation = Conversation()
    conversation.beginModern()
    let sealer = Conversation.modernSealer(.client)
    conversation.send(sealer.seal(type: 23, [1, 2, 3]), from: .client)
    let headers = Array(repeatElement(RecordSealer.header(23, 0x0303, 65_535), count: 40_000).joined())
    conversation.send(headers, from: .client, pieces: pieces)
    #expect(conversation.stream.client.records.keptBytes < 5)
    // So many records would fit into these bytes at least.
    sealer.sequence += UInt64(headers.count / 18_437 + 1)
    conversation.send(sealer.seal(type: 23, [4, 5, 6]), from: .client)
    conversation.finish()
    #expect(conversation.client.bytes == [1, 2, 3, 4, 5, 6])
    #expect(conversation.client.gaps.count == 1)
    check(conversation)
  }

  @Test("Of a record that never ends only its longest length is kept", arguments: [1, 1_448])
  func ofARecordThatNeverEndsOnlyItsLongestLengthIs(pieces: Int) {
    let conversation = Conversation()
    conversation.beginModern()
    conversation.lose(10, from: .client)
    conversation.send(RecordSealer.header(23, 0x0303, RecordHeader.maximumFragment), from: .client)
    conversation.send([UInt8](repeating: 0, count: 18_000), from: .client, pieces: pieces)
    #expect(conversation.stream.client.records.keptBytes == 18_005)
    conversation.send([UInt8](repeating: 0, count: 100_000), from: .client, pieces: pieces)
    #expect(conversation.stream.client.records.keptBytes < 5)
    conversation.finish()
    check(conversation)
  }

  /// Every fifth byte may begin a record of 16 KB, and each is tried.
  @Test("Overlapping records after a gap are given up", .timeLimit(.minutes(5)))
  func overlappingRecordsAfterAGapAreGivenUp() {
    let limits = TLSLimits(maximumAttempts: 1 << 12)
    let conversation = Conversation(limits: limits)
    conversation.beginModern()
    conversation.send(Conversation.modernSealer(.client).seal(type: 23, [1]), from: .client)
    conversation.lose(1 << 24, from: .client)
    let headers = Array(repeatElement(RecordSealer.header(23, 0x0303, 16_384), count: 40_000).joined())
    conversation.send(headers, from: .client, pieces: 1_448)
    #expect(conversation.stream.client.records.hasFailed)
    #expect(conversation.stream.client.records.keptBytes == 0)
    conversation.finish()
    #expect(conversation.stream.summary.problem?.contains("4096 attempts") == true)
    #expect(conversation.client.bytes == [1])
    check(conversation)
  }

  @Test("A handshake message that claims 16 MB is passed over") func aHandshakeMessageThatClaims16MBIsPassedOver()
    throws
  {
    let conversation = Conversation()
    let claim: [UInt8] = [1, 0xff, 0xff, 0xff]
    conversation.send(Conversation.record(22, claim), from: .client)
    let part = Conversation.record(22, [UInt8](repeating: 0, count: 16_384))
    for _ in 0..<1_023 {
      conversation.send(part, from: .client)
      #expect(try assembled(conversation.stream.client) == 0)
    }
    conversation.send(Conversation.record(22, [UInt8](repeating: 0, count: 16_383)), from: .client)
    #expect(conversation.stream.client.handshake.isEmpty)
    // The next message is read.
    conversation.beginModern()
    conversation.send(Conversation.modernSealer(.client).seal(type: 23, [7]), from: .client)
    conversation.finish()
    #expect(conversation.client.bytes == [7])
    check(conversation)
  }

  @Test("Of a handshake no more is kept than its limit") func ofAHandshakeNoMoreIsKeptThanItsLimit() throws {
    let limits = TLSLimits(maximumHandshakeLength: 20_000)
    let conversation = Conversation(limits: limits)
    conversation.send(Conversation.record(22, Conversation.clientHello()), from: .client)
    for side in [TLSSide.client, .server] {
      for kind: UInt8 in [11, 12, 13, 21, 22, 99, 255] {
        for _ in 0..<100 {
          conversation.send(
            Conversation.record(22, Conversation.message(kind, [UInt8](repeating: kind, count: 1_000))), from: side)
        }
        // One that never ends.
        conversation.send(
          Conversation.record(22, [kind, 0, 0x4e, 0x20] + [UInt8](repeating: 0, count: 9_000)), from: side)
        #expect(try assembled(conversation.stream.server) <= 20_004)
        #expect(try assembled(conversation.stream.client) <= 20_004)
        conversation.send(Conversation.record(22, [UInt8](repeating: 0, count: 11_000)), from: side)
      }
    }
    let transcript = conversation.stream.client.negotiation.transcript
    #expect(transcript.server.count + transcript.client.count <= 20_000)
    #expect(transcript.hello.count <= 20_004)
    conversation.finish()
    check(conversation)
  }

  // MARK: changes of keys

  @Test("Thousands of ChangeCipherSpec change nothing") func thousandsOfChangeCipherSpecChangeNothing() {
    let conversation = Conversation()
    conversation.begin12()
    for side in [TLSSide.client, .server] {
      conversation.send(Array(repeatElement(Conversation.changeCipherSpec, count: 20_000).joined()), from: side)
      conversation.send(Conversation.sealer12(side).seal(type: 23, [1, 2]), from: side)
    }
    conversation.finish()
    #expect(conversation.client.bytes == [1, 2])
    #expect(conversation.server.bytes == [1, 2])
    check(conversation)
  }

  @Test("Endless renegotiation is followed") func endlessRenegotiationIsFollowed() {
    let conversation = Conversation()
    var proved = 0
    conversation.stream.secrets.onUse = { _ in proved += 1 }
    conversation.begin12()
    var (client, server) = (Conversation.sealer12(.client), Conversation.sealer12(.server))
    let rounds = 500
    for round in 0..<rounds {
      conversation.send(server.seal(type: 22, Conversation.message(20, [9])), from: .server)
      conversation.send(client.seal(type: 22, Conversation.message(20, [9])), from: .client)
      conversation.send(client.seal(type: 23, [UInt8(round & 255)]), from: .client)
      conversation.send(client.seal(type: 22, Conversation.clientHello()), from: .client)
      conversation.send(server.seal(type: 22, Conversation.serverHello(0x009c)), from: .server)
      conversation.send(server.seal(type: 20, [1]), from: .server)
      conversation.send(client.seal(type: 20, [1]), from: .client)
      (client, server) = (Conversation.sealer12(.client), Conversation.sealer12(.server))
    }
    conversation.finish()
    #expect(conversation.client.bytes == (0..<rounds).map { UInt8($0 & 255) })
    #expect(proved >= rounds)
    check(conversation)
  }

  @Test("Every KeyUpdate in a record is followed") func everyKeyUpdateInARecordIsFollowed() throws {
    let conversation = Conversation()
    conversation.beginModern()
    let updates = Array(repeatElement(Conversation.message(24, [0]), count: 3_000).joined())
    conversation.send(Conversation.modernSealer(.client).seal(type: 22, updates), from: .client)
    var secret = Conversation.clientTraffic
    let suite = CipherSuite(code: 0x1301)
    for _ in 0..<3_000 { secret = KeySchedule.nextTrafficSecret(after: secret, suite) }
    let keys = try #require(KeySchedule.keys(trafficSecret: secret, suite))
    let sealer = RecordSealer(.modern, mac: [], key: keys.key, vector: keys.vector)
    conversation.send(sealer.seal(type: 23, [5]), from: .client)
    conversation.finish()
    #expect(conversation.client.bytes == [5])
    check(conversation)
  }

  // MARK: numbers

  /// An explicit nonce says any number, and whoever knows the keys can seal with it.
  @Test("A record's number may be any", arguments: [1 << 20, 1 << 40, 1 << 62, UInt64.max - 10])
  func aRecordNumberMayBeAny(number: UInt64) {
    let conversation = Conversation()
    conversation.begin12()
    let sealer = Conversation.sealer12(.client)
    conversation.send(sealer.seal(type: 23, [1, 2, 3]), from: .client)
    conversation.lose(100, from: .client)
    sealer.sequence = number
    for _ in 0..<3 { conversation.send(sealer.seal(type: 23, [4, 5, 6]), from: .client) }
    sealer.sequence = 3
    conversation.send(sealer.seal(type: 23, [7, 8, 9]), from: .client)
    conversation.finish()
    #expect(conversation.client.bytes == [1, 2, 3, 7, 8, 9])
    check(conversation)
  }

  @Test("Gaps and bytes in turn", .timeLimit(.minutes(5)), arguments: [1, 30, 2_000, 1 << 30]) func gapsAndBytesInTurn(
    length: Int
  ) {
    let conversation = Conversation(limits: TLSLimits(maximumAttempts: 1 << 16))
    conversation.beginModern()
    let sealer = Conversation.modernSealer(.client)
    conversation.send(sealer.seal(type: 23, [1]), from: .client)
    let record = sealer.seal(type: 23, [UInt8](repeating: 3, count: 40))
    for index in 0..<20_000 {
      conversation.lose(length, from: .client)
      let count = 1 + index % 7
      conversation.send(Array(record.prefix(count)), from: .client)
    }
    conversation.finish()
    #expect(conversation.stream.client.records.keptBytes == 0)
    #expect(conversation.client.bytes == [1])
    check(conversation)
  }

  /// Garbage that costs attempts, and a record that opens, in turn.
  @Test("A record that opens forgives some attempts and does not buy endless ones", .timeLimit(.minutes(5)))
  func aRecordThatOpensForgivesSomeAttemptsAndDoes() {
    let limits = TLSLimits(maximumAttempts: 1 << 14)
    let conversation = Conversation(limits: limits)
    conversation.beginModern()
    let sealer = Conversation.modernSealer(.client)
    let garbage = Conversation.record(23, [UInt8](repeating: 9, count: 20))
    conversation.send(sealer.seal(type: 23, [1]), from: .client)
    for _ in 0..<3_000 {
      conversation.lose(100_000, from: .client)
      conversation.send(garbage, from: .client)
      // A hundred kilobytes are seven records at least.
      sealer.sequence += 10
      conversation.send(sealer.seal(type: 23, [1]), from: .client)
    }
    #expect(conversation.stream.client.keys.attempts <= limits.maximumAttempts + 300)
    // Each costs about four thousand attempts when it is looked for far away; only some are.
    #expect(conversation.client.bytes.count > 100)
    conversation.finish()
    check(conversation)
  }

  // MARK: waiting

  @Test("What waits is bounded") func whatWaitsIsBounded() {
    let limits = TLSLimits(maximumHeldBytes: 10_000)
    let conversation = Conversation(limits: limits)
    conversation.send(Conversation.record(22, Conversation.clientHello()), from: .client)
    let record = Conversation.modernSealer(.client).seal(type: 23, [UInt8](repeating: 1, count: 500))
    for _ in 0..<100 {
      conversation.send(record, from: .client, pieces: 1)
      #expect(conversation.stream.client.input.heldBytes <= 10_000)
      #expect(conversation.stream.client.input.heldPieces <= 10_001)
    }
    #expect(!conversation.stream.client.input.isWaiting)
    conversation.finish()
    check(conversation)
  }

  /// Whether waiting is over is asked often; what waits is read once.
  @Test("Thousands of pieces wait while the other direction says nothing", .timeLimit(.minutes(5)))
  func thousandsOfPiecesWaitWhileTheOtherDirection() {
    let conversation = Conversation()
    conversation.send(Conversation.record(22, Conversation.clientHello()), from: .client)
    let sealer = Conversation.modernSealer(.client)
    let sealed = (0..<1_000).flatMap { _ in sealer.seal(type: 23, [UInt8](repeating: 1, count: 28)) }
    conversation.send(sealed, from: .client, pieces: 10)
    for _ in 0..<30_000 { conversation.send(Conversation.record(21, [1, 100]), from: .server) }
    #expect(conversation.stream.client.input.isWaiting)
    conversation.send(Conversation.record(22, Conversation.serverHello(0x1301, [0, 43, 0, 2, 3, 4])), from: .server)
    #expect(!conversation.stream.client.input.isWaiting)
    conversation.finish()
    #expect(conversation.client.bytes.count == 28_000)
    check(conversation)
  }

  @Test("Gaps that wait keep their places") func gapsThatWaitKeepTheirPlaces() {
    let conversation = Conversation()
    conversation.send(Conversation.record(22, Conversation.clientHello()), from: .client)
    let sealer = Conversation.modernSealer(.client)
    for index in 0..<3_000 {
      let record = sealer.seal(type: 23, [UInt8](repeating: 1, count: 28))
      if index % 3 == 1 {
        conversation.lose(record.count, from: .client)
      } else {
        conversation.send(record, from: .client)
      }
    }
    #expect(conversation.stream.client.input.isWaiting)
    conversation.send(Conversation.record(22, Conversation.serverHello(0x1301, [0, 43, 0, 2, 3, 4])), from: .server)
    conversation.finish()
    #expect(conversation.client.bytes.count == 2_000 * 28)
    #expect(conversation.client.gaps == [Int](repeating: 28, count: 1_000))
    check(conversation)
  }

  // MARK: order and pieces

  @Test("The server's bytes may come before the client's", arguments: [1, 3, .max])
  func theServerBytesMayComeBeforeTheClient(pieces: Int) {
    let conversation = Conversation()
    let server =
      Conversation.record(22, Conversation.serverHello(0x009c)) + Conversation.changeCipherSpec
      + Conversation.sealer12(.server).seal(type: 23, [4, 5])
    let client =
      Conversation.record(22, Conversation.clientHello()) + Conversation.changeCipherSpec
      + Conversation.sealer12(.client).seal(type: 23, [6])
    conversation.send(server, from: .server, pieces: pieces)
    conversation.send(client, from: .client, pieces: pieces)
    conversation.finish()
    #expect(conversation.server.bytes == [4, 5])
    #expect(conversation.client.bytes == [6])
    check(conversation)
  }

  /// Length, type, version, lengths of suites, session and challenge, a suite, the challenge.
  @Test("A hello in the form of SSL 2.0 may come in pieces", arguments: [1, 2, 4, 5, 6, .max])
  func aHelloInTheFormOfSSL20MayComeInPieces(pieces: Int) {
    let conversation = Conversation()
    conversation.send(
      [0x80, 44, 1, 3, 3, 0, 3, 0, 0, 0, 32, 0, 0, 0x9c] + Conversation.clientRandom, from: .client, pieces: pieces)
    conversation.send(Conversation.record(22, Conversation.serverHello(0x009c)), from: .server, pieces: pieces)
    conversation.send(Conversation.changeCipherSpec, from: .client, pieces: pieces)
    conversation.send(Conversation.sealer12(.client).seal(type: 23, [6]), from: .client, pieces: pieces)
    conversation.finish()
    #expect(conversation.client.bytes == [6])
    check(conversation)
  }

  /// The last place that is tried may stand behind others.
  @Test("A direction that is given up while searching loses no byte", arguments: [1, 100, .max])
  func aDirectionThatIsGivenUpWhileSearchingLosesNo(pieces: Int) {
    let conversation = Conversation(limits: TLSLimits(maximumAttempts: 600))
    conversation.beginModern()
    conversation.send(Conversation.modernSealer(.client).seal(type: 23, [1]), from: .client)
    let noise = [UInt8](repeating: 0, count: 100) + Conversation.record(23, [UInt8](repeating: 9, count: 30))
    let bytes = Array(repeatElement(noise, count: 50).joined())
    conversation.send(bytes, from: .client, pieces: pieces)
    #expect(conversation.stream.client.records.hasFailed)
    conversation.finish()
    // All of it, less what sealing adds to as many records as there may have been: the one before held a byte.
    let record = 5 + 17 + 1
    #expect(conversation.client.gaps == [bytes.count - (bytes.count + record / 2) / record * (record - 1)])
    check(conversation)
  }

  /// What is found leads nowhere, a hundred thousand times in one piece.
  @Test("A record is found and lost again behind every byte", .timeLimit(.minutes(5)), arguments: [1_448, .max])
  func aRecordIsFoundAndLostAgainBehindEveryByte(pieces: Int) {
    let conversation = Conversation()
    let noise = (0..<131_072).flatMap { _ in [0, 21, 3, 3, 0, 2, 1, 100] as [UInt8] }
    conversation.send([22, 3, 1, 0, 1, 0] + noise, from: .client, pieces: pieces)
    #expect(conversation.stream.client.records.count > 100_000)
    #expect(conversation.stream.client.records.keptBytes < 64)
    conversation.finish()
    check(conversation)
  }

  // MARK: key logs

  @Test("A key log that says one secret thousands of times is looked through once", .timeLimit(.minutes(5)))
  func aKeyLogThatSaysOneSecretAMillionTimesIs() {
    let line = Array(KeyLogLine(.clientRandom, key: Conversation.clientRandom, secret: Conversation.master).text.utf8)
    var text: [UInt8] = []
    let count = TestRun.isWhole ? 50_000 : 10_000
    for _ in 0..<count { text += line }
    let log = KeyLog(text, maximumLines: 1 << 20)
    #expect(log.count == count)
    for _ in 0..<(TestRun.isWhole ? 100 : 10) {
      #expect(log.secrets(.clientRandom, for: Conversation.clientRandom, limit: 1_000) == [Conversation.master])
    }
  }

  // MARK: -

  /// What holds for every conversation that is over.
  private func check(_ conversation: SealedConversation, location: SourceLocation = #_sourceLocation) {
    for (output, direction) in [
      (conversation.client, conversation.stream.client), (conversation.server, conversation.stream.server),
    ] {
      #expect(output.ends == 1 && !output.isBroken, sourceLocation: location)
      #expect(output.bytes.count <= direction.tally.wireBytes, sourceLocation: location)
      #expect(
        direction.records.keptBytes <= RecordHeader.length + RecordHeader.maximumFragment, sourceLocation: location)
      #expect(direction.input.heldPieces == 0, sourceLocation: location)
    }
  }

  /// Bytes that a direction keeps of a handshake message.
  private func assembled(_ direction: TLSDirection) throws -> Int {
    let partial = Mirror(reflecting: direction.handshake).children.first { $0.label == "partial" }?.value
    return try #require(partial as? [UInt8]).count
  }
}
