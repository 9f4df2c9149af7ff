import Bytes
import COpenSSL
import TLSFoundation

/// Decrypts and verifies the records of one direction that use one set of keys.
///
/// Opening takes the sequence number as an argument and changes no state, except for RC4's key stream and the
/// initialization vector that TLS 1.0 carries from record to record, so different numbers can be tried.
final class RecordDecryptor {
  /// An opened record: the position of its content in the output, and its type.
  struct Opened {
    var type: ContentType
    /// Bytes before the content that could not be decrypted: in TLS 1.0 they need the previous record.
    var start = 0
    var length: Int
  }

  /// The kind of protection, with its keys.
  private enum Method {
    case aead(tagLength: Int, explicitLength: Int, isCCM: Bool)
    case block(length: Int, hasExplicitVector: Bool)
    case rc4
    case null
  }

  private enum Authentication {
    case hmac(HMAC)
    case ssl3(HashFunction, key: [UInt8])
    case none
  }

  let version: TLSVersion
  private let method: Method
  private let cipher: Cipher?
  private let authentication: Authentication
  private let macLength: Int
  private let isEncryptThenMAC: Bool
  /// Drafts of TLS 1.3 before the 25th authenticate no header.
  private let hasHeaderAuthenticated: Bool
  /// The 12 bytes from which nonces are made, or their first 4, as big-endian numbers.
  private let nonceBase: (salt: UInt32, rest: UInt64)

  /// The sequence number of the next record if none is missing.
  var sequence: UInt64 = 0
  /// The last ciphertext block, with which CBC of TLS 1.0 and before begins the next record; `nil` after a gap.
  private var vector: [UInt8]?
  private let firstVector: [UInt8]
  /// The explicit nonce of the last record that verified, with its number: most senders count it up.
  private var lastNonce: (nonce: UInt64, sequence: UInt64)?

  /// `nil` when the suite is not supported or OpenSSL lacks its cipher.
  init?(
    _ keys: DirectionKeys, _ suite: CipherSuite, _ version: TLSVersion, encryptThenMAC: Bool = false, draft: Int = 0
  ) {
    guard let protection = suite.protection else { return nil }
    self.version = version
    var isCCM = false
    var tag = 0
    switch protection {
    case .aead(let name, _, let tagLength, let explicitLength):
      isCCM = name.hasSuffix("CCM")
      tag = tagLength
      method = .aead(
        tagLength: tagLength, explicitLength: version >= .tls13 ? 0 : explicitLength, isCCM: isCCM)
    case .block(_, _, let length): method = .block(length: length, hasExplicitVector: version >= .tls11)
    case .rc4: method = .rc4
    case .null: method = .null
    }
    if let name = protection.cipher {
      guard let cipher = Cipher(name, key: keys.key, tagLength: tag, isCCM: isCCM) else { return nil }
      self.cipher = cipher
    } else {
      cipher = nil
    }
    if let hash = suite.macHash {
      macLength = hash.length
      if version == .ssl3 {
        authentication = .ssl3(hash, key: keys.mac)
      } else {
        guard let hmac = HMAC(hash, key: keys.mac) else { return nil }
        authentication = .hmac(hmac)
      }
    } else {
      macLength = 0
      authentication = .none
    }
    isEncryptThenMAC = encryptThenMAC
    hasHeaderAuthenticated = draft == 0 || draft >= 25
    let padded = (keys.vector + [UInt8](repeating: 0, count: 12)).rawBytes
    nonceBase = (padded.uint32(at: 0), padded.uint64(at: 4))
    firstVector = keys.vector
  }

  // MARK: sizes

  /// Bytes on the wire of the shortest record of application data.
  var shortestRecord: Int { RecordHeader.length + overhead }

  /// The bytes that sealing adds to a record, without its header; with CBC at least this.
  var overhead: Int {
    switch method {
    case .aead(let tagLength, let explicitLength, _):
      tagLength + explicitLength + (version >= .tls13 ? 1 : 0)
    case .block(let length, let hasExplicitVector): (hasExplicitVector ? length : 0) + macLength + 1
    case .rc4, .null: macLength
    }
  }

