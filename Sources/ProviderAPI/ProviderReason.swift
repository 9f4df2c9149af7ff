/// The `reason` of a rejected request, of a GOAWAY, or of a channel request, as Apple names it. Undocumented reasons are
/// values, too.
public struct ProviderReason: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }

  /// When the same request may be sent again (Apple, "Handling notification responses from APNs").
  public enum Retry: Sendable, Hashable {
    /// Never: the token or the notification is at fault.
    case never
    /// After the cause, such as an expired provider token, is mended.
    case afterCorrection
    /// Later, at a lower rate.
    case later
    /// After 15 minutes, then backing off.
    case afterFifteenMinutes
  }

  private typealias Entry = (status: Int, retry: Retry)

  private static let documented: [String: Entry] = [
    "BadCollapseId": (400, .afterCorrection), "BadDeviceToken": (400, .never),
    "BadExpirationDate": (400, .afterCorrection), "BadMessageId": (400, .afterCorrection),
    "BadPriority": (400, .afterCorrection), "BadTopic": (400, .afterCorrection),
    "DeviceTokenNotForTopic": (400, .never), "DuplicateHeaders": (400, .afterCorrection),
    "IdleTimeout": (400, .afterCorrection), "InvalidPushType": (400, .afterCorrection),
    "MissingDeviceToken": (400, .afterCorrection), "MissingTopic": (400, .afterCorrection),
    "PayloadEmpty": (400, .afterCorrection), "TopicDisallowed": (400, .afterCorrection),
    "BadCertificate": (403, .afterCorrection), "BadCertificateEnvironment": (403, .afterCorrection),
    "BadEnvironmentKeyIdInToken": (403, .afterCorrection), "ExpiredProviderToken": (403, .afterCorrection),
    "Forbidden": (403, .never), "InvalidProviderToken": (403, .afterCorrection),
    "MissingProviderToken": (403, .afterCorrection), "UnrelatedKeyIdInToken": (403, .afterCorrection),
    "BadPath": (404, .afterCorrection), "MethodNotAllowed": (405, .afterCorrection),
    "ExpiredToken": (410, .never), "Unregistered": (410, .never), "PayloadTooLarge": (413, .never),
    "TooManyProviderTokenUpdates": (429, .afterCorrection), "TooManyRequests": (429, .later),
    "InternalServerError": (500, .afterFifteenMinutes), "ServiceUnavailable": (503, .afterFifteenMinutes),
    "Shutdown": (503, .afterFifteenMinutes),
    // Broadcasts and channels.
    "BadChannelId": (400, .afterCorrection), "BadRequestParams": (400, .afterCorrection),
    "BadRequestPayload": (400, .afterCorrection), "CannotCreateChannelConfig": (400, .afterCorrection),
    "ChannelNotRegistered": (400, .afterCorrection), "FeatureNotEnabled": (400, .afterCorrection),
    "MissingChannelId": (400, .afterCorrection), "MissingPushType": (400, .afterCorrection),
    "TopicMismatch": (403, .afterCorrection),
  ]

  /// Whether Apple documents the reason.
  public var isDocumented: Bool { Self.documented[rawValue] != nil }

  /// The status that Apple documents with the reason; `nil` for undocumented ones.
  public var documentedStatus: Int? { Self.documented[rawValue]?.status }

  /// When the same request may be sent again; `nil` for undocumented reasons.
  public var retry: Retry? { Self.documented[rawValue]?.retry }

  /// The name.
  public var description: String { rawValue }
}
