import COpenSSL

/// Seals records with given keys: what no honest end of a connection sends can be put into a record that opens.
@safe public final class RecordSealer {
  public enum Method: Sendable {
    /// AES-128-GCM as TLS 1.3 uses it.
    case modern
    /// AES-128-GCM as TLS 1.2 uses it, with the number as explicit nonce.
    case explicitNonce
    /// AES-128-CBC and HMAC-SHA1, the vector before the blocks (TLS 1.1 and 1.2).
    case explicitVector
    /// AES-128-CBC and HMAC-SHA1, each record's vector the end of the one before (TLS 1.0).
    case chained
  }

  private let method: Method
  private let mac: [UInt8]
  private let key: [UInt8]
  private var vector: [UInt8]
  /// The number of the next record.
  public var sequence: UInt64 = 0

  public init(_ method: Method, mac: [UInt8], key: [UInt8], vector: [UInt8]) {
    self.method = method
    self.mac = mac
    self.key = key
    self.vector = vector
  }

  /// A whole record, with its header.
  ///
  /// - Parameters:
  ///   - type: of the content; TLS 1.3 writes application data (23) into the header.
  ///   - content: at most what a record holds, 2^14 bytes.
  public func seal(type: UInt8, _ content: [UInt8]) -> [UInt8] {
    defer { sequence &+= 1 }
    let number = (0..<8).map { UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * $0)) }
    switch method {
    case .modern:
      let nonce = vector.prefix(4) + zip(vector.dropFirst(4), number).map { $0 ^ $1 }
      let header = Self.header(23, 0x0303, content.count + 17)
      return header + encrypt(content + [type], nonce: Array(nonce), associatedData: header)
    case .explicitNonce:
      let associated = number + Self.header(type, 0x0303, content.count)
      return Self.header(type, 0x0303, content.count + 24) + number
        + encrypt(content, nonce: vector.prefix(4) + number, associatedData: associated)
    case .explicitVector:
      let first = (number + number).map { $0 ^ 0x5a }
      let blocks = encryptBlocks(padded(content, type, 0x0303, number), vector: first)
      return Self.header(type, 0x0303, first.count + blocks.count) + first + blocks
    case .chained:
      let blocks = encryptBlocks(padded(content, type, 0x0301, number), vector: vector)
      vector = Array(blocks.suffix(16))
      return Self.header(type, 0x0301, blocks.count) + blocks
    }
  }

  /// type u8 | version u16 | length u16
  public static func header(_ type: UInt8, _ version: UInt16, _ length: Int) -> [UInt8] {
    [type, UInt8(version >> 8), UInt8(version & 255), UInt8(length >> 8 & 255), UInt8(length & 255)]
  }

  /// Content, MAC and padding.
  private func padded(_ content: [UInt8], _ type: UInt8, _ version: UInt16, _ number: [UInt8]) -> [UInt8] {
    let whole = content + code(number + Self.header(type, version, content.count) + content)
    let padding = 15 - whole.count % 16
    return whole + [UInt8](repeating: UInt8(padding), count: padding + 1)
  }

  private func code(_ bytes: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 20)
    var length = 0
    // Safe: HMAC-SHA1 writes 20 bytes.
    let isDone = unsafe EVP_Q_mac(
      nil, "HMAC", nil, "SHA1", nil, mac, mac.count, bytes, bytes.count, &code, code.count, &length)
    precondition(unsafe isDone != nil && length == 20, "OpenSSL makes no HMAC")
    return code
  }

  private func encrypt(_ content: [UInt8], nonce: [UInt8], associatedData: [UInt8]) -> [UInt8] {
    guard let context = unsafe EVP_CIPHER_CTX_new() else { preconditionFailure("no cipher context") }
    defer { unsafe EVP_CIPHER_CTX_free(context) }
    var output = [UInt8](repeating: 0, count: content.count)
    var tag = [UInt8](repeating: 0, count: 16)
    var length: Int32 = 0
    // Safe: GCM writes as many bytes as it reads, and the tag has 16.
    let isDone =
      unsafe EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1
      && EVP_EncryptUpdate(context, nil, &length, associatedData, Int32(associatedData.count)) == 1
      && (content.isEmpty || EVP_EncryptUpdate(context, &output, &length, content, Int32(content.count)) == 1)
      && EVP_EncryptFinal_ex(context, nil, &length) == 1
      && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
    precondition(isDone, "OpenSSL does not encrypt")
    return output + tag
  }

  private func encryptBlocks(_ content: [UInt8], vector: [UInt8]) -> [UInt8] {
    guard let context = unsafe EVP_CIPHER_CTX_new() else { preconditionFailure("no cipher context") }
    defer { unsafe EVP_CIPHER_CTX_free(context) }
    var output = [UInt8](repeating: 0, count: content.count + 16)
    var length: Int32 = 0
    // Safe: whole blocks are read and, with padding off, as many are written.
    let isDone =
      unsafe EVP_EncryptInit_ex(context, EVP_aes_128_cbc(), nil, key, vector) == 1
      && EVP_CIPHER_CTX_set_padding(context, 0) == 1
      && EVP_EncryptUpdate(context, &output, &length, content, Int32(content.count)) == 1
    precondition(isDone, "OpenSSL does not encrypt")
    return Array(output.prefix(content.count))
  }
}