  /// The block length of CBC; 0 with other modes.
  var blockLength: Int { if case .block(let length, _) = method { length } else { 0 } }

  var isAEAD: Bool { if case .aead = method { true } else { false } }

  var isRC4: Bool { if case .rc4 = method { true } else { false } }

  /// Whether the next record's first block is lost with the record before it.
  var needsVector: Bool {
    if case .block(_, false) = method { return vector == nil && sequence > 0 }
    return false
  }

  // MARK: the initialization vector of TLS 1.0

  /// Notes the bytes before a record that was not opened.
  func noteEnd(_ bytes: RawSpan) {
    guard case .block(let length, false) = method else { return }
    let end = bytes.byteCount - (isEncryptThenMAC ? macLength : 0)
    vector = end < length ? nil : Array(copying: bytes.extracting(end - length..<end))
  }

  /// The number that a record would have if its sender counts its explicit nonces up.
  func likelySequence(_ fragment: RawSpan) -> UInt64? {
    guard case .aead(_, 8, _) = method, fragment.byteCount >= 8, let lastNonce else { return nil }
    return lastNonce.sequence &+ (fragment.uint64(at: 0) &- lastNonce.nonce)
  }

  // MARK: opening

  /// Whether the record may open with some number: a padding inside the MAC does not depend on it.
  func mayOpen(_ fragment: RawSpan, _ output: inout [UInt8]) -> Bool {
    switch method {
    case .rc4: return false
    case .block(let length, let hasExplicitVector) where !isEncryptThenMAC:
      let start = hasExplicitVector ? length : 0
      let end = fragment.byteCount
      // The last two blocks suffice.
      guard let cipher, end >= start + 2 * length, (end - start) % length == 0,
        cipher.decrypt(
          fragment.extracting(end - length..<end),
          initializationVector: fragment.extracting(end - 2 * length..<end - length), into: &output)
      else { return false }
      let padding = output[length - 1]
      if version == .ssl3 { return Int(padding) < length }
      return output[(length - 1 - min(Int(padding), length - 1))..<length].allSatisfy { $0 == padding }
    default: return true
    }
  }

  /// Opens a record with a number; its content is in `output` until the next call.
  ///
  /// - Returns: `nil` when the tag or the MAC does not verify.
  func open(
    _ header: RecordHeader, _ fragment: RawSpan, sequence: UInt64, into output: inout [UInt8]
  ) -> Opened? {
    switch method {
    case .aead(let tagLength, let explicitLength, let isCCM):
      return openAEAD(header, fragment, sequence, tagLength, explicitLength, isCCM, &output)
    case .block(let length, let hasExplicitVector):
      return openBlocks(header, fragment, sequence, length, hasExplicitVector, &output)
    case .rc4:
      guard let cipher, cipher.decrypt(fragment, initializationVector: nil, into: &output) else { return nil }
      return verifyEnd(header, sequence, fragment.byteCount, output.rawBytes)
    case .null:
      guard fragment.byteCount <= output.count else { return nil }
      for index in 0..<fragment.byteCount { output[index] = fragment.byte(at: index) }
      return verifyEnd(header, sequence, fragment.byteCount, output.rawBytes)
    }
  }

  /// Opens the next record in order if it is data, and counts it; `nil` leaves everything as it was.
  func openNextData(_ header: RecordHeader, _ fragment: RawSpan, into output: inout [UInt8]) -> Opened? {
    guard case .aead(let tagLength, let explicitLength, let isCCM) = method else { return nil }
    let sequence = sequence
    guard let opened = openAEAD(header, fragment, sequence, tagLength, explicitLength, isCCM, &output),
      opened.type == .applicationData
    else { return nil }
    self.sequence = sequence &+ 1
    if explicitLength == 8 { lastNonce = (fragment.uint64(at: 0), sequence) }
    return opened
  }

