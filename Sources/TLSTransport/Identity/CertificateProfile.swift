import COpenSSL
import TLSFoundation

/// The contents of a new certificate.
struct CertificateProfile {
  /// An extension's number in OpenSSL and its value as configuration files write it.
  typealias Extension = (number: Int32, value: String)

  /// The OpenSSL numbers and values of the subject's parts, in the order of the certificate.
  var subject: [(number: Int32, value: String)]
  var validity: Validity
  var extensions: [Extension]
  /// Extensions that OpenSSL does not know, by their object identifiers; their value is NULL.
  var marks: [String] = []

  /// Makes and signs it; without an issuer it signs itself.
  func certificate(for keyPair: KeyPair, by issuer: Identity?) throws(TLSError) -> Certificate {
    guard let made = unsafe X509_new() else { throw .fromOpenSSL(.credentials, "out of memory") }
    let certificate = unsafe Certificate(owning: made)
    let serial = try SerialNumber()
    guard unsafe X509_set_version(made, Int(X509_VERSION_3)) == 1,
      unsafe X509_set_serialNumber(made, serial.pointer) == 1,
      unsafe X509_gmtime_adj(X509_getm_notBefore(made), validity.fromSeconds) != nil,
      unsafe X509_gmtime_adj(X509_getm_notAfter(made), validity.toSeconds) != nil,
      unsafe X509_set_pubkey(made, keyPair.pointer) == 1
    else { throw .fromOpenSSL(.credentials, "no certificate can be made") }
    try name(certificate, issuer)
    try extend(certificate, issuer)
    guard unsafe X509_sign(made, issuer?.key ?? keyPair.pointer, EVP_sha256()) > 0 else {
      throw .fromOpenSSL(.credentials, "the certificate cannot be signed")
    }
    return certificate
  }

  private func name(_ certificate: Certificate, _ issuer: Identity?) throws(TLSError) {
    let name = unsafe X509_get_subject_name(certificate.pointer)
    for (number, value) in subject {
      let text = Array(value.utf8)
      guard unsafe X509_NAME_add_entry_by_NID(name, number, MBSTRING_UTF8, text, Int32(text.count), -1, 0) == 1 else {
        throw .fromOpenSSL(.credentials, "the certificate's name cannot hold \(value)")
      }
    }
    let above = unsafe issuer.map { unsafe X509_get_subject_name($0.certificate) } ?? name
    guard unsafe X509_set_issuer_name(certificate.pointer, above) == 1 else {
      throw .fromOpenSSL(.credentials, "no certificate can be made")
    }
  }

  private func extend(_ certificate: Certificate, _ issuer: Identity?) throws(TLSError) {
    var context = unsafe X509V3_CTX()
    unsafe X509V3_set_ctx(&context, issuer?.certificate ?? certificate.pointer, certificate.pointer, nil, nil, 0)
    for (number, value) in extensions {
      let made = unsafe X509V3_EXT_conf_nid(nil, &context, number, value)
      defer { unsafe X509_EXTENSION_free(made) }
      guard unsafe made != nil, unsafe X509_add_ext(certificate.pointer, made, -1) == 1 else {
        throw .fromOpenSSL(.credentials, "the certificate cannot say \(value)")
      }
    }
    for mark in marks {
      // NULL in DER.
      let made = unsafe X509V3_EXT_nconf(nil, &context, mark, "DER:0500")
      defer { unsafe X509_EXTENSION_free(made) }
      guard unsafe made != nil, unsafe X509_add_ext(certificate.pointer, made, -1) == 1 else {
        throw .fromOpenSSL(.credentials, "the certificate cannot have the extension \(mark)")
      }
    }
  }
}

/// A random serial number of 159 bits: positive, and not longer than the 20 bytes that RFC 5280 allows.
@safe private struct SerialNumber: ~Copyable {
  /// Safe because this value made it and frees it.
  let pointer: UnsafeMutablePointer<ASN1_INTEGER>

  init() throws(TLSError) {
    let number = unsafe BN_new()
    defer { unsafe BN_free(number) }
    guard unsafe BN_rand(number, 159, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
      let pointer = unsafe BN_to_ASN1_INTEGER(number, nil)
    else { throw .fromOpenSSL(.credentials, "no serial number can be made") }
    unsafe self.pointer = pointer
  }

  deinit { unsafe ASN1_INTEGER_free(pointer) }
}

extension KeyPair {
  /// The beginning of the SHA-256 of the public key.
  func fingerprint() throws(TLSError) -> String {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_PUBKEY(pointer, &bytes)
    defer { unsafe CRYPTO_free(bytes, nil, 0) }
    var digest = [UInt8](repeating: 0, count: 32)
    // Safe: a SHA-256 has 32 bytes.
    guard count > 0, unsafe EVP_Digest(bytes, Int(count), &digest, nil, EVP_sha256(), nil) == 1 else {
      throw .fromOpenSSL(.credentials, "the key cannot be read")
    }
    return digest.prefix(4).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
