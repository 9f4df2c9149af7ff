import Bytes
import FoundationEssentials

extension Encodable {
  /// This as the JSON document that commands write: keys in snake case and in order, control characters as `\u009b`,
  /// without a line end behind it.
  func jsonDocument() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let text = String(decoding: try encoder.encode(self), as: UTF8.self)
    return text.utf8.contains { $0 >= 0x7f } ? ControlCharacters.escaped(text, keepsLines: true) : text
  }
}
