import COpenSSL

/// An X.509 certificate from a handshake.
@safe final class Certificate {
  /// Safe because this object made it, nobody else has it, and `deinit` frees it.
  private let certificate: OpaquePointer

  /// `nil` when the bytes are not a certificate in DER.
  init?(der: [UInt8]) {
    // Safe: the bytes are read within their length; OpenSSL moves the pointer, which is not used again.
    let parsed = unsafe der.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      return unsafe d2i_X509(nil, &position, bytes.count)
    }
    guard let parsed = unsafe parsed else {
      ERR_clear_error()
      return nil
    }
    unsafe certificate = parsed
  }

  deinit { unsafe X509_free(certificate) }

  /// Bytes of a subject that are kept: it is remembered with its session.
  private static let maximumSubject = 1_024

  /// The subject with its parts in the certificate's order, escaped as RFC 4514 says: `UID=com.example.app,CN=…`.
  var subject: String {
    guard let name = unsafe X509_get_subject_name(certificate), let text = unsafe BIO_new(BIO_s_mem()) else {
      return ""
    }
    defer { unsafe BIO_free(text) }
    guard unsafe X509_NAME_print_ex(text, name, 0, apnscope_name_flags) >= 0 else { return "" }
    var start: UnsafeMutablePointer<CChar>?
    let length = unsafe apnscope_BIO_get_mem_data(text, &start)
    // Safe: the text stands in the BIO's memory until it is freed, and is copied here.
    return unsafe String(
      decoding: UnsafeRawBufferPointer(start: start, count: min(Int(length), Self.maximumSubject)), as: UTF8.self)
  }

  func withPublicKey(_ body: (OpaquePointer) -> Bool) -> Bool? {
    guard let key = unsafe X509_get0_pubkey(certificate) else {
      ERR_clear_error()
      return nil
    }
    return unsafe body(key)
  }
}
