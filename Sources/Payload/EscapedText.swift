/// Parts of a text that were meant for another reader than the user: escapes, entities, characters of an obsolete
/// system.
struct EscapedText {
  /// The first byte in UTF-8 of the private use characters from U+E000 on.
  static let privateUse: UInt8 = 0xee

  /// An escape that the user sees: `\ud83d`, `\U0001f600` or `\u{1f600}`.
  private(set) var escape: String?
  /// An HTML entity: `&amp;`, `&#39;`, `&#x1f600;`.
  private(set) var entity: String?
  /// An emoji as iOS 2 to 4 wrote it for Softbank's network, by its code: `U+E415`.
  private(set) var oldEmoji: String?

  init(_ text: String) {
    let scalars = Array(text.unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      switch scalar {
      case "\\" where escape == nil: escape = Self.escape(scalars[index...])
      case "&" where entity == nil: entity = Self.entity(scalars[index...])
      case "\u{e001}"..."\u{e55a}" where oldEmoji == nil:
        // Six pages of up to 90 characters each.
        if (0x01...0x5a).contains(scalar.value & 0xff) {
          oldEmoji = "U+" + String(scalar.value, radix: 16, uppercase: true)
        }
      default: break
      }
    }
  }

  private static func escape(_ text: ArraySlice<Unicode.Scalar>) -> String? {
    let digits = text.dropFirst(2).prefix { $0.properties.isASCIIHexDigit }.count
    switch text.dropFirst().first {
    case "u" where digits >= 4: return string(text.prefix(6))
    case "U" where digits >= 8: return string(text.prefix(10))
    case "u" where text.dropFirst(2).first == "{":
      let digits = text.dropFirst(3).prefix { $0.properties.isASCIIHexDigit }.count
      return (1...6).contains(digits) && text.dropFirst(3 + digits).first == "}" ? string(text.prefix(digits + 4)) : nil
    default: return nil
    }
  }

  static func entity(_ text: ArraySlice<Unicode.Scalar>) -> String? {
    // The longest are numbers of ten characters and names of eight.
    guard let end = text.prefix(12).firstIndex(of: ";") else { return nil }
    let name = text[text.startIndex + 1..<end]
    let isEntity: Bool
    if name.first == "#" {
      let number = name.dropFirst()
      let isHex = number.first == "x" || number.first == "X"
      let digits = isHex ? number.dropFirst() : number
      isEntity = !digits.isEmpty && digits.allSatisfy { isHex ? $0.properties.isASCIIHexDigit : "0"..."9" ~= $0 }
    } else {
      let name = string(name)
      // &eacute;, &Ouml; and the like are a letter and its accent.
      isEntity = names.contains(name) || accents.contains(String(name.dropFirst()))
    }
    return isEntity ? string(text[text.startIndex...end]) : nil
  }

  private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    String(String.UnicodeScalarView(scalars))
  }

  private static let names: Set<String> = [
    "amp", "lt", "gt", "quot", "apos", "nbsp", "copy", "reg", "trade", "hellip", "mdash", "ndash", "lsquo", "rsquo",
    "ldquo", "rdquo", "sbquo", "bdquo", "laquo", "raquo", "lsaquo", "rsaquo", "bull", "middot", "euro", "pound", "yen",
    "cent", "deg", "sect", "para", "times", "divide", "plusmn", "iexcl", "iquest", "shy", "szlig", "aelig", "AElig",
    "oelig", "OElig", "larr", "rarr", "uarr", "darr", "hearts", "frac12", "frac14", "sup2", "ordm", "ordf",
  ]
  private static let accents: Set<String> = [
    "acute", "grave", "circ", "uml", "tilde", "cedil", "ring", "slash", "caron",
  ]
}
