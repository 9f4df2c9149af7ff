extension ByteWriter {
  /// Writes text as a JSON string, in quotes.
  ///
  /// Control characters of any kind become `\u009b` and the like (`ControlCharacters`), so that a line shows in a terminal
  /// as the bytes that it has.
  ///
  /// - Parameter onlyRequired: escape no more than JSON requires. DEL, the second set of control characters and marks of
  ///   direction then stay as they are.
  package mutating func write(jsonString text: String, onlyRequired: Bool = false) {
    let bytes = Array(text.utf8)
    var start = 0
    write(UInt8(ascii: "\""))
    for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      write(escapingJSON: bytes.rawBytes.extracting(start..<offset), onlyRequired)
      write(UInt8(ascii: "\\"))
      // The character follows the backslash unchanged.
      start = offset
    }
    write(escapingJSON: bytes.rawBytes.extracting(start..<bytes.count), onlyRequired)
    write(UInt8(ascii: "\""))
  }

  private mutating func write(escapingJSON part: RawSpan, _ onlyRequired: Bool) {
    guard onlyRequired else { return write(escapingControlsOf: part) }
    for offset in 0..<part.byteCount {
      let byte = part.byte(at: offset)
      if byte < 0x20 {
        write("\\u00")
        write(hex: part.extracting(offset..<offset + 1))
      } else {
        write(byte)
      }
    }
  }
}