  private func openAEAD(
    _ header: RecordHeader, _ fragment: RawSpan, _ sequence: UInt64, _ tagLength: Int, _ explicitLength: Int,
    _ isCCM: Bool, _ output: inout [UInt8]
  ) -> Opened? {
    let length = fragment.byteCount - explicitLength - tagLength
    guard length >= 0, let cipher else { return nil }
    let rest = explicitLength > 0 ? fragment.uint64(at: 0) : nonceBase.rest ^ sequence
    var nonce = InlineArray<12, UInt8>(repeating: 0)
    for index in 0..<4 { nonce[index] = UInt8(truncatingIfNeeded: nonceBase.salt >> UInt32(24 - 8 * index)) }
    for index in 0..<8 { nonce[4 + index] = UInt8(truncatingIfNeeded: rest >> UInt64(56 - 8 * index)) }
    let sealed = fragment.extracting(explicitLength..<fragment.byteCount)
    var associated = InlineArray<13, UInt8>(repeating: 0)
    let opened: Int?
    if version >= .tls13 {
      associated[0] = header.type.rawValue
      Self.put(header.version.rawValue, &associated, 1)
      Self.put(UInt16(fragment.byteCount), &associated, 3)
      opened = cipher.open(
        sealed, tagLength: tagLength, nonce: nonce.span.rawBytes,
        associatedData: associated.span.rawBytes.extracting(0..<(hasHeaderAuthenticated ? 5 : 0)), isCCM: isCCM,
        into: &output)
    } else {
      Self.put(header, sequence, UInt16(length), &associated)
      opened = cipher.open(
        sealed, tagLength: tagLength, nonce: nonce.span.rawBytes, associatedData: associated.span.rawBytes,
        isCCM: isCCM,
        into: &output)
    }
    guard let opened else { return nil }
    guard version >= .tls13 else { return Opened(type: header.type, length: opened) }
    // The type is the last byte that is not padding.
    var end = opened
    while end > 0, output[end - 1] == 0 { end -= 1 }
    guard end > 0 else { return nil }
    return Opened(type: ContentType(rawValue: output[end - 1]), length: end - 1)
  }

  private func openBlocks(
    _ header: RecordHeader, _ fragment: RawSpan, _ sequence: UInt64, _ blockLength: Int, _ hasExplicitVector: Bool,
    _ output: inout [UInt8]
  ) -> Opened? {
    guard let cipher else { return nil }
    let sealedLength = fragment.byteCount - (isEncryptThenMAC ? macLength : 0)
    let vectorLength = hasExplicitVector ? blockLength : 0
    guard sealedLength >= vectorLength + blockLength, (sealedLength - vectorLength) % blockLength == 0 else {
      return nil
    }
    if isEncryptThenMAC {
      guard
        verify(
          header, sequence, fragment.extracting(0..<sealedLength),
          fragment.extracting(sealedLength..<fragment.byteCount))
      else { return nil }
    }
    let blocks = fragment.extracting(vectorLength..<sealedLength)
    if hasExplicitVector {
      guard
        cipher.decrypt(blocks, initializationVector: fragment.extracting(0..<blockLength), into: &output)
      else { return nil }
    } else {
      guard let first = sequence == 0 ? firstVector : vector else {
        guard isEncryptThenMAC else { return nil }
        return openBehindFirstBlock(header, blocks, into: &output)
      }
      guard first.count == blockLength, cipher.decrypt(blocks, initializationVector: first.rawBytes, into: &output)
      else { return nil }
    }
    guard let length = withoutPadding(output.rawBytes, blocks.byteCount, blockLength) else { return nil }
    if isEncryptThenMAC { return Opened(type: header.type, length: length) }
    return verifyEnd(header, sequence, length, output.rawBytes)
  }

  /// The length without the padding; `nil` if the padding is invalid.
  private func withoutPadding(_ content: RawSpan, _ count: Int, _ blockLength: Int) -> Int? {
    guard count > 0 else { return nil }
    let padding = Int(content.byte(at: count - 1))
    guard padding < count else { return nil }
    // SSL 3.0 fills with anything, less than a block.
    if version == .ssl3 { return padding < blockLength ? count - padding - 1 : nil }
    for index in count - padding - 1..<count where content.byte(at: index) != UInt8(padding) { return nil }
    return count - padding - 1
  }

