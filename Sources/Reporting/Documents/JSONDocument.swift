import Bytes
import FoundationEssentials

extension Encodable {
  /// The value as a JSON document: sorted keys in snake case, the numbers of a list side by side, control characters as
  /// `\u009b`, without a trailing line end.
  package func jsonDocument() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let bytes = JSONLayout.withNumbersInLine([UInt8](try encoder.encode(self)))
    let text = String(decoding: bytes, as: UTF8.self)
    return text.utf8.contains { $0 >= 0x7f } ? ControlCharacters.escaped(text, keepsLines: true) : text
  }
}
