import Bytes

/// A message of the device channel, version 1: the simulator's own protocol between its gateway and simulated devices.
///
/// `Documentation/device-channel.md` has the fields. A receiver ignores fields that it does not know.
public enum DeviceMessage: Sendable, Equatable {
  /// The version that a device asks for in its first message.
  public static let version = 1
  /// The highest sequence that a device can say to have, 2^53: readers of JSON may round numbers above it.
  public static let highestReceived = 1 << 53

  /// From a device: asks for a token.
  case register(Registration)
  /// From the gateway: the token of a registration.
  case registered(Registered)
  /// From a device: it is reachable by these tokens from now on. Once more when its state changes.
  case online(Online)
  /// From the gateway: a notification.
  case deliver(Delivery)
  /// From a device: it has all notifications of a token up to this sequence.
  case acknowledge(token: [UInt8], topic: String, sequence: UInt64)
  /// From the gateway: a token of the device is no longer valid.
  case tokenChanged(TokenChange)
  /// From either: the sender closes the connection.
  case offline(reason: String?)
  /// From the gateway: it does not do what the device has asked for.
  case refused(reason: Refusal, topic: String?)

  /// A device's request for the token of an app.
  public struct Registration: Sendable, Equatable {
    /// Tokens are of one of these.
    public enum Environment: String, Sendable, CaseIterable { case production, development }

    public var version: Int
    /// The number of the device in its population, from 0.
    public var device: UInt64
    /// The app's topic.
    public var topic: String
    public var environment: Environment
    /// The language of the user as a BCP 47 tag; empty: unknown.
    public var language: String
    /// How often the device was restored: each restored device has another token.
    public var generation: UInt64

    public init(
      version: Int = DeviceMessage.version, device: UInt64, topic: String, environment: Environment = .production,
      language: String = "", generation: UInt64 = 0
    ) {
      (self.version, self.device, self.topic) = (version, device, topic)
      (self.environment, self.language, self.generation) = (environment, language, generation)
    }
  }

  /// The token of a registration.
  public struct Registered: Sendable, Equatable {
    public var device: UInt64
    public var topic: String
    public var token: [UInt8]

    public init(device: UInt64, topic: String, token: [UInt8]) {
      (self.device, self.topic, self.token) = (device, topic, token)
    }
  }

  /// A device that is reachable.
  public struct Online: Sendable, Equatable {
    /// An app that is installed.
    public struct App: Sendable, Equatable {
      public var token: [UInt8]
      public var topic: String
      /// The sequence of the last notification that the device has; 0: it has none.
      public var received: UInt64

      public init(token: [UInt8], topic: String, received: UInt64 = 0) {
        (self.token, self.topic, self.received) = (token, topic, received)
      }
    }

    public var version: Int
    public var apps: [App]
    /// The device saves power: background notifications wait.
    public var hasLowPower: Bool

    public init(version: Int = DeviceMessage.version, apps: [App], hasLowPower: Bool = false) {
      (self.version, self.apps, self.hasLowPower) = (version, apps, hasLowPower)
    }
  }

  /// A notification for a device.
  public struct Delivery: Sendable, Equatable {
    public var token: [UInt8]
    public var topic: String
    /// Its number among those that were delivered to the token, from 1. The same one is never given twice.
    public var sequence: UInt64
    /// Bytes, usually JSON.
    public var payload: [UInt8]
    /// 10, 5 or 1.
    public var priority: UInt8
    /// The push type, such as `alert`; `nil`: none was sent.
    public var pushType: String?
    /// UNIX seconds until which the provider wants it delivered; `nil`: it has not said.
    public var expiration: UInt32?
    public var collapseID: String?
    /// UNIX nanoseconds at which the gateway read it from the provider.
    public var sent: Int64
    /// Whether it waited at the gateway: the device was away, or did not take it at once.
    public var isStored: Bool
    /// Whether it was delivered on an earlier connection, which ended before it was acknowledged.
    public var isRepeated: Bool

    public init(
      token: [UInt8], topic: String, sequence: UInt64, payload: [UInt8], priority: UInt8 = 10, pushType: String? = nil,
      expiration: UInt32? = nil, collapseID: String? = nil, sent: Int64, isStored: Bool = false,
      isRepeated: Bool = false
    ) {
      (self.token, self.topic, self.sequence, self.payload) = (token, topic, sequence, payload)
      (self.priority, self.pushType, self.expiration, self.collapseID) = (priority, pushType, expiration, collapseID)
      (self.sent, self.isStored, self.isRepeated) = (sent, isStored, isRepeated)
    }
  }

  /// A token that is replaced by another one.
  public struct TokenChange: Sendable, Equatable {
    public var topic: String
    public var old: [UInt8]
    public var new: [UInt8]

    public init(topic: String, old: [UInt8], new: [UInt8]) { (self.topic, self.old, self.new) = (topic, old, new) }
  }

  /// Why the gateway does not do what a device has asked for.
  public enum Refusal: String, Sendable, CaseIterable {
    /// It does not speak the version.
    case version
    /// It has as many devices, or apps of a device, as its limit says.
    case tooMany = "too_many"
    /// The token is none of its own.
    case unknownToken = "unknown_token"
    /// The gateway has tokens of the other environment.
    case environment
    /// A later generation of the device has registered.
    case oldGeneration = "old_generation"
    /// The message cannot be read, or has no meaning where it came.
    case message
    /// The device is connected elsewhere since.
    case replaced
    /// Notifications cannot be kept.
    case storage
  }
}

/// Why a JSON object is no message of the device channel or of local push.
public enum MessageError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The text is no JSON object; the offset in bytes of its fault.
  case json(offset: Int)
  /// A member is missing, or has a value of another kind.
  case member(String)
  /// There is no such message.
  case unknown(String)

  public var description: String {
    switch self {
    case .json(let offset): "no JSON object: byte \(offset) does not belong to one"
    case .member(let name): "the member '\(name)' is missing, or its value is none that it can have"
    case .unknown(let name): "there is no message '\(name)'"
    }
  }
}
