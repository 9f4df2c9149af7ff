/// Lines of od, hexdump, xxd and similar programs among other lines.
///
/// ```
/// 0000020 48 75 e4 a4 4f 01 1e 36 …                    od -t x1, offsets in octal; in hexadecimal with -A x
/// 0000020 110 165 344 244 117 001 036 066 …            od -b
/// 0000020 072510 122344 …                              od, words of two bytes in the order of a PC
/// 0000010 7548 a4e4 …                                  hexdump, od -x
/// 00000010: 4875 e4a4 4f01 1e36  Hu..O..6              xxd
/// 00000010  48 75 e4 a4 4f 01 1e 36  |Hu..O..6|        hexdump -C
/// sent: 4875e4a44f011e36                               a log
/// ```
struct DumpLines {
  private(set) var bytes: [UInt8] = []

  private struct Line {
    var offset: ArraySlice<UInt8>
    var bytes: [UInt8]
    /// Whether the last byte may be padding of a word.
    var isOfWords = false
  }

  init(_ text: [UInt8], maximumLength: Int) {
    var lines: [Line?] = []
    var plain: [UInt8] = []
    let isDecimal = Self.usesDecimals(text)
    PastedText.eachLine(text) { line in
      let text = PastedText.trimmed(line)
      if text.elementsEqual([UInt8(ascii: "*")]) {
        lines.append(nil)
      } else if lines.isEmpty, let found = PastedText.pairs(text), !found.isEmpty {
        // A short line counts as bytes only after offsets.
        plain += found
      } else if let found = Self.withOffset(text, isDecimal: isDecimal) ?? Self.withCharacters(line) {
        lines.append(found)
      } else if let found = Self.withoutOffset(text) {
        plain += found
      }
      return true
    }
    let shown = lines.reduce(0) { $0 + ($1?.bytes.count ?? 0) }
    bytes = shown >= plain.count ? Self.joined(lines, maximumLength) : plain
  }

  /// The bytes of all lines, including those that an asterisk abbreviates, without the padding of the last word.
  private static func joined(_ lines: [Line?], _ maximumLength: Int) -> [UInt8] {
    let radix = radix(lines)
    var bytes: [UInt8] = []
    var last: Line?
    var first: Int?
    var repeats = false
    for line in lines {
      guard let line else {
        repeats = true
        continue
      }
      let offset = PastedText.number(line.offset, radix: radix)
      if let offset {
        if first == nil || offset == 0 && line.bytes.count > 0 { first = offset - bytes.count }
        let end = min(offset - (first ?? 0), maximumLength)
        if repeats, let last, !last.bytes.isEmpty {
          while bytes.count + last.bytes.count <= end { bytes += last.bytes }
        }
        // The offset on the last line is the total length.
        if line.bytes.isEmpty, last?.isOfWords == true, bytes.count == end + 1 { bytes.removeLast() }
      }
      repeats = false
      bytes += line.bytes
      if !line.bytes.isEmpty { last = line }
    }
    return bytes
  }

  /// The radix of offsets, 8, 10 or 16: the one for which most lines are contiguous.
  private static func radix(_ lines: [Line?]) -> Int {
    func fitting(_ radix: Int) -> Int {
      zip(lines, lines.dropFirst()).reduce(0) { count, pair in
        guard let line = pair.0, let next = pair.1, let offset = PastedText.number(line.offset, radix: radix),
          let end = PastedText.number(next.offset, radix: radix)
        else { return count }
        return count
          + (end - offset == line.bytes.count || line.isOfWords && end - offset == line.bytes.count - 1 ? 1 : 0)
      }
    }
    return [16, 8, 10].max { (fitting($0), $1) < (fitting($1), $0) } ?? 16
  }

  /// Whether numbers are decimal, as `od -t u1` and `od -t d1` write them: some have one digit, or are negative.
  private static func usesDecimals(_ text: [UInt8]) -> Bool {
    var found = false
    PastedText.eachLine(text) { line in
      let offset = line.prefix(while: PastedText.isHexDigit)
      let rest = line.dropFirst(offset.count)
      guard (6...8).contains(offset.count), let blank = rest.first, PastedText.isBlank(blank) else { return true }
      let words = PastedText.words(rest)
      let areNumbers = words.allSatisfy { word in
        let digits = word.first == UInt8(ascii: "-") ? word.dropFirst() : word
        return (1...3).contains(digits.count) && digits.allSatisfy(PastedText.isDecimal)
      }
      found = areNumbers && words.contains { $0.count == 1 || $0.first == UInt8(ascii: "-") }
      // Characters of `od -c` may be digits.
      return !found && !rest.contains(UInt8(ascii: "\\"))
    }
    return found
  }

  private static func withOffset(_ text: ArraySlice<UInt8>, isDecimal: Bool) -> Line? {
    if let (offset, bytes) = PastedPackets.tcpdumpLine(text), offset >= 0 {
      return Line(offset: text.dropFirst(2).prefix(while: PastedText.isHexDigit), bytes: bytes)
    }
    let offset = text.prefix(while: PastedText.isHexDigit)
    guard (4...16).contains(offset.count) else { return nil }
    var rest = text.dropFirst(offset.count)
    if rest.isEmpty { return offset.count >= 6 && offset.count <= 8 ? Line(offset: offset, bytes: []) : nil }
    let isXXD = rest.first == UInt8(ascii: ":")
    if isXXD { rest = rest.dropFirst() }
    guard let blank = rest.first, PastedText.isBlank(blank),
      isXXD || offset.count >= 6 || rest.dropFirst().first == blank
    else { return nil }
    // The text column begins with a bar or an angle bracket, or after two blanks.
    for mark in ["  |", "  >"] {
      if let column = rest.firstRange(of: Array(mark.utf8)) { rest = rest[..<column.lowerBound] }
    }
    let words = columns(rest)
    guard !words.isEmpty else { return nil }
    return isDecimal ? numbers(offset, words, radix: 10) : Self.words(words, behind: offset, isXXD: isXXD)
  }

