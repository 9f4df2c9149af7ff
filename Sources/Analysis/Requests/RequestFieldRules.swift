import Bytes
import Measurement
import Payload
import ProviderAPI
import Records

/// Checks of a notification's fields against Apple's rules, each by itself or with the payload: only where every field that
/// the rule is about is certain.
struct RequestFieldRules {
  /// The kind of a push type, and whether the topic fits it.
  private struct Words {
    var type: Kind
    /// The topic has the suffix of its push type, as far as that is known.
    var isSuffixRight: Bool
  }

  private enum Kind { case alert, background, other }

  private static let longestCollapseID = 64
  private static let maximumKept = 1_024
  /// Suffixes that a bundle identifier is likely to have by itself.
  private static let words: Set<String> = ["voip", "complication"]

  /// By a digest of push type and topic: a provider has few.
  private var kept: [UInt64: Words] = [:]

  /// - Parameter verdict: what its payload is; `nil` if that is not known.
  mutating func findings(_ record: borrowing ProviderNotificationRecord, _ verdict: PayloadVerdict?) -> [FindingKind] {
    let request = record.request
    guard request.started != nil, request.target.isNotification else { return [] }
    var found: [FindingKind] = []
    if request.collapseID.length > Self.longestCollapseID { found.append(.collapseIDTooLong) }
    guard !request.uncertain.contains(.pushType) else { return found }
    guard request.pushType.isPresent else { return found + [.pushTypeMissing] }
    let words = words(record)
    if !words.isSuffixRight { found.append(.topicSuffix) }
    if words.type == .background, !request.uncertain.contains(.priority),
      request.priority == 10 || request.priority == nil && !hasOther("apns-priority", record)
    {
      found.append(.backgroundPriority)
    }
    if let verdict, verdict.kind != .invalid, request.isPayloadWhole {
      let isSilent = verdict.effects.isSilent
      if words.type == .background ? !isSilent : words.type == .alert && isSilent { found.append(.pushTypeMismatch) }
    }
    return found
  }

  /// Whether a field is there whose value is none.
  private func hasOther(_ name: StaticString, _ record: borrowing ProviderNotificationRecord) -> Bool {
    if record.request.uncertain.contains(.headers) { return true }
    for header in record.request.headers where record.bytes(of: header.name).holds(name) { return true }
    return false
  }

  private mutating func words(_ record: borrowing ProviderNotificationRecord) -> Words {
    let request = record.request
    let type = record.bytes(of: request.pushType)
    let topic = record.bytes(of: request.topic)
    let hasTopic = request.topic.isPresent && !request.uncertain.contains(.topic) && request.target == .device
    let digest = ContentDigest(topic, seed: ContentDigest(type, seed: hasTopic ? 1 : 3).value).value
    if let known = kept[digest] { return known }
    let words = Self.words(
      type: PushType(rawValue: record.text(of: request.pushType) ?? ""),
      topic: hasTopic ? record.text(of: request.topic) : nil)
    if kept.count < Self.maximumKept { kept[digest] = words }
    return words
  }

  private static func words(type: PushType, topic: String?) -> Words {
    let kind: Kind =
      switch type.rawValue.lowercased() {
      case "alert": .alert
      case "background": .background
      default: .other
      }
    guard let topic, let suffix = type.topicSuffix else { return Words(type: kind, isSuffixRight: true) }
    if !suffix.isEmpty { return Words(type: kind, isSuffixRight: topic.hasSuffix(suffix)) }
    // Of a type without one, a topic may end like a suffix by chance.
    let other = PushType.type(ofTopic: topic)?.rawValue
    return Words(type: kind, isSuffixRight: other.map(Self.words.contains) ?? true)
  }
}
