import Bytes
import COpenSSL

/// The digest of FIPS 180-4 with 256 bits.
package enum SHA256 {
  /// The 32 bytes of the digest; empty if OpenSSL has no memory for it.
  package static func digest(_ bytes: RawSpan) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    // Safe: the bytes and the digest, which is as long as the longest, live through the call.
    let result = unsafe bytes.withUnsafeBytes { memory in
      unsafe EVP_Digest(memory.baseAddress, memory.count, &digest, &length, EVP_sha256(), nil)
    }
    return result == 1 ? Array(digest.prefix(Int(length))) : []
  }
}
