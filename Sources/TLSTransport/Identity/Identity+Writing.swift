import COpenSSL
import TLSFoundation

extension Identity {
  /// How PKCS#12 is encrypted.
  public struct PKCS12Form: Sendable, Equatable {
    /// UTF-8 without NUL. The empty pass phrase is valid, too; most programs try it if none is given.
    public var passPhrase: [UInt8]
    /// Uses 3DES and SHA-1, the algorithms of this protocol's time, which every program supports; otherwise AES-256 and
    /// SHA-256, which old Java, Mono, Ruby and Windows versions do not.
    public var isLegacy: Bool

    /// Makes a form, by default AES-256 with the empty pass phrase.
    public init(passPhrase: [UInt8] = [], isLegacy: Bool = false) {
      self.passPhrase = passPhrase
      self.isLegacy = isLegacy
    }
  }

  /// The certificate followed by the private key as PEM, not encrypted: write it only to files readable by the owner
  /// alone.
  public func combinedPEM() throws(TLSError) -> [UInt8] { try certificatePEM() + keyPEM() }

  /// The certificate and its key as PKCS#12, which names them by the certificate's common name.
  ///
  /// - Throws: when the pass phrase holds NUL.
  public func pkcs12(_ form: PKCS12Form = PKCS12Form()) throws(TLSError) -> [UInt8] {
    guard !form.passPhrase.contains(0) else {
      throw TLSError(.configuration, "a pass phrase of PKCS#12 cannot contain NUL")
    }
    let phrase = form.passPhrase.map { CChar(bitPattern: $0) } + [0]
    let cipher = form.isLegacy ? NID_pbe_WithSHA1And3_Key_TripleDES_CBC : NID_aes_256_cbc
    let name = unsafe Certificate.text(of: certificate, NID_commonName) ?? ""
    let iterations: Int32 = 2_048
    // The digest of the MAC cannot be chosen in this call, so the MAC is added afterwards.
    let made = unsafe PKCS12_create(phrase, name, key, certificate, nil, cipher, cipher, iterations, -1, 0)
    defer { unsafe PKCS12_free(made) }
    guard unsafe made != nil,
      // Safe: the pass phrase ends with NUL.
      unsafe PKCS12_set_mac(made, phrase, -1, nil, 0, iterations, form.isLegacy ? EVP_sha1() : EVP_sha256()) == 1
    else { throw .fromOpenSSL(.credentials, "no PKCS#12 can be made") }
    return unsafe try MemoryText.written("PKCS#12 cannot be written") { unsafe i2d_PKCS12_bio($0, made) == 1 }
  }
}
