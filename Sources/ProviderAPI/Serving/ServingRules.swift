import PushModel

/// What a service does where Apple documents no rule: each is a choice with a default.
public struct ServingRules: Sendable, Equatable {
  /// A request without `apns-push-type`; `nil`: it is accepted. Apple requires the field for watchOS 6 and recommends it.
  public var missingPushType: ProviderReason?
  /// A push type that Apple does not document; `nil`: it is accepted.
  public var unknownPushType: ProviderReason? = .invalidPushType
  /// A topic without the end that its push type has, or with that of another type; `nil`: it is accepted.
  public var topicSuffix: ProviderReason? = .deviceTokenNotForTopic
  /// A background notification with priority 10; `nil`: it is accepted. Apple: "always use priority 5".
  public var backgroundPriority: ProviderReason? = .badPriority
  /// The lengths of device tokens in bytes. Apple: make no assumption.
  public var tokenLengths = 1...100
  /// Whether `apns-id` may have letters of upper case. Apple shows those of lower case.
  public var allowsUpperCaseID = true
  /// Whether a provider token's `iat` may be a string with a number, as a client writes it.
  public var allowsTextTime = true
  /// How far in seconds a provider token may be issued in the future, by the service's clock.
  public var clockSkew = 60
  /// Whether a connection that uses another provider token less than 20 minutes after its latest one is told so. Apple
  /// documents the time, and not of what it is.
  public var checksRenewal = true
  /// Whether of the notifications for an offline device the latest of each `apns-collapse-id` waits, beside the latest
  /// without one; otherwise the latest of all.
  public var keepsCollapseIDs = true
  /// A notification to a topic that the provider token's key is not for.
  public var keyTopic = ProviderReason.topicDisallowed
  /// A provider token whose key is for the other environment.
  public var keyEnvironment = ProviderReason.badEnvironmentKeyID
  /// Whether answers that reject have `content-type: application/json`, as in Apple's sample.
  public var sendsContentType = true

  /// The oldest provider token that is accepted, in seconds (Apple, "Establishing a token-based connection").
  package static let longestTokenAge = 3_600
  /// The shortest time between two provider tokens, in seconds (as above).
  package static let shortestRenewal = 1_200
  /// The longest payload of a broadcast in bytes.
  package static let longestBroadcast = 5_120
  /// The longest time that a channel keeps its newest message, in ms (Apple, "Sending channel management requests").
  package static let longestStorage: Int64 = 8 * 3_600_000
  /// The longest `apns-collapse-id` in bytes.
  package static let longestCollapseID = 64

  public init() {}
}

/// A choice of `ServingRules` by its name.
package struct ServingRule: Sendable {
  package var name: String
  /// The values that it takes, of which the first is the default.
  package var values: [String]
  /// What it is about, as the end of a sentence.
  package var summary: String
  private var set: @Sendable (inout ServingRules, String) -> Bool

  private init(
    _ name: String, _ values: [String], _ summary: String,
    _ set: @escaping @Sendable (inout ServingRules, String) -> Bool
  ) {
    (self.name, self.values, self.summary, self.set) = (name, values, summary, set)
  }

  private static func reason(
    _ name: String, _ values: [String], _ summary: String,
    _ path: WritableKeyPath<ServingRules, ProviderReason?> & Sendable
  ) -> ServingRule {
    ServingRule(name, values, summary) { rules, value in
      let reason = ProviderReason(rawValue: value)
      guard value == "accept" || reason.documentedStatus != nil else { return false }
      rules[keyPath: path] = value == "accept" ? nil : reason
      return true
    }
  }

  private static func rejection(
    _ name: String, _ values: [String], _ summary: String,
    _ path: WritableKeyPath<ServingRules, ProviderReason> & Sendable
  ) -> ServingRule {
    ServingRule(name, values, summary) { rules, value in
      let reason = ProviderReason(rawValue: value)
      guard reason.documentedStatus != nil else { return false }
      rules[keyPath: path] = reason
      return true
    }
  }

  private static func flag(
    _ name: String, _ values: [String], _ summary: String, _ path: WritableKeyPath<ServingRules, Bool> & Sendable
  ) -> ServingRule {
    // The first value is the default.
    let first = ServingRules()[keyPath: path]
    return ServingRule(name, values, summary) { rules, value in
      guard let place = values.firstIndex(of: value) else { return false }
      rules[keyPath: path] = place == 0 ? first : !first
      return true
    }
  }

  /// All of them.
  package static let all: [ServingRule] = [
    reason("missing-push-type", ["accept", "REASON"], "no apns-push-type", \.missingPushType),
    reason(
      "unknown-push-type", ["InvalidPushType", "accept", "REASON"], "an undocumented push type", \.unknownPushType),
    reason(
      "topic-suffix", ["DeviceTokenNotForTopic", "accept", "REASON"], "a topic without its type's suffix", \.topicSuffix
    ),
    reason(
      "background-priority", ["BadPriority", "accept", "REASON"], "push type background with priority 10",
      \.backgroundPriority),
    ServingRule("token-bytes", ["1..100"], "lengths of device tokens; others: BadDeviceToken") { rules, value in
      let ends = value.split(separator: ".", omittingEmptySubsequences: true).compactMap { Int($0) }
      guard let low = ends.first, let high = ends.last, ends.count <= 2, 1...1_024 ~= low, low...1_024 ~= high else {
        return false
      }
      rules.tokenLengths = low...high
      return true
    },
    flag("apns-id-case", ["any", "lower"], "letters of apns-id; others: BadMessageId", \.allowsUpperCaseID),
    flag("text-iat", ["accept", "InvalidProviderToken"], "an iat that is a string", \.allowsTextTime),
    ServingRule("clock-skew", ["60"], "seconds by which iat may be ahead; further: ExpiredProviderToken") {
      guard let seconds = Int($1), 0...86_400 ~= seconds else { return false }
      $0.clockSkew = seconds
      return true
    },
    flag("renewal", ["connection", "off"], "where 20 minutes between provider tokens are asked for", \.checksRenewal),
    flag(
      "offline-latest", ["collapse-id", "topic"], "of which the latest waits for an offline device", \.keepsCollapseIDs),
    rejection(
      "key-topic", ["TopicDisallowed", "REASON"], "a topic that the provider token's key is not for", \.keyTopic),
    rejection(
      "key-environment", ["BadEnvironmentKeyIdInToken", "REASON"], "a key of the other environment", \.keyEnvironment),
    flag("content-type", ["json", "none"], "the content-type of answers that reject", \.sendsContentType),
  ]

  /// Applies `name=value`; `false` for an unknown name, or a value that it does not take.
  package static func apply(_ name: String, _ value: String, to rules: inout ServingRules) -> Bool {
    all.first { $0.name == name }?.set(&rules, value) ?? false
  }
}

