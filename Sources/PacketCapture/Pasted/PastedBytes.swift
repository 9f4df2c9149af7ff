import Bytes

/// The bytes of one direction, from text in one of the formats that dump programs and languages print.
///
/// Each parser finds its own format in the text, among headings and prompts; the parser that finds most bytes is used.
struct PastedBytes {
  /// The fewest bytes that a text must show: the length of two error responses.
  private static let fewest = 12
  /// The fewest bytes of a list or string that the text truncates: at first only the beginning of a long text is looked
  /// at.
  fileprivate static let long = 64

  private(set) var bytes: [UInt8] = []
  /// Whether the printing program left something out: "... 50 more bytes>".
  private(set) var isCut = false

  /// `nil` if the text shows no bytes.
  init?(_ text: [UInt8], maximumLength: Int) {
    let dump = DumpLines(text, maximumLength: maximumLength)
    var found: [[UInt8]] = [dump.bytes]
    let bracketed = BracketedHex(text)
    found.append(bracketed.bytes)
    // With equal counts the first parser wins: `[55, 12, …]` is decimal, although its numbers could be pairs of digits.
    let lists = NumberLists(text)
    found.append(lists.bytes)
    found.append(SeparatedPairs(text).bytes)
    found.append(EscapedLiterals(text).bytes)
    found.append(NumberLists.lines(text))
    guard let best = found.max(by: { $0.count < $1.count }), best.count >= Self.fewest else {
      // Hexadecimal digits are valid base64 as well, so base64 comes last.
      guard let decoded = Self.base64(text) else { return nil }
      bytes = decoded
      return
    }
    bytes = best
    isCut = best == bracketed.bytes && bracketed.isCut || best == lists.bytes && lists.isCut
  }
}

extension PastedBytes {
  /// The bytes of text that is only base64: lines without blanks, a multiple of four characters.
  private static func base64(_ text: [UInt8]) -> [UInt8]? {
    let characters = text.filter { $0 != 0x0a && $0 != 0x0d }
    guard characters.count >= 32, characters.count % 4 == 0, !characters.allSatisfy(PastedText.isHexDigit),
      !characters.contains(where: PastedText.isBlank)
    else { return nil }
    return PastedText.base64(characters)
  }

  /// Whether lines begin with offsets of six digits and one blank, which look like bytes: `od -A x`.
  static func hasShortOffsets(_ text: [UInt8]) -> Bool {
    var last: (offset: Int, count: Int)?
    var fits = false
    PastedText.eachLine(text) { line in
      let digits = line.prefix(while: PastedText.isHexDigit)
      let rest = line.dropFirst(digits.count)
      guard digits.count == 6, rest.first.map({ $0 == 0x20 }) ?? true, rest.dropFirst().first != 0x20,
        let offset = PastedText.number(digits, radix: 16)
      else {
        return PastedText.trimmed(line).elementsEqual([UInt8(ascii: "*")])
      }
      fits = last.map { offset > $0.offset && offset - $0.offset <= 16 } ?? (offset == 0)
      defer { last = (offset, rest.count) }
      return last == nil
    }
    return fits && last != nil
  }
}

/// `<Buffer e0 17 …>` of Node, `<48656c6c 6f>` and `{length = 5, bytes = 0x48656c6c6f}` of Foundation.
private struct BracketedHex {
  private(set) var bytes: [UInt8] = []
  private(set) var isCut = false

  init(_ text: [UInt8]) {
    var index = 0
    while let start = text[index...].firstIndex(of: UInt8(ascii: "<")) {
      index = start + 1
      var end = index
      if text[end...].starts(with: Array("Buffer".utf8)) { end += 6 }
      let first = end
      var digits: [UInt8] = []
      while end < text.count,
        PastedText.isHexDigit(text[end]) || PastedText.isBlank(text[end]) || text[end] == 0x0a || text[end] == 0x0d
      {
        if PastedText.isHexDigit(text[end]) { digits.append(text[end]) }
        end += 1
      }
      if end == text.count, digits.count >= 2 * PastedBytes.long {
        if digits.count % 2 == 1 { digits.removeLast() }
        bytes += PastedText.pairs(digits) ?? []
        return
      }
      guard end < text.count, end > first, let found = PastedText.pairs(digits), !found.isEmpty else { continue }
      if text[end] == UInt8(ascii: ">") {
        bytes += found
        index = end + 1
      } else if text[end...].starts(with: Array("...".utf8)) {
        // Node: "... 50 more bytes>"
        bytes += found
        isCut = true
        index = end
      }
    }
    readLengths(text)
  }

  private mutating func readLengths(_ text: [UInt8]) {
    let mark = Array("bytes = 0x".utf8)
    var rest = text[...]
    while let place = rest.firstRange(of: mark) {
      rest = rest[place.upperBound...]
      let digits = rest.prefix { PastedText.isHexDigit($0) || PastedText.isBlank($0) }
      let end = rest.dropFirst(digits.count)
      if let found = PastedText.pairs(digits.filter(PastedText.isHexDigit)) { bytes += found }
      if end.starts(with: Array("...".utf8)) { isCut = true }
    }
  }
}

