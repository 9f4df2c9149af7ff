/// A format of a strings table: text with placeholders `%@` and `%n$@`, and `%%` for a percent sign.
struct LocalizedFormat {
  enum Piece: Equatable {
    case text(String)
    /// The next argument in turn.
    case next
    /// The argument of this number, from 1, and the digits that it is written with.
    case argument(Int, digits: String)
  }

  let pieces: [Piece]
  /// The most pieces that are kept; further ones are dropped.
  private static let maximumPieces = 1 << 16
  /// Pieces were dropped.
  private let isCut: Bool
  /// UTF-8 bytes of a text; a device shows far fewer.
  static let longestText = 1 << 16

  /// Parses the format from left to right; a percent sign that begins no placeholder is literal.
  init(_ format: String) {
    var pieces: [Piece] = []
    var plain = String.UnicodeScalarView()
    var rest = format.unicodeScalars[...]
    func end() {
      if !plain.isEmpty { pieces.append(.text(String(plain))) }
      plain = String.UnicodeScalarView()
    }
    while pieces.count < Self.maximumPieces, let scalar = rest.popFirst() {
      guard scalar == "%" else {
        plain.append(scalar)
        continue
      }
      if rest.first == "%" {
        rest.removeFirst()
        plain.append("%")
      } else if rest.first == "@" {
        rest.removeFirst()
        end()
        pieces.append(.next)
      } else if let (number, digits) = Self.position(rest) {
        rest.removeFirst(digits.unicodeScalars.count + 2)
        end()
        pieces.append(.argument(number, digits: digits))
      } else {
        plain.append("%")
      }
    }
    end()
    isCut = !rest.isEmpty
    self.pieces = pieces
  }

  /// The number in `n$@`, and its digits.
  private static func position(_ rest: Substring.UnicodeScalarView) -> (number: Int, digits: String)? {
    let digits = rest.prefix { ("0"..."9").contains($0) }
    // Limited, because no array has as many arguments as the largest number.
    let number = digits.reduce(0) { min($0 * 10 + Int($1.value & 15), 1_000_000) }
    guard number > 0, rest.dropFirst(digits.count).starts(with: "$@".unicodeScalars) else { return nil }
    return (number, String(digits))
  }

  /// The first placeholder that a push does not fill, though `printf` or `String(format:)` would: `%s`, `%d`, `%1$s`,
  /// `%.2f`; or, if the format mixes placeholders with and without a position, these.
  static func unfilledPlaceholder(of format: String) -> String? {
    let scalars = Array(format.unicodeScalars)
    var (index, hasNext, position) = (0, false, String?.none)
    while index < scalars.count {
      guard scalars[index] == "%" else {
        index += 1
        continue
      }
      var end = index + 1
      if end < scalars.count, scalars[end] == "%" {
        index += 2
        continue
      }
      // A blank is a flag, too, but "5 % discount" is text.
      while end < scalars.count, "0123456789$.+-#'*hlqLzjt".unicodeScalars.contains(scalars[end]) { end += 1 }
      guard end < scalars.count, "@diouxXeEfFgGaAcCsSp".unicodeScalars.contains(scalars[end]) else {
        index += 1
        continue
      }
      let placeholder = String(String.UnicodeScalarView(scalars[index...end]))
      if scalars[end] == "@" {
        if end == index + 1 { hasNext = true } else { position = position ?? placeholder }
      } else {
        return placeholder
      }
      index = end + 1
    }
    return hasNext ? position.map { "%@ and \($0)" } : nil
  }

  /// The beginning of a text, in whole code points.
  static func shortened(_ text: String) -> (text: String, isCut: Bool) {
    guard text.utf8.count > longestText else { return (text, false) }
    var end = text.utf8.index(text.startIndex, offsetBy: longestText)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return (String(text.unicodeScalars[..<end]), true)
  }

  /// The number of arguments needed: the highest position, or the number of placeholders without one.
  var argumentsNeeded: Int {
    var (highest, inTurn) = (0, 0)
    for piece in pieces {
      switch piece {
      case .text: break
      case .next: inTurn += 1
      case .argument(let number, _): highest = max(highest, number)
      }
    }
    return max(highest, inTurn)
  }

  /// The text with its arguments; a placeholder without one stays. Inserted text is not read again.
  ///
  /// A text longer than `longestText` is cut, and `isCut` is `true`: a format of some megabytes can repeat an argument
  /// until memory ends.
  func filled(with arguments: [String]) -> (text: String, isComplete: Bool, isCut: Bool) {
    var text = ""
    var isComplete = true
    var turn = 0
    for piece in pieces {
      if text.utf8.count > Self.longestText { break }
      let (number, placeholder): (Int, String)
      switch piece {
      case .text(let plain):
        text += plain
        continue
      case .next:
        turn += 1
        (number, placeholder) = (turn, "%@")
      case .argument(let position, let digits): (number, placeholder) = (position, "%\(digits)$@")
      }
      if number <= arguments.count {
        text += arguments[number - 1]
      } else {
        isComplete = false
        text += placeholder
      }
    }
    let (short, isShortened) = Self.shortened(text)
    return (short, isComplete, isCut || isShortened)
  }
}
