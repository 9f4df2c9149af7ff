import Bytes

/// The rules about the text as a whole, `aps` and its keys.
extension Judging {
  mutating func judge(_ tape: JSONTape, _ text: RawSpan) {
    if tape.whiteSpace > 0 { report(.payloadNotMinified, at: tape.firstWhiteSpace, .bytes(tape.whiteSpace)) }
    if let offset = tape.loneSurrogate { report(.jsonLoneSurrogate, at: offset) }
    if let offset = tape.repeatedKey { report(.jsonDuplicateKey, at: offset) }
    guard tape.kind(0) == .object else {
      let isEncodedTwice = tape.kind(0) == .string && tape.holdsObject(0, text)
      return report(isEncodedTwice ? .jsonDoubleEncoded : .jsonNotObject, at: tape.offset(0))
    }
    var aps: Int?
    var management: Int?
    var keys = 0
    tape.forEachKey(ofObject: 0) { key in
      keys += 1
      if tape.isKey(key, "aps", text) {
        aps = key + 1
      } else if tape.isKey(key, "mdm", text) {
        management = key + 1
      }
    }
    if management != nil || topic == .management { judgeManagement(management, keys: keys, tape) }
    let isExempt =
      isVoIP || topic == .complication || topic == .wallet || topic == .management || management != nil
    guard let aps else {
      kind = effects.kind(hasAPS: false, era: era, topic: topic)
      if !isExempt {
        let place = findsPlaces ? placeOfAPS(tape, text) : nil
        report(.apsMissing, at: 0, place.map { .note("aps is nested inside \($0)") })
        judgeMissing(tape, text)
        judgeBeside(PayloadMembers(), tape, text)
      }
      return
    }
    guard tape.kind(aps) == .object else {
      let isEncodedTwice = tape.kind(aps) == .string && tape.holdsObject(aps, text)
      return report(isEncodedTwice ? .jsonDoubleEncoded : .apsNotDictionary, at: tape.offset(aps))
    }
    judgeAPS(aps, isExempt: isExempt, tape, text)
  }

  /// Judges the value of `mdm`, the only key of a device management payload. An app with a known topic may have data
  /// with that name.
  private mutating func judgeManagement(_ value: Int?, keys: Int, _ tape: JSONTape) {
    guard topic == .management || topic == .unknown else { return }
    guard let value else { return report(.mdmMissing, at: 0) }
    if !tape.isText(value) { report(.mdmType, at: tape.offset(value)) }
    if keys > 1 { report(.mdmNotAlone, at: 0) }
  }

  private mutating func judgeAPS(_ aps: Int, isExempt: Bool, _ tape: JSONTape, _ text: RawSpan) {
    var members = PayloadMembers()
    tape.forEachKey(ofObject: aps) { key in judgeKey(key, in: .aps, &members, tape, text) }
    judgeAlert(members, tape, text)
    judgeValues(members, tape, text)
    kind = effects.kind(hasAPS: true, era: era, topic: topic)
    if !isExempt {
      if tape.nodes[aps].next == UInt32(aps + 1) {
        report(.apsEmpty, at: tape.offset(aps))
      } else if kind == .empty {
        report(.apsNoEffect, at: tape.offset(aps))
      }
      judgeBeside(members, tape, text)
    }
    judgeCustomData(apsValue: aps, tape, text)
    if isVoIP || topic == .complication {
      if effects.has(anyOf: .noticed) {
        report(isVoIP ? .voipAPSIgnored : .complicationAPSIgnored, at: tape.offset(aps))
      }
      return
    }
    if topic == .web, members[.urlArgs] == nil { report(.urlArgsMissing, at: tape.offset(aps)) }
    if !effects.contains(.alert) {
      if let category = members[.category], tape.kind(category) == .string, !tape.isEmptyString(category) {
        report(.categoryWithoutAlert, at: tape.offset(category))
      }
      if effects.contains(.mutable) { report(.mutableWithoutAlert, at: members[.mutableContent].map(tape.offset)) }
      if effects.contains(.background), effects.has(anyOf: .badgeOrSound) {
        report(.backgroundWithBadgeOrSound, at: members[.contentAvailable].map(tape.offset))
      }
    }
    if let frame { judgePriority(frame) }
  }

  /// Finds the known key that a key in a dictionary of `level` is, or reports what is wrong with it.
  mutating func judgeKey(
    _ key: Int, in level: PayloadKey.Level, _ members: inout PayloadMembers, _ tape: JSONTape, _ text: RawSpan
  ) {
    guard let known = tape.knownKey(key, text) else { return judgeUnknown(key, in: level, tape, text) }
    guard known.level == level else {
      return report(.keyMisplaced, at: tape.offset(key), .key(known.name.description))
    }
    members.set(known, to: key + 1)
    if let era, era < known.year { report(.keyTooNew, at: tape.offset(key), .key(known.name.description)) }
  }

