import Bytes

/// Replaces everything in a payload except known structure, byte for byte.
///
/// These stay: brackets, commas, colons and white space; lengths; true, false and null; the names of documented keys in
/// their documented places, `default` as a sound, interruption levels, and 0 or 1 as a flag. Texts become x, other keys
/// x with letters that tell them apart, numbers 1, with their sign and a point where they are not whole. A placeholder
/// keeps the properties that payload rules check: the extension of a sound's file, an object in a text, half a
/// surrogate pair, a key's likeness to a documented one. A text in UTF-16 or UTF-32 stays in its encoding.
///
/// A payload that is not JSON is replaced as a whole, by a text of the same length with the same kind of fault.
///
/// A tag, a pseudonym of the whole payload, is written into the first letters and digits of the placeholders, so that
/// different payloads stay different where there is room for it.
package struct PayloadRedaction {
  /// The kind of value or key that a placeholder replaces.
  private enum Role {
    /// A text, or a number of no meaning.
    case value
    /// A text that somebody may have put an object into.
    case text
    case flag, sound, interruptionLevel
    /// A documented key.
    case kept
    /// Another key, by its place in `names`.
    case named(Int)
  }

  private var tape = JSONTape()
  private var roles: [Role] = []
  private var names: [[UInt8]] = []
  private var tag = PayloadTag([])

  package init() {}

  /// Redacts the payload that `range` of `bytes` holds. Linear in its length, except that each unknown key in `aps` and
  /// `alert` is compared with the documented ones.
  ///
  /// - Parameter tag: a pseudonym of the payload, of 16 bytes; empty: placeholders are x and 1 alone.
  package mutating func redact(_ bytes: inout [UInt8], in range: Range<Int>, tag: [UInt8] = []) {
    self.tag = PayloadTag(tag)
    let payload = Array(bytes[range])
    let place = PayloadText(of: payload.rawBytes)
    guard place.start < place.end else { return }
    let begin = range.lowerBound + place.start
    guard place.encoding != .utf8 else {
      let text = redacted(Array(payload[place.start..<place.end]), place.encoding)
      return bytes.replaceSubrange(begin..<range.lowerBound + place.end, with: text)
    }
    let unit = place.encoding.unit
    guard let converted = place.converted(payload.rawBytes) else {
      // Half a surrogate pair is not text in any encoding. Without a byte order mark letters come first: the zeros
      // in the first four bytes identify the encoding.
      let letters = place.start > 0 ? 0 : 4 / unit
      for index in 0..<(place.end - place.start) / unit {
        let value = index < letters ? 0x78 : 0xd800 | UInt16(self.tag.byte())
        place.encoding.write(value, to: &bytes, at: begin + index * unit)
      }
      for offset in range.upperBound - (place.end - place.start) % unit..<range.upperBound { bytes[offset] = 0x78 }
      return
    }
    for (index, character) in redacted(converted, place.encoding).enumerated() {
      place.encoding.write(UInt16(character), to: &bytes, at: begin + index * unit)
    }
  }

  /// - Parameter encoding: the encoding of the payload, whose code units are counted.
  /// - Returns: a byte for each code unit.
  private mutating func redacted(_ text: [UInt8], _ encoding: PayloadText.Encoding) -> [UInt8] {
    let text = text.rawBytes
    if let fault = tape.read(text) {
      let count = encoding.units(text, 0..<text.byteCount)
      return PayloadFault.template(Judging.rule(of: fault, text), count, &tag, &tape)
    }
    findRoles(text, encoding)
    var result: [UInt8] = []
    result.reserveCapacity(text.byteCount)
    var copied = 0
    for index in tape.nodes.indices where tape.kind(index) != .object && tape.kind(index) != .array {
      let node = tape.nodes[index]
      let isText = node.kind == .string
      // Up to and including the opening quote.
      result.append(copying: text.extracting(copied..<Int(node.start) + (isText ? 1 : 0)))
      copied = Int(node.end) - (isText ? 1 : 0)
      switch node.kind {
      case .string: result += string(index, text, encoding)
      case .number: result += number(index, text)
      default: result.append(copying: text.extracting(Int(node.start)..<copied))
      }
    }
    result.append(copying: text.extracting(copied..<text.byteCount))
    return result
  }

  // MARK: roles

  private mutating func findRoles(_ text: RawSpan, _ encoding: PayloadText.Encoding) {
    names.removeAll(keepingCapacity: true)
    roles.removeAll(keepingCapacity: true)
    roles.append(contentsOf: repeatElement(.value, count: tape.nodes.count))
    var levels: [Int: PayloadKeyNames.Level] = [:]
    if tape.kind(0) == .string { roles[0] = .text }
    if tape.kind(0) == .object { findLevels(&levels, text) }
    for index in tape.nodes.indices where tape.kind(index) == .object {
      nameKeys(of: index, levels[index] ?? .other, text, encoding)
    }
  }

  /// The dictionaries whose keys are documented, and the values that are judged.
  private mutating func findLevels(_ levels: inout [Int: PayloadKeyNames.Level], _ text: RawSpan) {
    var aps: Int?
    tape.forEachKey(ofObject: 0) { key in if tape.isKey(key, "aps", text) { aps = key + 1 } }
    levels[0] = .root(hasAPS: aps != nil)
    guard let aps else { return }
    guard tape.kind(aps) == .object else {
      roles[aps] = .text
      return
    }
    levels[aps] = .aps
    var (found, alert, sound): ([(Int, Role)], Int?, Int?) = ([], nil, nil)
    tape.forEachKey(ofObject: aps) { key in
      switch tape.knownKey(key, text) {
      case .alert: (alert, found) = (key + 1, found + [(key + 1, .text)])
      case .sound: (sound, found) = (key + 1, found + [(key + 1, .sound)])
      case .contentAvailable, .mutableContent: found.append((key + 1, .flag))
      case .interruptionLevel: found.append((key + 1, .interruptionLevel))
      default: break
      }
    }
    if let alert, tape.kind(alert) == .object {
      levels[alert] = .alert
      tape.forEachKey(ofObject: alert) { key in if tape.knownKey(key, text) == .body { found.append((key + 1, .text)) }
      }
    }
    if let sound, tape.kind(sound) == .object {
      levels[sound] = .sound
      tape.forEachKey(ofObject: sound) { key in
        if tape.isKey(key, "name", text) { found.append((key + 1, .sound)) }
        if tape.isKey(key, "critical", text) { found.append((key + 1, .flag)) }
      }
    }
    for (index, role) in found { roles[index] = role }
  }

  private mutating func nameKeys(
    of object: Int, _ level: PayloadKeyNames.Level, _ text: RawSpan, _ encoding: PayloadText.Encoding
  ) {
    var given = PayloadKeyNames(level)
    let end = Int(tape.nodes[object].next)
    var key = object + 1
    var isWithoutOthers = true
    while key < end {
      if level.keeps(key, tape, text) {
        roles[key] = .kept
        given.keep(tape.stringBytes(key, text))
      } else {
        isWithoutOthers = false
      }
      key = Int(tape.nodes[key + 1].next)
    }
    if isWithoutOthers { return }
    // If a key is repeated, the last value counts, and it decides the name.
    for isRepeated in [false, true] {
      key = object + 1
      while key < end {
        if case .value = roles[key], tape.nodes[key].isRepeated == isRepeated {
          let width = encoding.units(text, tape.contents(key))
          var name = given.name(for: tape.stringBytes(key, text), width, isDictionary: tape.kind(key + 1) == .object)
          if hasLoneSurrogate(key), width >= 6 { name.replaceSubrange(0..<6, with: Array(Self.loneSurrogate.utf8)) }
          roles[key] = .named(names.count)
          names.append(name)
        }
        key = Int(tape.nodes[key + 1].next)
      }
    }
  }

  // MARK: values

  private static let loneSurrogate = "\\ud800"
  private static let interruptionLevels = ["passive", "active", "time-sensitive", "critical"].map { Array($0.utf8) }

  private func hasLoneSurrogate(_ index: Int) -> Bool {
    tape.loneSurrogate.map { Int(tape.nodes[index].start)..<Int(tape.nodes[index].end) ~= $0 } ?? false
  }

  /// The contents of a string.
  private mutating func string(_ index: Int, _ text: RawSpan, _ encoding: PayloadText.Encoding) -> [UInt8] {
    let width = encoding.units(text, tape.contents(index))
    var result = [UInt8](repeating: UInt8(ascii: "x"), count: width)
    if width == 0 { return result }
    var isSurrogate = hasLoneSurrogate(index)
    switch roles[index] {
    case .kept: return Array(copying: text.extracting(tape.contents(index)))
    case .named(let place): return names[place]
    case .interruptionLevel:
      let contents = Array(copying: text.extracting(tape.contents(index)))
      if Self.interruptionLevels.contains(contents) { return contents }
    case .sound:
      let contents = Array(copying: text.extracting(tape.contents(index)))
      if contents == Array("default".utf8) { return contents }
      if SoundName.isValid(tape, index, text), width >= 5 {
        result.replaceSubrange(width - 4..<width, with: ".caf".utf8)
      }
    case .text where tape.holdsObject(index, text):
      result = Array("{".utf8) + [UInt8](repeating: UInt8(ascii: " "), count: max(0, width - 2)) + Array("}".utf8)
      let member = Array(#"\"\ud800\":0"#.utf8)
      if isSurrogate, width >= member.count + 2 { result.replaceSubrange(1..<1 + member.count, with: member) }
      isSurrogate = false
    case .value, .text, .flag:
      for place in isSurrogate && width >= 6 ? 6..<width : 0..<width {
        guard let letter = tag.letter() else { break }
        result[place] = letter
      }
    }
    if isSurrogate, width >= 6 { result.replaceSubrange(0..<6, with: Array(Self.loneSurrogate.utf8)) }
    return result
  }

  private mutating func number(_ index: Int, _ text: RawSpan) -> [UInt8] {
    let width = Int(tape.nodes[index].end - tape.nodes[index].start)
    let number = tape.number(index, text)
    let one = UInt8(ascii: "1")
    if case .flag = roles[index] {
      if let digit = number.integer, digit == 0 || digit == 1 {
        let first = one - UInt8(1 - digit)
        switch width {
        case 1: return [first]
        case 2: return Array("-0".utf8)
        default: return [first, UInt8(ascii: ".")] + [UInt8](repeating: UInt8(ascii: "0"), count: width - 2)
        }
      }
      if width == 1 { return Array("2".utf8) }
    }
    var result = [UInt8](repeating: one, count: width)
    for place in result.indices {
      guard let digit = tag.digit() else { break }
      result[place] = digit
    }
    let first = number.isNegative ? 1 : 0
    if number.isNegative { result[0] = UInt8(ascii: "-") }
    if !number.isWhole, first + 2 < width { result[first + 1] = UInt8(ascii: ".") }
    return result
  }
}

/// The letters and digits that a payload's tag is written in.
private struct PayloadTag {
  private let bytes: [UInt8]
  private var letters = 0
  private var digits = 0
  private var others = 0
  /// Letters without those that begin a JSON literal.
  private static let alphabet = Array("xabcdeghijklmopqrsuvwyz".utf8)
  /// Bytes that occur neither in UTF-8 nor in a byte order mark.
  private static let invalid: [UInt8] = [0xc0, 0xc1] + Array(0xf5...0xfd)
  /// The first half of a tag is used for letters, the second for digits.
  private static let half = 8

  init(_ bytes: [UInt8]) { self.bytes = bytes.count >= 2 * Self.half ? bytes : [] }

  /// The next letter; `nil` after the last.
  mutating func letter() -> UInt8? {
    guard !bytes.isEmpty, letters < Self.half else { return nil }
    letters += 1
    return Self.alphabet[Int(bytes[letters - 1]) % Self.alphabet.count]
  }

  /// The next digit, never 0.
  mutating func digit() -> UInt8? {
    guard !bytes.isEmpty, digits < Self.half else { return nil }
    digits += 1
    return UInt8(ascii: "1") + bytes[Self.half + digits - 1] % 9
  }

  /// The next byte of the tag; 0 after the last.
  mutating func byte() -> UInt8 {
    guard !bytes.isEmpty, others < Self.half else { return 0 }
    others += 1
    return bytes[others - 1]
  }

  /// The next byte that no text in UTF-8 has.
  mutating func invalidByte() -> UInt8 {
    bytes.isEmpty || others >= Self.half ? 0xff : Self.invalid[Int(byte()) % Self.invalid.count]
  }
}

/// Texts with a fault of the grammar, and no other content.
private enum PayloadFault {
  /// A text of `count` bytes that breaks the same rule.
  static func template(_ rule: PayloadRule, _ count: Int, _ tag: inout PayloadTag, _ tape: inout JSONTape) -> [UInt8] {
    let begin: String
    let end: String
    switch rule {
    case .payloadBadUTF8:
      // The first two would be a byte order mark.
      return (0..<count).map { $0 < 2 ? 0xff : tag.invalidByte() }
    case .jsonTrailingComma: (begin, end) = ("[", ",]")
    case .jsonMissingComma: (begin, end) = ("[1\"", "")
    case .jsonSingleQuotes: (begin, end) = ("'", "")
    case .jsonTruncated: (begin, end) = ("\"", "")
    case .jsonControlCharacter: (begin, end) = ("\"\u{1}", "")
    default: (begin, end) = ("", "")
    }
    // The brackets enclose a number.
    let isNumber = rule == .jsonTrailingComma
    func filler() -> UInt8 {
      isNumber ? tag.digit() ?? UInt8(ascii: "1") : tag.letter() ?? UInt8(ascii: "x")
    }
    let length = count - begin.utf8.count - end.utf8.count
    if length >= 0 {
      let text = Array(begin.utf8) + (0..<length).map { _ in filler() } + Array(end.utf8)
      if let fault = tape.read(text.rawBytes), Judging.rule(of: fault, text.rawBytes) == rule { return text }
    }
    return [UInt8](repeating: UInt8(ascii: "x"), count: count)
  }
}

extension PayloadText.Encoding {
  /// Bytes of a unit.
  fileprivate var unit: Int {
    switch self {
    case .utf8: 1
    case .utf16: 2
    case .utf32: 4
    }
  }

  /// The number of code units that a part of a valid UTF-8 text needs in this encoding.
  fileprivate func units(_ text: RawSpan, _ range: Range<Int>) -> Int {
    if self == .utf8 { return range.count }
    let isPaired = unit == 2
    var count = 0
    for offset in range {
      let byte = text.byte(at: offset)
      if byte & 0xc0 != 0x80 { count += isPaired && byte >= 0xf0 ? 2 : 1 }
    }
    return count
  }

  /// Writes a unit of UTF-16 or UTF-32.
  fileprivate func write(_ value: UInt16, to bytes: inout [UInt8], at offset: Int) {
    let (high, low) = (UInt8(value >> 8), UInt8(truncatingIfNeeded: value))
    switch self {
    case .utf8: bytes[offset] = low
    case .utf16(let bigEndian): (bytes[offset], bytes[offset + 1]) = bigEndian ? (high, low) : (low, high)
    case .utf32(let bigEndian):
      for place in offset..<offset + 4 { bytes[place] = 0 }
      (bytes[bigEndian ? offset + 2 : offset], bytes[bigEndian ? offset + 3 : offset + 1]) =
        bigEndian ? (high, low) : (low, high)
    }
  }
}