/// `01-00-20-…` of .NET, `01:00:20:…`, `01,00,20,…`: at least eight pairs of digits with separators.
private struct SeparatedPairs {
  private(set) var bytes: [UInt8] = []

  init(_ text: [UInt8]) {
    var index = 0
    while index + 2 < text.count {
      let isStart = index == 0 || !(PastedText.isHexDigit(text[index - 1]) || text[index - 1] == UInt8(ascii: "x"))
      guard isStart, PastedText.isHexDigit(text[index]), PastedText.isHexDigit(text[index + 1]),
        "-:,".utf8.contains(text[index + 2])
      else {
        index += 1
        continue
      }
      let mark = text[index + 2]
      var found: [UInt8] = []
      var end = index
      while end + 1 < text.count, PastedText.isHexDigit(text[end]), PastedText.isHexDigit(text[end + 1]) {
        found.append(PastedText.digit(text[end]) << 4 | PastedText.digit(text[end + 1]))
        end += 2
        guard end < text.count, text[end] == mark else { break }
        end += 1
        while end < text.count, PastedText.isBlank(text[end]) || text[end] == 0x0a || text[end] == 0x0d { end += 1 }
      }
      if found.count >= 8 { bytes += found }
      index = max(end, index + 1)
    }
  }
}

/// String literals with escapes as languages print them: `b'\x01\x00{"aps"…'` of Python, `"\x01\u0000\e"` of Ruby and
/// Go, and those of a shell without quotes.
private struct EscapedLiterals {
  private(set) var bytes: [UInt8] = []

  init(_ text: [UInt8]) {
    var index = 0
    while index < text.count {
      let byte = text[index]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        if let (found, end, hasEscapes) = Self.literal(text, from: index + 1, until: byte) {
          if hasEscapes { bytes += found }
          index = end
          continue
        }
      } else if byte == UInt8(ascii: "\\"), let (found, end, _) = Self.literal(text, from: index, until: nil),
        found.count >= 4
      {
        bytes += found
        index = end
        continue
      }
      index += 1
    }
  }

  /// The bytes of a string literal, the index after it, and whether it has an escape of a byte.
  ///
  /// - Parameter quote: the closing quote; `nil`: the literal ends at a blank or the end of the line.
  private static func literal(
    _ text: [UInt8], from start: Int, until quote: UInt8?
  ) -> (bytes: [UInt8], end: Int, hasEscapes: Bool)? {
    var (index, found, hasEscapes) = (start, [UInt8](), false)
    while index < text.count {
      let byte = text[index]
      if byte == quote { return (found, index + 1, hasEscapes) }
      if byte == 0x0a || quote == nil && (PastedText.isBlank(byte) || byte == UInt8(ascii: "\"")) {
        return quote == nil ? (found, index, hasEscapes) : nil
      }
      guard byte == UInt8(ascii: "\\"), index + 1 < text.count else {
        found.append(byte)
        index += 1
        continue
      }
      let (value, length, isByte) = escape(text, index + 1)
      found.append(value)
      hasEscapes = hasEscapes || isByte
      index += 1 + length
    }
    return quote == nil || found.count >= PastedBytes.long ? (found, index, hasEscapes) : nil
  }

  /// The byte of an escape, from the index after its backslash: the byte, the length, and whether it is a numeric
  /// escape.
  private static func escape(_ text: [UInt8], _ index: Int) -> (value: UInt8, length: Int, isByte: Bool) {
    func digits(_ start: Int, _ most: Int, _ isDigit: (UInt8) -> Bool) -> ArraySlice<UInt8> {
      guard start < text.count else { return [] }
      return text[start..<min(text.count, start + most)].prefix(while: isDigit)
    }
    switch text[index] {
    case UInt8(ascii: "x") where index + 1 < text.count && text[index + 1] == UInt8(ascii: "{"):
      let number = digits(index + 2, 2, PastedText.isHexDigit)
      let end = index + 2 + number.count
      if let value = PastedText.number(number, radix: 16), end < text.count, text[end] == UInt8(ascii: "}") {
        return (UInt8(value), 3 + number.count, true)
      }
    case UInt8(ascii: "x"):
      let number = digits(index + 1, 2, PastedText.isHexDigit)
      if let value = PastedText.number(number, radix: 16) { return (UInt8(value), 1 + number.count, true) }
    case UInt8(ascii: "u"):
      let number = digits(index + 1, 4, PastedText.isHexDigit)
      if number.count == 4, let value = PastedText.number(number, radix: 16), value < 0x100 {
        return (UInt8(value), 5, true)
      }
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      let number = digits(index, 3) { (0x30...0x37).contains($0) }
      if let value = PastedText.number(number, radix: 8) {
        return (UInt8(truncatingIfNeeded: value), number.count, true)
      }
    case UInt8(ascii: "n"): return (0x0a, 1, false)
    case UInt8(ascii: "r"): return (0x0d, 1, false)
    case UInt8(ascii: "t"): return (0x09, 1, false)
    case UInt8(ascii: "a"): return (0x07, 1, false)
    case UInt8(ascii: "b"): return (0x08, 1, false)
    case UInt8(ascii: "f"): return (0x0c, 1, false)
    case UInt8(ascii: "v"): return (0x0b, 1, false)
    case UInt8(ascii: "e"), UInt8(ascii: "E"): return (0x1b, 1, false)
    default: break
    }
    return (text[index], 1, false)
  }
}

