import TLSTransport

/// The service that simulated devices connect to, and the rules of delivery to them.
public struct DeviceChannel: Sendable {
  /// The address to listen on.
  public var address: SimulatorOptions.Address
  /// `nil`: plain TCP.
  public var tls: TLSContext?
  /// When a notification is delivered to a device that is connected.
  public var delivery = DeliveryRules()
  /// Tokens that are registered, those that are no longer valid included. Further ones are refused.
  public var maximumTokens = 2_000_000
  /// Apps that a device may say it is online with.
  public var maximumAppsOfDevice = 100
  /// The longest message of a device in bytes.
  public var maximumMessageLength = 64 << 10
  /// Notifications of an app that were sent and not acknowledged; further ones wait.
  public var maximumUnacknowledged = 100
  /// Notifications that wait or are not acknowledged, of all devices together; above, the one that has waited longest is
  /// dropped.
  public var maximumNotifications: Int
  /// Bytes of their payloads, tokens and collapse identifiers; above, the one that has waited longest is dropped.
  public var maximumBytes: Int
  /// How long a notification waits at most, whatever its expiration; then it expires.
  public var maximumAge: Duration
  /// A file that keeps tokens, and what waits or is not acknowledged; `nil`: memory alone does.
  public var file: String?

  /// The service at an address, with the default rules.
  ///
  /// - Parameter limits: whose limits hold here, too; its `onlineAfter` has no meaning here.
  public init(address: SimulatorOptions.Address, limits: OfflineStore.Options = OfflineStore.Options()) {
    self.address = address
    maximumNotifications = limits.maximumNotifications
    maximumBytes = limits.maximumBytes
    maximumAge = .milliseconds(limits.maximumAge)
  }
}

/// When a notification is delivered to a device that is connected.
///
/// Apple has numbers for none of these rules. All are options, and what they hold back waits as for a device that is away.
public struct DeliveryRules: Sendable, Equatable {
  /// Background notifications that an app gets on a day (UTC); `nil`: any number. Apple advises providers not to send more
  /// than two or three an hour.
  public var backgroundBudget: Int?
  /// Notifications of priority 5 are delivered at the next multiple of this time since 1970, or with one of priority 10;
  /// zero: at once.
  public var window = Duration.zero

  /// No budget and no window.
  public init() {}
}
