import Bytes

/// What a provider token, a JSON Web Token, says of itself (RFC 7519; Apple, "Establishing a token-based connection").
///
/// Its signature is a credential for as long as the token is valid. It is looked at for its form, and kept nowhere.
public struct ProviderToken: Sendable, Hashable {
  /// How the issue time is written. Only a whole number is documented.
  public enum TimeForm: Sendable, Hashable {
    case integer, fraction, string
  }

  /// The form of the signature. Raw is what JWT prescribes (RFC 7518 section 3.4); DER is seen, too.
  public enum SignatureForm: Sendable, Hashable {
    /// 64 bytes, the numbers R and S.
    case raw
    /// An ASN.1 sequence of both numbers.
    case der
    /// Neither.
    case other
  }

  /// Why a value is no provider token.
  public enum Problem: Error, Sendable, Hashable {
    /// It does not begin with `bearer` and a space.
    case notBearer
    /// It has not three parts between full stops.
    case partCount
    /// A part is not Base64url (RFC 4648 section 5).
    case encoding
    /// The header or the claims are not a JSON object.
    case notObject
    /// It is longer than 4,096 bytes.
    case tooLong
  }

  /// The header's `alg`, documented as `ES256`; `nil` if it is absent.
  public var algorithm: String?
  /// The header's `kid`, the identifier of the key.
  public var keyID: String?
  /// The claim `iss`, the identifier of the team.
  public var teamID: String?
  /// The claim `iat` in whole seconds since 1970 UTC, rounded down.
  public var issuedAt: Int?
  /// How the claim `iat` is written; `nil` if it is absent, or no number.
  public var issuedAtForm: TimeForm?
  /// The form of the signature.
  public var signatureForm: SignatureForm

  /// The longest value that is read.
  static let longest = 4_096

  /// The token, with the members that records have.
  package init(keyID: String?, teamID: String?, issuedAt: Int?) {
    (self.keyID, self.teamID, self.issuedAt) = (keyID, teamID, issuedAt)
    signatureForm = .other
  }

  /// Reads the value of an `authorization` field.
  ///
  /// - Parameter value: `bearer`, a space, and the token. Letters of either case are taken.
  /// - Throws: why it is none.
  public init(parsing value: RawSpan) throws(Problem) {
    guard value.byteCount <= Self.longest else { throw .tooLong }
    let (start, first, second) = try Self.parts(value)
    var text = JSONObject()
    guard let header = Base64URL.decoded(value.extracting(start..<first)),
      let claims = Base64URL.decoded(value.extracting(first + 1..<second)),
      let signature = Base64URL.decoded(value.extracting(second + 1..<value.byteCount))
    else { throw .encoding }
    guard text.read(header.rawBytes) else { throw .notObject }
    algorithm = text.string("alg", header.rawBytes)
    keyID = text.string("kid", header.rawBytes)
    guard text.read(claims.rawBytes) else { throw .notObject }
    teamID = text.string("iss", claims.rawBytes)
    if let time = text.time("iat", claims.rawBytes) { (issuedAt, issuedAtForm) = (time.seconds, time.form) }
    signatureForm = Self.form(signature)
  }

  /// What the signature of a value is of, and the signature itself, for whoever verifies it; `nil` if it is no token.
  package static func signed(in value: RawSpan) -> (message: Range<Int>, signature: [UInt8])? {
    guard value.byteCount <= longest, let place = try? parts(value),
      let signature = Base64URL.decoded(value.extracting(place.second + 1..<value.byteCount))
    else { return nil }
    return (place.start..<place.second, signature)
  }

  /// Whether the value of an `authorization` field is `bearer`, and three parts between full stops.
  package static func hasForm(_ value: RawSpan) -> Bool { (try? parts(value)) != nil }

  /// The beginning of a token, and its two full stops.
  private static func parts(_ value: RawSpan) throws(Problem) -> (start: Int, first: Int, second: Int) {
    let scheme = "bearer "
    guard value.byteCount > scheme.utf8.count else { throw .notBearer }
    for (offset, letter) in scheme.utf8.enumerated() {
      let byte = value.byte(at: offset)
      guard byte == letter || byte | 0x20 == letter else { throw .notBearer }
    }
    var start = scheme.utf8.count
    while start < value.byteCount, value.byte(at: start) == 0x20 { start += 1 }
    let dot = UInt8(ascii: ".")
    guard let first = value.firstOffset(of: dot, from: start), let second = value.firstOffset(of: dot, from: first + 1),
      value.firstOffset(of: dot, from: second + 1) == nil
    else { throw .partCount }
    return (start, first, second)
  }