/// Lists of numbers in brackets: `[1, 0, 32]` of Python, Ruby, Swift and JavaScript, `[1 0 32]` and `[]byte{0x1, 0x0}`
/// of Go, `<<1,0,32>>` of Erlang, `[1, 0, -70]` of Java, `{0x01, 0x00}` of C, C# and `xxd -i`.
private struct NumberLists {
  private(set) var bytes: [UInt8] = []
  private(set) var isCut = false

  init(_ text: [UInt8]) {
    let text = Self.withoutComments(text)
    var index = 0
    while index < text.count {
      guard "[{(<".utf8.contains(text[index]) else {
        index += 1
        continue
      }
      let (found, end, isWhole) = Self.list(text, from: index + 1)
      if found.count >= 4, isWhole || end + 2 < text.count && text[end] == UInt8(ascii: ".") {
        bytes += found
        isCut = isCut || !isWhole
        index = end
      } else {
        index += 1
      }
    }
  }

  /// Lines of numbers without brackets, as `xxd -i` writes them for a pipe: `0x01, 0x00` or `1 0 32`.
  static func lines(_ text: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    PastedText.eachLine(text) { line in
      let words = line.split { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") || PastedText.isBlank($0) }
      var found: [UInt8] = []
      for word in words {
        let word = Array(word)
        // Longer words are the offsets of a dump.
        guard word.count <= 4, let (value, length) = number(word, 0), length == word.count else { return true }
        found.append(value)
      }
      bytes += found
      return true
    }
    return bytes
  }

  /// The numbers up to a closing bracket, or to the first text that is not a number.
  private static func list(_ text: [UInt8], from start: Int) -> (bytes: [UInt8], end: Int, isWhole: Bool) {
    var (index, bytes) = (start, [UInt8]())
    if index < text.count, text[index] == UInt8(ascii: "<") { index += 1 }
    while index < text.count {
      let byte = text[index]
      if "]})>".utf8.contains(byte) { return (bytes, index + 1, true) }
      if byte == UInt8(ascii: ",") || byte == UInt8(ascii: ";") || PastedText.isBlank(byte) || byte == 0x0a
        || byte == 0x0d
      {
        index += 1
        continue
      }
      // A cast, as (byte)0x80.
      if byte == UInt8(ascii: "("), let close = text[index...].prefix(12).firstIndex(of: UInt8(ascii: ")")),
        text[(index + 1)..<close].allSatisfy({ (0x61...0x7a).contains($0 | 0x20) })
      {
        index = close + 1
        continue
      }
      guard let (value, length) = number(text, index) else { return (bytes, index, false) }
      bytes.append(value)
      index += length
    }
    // The text ends within the list; a long list counts nevertheless.
    return (bytes, index, bytes.count >= PastedBytes.long)
  }

  /// A number from -128 to 255, decimal or hexadecimal, possibly followed by the name of its type.
  private static func number(_ text: [UInt8], _ start: Int) -> (value: UInt8, length: Int)? {
    var index = start
    let isNegative = text[index] == UInt8(ascii: "-")
    if isNegative { index += 1 }
    guard index < text.count else { return nil }
    let isHex =
      text[index] == UInt8(ascii: "0") && index + 1 < text.count && text[index + 1] | 0x20 == UInt8(ascii: "x")
    if isHex { index += 2 }
    let rest = text[index..<min(text.count, index + 4)]
    let digits = isHex ? rest.prefix(while: PastedText.isHexDigit) : rest.prefix(while: PastedText.isDecimal)
    // A decimal number does not begin with 0.
    guard isHex || digits.count == 1 || digits.first != UInt8(ascii: "0"),
      let number = PastedText.number(digits, radix: isHex ? 16 : 10)
    else { return nil }
    let value = isNegative ? -number : number
    guard (-128...255).contains(value) else { return nil }
    index += digits.count
    for type in ["u8", "_u8", "u", "U"] where text[index...].starts(with: Array(type.utf8)) {
      index += type.utf8.count
      break
    }
    // 1.5 and 1abc are not bytes.
    if index < text.count, !",;]})> \t\r\n".utf8.contains(text[index]) { return nil }
    return (UInt8(truncatingIfNeeded: value), index - start)
  }

  private static func withoutComments(_ text: [UInt8]) -> [UInt8] {
    guard text.firstRange(of: Array("/*".utf8)) != nil else { return text }
    var result: [UInt8] = []
    var rest = text[...]
    while let start = rest.firstRange(of: Array("/*".utf8)) {
      result += rest[..<start.lowerBound]
      rest = rest[start.upperBound...]
      guard let end = rest.firstRange(of: Array("*/".utf8)) else { return result }
      rest = rest[end.upperBound...]
    }
    return result + rest
  }
}
