/// How text is shown on a terminal: wrapped to its width, and with colours. Text for files and pipes stays as it is.
package struct TextLayout: Sendable {
  /// The terminal's width in columns; `nil`: lines are not wrapped.
  package var columns: Int?
  package var isColoured: Bool

  package init(columns: Int?, isColoured: Bool) {
    self.columns = columns
    self.isColoured = isColoured
  }

  /// The text as it is shown.
  ///
  /// - Complexity: O(n).
  package func laidOut(_ text: String) -> String {
    guard columns != nil || isColoured else { return text }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
      columns.map { Self.wrapped(String(line), $0) } ?? [String(line)]
    }
    return (isColoured ? lines.map(Self.coloured) : lines).joined(separator: "\n")
  }

  // MARK: width

  /// The narrowest terminal for which lines are wrapped: below, a terminal wraps as well itself.
  private static let narrowest = 20
  /// Labels are at most this wide, with the spaces behind them.
  private static let widestLabel = 20

  /// A line in pieces of at most `columns`, broken at spaces where there are any; continued behind the line's label or
  /// indentation.
  static func wrapped(_ line: String, _ columns: Int) -> [String] {
    guard columns >= narrowest, displayWidth(line) > columns else { return [line] }
    let hanging = min(hangingIndent(line), columns / 2)
    var lines: [String] = []
    var rest = Substring(line)
    while true {
      let width = lines.isEmpty ? columns : columns - hanging
      let piece = firstPiece(of: rest, width, keeping: lines.isEmpty ? hanging : 0)
      lines.append((lines.isEmpty ? "" : String(repeating: " ", count: hanging)) + piece)
      rest = rest[piece.endIndex...].drop { $0 == " " }
      if rest.isEmpty { return lines }
    }
  }

  /// The piece that fits, up to the last space behind the first `keeping` characters if there is one.
  private static func firstPiece(of text: Substring, _ width: Int, keeping: Int) -> Substring {
    var used = 0
    var space: Substring.Index?
    for (place, index) in text.indices.enumerated() {
      if text[index] == " ", place > keeping, used <= width { space = index }
      used += displayWidth(text[index])
      // At least one character, however narrow the terminal is.
      if used > width, place > 0 { return text[..<(space ?? index)] }
    }
    return text
  }

  /// Where the text behind a label begins, or behind the line's indentation.
  private static func hangingIndent(_ line: String) -> Int {
    let leading = line.prefix { $0 == " " }.count
    var place = leading
    var spaces = 0
    for character in line.dropFirst(leading).prefix(widestLabel) {
      if character == " " {
        spaces += 1
      } else {
        if spaces >= 2 { return place }
        spaces = 0
      }
      place += 1
    }
    return leading > 0 ? leading : 2
  }

  /// The columns that text takes.
  package static func displayWidth(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + displayWidth($1) }
  }

  /// 2 for characters that East Asian typography and emoji make wide (Unicode Annex 11), else 1.
  private static func displayWidth(_ character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first, scalar.value >= 0x1100 else { return 1 }
    return wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
    0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1f64f, 0x1f680...0x1f6ff, 0x1f900...0x1faff, 0x20000...0x3fffd,
  ]

  // MARK: colours

  private static let (red, green, yellow, plain) = ("\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[39m")

  /// Words for what became of notifications, and their colours. A count of 0 has none.
  private static let fates = [
    "accepted": green, "delivered": green, "rejected": red, "discarded": yellow, "lost": red, "abandoned": yellow,
    "recovered": green, "failed": red, "passed": green,
  ]

  /// The line with colours for marks, and for counts of notifications with their fate.
  static func coloured(_ line: String) -> String {
    if line.hasPrefix("! ") { return "\(yellow)!\(plain)" + marked(line.dropFirst()) }
    return marked(line[...])
  }

  private static func marked(_ line: Substring) -> String {
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    var shown: [String] = []
    for (place, word) in words.enumerated() {
      // Marks stand alone.
      if word == "✓" {
        shown.append("\(green)✓\(plain)")
      } else if word == "✗" {
        shown.append("\(red)✗\(plain)")
      } else if place > 0, isCount(words[place - 1]), let colour = colour(of: word) {
        let count = shown.removeLast()
        shown.append("\(colour)\(count)")
        let end = word.lastIndex { $0.isLetter }.map(word.index(after:)) ?? word.endIndex
        shown.append("\(word[..<end])\(plain)\(word[end...])")
      } else {
        shown.append(String(word))
      }
    }
    return shown.joined(separator: " ")
  }

  private static func colour(of word: Substring) -> String? {
    fates[String(word.last.map { ",;:.".contains($0) } == true ? word.dropLast() : word)]
  }

  /// Whether it is a number in words for people that is not 0.
  private static func isCount(_ word: Substring) -> Bool {
    !word.isEmpty && word != "0" && word.allSatisfy { $0.isASCII && $0.isNumber || $0 == "," }
  }
}