extension ProviderReason {
  package static let badChannelID = ProviderReason(rawValue: "BadChannelId")
  package static let badCollapseID = ProviderReason(rawValue: "BadCollapseId")
  package static let badDeviceToken = ProviderReason(rawValue: "BadDeviceToken")
  package static let badEnvironmentKeyID = ProviderReason(rawValue: "BadEnvironmentKeyIdInToken")
  package static let badExpirationDate = ProviderReason(rawValue: "BadExpirationDate")
  package static let badMessageID = ProviderReason(rawValue: "BadMessageId")
  package static let badPath = ProviderReason(rawValue: "BadPath")
  package static let badPriority = ProviderReason(rawValue: "BadPriority")
  package static let badRequestPayload = ProviderReason(rawValue: "BadRequestPayload")
  package static let badTopic = ProviderReason(rawValue: "BadTopic")
  package static let cannotCreateChannelConfig = ProviderReason(rawValue: "CannotCreateChannelConfig")
  package static let channelNotRegistered = ProviderReason(rawValue: "ChannelNotRegistered")
  package static let deviceTokenNotForTopic = ProviderReason(rawValue: "DeviceTokenNotForTopic")
  package static let duplicateHeaders = ProviderReason(rawValue: "DuplicateHeaders")
  package static let expiredProviderToken = ProviderReason(rawValue: "ExpiredProviderToken")
  package static let featureNotEnabled = ProviderReason(rawValue: "FeatureNotEnabled")
  package static let idleTimeout = ProviderReason(rawValue: "IdleTimeout")
  package static let invalidProviderToken = ProviderReason(rawValue: "InvalidProviderToken")
  package static let invalidPushType = ProviderReason(rawValue: "InvalidPushType")
  package static let methodNotAllowed = ProviderReason(rawValue: "MethodNotAllowed")
  package static let missingChannelID = ProviderReason(rawValue: "MissingChannelId")
  package static let missingDeviceToken = ProviderReason(rawValue: "MissingDeviceToken")
  package static let missingProviderToken = ProviderReason(rawValue: "MissingProviderToken")
  package static let missingPushType = ProviderReason(rawValue: "MissingPushType")
  package static let missingTopic = ProviderReason(rawValue: "MissingTopic")
  package static let payloadEmpty = ProviderReason(rawValue: "PayloadEmpty")
  package static let payloadTooLarge = ProviderReason(rawValue: "PayloadTooLarge")
  package static let serviceUnavailable = ProviderReason(rawValue: "ServiceUnavailable")
  package static let shutdown = ProviderReason(rawValue: "Shutdown")
  package static let tooManyProviderTokenUpdates = ProviderReason(rawValue: "TooManyProviderTokenUpdates")
  package static let topicMismatch = ProviderReason(rawValue: "TopicMismatch")
  package static let topicDisallowed = ProviderReason(rawValue: "TopicDisallowed")
  package static let unregistered = ProviderReason(rawValue: "Unregistered")
  package static let unrelatedKeyID = ProviderReason(rawValue: "UnrelatedKeyIdInToken")
}
