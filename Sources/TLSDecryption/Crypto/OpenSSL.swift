import COpenSSL

/// libcrypto with the algorithms of old recordings too: a library context of its own, so that nothing changes for other
/// users of OpenSSL in the process.
enum OpenSSL {
  /// Safe to share: a library context is made for use by many threads, and this one is never changed or freed.
  nonisolated(unsafe) private static let context: OpaquePointer? = {
    guard let context = unsafe OSSL_LIB_CTX_new() else { return nil }
    _ = unsafe OSSL_PROVIDER_load(context, "default")
    return unsafe context
  }()

  /// Whether RC4, single DES and SEED can be had: they are in a module of their own.
  static let hasLegacyProvider: Bool = {
    let provider = unsafe OSSL_PROVIDER_load(context, "legacy")
    if unsafe provider == nil { ERR_clear_error() }
    return unsafe provider != nil
  }()

  /// The cipher of that name, or `nil`; free it.
  static func fetchCipher(_ name: String) -> OpaquePointer? {
    _ = hasLegacyProvider
    let cipher = unsafe EVP_CIPHER_fetch(context, name, nil)
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
    let digest = unsafe EVP_MD_fetch(context, name, nil)
    if unsafe digest == nil { ERR_clear_error() }
    return unsafe digest
  }

  static func fetchMAC(_ name: String) -> OpaquePointer? { unsafe EVP_MAC_fetch(context, name, nil) }

  /// A context for a key derivation function ("TLS1-PRF", "HKDF"); free it.
  static func derivation(_ name: String) -> OpaquePointer? {
    let derivation = unsafe EVP_PKEY_CTX_new_from_name(context, name, nil)
    guard let derivation = unsafe derivation, unsafe EVP_PKEY_derive_init(derivation) > 0 else {
      unsafe EVP_PKEY_CTX_free(derivation)
      return nil
    }
    return unsafe derivation
  }

  /// A context for an operation with a key; free it.
  static func operation(_ key: OpaquePointer) -> OpaquePointer? { unsafe EVP_PKEY_CTX_new_from_pkey(context, key, nil) }

  /// The private key of a PEM text; free it. The pass phrase is asked for only if the key is encrypted.
  static func privateKey(_ pem: OpaquePointer, _ request: inout PassPhraseRequest) -> OpaquePointer? {
    _ = hasLegacyProvider
    // Safe: OpenSSL calls back during the call only, with the pointer given here.
    return unsafe withUnsafeMutablePointer(to: &request) { request in
      unsafe PEM_read_bio_PrivateKey_ex(
        pem, nil,
        { buffer, size, _, data in
          guard let request = unsafe data?.assumingMemoryBound(to: PassPhraseRequest.self), let buffer = unsafe buffer
          else { return -1 }
          unsafe request.pointee.wasAsked = true
          guard let phrase = unsafe request.pointee.passPhrase, phrase.count <= Int(size) else { return -1 }
          for (index, byte) in phrase.enumerated() { unsafe buffer[index] = CChar(bitPattern: byte) }
          return Int32(phrase.count)
        }, request, context, nil)
    }
  }

  /// What OpenSSL says went wrong, the oldest error first; the queue is empty afterwards.
  static func takeErrorText() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "no reason given" }
    // Safe: a string constant of the library.
    return unsafe String(cString: text)
  }
}

/// What OpenSSL is told when it wants a pass phrase.
struct PassPhraseRequest {
  var passPhrase: [UInt8]?
  var wasAsked = false
}
