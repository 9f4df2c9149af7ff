import Bytes

/// The rules of field sections (RFC 9113 sections 8.2 and 8.3): what makes a message malformed.
package enum MessageRules {
  /// The form of a path, where it depends on method and scheme.
  private enum PathForm { case absolute, asterisk, other }

  /// Throws the first rule that a section breaks. Of unknown fields nothing is claimed.
  ///
  /// - Parameters:
  ///   - fields: the section.
  ///   - isRequest: whether the client sent it.
  ///   - isTrailers: whether it follows the content.
  ///   - isWhole: whether all fields are there.
  ///   - allowsExtendedConnect: whether `:protocol` may be there, which a server has to offer (RFC 8441).
  package static func check(
    _ fields: FieldList, isRequest: Bool, isTrailers: Bool, isWhole: Bool, allowsExtendedConnect: Bool = true
  ) throws(Rule) {
    var hasRegular = false
    var hasUnknown = !isWhole
    var (method, scheme, path, authority, status, protocols) = (0, 0, 0, 0, 0, 0)
    var (isConnect, isOptions, isHTTP, hasFaultyStatus) = (false, false, false, false)
    var form = PathForm.absolute
    for field in fields.fields {
      guard field.isNameKnown else {
        hasUnknown = true
        continue
      }
      let name = fields.name(of: field)
      // The static table has no invalid name or value, and pseudo-fields only in its first 14 entries.
      guard name.byteCount > 0 else { throw .fieldNameCharacter }
      if name.byte(at: 0) == UInt8(ascii: ":") {
        if isTrailers { throw .pseudoFieldInTrailers }
        if hasRegular { throw .pseudoFieldOrder }
        switch name.byteCount {
        case 7 where name.holds(":method", at: 0):
          method += 1
          isConnect = field.value.count == 7 && fields.value(of: field).holds("CONNECT", at: 0)
          isOptions = field.value.count == 7 && fields.value(of: field).holds("OPTIONS", at: 0)
          if !field.isValueKnown { hasUnknown = true }
        case 7 where name.holds(":scheme", at: 0):
          scheme += 1
          let value = fields.value(of: field)
          // Of an unknown value nothing is held.
          isHTTP =
            value.byteCount == 4 && value.holds("http", at: 0) || value.byteCount == 5 && value.holds("https", at: 0)
        case 7 where name.holds(":status", at: 0):
          status += 1
          if field.isValueKnown, self.status(fields.value(of: field)) == nil { hasFaultyStatus = true }
        case 5 where name.holds(":path", at: 0):
          path += 1
          guard field.isValueKnown else { break }
          let value = fields.value(of: field)
          guard value.byteCount > 0 else { throw .pseudoFieldMissing }
          form = value.byte(at: 0) == UInt8(ascii: "/") ? .absolute : .other
          if value.byteCount == 1, value.byte(at: 0) == UInt8(ascii: "*") { form = .asterisk }
        case 10 where name.holds(":authority", at: 0): authority += 1
        case 9 where allowsExtendedConnect && name.holds(":protocol", at: 0): protocols += 1
        default: throw .pseudoFieldUnknown
        }
      } else {
        hasRegular = true
        if !field.isPlain, !isValid(name: name) { throw .fieldNameCharacter }
        // The static table has transfer-encoding.
        if isConnectionSpecific(name, fields.value(of: field), field.isValueKnown) { throw .connectionField }
      }
      if !field.isPlain, field.isValueKnown, !isValid(value: fields.value(of: field)) { throw .fieldValueCharacter }
    }
    if isTrailers { return }
    if max(method, scheme, path, authority, status, protocols) > 1 { throw .pseudoFieldRepeated }
    let foreign = isRequest ? status : method + scheme + path + authority + protocols
    if foreign > 0 { throw .pseudoFieldUnknown }
    guard !hasUnknown else { return }
    guard isRequest else {
      guard status > 0, !hasFaultyStatus else { throw .statusMissing }
      return
    }
    if isConnect, protocols == 0 {
      guard scheme == 0, path == 0, authority > 0 else { throw .connectFields }
      return
    }
    guard min(method, scheme, path) > 0 else { throw .pseudoFieldMissing }
    if form == .other && isHTTP || form == .asterisk && isHTTP && !isOptions { throw .pathForm }
  }

  /// Whether neither name nor value has a character that none may have; an absent one has none.
  static func isPlain(name: Range<Int>?, value: Range<Int>, in bytes: RawSpan) -> Bool {
    guard let name, !name.isEmpty else { return false }
    // Names with a colon are known ones, or the message is malformed for another reason.
    return (bytes.byte(at: name.lowerBound) == UInt8(ascii: ":") || isValid(name: bytes.extracting(name)))
      && isValid(value: bytes.extracting(value))
  }

  private static func isValid(name: RawSpan) -> Bool {
    for offset in 0..<name.byteCount {
      let byte = name.byte(at: offset)
      if byte <= 0x20 || byte >= 0x7f || byte == UInt8(ascii: ":") || (0x41...0x5a).contains(byte) { return false }
    }
    return true
  }

  private static func isValid(value: RawSpan) -> Bool {
    let count = value.byteCount
    guard count > 0 else { return true }
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    if isBlank(value.byte(at: 0)) || isBlank(value.byte(at: count - 1)) { return false }
    return !value.contains(0x0a, or: 0x0d) && value.firstOffset(of: 0) == nil
  }

  private static func isConnectionSpecific(_ name: RawSpan, _ value: RawSpan, _ isValueKnown: Bool) -> Bool {
    switch name.byteCount {
    case 2: isValueKnown && name.holds("te", at: 0) && !(value.byteCount == 8 && value.holds("trailers", at: 0))
    case 7: name.holds("upgrade", at: 0)
    case 10: name.holds("connection", at: 0) || name.holds("keep-alive", at: 0)
    case 16: name.holds("proxy-connection", at: 0)
    case 17: name.holds("transfer-encoding", at: 0)
    default: false
    }
  }

  /// The value of the content-length field; `nil` if there is none, or not all such fields are known.
  ///
  /// - Throws: `contentLength` if one is no number, or two differ.
  package static func contentLength(_ fields: FieldList) throws(Rule) -> Int? {
    var length: Int?
    for field in fields.fields where field.isNameKnown && field.name.count == 14 {
      guard fields.name(of: field).holds("content-length", at: 0) else { continue }
      guard field.isValueKnown else { return nil }
      guard let number = number(fields.value(of: field)), length == nil || length == number else {
        throw .contentLength
      }
      length = number
    }
    return length
  }

  /// The status of a response; `nil` if it is unknown or no three digits.
  static func status(_ fields: FieldList) -> Int? {
    for field in fields.fields where field.isNameKnown && field.isValueKnown && field.name.count == 7 {
      guard fields.name(of: field).holds(":status", at: 0) else { continue }
      return status(fields.value(of: field))
    }
    return nil
  }

  private static func status(_ value: RawSpan) -> Int? { value.byteCount == 3 ? number(value) : nil }

  private static func number(_ text: RawSpan) -> Int? {
    guard (1...15).contains(text.byteCount) else { return nil }
    var number = 0
    for offset in 0..<text.byteCount {
      let digit = text.byte(at: offset) &- 0x30
      guard digit < 10 else { return nil }
      number = number * 10 + Int(digit)
    }
    return number
  }
}