  @inline(never)
  private mutating func judgeUnknown(_ key: Int, in level: PayloadKey.Level, _ tape: JSONTape, _ text: RawSpan) {
    // No known key has more than 18 characters, escapes have up to 12 bytes each.
    let isCompared = tape.nodes[key].end - tape.nodes[key].start <= 512
    let name = isCompared ? tape.string(key, text) : nil
    if let name, let meant = KeyLikeness.best(for: name, in: level) {
      report(.keyMisspelt, at: tape.offset(key), .suggestion(name, instead: meant.name.description))
    } else {
      report(.keyUnknown, at: tape.offset(key), name.map { .key($0) })
    }
  }

  /// Judges a payload without `aps`: finds a dictionary that was meant to be it.
  private mutating func judgeMissing(_ tape: JSONTape, _ text: RawSpan) {
    tape.forEachKey(ofObject: 0) { key in
      guard tape.kind(key + 1) == .object, tape.nodes[key].end - tape.nodes[key].start <= 64,
        !rules.contains(.keyMisspelt)
      else { return }
      let name = tape.string(key, text)
      if KeyLikeness.isLikeAPS(name) { report(.keyMisspelt, at: tape.offset(key), .suggestion(name, instead: "aps")) }
    }
  }

  /// Reports keys of `aps` that are next to it instead of in it.
  private mutating func judgeBeside(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    tape.forEachKey(ofObject: 0) { key in
      if let known = tape.knownKey(key, text), known.isTakenForCustomData, members[known] == nil {
        report(.keyMisplaced, at: tape.offset(key), .key(known.name.description))
      }
    }
  }

  /// null in the app's own data, in what counts of it.
  private mutating func judgeCustomData(apsValue: Int, _ tape: JSONTape, _ text: RawSpan) {
    tape.forEachKey(ofObject: 0) { key in
      if key + 1 != apsValue, let null = firstNull(key + 1, tape) { report(.customNull, at: tape.offset(null)) }
    }
  }

  /// The first null in a value, which may be it. Not recursive: a text may be 512 levels deep.
  private func firstNull(_ value: Int, _ tape: JSONTape) -> Int? {
    if tape.kind(value) == .null { return value }
    let end = Int(tape.nodes[value].next)
    var index = value + 1
    while index < end {
      // The value of a key that comes again does not count.
      if tape.nodes[index].isRepeated {
        index = Int(tape.nodes[index + 1].next)
      } else {
        if tape.kind(index) == .null { return index }
        index += 1
      }
    }
    return nil
  }
}

extension JSONTape {
  @inline(__always)
  func offset(_ index: Int) -> Int { Int(nodes[index].start) }

  /// Whether a key is `name`.
  @inline(__always)
  func isKey(_ key: Int, _ name: StaticString, _ text: RawSpan) -> Bool {
    if nodes[key].hasEscapes { return stringBytes(key, text).rawBytes.isEqual(to: name) }
    return contents(key).count == name.utf8CodeUnitCount && text.holds(name, at: Int(nodes[key].start) + 1)
  }

  /// The key of `aps` or `alert` that this is.
  @inline(__always)
  func knownKey(_ key: Int, _ text: RawSpan) -> PayloadKey? {
    if nodes[key].hasEscapes { return knownKey(escaped: key, text) }
    return PayloadKey.named(text, contents(key))
  }

  @inline(never)
  private func knownKey(escaped key: Int, _ text: RawSpan) -> PayloadKey? {
    let bytes = stringBytes(key, text)
    return PayloadKey.named(bytes.rawBytes, 0..<bytes.count)
  }

  /// Whether a string holds a JSON object, white space around it apart.
  func holdsObject(_ index: Int, _ text: RawSpan) -> Bool {
    let contents = contents(index)
    // Every object has a brace, and few texts begin with anything but a letter.
    guard contents.count >= 2, text.extracting(contents).contains(UInt8(ascii: "{"), or: UInt8(ascii: "\\")) else {
      return false
    }
    let inner = trimmed(string(index, text))
    guard inner.first == UInt8(ascii: "{") else { return false }
    return JSONText.scan(inner.rawBytes) != .invalid
  }

  private func trimmed(_ text: String) -> [UInt8] {
    let scalars = text.unicodeScalars
    guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
      let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
    else { return [] }
    return Array(String(scalars[first...last]).utf8)
  }
}

extension RawSpan {
  fileprivate func isEqual(to name: StaticString) -> Bool {
    byteCount == name.utf8CodeUnitCount && holds(name, at: 0)
  }
}
