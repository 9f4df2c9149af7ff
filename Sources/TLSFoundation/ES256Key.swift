import Bytes
import COpenSSL

/// A key on the curve P-256 that verifies signatures by ECDSA with SHA-256 (RFC 7518 section 3.4).
///
/// `@unchecked Sendable` is valid because nothing is set in the key once it is made. The interleavings that were looked at:
/// - Two loops verify with it: each has a context of its own; the key is read (openssl-threads(7)).
/// - One drops its last reference: the key is freed by `deinit`, after the last use.
@safe package final class ES256Key: @unchecked Sendable {
  /// Owned by this object.
  private let pointer: OpaquePointer

  /// Reads a public or private key in PEM; `nil` if there is none, or it is not on P-256.
  package init?(pem: [UInt8]) {
    defer { ERR_clear_error() }
    guard let key = unsafe Self.read(pem, isPrivate: true) ?? Self.read(pem, isPrivate: false) else { return nil }
    guard unsafe EVP_PKEY_is_a(key, "EC") == 1, unsafe EVP_PKEY_get_bits(key) == 256 else {
      unsafe EVP_PKEY_free(key)
      return nil
    }
    unsafe pointer = key
  }

  deinit { unsafe EVP_PKEY_free(pointer) }

  private static func read(_ pem: [UInt8], isPrivate: Bool) -> OpaquePointer? {
    // Safe: the BIO reads the bytes within their length, and is freed before they are.
    unsafe pem.withUnsafeBytes { bytes in
      guard let source = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer { unsafe BIO_free(source) }
      // Without a callback OpenSSL would ask for a pass phrase at the terminal.
      return unsafe isPrivate
        ? PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
        : PEM_read_bio_PUBKEY(source, nil, { _, _, _, _ in -1 }, nil)
    }
  }

  /// Whether a signature is this key's of a message. It is raw (64 bytes, R and S) or DER.
  package func verifies(_ message: RawSpan, _ signature: [UInt8]) -> Bool {
    let signature = signature.count == 64 ? Self.der(signature) : signature
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer {
      unsafe EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, pointer) == 1 else { return false }
    // Safe: OpenSSL reads both within their lengths.
    return unsafe message.withUnsafeBytes { bytes in
      unsafe EVP_DigestVerify(
        context, signature, signature.count, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count) == 1
    }
  }

  /// A raw signature as a SEQUENCE of two INTEGERs.
  private static func der(_ raw: [UInt8]) -> [UInt8] {
    func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      var number = Array(bytes.drop { $0 == 0 })
      if number.first.map({ $0 >= 0x80 }) ?? true { number.insert(0, at: 0) }
      return [0x02, UInt8(number.count)] + number
    }
    let numbers = integer(raw[0..<32]) + integer(raw[32..<64])
    return [0x30, UInt8(numbers.count)] + numbers
  }
}
