import Bytes
import HTTP2
import ProviderAPI
import PushModel

/// The fields of a request or an answer over HTTP/2, redacted as its records are.
///
/// Reading them again gives what redacting the record gives: a field that is documented and repeated, or has no value
/// of its kind, is one of the others there, and is here.
struct RedactedFields {
  private typealias Known = ProviderRequest.Uncertain

  private let redaction: Redaction
  private let isRequest: Bool
  /// Documented fields of a request that were seen.
  private var seen: Known = []

  init(_ redaction: Redaction, isRequest: Bool) { (self.redaction, self.isRequest) = (redaction, isRequest) }

  /// A text that has the form of a provider token, and is none: readers take it for one that they must not show.
  static let credential = "redacted-header.redacted-claims.redacted-signature-that-opens-nothing-at-all"

  /// Redacts the next field.
  ///
  /// - Parameters:
  ///   - name: its name.
  ///   - value: its value.
  ///   - method: the request's method; `nil` if it is not known.
  mutating func redact(_ name: RawSpan, _ value: RawSpan, method: [UInt8]?) -> (name: String, value: String) {
    let text = Redaction.text(name)
    if ProviderToken.isInside(name) { return (Self.credential, "x") }
    let holdsCredential = text != "authorization" && ProviderToken.isInside(value)
    let documented = isRequest ? inRequest(text, value, method) : inAnswer(text, value)
    if let documented { return (text, holdsCredential ? Self.credential : documented) }
    let other = Redaction.header(text, Redaction.text(value))
    return (other.name, holdsCredential ? Self.credential : other.value)
  }

  /// The value of a documented field; `nil` for others.
  private mutating func inRequest(_ name: String, _ value: RawSpan, _ method: [UInt8]?) -> String? {
    let text = Redaction.text(value)
    switch name {
    case ":method": return Redaction.method(text)
    case ":scheme": return ["https", "http"].contains(text) ? text : RedactedText.masked(text)
    case ":authority", "host": return redaction.label(text)
    case ":path": return path(value, method)
    case "apns-topic": return isFirst(.topic) ? redaction.providerTopic(text) : nil
    case "apns-push-type": return isFirst(.pushType) ? Redaction.pushType(text) : nil
    case "apns-id": return isFirst(.apnsID) ? redaction.identifier(text) : nil
    case "apns-request-id": return isFirst(.requestID) ? redaction.identifier(text) : nil
    case "apns-collapse-id": return isFirst(.collapseID) ? redaction.sameLength(text) : nil
    case "apns-channel-id": return isFirst(.channelID) ? redaction.sameLength(text) : nil
    case "apns-priority":
      return isFirst(.priority) && DecimalText.number(value).flatMap { UInt8(exactly: $0) } != nil ? text : nil
    case "apns-expiration":
      return isFirst(.expiration) && DecimalText.number(value).flatMap { Int64(exactly: $0) } != nil ? text : nil
    case "authorization": return redaction.authorization(value)
    default: return nil
    }
  }

  private func inAnswer(_ name: String, _ value: RawSpan) -> String? {
    let text = Redaction.text(value)
    switch name {
    case ":status": return DecimalText.number(value) != nil ? text : RedactedText.masked(text)
    case "apns-id", "apns-unique-id", "apns-request-id": return redaction.identifier(text)
    case "apns-channel-id": return redaction.sameLength(text)
    default: return nil
    }
  }

  private mutating func isFirst(_ field: Known) -> Bool { seen.insert(field).inserted }

  private func path(_ path: RawSpan, _ method: [UInt8]?) -> String {
    let text = Array(copying: path)
    let bytes = text + (method ?? [])
    let (target, place) = RequestTarget.read(
      bytes.rawBytes, path: 0..<text.count, method: method.map { _ in text.count..<bytes.count })
    let name = Redaction.text(path.extracting(place))
    switch target {
    case .device: return "/3/device/" + redaction.tokenText(name)
    case .broadcast: return "/4/broadcasts/apps/" + redaction.providerTopic(name)
    case .channel(.readAll): return "/1/apps/\(redaction.providerTopic(name))/all-channels"
    case .channel: return "/1/apps/\(redaction.providerTopic(name))/channels"
    case .badPath, .other, .unknown: return "/redacted"
    }
  }
}

extension Redaction {
  /// The device token of a path, in hexadecimal digits if it is one.
  func tokenText(_ text: String) -> String {
    let digits = Array(text.utf8)
    let bytes = stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap { place -> UInt8? in
      let pair = digits[place...place + 1]
      return pair.contains(UInt8(ascii: "+")) ? nil : UInt8(String(decoding: pair, as: UTF8.self), radix: 16)
    }
    guard !digits.isEmpty, bytes.count * 2 == digits.count else { return RedactedText.masked(text) }
    return Self.hex(token(bytes.rawBytes))
  }

  /// The value of `authorization`: a token of the same form, in which the key and the team are pseudonyms, the time is
  /// the token's, and the signature is none. Different tokens stay different.
  func authorization(_ value: RawSpan) -> String {
    guard ProviderToken.hasForm(value) else { return RedactedText.masked(Self.text(value)) }
    let tag = "redacted-" + credentialTag(of: value)
    // 25 letters are no Base64url, so the token cannot be read, as the original.
    guard let token = try? ProviderToken(parsing: value) else { return "bearer \(tag).redacted.redacted" }
    let shown = self.token(token)
    let header = [shown.algorithm.map { "\"alg\":\"\($0)\"" }, shown.keyID.map { "\"kid\":\"\($0)\"" }]
    var time: String?
    if let issued = shown.issuedAt { time = token.issuedAtForm == .string ? "\"\(issued)\"" : "\(issued)" }
    let claims = [shown.teamID.map { "\"iss\":\"\($0)\"" }, time.map { "\"iat\":\($0)" }]
    let signature = tag + "-" + String(repeating: "A", count: 4_096)
    return "bearer " + Self.object(header) + "." + Self.object(claims) + "."
      + signature.prefix(Self.signatureLength(value))
  }

  /// The JSON object of these members in Base64url.
  private static func object(_ members: [String?]) -> String {
    var writer = ByteWriter(capacity: 128)
    writer.write(base64: Array(("{" + members.compactMap { $0 }.joined(separator: ",") + "}").utf8).rawBytes)
    let digits = Array(copying: writer.bytes).map { digit -> UInt8 in
      switch digit {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: digit
      }
    }
    return String(decoding: digits.filter { $0 != UInt8(ascii: "=") }, as: UTF8.self)
  }

  /// The length of what follows the last full stop, without padding.
  private static func signatureLength(_ value: RawSpan) -> Int {
    let bytes = Array(copying: value)
    let start = (bytes.lastIndex(of: UInt8(ascii: ".")) ?? -1) + 1
    return bytes[start...].count { $0 != UInt8(ascii: "=") }
  }

  /// The content of an answer, or the debug data of GOAWAY, in as many bytes: its reason and its time stay. `nil` if
  /// they do not fit.
  static func answer(_ content: RawSpan) -> [UInt8]? {
    guard let said = AnswerContent(parsing: content) else {
      return [UInt8](repeating: UInt8(ascii: "x"), count: content.byteCount)
    }
    let members = [
      said.reason.map { "\"reason\":\"\(reason($0.rawValue))\"" }, said.timestamp.map { "\"timestamp\":\($0)" },
    ]
    let text = Array(("{" + members.compactMap { $0 }.joined(separator: ",") + "}").utf8)
    guard text.count <= content.byteCount else { return nil }
    return text + [UInt8](repeating: 0x20, count: content.byteCount - text.count)
  }
}
