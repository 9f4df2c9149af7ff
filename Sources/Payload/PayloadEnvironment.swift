/// Facts about a sending besides its payload. `nil` means unknown: rules that need the fact are not run.
public struct PayloadEnvironment: Sendable {
  /// The year of sending, 2009 to 2021. It decides about the limit of 256, 2,048 or 4,096 bytes and about the known
  /// keys.
  public var era: Int?
  /// The kind of the topic.
  public var topic: PayloadTopic
  /// The fields of the frame. Without them (a payload file) frame, silent and priority rules are not run.
  public var frame: PushFrame?
  /// The longest payload of the protocol in bytes; `nil`: that of the binary protocol in the year.
  public var longestPayload: Int?
  /// `Localizable.strings` of one language, by key, for the rules about keys and their arguments.
  public var strings: [String: String]?

  /// Makes an environment, of which nothing is known by default.
  public init(
    era: Int? = nil, topic: PayloadTopic = .unknown, frame: PushFrame? = nil, strings: [String: String]? = nil
  ) {
    self.era = era
    self.topic = topic
    self.frame = frame
    self.strings = strings
  }
}

/// The kind of a push's topic, as far as rules depend on it; a connection has one topic.
public enum PayloadTopic: Sendable, Hashable {
  /// No topic is known.
  case unknown
  /// A topic of no other kind.
  case app
  /// The app is known to be a Newsstand app, which payloads do not show from 2013 on.
  case newsstand
  /// `….voip`: the app gets the payload, and the system shows nothing.
  case voip
  /// `pass.…`: a Wallet pass is to be updated.
  case wallet
  /// `web.…`: a web site, whose pushes need `url-args`.
  case web
  /// `com.apple.mgmt.…`: device management, whose payload is `{"mdm":"…"}` and nothing else.
  case management
  /// `….complication`: the app gets the payload for its complication on a watch, and the system shows nothing.
  case complication

  /// Parses the name of a topic as given by a certificate or the user; `nil` and an empty name are unknown.
  public init(name: String?) {
    switch name {
    case nil, "": self = .unknown
    case let name? where name.hasSuffix(".voip"): self = .voip
    case let name? where name.hasSuffix(".complication"): self = .complication
    case let name? where name.hasPrefix("pass."): self = .wallet
    case let name? where name.hasPrefix("web."): self = .web
    case let name? where name.hasPrefix("com.apple.mgmt."): self = .management
    default: self = .app
    }
  }

  /// Whether a visible alert breaks no rule about its topic alone.
  @usableFromInline @inline(__always)
  var takesAlerts: Bool {
    switch self {
    case .unknown, .app, .newsstand, .wallet: true
    case .voip, .web, .management, .complication: false
    }
  }
}

/// The frame that a payload was sent in.
public struct PushFrame: Sendable {
  /// The command of the frame: 0, 1 or 2.
  public var command: UInt8
  /// The priority item of command 2.
  public var priority: UInt8?
  /// The expiration date as it was sent, in seconds since 1970; command 0 has none.
  public var expiration: UInt32?
  /// The time of sending, in seconds since 1970.
  public var sentAt: Int64?
  /// The device token. A hot path leaves it out and calls `PayloadJudge.rules(ofToken:era:)`.
  public var token: [UInt8]?

  /// Makes the fields of a frame.
  ///
  /// - Parameters:
  ///   - command: the command of the frame, 0 to 2.
  ///   - priority: the priority item of command 2; `nil` without it.
  ///   - expiration: the expiration date in seconds since 1970; `nil` without it.
  ///   - sentAt: the time of sending in seconds since 1970, if known.
  ///   - token: the device token; `nil`: the rules about tokens are not run.
  public init(
    command: UInt8, priority: UInt8? = nil, expiration: UInt32? = nil, sentAt: Int64? = nil, token: [UInt8]? = nil
  ) {
    self.command = command
    self.priority = priority
    self.expiration = expiration
    self.sentAt = sentAt
    self.token = token
  }
}
