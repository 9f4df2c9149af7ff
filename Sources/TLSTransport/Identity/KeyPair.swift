import COpenSSL
import TLSFoundation

/// The kinds of keys that are made.
public enum KeyKind: String, Sendable, CaseIterable {
  /// ECDSA on the curve P-256.
  case p256
  /// RSA with 2048 bits, which suites with RSA key exchange need.
  case rsa2048
}

/// A private key with its public half.
///
/// `@unchecked Sendable` is valid because the key is complete when this object is made, and no call sets anything in it.
/// The interleavings that were looked at, of any two threads with the same key:
/// - Both sign or compare (`X509_sign`, `X509_verify`, `X509_check_private_key`, handshakes of connections whose context
///   has it): each operation has a context of its own; what a key caches for its provider, and an RSA key's blinding, is
///   under locks of OpenSSL (openssl-threads(7): updates of cached values are done with locks).
/// - One writes it (`pem()`, `rehomed(as:)`): these only read.
/// - One drops its last reference: `EVP_PKEY_free` counts down atomically, and contexts have references of their own.
@safe final class KeyPair: @unchecked Sendable {
  /// Owned by this object.
  let pointer: OpaquePointer

  /// Takes ownership of the caller's reference.
  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  /// Makes a new key.
  init(_ kind: KeyKind) throws(TLSError) {
    let made = unsafe kind == .p256 ? apnscope_EVP_EC_gen("P-256") : apnscope_EVP_RSA_gen(2_048)
    guard let made = unsafe made else { throw .fromOpenSSL(.credentials, "no key can be made") }
    unsafe pointer = made
  }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// The first private key in a PEM text, PKCS#1, SEC 1 or PKCS#8, encrypted or not; other content is skipped.
  static func first(in source: CredentialSource, passPhrase: [UInt8]?) throws(TLSError) -> KeyPair {
    let text = try MemoryText(source.bytes)
    var request = PassPhraseRequest(passPhrase)
    ERR_clear_error()
    let read = unsafe request.readPrivateKey(text.pointer)
    guard let read = unsafe read else {
      if request.wasAsked {
        throw source.passPhraseError(passPhrase)
      }
      // OpenSSL calls both "unsupported".
      if !String(decoding: source.bytes, as: UTF8.self).contains("PRIVATE KEY-----") {
        ERR_clear_error()
        throw TLSError(.credentials, "\(source.name): holds no private key in PEM")
      }
      throw .fromOpenSSL(.credentials, "\(source.name): the private key cannot be read")
    }
    ERR_clear_error()
    return try unsafe KeyPair(owning: read).rehomed(as: source.name)
  }

  /// A copy in the process's own library context, where TLS uses it.
  ///
  /// - Parameter name: what errors call it.
  func rehomed(as name: String) throws(TLSError) -> KeyPair {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_PrivateKey(pointer, &bytes)
    defer { unsafe CRYPTO_clear_free(bytes, Int(max(count, 0)), nil, 0) }
    // Safe: OpenSSL moves the pointer it is given within the bytes it made.
    var position = unsafe UnsafePointer(bytes)
    guard count > 0, let copy = unsafe d2i_AutoPrivateKey(nil, &position, Int(count)) else {
      throw .fromOpenSSL(.credentials, "\(name): the private key is of a kind that cannot be used")
    }
    ERR_clear_error()
    return unsafe KeyPair(owning: copy)
  }

  /// PKCS#8, not encrypted.
  func pem() throws(TLSError) -> [UInt8] {
    unsafe try MemoryText.written("the key cannot be written") {
      unsafe PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) == 1
    }
  }

  func belongs(to certificate: Certificate) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_check_private_key(certificate.pointer, pointer) == 1
  }
}
