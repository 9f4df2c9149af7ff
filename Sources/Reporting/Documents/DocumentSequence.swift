/// Concatenated JSON objects, such as the results of several runs in one pipe.
package struct DocumentSequence {
  /// The range of each document; a truncated one ends where the next begins, or at the input's end.
  package private(set) var documents: [Range<Int>] = []
  /// Bytes between the documents, other than white space.
  package private(set) var strayBytes = 0

  package init(_ bytes: [UInt8]) {
    var (start, depth) = (0, 0)
    var (isString, isEscaped) = (false, false)
    for (index, byte) in bytes.enumerated() {
      // Documents begin a line, and no line within them begins with a brace: an open document is truncated.
      if byte == UInt8(ascii: "{"), depth > 0, index > 0, bytes[index - 1] == UInt8(ascii: "\n") {
        documents.append(start..<index)
        (depth, isString, isEscaped) = (0, false, false)
      }
      if isString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "{"):
        if depth == 0 { start = index }
        depth += 1
      case UInt8(ascii: "}") where depth > 0:
        depth -= 1
        if depth == 0 { documents.append(start..<index + 1) }
      case UInt8(ascii: "\"") where depth > 0: isString = true
      case 0x09, 0x0A, 0x0D, 0x20: break
      default: if depth == 0 { strayBytes += 1 }
      }
    }
    if depth > 0 { documents.append(start..<bytes.count) }
  }
}
