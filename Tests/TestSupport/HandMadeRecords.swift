/// Writes the records of one direction of a hand-made conversation.
struct HandMadeRecords {
  /// Content types.
  static let changeCipherSpec: UInt8 = 20
  static let alert: UInt8 = 21
  static let handshake: UInt8 = 22
  static let applicationData: UInt8 = 23

  let version: HandMadeTLS.Version
  let maxFragment: Int
  let extraPaddingBlocks: Int
  private var protection: Protection?
  private var random: SeededGenerator

  private struct Protection {
    var suite: HandMadeTLS.Suite
    var direction: HandMadeKeys.Direction
    var cipher: LegacyCipher
    var sequence: UInt64 = 0
  }

  init(_ conversation: HandMadeTLS, seed: UInt64) {
    version = conversation.version
    maxFragment = conversation.maxFragment
    extraPaddingBlocks = conversation.extraPaddingBlocks
    random = SeededGenerator(seed: seed)
  }

  /// Everything after a ChangeCipherSpec is protected.
  mutating func protect(_ suite: HandMadeTLS.Suite, _ direction: HandMadeKeys.Direction) {
    let iv = version >= .tls11 && suite.blockLength > 0 ? [UInt8](repeating: 0, count: suite.blockLength) : direction.iv
    protection = Protection(
      suite: suite, direction: direction, cipher: LegacyCipher(suite.cipher, key: direction.key, iv: iv))
  }

  /// The records that carry `content`; one even if it is empty.
  mutating func records(_ type: UInt8, _ content: [UInt8], version headerVersion: UInt16? = nil) -> [UInt8] {
    var output: [UInt8] = []
    var rest = content[...]
    repeat {
      let fragment = fragment(type, Array(rest.prefix(maxFragment)))
      rest = rest.dropFirst(maxFragment)
      output += [type] + bigEndian(headerVersion ?? version.rawValue, 2) + bigEndian(fragment.count, 2) + fragment
    } while !rest.isEmpty
    return output
  }

  private mutating func fragment(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
    guard let protection else { return content }
    self.protection?.sequence += 1
    let suite = protection.suite
    var plain = content + code(protection, type, content)
    guard suite.blockLength > 0 else { return protection.cipher.encrypt(plain) }
    // SSL 3.0 pads to one block at most with any bytes, TLS with up to 255 bytes that all say how many.
    var padding = suite.blockLength - 1 - plain.count % suite.blockLength
    if version == .ssl30 {
      plain += random.bytes(padding) + [UInt8(padding)]
    } else {
      padding += min(extraPaddingBlocks, (255 - padding) / suite.blockLength) * suite.blockLength
      plain += [UInt8](repeating: UInt8(padding), count: padding + 1)
    }
    // A block in front takes the part of the IV: what it becomes under the cipher is as good as any.
    let iv = version >= .tls11 ? random.bytes(suite.blockLength) : []
    return protection.cipher.encrypt(iv + plain)
  }

  private func code(_ protection: Protection, _ type: UInt8, _ content: [UInt8]) -> [UInt8] {
    let digest = protection.suite.digest
    let sequence = bigEndian(protection.sequence, 8)
    let length = bigEndian(content.count, 2)
    guard version == .ssl30 else {
      return LegacyCrypto.shared.hmac(
        digest, key: protection.direction.mac, sequence + [type] + bigEndian(version.rawValue, 2) + length + content)
    }
    let padding = digest == "MD5" ? 48 : 40
    let secret = protection.direction.mac
    let inner = LegacyCrypto.shared.digest(
      digest, secret + [UInt8](repeating: 0x36, count: padding) + sequence + [type] + length + content)
    return LegacyCrypto.shared.digest(digest, secret + [UInt8](repeating: 0x5c, count: padding) + inner)
  }
}

/// The last `count` bytes of a number in network order.
func bigEndian(_ value: some BinaryInteger, _ count: Int) -> [UInt8] {
  (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}
