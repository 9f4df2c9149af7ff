import Bytes
import COpenSSL
import TLSFoundation
import Testing

@testable import TLSDecryption

/// How AEADs make their nonces and what they authenticate: records are sealed here with both written out by hand.
@Suite struct AEADTests {
  private let content = Array("Push".utf8)
  private let sequence: UInt64 = 0x0102_0304_0506_0708

  /// RFC 8439, section 2.8.2.
  @Test("ChaCha20-Poly1305 gives the published plaintext") func chacha20Poly1305GivesThePublishedPlaintext() throws {
    let cipher = try #require(Cipher("ChaCha20-Poly1305", key: [UInt8](0x80...0x9f)))
    let sealed = hex(
      """
      d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b
      1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
      3ff4def08e4b7a9de576d26586cec64b6116 1ae10b594f09e26a7e902ecbd0600691
      """)
    let (nonce, associated) = (hex("070000004041424344454647"), hex("50515253c0c1c2c3c4c5c6c7"))
    var output = [UInt8](repeating: 0, count: 200)
    let length = cipher.open(
      sealed.rawBytes, tagLength: 16, nonce: nonce.rawBytes, associatedData: associated.rawBytes, isCCM: false,
      into: &output)
    #expect(
      length.map { String(decoding: output[..<$0], as: UTF8.self) }
        == "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        + "sunscreen would be it.")
  }

  /// RFC 5288, section 3, and RFC 6655, section 3: salt from the key block | 8 bytes that the record begins with. The
  /// sequence number stands in what is authenticated alone (RFC 5246, section 6.2.3.3).
  @Test(
    "In TLS 1.2 the nonce is a salt and what the record brings",
    arguments: [
      (0xc02f, "AES-128-GCM", 16, 16), (0xc030, "AES-256-GCM", 32, 16), (0xc09c, "AES-128-CCM", 16, 16),
      (0xc0a0, "AES-128-CCM", 16, 8), (0xc051, "ARIA-256-GCM", 32, 16),
    ] as [(UInt16, String, Int, Int)])
  func inTLS12TheNonceIsASaltAndWhatTheRecordBrings(
    code: UInt16, cipher: String, keyLength: Int, tagLength: Int
  ) throws {
    let key = [UInt8](0..<UInt8(keyLength))
    let explicit: [UInt8] = [0xf0, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0x87]
    let sealed = try #require(
      seal(
        cipher, key: key, nonce: [0xa0, 0xa1, 0xa2, 0xa3] + explicit,
        associated: [1, 2, 3, 4, 5, 6, 7, 8, 23, 3, 3, 0, 4], content, tagLength: tagLength))
    let decryptor = try #require(
      RecordDecryptor(
        DirectionKeys(key: key, vector: [0xa0, 0xa1, 0xa2, 0xa3]), CipherSuite(code: code), .tls12))
    expectOpens(decryptor, [23, 3, 3, 0, UInt8(8 + sealed.count)] + explicit + sealed, type: .applicationData)
    #expect(decryptor.overhead == 8 + tagLength)
  }

  /// RFC 7905, section 2: the vector from the key block xor the sequence number, and nothing on the wire.
  @Test("ChaCha20 in TLS 1.2 has the number in its nonce") func chacha20InTLS12HasTheNumberInItsNonce() throws {
    let (key, vector) = ([UInt8](0..<32), [UInt8](0xa0..<0xac))
    let nonce: [UInt8] = [
      0xa0, 0xa1, 0xa2, 0xa3, 0xa4 ^ 1, 0xa5 ^ 2, 0xa6 ^ 3, 0xa7 ^ 4, 0xa8 ^ 5, 0xa9 ^ 6, 0xaa ^ 7, 0xab ^ 8,
    ]
    let sealed = try #require(
      seal(
        "ChaCha20-Poly1305", key: key, nonce: nonce, associated: [1, 2, 3, 4, 5, 6, 7, 8, 23, 3, 3, 0, 4], content,
        tagLength: 16))
    let decryptor = try #require(
      RecordDecryptor(DirectionKeys(key: key, vector: vector), CipherSuite(code: 0xcca8), .tls12))
    expectOpens(decryptor, [23, 3, 3, 0, 20] + sealed, type: .applicationData)
    #expect(decryptor.overhead == 16)
  }

  /// RFC 8446, sections 5.2 and 5.3: the same nonce for every suite; authenticated is the header, and the type stands
  /// behind the content, before as many zeros as the sender likes.
  @Test(
    "In TLS 1.3 every suite has the number in its nonce",
    arguments: [
      (0x1301, "AES-128-GCM", 16, 16), (0x1302, "AES-256-GCM", 32, 16), (0x1303, "ChaCha20-Poly1305", 32, 16),
      (0x1304, "AES-128-CCM", 16, 16), (0x1305, "AES-128-CCM", 16, 8),
    ] as [(UInt16, String, Int, Int)])
  func inTLS13EverySuiteHasTheNumberInItsNonce(
    code: UInt16, cipher: String, keyLength: Int, tagLength: Int
  ) throws {
    let (key, vector) = ([UInt8](0..<UInt8(keyLength)), [UInt8](0xa0..<0xac))
    let nonce: [UInt8] = [
      0xa0, 0xa1, 0xa2, 0xa3, 0xa4 ^ 1, 0xa5 ^ 2, 0xa6 ^ 3, 0xa7 ^ 4, 0xa8 ^ 5, 0xa9 ^ 6, 0xaa ^ 7, 0xab ^ 8,
    ]
    for padding in [0, 1, 200] {
      for type: UInt8 in [21, 22, 23] {
        let inner = content + [type] + [UInt8](repeating: 0, count: padding)
        let length = inner.count + tagLength
        let header = [23, 3, 3, UInt8(length >> 8), UInt8(length & 255)]
        let sealed = try #require(
          seal(cipher, key: key, nonce: nonce, associated: header, inner, tagLength: tagLength))
        let decryptor = try #require(
          RecordDecryptor(DirectionKeys(key: key, vector: vector), CipherSuite(code: code), .tls13))
        expectOpens(decryptor, header + sealed, type: ContentType(rawValue: type))
      }
    }
    // Padding without a type is nothing that a sender may seal.
    let header = [23, 3, 3, 0, UInt8(9 + tagLength)]
    let zeros = try #require(
      seal(cipher, key: key, nonce: nonce, associated: header, [UInt8](repeating: 0, count: 9), tagLength: tagLength))
    let decryptor = try #require(
      RecordDecryptor(DirectionKeys(key: key, vector: vector), CipherSuite(code: code), .tls13))
    var output = [UInt8](repeating: 0, count: 1 << 10)
    #expect(decryptor.open(header + zeros, sequence: sequence, into: &output) == nil)
  }

  @Test("A record shorter than nonce and tag is none") func aRecordShorterThanNonceAndTagIsNone() throws {
    for (code, version) in [(0xc02f, TLSVersion.tls12), (0xcca8, .tls12), (0x1301, .tls13), (0xc0a0, .tls12)] {
      let suite = CipherSuite(code: UInt16(code))
      let keys = DirectionKeys(
        key: [UInt8](repeating: 0, count: suite.protection?.keyLength ?? 0), vector: [UInt8](repeating: 0, count: 12))
      let decryptor = try #require(RecordDecryptor(keys, suite, version))
      var output = [UInt8](repeating: 0, count: 1 << 10)
      for length in 0...25 {
        let record = [23, 3, 3, 0, UInt8(length)] + [UInt8](repeating: 0, count: length)
        #expect(decryptor.open(record, sequence: 0, into: &output) == nil, "\(suite.name), \(length) bytes")
      }
    }
  }

  private func expectOpens(
    _ decryptor: RecordDecryptor, _ record: [UInt8], type: ContentType,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var output = [UInt8](repeating: 0, count: 1 << 10)
    let opened = decryptor.open(record, sequence: sequence, into: &output)
    #expect(opened?.type == type, sourceLocation: sourceLocation)
    #expect(opened.map { Array(output[$0.start..<$0.start + $0.length]) } == content, sourceLocation: sourceLocation)
    #expect(decryptor.open(record, sequence: sequence ^ 1 << 63, into: &output) == nil, sourceLocation: sourceLocation)
    for place in record.indices where place < 3 || place > 4 {
      var damaged = record
      damaged[place] ^= 0x80
      #expect(
        decryptor.open(damaged, sequence: sequence, into: &output) == nil, "byte \(place)",
        sourceLocation: sourceLocation)
    }
  }
}

