import Bytes
import TLSFoundation
import Testing

@testable import TLSDecryption

/// What follows from a suite's registered name.
@Suite struct CipherSuiteTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var code: UInt16
    var name: String
    var keyExchange: String?
    var protection: CipherSuite.Protection?
    var mac: HashFunction?
    /// In TLS 1.2, or 1.3 where the suite is one of its.
    var derivation: HashFunction
    var testDescription: String { name }
  }

  /// One of every kind, as IANA registered them; key, block, tag, and nonce lengths from the RFCs named.
  static let rows = [
    // RFC 5246
    Row(
      code: 0x0001, name: "TLS_RSA_WITH_NULL_MD5", keyExchange: "RSA", protection: .null, mac: .md5,
      derivation: .sha256),
    Row(
      code: 0x003b, name: "TLS_RSA_WITH_NULL_SHA256", keyExchange: "RSA", protection: .null, mac: .sha256,
      derivation: .sha256),
    Row(
      code: 0x0004, name: "TLS_RSA_WITH_RC4_128_MD5", keyExchange: "RSA", protection: .rc4, mac: .md5,
      derivation: .sha256),
    Row(
      code: 0x0005, name: "TLS_RSA_WITH_RC4_128_SHA", keyExchange: "RSA", protection: .rc4, mac: .sha1,
      derivation: .sha256),
    Row(
      code: 0x000a, name: "TLS_RSA_WITH_3DES_EDE_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "DES-EDE3-CBC", keyLength: 24, blockLength: 8), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x0009, name: "TLS_RSA_WITH_DES_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "DES-CBC", keyLength: 8, blockLength: 8), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x0007, name: "TLS_RSA_WITH_IDEA_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "IDEA-CBC", keyLength: 16, blockLength: 8), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x002f, name: "TLS_RSA_WITH_AES_128_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "AES-128-CBC", keyLength: 16, blockLength: 16), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x0039, name: "TLS_DHE_RSA_WITH_AES_256_CBC_SHA", keyExchange: "DHE_RSA",
      protection: .block(cipher: "AES-256-CBC", keyLength: 32, blockLength: 16), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x003d, name: "TLS_RSA_WITH_AES_256_CBC_SHA256", keyExchange: "RSA",
      protection: .block(cipher: "AES-256-CBC", keyLength: 32, blockLength: 16), mac: .sha256, derivation: .sha256),
    Row(
      code: 0x0034, name: "TLS_DH_anon_WITH_AES_128_CBC_SHA", keyExchange: "DH_anon",
      protection: .block(cipher: "AES-128-CBC", keyLength: 16, blockLength: 16), mac: .sha1, derivation: .sha256),
    // RFC 5289
    Row(
      code: 0xc028, name: "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", keyExchange: "ECDHE_RSA",
      protection: .block(cipher: "AES-256-CBC", keyLength: 32, blockLength: 16), mac: .sha384, derivation: .sha384),
    Row(
      code: 0xc02f, name: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", keyExchange: "ECDHE_RSA",
      protection: .aead(cipher: "AES-128-GCM", keyLength: 16, tagLength: 16, explicitLength: 8), mac: nil,
      derivation: .sha256),
    Row(
      code: 0xc02c, name: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", keyExchange: "ECDHE_ECDSA",
      protection: .aead(cipher: "AES-256-GCM", keyLength: 32, tagLength: 16, explicitLength: 8), mac: nil,
      derivation: .sha384),
    // RFC 5932, 4162, 6209
    Row(
      code: 0x0041, name: "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "CAMELLIA-128-CBC", keyLength: 16, blockLength: 16), mac: .sha1, derivation: .sha256),
    Row(
      code: 0x0096, name: "TLS_RSA_WITH_SEED_CBC_SHA", keyExchange: "RSA",
      protection: .block(cipher: "SEED-CBC", keyLength: 16, blockLength: 16), mac: .sha1, derivation: .sha256),
    Row(
      code: 0xc051, name: "TLS_RSA_WITH_ARIA_256_GCM_SHA384", keyExchange: "RSA",
      protection: .aead(cipher: "ARIA-256-GCM", keyLength: 32, tagLength: 16, explicitLength: 8), mac: nil,
      derivation: .sha384),
    // RFC 6655: the name says nothing of the hash
    Row(
      code: 0xc0a4, name: "TLS_PSK_WITH_AES_128_CCM", keyExchange: "PSK",
      protection: .aead(cipher: "AES-128-CCM", keyLength: 16, tagLength: 16, explicitLength: 8), mac: nil,
      derivation: .sha256),
    Row(
      code: 0xc0a1, name: "TLS_RSA_WITH_AES_256_CCM_8", keyExchange: "RSA",
      protection: .aead(cipher: "AES-256-CCM", keyLength: 32, tagLength: 8, explicitLength: 8), mac: nil,
      derivation: .sha256),
    // RFC 7905: the whole nonce is implicit
    Row(
      code: 0xcca8, name: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", keyExchange: "ECDHE_RSA",
      protection: .aead(cipher: "ChaCha20-Poly1305", keyLength: 32, tagLength: 16, explicitLength: 0), mac: nil,
      derivation: .sha256),
    // RFC 8446
    Row(
      code: 0x1302, name: "TLS_AES_256_GCM_SHA384", keyExchange: nil,
      protection: .aead(cipher: "AES-256-GCM", keyLength: 32, tagLength: 16, explicitLength: 8), mac: nil,
      derivation: .sha384),
    Row(
      code: 0x1305, name: "TLS_AES_128_CCM_8_SHA256", keyExchange: nil,
      protection: .aead(cipher: "AES-128-CCM", keyLength: 16, tagLength: 8, explicitLength: 8), mac: nil,
      derivation: .sha256),
  ]

  @Test("Name, key exchange, cipher and hashes are the registered ones", arguments: rows)
  func nameKeyExchangeCipherAndHashesAreThe(row: Row) {
    let suite = CipherSuite(code: row.code)
    #expect(suite.name == row.name)
    #expect(suite.keyExchange == row.keyExchange)
    #expect(suite.protection == row.protection)
    #expect(suite.macHash == row.mac)
    #expect(suite.derivationHash(.tls12) == row.derivation)
    #expect(suite.usesRSAKeyExchange == (row.keyExchange == "RSA"))
  }

  /// Whatever a suite's name says, older versions derive with MD5 and SHA-1.
  @Test("Before TLS 1.2 keys are derived with MD5 and SHA-1", arguments: rows)
  func beforeTLS12KeysAreDerivedWithMD5AndSHA1(row: Row) {
    for version in [TLSVersion.tls10, .tls11] {
      #expect(CipherSuite(code: row.code).derivationHash(version) == .md5sha1)
    }
  }

  /// Export ciphers derive other keys; RC2, GOST's ciphers and MACs, and the drafts of ChaCha20 seal otherwise.
  @Test(
    "What cannot be opened is not attempted",
    arguments: [
      0x0003, 0x0006, 0x0008, 0x0017, 0x0028, 0x0081, 0x0083, 0xcc13, 0xcc14, 0xc103, 0x00ff, 0x5600, 0x1306, 0xfefe,
    ] as [UInt16])
  func whatCannotBeOpenedIsNotAttempted(code: UInt16) {
    let suite = CipherSuite(code: code)
    #expect(suite.protection == nil, "\(suite.name)")
  }

  @Test("A number that nobody registered is its name") func aNumberThatNobodyRegisteredIsItsName() {
    #expect(CipherSuite(code: 0x0afe).name == "unknown suite 0x0afe")
    #expect(CipherSuite(code: 0x0afe).keyExchange == nil)
  }

  /// What the registry says can be opened must be known to OpenSSL under the name given here.
  @Test("Every suite that is opened has its cipher in OpenSSL, with that key")
  func everySuiteThatIsOpenedHasItsCipherInOpenSSL() {
    for (code, name) in CipherSuiteRegistry.names {
      guard let protection = CipherSuite(code: code).protection else { continue }
      guard let cipher = protection.cipher else { continue }
      // What is in the legacy provider may be missing; Debian builds it without IDEA.
      if ["RC4", "DES-CBC", "IDEA-CBC", "SEED-CBC"].contains(cipher) { continue }
      var tag = 0
      if case .aead(_, _, let length, _) = protection { tag = length }
      let key = [UInt8](repeating: 0, count: protection.keyLength)
      #expect(
        Cipher(cipher, key: key, tagLength: tag, isCCM: cipher.hasSuffix("CCM")) != nil, "\(name): \(cipher)")
    }
  }

  /// The suite's name alone would not tell why its key log opens nothing.
  @Test("A cipher that OpenSSL lacks is named as the problem") func aCipherThatOpenSSLLacksIsNamedAsTheProblem() throws
  {
    let lacking = CipherSuite(code: 0x0007)
    guard case .block(let cipher, _, _)? = lacking.protection,
      Cipher(cipher, key: [UInt8](repeating: 0, count: 16)) == nil
    else { return }
    let random = [UInt8](repeating: 7, count: 32)
    let secrets = Secrets()
    secrets.add(
      KeyLog(Array("CLIENT_RANDOM \(text(random)) \(text([UInt8](repeating: 1, count: 48)))".utf8), maximumLines: 1))
    let stream = TLSStream(secrets: secrets, limits: TLSLimits())
    func receive(_ record: [UInt8], _ side: TLSSide) {
      stream.receive(record.rawBytes, from: side, at: CapturePoint(time: 0, packet: 1)) { _, _, _, _ in }
    }
    // type | version | length | message: hellos with nothing but what they must have, and a sealed record
    receive([22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1] + random + [0, 0, 2, 0, 7, 1, 0], .client)
    receive([22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1] + random + [0, 0, 7, 0], .server)
    receive([20, 3, 1, 0, 1, 1, 22, 3, 1, 0, 40] + [UInt8](repeating: 9, count: 40), .client)
    let problem = try #require(stream.summary.problem)
    #expect(problem.contains("TLS_RSA_WITH_IDEA_CBC_SHA") && problem.contains("OpenSSL"))
  }

  /// A stream or block cipher without a MAC would make every record genuine.
  @Test("Every suite that is opened verifies its records") func everySuiteThatIsOpenedVerifiesItsRecords() {
    for (code, name) in CipherSuiteRegistry.names {
      switch CipherSuite(code: code).protection {
      case .null?, .rc4?, .block?: #expect(CipherSuite(code: code).macHash != nil, "\(name)")
      case .aead?, nil: break
      }
    }
  }

  @Test("Secrets of a length that no suite has fit none") func secretsOfALengthThatNoSuiteHasFitNone() {
    #expect(CipherSuite.modern(secretLength: 32).map(\.name).first == "TLS_AES_128_GCM_SHA256")
    #expect(CipherSuite.modern(secretLength: 32).allSatisfy { $0.derivationHash(.tls13).length == 32 })
    #expect(CipherSuite.modern(secretLength: 48).allSatisfy { $0.derivationHash(.tls13).length == 48 })
    #expect(CipherSuite.modern(secretLength: 40).isEmpty)
  }
}
