import COpenSSL
import TLSFoundation

/// The identity of one side of a TLS connection: a certificate, its private key, and the certificates between it and an
/// authority.
///
/// `@unchecked Sendable` is valid because everything is set in `init`: key and certificate are `Sendable` themselves, and
/// the stack `chain` is only read. The interleavings that were looked at:
/// - Two threads make a `TLSContext` of it, or sign with it: `SSL_CTX_set1_chain` copies the stack and takes references
///   to its certificates; `X509_sign` and `SSL_CTX_use_PrivateKey` read the key (`KeyPair`).
/// - One of these while the last reference elsewhere is dropped: whoever calls has a reference of its own, so `deinit`
///   runs after the call; a context has its own references to all parts.
@safe public final class Identity: @unchecked Sendable {
  private let keyPair: KeyPair
  let leaf: Certificate
  /// A `STACK_OF(X509)` without the certificate itself; `nil` when there is nothing above it.
  let chain: OpaquePointer?

  /// The `EVP_PKEY`, which lives as long as this identity.
  var key: OpaquePointer { unsafe keyPair.pointer }
  /// The `X509`, which lives as long as this identity.
  var certificate: OpaquePointer { unsafe leaf.pointer }

  /// Finds the certificate that belongs to the key, at any position; the others are the chain, in their order.
  init(_ keyPair: KeyPair, _ certificates: [Certificate], mismatch: String) throws(TLSError) {
    guard let position = certificates.firstIndex(where: keyPair.belongs) else {
      throw TLSError(.credentials, mismatch)
    }
    self.keyPair = keyPair
    leaf = certificates[position]
    guard certificates.count > 1 else {
      unsafe chain = nil
      return
    }
    guard let stack = unsafe apnscope_sk_X509_new_null() else { throw .fromOpenSSL(.credentials, "out of memory") }
    unsafe chain = stack
    for (index, certificate) in certificates.enumerated() where index != position {
      unsafe X509_up_ref(certificate.pointer)
      unsafe apnscope_sk_X509_push(stack, certificate.pointer)
    }
  }

  /// Uses a certificate that was issued for this key.
  convenience init(_ keyPair: KeyPair, _ certificate: Certificate) throws(TLSError) {
    try self.init(keyPair, [certificate], mismatch: "the certificate was made for another key")
  }

  deinit { if let chain = unsafe chain { unsafe apnscope_sk_X509_free_all(chain) } }

  /// The certificate's subject with its parts in its own order, escaped as RFC 4514 says:
  /// `UID=com.example.app,CN=Apple Push Services: com.example.app`.
  public var subject: String { unsafe Certificate.subject(of: leaf.pointer) }

  /// The first topic that the certificate allows to push to; `nil` when it names none.
  public var topic: String? { unsafe Certificate.topic(of: leaf.pointer) }

  /// The end of the certificate's validity, in seconds since 1970.
  public var notAfterUnixSeconds: Int { leaf.notAfterUnixSeconds }

  /// The number of certificates in the chain above this one.
  public var chainCount: Int { unsafe chain.map { Int(unsafe apnscope_sk_X509_num($0)) } ?? 0 }

  /// The certificate alone as PEM.
  public func certificatePEM() throws(TLSError) -> [UInt8] { try leaf.pem() }

  /// The private key as PKCS#8 in PEM, not encrypted: write it where only its owner can read.
  public func keyPEM() throws(TLSError) -> [UInt8] { try keyPair.pem() }

  /// Whether this identity's key signed the certificate.
  func hasIssued(_ certificate: Certificate) -> Bool { certificate.isSigned(by: keyPair) }
}
