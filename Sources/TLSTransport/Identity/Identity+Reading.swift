import COpenSSL
import TLSFoundation

extension Identity {
  /// Reads PEM: a certificate, optionally with its chain, and the private key in the same file or another.
  ///
  /// - Parameters:
  ///   - certificateFile: the file of the certificate.
  ///   - keyFile: the file of the private key; `nil`: `certificateFile`.
  ///   - passPhrase: the pass phrase of the private key; ignored if the key is not encrypted.
  /// - Throws: a `TLSError` of kind `file` or `credentials`.
  public convenience init(certificateFile: String, keyFile: String? = nil, passPhrase: [UInt8]? = nil)
    throws(TLSError)
  {
    let certificate = try CredentialSource(file: certificateFile)
    try self.init(pem: certificate, key: certificate.or(keyFile), passPhrase: passPhrase)
  }

  /// Reads PEM in memory; without `key` the private key is in `certificate`.
  ///
  /// - Throws: a `TLSError` of kind `credentials`.
  public convenience init(pem certificate: [UInt8], key: [UInt8]? = nil, passPhrase: [UInt8]? = nil) throws(TLSError) {
    try self.init(
      pem: CredentialSource(name: "certificate", bytes: certificate),
      key: CredentialSource(name: key == nil ? "certificate" : "private key", bytes: key ?? certificate),
      passPhrase: passPhrase)
  }

  /// Reads PKCS#12, as Keychain exports it (`.p12`, `.pfx`).
  ///
  /// - Parameters:
  ///   - pkcs12File: the file.
  ///   - passPhrase: `nil` if the file is not encrypted, or has the empty pass phrase.
  /// - Throws: a `TLSError` of kind `file` or `credentials`.
  public convenience init(pkcs12File: String, passPhrase: [UInt8]? = nil) throws(TLSError) {
    try self.init(pkcs12: try CredentialSource(file: pkcs12File), passPhrase: passPhrase)
  }

  /// Reads a file in PEM or PKCS#12, detected from its contents.
  ///
  /// - Parameters:
  ///   - file: the file of the certificate, and of the private key unless `keyFile` is given.
  ///   - keyFile: the file of the private key; only for PEM.
  ///   - passPhrase: the pass phrase, if there is one.
  /// - Throws: a `TLSError` of kind `file` or `credentials`.
  public convenience init(file: String, keyFile: String? = nil, passPhrase: [UInt8]? = nil) throws(TLSError) {
    let source = try CredentialSource(file: file)
    if source.isPEM {
      try self.init(pem: source, key: source.or(keyFile), passPhrase: passPhrase)
      return
    }
    guard source.startsAsDER else {
      throw TLSError(.credentials, "\(file): \(source.bytes.isEmpty ? "is empty" : "is neither PEM nor PKCS#12")")
    }
    if let keyFile {
      throw TLSError(
        .credentials, "\(file): is PKCS#12, which contains its key; remove the key file \(keyFile)")
    }
    try self.init(pkcs12: source, passPhrase: passPhrase)
  }

  private convenience init(pem certificate: CredentialSource, key: CredentialSource, passPhrase: [UInt8]?)
    throws(TLSError)
  {
    let certificates = try Certificate.all(in: certificate)
    let keyPair = try KeyPair.first(in: key, passPhrase: passPhrase)
    let mismatch =
      certificate.name == key.name
      ? "\(key.name): the private key does not belong to the certificate"
      : "\(key.name): the private key does not belong to the certificate in \(certificate.name)"
    try self.init(keyPair, certificates, mismatch: mismatch)
  }

  private convenience init(pkcs12 source: CredentialSource, passPhrase: [UInt8]?) throws(TLSError) {
    let contents = try PKCS12Contents(source, passPhrase: passPhrase)
    guard let keyPair = contents.keyPair else {
      throw TLSError(.credentials, "\(source.name): holds no private key")
    }
    guard !contents.certificates.isEmpty else {
      throw TLSError(.credentials, "\(source.name): holds no certificate")
    }
    try self.init(
      keyPair, contents.certificates, mismatch: "\(source.name): the private key does not belong to the certificate")
  }
}

extension CredentialSource {
  /// Text may precede the first block, as `openssl pkcs12` writes it.
  fileprivate var isPEM: Bool { String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ") }

  /// That file, if it is another: a pipe cannot be read twice.
  fileprivate func or(_ file: String?) throws(TLSError) -> CredentialSource {
    guard let file, file != name else { return self }
    return try CredentialSource(file: file)
  }

  /// PKCS#12 is a SEQUENCE.
  fileprivate var startsAsDER: Bool { bytes.first == 0x30 }
}

/// The contents of a PKCS#12 file.
private struct PKCS12Contents {
  var keyPair: KeyPair?
  /// The certificate of the key first, as far as the file shows it.
  var certificates: [Certificate] = []

  init(_ source: CredentialSource, passPhrase: [UInt8]?) throws(TLSError) {
    let bytes = try MemoryText(source.bytes)
    ERR_clear_error()
    // The object carries the library context in which its ciphers are looked for.
    var file = unsafe PKCS12_init_ex(NID_pkcs7_data, LegacyProvider.context, nil)
    defer { unsafe PKCS12_free(file) }
    guard unsafe d2i_PKCS12_bio(bytes.pointer, &file) != nil else {
      throw .fromOpenSSL(.credentials, "\(source.name): is not PKCS#12")
    }
    var (key, certificate, others) = unsafe (OpaquePointer?.none, OpaquePointer?.none, OpaquePointer?.none)
    let phrase = passPhrase.map { $0.map { CChar(bitPattern: $0) } + [0] }
    // Safe: the pass phrase ends with NUL and is read during the call only.
    let isRead =
      unsafe phrase.map { unsafe PKCS12_parse(file, $0, &key, &certificate, &others) }
      ?? PKCS12_parse(file, nil, &key, &certificate, &others)
    guard isRead == 1 else {
      guard ERR_GET_REASON(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE else {
        throw .fromOpenSSL(.credentials, "\(source.name): the PKCS#12 file cannot be read")
      }
      throw source.passPhraseError(passPhrase)
    }
    ERR_clear_error()
    // Owned from here on, also on failure.
    let readKey = unsafe key.map { unsafe KeyPair(owning: $0) }
    var read = unsafe certificate.map { unsafe [Certificate(owning: $0)] } ?? []
    if let others = unsafe others {
      defer { unsafe apnscope_sk_X509_free_all(others) }
      for index in 0..<(unsafe apnscope_sk_X509_num(others)) {
        guard let other = unsafe apnscope_sk_X509_value(others, index) else { continue }
        unsafe X509_up_ref(other)
        unsafe read.append(Certificate(owning: other))
      }
    }
    keyPair = try readKey?.rehomed(as: source.name)
    for one in read { certificates.append(try one.rehomed(as: source.name)) }
  }
}