  /// The bytes of words; the lengths of words tell their format.
  private static func words(
    _ words: [ArraySlice<UInt8>], behind offset: ArraySlice<UInt8>, isXXD: Bool
  ) -> Line? {
    if isXXD || words.allSatisfy({ $0.count == 2 }) || offset.count >= 8 && words.contains(where: { $0.count != 4 }) {
      return pairs(words).map { Line(offset: offset, bytes: $0) }
    }
    if words.allSatisfy({ $0.count == 6 }) { return words16(offset, words, radix: 8) }
    if words.allSatisfy({ $0.count == 4 && !$0.contains(where: { !PastedText.isHexDigit($0) }) }) {
      return words16(offset, words, radix: 16)
    }
    return words.allSatisfy { $0.count == 3 } ? numbers(offset, words, radix: 8) : nil
  }

  /// The bytes of words that consist of pairs of hexadecimal digits.
  private static func pairs(_ words: [ArraySlice<UInt8>]) -> [UInt8]? {
    var bytes: [UInt8] = []
    for word in words {
      guard let pairs = PastedText.pairs(word) else { return nil }
      bytes += pairs
    }
    return bytes
  }

  private static func numbers(_ offset: ArraySlice<UInt8>, _ words: [ArraySlice<UInt8>], radix: Int) -> Line? {
    var bytes: [UInt8] = []
    for word in words {
      let isNegative = word.first == UInt8(ascii: "-")
      guard let number = PastedText.number(isNegative ? word.dropFirst() : word, radix: radix) else { return nil }
      let value = isNegative ? -number : number
      guard (-128...255).contains(value) else { return nil }
      bytes.append(UInt8(truncatingIfNeeded: value))
    }
    return Line(offset: offset, bytes: bytes)
  }

  /// A line of `od -c`: `0000020   H   u 344  \0`, columns of four characters.
  private static func withCharacters(_ line: ArraySlice<UInt8>) -> Line? {
    let offset = line.prefix(while: PastedText.isHexDigit)
    var rest = line.dropFirst(offset.count)
    guard (6...8).contains(offset.count), rest.count >= 4, rest.count <= 64 else { return nil }
    let escapes: [String: UInt8] = [
      "\\0": 0, "\\a": 7, "\\b": 8, "\\t": 9, "\\n": 10, "\\v": 11, "\\f": 12, "\\r": 13, "\\\\": 0x5c,
    ]
    var bytes: [UInt8] = []
    while !rest.isEmpty {
      let column = rest.prefix(4)
      rest = rest.dropFirst(4)
      let text = column.drop { $0 == 0x20 }
      if text.count <= 1 {
        bytes.append(text.first ?? 0x20)
      } else if let escape = escapes[String(decoding: text, as: UTF8.self)] {
        bytes.append(escape)
      } else if text.count == 3, let number = PastedText.number(text, radix: 8), number < 256 {
        bytes.append(UInt8(number))
      } else {
        return nil
      }
    }
    return Line(offset: offset, bytes: bytes)
  }

  /// The words up to two consecutive blanks, at least one word, unless numbers are padded with blanks.
  private static func columns(_ text: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    let all = PastedText.words(text)
    if all.allSatisfy({ $0.allSatisfy { PastedText.isDecimal($0) || $0 == UInt8(ascii: "-") } }) { return all }
    var words: [ArraySlice<UInt8>] = []
    for word in all {
      let isHex = word.allSatisfy(PastedText.isHexDigit) && word.count % 2 == 0
      let gap = word.startIndex - (words.last?.endIndex ?? word.startIndex)
      // hexdump -C has two blanks in the middle.
      guard isHex, gap < 2 || words.count == 8 && gap == 2 else { break }
      words.append(word)
    }
    return words
  }

  private static func words16(_ offset: ArraySlice<UInt8>, _ words: [ArraySlice<UInt8>], radix: Int) -> Line? {
    var bytes: [UInt8] = []
    for word in words {
      guard let number = PastedText.number(word, radix: radix), number <= 0xffff else { return nil }
      bytes += [UInt8(number & 0xff), UInt8(number >> 8)]
    }
    return Line(offset: offset, bytes: bytes, isOfWords: true)
  }

  /// Digits that fill a line, or that follow its last colon, equals sign or angle bracket.
  private static func withoutOffset(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    func pairs(_ text: ArraySlice<UInt8>) -> [UInt8]? {
      var words = PastedText.words(text)
      if let first = words.first, first.starts(with: Array("0x".utf8)) { words[0] = first.dropFirst(2) }
      return Self.pairs(words).flatMap { $0.isEmpty ? nil : $0 }
    }
    if let bytes = pairs(text) { return bytes }
    // string(4) "01000000"
    if let end = text.lastIndex(of: UInt8(ascii: "\"")), let start = text[..<end].lastIndex(of: UInt8(ascii: "\"")),
      let bytes = pairs(text[(start + 1)..<end]), bytes.count >= 4
    {
      return bytes
    }
    guard let mark = text.lastIndex(where: { ":=>".utf8.contains($0) }) else { return nil }
    var rest = PastedText.trimmed(text[(mark + 1)...])
    while let last = rest.last, ";,.\"')".utf8.contains(last) { rest.removeLast() }
    while let first = rest.first, "\"'(".utf8.contains(first) { rest.removeFirst() }
    // What follows a colon in a time of day or an address is short.
    return pairs(rest).flatMap { $0.count >= 4 ? $0 : nil }
  }
}
