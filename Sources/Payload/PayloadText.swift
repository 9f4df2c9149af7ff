import Bytes

/// The JSON text in a payload's bytes: without final 00 bytes and byte order mark, and converted where it is UTF-16 or
/// UTF-32 (RFC 4627 §3).
struct PayloadText {
  enum Encoding: Equatable {
    case utf8
    case utf16(bigEndian: Bool)
    case utf32(bigEndian: Bool)
  }

  var encoding = Encoding.utf8
  /// The offset at which the text begins: after the byte order mark.
  var start = 0
  /// The offset at which the text ends: before trailing 00 bytes.
  var end: Int

  /// Looks at the first and last bytes.
  @inline(__always)
  init(of payload: RawSpan) {
    let count = payload.byteCount
    end = count
    guard count >= 2 else {
      trim(payload)
      return
    }
    let (first, second) = (payload.byte(at: 0), payload.byte(at: 1))
    // Nearly all payloads begin with a brace and another ASCII character.
    if first == 0 || second == 0 || first >= 0xef { lookAtBeginning(payload) }
    if encoding == .utf8 { trim(payload) }
  }

  @inline(__always)
  private mutating func trim(_ payload: RawSpan) {
    while end > start, payload.byte(at: end - 1) == 0 { end -= 1 }
  }

  @inline(never)
  private mutating func lookAtBeginning(_ payload: RawSpan) {
    func byte(_ offset: Int) -> UInt8? { offset < payload.byteCount ? payload.byte(at: offset) : nil }
    switch (byte(0), byte(1), byte(2), byte(3)) {
    case (0xef, 0xbb, 0xbf, _): start = 3
    case (0, 0, 0xfe, 0xff): (encoding, start) = (.utf32(bigEndian: true), 4)
    case (0xff, 0xfe, 0, 0): (encoding, start) = (.utf32(bigEndian: false), 4)
    case (0xfe, 0xff, _, _): (encoding, start) = (.utf16(bigEndian: true), 2)
    case (0xff, 0xfe, _, _): (encoding, start) = (.utf16(bigEndian: false), 2)
    case (0, 0, 0, let d?) where d != 0: encoding = .utf32(bigEndian: true)
    case (let a?, 0, 0, 0) where a != 0: encoding = .utf32(bigEndian: false)
    case (0, let b?, 0, let d?) where b != 0 && d != 0: encoding = .utf16(bigEndian: true)
    case (let a?, 0, let c?, 0) where a != 0 && c != 0: encoding = .utf16(bigEndian: false)
    default: break
    }
  }

  /// The text converted to UTF-8, if it is in another encoding; `nil` if it is not valid.
  func converted(_ payload: RawSpan) -> [UInt8]? {
    var bytes: [UInt8] = []
    var isValid = true
    forEachScalar(payload) { scalar, _ in
      if let encoded = scalar.flatMap(UTF8.encode) {
        bytes.append(contentsOf: encoded)
      } else {
        isValid = false
      }
    }
    return isValid ? bytes : nil
  }

  /// The offset in the payload of the byte at `offset` of the judged text.
  func place(_ offset: Int, in payload: RawSpan) -> Int {
    guard encoding != .utf8 else { return start + offset }
    var (converted, place) = (0, start)
    forEachScalar(payload) { scalar, length in
      guard converted < offset else { return }
      converted += scalar.map(UTF8.width) ?? 1
      place += length
    }
    return place
  }

  /// Calls `body` with each character and its length in the payload; `nil` for invalid bytes.
  private func forEachScalar(_ payload: RawSpan, _ body: (Unicode.Scalar?, Int) -> Void) {
    var offset = start
    switch encoding {
    case .utf8: return
    case .utf32(let bigEndian):
      while offset < end {
        guard offset + 4 <= end else { return body(nil, end - offset) }
        body(Unicode.Scalar(payload.uint32(at: offset, bigEndian: bigEndian)), 4)
        offset += 4
      }
    case .utf16(let bigEndian):
      while offset < end {
        guard offset + 2 <= end else { return body(nil, end - offset) }
        let first = UInt32(payload.uint16(at: offset, bigEndian: bigEndian))
        if (0xd800..<0xdc00).contains(first), offset + 4 <= end {
          let second = UInt32(payload.uint16(at: offset + 2, bigEndian: bigEndian))
          if (0xdc00..<0xe000).contains(second) {
            body(Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00)), 4)
            offset += 4
            continue
          }
        }
        body(Unicode.Scalar(first), 2)
        offset += 2
      }
    }
  }
}
