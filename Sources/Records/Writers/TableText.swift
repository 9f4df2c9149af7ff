import Bytes

/// Bytes from the wire in a table for people, without control characters, which could control a terminal.
package enum TableText {
  fileprivate static let previewLength = 72

  package static func preview(_ payload: RawSpan) -> String {
    let text = String(
      decoding: Array(copying: payload.extracting(0..<min(payload.byteCount, 4 * previewLength))), as: UTF8.self)
    let shown = printable(text)
    return shown.count > previewLength ? shown.prefix(previewLength) + "…" : shown
  }

  /// The text with a dot for each character that could steer a terminal: control characters of both sets and direction
  /// marks.
  package static func printable(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: "."
          default: scalar
          }
        }))
  }
}

extension ByteWriter {
  /// The first bytes and the length.
  package mutating func write(short bytes: RawSpan) {
    if bytes.byteCount == 0 { return write("(empty)") }
    write(hex: bytes.extracting(0..<min(8, bytes.byteCount)))
    guard bytes.byteCount > 8 else { return }
    write("… (")
    write(decimal: bytes.byteCount)
    write(" B)")
  }

  /// The beginning of a payload.
  package mutating func write(preview payload: RawSpan) {
    let shown = payload.extracting(0..<min(payload.byteCount, TableText.previewLength))
    for offset in 0..<shown.byteCount where !(0x20..<0x7f).contains(shown.byte(at: offset)) {
      return write(text: TableText.preview(payload))
    }
    write(shown)
    if payload.byteCount > TableText.previewLength { write("…") }
  }
}
