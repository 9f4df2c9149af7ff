import COpenSSL

/// Answers OpenSSL's request for the pass phrase of a private key.
package struct PassPhraseRequest {
  private let passPhrase: [UInt8]?
  /// The key is encrypted.
  package private(set) var wasAsked = false

  package init(_ passPhrase: [UInt8]?) { self.passPhrase = passPhrase }

  /// The first private key of a PEM text, PKCS#1, SEC 1 or PKCS#8, encrypted or not; other content is skipped.
  ///
  /// - Parameter pem: the BIO to read from.
  /// - Returns: an EVP_PKEY to be freed by the caller; `nil` on failure, with the reason in OpenSSL's error queue.
  package mutating func readPrivateKey(_ pem: OpaquePointer) -> OpaquePointer? {
    // Safe: OpenSSL calls back during the call only, with the pointer given here.
    unsafe withUnsafeMutablePointer(to: &self) { request in
      unsafe PEM_read_bio_PrivateKey_ex(
        pem, nil,
        { buffer, size, _, data in
          guard let request = unsafe data?.assumingMemoryBound(to: PassPhraseRequest.self), let buffer = unsafe buffer
          else { return -1 }
          unsafe request.pointee.wasAsked = true
          guard let phrase = unsafe request.pointee.passPhrase, phrase.count <= Int(size) else { return -1 }
          for (index, byte) in phrase.enumerated() { unsafe buffer[index] = CChar(bitPattern: byte) }
          return Int32(phrase.count)
        }, request, LegacyProvider.context, nil)
    }
  }
}
