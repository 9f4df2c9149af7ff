import TLSFoundation
import Testing

@testable import TLSDecryption

/// Known answers for every derivation function.
@Suite struct KeyDerivationTests {
  // MARK: TLS 1.2

  /// Vectors posted to the IETF's TLS list, https://www.ietf.org/mail-archive/web/tls/current/msg03416.html
  @Test("The pseudo-random function of TLS 1.2 gives the published values")
  func thePseudoRandomFunctionOfTLS12GivesThe() {
    let sha256 = KeyDerivation.prf(
      .sha256, secret: hex("9bbe436ba940f017b17652849a71db35"), label: "test label",
      seed: hex("a0ba9f936cda311827a6f796ffd5198c"), length: 100)
    #expect(
      sha256
        == hex(
          """
          e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa0
          22f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66
          """))
    let sha384 = KeyDerivation.prf(
      .sha384, secret: hex("b80b733d6ceefcdc71566ea48e5567df"), label: "test label",
      seed: hex("cd665cf6a8447dd6ff8b27555edb7465"), length: 148)
    #expect(
      sha384
        == hex(
          """
          7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cde9ca0faa60be9fe34f82b1233c9146a0e534
          cb400fed2700884f9dc236f80edd8bfa961144c9e8d792eca722a7b32fc3d416d473ebc2c5fd4abfdad05d9184259b5bf8cd
          4d90fa0d31e2dec479e4f1a26066f2eea9a69236a3e52655c9e9aee691c8f3a26854308d5eaa3be85e0990703d73e56f
          """))
  }

  /// NIST CAVP, SP 800-135 TLS 1.2 with SHA-256, as in OpenSSL's test/recipes/30-test_evp_data/evpkdf_tls12_prf.txt.
  /// The 128 bytes of the key block are those of AES-256-CBC with SHA-256 but for its MAC keys' length; so here they
  /// are taken apart as AES-128-CBC-SHA256 needs them: 2 × (32 + 16) bytes.
  @Test("Master secret and keys of TLS 1.2 are NIST's") func masterSecretAndKeysOfTLS12AreNIST() throws {
    let suite = CipherSuite(code: 0x003c)
    let master = KeySchedule.master(
      premaster: hex(
        "f8938ecc9edebc5030c0c6a441e213cd24e6f770a50dda07876f8d55da062bcadb386b411fd4fe4313a604fce6c17fbc"),
      suite, .tls12, clientRandom: hex("36c129d01a3200894b9179faac589d9835d58775f9b5ea3587cb8fd0364cae8c"),
      serverRandom: hex("f6c9575ed7ddd73e1f7d16eca115415812a43c2b747daaaae043abfb50053fce"), sessionHash: nil)
    #expect(
      text(master) == "202c88c00f84a17a20027079604787461176455539e705be730890602c289a5001e34eeb3a043e5d52a65e66125188bf"
    )
    let keys = try #require(
      KeySchedule.keys(
        master: master, suite, .tls12,
        clientRandom: hex("62e1fd91f23f558a605f28478c58cf72637b89784d959df7e946d3f07bd1b616"),
        serverRandom: hex("ae6c806f8ad4d80784549dff28a4b58fd837681a51d928c3e30ee5ff14f39868")))
    #expect(text(keys.client.mac) == "d06139889fffac1e3a71865f504aa5d0d2a2e89506c6f2279b670c3e1b74f531")
    #expect(text(keys.server.mac) == "016a2530c51a3a0f7e1d6590d0f0566b2f387f8d11fd4f731cdd572d2eae927f")
    #expect(text(keys.client.key) == "6f2f81410b25e6960be68985add6c384")
    #expect(text(keys.server.key) == "45ad9f8c64bf8068bf9a6679485d966f")
    // From TLS 1.1 on each record brings its own vector.
    #expect(keys.client.vector.isEmpty && keys.server.vector.isEmpty)
  }

  /// The self-test of Go's FIPS module, crypto/internal/fips140/tls12/cast.go; RFC 7627 itself has no vectors.
  @Test("The extended master secret depends on the session hash alone")
  func theExtendedMasterSecretDependsOnTheSession() {
    let master = KeySchedule.master(
      premaster: [UInt8](0x01...0x10), CipherSuite(code: 0x003c), .tls12, clientRandom: [1], serverRandom: [2],
      sessionHash: [UInt8](0x11...0x20))
    #expect(
      text(master) == "8c3eeda71c1b4cc0a0449075a88ebc7c5e1c4b1e4fe3c106ebdcc05dc0c8ecf3e2b9d1035eb2605d12684f49dfa99dcc"
    )
  }

  /// By Python's hmac module: P_SHA384(0303 ab…, "extended master secret" ‖ 00 01 …).
  @Test("A suite with SHA-384 derives with it") func aSuiteWithSHA384DerivesWithIt() {
    let master = KeySchedule.master(
      premaster: [3, 3] + [UInt8](repeating: 0xab, count: 46), CipherSuite(code: 0xc030), .tls12, clientRandom: [],
      serverRandom: [], sessionHash: [UInt8](0..<48))
    #expect(
      text(master) == "93e78d5df361aa33ef1354dd8909296ea10a178bef94b0a00f3db5d2a88a29179e45c82d038d2ec779068055c58e374c"
    )
  }

  // MARK: TLS 1.0 and 1.1

  /// NIST CAVP, SP 800-135 TLS 1.0/1.1, count 0. Its 104 bytes are what AES-128-CBC-SHA needs in TLS 1.0.
  @Test("Master secret and keys of TLS 1.0 are NIST's") func masterSecretAndKeysOfTLS10AreNIST() throws {
    let suite = CipherSuite(code: 0x002f)
    let master = KeySchedule.master(
      premaster: hex(
        "bded7fa5c1699c010be23dd06ada3a48349f21e5f86263d512c0c5cc379f0e780ec55d9844b2f1db02a96453513568d0"),
      suite, .tls10, clientRandom: hex("e5acaf549cd25c22d964c0d930fa4b5261d2507fad84c33715b7b9a864020693"),
      serverRandom: hex("135e4d557fdf3aa6406d82975d5c606a9734c9334b42136e96990fbd5358cdb2"), sessionHash: nil)
    #expect(
      text(master) == "2f6962dfbc744c4b2138bb6b3d33054c5ecc14f24851d9896395a44ab3964efc2090c5bf51a0891209f46c1e1e998f62"
    )
    func keys(_ version: TLSVersion) -> (client: DirectionKeys, server: DirectionKeys)? {
      KeySchedule.keys(
        master: master, suite, version,
        clientRandom: hex("d58a7b1cd4fedaa232159df652ce188f9d997e061b9bf48e83b62990440931f6"),
        serverRandom: hex("67267e650eb32444119d222a368c191af3082888dc35afe8368e638c828874be"))
    }
    let first = try #require(keys(.tls10))
    #expect(text(first.client.mac) == "3088825988e77fce68d19f756e18e43eb7fe6724")
    #expect(text(first.server.mac) == "33504feaf99b3c503d9091b164f166db301d70c9")
    #expect(text(first.client.key) == "fc0870b4a94563907bee1a61fb786cb7")
    #expect(text(first.server.key) == "17576890bcc51cb9ead97e01d0a2fea9")
    #expect(text(first.client.vector) == "9c953377b195205ff07b369589178796")
    #expect(text(first.server.vector) == "edc963fd80fdbe518a2fc1c35c18ae8d")
    // TLS 1.1 takes the same keys, and no vectors.
    let second = try #require(keys(.tls11))
    #expect(second.client == DirectionKeys(mac: first.client.mac, key: first.client.key))
    #expect(second.server == DirectionKeys(mac: first.server.mac, key: first.server.key))
  }

  // MARK: SSL 3.0

  /// RFC 6101 has no vectors; these follow its section 6 by Python's hashlib.
  @Test("SSL 3.0 derives with MD5 and SHA-1") func ssl30DerivesWithMD5AndSHA1() throws {
    let suite = CipherSuite(code: 0x002f)
    let (client, server) = ([UInt8](repeating: 0x11, count: 32), [UInt8](repeating: 0x22, count: 32))
    let master = KeySchedule.master(
      premaster: [3, 0] + [UInt8](0..<46), suite, .ssl3, clientRandom: client, serverRandom: server, sessionHash: nil)
    #expect(
      text(master) == "99f8eafe5bbf857e2759ce35b732152fb1469173b88265a2b61e3e52e320b9abece16f561eb0a24bd3703173310cae1d"
    )
    let keys = try #require(
      KeySchedule.keys(master: master, suite, .ssl3, clientRandom: client, serverRandom: server))
    let block =
      keys.client.mac + keys.server.mac + keys.client.key + keys.server.key + keys.client.vector + keys.server.vector
    #expect(
      block
        == hex(
          """
          f95e197acb17d02da015fab6c3b55c75663e37da71f286a192357696470d8d69521cde015db73d2014c96fdaf82264407901
          50158691df1741f3999c480f7115a8f9f8c4663c7f6ce8d8f6edead947bbf7461aa31e4834c3ef0865287826b30ddad495d1
          d161fbe6
          """))
    #expect(keys.server.mac.count == 20 && keys.client.key.count == 16 && keys.server.vector.count == 16)
  }

  /// "A" to "Z" is as far as the construction goes: 26 rounds of 16 bytes.
  @Test("SSL 3.0 does not derive more than its letters suffice for") func ssl30DoesNotDeriveMoreThanItsLettersSuffice()
  {
    #expect(KeyDerivation.ssl3(secret: [1], seed: [2], length: 400).count == 400)
    #expect(KeyDerivation.ssl3(secret: [1], seed: [2], length: 417).isEmpty)
  }

  // MARK: TLS 1.3

  /// RFC 8448, section 3: the secret "derived" from the early secret, with the hash of nothing as context.
  @Test("Labels are expanded with their context") func labelsAreExpandedWithTheirContext() {
    let derived = KeyDerivation.expandLabel(
      .sha256, secret: hex("33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a"), label: "derived",
      context: hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), length: 32)
    #expect(text(derived) == "6f2615a108c702c5678f54fc9dbab69716c076189c48250cebeac3576c3611ba")
  }

  /// By Python's hmac module: HKDF-Expand-Label of RFC 8446, section 7.1, with SHA-384.
  @Test("A suite with SHA-384 has longer secrets and keys") func aSuiteWithSHA384HasLongerSecretsAndKeys() {
    let suite = CipherSuite(code: 0x1302)
    let keys = KeySchedule.keys(trafficSecret: [UInt8](0..<48), suite)
    #expect(
      keys
        == DirectionKeys(
          key: hex("6877d022f1c61d24ebb7487c16752d9a4798e40431c75b39320e537c90e23225"),
          vector: hex("42822531a0fe88648fc09e9f")))
    #expect(
      text(KeySchedule.nextTrafficSecret(after: [UInt8](0..<48), suite))
        == "401331b63e9d59f202e8f041042d9516f4cd7fa2e2ee14631d3b49fc340d7af37fc2c0c9f252d8036f81ec5b85cbe5db")
  }

  /// By Python's hmac module, with the labels of draft-ietf-tls-tls13-19, section 7.1.
  @Test("Drafts before the 20th have other labels") func draftsBeforeThe20thHaveOtherLabels() {
    let suite = CipherSuite(code: 0x1301)
    let keys = KeySchedule.keys(trafficSecret: [UInt8](0..<32), suite, draft: 19)
    #expect(
      keys == DirectionKeys(key: hex("db07b61bdd1a24cf69f3700ca218e53d"), vector: hex("150663c051e93724f6c88bd1")))
    #expect(
      text(KeySchedule.nextTrafficSecret(after: [UInt8](0..<32), suite, draft: 19))
        == "506255be5ba34501fc70a117ceb5521849f2facad8820236d01411342ee50fad")
    let standard = KeySchedule.keys(trafficSecret: [UInt8](0..<32), suite)
    #expect(KeySchedule.keys(trafficSecret: [UInt8](0..<32), suite, draft: 20) == standard)
    #expect(keys != standard)
  }

  // MARK: what cannot be derived

  @Test("A suite that cannot be opened has no keys") func aSuiteThatCannotBeOpenedHasNoKeys() {
    let (random, secret) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 48))
    // RC2-CBC-40, and a number that nobody registered.
    for code: UInt16 in [0x0006, 0xfefe] {
      let suite = CipherSuite(code: code)
      #expect(KeySchedule.keys(master: secret, suite, .tls10, clientRandom: random, serverRandom: random) == nil)
      #expect(KeySchedule.keys(trafficSecret: random, suite) == nil)
    }
  }
}
