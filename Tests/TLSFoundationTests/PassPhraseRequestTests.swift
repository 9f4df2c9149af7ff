import COpenSSL
import TLSFoundation
import Testing

@Suite("Private keys in PEM")
struct PassPhraseRequestTests {
  /// What came of reading a key.
  private struct Outcome: Equatable {
    var isRead: Bool
    var wasAsked: Bool
  }

  /// A new key, encrypted if there is a pass phrase.
  private func pem(_ passPhrase: [UInt8]?) throws -> [UInt8] {
    let key = unsafe try #require(unsafe apnscope_EVP_EC_gen("P-256"))
    defer { unsafe EVP_PKEY_free(key) }
    let output = unsafe try #require(unsafe BIO_new(BIO_s_mem()))
    defer { unsafe BIO_free(output) }
    let phrase = passPhrase.map { $0.map { CChar(bitPattern: $0) } }
    let isWritten =
      unsafe phrase.map { phrase in
        unsafe PEM_write_bio_PKCS8PrivateKey(output, key, EVP_aes_128_cbc(), phrase, Int32(phrase.count), nil, nil)
      } ?? PEM_write_bio_PKCS8PrivateKey(output, key, nil, nil, 0, nil, nil)
    try #require(isWritten == 1)
    var start: UnsafeMutablePointer<CChar>?
    let count = unsafe apnscope_BIO_get_mem_data(output, &start)
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  private func read(_ pem: [UInt8], _ passPhrase: [UInt8]?) throws -> Outcome {
    let input = unsafe try #require(unsafe BIO_new(BIO_s_mem()))
    defer {
      unsafe BIO_free(input)
      ERR_clear_error()
    }
    let written = unsafe BIO_write(input, pem, Int32(pem.count))
    try #require(pem.isEmpty || Int(written) == pem.count)
    var request = PassPhraseRequest(passPhrase)
    let key = unsafe request.readPrivateKey(input)
    unsafe EVP_PKEY_free(key)
    return Outcome(isRead: unsafe key != nil, wasAsked: request.wasAsked)
  }

  @Test("The pass phrase is asked for when the key is encrypted, and only then")
  func asked() throws {
    let phrase = Array("a phrase".utf8)
    let (clear, encrypted) = (try pem(nil), try pem(phrase))
    #expect(try read(clear, nil) == Outcome(isRead: true, wasAsked: false))
    #expect(try read(clear, phrase) == Outcome(isRead: true, wasAsked: false))
    #expect(try read(encrypted, phrase) == Outcome(isRead: true, wasAsked: true))
    #expect(try read(encrypted, nil) == Outcome(isRead: false, wasAsked: true))
    #expect(try read(encrypted, Array("another".utf8)) == Outcome(isRead: false, wasAsked: true))
  }

  @Test("A pass phrase of any length and bytes is taken, or refused when OpenSSL has no room for it")
  func lengths() throws {
    for length in [4, 100, 1_000] {
      let phrase = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 | 0x80) }
      #expect(try read(pem(phrase), phrase) == Outcome(isRead: true, wasAsked: true), "\(length)")
    }
    let long = [UInt8](repeating: 0x61, count: 5_000)
    #expect(try read(pem(Array("a phrase".utf8)), long) == Outcome(isRead: false, wasAsked: true))
  }

  @Test("What is before the key is passed over, and text without one holds none")
  func others() throws {
    #expect(try read(Array("Bag Attributes\n".utf8) + pem(nil), nil) == Outcome(isRead: true, wasAsked: false))
    #expect(try read([], nil) == Outcome(isRead: false, wasAsked: false))
    #expect(try read(Array("no key".utf8), nil) == Outcome(isRead: false, wasAsked: false))
  }
}

@Suite("Algorithms of old recordings")
struct LegacyProviderTests {
  private func hasCipher(_ name: String, isLegacy: Bool) -> Bool {
    let cipher = unsafe EVP_CIPHER_fetch(isLegacy ? LegacyProvider.context : nil, name, nil)
    defer {
      unsafe EVP_CIPHER_free(cipher)
      ERR_clear_error()
    }
    return unsafe cipher != nil
  }

  @Test("They are in a context of their own, beside those that OpenSSL has anyway")
  func context() throws {
    #expect(hasCipher("AES-128-GCM", isLegacy: true))
    for name in ["RC4", "RC2-40-CBC", "DES-CBC"] {
      #expect(hasCipher(name, isLegacy: true) == LegacyProvider.isInstalled, "\(name)")
      #expect(!hasCipher(name, isLegacy: false), "\(name)")
    }
  }
}
