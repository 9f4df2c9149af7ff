import Bytes
import COpenSSL
import Glibc

/// An X.509 certificate.
///
/// `@unchecked Sendable` is valid because nothing is set in it once others have it (openssl-threads(7): objects are safe
/// as long as no call modifies them; what is cached in them, and references, are under OpenSSL's own locks and atomics).
/// The interleavings that were looked at, of any two threads with the same certificate:
/// - Both read (names, end, extensions, the public key, the DER encoding): no call sets anything. The public key is
///   decoded when the certificate is; extensions are decoded anew in each call.
/// - One reads and the other gives it to an `SSL_CTX` (`TLSContext.init`) or a chain (`Identity.init`), which takes a
///   reference and caches what extensions say: under the certificate's lock.
/// - One drops its last reference: `X509_free` counts down atomically, and frees after the last.
/// - It is being made (`CertificateProfile.certificate`): one thread has it until it is signed.
@safe package final class Certificate: @unchecked Sendable {
  /// Owned by this object.
  package let pointer: OpaquePointer

  /// Takes ownership of the caller's reference.
  package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  /// `nil` when the bytes are not a certificate in DER.
  package convenience init?(der: [UInt8]) {
    // Safe: the bytes are read within their length; OpenSSL moves the pointer, which is not used again.
    let parsed = unsafe der.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      return unsafe d2i_X509(nil, &position, bytes.count)
    }
    guard let parsed = unsafe parsed else {
      ERR_clear_error()
      return nil
    }
    unsafe self.init(owning: parsed)
  }

  deinit { unsafe X509_free(pointer) }

  package func withPublicKey(_ body: (OpaquePointer) -> Bool) -> Bool? {
    guard let key = unsafe X509_get0_pubkey(pointer) else {
      ERR_clear_error()
      return nil
    }
    return unsafe body(key)
  }

  /// Whether it is good for a server of that name or address.
  package func isFor(_ serverName: String) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_check_ip_asc(pointer, serverName, 0) == 1
      || X509_check_host(pointer, serverName, serverName.utf8.count, 0, nil) == 1
  }

  /// The end of the certificate's validity, in seconds since 1970.
  package var notAfterUnixSeconds: Int {
    var end = unsafe tm()
    guard unsafe ASN1_TIME_to_tm(X509_get0_notAfter(pointer), &end) == 1 else {
      ERR_clear_error()
      return 0
    }
    return unsafe timegm(&end)
  }

  /// Whether it has an extension with that object identifier.
  package func hasExtension(_ identifier: String) -> Bool {
    defer { ERR_clear_error() }
    guard let object = unsafe OBJ_txt2obj(identifier, 1) else { return false }
    defer { unsafe ASN1_OBJECT_free(object) }
    return unsafe X509_get_ext_by_OBJ(pointer, object, -1) >= 0
  }

  /// Apple's extensions of a certificate for the development and the production environment.
  package static let developmentExtension = "1.2.840.113635.100.6.3.1"
  package static let productionExtension = "1.2.840.113635.100.6.3.2"

  // MARK: names

  /// Bytes of a subject that are kept: a peer chooses how long its own is.
  private static let maximumSubject = 1_024

  /// The subject with its parts in the certificate's order, escaped as RFC 4514 says:
  /// `UID=com.example.app,CN=Apple Push Services: com.example.app`.
  package var subject: String { unsafe Self.subject(of: pointer) }

  /// The SHA-256 of the public key of any X509, as its SubjectPublicKeyInfo has it; `nil` if it cannot be had.
  package static func publicKeyDigest(of certificate: OpaquePointer) -> [UInt8]? {
    defer { ERR_clear_error() }
    let key = unsafe X509_get_X509_PUBKEY(certificate)
    let length = unsafe Int(i2d_X509_PUBKEY(key, nil))
    guard length > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: length)
    // Safe: OpenSSL writes as many bytes as it has said; it moves the pointer, which is not used again.
    let written = unsafe bytes.withUnsafeMutableBufferPointer { memory in
      var position = memory.baseAddress
      return unsafe Int(i2d_X509_PUBKEY(key, &position))
    }
    return written == length ? SHA256.digest(bytes.span.bytes) : nil
  }

  /// The subject of any X509.
  package static func subject(of certificate: OpaquePointer) -> String {
    defer { ERR_clear_error() }
    guard let name = unsafe X509_get_subject_name(certificate), let text = unsafe BIO_new(BIO_s_mem()) else {
      return ""
    }
    defer { unsafe BIO_free(text) }
    guard unsafe X509_NAME_print_ex(text, name, 0, apnscope_name_flags) >= 0 else { return "" }
    var start: UnsafeMutablePointer<CChar>?
    let length = unsafe apnscope_BIO_get_mem_data(text, &start)
    // Safe: the text is in the BIO's memory until that is freed, and is copied here.
    return unsafe String(
      decoding: UnsafeRawBufferPointer(start: start, count: min(Int(length), maximumSubject)), as: UTF8.self)
  }

  /// The first topic that a provider's X509 names; `nil` when it has none.
  package static func topic(of certificate: OpaquePointer) -> String? {
    unsafe CertificateSubject(subject(of: certificate)).topics.first
  }

  /// Apple's extension with the topics of a certificate for several: a sequence of topics, each before a sequence of the
  /// kinds of pushes that it is for.
  package static let topicsExtension = "1.2.840.113635.100.6.3.6"

  /// All topics that a provider's X509 names: those of the subject, and further ones of the extension.
  package static func topics(of certificate: OpaquePointer) -> [String] {
    var topics = unsafe CertificateSubject(subject(of: certificate)).topics
    defer { ERR_clear_error() }
    guard let object = unsafe OBJ_txt2obj(topicsExtension, 1) else { return topics }
    defer { unsafe ASN1_OBJECT_free(object) }
    let place = unsafe X509_get_ext_by_OBJ(certificate, object, -1)
    guard place >= 0, let value = unsafe X509_EXTENSION_get_data(X509_get_ext(certificate, place)) else {
      return topics
    }
    // Safe: the bytes of the extension, within their length, are copied.
    let der = unsafe Array(
      UnsafeBufferPointer(start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value))))
    for topic in extensionTopics(der) where !topics.contains(topic) { topics.append(topic) }
    return topics
  }

  /// The texts of the outer sequence; at most 1,000, as a peer chooses its certificate.
  static func extensionTopics(_ der: [UInt8]) -> [String] {
    var topics: [String] = []
    guard let outer = element(der[...]), outer.tag == 0x30 else { return [] }
    var rest = outer.content
    while topics.count < 1_000, let next = element(rest) {
      // UTF8String, PrintableString or IA5String.
      if [0x0c, 0x13, 0x16].contains(next.tag) { topics.append(String(decoding: next.content, as: UTF8.self)) }
      rest = next.rest
    }
    return topics
  }

  /// The first element of DER with a definite length.
  private static func element(
    _ der: ArraySlice<UInt8>
  ) -> (tag: UInt8, content: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
    guard der.count >= 2 else { return nil }
    let (tag, first) = (der[der.startIndex], der[der.startIndex + 1])
    var (start, length) = (der.startIndex + 2, Int(first))
    if first >= 0x80 {
      let count = Int(first & 0x7f)
      guard (1...3).contains(count), der.endIndex - start >= count else { return nil }
      length = der[start..<start + count].reduce(0) { $0 << 8 | Int($1) }
      start += count
    }
    guard der.endIndex - start >= length else { return nil }
    return (tag, der[start..<start + length], der[(start + length)...])
  }

  /// The first entry of a subject with this OpenSSL NID; `nil` without one.
  package static func text(of certificate: OpaquePointer, _ number: Int32) -> String? {
    defer { ERR_clear_error() }
    guard let name = unsafe X509_get_subject_name(certificate) else { return nil }
    let index = unsafe X509_NAME_get_index_by_NID(name, number, -1)
    guard index >= 0, let entry = unsafe X509_NAME_get_entry(name, index) else { return nil }
    var text: UnsafeMutablePointer<UInt8>?
    let count = unsafe ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry))
    guard count >= 0 else { return nil }
    defer { unsafe CRYPTO_free(text, nil, 0) }
    // Safe: OpenSSL made `count` bytes, which are copied before they are freed.
    return unsafe String(decoding: UnsafeRawBufferPointer(start: text, count: Int(count)), as: UTF8.self)
  }
}
