import COpenSSL
import TLSFoundation

/// A server's RSA key, which decrypts the premaster secrets that clients encrypted with its public key.
///
/// It decrypts only suites with RSA key exchange, up to TLS 1.2.
@safe public final class PrivateKey {
  /// Safe because this object creates and owns it, and `deinit` frees it.
  private let key: OpaquePointer

  /// Reads PKCS#1 or PKCS#8 in PEM, encrypted or not.
  ///
  /// - Parameters:
  ///   - pem: the text of the file.
  ///   - passPhrase: the pass phrase; ignored if the key is not encrypted.
  /// - Throws: a `SecretsError` with OpenSSL's message if it is not a key, if the pass phrase is missing or wrong, or
  ///   if the key is not RSA.
  public init(pem: [UInt8], passPhrase: [UInt8]?) throws(SecretsError) {
    _ = OpenSSL.takeErrorText()
    var request = PassPhraseRequest(passPhrase)
    // Safe: the BIO reads the bytes where they are, and is freed before the closure ends.
    let key = unsafe pem.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      guard let text = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer { unsafe BIO_free(text) }
      return unsafe request.readPrivateKey(text)
    }
    guard let key = unsafe key else {
      let reason = OpenSSL.takeErrorText()
      guard request.wasAsked else { throw SecretsError("is not a private key in PEM: \(reason)") }
      throw SecretsError(
        passPhrase == nil ? "is encrypted, and no pass phrase was given" : "cannot be decrypted with this pass phrase")
    }
    unsafe self.key = key
    guard unsafe EVP_PKEY_is_a(key, "RSA") == 1 else {
      throw SecretsError("is not an RSA key; only RSA key exchange can be opened with the server's key")
    }
  }

  deinit { unsafe EVP_PKEY_free(key) }

  /// The premaster secret in a ClientKeyExchange; `nil` when this key did not encrypt it.
  func decrypt(_ encrypted: [UInt8]) -> [UInt8]? {
    guard let context = unsafe OpenSSL.operation(key) else { return nil }
    defer {
      unsafe EVP_PKEY_CTX_free(context)
      ERR_clear_error()
    }
    var result = [UInt8](repeating: 0, count: max(encrypted.count, Int(unsafe EVP_PKEY_get_size(key))))
    var length = result.count
    // Safe: `result` has `length` bytes of room, at least the size of the key's modulus.
    guard unsafe EVP_PKEY_decrypt_init(context) > 0,
      unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) > 0,
      unsafe EVP_PKEY_decrypt(context, &result, &length, encrypted, encrypted.count) > 0, length == 48
    else { return nil }
    return Array(result.prefix(length))
  }

  /// Whether this is the key of that certificate; `nil` when the certificate cannot be read.
  func matches(_ certificate: Certificate) -> Bool? {
    unsafe certificate.withPublicKey { unsafe EVP_PKEY_eq(key, $0) == 1 }
  }
}
