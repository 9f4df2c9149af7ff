import Bytes
import HTTP2
import ProviderAPI
import PushModel
import Records

/// Records of the HTTP/2 provider API: names and identifiers become pseudonyms, documented words stay.
extension Redaction {
  /// Fields of requests that stay by their names, of which only a length stays by its value.
  private static let knownHeaders: Set<String> = [
    "accept", "accept-encoding", "content-length", "content-type", "host", "user-agent",
  ]

  static func text(_ bytes: RawSpan) -> String { String(decoding: Array(copying: bytes), as: UTF8.self) }

  /// A request with its bytes anew.
  package func request(_ record: borrowing ProviderNotificationRecord) -> (request: ProviderRequest, bytes: [UInt8]) {
    var request = record.request
    // Offset 0 is an absent field's.
    var bytes: [UInt8] = [0]
    func keep(_ text: String) -> ByteField { keep(Array(text.utf8)) }
    func keep(_ text: [UInt8]) -> ByteField {
      defer { bytes += text }
      return ByteField(offset: bytes.count, length: text.count)
    }
    func replace(_ place: WritableKeyPath<ProviderRequest, ByteField>, _ body: (String) -> String) {
      guard request[keyPath: place].isPresent else { return }
      request[keyPath: place] = keep(body(Self.text(record.bytes(of: record.request[keyPath: place]))))
    }
    if request.token.isPresent {
      let token = token(record.bytes(of: record.request.token))
      request.token = keep(token)
      request.tokenText = keep(Self.hex(token))
    } else if request.tokenText.isPresent {
      request.tokenText = keep(RedactedText.masked(Self.text(record.bytes(of: record.request.tokenText))))
    }
    replace(\.path) { _ in
      request.tokenText.isPresent
        ? "/3/device/" + String(decoding: bytes[request.tokenText.range], as: UTF8.self) : "/redacted"
    }
    replace(\.method, Self.method)
    request.authority = ByteField()
    replace(\.bundle, providerTopic)
    replace(\.topic, providerTopic)
    replace(\.pushType, Self.pushType)
    replace(\.apnsID, identifier)
    replace(\.requestID, identifier)
    replace(\.collapseID, sameLength)
    replace(\.channelID, sameLength)
    request.headers = record.request.headers.map { header in
      let (name, value) = Self.header(
        Self.text(record.bytes(of: header.name)), Self.text(record.bytes(of: header.value)))
      return ProviderRequest.Header(name: keep(name), value: keep(value))
    }
    request.payload =
      request.payload.isPresent ? keep(payload(Array(copying: record.bytes(of: record.request.payload)))) : ByteField()
    return (request, bytes)
  }

  static func method(_ method: String) -> String {
    ["GET", "PUT", "DELETE", "HEAD", "POST"].contains(method) ? method : RedactedText.masked(method)
  }

  static func pushType(_ type: String) -> String {
    PushType(rawValue: type).isDocumented ? type : RedactedText.masked(type)
  }

  /// A field that no property has.
  static func header(_ name: String, _ value: String) -> (name: String, value: String) {
    let isLength = name == "content-length" && value.allSatisfy { $0.isASCII && $0.isNumber }
    return (
      knownHeaders.contains(name) ? name : RedactedText.masked(name), isLength ? value : RedactedText.masked(value)
    )
  }

  /// Key and team become pseudonyms; the time stays.
  package func token(_ token: ProviderToken) -> ProviderToken {
    var token = token
    token.keyID = token.keyID.map(sameLength)
    token.teamID = token.teamID.map(sameLength)
    token.algorithm = token.algorithm == "ES256" ? "ES256" : token.algorithm.map { _ in "redacted" }
    return token
  }

  package func record(_ record: ProviderRecord) -> ProviderRecord {
    switch record {
    case .response(var record):
      record.apnsID = record.apnsID.map(identifier)
      record.apnsUniqueID = record.apnsUniqueID.map(identifier)
      record.requestID = record.requestID.map(identifier)
      record.channelID = record.channelID.map(sameLength)
      record.reason = record.reason.map(Self.reason)
      return .response(record)
    case .goAway(var record):
      record.reason = record.reason.map(Self.reason)
      return .goAway(record)
    case .channelRequest(var record):
      record.bundle = record.bundle.map(providerTopic)
      record.requestID = record.requestID.map(identifier)
      record.channelID = record.channelID.map(sameLength)
      record.reason = record.reason.map(Self.reason)
      return .channelRequest(record)
    case .reset, .settings: return record
    }
  }

  package func summary(_ summary: HTTP2Summary) -> HTTP2Summary {
    var summary = summary
    // Different reasons may have one pseudonym.
    var counts: [String: Int] = [:]
    for (name, count) in summary.rejections.map({ ($0.name, $0.count) }) {
      counts[name == "other" || UInt16(name) != nil ? name : Self.reason(name), default: 0] += count
    }
    summary.rejections = counts.sorted { $0.key < $1.key }.map { .init(name: $0.key, count: $0.value) }
    return summary
  }

  package static func reason(_ reason: String) -> String {
    ProviderReason(rawValue: reason).isDocumented ? reason : RedactedText.masked(reason)
  }

  /// The pseudonym of a topic, with the end that belongs to a push type.
  func providerTopic(_ topic: String) -> String {
    guard let suffix = PushType.type(ofTopic: topic)?.topicSuffix else { return topics(topic) }
    return topics(String(topic.dropLast(suffix.count))) + suffix
  }

  /// The pseudonym of an identifier: digits and letters of hexadecimal numbers are replaced, and marks between them
  /// stay. Letters of either case have one pseudonym, in their case: APNs answers in upper case.
  func identifier(_ text: String) -> String {
    var digits = pseudonymDigits(of: text.lowercased(), count: text.utf8.count).makeIterator()
    let isUpper = text.contains { $0.isUppercase }
    return String(
      text.map { character in
        guard character.isLetter || character.isNumber, let digit = digits.next() else { return character }
        return isUpper ? Character(digit.uppercased()) : digit
      })
  }

  /// The pseudonym of a text, as long as it.
  func sameLength(_ text: String) -> String { String(pseudonymDigits(of: text, count: text.utf8.count)) }
}
