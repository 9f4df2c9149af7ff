import Bytes
import TLSFoundation

/// A ClientHello in SSL 2.0's form: length u16 with the highest bit set | 1 | version u16 | three lengths u16 | suites
/// | session id | challenge (RFC 5246, appendix E.2).
struct SSL2Hello {
  /// The fields of fixed length, after the length of the record.
  private static let shortestLength = 9

  static func begins(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 5 && bytes.byte(at: 0) & 0x80 != 0 && bytes.uint16(at: 0) & 0x7fff >= shortestLength
      && bytes.byte(at: 2) == 1 && bytes.byte(at: 3) == 3 && bytes.byte(at: 4) <= 4
  }

  var version: TLSVersion
  /// The challenge, with zeros before it when it is shorter than 32 bytes.
  var random: [UInt8]
  /// The bytes that enter the handshake hash.
  var message: [UInt8]

  /// - Parameter record: the length and all that it covers.
  init?(_ record: RawSpan) {
    guard record.byteCount >= 11, Self.begins(record) else { return nil }
    version = TLSVersion(rawValue: record.uint16(at: 3))
    let challengeLength = Int(record.uint16(at: 9))
    let start = 11 + Int(record.uint16(at: 5)) + Int(record.uint16(at: 7))
    guard 16...32 ~= challengeLength, start + challengeLength <= record.byteCount else { return nil }
    random =
      [UInt8](repeating: 0, count: 32 - challengeLength)
      + Array(copying: record.extracting(start..<start + challengeLength))
    message = Array(copying: record.extracting(2..<record.byteCount))
  }
}
