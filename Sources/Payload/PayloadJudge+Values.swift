import Bytes

/// The rules about the values in `aps` and in `alert`.
extension Judging {
  mutating func judgeValues(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    if let badge = members[.badge] {
      if tape.kind(badge) == .number {
        effects.insert(.badge)
        let number = tape.number(badge, text)
        if number.isNegative || !number.isWhole { report(.badgeValue, at: tape.offset(badge)) }
      } else {
        report(.badgeType, at: tape.offset(badge))
      }
    }
    if let sound = members[.sound] { judgeSound(sound, tape, text) }
    if isOne(members[.contentAvailable], .contentAvailableValue, tape, text) { effects.insert(.background) }
    if isOne(members[.mutableContent], .mutableContentValue, tape, text) { effects.insert(.mutable) }
    if let category = members[.category], tape.kind(category) != .string {
      report(.categoryType, at: tape.offset(category))
    }
    if let thread = members[.threadID], tape.kind(thread) != .string {
      report(.threadIDType, at: tape.offset(thread))
    }
    if let arguments = members[.urlArgs], !tape.isArrayOfStrings(arguments) {
      report(.urlArgsType, at: tape.offset(arguments))
    }
  }

  private mutating func judgeSound(_ sound: Int, _ tape: JSONTape, _ text: RawSpan) {
    switch tape.kind(sound) {
    case .string:
      if !tape.isEmptyString(sound) { effects.insert(.sound) }
      if !SoundName.isValid(tape, sound, text) { report(.soundFileName, at: tape.offset(sound)) }
    case .object where isFrom(2018): effects.insert(.sound)
    default: report(.soundType, at: tape.offset(sound))
    }
  }

  /// Whether a flag is the number 1; a value other than 1 and 0 breaks `rule`.
  private mutating func isOne(_ flag: Int?, _ rule: PayloadRule, _ tape: JSONTape, _ text: RawSpan) -> Bool {
    guard let flag else { return false }
    switch tape.smallNumber(flag, text) {
    case 1: return true
    case 0: return false
    default:
      report(rule, at: tape.offset(flag))
      return false
    }
  }

  mutating func judgeAlert(_ members: PayloadMembers, _ tape: JSONTape, _ text: RawSpan) {
    guard let alert = members[.alert] else { return }
    switch tape.kind(alert) {
    case .string:
      guard !tape.isEmptyString(alert) else { return report(.alertNoText, at: tape.offset(alert)) }
      effects.insert(.alert)
      if tape.holdsObject(alert, text) { report(.alertJSONText, at: tape.offset(alert)) }
      judgeCharacters(alert, tape, text)
    case .object: judgeAlertDictionary(alert, tape, text)
    default: report(.alertType, at: tape.offset(alert))
    }
  }

  private mutating func judgeAlertDictionary(_ alert: Int, _ tape: JSONTape, _ text: RawSpan) {
    var members = PayloadMembers()
    var count = 0
    tape.forEachKey(ofObject: alert) { key in
      judgeKey(key, in: .alert, &members, tape, text)
      count += 1
    }
    let hasBody = tape.isText(members[.body]) || tape.isText(members[.locKey])
    if hasBody || tape.isText(members[.title]) || tape.isText(members[.titleLocKey]) {
      effects.insert(.alert)
      if !hasBody, isUpTo(2016) { report(.alertTitleOnly, at: tape.offset(alert)) }
    } else {
      report(.alertNoText, at: tape.offset(alert))
    }
    if let body = members[.body], tape.kind(body) == .string {
      if count == 1, isUpTo(2015) { report(.alertOnlyBody, at: tape.offset(alert)) }
      if tape.holdsObject(body, text) { report(.alertJSONText, at: tape.offset(body)) }
    }
    judgeText(members[.title], tape, text)
    judgeText(members[.subtitle], tape, text)
    judgeText(members[.body], tape, text)
    judgeText(members[.launchImage], tape, text)
    judgeText(members[.action], tape, text)
    judgeLocalized(members, .body, .locKey, .locArgs, allowsNull: false, tape, text)
    judgeLocalized(members, .title, .titleLocKey, .titleLocArgs, allowsNull: true, tape, text)
    judgeLocalized(members, .subtitle, .subtitleLocKey, .subtitleLocArgs, allowsNull: true, tape, text)
    if let key = members[.actionLocKey] {
      judgeLocKeyType(key, allowsNull: true, tape)
      if let strings, tape.isText(key), strings[tape.string(key, text)] == nil {
        report(.locKeyNotFound, at: tape.offset(key), .key(tape.string(key, text)))
      }
    }
  }

  private mutating func judgeText(_ value: Int?, _ tape: JSONTape, _ text: RawSpan) {
    guard let value else { return }
    if tape.kind(value) == .string {
      judgeCharacters(value, tape, text)
    } else {
      report(.alertValueType, at: tape.offset(value))
    }
  }

  /// A text that the user sees otherwise than it was meant. Few texts have what such text begins with.
  @inline(__always)
  private mutating func judgeCharacters(_ value: Int, _ tape: JSONTape, _ text: RawSpan) {
    let contents = text.extracting(tape.contents(value))
    guard tape.nodes[value].hasEscapes || contents.contains(UInt8(ascii: "&"), or: EscapedText.privateUse) else {
      return
    }
    judgeUnusual(value, tape, text)
  }

