import FoundationEssentials

extension Encodable {
  /// This as the JSON document that commands write: keys in snake case and in order, without a line end behind it.
  func jsonDocument() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}
