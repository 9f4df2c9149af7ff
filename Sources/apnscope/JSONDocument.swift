import Bytes
import FoundationEssentials

extension Encodable {
  /// This as the JSON document that commands write: keys in snake case and in order, the numbers of a list side by side,
  /// control characters as `\u009b`, without a line end behind it.
  func jsonDocument() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let bytes = JSONLayout.withNumbersInLine([UInt8](try encoder.encode(self)))
    let text = String(decoding: bytes, as: UTF8.self)
    return text.utf8.contains { $0 >= 0x7f } ? ControlCharacters.escaped(text, keepsLines: true) : text
  }
}
