import COpenSSL
import TLSFoundation

/// OpenSSL's algorithms for decrypting TLS, from a library context that includes those of old recordings.
enum OpenSSL {
  /// The cipher of that name, or `nil`; free it.
  static func fetchCipher(_ name: String) -> OpaquePointer? {
    let cipher = unsafe EVP_CIPHER_fetch(LegacyProvider.context, name, nil)
    if unsafe cipher == nil { ERR_clear_error() }
    return unsafe cipher
  }

  static func hasCipher(_ name: String) -> Bool {
    let cipher = unsafe fetchCipher(name)
    defer { unsafe EVP_CIPHER_free(cipher) }
    return unsafe cipher != nil
  }

  /// The hash of that name, or `nil`; free it.
  static func fetchDigest(_ name: String) -> OpaquePointer? {
    let digest = unsafe EVP_MD_fetch(LegacyProvider.context, name, nil)
    if unsafe digest == nil { ERR_clear_error() }
    return unsafe digest
  }

  static func fetchMAC(_ name: String) -> OpaquePointer? { unsafe EVP_MAC_fetch(LegacyProvider.context, name, nil) }

  /// A context for a key derivation function ("TLS1-PRF", "HKDF"); free it.
  static func derivation(_ name: String) -> OpaquePointer? {
    let derivation = unsafe EVP_PKEY_CTX_new_from_name(LegacyProvider.context, name, nil)
    guard let derivation = unsafe derivation, unsafe EVP_PKEY_derive_init(derivation) > 0 else {
      unsafe EVP_PKEY_CTX_free(derivation)
      return nil
    }
    return unsafe derivation
  }

  /// A context for an operation with a key; free it.
  static func operation(_ key: OpaquePointer) -> OpaquePointer? {
    unsafe EVP_PKEY_CTX_new_from_pkey(LegacyProvider.context, key, nil)
  }

  /// OpenSSL's error texts, the oldest first; the queue is empty afterwards.
  static func takeErrorText() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "no reason given" }
    // Safe: a string constant of the library.
    return unsafe String(cString: text)
  }
}
