import COpenSSL

/// The key derivation functions of all versions, each by libcrypto. They return nothing when OpenSSL refuses.
enum KeyDerivation {
  /// The pseudo-random function of TLS 1.0 to 1.2 (RFC 2246 and 5246, section 5).
  static func prf(_ hash: HashFunction, secret: [UInt8], label: String, seed: [UInt8], length: Int) -> [UInt8] {
    guard let context = unsafe OpenSSL.derivation("TLS1-PRF") else { return refused() }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard let digest = unsafe OpenSSL.fetchDigest(hash.rawValue) else { return refused() }
    defer { unsafe EVP_MD_free(digest) }
    let seed = Array(label.utf8) + seed
    guard unsafe EVP_PKEY_CTX_set_tls1_prf_md(context, digest) > 0,
      unsafe EVP_PKEY_CTX_set1_tls1_prf_secret(context, secret, Int32(secret.count)) > 0,
      unsafe EVP_PKEY_CTX_add1_tls1_prf_seed(context, seed, Int32(seed.count)) > 0
    else { return refused() }
    return unsafe derive(context, length)
  }

  /// HKDF-Expand-Label of TLS 1.3 (RFC 8446, section 7.1); drafts before the 20th had another prefix.
  static func expandLabel(
    _ hash: HashFunction, secret: [UInt8], label: String, context data: [UInt8] = [], length: Int,
    prefix: String = "tls13 "
  ) -> [UInt8] {
    guard let context = unsafe OpenSSL.derivation("HKDF") else { return refused() }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard let digest = unsafe OpenSSL.fetchDigest(hash.rawValue) else { return refused() }
    defer { unsafe EVP_MD_free(digest) }
    let label = Array((prefix + label).utf8)
    // length u16 | label length u8 | label | context length u8 | context
    let info = [UInt8(length >> 8), UInt8(length & 0xff), UInt8(label.count)] + label + [UInt8(data.count)] + data
    guard unsafe EVP_PKEY_CTX_set_hkdf_mode(context, Int32(EVP_PKEY_HKDEF_MODE_EXPAND_ONLY)) > 0,
      unsafe EVP_PKEY_CTX_set_hkdf_md(context, digest) > 0,
      unsafe EVP_PKEY_CTX_set1_hkdf_key(context, secret, Int32(secret.count)) > 0,
      unsafe EVP_PKEY_CTX_add1_hkdf_info(context, info, Int32(info.count)) > 0
    else { return refused() }
    return unsafe derive(context, length)
  }

  /// Key derivation of SSL 3.0: MD5(secret ‖ SHA1("A" ‖ secret ‖ seed)) ‖ MD5(secret ‖ SHA1("BB" ‖ secret ‖ seed)) ‖ …
  /// (RFC 6101, section 6).
  static func ssl3(secret: [UInt8], seed: [UInt8], length: Int) -> [UInt8] {
    var result: [UInt8] = []
    var round: UInt8 = 1
    while result.count < length {
      let salt = [UInt8](repeating: 0x40 + round, count: Int(round))
      result += HashFunction.md5.hash(secret, HashFunction.sha1.hash(salt, secret, seed))
      round += 1
      if round > 26 { return [] }
    }
    return Array(result.prefix(length))
  }

  private static func derive(_ context: OpaquePointer, _ length: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: length)
    var written = length
    // Safe: `result` has `written` bytes of room.
    guard unsafe EVP_PKEY_derive(context, &result, &written) > 0, written == length else { return refused() }
    return result
  }

  private static func refused() -> [UInt8] {
    ERR_clear_error()
    return []
  }
}
