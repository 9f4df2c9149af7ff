import Bytes

/// How a channel of broadcasts is set up: the content of the request that creates it, and of the answer that describes it.
package struct ChannelSettings: Sendable, Equatable {
  /// Whether the channel keeps its newest message for devices that come later.
  package var keepsMessage: Bool

  package init(keepsMessage: Bool) { self.keepsMessage = keepsMessage }

  /// Reads the content of a request.
  ///
  /// - Throws: the reason of its rejection: no JSON object, no policy 0 or 1, or another push type than LiveActivity.
  package init(parsing content: RawSpan) throws(RejectedSettings) {
    var object = JSONObject()
    guard content.byteCount > 0, object.read(content) else { throw RejectedSettings(reason: .badRequestPayload) }
    guard let policy = object.integer("message-storage-policy", content), 0...1 ~= policy else {
      throw RejectedSettings(reason: .badRequestPayload)
    }
    guard let type = object.string("push-type", content) else { throw RejectedSettings(reason: .missingPushType) }
    guard type.lowercased() == "liveactivity" else { throw RejectedSettings(reason: .invalidPushType) }
    keepsMessage = policy == 1
  }

  package struct RejectedSettings: Error, Equatable {
    package var reason: ProviderReason
  }

  /// As JSON.
  package var text: String { #"{"message-storage-policy":\#(keepsMessage ? 1 : 0),"push-type":"LiveActivity"}"# }
}
