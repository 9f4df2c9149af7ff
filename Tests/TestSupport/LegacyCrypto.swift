import COpenSSL

/// The primitives of old conversations, from a library context of its own: RC4 and DES need OpenSSL's legacy provider,
/// and the process's default context, which the product uses, stays as it is.
@safe final class LegacyCrypto: @unchecked Sendable {
  // Safe because the context is never changed after `init`, and OpenSSL locks what it fetches into it.
  fileprivate let context: OpaquePointer

  private static let made = Result { try LegacyCrypto() }

  /// Throws where OpenSSL's legacy provider is not installed; comes before anything of this file is used.
  static func load() throws { _ = try made.get() }

  static var shared: LegacyCrypto {
    guard case .success(let crypto) = made else { preconditionFailure("used without load()") }
    return crypto
  }

  private init() throws {
    guard let context = unsafe OSSL_LIB_CTX_new(), unsafe OSSL_PROVIDER_load(context, "default") != nil,
      unsafe OSSL_PROVIDER_load(context, "legacy") != nil
    else { throw ConversationError("no legacy provider: \(openSSLProblem())") }
    unsafe self.context = context
  }

  func digest(_ name: String, _ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 64)
    var count = 0
    let isMade = unsafe EVP_Q_digest(context, name, nil, bytes, bytes.count, &digest, &count)
    precondition(isMade == 1, "digest \(name): \(openSSLProblem())")
    return Array(digest[..<count])
  }

  func hmac(_ digest: String, key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 64)
    var count = 0
    let made = unsafe EVP_Q_mac(
      context, "HMAC", nil, digest, nil, key, key.count, bytes, bytes.count, &code, code.count, &count)
    precondition(unsafe made != nil, "HMAC-\(digest): \(openSSLProblem())")
    return Array(code[..<count])
  }

  /// The PRF of TLS 1.0 and 1.1 (digest `MD5-SHA1`) or 1.2.
  func prf(_ digest: String, secret: [UInt8], label: String, seed: [UInt8], count: Int) -> [UInt8] {
    let derivation = unsafe EVP_PKEY_CTX_new_from_name(context, "TLS1-PRF", nil)
    defer { unsafe EVP_PKEY_CTX_free(derivation) }
    let wholeSeed = Array(label.utf8) + seed
    let hash = unsafe digest == "SHA256" ? EVP_sha256() : EVP_md5_sha1()
    var output = [UInt8](repeating: 0, count: count)
    var outputCount = count
    precondition(
      unsafe EVP_PKEY_derive_init(derivation) == 1 && EVP_PKEY_CTX_set_tls1_prf_md(derivation, hash) == 1
        && EVP_PKEY_CTX_set1_tls1_prf_secret(derivation, secret, Int32(secret.count)) == 1
        && EVP_PKEY_CTX_add1_tls1_prf_seed(derivation, wholeSeed, Int32(wholeSeed.count)) == 1
        && EVP_PKEY_derive(derivation, &output, &outputCount) == 1, "TLS1-PRF: \(openSSLProblem())")
    return output
  }
}

/// A cipher that goes on from record to record: RC4's state or CBC's last block.
@safe final class LegacyCipher {
  // Safe because the context is owned by this value.
  private let context: OpaquePointer

  init(_ name: String, key: [UInt8], iv: [UInt8]) {
    let cipher = unsafe EVP_CIPHER_fetch(LegacyCrypto.shared.context, name, nil)
    defer { unsafe EVP_CIPHER_free(cipher) }
    guard let context = unsafe EVP_CIPHER_CTX_new(),
      unsafe EVP_EncryptInit_ex2(context, cipher, key, iv.isEmpty ? nil : iv, nil) == 1
    else { preconditionFailure("cipher \(name): \(openSSLProblem())") }
    unsafe EVP_CIPHER_CTX_set_padding(context, 0)
    unsafe self.context = context
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Encrypts whole blocks.
  func encrypt(_ bytes: [UInt8]) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: bytes.count + 32)
    var count: Int32 = 0
    let isMade = unsafe EVP_EncryptUpdate(context, &output, &count, bytes, Int32(bytes.count))
    precondition(isMade == 1 && Int(count) == bytes.count, "not whole blocks")
    return Array(output[..<bytes.count])
  }
}

extension TLSIdentity {
  /// RSA with PKCS#1 padding, to this identity.
  func encrypt(_ bytes: [UInt8]) -> [UInt8] {
    let operation = unsafe EVP_PKEY_CTX_new(key, nil)
    defer { unsafe EVP_PKEY_CTX_free(operation) }
    var output = [UInt8](repeating: 0, count: 512)
    var count = output.count
    precondition(
      unsafe EVP_PKEY_encrypt_init(operation) == 1 && EVP_PKEY_CTX_set_rsa_padding(operation, RSA_PKCS1_PADDING) == 1
        && EVP_PKEY_encrypt(operation, &output, &count, bytes, bytes.count) == 1, openSSLProblem())
    return Array(output[..<count])
  }

  /// An RSA signature of a digest: SHA-256's, or MD5's and SHA-1's together.
  func sign(digest: [UInt8]) -> [UInt8] {
    let operation = unsafe EVP_PKEY_CTX_new(key, nil)
    defer { unsafe EVP_PKEY_CTX_free(operation) }
    var output = [UInt8](repeating: 0, count: 512)
    var count = output.count
    let kind = unsafe digest.count == 36 ? EVP_md5_sha1() : EVP_sha256()
    precondition(
      unsafe EVP_PKEY_sign_init(operation) == 1 && EVP_PKEY_CTX_set_rsa_padding(operation, RSA_PKCS1_PADDING) == 1
        && EVP_PKEY_CTX_set_signature_md(operation, kind) == 1
        && EVP_PKEY_sign(operation, &output, &count, digest, digest.count) == 1, openSSLProblem())
    return Array(output[..<count])
  }
}
