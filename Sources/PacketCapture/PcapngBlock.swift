import Bytes

/// Makes pcapng blocks, with integers in little-endian order.
package enum PcapngBlock {
  static let sectionType: UInt32 = 0x0a0d_0d0a
  static let simpleType: UInt32 = 3
  static let secretsType: UInt32 = 10

  /// A section header without options, with an unspecified section length.
  package static func section() -> [UInt8] {
    var body: [UInt8] = []
    body.append(0x1a2b_3c4d as UInt32)
    body.append(1 as UInt16)
    body.append(0 as UInt16)
    body.append(UInt64.max)
    return block(sectionType, body)
  }

  /// An interface description.
  ///
  /// - Parameter digits: the decimal digits of the fraction of a second in packet times.
  package static func interface(linkType: UInt16, snapLength: UInt32, digits: Int) -> [UInt8] {
    var body: [UInt8] = []
    body.append(linkType)
    body.append(0 as UInt16)
    body.append(snapLength)
    // if_tsresol: option 9 with one byte, then the end of options.
    body.append(9 as UInt16)
    body.append(1 as UInt16)
    body += [UInt8(truncatingIfNeeded: digits), 0, 0, 0, 0, 0, 0, 0]
    return block(1, body)
  }

  /// An enhanced packet block for the first interface.
  ///
  /// - Parameters:
  ///   - time: the time in the units of the interface.
  ///   - length: the length on the wire; `bytes` may be shorter.
  package static func packet(time: UInt64, length: UInt32, _ bytes: RawSpan, comment: String? = nil) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(20 + bytes.byteCount)
    body.append(0 as UInt32)
    body.append(UInt32(truncatingIfNeeded: time >> 32))
    body.append(UInt32(truncatingIfNeeded: time))
    body.append(UInt32(truncatingIfNeeded: bytes.byteCount))
    body.append(length)
    body.append(copying: bytes)
    if let comment { body.append(comment: comment) }
    return block(6, body)
  }

  /// A simple packet block, which has no time, for the first interface.
  package static func packet(simple bytes: RawSpan) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(4 + bytes.byteCount)
    body.append(UInt32(truncatingIfNeeded: bytes.byteCount))
    body.append(copying: bytes)
    return block(simpleType, body)
  }

  /// A copy of an enhanced or obsolete packet block with one more comment after its options.
  ///
  /// - Parameter captured: the number of captured bytes in the block.
  static func packet(_ original: RawSpan, captured: Int, bigEndian: Bool, comment: String) -> [UInt8] {
    let end = Int(original.uint32(at: 4, bigEndian: bigEndian)) - 4
    var offset = min(28 + (captured + 3) & ~3, end)
    // code u16, length u16, value, padded to four bytes; code 0 ends the options
    while offset + 4 <= end, original.uint16(at: offset) != 0 {
      let next = offset + 4 + (Int(original.uint16(at: offset + 2, bigEndian: bigEndian)) + 3) & ~3
      guard next <= end else { break }
      offset = next
    }
    var body = Array(copying: original.extracting(8..<offset))
    body.append(comment: comment, bigEndian: bigEndian)
    return block(original.uint32(at: 0, bigEndian: bigEndian), body, bigEndian: bigEndian)
  }

  /// An enhanced packet block without a time for the first interface, made from a simple packet block, which cannot
  /// have a comment.
  static func packet(simple bytes: RawSpan, length: UInt32, bigEndian: Bool, comment: String) -> [UInt8] {
    var body: [UInt8] = []
    for value in [0, 0, 0, UInt32(truncatingIfNeeded: bytes.byteCount), length] {
      body.append(value, bigEndian: bigEndian)
    }
    body.append(copying: bytes)
    body.append(comment: comment, bigEndian: bigEndian)
    return block(6, body, bigEndian: bigEndian)
  }

  /// A Decryption Secrets Block with the lines of a key log.
  package static func secrets(_ keyLog: [UInt8]) -> [UInt8] {
    var body: [UInt8] = []
    body.append(DecryptionSecrets.tlsKeyLog)
    body.append(UInt32(truncatingIfNeeded: keyLog.count))
    return block(secretsType, body + keyLog)
  }

  private static func block(_ type: UInt32, _ body: [UInt8], bigEndian: Bool = false) -> [UInt8] {
    let padding = (4 - body.count % 4) % 4
    let length = UInt32(truncatingIfNeeded: 12 + body.count + padding)
    var block: [UInt8] = []
    block.reserveCapacity(Int(length))
    block.append(type, bigEndian: bigEndian)
    block.append(length, bigEndian: bigEndian)
    block += body
    block += [UInt8](repeating: 0, count: padding)
    block.append(length, bigEndian: bigEndian)
    return block
  }
}

extension [UInt8] {
  fileprivate mutating func append<Integer: FixedWidthInteger>(_ value: Integer, bigEndian: Bool = false) {
    let value = bigEndian ? value.byteSwapped : value
    for shift in stride(from: 0, to: Integer.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }

  /// opt_comment: option 1 with a text, truncated to the maximum length of an option; then the end of options.
  fileprivate mutating func append(comment: String, bigEndian: Bool = false) {
    var text = Array(comment.utf8.prefix(Int(UInt16.max)))
    // Drop a truncated character.
    if let next = comment.utf8.dropFirst(text.count).first, next & 0xc0 == 0x80 {
      while let last = text.popLast(), last & 0xc0 == 0x80 {}
    }
    append(contentsOf: repeatElement(0, count: (4 - count % 4) % 4))
    append(1 as UInt16, bigEndian: bigEndian)
    append(UInt16(clamping: text.count), bigEndian: bigEndian)
    append(contentsOf: text)
    append(contentsOf: repeatElement(0, count: (4 - count % 4) % 4 + 4))
  }
}
