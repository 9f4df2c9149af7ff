import Bytes
import Testing

@testable import TLSDecryption

/// The keys of one direction: what is collected, comes into use, is left and changes.
@Suite struct KeySearchTests {
  static func candidate(_ stage: KeyEpoch.Stage) throws -> KeyCandidate {
    let suite = CipherSuite(code: 0x1301)
    let secret = SealedConversation.clientTraffic
    let keys = try #require(KeySchedule.keys(trafficSecret: secret, suite))
    let decryptor = try #require(RecordDecryptor(keys, suite, .tls13))
    return KeyCandidate(decryptor, stage, suite, line: nil, secret: secret)
  }

  static func epoch(_ candidate: KeyCandidate) -> KeyEpoch {
    KeyEpoch(stage: candidate.stage, candidates: [candidate])
  }

  @Test("Keys come into use stage by stage") func stages() throws {
    let (early, handshake, data) = (
      try Self.candidate(.early), try Self.candidate(.handshake), try Self.candidate(.data)
    )
    var keys = KeySearch()
    #expect(!keys.isSealed)
    #expect(!keys.isWithoutKeys)
    keys.seal()
    #expect(keys.isSealed)
    #expect(keys.isWithoutKeys)
    keys.collect([early, handshake, data].map(Self.epoch))
    #expect(!keys.isWithoutKeys)
    #expect(keys.active == nil)
    #expect(keys.candidates.count == 3)
    #expect(!keys.lacksKeys)

    keys.use(handshake)
    #expect(keys.active === handshake)
    // Early keys do not come again.
    #expect(keys.candidates.map(\.stage) == [.data])
    #expect(keys.overhead == 17)
    #expect(!keys.hasFinished)
    #expect(keys.expectation.isBeforeData)
    #expect(keys.expectation.keyVersion == .tls13)
    #expect(keys.shortestRecord == 22)

    keys.leave(.handshake)
    #expect(keys.active == nil)
    #expect(keys.hasFinished)
    #expect(keys.candidates.map(\.stage) == [.data])
    keys.use(data)
    #expect(keys.active === data)
    #expect(keys.candidates.isEmpty)
    #expect(!keys.expectation.isBeforeData)
  }

  @Test("Data that opens proves that the handshake is over") func dataProves() throws {
    var keys = KeySearch()
    keys.seal()
    let data = try Self.candidate(.data)
    keys.collect([Self.epoch(data)])
    keys.use(data)
    #expect(keys.hasFinished)
    let next = try #require(data.updated(draft: 0))
    #expect(next.secret != data.secret)
    keys.update(to: next)
    #expect(keys.active === next)
    #expect(keys.hasFinished)
  }

  @Test("A change of keys forgets those in use") func change() throws {
    var keys = KeySearch()
    keys.change()
    #expect(keys.isWithoutKeys)
    let data = try Self.candidate(.data)
    keys.collect([Self.epoch(data)])
    keys.use(data)
    // Sealed once, sealed for ever.
    keys.seal()
    #expect(keys.active === data)
    keys.change()
    #expect(keys.isWithoutKeys)
    #expect(keys.active == nil)
    #expect(!keys.hasFinished)
    #expect(keys.overhead == 17)
  }

  @Test("Others are tried while the keys in use are set aside") func setAside() throws {
    var keys = KeySearch()
    keys.seal()
    let (old, new) = (try Self.candidate(.data), try Self.candidate(.data))
    keys.collect([Self.epoch(old)])
    keys.use(old)
    keys.collect([Self.epoch(new)])
    #expect(keys.active === old)
    #expect(keys.candidates.first === new)
    keys.setAside()
    #expect(keys.active == nil)
    #expect(keys.candidates.first === new)
    keys.takeUp(old)
    #expect(keys.active === old)
    #expect(keys.candidates.isEmpty)
  }

  @Test("Keys of the handshake alone are not enough") func lacksKeys() throws {
    var keys = KeySearch()
    #expect(!keys.lacksKeys)
    keys.seal()
    keys.collect([Self.epoch(try Self.candidate(.handshake)), KeyEpoch(stage: .data, candidates: [])])
    #expect(keys.lacksKeys)
    keys.use(keys.candidates[0])
    #expect(!keys.lacksKeys)
  }

  @Test("Guesses are forgotten when none of them opens a record") func guesses() throws {
    var keys = KeySearch()
    keys.seal()
    keys.isGuessing = true
    keys.collect([Self.epoch(try Self.candidate(.data))])
    keys.forgetGuesses()
    #expect(keys.isWithoutKeys)
    #expect(!keys.isGuessing)
  }

  @Test("Attempts cost by their length, and success forgives some") func attempts() {
    var keys = KeySearch()
    let record = [UInt8](repeating: 0, count: 3 << 10)
    for _ in 0..<100 { keys.countAttempt(record.rawBytes) }
    #expect(keys.attempts == 400)
    keys.forgive()
    #expect(keys.attempts == 144)
    keys.forgive()
    #expect(keys.attempts == 0)
  }

  @Test("Fewer and fewer records are tried with far numbers") func trials() {
    var keys = KeySearch()
    let wide = (1...20).filter { _ in keys.countTrial() }
    #expect(wide == [1, 2, 4, 8, 16])
    keys.forgive()
    #expect(keys.trials == 0)
    #expect(keys.countTrial() == true)
  }
}