  @inline(never)
  private mutating func judgeUnusual(_ value: Int, _ tape: JSONTape, _ text: RawSpan) {
    let shown = EscapedText(tape.string(value, text))
    let offset = tape.offset(value)
    if let found = shown.escape { report(.textDoubleEscaped, at: offset, .key(found)) }
    if let found = shown.entity { report(.textHTMLEntities, at: offset, .key(found)) }
    // Systems before iOS 5 of October 2011 show them.
    if let found = shown.oldEmoji, isFrom(2012) { report(.textPrivateUse, at: offset, .key(found)) }
  }

  private mutating func judgeLocKeyType(_ key: Int, allowsNull: Bool, _ tape: JSONTape) {
    if tape.kind(key) != .string, !(allowsNull && tape.kind(key) == .null) {
      report(.locKeyType, at: tape.offset(key))
    }
  }

  /// Judges a text, its localization key and that key's arguments.
  private mutating func judgeLocalized(
    _ members: PayloadMembers, _ plain: PayloadKey, _ key: PayloadKey, _ arguments: PayloadKey, allowsNull: Bool,
    _ tape: JSONTape, _ text: RawSpan
  ) {
    let (key, arguments) = (members[key], members[arguments])
    if key == nil, arguments == nil { return }
    if let key { judgeLocKeyType(key, allowsNull: allowsNull, tape) }
    if let arguments {
      if tape.kind(arguments) == .array {
        tape.forEachElement(ofArray: arguments) { element in
          if tape.kind(element) == .string { judgeCharacters(element, tape, text) }
        }
      }
      if !tape.isArrayOfStrings(arguments), !(allowsNull && tape.kind(arguments) == .null) {
        report(.locArgsType, at: tape.offset(arguments))
      }
      if tape.kind(arguments) == .array, key.map({ tape.kind($0) == .null }) ?? true {
        report(.locArgsWithoutKey, at: tape.offset(arguments))
      }
    }
    guard let key, tape.isText(key) else { return }
    if tape.isText(members[plain]) { report(.locKeyAndText, at: tape.offset(key)) }
    guard let strings else { return }
    let name = tape.string(key, text)
    guard let format = strings[name] else { return report(.locKeyNotFound, at: tape.offset(key), .key(name)) }
    var given = 0
    if let arguments, tape.kind(arguments) == .array { tape.forEachElement(ofArray: arguments) { _ in given += 1 } }
    let needed = LocalizedFormat(format).argumentsNeeded
    let unfilled = LocalizedFormat.unfilledPlaceholder(of: format)
    if let unfilled { report(.locFormatPlaceholder, at: tape.offset(key), .key("\(name): \(unfilled)")) }
    if given < needed { report(.locArgsTooFew, at: tape.offset(key), .key(name)) }
    // A placeholder of another kind was to take an argument.
    if given > needed, unfilled == nil { report(.locArgsTooMany, at: arguments.map(tape.offset), .key(name)) }
  }
}

/// Names of sound files with Linear PCM, MA4, µ-law or a-law, in containers that the system plays.
enum SoundName {
  /// Whether a string is `default`, or a bare name with one of the extensions, in any case.
  static func isValid(_ tape: JSONTape, _ sound: Int, _ text: RawSpan) -> Bool {
    guard tape.nodes[sound].hasEscapes else { return isValid(text.extracting(tape.contents(sound))) }
    return isValid(tape.stringBytes(sound, text).rawBytes)
  }

  static func isValid(_ name: RawSpan) -> Bool {
    let count = name.byteCount
    if count == 7, name.holds("default", at: 0) { return true }
    guard count >= 5, name.firstOffset(of: UInt8(ascii: "/")) == nil else { return false }
    return hasEnding(".caf", name) || hasEnding(".wav", name) || hasEnding(".aif", name)
      || count >= 6 && hasEnding(".aiff", name)
  }

  private static func hasEnding(_ ending: StaticString, _ name: RawSpan) -> Bool {
    let start = name.byteCount - ending.utf8CodeUnitCount
    for index in 0..<ending.utf8CodeUnitCount {
      let byte = name.byte(at: start + index)
      let lower = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte
      // Safe: `ending` is a constant of that many bytes, and the caller knows that the name is longer.
      if unsafe ending.utf8Start[index] != lower { return false }
    }
    return true
  }
}

extension JSONTape {
  /// Whether a value is there, a string, and not empty.
  @inline(__always)
  func isText(_ index: Int?) -> Bool {
    guard let index else { return false }
    return kind(index) == .string && !isEmptyString(index)
  }

  func isArrayOfStrings(_ index: Int) -> Bool {
    guard kind(index) == .array else { return false }
    var isArray = true
    forEachElement(ofArray: index) { element in if kind(element) != .string { isArray = false } }
    return isArray
  }

  /// A whole number that fits, `nil` for any other value.
  @inline(__always)
  func smallNumber(_ index: Int, _ text: RawSpan) -> Int? {
    guard kind(index) == .number else { return nil }
    let node = nodes[index]
    if node.end - node.start == 1 { return Int(text.byte(at: Int(node.start)) & 15) }
    return number(index, text).integer
  }
}