/// What an AEAD makes of `content`: the ciphertext and the tag.
private func seal(
  _ name: String, key: [UInt8], nonce: [UInt8], associated: [UInt8], _ content: [UInt8], tagLength: Int
) -> [UInt8]? {
  guard let cipher = unsafe EVP_CIPHER_fetch(nil, name, nil), let context = unsafe EVP_CIPHER_CTX_new() else {
    return nil
  }
  defer {
    unsafe EVP_CIPHER_free(cipher)
    unsafe EVP_CIPHER_CTX_free(context)
  }
  var length: Int32 = 0
  var sealed = [UInt8](repeating: 0, count: content.count)
  var tag = [UInt8](repeating: 0, count: tagLength)
  let isCCM = name.hasSuffix("CCM")
  // Safe: every buffer has the length given beside it.
  guard unsafe EVP_EncryptInit_ex(context, cipher, nil, nil, nil) == 1,
    unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(nonce.count), nil) == 1,
    unsafe !isCCM || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), nil) == 1,
    unsafe EVP_EncryptInit_ex(context, nil, nil, key, nonce) == 1,
    unsafe !isCCM || EVP_EncryptUpdate(context, nil, &length, nil, Int32(content.count)) == 1,
    unsafe EVP_EncryptUpdate(context, nil, &length, associated, Int32(associated.count)) == 1,
    unsafe EVP_EncryptUpdate(context, &sealed, &length, content, Int32(content.count)) == 1,
    unsafe EVP_EncryptFinal_ex(context, nil, &length) == 1,
    unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), &tag) == 1
  else { return nil }
  return sealed + tag
}
