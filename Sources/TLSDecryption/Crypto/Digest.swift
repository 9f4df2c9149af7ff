import Bytes
import COpenSSL

/// A hash function of TLS.
package enum HashFunction: String, Sendable {
  case md5 = "MD5"
  case sha1 = "SHA1"
  case sha256 = "SHA256"
  case sha384 = "SHA384"
  /// MD5 and SHA-1, concatenated: the hash of TLS 1.0 and 1.1 for key derivation and handshakes.
  case md5sha1 = "MD5-SHA1"

  /// Bytes of a hash value.
  package var length: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .md5sha1: 36
    }
  }

  /// The hash of the concatenated parts; empty if OpenSSL refuses.
  func hash(_ parts: [UInt8]...) -> [UInt8] {
    guard let digest = unsafe OpenSSL.fetchDigest(rawValue) else { return [] }
    defer { unsafe EVP_MD_free(digest) }
    guard let context = unsafe EVP_MD_CTX_new() else { return [] }
    defer { unsafe EVP_MD_CTX_free(context) }
    var isGood = unsafe EVP_DigestInit_ex2(context, digest, nil) == 1
    for part in parts { isGood = unsafe isGood && EVP_DigestUpdate(context, part, part.count) == 1 }
    var value = [UInt8](repeating: 0, count: length)
    var written: UInt32 = 0
    // Safe: `value` has the length of the hash.
    isGood = unsafe isGood && EVP_DigestFinal_ex(context, &value, &written) == 1
    return isGood ? value : []
  }
}

/// A keyed hash (HMAC), computed over many messages with one key.
@safe package final class HMAC {
  /// Safe because this object creates and owns it, and `deinit` frees it.
  private let context: OpaquePointer
  package let length: Int

  package init?(_ hash: HashFunction, key: [UInt8]) {
    guard let function = unsafe OpenSSL.fetchMAC("HMAC") else { return nil }
    defer { unsafe EVP_MAC_free(function) }
    guard let context = unsafe EVP_MAC_CTX_new(function) else { return nil }
    unsafe self.context = context
    length = hash.length
    var name = Array(hash.rawValue.utf8CString)
    // Safe: the parameters are used during the call only.
    let isSet = unsafe name.withUnsafeMutableBufferPointer { name in
      let parameters = unsafe [
        OSSL_PARAM_construct_utf8_string("digest", name.baseAddress, 0), OSSL_PARAM_construct_end(),
      ]
      return unsafe EVP_MAC_init(context, key, key.count, parameters) == 1
    }
    guard isSet else { return nil }
  }

  deinit { unsafe EVP_MAC_CTX_free(context) }

  /// Whether `code` is the authentication code of both parts, concatenated.
  func verify(_ code: RawSpan, _ first: RawSpan, _ second: RawSpan) -> Bool {
    guard code.byteCount == length, unsafe EVP_MAC_init(context, nil, 0, nil) == 1 else { return false }
    var value = InlineArray<64, UInt8>(repeating: 0)
    var written = 0
    update(first)
    update(second)
    var bytes = value.mutableSpan
    // Safe: 64 bytes are room for every hash of TLS.
    let isDone = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe EVP_MAC_final(context, $0.baseAddress, &written, $0.count) == 1
    }
    guard isDone, written == length else { return false }
    return value.span.rawBytes.extracting(0..<length).elementsEqual(code)
  }

  /// The authentication code of both parts, concatenated; empty if OpenSSL refuses.
  package func code(_ first: RawSpan, _ second: RawSpan) -> [UInt8] {
    guard unsafe EVP_MAC_init(context, nil, 0, nil) == 1 else { return [] }
    update(first)
    update(second)
    var code = [UInt8](repeating: 0, count: length)
    var written = 0
    // Safe: `code` has the length of the hash.
    let isDone = unsafe EVP_MAC_final(context, &code, &written, code.count) == 1
    return isDone && written == length ? code : []
  }

  private func update(_ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes {
      _ = unsafe EVP_MAC_update(context, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
    }
  }
}
