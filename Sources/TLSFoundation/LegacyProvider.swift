import COpenSSL

/// libcrypto with the algorithms of old recordings and old files too: RC4 and single DES, and the 40-bit RC2 that
/// Keychain's PKCS#12 files are encrypted with.
///
/// It is a separate library context, so other users of OpenSSL in the process are not affected.
package enum LegacyProvider {
  /// Safe to share. The interleavings that were looked at:
  /// - Two threads ask for it first: a static is made once, and the other one waits. Both providers are loaded then.
  /// - Two threads fetch algorithms from it (`EVP_CIPHER_fetch` and such, `PKCS12_init_ex`): OpenSSL locks a library
  ///   context's stores itself (OSSL_LIB_CTX(3), openssl-threads(7)), and no call here changes its settings.
  /// - It is never freed, so no thread can be left with it.
  nonisolated(unsafe) private static let loaded: (context: OpaquePointer?, isInstalled: Bool) = {
    guard let context = unsafe OSSL_LIB_CTX_new() else { return (nil, false) }
    _ = unsafe OSSL_PROVIDER_load(context, "default")
    // A separate loadable module.
    let legacy = unsafe OSSL_PROVIDER_load(context, "legacy")
    ERR_clear_error()
    return unsafe (context, legacy != nil)
  }()

  /// The library context for OpenSSL functions that look up algorithms. Never free it.
  package static var context: OpaquePointer? { unsafe loaded.context }

  /// Whether the old algorithms can be had. Without them the context has what OpenSSL has by default.
  package static var isInstalled: Bool { unsafe loaded.isInstalled }
}
