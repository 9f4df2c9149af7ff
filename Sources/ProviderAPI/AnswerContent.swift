import Bytes

/// What the JSON content of an answer, or the debug data of GOAWAY, says.
package struct AnswerContent: Sendable, Equatable {
  /// The reason of a rejection, or of the connection's end.
  package var reason: ProviderReason?
  /// Milliseconds since 1970 UTC.
  package var timestamp: Int?

  /// Reads content; `nil` if it is no JSON object.
  package init?(parsing content: RawSpan) {
    var object = JSONObject()
    guard content.byteCount > 0, object.read(content) else { return nil }
    reason = object.string("reason", content).map(ProviderReason.init(rawValue:))
    timestamp = object.integer("timestamp", content)
  }
}
