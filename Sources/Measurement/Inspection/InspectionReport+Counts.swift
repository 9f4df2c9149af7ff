extension InspectionReport {
  /// The values from which distributions and findings are computed. Those of several reports add up to those of a whole.
  public struct Counts: Sendable, Equatable, Codable {
    /// The part of the recording, as `2/4`; `nil`: all of it.
    public var shard: String?
    public var payloadLengths = Values()
    public var notificationsPerSegment = Values()
    /// Notifications by second since 1970, and connections.
    public var sentPerSecond = Values()
    public var opensPerSecond = Values()
    /// In ascending order.
    public var lifetimesS: [Double] = []
    /// Each rejected token that was remembered.
    public var rejectedTokens: [TokenRow] = []
    /// Seconds from first sendings to accepted ones of recovered notifications, in ascending order.
    public var recoveriesS: [Double] = []
    /// Connections that carried notifications, and those of them that carried one.
    public var sendingConnections = 0
    public var oneNotificationConnections = 0
    /// Seconds since 1970 in which a feedback service was being read; of a long connection, one for each hour.
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

  /// What is said of a part of a recording if its other parts hold no connections.
  public struct Alone: Sendable, Equatable, Codable {
    public var stories: Stories?
    /// Of each listed error response, what became of what it discarded; empty: nothing is known.
    public var outcomes: [NamedCounts<StoryOutcome>] = []
    /// Seconds from first sendings to accepted ones of recovered notifications, in ascending order.
    public var recoveriesS: [Double] = []
    package init() {}
  }

  /// The notifications from one address to one server whose fates are known.
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
    /// Sum of all values, and the largest: those above a limit are counted as this.
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
    /// Those of them that lack only their secret.
    public var withoutSecret = 0
    public var partlyEncrypted = 0
    public var empty = 0
    public var protocols: [PortProtocol] = []
    /// Of more ports than are listed.
    public var further = 0
    /// Those on the port of devices that were not read, and the part of `encrypted` among them; `nil` before 0.2.
    public var ofDevices: Int?
    public var encryptedOfDevices: Int?

    package init() {}
  }

  /// Connections to a server port that use another protocol.
  public struct PortProtocol: Sendable, Equatable, Codable {
    public var port: Int
    public var `protocol`: String?
    /// The port is said to be that of a gateway or feedback service.
    public var isKnownPort: Bool
    public var count: Int

    package init(port: Int, protocol name: String?, isKnownPort: Bool, count: Int) {
      (self.port, self.protocol, self.isKnownPort, self.count) = (port, name, isKnownPort, count)
    }
  }
}
