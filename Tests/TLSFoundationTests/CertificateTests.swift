import COpenSSL
import TLSFoundation
import Testing

@Suite("Certificates")
struct CertificateTests {
  /// A certificate in DER whose subject has these parts, in this order; it is its own issuer and holds an hour.
  private func der(_ subject: [(String, String)]) throws -> [UInt8] {
    let key = unsafe try #require(unsafe apnscope_EVP_EC_gen("P-256"))
    defer { unsafe EVP_PKEY_free(key) }
    let certificate = unsafe try #require(unsafe X509_new())
    defer { unsafe X509_free(certificate) }
    let name = unsafe X509_get_subject_name(certificate)
    for (part, text) in subject {
      let isAdded = unsafe X509_NAME_add_entry_by_txt(name, part, MBSTRING_UTF8, text, -1, -1, 0)
      try #require(isAdded == 1)
    }
    unsafe X509_gmtime_adj(X509_getm_notBefore(certificate), 0)
    unsafe X509_gmtime_adj(X509_getm_notAfter(certificate), 3_600)
    unsafe X509_set_issuer_name(certificate, name)
    unsafe X509_set_pubkey(certificate, key)
    let length = unsafe X509_sign(certificate, key, EVP_sha256())
    try #require(length > 0)
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_X509(certificate, &bytes)
    defer { unsafe CRYPTO_free(bytes, nil, 0) }
    return unsafe Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
  }

  @Test(
    "The subject has its parts in the certificate's order, escaped",
    arguments: [
      ([("UID", "com.example.app"), ("CN", "Push")], "UID=com.example.app,CN=Push", "com.example.app"),
      ([("CN", "Push"), ("UID", "a"), ("UID", "b")], "CN=Push,UID=a,UID=b", "a"),
      ([("CN", "a, b+c=\"d\"é")], #"CN=a\, b\+c=\"d\"é"#, nil), ([], "", nil),
    ] as [([(String, String)], String, String?)])
  func subjects(parts: [(String, String)], subject: String, topic: String?) throws {
    let certificate = try #require(Certificate(der: try der(parts)))
    #expect(certificate.subject == subject)
    let named = unsafe Certificate.topic(of: certificate.pointer)
    #expect(named == topic)
  }

  @Test("Of a long subject the beginning is kept")
  func longSubject() throws {
    let parts = (0..<40).map { _ in ("CN", String(repeating: "a", count: 60)) }
    let certificate = try #require(Certificate(der: try der(parts)))
    #expect(certificate.subject.utf8.count == 1_024 && certificate.subject.hasPrefix("CN=aaa"))
  }

  @Test("It tells its names, its end and its key")
  func details() throws {
    let certificate = try #require(Certificate(der: try der([("CN", "gateway.example")])))
    #expect(certificate.isFor("gateway.example") && !certificate.isFor("other.example"))
    let now = Int(time(nil))
    #expect((now + 3_500...now + 3_601).contains(certificate.notAfterUnixSeconds))
    let isCurve = unsafe certificate.withPublicKey { unsafe EVP_PKEY_is_a($0, "EC") == 1 }
    #expect(isCurve == true)
  }

  @Test("Other bytes are no certificate")
  func damaged() throws {
    let whole = try der([("CN", "a")])
    for bytes in [[], [0x30], Array(whole.dropLast(whole.count / 2)), Array(whole.dropFirst())] as [[UInt8]] {
      #expect(Certificate(der: bytes) == nil)
      #expect(ERR_peek_error() == 0)
    }
  }
}