  /// Opens a record whose first block cannot be had, so that its MAC, if it is inside, cannot be verified.
  func openWithoutVector(_ header: RecordHeader, _ fragment: RawSpan, into output: inout [UInt8]) -> Opened? {
    guard needsVector, !isEncryptThenMAC, var opened = openBehindFirstBlock(header, fragment, into: &output),
      opened.length >= macLength
    else { return nil }
    opened.length -= macLength
    return opened
  }

  /// The content of the blocks after the first.
  private func openBehindFirstBlock(_ header: RecordHeader, _ blocks: RawSpan, into output: inout [UInt8]) -> Opened? {
    guard let cipher, blocks.byteCount % blockLength == 0, blocks.byteCount > blockLength,
      cipher.decrypt(
        blocks.extracting(blockLength..<blocks.byteCount), initializationVector: blocks.extracting(0..<blockLength),
        into: &output),
      let length = withoutPadding(output.rawBytes, blocks.byteCount - blockLength, blockLength)
    else { return nil }
    return Opened(type: header.type, start: blockLength, length: length)
  }

  // MARK: MACs

  private func verifyEnd(_ header: RecordHeader, _ sequence: UInt64, _ count: Int, _ content: RawSpan) -> Opened? {
    let length = count - macLength
    guard length >= 0 else { return nil }
    let isGenuine = verify(
      header, sequence, content.extracting(0..<length), content.extracting(length..<count))
    return isGenuine ? Opened(type: header.type, length: length) : nil
  }

  private func verify(_ header: RecordHeader, _ sequence: UInt64, _ content: RawSpan, _ code: RawSpan) -> Bool {
    switch authentication {
    case .none: return true
    case .hmac(let hmac):
      var prefix = InlineArray<13, UInt8>(repeating: 0)
      Self.put(header, sequence, UInt16(truncatingIfNeeded: content.byteCount), &prefix)
      return hmac.verify(code, prefix.span.rawBytes, content)
    case .ssl3(let hash, let key):
      // hash(key ‖ pad2 ‖ hash(key ‖ pad1 ‖ number u64 ‖ type ‖ length u16 ‖ content)), RFC 6101, section 5.2.3.1
      let padding = hash == .md5 ? 48 : 40
      var prefix = InlineArray<13, UInt8>(repeating: 0)
      Self.put(header, sequence, UInt16(truncatingIfNeeded: content.byteCount), &prefix)
      let numbered = (0..<9).map { prefix[$0] } + [prefix[11], prefix[12]]
      let inner = hash.hash(key, [UInt8](repeating: 0x36, count: padding), numbered, Array(copying: content))
      let outer = hash.hash(key, [UInt8](repeating: 0x5c, count: padding), inner)
      return outer.rawBytes.elementsEqual(code)
    }
  }

  /// number u64 | type | version u16 | length u16
  @inline(__always)
  private static func put(
    _ header: RecordHeader, _ sequence: UInt64, _ length: UInt16, _ bytes: inout InlineArray<13, UInt8>
  ) {
    for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * index)) }
    bytes[8] = header.type.rawValue
    put(header.version.rawValue, &bytes, 9)
    put(length, &bytes, 11)
  }

  @inline(__always)
  private static func put(_ value: UInt16, _ bytes: inout InlineArray<13, UInt8>, _ offset: Int) {
    bytes[offset] = UInt8(value >> 8)
    bytes[offset + 1] = UInt8(value & 0xff)
  }

  /// Notes that a record was genuine, so the next record has the next sequence number.
  func accept(_ fragment: RawSpan, sequence: UInt64) {
    self.sequence = sequence &+ 1
    switch method {
    case .aead(_, 8, _): lastNonce = (fragment.uint64(at: 0), sequence)
    case .block(_, false): noteEnd(fragment)
    default: break
    }
  }
}

/// The derived keys of one direction.
struct DirectionKeys: Equatable {
  var mac: [UInt8] = []
  var key: [UInt8]
  /// CBC's first initialization vector, or the base of an AEAD's nonces.
  var vector: [UInt8] = []
}
