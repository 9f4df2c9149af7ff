/// The value of `apns-push-type`. Undocumented types are values, too.
public struct PushType: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }

  private static let suffixes: [String: String] = [
    "alert": "", "background": "", "location": ".location-query", "voip": ".voip", "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider", "mdm": "", "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt", "widgets": ".push-type.widgets", "controls": ".push-type.controls",
  ]

  /// Whether Apple documents the type. Broadcasts write "Liveactivity", so letters of either case are taken.
  public var isDocumented: Bool { Self.suffixes[rawValue.lowercased()] != nil }

  /// The end that the topic of such a push has after the bundle identifier; empty for those without, `nil` for
  /// undocumented types.
  public var topicSuffix: String? { Self.suffixes[rawValue.lowercased()] }

  /// The type that a topic's end belongs to; `nil` for a topic that is a bundle identifier alone.
  public static func type(ofTopic topic: String) -> PushType? {
    let matches = suffixes.filter { !$0.value.isEmpty && topic.hasSuffix($0.value) }
    return matches.max { $0.value.count < $1.value.count }.map { PushType(rawValue: $0.key) }
  }

  /// The longest payload in bytes of the type: 5,120 for `voip`, else 4,096.
  public var longestPayload: Int { rawValue.lowercased() == "voip" ? 5_120 : 4_096 }

  /// The name.
  public var description: String { rawValue }
}
