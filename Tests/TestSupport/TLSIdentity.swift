import COpenSSL

/// A throw-away private key and a self-signed certificate for it. Each is made once per process; only the keys differ
/// from run to run.
@safe public final class TLSIdentity: @unchecked Sendable {
  // Safe because both objects are owned by this value, never changed after `init`, and counted by OpenSSL with atomics.
  let key: OpaquePointer
  let certificate: OpaquePointer

  public enum KeyKind: String, Sendable, CaseIterable {
    /// 2048 bits.
    case rsa
    /// P-256.
    case ec
  }

  public static let rsaServer = try! TLSIdentity(.rsa, subject: [("CN", "gateway.push.apple.com")])
  public static let ecServer = try! TLSIdentity(.ec, subject: [("CN", "gateway.push.apple.com")])
  public static let rsaClient = try! TLSIdentity(.rsa, subject: providerSubject)
  public static let ecClient = try! TLSIdentity(.ec, subject: providerSubject)

  /// The subject of a provider's certificate, in the order of Apple's.
  public static let providerSubject = [
    ("UID", "com.example.app"), ("CN", "Apple Push Services: com.example.app"),
  ]

  public static func server(_ kind: KeyKind) -> TLSIdentity { kind == .rsa ? rsaServer : ecServer }
  public static func client(_ kind: KeyKind) -> TLSIdentity { kind == .rsa ? rsaClient : ecClient }

  /// Makes an identity; `subject` is short names and values in the order they stand in the certificate.
  public init(_ kind: KeyKind, subject: [(String, String)]) throws {
    let made = unsafe kind == .rsa ? apnscope_EVP_RSA_gen(2048) : apnscope_EVP_EC_gen("P-256")
    guard let made = unsafe made, let certificate = unsafe X509_new() else {
      throw ConversationError("no key: \(openSSLProblem())")
    }
    unsafe self.key = made
    unsafe self.certificate = certificate
    unsafe X509_set_version(certificate, 2)
    unsafe ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1)
    unsafe ASN1_TIME_set_string(X509_getm_notBefore(certificate), "20150101000000Z")
    unsafe ASN1_TIME_set_string(X509_getm_notAfter(certificate), "20350101000000Z")
    let name = unsafe X509_get_subject_name(certificate)
    for (field, value) in subject {
      unsafe X509_NAME_add_entry_by_txt(name, field, 0x1000, value, -1, -1, 0)  // MBSTRING_UTF8
    }
    unsafe X509_set_issuer_name(certificate, name)
    unsafe X509_set_pubkey(certificate, made)
    guard unsafe X509_sign(certificate, made, EVP_sha256()) > 0 else {
      throw ConversationError("no certificate: \(openSSLProblem())")
    }
  }

  deinit {
    unsafe X509_free(certificate)
    unsafe EVP_PKEY_free(key)
  }

  // MARK: as text

  public var certificatePEM: String { unsafe pem { unsafe PEM_write_bio_X509($0, certificate) } }

  /// The certificate's DER bytes.
  public var certificateDER: [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(unsafe i2d_X509(certificate, nil)))
    unsafe bytes.withUnsafeMutableBufferPointer {
      var cursor = $0.baseAddress
      _ = unsafe i2d_X509(certificate, &cursor)
    }
    return bytes
  }

  /// The key alone in the form of its kind: PKCS#1's `RSA PRIVATE KEY`, or `EC PRIVATE KEY`.
  public var traditionalKeyPEM: String {
    unsafe pem { unsafe PEM_write_bio_PrivateKey_traditional($0, key, nil, nil, 0, nil, nil) }
  }

  /// PKCS#8's `PRIVATE KEY`.
  public var pkcs8KeyPEM: String { unsafe pem { unsafe PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) } }

  /// PKCS#8's `ENCRYPTED PRIVATE KEY`, AES-256-CBC.
  public func encryptedPKCS8KeyPEM(passPhrase: String) -> String {
    unsafe pem {
      unsafe PEM_write_bio_PKCS8PrivateKey(
        $0, key, EVP_aes_256_cbc(), passPhrase, Int32(passPhrase.utf8.count), nil, nil)
    }
  }

  /// The form of `traditionalKeyPEM` with `Proc-Type: 4,ENCRYPTED`, AES-128-CBC.
  public func encryptedTraditionalKeyPEM(passPhrase: String) -> String {
    unsafe pem {
      unsafe PEM_write_bio_PrivateKey_traditional(
        $0, key, EVP_aes_128_cbc(), passPhrase, Int32(passPhrase.utf8.count), nil, nil)
    }
  }

  private func pem(_ write: (OpaquePointer?) -> Int32) -> String {
    let output = unsafe BIO_new(BIO_s_mem())
    defer { unsafe BIO_free(output) }
    precondition(unsafe write(output) == 1, "OpenSSL writes no PEM")
    var start: UnsafeMutablePointer<CChar>?
    let count = unsafe apnscope_BIO_get_mem_data(output, &start)
    let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
    return unsafe String(decoding: bytes, as: UTF8.self)
  }
}

/// The first reason in OpenSSL's error queue, which is emptied.
func openSSLProblem() -> String {
  let code = ERR_get_error()
  ERR_clear_error()
  guard code != 0 else { return "no reason given" }
  guard let reason = unsafe ERR_reason_error_string(code) else { return "error \(code)" }
  return unsafe String(cString: reason)
}
