import Bytes

/// Makes pcapng blocks, with integers in little-endian order.
package enum PcapngBlock {
  static let sectionType: UInt32 = 0x0a0d_0d0a

  /// A section header without options; the section's length is not given.
  static func section() -> [UInt8] {
    var body: [UInt8] = []
    body.append(little: 0x1a2b_3c4d as UInt32)
    body.append(little: 1 as UInt16)
    body.append(little: 0 as UInt16)
    body.append(little: UInt64.max)
    return block(sectionType, body)
  }

  /// - Parameter digits: of a second's fraction in the times of its packets.
  static func interface(linkType: UInt16, snapLength: UInt32, digits: Int) -> [UInt8] {
    var body: [UInt8] = []
    body.append(little: linkType)
    body.append(little: 0 as UInt16)
    body.append(little: snapLength)
    // if_tsresol: option 9 with one byte, then the end of options.
    body.append(little: 9 as UInt16)
    body.append(little: 1 as UInt16)
    body += [UInt8(truncatingIfNeeded: digits), 0, 0, 0, 0, 0, 0, 0]
    return block(1, body)
  }

  /// A packet of the first interface.
  ///
  /// - Parameters:
  ///   - time: in the units of its interface.
  ///   - length: on the wire; `bytes` may be fewer.
  static func packet(time: UInt64, length: UInt32, _ bytes: RawSpan) -> [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(20 + bytes.byteCount)
    body.append(little: 0 as UInt32)
    body.append(little: UInt32(truncatingIfNeeded: time >> 32))
    body.append(little: UInt32(truncatingIfNeeded: time))
    body.append(little: UInt32(truncatingIfNeeded: bytes.byteCount))
    body.append(little: length)
    body.append(copying: bytes)
    return block(6, body)
  }

  /// Lines of a key log.
  package static func secrets(_ keyLog: [UInt8]) -> [UInt8] {
    var body: [UInt8] = []
    body.append(little: DecryptionSecrets.tlsKeyLog)
    body.append(little: UInt32(truncatingIfNeeded: keyLog.count))
    return block(10, body + keyLog)
  }

  private static func block(_ type: UInt32, _ body: [UInt8]) -> [UInt8] {
    let padding = (4 - body.count % 4) % 4
    let length = UInt32(truncatingIfNeeded: 12 + body.count + padding)
    var block: [UInt8] = []
    block.reserveCapacity(Int(length))
    block.append(little: type)
    block.append(little: length)
    block += body
    block += [UInt8](repeating: 0, count: padding)
    block.append(little: length)
    return block
  }
}

extension [UInt8] {
  fileprivate mutating func append(little value: some FixedWidthInteger) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
