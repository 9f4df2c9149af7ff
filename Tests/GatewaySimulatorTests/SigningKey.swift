import COpenSSL
import TLSFoundation

/// A key that signs provider tokens as providers do.
final class SigningKey {
  private let key: OpaquePointer

  init() throws {
    guard let key = unsafe apnscope_EVP_EC_gen("P-256") else { throw SigningError() }
    unsafe self.key = key
  }

  struct SigningError: Error {}

  /// The public key in PEM.
  var publicPEM: [UInt8] {
    let text = unsafe BIO_new(BIO_s_mem())
    defer { unsafe BIO_free(text) }
    _ = unsafe PEM_write_bio_PUBKEY(text, key)
    var start: UnsafeMutablePointer<CChar>?
    let count = unsafe apnscope_BIO_get_mem_data(text, &start)
    return unsafe UnsafeRawBufferPointer(start: start, count: count).map { $0 }
  }

  /// A signature in DER.
  func sign(_ message: [UInt8]) throws -> [UInt8] {
    let context = unsafe EVP_MD_CTX_new()
    defer { unsafe EVP_MD_CTX_free(context) }
    var length = 128
    var signature = [UInt8](repeating: 0, count: length)
    guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
      unsafe EVP_DigestSign(context, &signature, &length, message, message.count) == 1
    else { throw SigningError() }
    return Array(signature.prefix(length))
  }

  /// The numbers of a signature in DER, 32 bytes each.
  static func raw(_ der: [UInt8]) -> [UInt8] {
    var (place, raw) = (2, [UInt8]())
    for _ in 0..<2 {
      let number = der[place + 2..<place + 2 + Int(der[place + 1])]
      let digits = number.drop { $0 == 0 }
      raw += [UInt8](repeating: 0, count: 32 - digits.count) + digits
      place += 2 + number.count
    }
    return raw
  }

  static func base64URL(_ bytes: [UInt8]) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    var (text, bits, count) = ("", 0, 0)
    for byte in bytes {
      (bits, count) = (bits << 8 | Int(byte), count + 8)
      while count >= 6 {
        text.append(letters[bits >> (count - 6) & 63])
        count -= 6
      }
      bits &= 63
    }
    if count > 0 { text.append(letters[bits << (6 - count) & 63]) }
    return text
  }

  /// A provider token.
  func token(
    keyID: String = "KEY4567890", teamID: String = "TEAM567890", issuedAt: String, isDER: Bool = false,
    algorithm: String = "ES256"
  ) throws -> String {
    let header = Self.base64URL(Array(#"{"alg":"\#(algorithm)","kid":"\#(keyID)"}"#.utf8))
    let claims = Self.base64URL(Array(#"{"iss":"\#(teamID)","iat":\#(issuedAt)}"#.utf8))
    let signature = try sign(Array("\(header).\(claims)".utf8))
    return "bearer \(header).\(claims).\(Self.base64URL(isDER ? signature : Self.raw(signature)))"
  }
}
