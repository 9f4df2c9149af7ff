import Bytes
import HTTP2
import PushModel

/// Takes a request's fields from its field section.
struct RequestReading {
  /// Whether all fields are there.
  let isWhole: Bool
  /// Documented fields whose name was seen.
  private var seen: ProviderRequest.Uncertain = []

  init(isWhole: Bool) { self.isWhole = isWhole }

  /// Reads the section, and notes what is uncertain after it.
  mutating func read(
    _ fields: FieldList, into request: inout ProviderRequest, _ bytes: inout [UInt8], _ tokens: inout TokenList
  ) {
    let others = request.uncertain.intersection([.payload, .openStreams, .streamLimit])
    request.uncertain = []
    var hasUnknownName = !isWhole
    for field in fields.fields {
      guard field.isNameKnown else {
        hasUnknownName = true
        continue
      }
      let (name, value) = (fields.name(of: field), fields.value(of: field))
      // A credential in another field is none the less one: that field is as if its value were lost.
      var field = field
      let isItsOwn = name.byteCount == 13 && name.holds("authorization", at: 0)
      if !isItsOwn, !tokens.isFreeOfThem(field.origin) {
        let isInValue = field.isValueKnown && ProviderToken.isInside(value)
        if isInValue { field.isValueKnown = false }
        guard !ProviderToken.isInside(name) else {
          request.uncertain.insert(.headers)
          continue
        }
        if !isInValue, field.isValueKnown { tokens.noteFree(field.origin) }
      }
      take(name, value, field, &request, &bytes, &tokens)
    }
    takeTarget(&request, &bytes)
    // A field of an unknown name can be any that is not there.
    if hasUnknownName { request.uncertain.formUnion(.all.subtracting(seen)) }
    request.uncertain.formUnion(others)
  }

  private func keep(_ text: RawSpan, _ bytes: inout [UInt8]) -> ByteField {
    let start = bytes.count
    bytes.append(copying: text)
    return ByteField(offset: start, length: text.byteCount)
  }

  private mutating func take(
    _ name: RawSpan, _ value: RawSpan, _ field: FieldList.Field, _ request: inout ProviderRequest,
    _ bytes: inout [UInt8], _ tokens: inout TokenList
  ) {
    let isKnown = field.isValueKnown
    switch name.byteCount {
    case 5 where name.holds(":path", at: 0):
      if let place = first(.token, name, value, isKnown, &request, &bytes) { request.path = place }
    case 7 where name.holds(":method", at: 0):
      if isKnown, !request.method.isPresent { request.method = keep(value, &bytes) }
    case 7 where name.holds(":scheme", at: 0): break
    case 10 where name.holds(":authority", at: 0), 4 where name.holds("host", at: 0):
      if isKnown, !request.authority.isPresent { request.authority = keep(value, &bytes) }
    case 10 where name.holds("apns-topic", at: 0):
      if let place = first(.topic, name, value, isKnown, &request, &bytes) { request.topic = place }
    case 14 where name.holds("apns-push-type", at: 0):
      if let place = first(.pushType, name, value, isKnown, &request, &bytes) { request.pushType = place }
    case 7 where name.holds("apns-id", at: 0):
      if let place = first(.apnsID, name, value, isKnown, &request, &bytes) { request.apnsID = place }
    case 16 where name.holds("apns-collapse-id", at: 0):
      if let place = first(.collapseID, name, value, isKnown, &request, &bytes) { request.collapseID = place }
    case 15 where name.holds("apns-channel-id", at: 0):
      if let place = first(.channelID, name, value, isKnown, &request, &bytes) { request.channelID = place }
    case 15 where name.holds("apns-request-id", at: 0):
      if let place = first(.requestID, name, value, isKnown, &request, &bytes) { request.requestID = place }
    case 13 where name.holds("apns-priority", at: 0):
      guard isFirst(.priority, isKnown, &request) else { return other(name, value, isKnown, &request, &bytes) }
      guard isKnown else { return }
      request.priority = DecimalText.number(value).flatMap { UInt8(exactly: $0) }
      if request.priority == nil { other(name, value, true, &request, &bytes) }
    case 15 where name.holds("apns-expiration", at: 0):
      guard isFirst(.expiration, isKnown, &request) else { return other(name, value, isKnown, &request, &bytes) }
      guard isKnown else { return }
      // Records have numbers of 64 bits with a sign.
      request.expiration = DecimalText.number(value).flatMap { $0 <= UInt64(Int64.max) ? $0 : nil }
      if request.expiration == nil { other(name, value, true, &request, &bytes) }
    case 13 where name.holds("authorization", at: 0):
      // A credential: it is in no range, and a second one in no list.
      guard isFirst(.trust, isKnown, &request), isKnown else { return }
      switch tokens.use(value, field) {
      // Another scheme, or a token without one: nobody can say what it is taken for. With a certificate it is ignored.
      case .none:
        request.hasOtherAuthorization = true
        request.uncertain.insert(.trust)
      case .token(let place, let isNumbered):
        (request.providerToken, request.isProviderTokenNumbered) = (place, isNumbered)
        request.hasAuthorization = true
      case .beyondLimit: request.hasAuthorization = true
      }
    case 14 where name.holds("content-length", at: 0):
      if isKnown { request.contentLength = DecimalText.number(value).flatMap { Int(exactly: $0) } }
      other(name, value, isKnown, &request, &bytes)
    default:
      if name.byteCount == 0 || name.byte(at: 0) != UInt8(ascii: ":") { other(name, value, isKnown, &request, &bytes) }
    }
  }

