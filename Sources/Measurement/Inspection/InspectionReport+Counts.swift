extension InspectionReport {
  /// The values from which distributions and findings are computed. The values of several reports add up to those of
  /// the whole.
  public struct Counts: Sendable, Equatable, Codable {
    /// The part of the recording, as `2/4`; `nil`: all of it.
    public var shard: String?
    public var payloadLengths = Values()
    public var notificationsPerSegment = Values()
    /// Notifications by second since 1970, and connections.
    public var sentPerSecond = Values()
    public var opensPerSecond = Values()
    /// Lifetimes of connections in seconds, in ascending order.
    public var lifetimesS: [Double] = []
    /// Each rejected token that was remembered.
    public var rejectedTokens: [TokenRow] = []
    /// Seconds from the first sending to the accepted one, of each recovered notification; in ascending order.
    public var recoveriesS: [Double] = []
    /// Connections that carried notifications, and the number of these that carried exactly one.
    public var sendingConnections = 0
    public var oneNotificationConnections = 0
    /// Seconds since 1970 in which a feedback service was being read; of a long connection, one per hour.
    public var feedbackReadPerSecond = Values()
    public var providers: [Provider] = []
    public var unread = Unread()
    public var readFeedbackConnections = 0
    public var latePackets = 0
    public var longestDelayNs: Int64 = 0
    /// The outcomes of a part whose connections are all that the recording has; `nil`: it is not a part.
    public var alone: Alone?

    package init() {}
  }

  /// The statements about a part of a recording that hold if its other parts have no connections.
  public struct Alone: Sendable, Equatable, Codable {
    public var stories: Stories?
    /// The outcomes of the notifications that each listed error response discarded; empty: unknown.
    public var outcomes: [NamedCounts<StoryOutcome>] = []
    /// Seconds from the first sending to the accepted one, of each recovered notification; in ascending order.
    public var recoveriesS: [Double] = []
    package init() {}
  }

  /// Notifications with known fates, from one address to one server.
  public struct Provider: Sendable, Equatable, Codable {
    public var client: String
    public var server: String
    public var accepted: Int
    /// Error responses with status 8.
    public var invalidTokens: Int
    package init(client: String, server: String, accepted: Int, invalidTokens: Int) {
      (self.client, self.server, self.accepted, self.invalidTokens) = (client, server, accepted, invalidTokens)
    }
  }

  /// How often each value occurred; values in ascending order.
  public struct Values: Sendable, Equatable, Codable {
    public var values: [Int] = []
    public var counts: [Int] = []
    /// Sum of all values, and the largest. Where very many different ones are large, some are counted as slightly
    /// smaller ones.
    public var sum: Int?
    public var max: Int?

    package init(values: [Int] = [], counts: [Int] = [], sum: Int? = nil, max: Int? = nil) {
      (self.values, self.counts, self.sum, self.max) = (values, counts, sum, max)
    }
  }

  /// Connections without readable APNs traffic.
  public struct Unread: Sendable, Equatable, Codable {
    public var connections = 0
    public var encrypted = 0
    /// The part of `encrypted` for which only the secret is missing.
    public var withoutSecret = 0
    public var partlyEncrypted = 0
    public var empty = 0
    public var protocols: [PortProtocol] = []
    /// Connections to further ports, which are not listed.
    public var further = 0
    /// Unread connections to the port of devices, and the part of `encrypted` among them; `nil` before 0.2.
    public var ofDevices: Int?
    public var encryptedOfDevices: Int?
    /// Connections that could not be decrypted and that HTTP/2 may be in; not part of `encrypted`. `nil`: none.
    public var encryptedOther: Int?

    package init() {}
  }

  /// Connections to a server port that use another protocol.
  public struct PortProtocol: Sendable, Equatable, Codable {
    public var port: Int
    public var `protocol`: String?
    /// The port is a gateway's or feedback service's, by default or by option.
    public var isKnownPort: Bool
    public var count: Int

    package init(port: Int, protocol name: String?, isKnownPort: Bool, count: Int) {
      (self.port, self.protocol, self.isKnownPort, self.count) = (port, name, isKnownPort, count)
    }
  }
}