  /// Whether a text has three parts as a token has: two points between base64url, of which the last part may be a
  /// signature, or the first begins as a header in JSON does.
  package static func isInside(_ text: RawSpan) -> Bool {
    // Most fields have no two points.
    let dot = UInt8(ascii: ".")
    guard text.byteCount >= 16, let point = text.firstOffset(of: dot), text.firstOffset(of: dot, from: point + 1) != nil
    else { return false }
    // The lengths of the latest parts that points separate, and where the first of them begins.
    var (first, second, third) = (0, 0, 0)
    var begins = (0, 0, 0)
    for offset in 0..<text.byteCount {
      let byte = text.byte(at: offset)
      if Base64URL.isDigit(byte) {
        third += 1
        continue
      }
      if holdsToken(text, (first, second, third), at: begins.0) { return true }
      if byte == dot {
        (first, second, third) = (second, third, 0)
        begins = (begins.1, begins.2, offset + 1)
      } else {
        (first, second, third) = (0, 0, 0)
        begins = (offset + 1, offset + 1, offset + 1)
      }
    }
    return holdsToken(text, (first, second, third), at: begins.0)
  }

  /// The signatures in a text that is a provider token, or has one inside: what follows the second full stop.
  package static func signatures(in text: RawSpan) -> [Range<Int>] {
    if let place = try? parts(text) { return [place.second + 1..<text.byteCount] }
    guard isInside(text) else { return [] }
    var ranges: [Range<Int>] = []
    var dots = 0
    var start = 0
    for offset in 0..<text.byteCount {
      let byte = text.byte(at: offset)
      if byte == UInt8(ascii: ".") {
        dots += 1
        if dots > 2 { ranges.append(start..<offset) }
        start = offset + 1
      } else if !Base64URL.isDigit(byte) {
        if dots > 1 { ranges.append(start..<offset) }
        dots = 0
      }
    }
    if dots > 1 { ranges.append(start..<text.byteCount) }
    return ranges
  }

  // A topic has parts like these, but its first ones are short, and few of its last ones are long.
  /// The fewest letters of a part that is taken for a signature, and of one before it.
  private static let (shortestSignature, shortestPart) = (40, 10)
  /// The fewest letters of a header: {"alg":"none"} has 19.
  private static let shortestHeader = 16

  private static func holdsToken(_ text: RawSpan, _ lengths: (Int, Int, Int), at start: Int) -> Bool {
    guard lengths.1 > 0, lengths.2 > 0 else { return false }
    if min(lengths.0, lengths.1) >= shortestPart, lengths.2 >= shortestSignature { return true }
    // "{" and what follows it.
    return lengths.0 >= shortestHeader && text.holds("ey", at: start)
  }

  private static func form(_ signature: [UInt8]) -> SignatureForm {
    if signature.count == 64 { return .raw }
    // 30 LL 02 …: both numbers have up to 33 bytes, so the length fits one byte.
    let isSequence = signature.count >= 8 && signature[0] == 0x30 && Int(signature[1]) == signature.count - 2
    return isSequence && signature[2] == 0x02 ? .der : .other
  }
}

/// Base64url without padding (RFC 4648 section 5).
enum Base64URL {
  @inline(__always)
  static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// The decoded bytes of Base64 with `+` and `/`; `nil` for other characters, none at all, or an impossible length.
  static func standard(_ text: String) -> [UInt8]? {
    guard !text.isEmpty, !text.utf8.contains(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) else {
      return nil
    }
    let digits = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: byte
      }
    }
    return decoded(digits.rawBytes)
  }

  /// The decoded bytes; `nil` for other characters, or an impossible length. Padding at the end is taken.
  static func decoded(_ text: RawSpan) -> [UInt8]? {
    var end = text.byteCount
    while end > 0, text.byteCount - end < 2, text.byte(at: end - 1) == UInt8(ascii: "=") { end -= 1 }
    guard end % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(end * 3 / 4)
    var (bits, count) = (UInt32(0), 0)
    for offset in 0..<end {
      guard let digit = digit(text.byte(at: offset)) else { return nil }
      bits = bits << 6 | digit
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte) - 0x41
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte) - 0x61 + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte) - 0x30 + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
