/// How JSON documents for people and programs are laid out.
package enum JSONLayout {
  /// Most numbers of a line.
  private static let numbersOfLine = 10

  /// A document on several lines, with the numbers of a list side by side.
  ///
  /// ```
  /// "counts" : [           "written" : [
  ///   [4, 17],               1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ///   [5, 2]                 11, 12
  /// ]                      ]
  /// ```
  ///
  /// A list of at most ten numbers is on one line, a longer one has ten per line: a changed number changes only its own
  /// line, however wide it is. Empty lists and objects are `[]` and `{}`. Everything else stays unchanged, with its
  /// line ends and indentation. Linear; the result for invalid JSON is invalid, too.
  package static func withNumbersInLine(_ text: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(text.count / 2)
    // Start of the bytes that are read but not copied yet.
    var start = 0
    var offset = 0
    while offset < text.count {
      switch text[offset] {
      case UInt8(ascii: "\""): offset = endOfString(text, offset)
      case UInt8(ascii: "{"):
        let end = endOfSpace(text, offset + 1)
        if end < text.count, text[end] == UInt8(ascii: "}") {
          output += text[start..<offset]
          output += "{}".utf8
          (start, offset) = (end + 1, end + 1)
        } else {
          offset = end
        }
      case UInt8(ascii: "["):
        let list = NumberList(text, offset)
        guard let end = list.end else {
          // The list is not scanned again, so that the whole stays linear.
          offset = list.stop
          continue
        }
        output += text[start..<offset]
        list.write(text, numbersOfLine, to: &output)
        (start, offset) = (end, end)
      default: offset += 1
      }
    }
    output += text[start...]
    return output
  }

  /// The offset after a string that begins at `offset`.
  private static func endOfString(_ text: [UInt8], _ offset: Int) -> Int {
    var offset = offset + 1
    while offset < text.count, text[offset] != UInt8(ascii: "\"") {
      offset += text[offset] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(offset + 1, text.count)
  }

  fileprivate static func endOfSpace(_ text: [UInt8], _ offset: Int) -> Int {
    var offset = offset
    while offset < text.count, [0x20, 0x0a, 0x0d, 0x09].contains(text[offset]) { offset += 1 }
    return offset
  }
}

/// A list that contains only numbers, as far as it was scanned.
private struct NumberList {
  var numbers: [Range<Int>] = []
  /// White space before the first number, which is as deep as all are, and before the bracket that ends the list.
  var indent = 0..<0
  var closing = 0..<0
  /// The offset after the list; `nil` if it contains something else, or does not end.
  var end: Int?
  /// The offset at which scanning stopped.
  var stop: Int

  /// - Parameter offset: of the opening bracket.
  init(_ text: [UInt8], _ offset: Int) {
    stop = JSONLayout.endOfSpace(text, offset + 1)
    indent = offset + 1..<stop
    closing = indent
    while stop < text.count {
      if text[stop] == UInt8(ascii: "]"), numbers.isEmpty {
        end = stop + 1
        return
      }
      let start = stop
      while stop < text.count, Self.isOfNumber(text[stop]) { stop += 1 }
      guard stop > start else { return }
      numbers.append(start..<stop)
      let space = stop
      stop = JSONLayout.endOfSpace(text, stop)
      guard stop < text.count else { return }
      switch text[stop] {
      case UInt8(ascii: "]"):
        closing = space..<stop
        end = stop + 1
        return
      case UInt8(ascii: ","): stop = JSONLayout.endOfSpace(text, stop + 1)
      default: return
      }
    }
  }

  private static func isOfNumber(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
      UInt8(ascii: "e"), UInt8(ascii: "E"):
      true
    default: false
    }
  }

  func write(_ text: [UInt8], _ most: Int, to output: inout [UInt8]) {
    let isLong = numbers.count > most
    output.append(UInt8(ascii: "["))
    for (index, number) in numbers.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      if isLong, index % most == 0 {
        output += text[indent]
      } else if index > 0 {
        output.append(UInt8(ascii: " "))
      }
      output += text[number]
    }
    if isLong { output += text[closing] }
    output.append(UInt8(ascii: "]"))
  }
}