  /// Whether it is the first field of its name; notes it, and that its value is unknown.
  private mutating func isFirst(
    _ field: ProviderRequest.Uncertain, _ isKnown: Bool, _ request: inout ProviderRequest
  ) -> Bool {
    guard !seen.contains(field) else { return false }
    seen.insert(field)
    if !isKnown { request.uncertain.insert(field) }
    return true
  }

  /// Keeps the value of the first field of its name, if it is known.
  private mutating func first(
    _ field: ProviderRequest.Uncertain, _ name: RawSpan, _ value: RawSpan, _ isKnown: Bool,
    _ request: inout ProviderRequest, _ bytes: inout [UInt8]
  ) -> ByteField? {
    guard isFirst(field, isKnown, &request) else {
      other(name, value, isKnown, &request, &bytes)
      return nil
    }
    return isKnown ? keep(value, &bytes) : nil
  }

  /// A field that no property has, or that is repeated.
  private func other(
    _ name: RawSpan, _ value: RawSpan, _ isKnown: Bool, _ request: inout ProviderRequest, _ bytes: inout [UInt8]
  ) {
    guard isKnown else {
      request.uncertain.insert(.headers)
      return
    }
    let name = keep(name, &bytes)
    request.headers.append(.init(name: name, value: keep(value, &bytes)))
  }

  private func takeTarget(_ request: inout ProviderRequest, _ bytes: inout [UInt8]) {
    guard request.path.isPresent else { return }
    let method = request.method.isPresent ? request.method.range : nil
    let (target, name) = RequestTarget.read(bytes.rawBytes, path: request.path.range, method: method)
    request.target = target
    // Other requests have none of these fields, nor have those of channel management.
    if target == .other, request.topic.isPresent || request.pushType.isPresent || request.collapseID.isPresent {
      request.target = .badPath
    }
    let place = ByteField(offset: request.path.offset + name.lowerBound, length: name.count)
    switch target {
    case .device:
      request.tokenText = place
      request.token = Self.appendToken(place.range, &bytes)
    case .broadcast, .channel: request.bundle = place
    case .badPath, .other, .unknown: break
    }
  }

  /// The token's bytes, if its text is hexadecimal.
  private static func appendToken(_ text: Range<Int>, _ bytes: inout [UInt8]) -> ByteField {
    let start = bytes.count
    guard !text.isEmpty, bytes.appendBytes(ofHexadecimal: text) else { return ByteField() }
    return ByteField(offset: start, length: text.count / 2)
  }
}

/// Numbers in decimal digits.
package enum DecimalText {
  /// The number of at most 19 digits and nothing else.
  package static func number(_ text: RawSpan) -> UInt64? {
    guard (1...19).contains(text.byteCount) else { return nil }
    var number: UInt64 = 0
    for offset in 0..<text.byteCount {
      let digit = text.byte(at: offset) &- 0x30
      guard digit < 10 else { return nil }
      number = number * 10 + UInt64(digit)
    }
    return number
  }
}
