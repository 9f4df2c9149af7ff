import COpenSSL
import TLSFoundation

extension Certificate {
  /// All certificates in a PEM text, in its order; other content is skipped.
  static func all(in source: CredentialSource) throws(TLSError) -> [Certificate] {
    let text = try MemoryText(source.bytes)
    var certificates: [Certificate] = []
    ERR_clear_error()
    // Certificates are never encrypted, so there is no pass phrase.
    while let next = unsafe PEM_read_bio_X509(text.pointer, nil, { _, _, _, _ in -1 }, nil) {
      unsafe certificates.append(Certificate(owning: next))
    }
    guard ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE else {
      throw .fromOpenSSL(.credentials, "\(source.name): holds a damaged certificate")
    }
    ERR_clear_error()
    guard !certificates.isEmpty else { throw TLSError(.credentials, "\(source.name): holds no certificate in PEM") }
    return certificates
  }

  /// The first certificate of a PEM file.
  static func first(in file: String) throws(TLSError) -> Certificate {
    let source = try CredentialSource(file: file)
    guard let first = try all(in: source).first else {
      throw TLSError(.credentials, "\(source.name): holds no certificate in PEM")
    }
    return first
  }

  /// A copy in the default library context, regardless of the context it was read in.
  ///
  /// - Parameter name: what errors call it.
  func rehomed(as name: String) throws(TLSError) -> Certificate {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_X509(pointer, &bytes)
    defer { unsafe CRYPTO_free(bytes, nil, 0) }
    // Safe: OpenSSL moves the pointer it is given within the bytes it made.
    var position = unsafe UnsafePointer(bytes)
    guard count > 0, let copy = unsafe d2i_X509(nil, &position, Int(count)) else {
      throw .fromOpenSSL(.credentials, "\(name): a certificate cannot be read")
    }
    return unsafe Certificate(owning: copy)
  }

  func pem() throws(TLSError) -> [UInt8] {
    unsafe try MemoryText.written("the certificate cannot be written") { unsafe PEM_write_bio_X509($0, pointer) == 1 }
  }

  /// Whether that key signed it.
  func isSigned(by key: KeyPair) -> Bool {
    defer { ERR_clear_error() }
    return unsafe X509_verify(pointer, key.pointer) == 1
  }
}
