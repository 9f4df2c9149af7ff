import COpenSSL
import Glibc

/// An X.509 certificate.
@safe final class Certificate: @unchecked Sendable {
  /// Sendable because this object owns it, nobody changes it, and OpenSSL counts references with atomics.
  let pointer: OpaquePointer

  /// Takes over the caller's reference.
  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe X509_free(pointer) }

  /// All certificates of a PEM text, in its order; what else is in it is passed over.
  static func all(in source: CredentialSource) throws(TLSError) -> [Certificate] {
    let text = try MemoryText(source.bytes)
    var certificates: [Certificate] = []
    ERR_clear_error()
    // Certificates are never encrypted, so nobody is asked for a pass phrase.
    while let next = unsafe PEM_read_bio_X509(text.pointer, nil, { _, _, _, _ in -1 }, nil) {
      unsafe certificates.append(Certificate(owning: next))
    }
    guard ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE else {
      throw .fromOpenSSL(.credentials, "\(source.name): holds a damaged certificate")
    }
    ERR_clear_error()
    guard !certificates.isEmpty else { throw TLSError(.credentials, "\(source.name): holds no certificate in PEM") }
    return certificates
  }

  /// The first certificate of a PEM file.
  static func first(in file: String) throws(TLSError) -> Certificate {
    let source = try CredentialSource(file: file)
    guard let first = try all(in: source).first else {
      throw TLSError(.credentials, "\(source.name): holds no certificate in PEM")
    }
    return first
  }

  /// A copy in the process's own library context, whatever context this one was read in.
  ///
  /// - Parameter name: what errors call it.
  func rehomed(as name: String) throws(TLSError) -> Certificate {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_X509(pointer, &bytes)
    defer { unsafe CRYPTO_free(bytes, nil, 0) }
    // Safe: OpenSSL moves the pointer it is given within the bytes it made.
    var position = unsafe UnsafePointer(bytes)
    guard count > 0, let copy = unsafe d2i_X509(nil, &position, Int(count)) else {
      throw .fromOpenSSL(.credentials, "\(name): a certificate cannot be read")
    }
    return unsafe Certificate(owning: copy)
  }

  func pem() throws(TLSError) -> [UInt8] {
    unsafe try MemoryText.written("the certificate cannot be written") { unsafe PEM_write_bio_X509($0, pointer) == 1 }
  }

  /// Whether that key signed it.
  func isSigned(by key: KeyPair) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_verify(pointer, key.pointer) == 1
  }

  /// Whether it is good for a server of that name or address.
  func isFor(_ serverName: String) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_check_ip_asc(pointer, serverName, 0) == 1
      || X509_check_host(pointer, serverName, serverName.utf8.count, 0, nil) == 1
  }

  /// When it ends, in seconds since 1970.
  var notAfterUnixSeconds: Int {
    var end = unsafe tm()
    guard unsafe ASN1_TIME_to_tm(X509_get0_notAfter(pointer), &end) == 1 else {
      ERR_clear_error()
      return 0
    }
    return unsafe timegm(&end)
  }

  // MARK: names

  /// Bytes of a subject that are kept: a peer chooses how long its own is.
  private static let maximumSubject = 1_024

  /// The subject of any X509 with its parts in the certificate's order, escaped as RFC 4514 says:
  /// `UID=com.example.app,CN=Apple Push Services: com.example.app`.
  static func subject(of certificate: OpaquePointer) -> String {
    defer { ERR_clear_error() }
    guard let name = unsafe X509_get_subject_name(certificate), let text = try? MemoryText(),
      (unsafe X509_NAME_print_ex(text.pointer, name, 0, apnscope_name_flags)) >= 0
    else { return "" }
    return String(decoding: text.bytes.prefix(maximumSubject), as: UTF8.self)
  }

  /// The topic that a provider's X509 names, its subject's first UID; `nil` when it has none.
  static func topic(of certificate: OpaquePointer) -> String? { unsafe text(of: certificate, NID_userId) }

  /// The first part of a subject with that number in OpenSSL; `nil` when there is none.
  static func text(of certificate: OpaquePointer, _ number: Int32) -> String? {
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
