import Bytes

/// Replaces what a payload says and keeps what it is, byte for byte: letters of texts become x, digits of texts and of
/// custom numbers become 1. Structure, keys, punctuation and white space stay, and what no user reads of `aps`: numbers,
/// keys of localised texts, names of sounds, images and categories.
///
/// What a rule about texts finds in them stays one of its kind: an escape that was escaped, an HTML entity, an old emoji.
///
/// It goes by quotes and brackets alone, so that a payload that is no JSON keeps its fault. In UTF-16 keys are masked, too.
package struct PayloadRedaction {
  /// An object or array that is open.
  private struct Level {
    /// The latest key of an object, with its quotes.
    var key: Range<Int>?
    /// It is the value of the root's `aps`, or in it.
    var isInAPS: Bool
    /// It is the value of a kept key, or in it.
    var isKept: Bool
  }

  private var levels: [Level] = []
  /// Brackets beyond it do not open a level of their own.
  private static let deepest = JSONText.deepestNesting
  /// Values of these keys of `aps` and `alert` are names that an app gave, or numbers.
  private static let kept: [StaticString] = [
    "\"sound\"", "\"category\"", "\"badge\"", "\"content-available\"", "\"mutable-content\"", "\"loc-key\"",
    "\"title-loc-key\"", "\"subtitle-loc-key\"", "\"action-loc-key\"", "\"launch-image\"", "\"interruption-level\"",
    "\"relevance-score\"", "\"summary-arg-count\"",
  ]

  package init() {}

  package mutating func redact(_ bytes: inout [UInt8], in range: Range<Int>) {
    levels.removeAll(keepingCapacity: true)
    var offset = range.lowerBound + Self.byteOrderMark(bytes, range)
    while offset < range.upperBound {
      let byte = bytes[offset]
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        let (contents, end) = Self.string(bytes, from: offset, to: range.upperBound)
        if isKey(bytes, before: end, to: range.upperBound), !levels.isEmpty {
          levels[levels.count - 1].key = offset..<end
        } else if !isKept(bytes) {
          Self.mask(&bytes, contents)
        }
        offset = end
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if levels.count < Self.deepest {
          levels.append(Level(key: nil, isInAPS: opensAPS(bytes), isKept: isKept(bytes)))
        }
        offset += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        _ = levels.popLast()
        offset += 1
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        offset = maskNumber(&bytes, from: offset, to: range.upperBound)
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x80...:
        offset = Self.maskWord(&bytes, from: offset, to: range.upperBound)
      default: offset += 1
      }
    }
  }

  // MARK: where

  /// The length of a mark that says how the text is encoded.
  private static func byteOrderMark(_ bytes: [UInt8], _ range: Range<Int>) -> Int {
    let marks: [[UInt8]] = [[0xef, 0xbb, 0xbf], [0xfe, 0xff], [0xff, 0xfe]]
    return marks.first { bytes[range].starts(with: $0) }?.count ?? 0
  }

  /// A value that begins now is that of the root's `aps`, or in it.
  private func opensAPS(_ bytes: [UInt8]) -> Bool {
    guard let level = levels.last else { return false }
    if level.isInAPS { return true }
    return levels.count == 1 && level.key.map { Self.holds("\"aps\"", bytes, $0) } ?? false
  }

  private func isKept(_ bytes: [UInt8]) -> Bool {
    guard let level = levels.last, level.isInAPS else { return false }
    if level.isKept { return true }
    guard let key = level.key else { return false }
    return Self.kept.contains { Self.holds($0, bytes, key) }
  }

  private static func holds(_ name: StaticString, _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    range.count == name.utf8CodeUnitCount && bytes.rawBytes.extracting(range).holds(name, at: 0)
  }

  /// A colon follows the string that ends here.
  private func isKey(_ bytes: [UInt8], before end: Int, to limit: Int) -> Bool {
    var offset = end
    while offset < limit, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[offset]) { offset += 1 }
    return offset < limit && bytes[offset] == UInt8(ascii: ":")
  }

  // MARK: texts

  /// The text in quotes that begins here, and the offset after it; both end at the limit where no quote closes it.
  private static func string(_ bytes: [UInt8], from start: Int, to limit: Int) -> (contents: Range<Int>, end: Int) {
    var offset = start + 1
    while offset < limit {
      if bytes[offset] == bytes[start] { return (start + 1..<offset, offset + 1) }
      offset += bytes[offset] == UInt8(ascii: "\\") ? 2 : 1
    }
    return (start + 1..<limit, limit)
  }

  /// Masks the digits of a number, unless it is one of `aps`; returns its end.
  private func maskNumber(_ bytes: inout [UInt8], from start: Int, to limit: Int) -> Int {
    var offset = start
    while offset < limit, "0123456789.eE+-".utf8.contains(bytes[offset]) {
      if levels.last?.isInAPS != true, (0x30...0x39).contains(bytes[offset]) { bytes[offset] = UInt8(ascii: "1") }
      offset += 1
    }
    return offset
  }

  /// Masks a word outside of quotes, unless it is a literal or the beginning of one; returns its end.
  private static func maskWord(_ bytes: inout [UInt8], from start: Int, to limit: Int) -> Int {
    var end = start
    while end < limit, bytes[end] >= 0x80 || Character(Unicode.Scalar(bytes[end])).isLetter { end += 1 }
    let word = String(decoding: bytes[start..<end], as: UTF8.self)
    if !["true", "false", "null"].contains(where: { $0.hasPrefix(word) }) { mask(&bytes, start..<end) }
    return end
  }

  private static func mask(_ bytes: inout [UInt8], _ range: Range<Int>) {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let byte = bytes[offset]
      switch byte {
      case UInt8(ascii: "\\"):
        let end = maskEscape(&bytes, at: offset, to: range.upperBound)
        if end == offset + 2, bytes[offset + 1] == byte {
          offset = maskShownEscape(&bytes, at: end, to: range.upperBound)
        } else if end == offset + 6, bytes[offset..<end].elementsEqual("\\u0026".utf8) {
          offset = maskEntity(&bytes, after: end, to: range.upperBound)
        } else {
          offset = end
        }
        continue
      case UInt8(ascii: "&"):
        offset = maskEntity(&bytes, after: offset + 1, to: range.upperBound)
        continue
      case UInt8(ascii: "a")...UInt8(ascii: "z"): bytes[offset] = UInt8(ascii: "x")
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): bytes[offset] = UInt8(ascii: "X")
      case UInt8(ascii: "0")...UInt8(ascii: "9"): bytes[offset] = UInt8(ascii: "1")
      case 0x80...:
        let length = bytes.rawBytes.extracting(0..<range.upperBound).lengthOfCharacter(at: offset)
        if length == 3, isOldEmoji(bytes[offset..<offset + 3]) {
          (bytes[offset + 1], bytes[offset + 2]) = (0x80, 0x81)
          offset += 3
          continue
        }
        // An invalid byte stays a fault, and says nothing.
        for place in offset..<offset + (length ?? 1) { bytes[place] = length == nil ? 0xff : UInt8(ascii: "x") }
        offset += length ?? 1
        continue
      default: break
      }
      offset += 1
    }
  }

  /// Keeps an escape's form; its character becomes x, half of a surrogate pair stays one.
  private static func maskEscape(_ bytes: inout [UInt8], at offset: Int, to limit: Int) -> Int {
    // Other escapes than those of JSON are text.
    guard offset + 1 < limit, "\"\\/bfnrtu".utf8.contains(bytes[offset + 1]) else { return offset + 1 }
    guard bytes[offset + 1] == UInt8(ascii: "u"), offset + 6 <= limit else { return offset + 2 }
    let digits = offset + 2..<offset + 6
    guard digits.allSatisfy({ Character(Unicode.Scalar(bytes[$0])).isHexDigit }) else { return offset + 2 }
    let value = digits.reduce(0) { $0 << 4 | Int(hexValue(bytes[$1])) }
    // An ampersand is punctuation, and may begin an entity.
    if value == 0x26 { return offset + 6 }
    if (0xe001...0xe55a).contains(value), (0x01...0x5a).contains(value & 0xff) {
      for (place, byte) in zip(digits, Array("e001".utf8)) { bytes[place] = byte }
      return offset + 6
    }
    let first = bytes[offset + 2] | 0x20
    let isHalf = first == UInt8(ascii: "d") && !(UInt8(ascii: "0")...UInt8(ascii: "7")).contains(bytes[offset + 3])
    let text: StaticString = isHalf ? "00" : "0078"
    for (place, byte) in zip(isHalf ? digits.suffix(2) : digits[...], Array("\(text)".utf8)) { bytes[place] = byte }
    if isHalf {
      // A high half stays before a low one: D83C and DC00.
      let isHigh = "89abAB".utf8.contains(bytes[offset + 3])
      bytes[offset + 3] = isHigh ? UInt8(ascii: "8") : UInt8(ascii: "c")
    }
    return offset + 6
  }

  private static func hexValue(_ byte: UInt8) -> UInt8 { byte < 0x40 ? byte & 15 : (byte & 0xdf) &- 0x37 }

  /// U+E001 to U+E55A, six pages of 90 characters.
  private static func isOldEmoji(_ bytes: ArraySlice<UInt8>) -> Bool {
    let value = bytes.reduce(0) { $0 << 6 | Int($1 & 0x3f) } & 0xffff
    return (0xe001...0xe55a).contains(value) && (0x01...0x5a).contains(value & 0xff)
  }

  /// What follows an escaped backslash: the rest of an escape that the user sees keeps its form.
  private static func maskShownEscape(_ bytes: inout [UInt8], at offset: Int, to limit: Int) -> Int {
    func digits(_ start: Int, _ most: Int) -> Range<Int> {
      var end = start
      while end < min(limit, start + most), Character(Unicode.Scalar(bytes[end])).isHexDigit { end += 1 }
      return start..<max(start, end)
    }
    guard offset < limit else { return offset }
    let found: Range<Int>
    switch bytes[offset] {
    case UInt8(ascii: "u") where offset + 1 < limit && bytes[offset + 1] == UInt8(ascii: "{"):
      found = digits(offset + 2, 6)
      guard !found.isEmpty, found.upperBound < limit, bytes[found.upperBound] == UInt8(ascii: "}") else {
        return offset
      }
    case UInt8(ascii: "u"):
      found = digits(offset + 1, 4)
      guard found.count == 4 else { return offset }
    case UInt8(ascii: "U"):
      found = digits(offset + 1, 8)
      guard found.count == 8 else { return offset }
    default: return offset
    }
    for place in found { bytes[place] = UInt8(ascii: "1") }
    return found.upperBound
  }

  /// What follows an ampersand: an entity becomes another one of its length.
  private static func maskEntity(_ bytes: inout [UInt8], after start: Int, to limit: Int) -> Int {
    let scalars = bytes[start..<min(limit, start + 11)].map { Unicode.Scalar($0) }
    guard let entity = EscapedText.entity(([("&" as Unicode.Scalar)] + scalars)[...]) else { return start }
    let name = start..<start + entity.utf8.count - 2
    if bytes[name.lowerBound] == UInt8(ascii: "#") {
      let isHex = bytes[name.lowerBound + 1] | 0x20 == UInt8(ascii: "x")
      for place in name.dropFirst(isHex ? 2 : 1) { bytes[place] = UInt8(ascii: "1") }
    } else {
      let others = [2: "lt", 3: "amp", 4: "xuml", 5: "xcirc", 6: "xacute"]
      for (place, byte) in zip(name, Array((others[name.count] ?? "").utf8)) { bytes[place] = byte }
    }
    return name.upperBound
  }
}
