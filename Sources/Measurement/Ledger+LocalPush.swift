extension Ledger {
  /// Counts of the server of local push.
  public struct LocalPush: Sendable, Equatable, Codable {
    /// TCP connections to both channels.
    public var connections = 0
    /// The part of `connections` that ended before its handshake was completed.
    public var handshakeFailures = 0
    /// Connections on which a user has registered, by channel.
    public var registered: [String: Int] = [:]
    /// Users who have a notification channel at the end.
    public var here = 0
    /// The part of the counts that is of each network, by its name; that of a network without a name is empty.
    public var networks: [String: Network] = [:]
    /// Connections that the server has ended, by reason.
    public var refused: [String: Int] = [:]
    /// Connections that ended because of bytes that are no message.
    public var malformed = 0
    /// Requests of devices by content; each was acknowledged.
    public var requests: [String: Int] = [:]
    /// Messages for users by where they come from: the sum of `offered` of texts, invitations and call actions.
    public var sources: [String: Int] = [:]
    public var texts = Requests()
    public var invitations = Requests()
    public var callActions = Requests()
    public var heartbeats = Requests()
    public var directories = Requests()
    /// Acknowledgements that nobody awaited, because the request had timed out or never was.
    public var strayAcknowledgements = 0
    /// Connections that the server has fallen silent on.
    public var silencedConnections = 0
    /// Restarts of the whole server.
    public var restarts = 0

    package init() {}

    /// Requests for devices of one kind: `offered = sent + absent + overloaded + silenced` and
    /// `sent = acknowledged + timedOut + lost + unacknowledged`.
    public struct Requests: Sendable, Equatable, Codable {
      public var offered = 0
      public var sent = 0
      public var acknowledged = 0
      /// Not acknowledged in time.
      public var timedOut = 0
      /// Not acknowledged when the connection ended; the device may have them.
      public var lost = 0
      /// Those whose time is not over.
      public var unacknowledged = 0
      /// Not sent, because the user had no connection.
      public var absent = 0
      /// Not sent, because too many requests on the connection were not acknowledged.
      public var overloaded = 0
      /// Not sent, because a fault has swallowed them.
      public var silenced = 0

      package init() {}
    }

    /// The part of the counts that is of a network: of the connections that came in at its address.
    public struct Network: Sendable, Equatable, Codable {
      /// Connections on which a user has registered: who comes twice counts twice.
      public var registered = 0
      /// Users who are there at the end.
      public var here = 0
      /// How often nobody listened: restarts of the network, and of the whole server.
      public var restarts = 0
      /// `absent` is of messages for the network while nobody was there.
      public var texts = Requests()
      public var invitations = Requests()
      public var heartbeats = Requests()

      package init() {}

      /// The requests of each kind by its name.
      package var kinds: [(name: String, requests: Requests)] {
        [("text", texts), ("invite", invitations), ("heartbeat", heartbeats)]
      }

      package mutating func add(_ other: Self) {
        for path in [\.registered, \.here, \.restarts] as [WritableKeyPath<Self, Int>] {
          self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
        }
        texts.add(other.texts)
        invitations.add(other.invitations)
        heartbeats.add(other.heartbeats)
      }
    }

    /// Whether the networks are the whole: all connections to a notification channel are of one. Messages for users who were
    /// on none are `absent`, and of no network.
    package var networksAreWhole: Bool {
      var all = Network()
      for network in networks.values { all.add(network) }
      let sums = [(texts, all.texts), (invitations, all.invitations), (heartbeats, all.heartbeats)]
      return all.here == here && all.registered == registered["notification"] ?? 0
        && sums.allSatisfy { whole, parts in
          let away = whole.absent - parts.absent
          guard away >= 0, whole.offered == parts.offered + away else { return false }
          return zip(whole.outcomes, parts.outcomes).allSatisfy { $0.name == "absent" || $0.count == $1.count }
        }
    }

    /// The requests of each kind by its name.
    package var kinds: [(name: String, requests: Requests)] {
      [
        ("text", texts), ("invite", invitations), ("call_action", callActions), ("heartbeat", heartbeats),
        ("directory", directories),
      ]
    }
  }
}

extension Ledger.LocalPush.Requests {
  /// The outcomes by name, which `offered` is the sum of.
  package var outcomes: [(name: String, count: Int)] {
    [
      ("acknowledged", acknowledged), ("timed_out", timedOut), ("lost", lost), ("unacknowledged", unacknowledged),
      ("absent", absent), ("overloaded", overloaded), ("silenced", silenced),
    ]
  }

  package mutating func add(_ other: Self) {
    for path in [
      \.offered, \.sent, \.acknowledged, \.timedOut, \.lost, \.unacknowledged, \.absent, \.overloaded, \.silenced,
    ] as [WritableKeyPath<Self, Int>] {
      self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
    }
  }
}

extension Ledger.LocalPush {
  mutating func add(_ other: Self) {
    for path in [
      \.connections, \.handshakeFailures, \.here, \.malformed, \.strayAcknowledgements, \.silencedConnections,
      \.restarts,
    ] as [WritableKeyPath<Self, Int>] {
      self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
    }
    registered.merge(other.registered, uniquingKeysWith: sum)
    for (name, network) in other.networks { networks[name, default: Network()].add(network) }
    refused.merge(other.refused, uniquingKeysWith: sum)
    requests.merge(other.requests, uniquingKeysWith: sum)
    sources.merge(other.sources, uniquingKeysWith: sum)
    for path in [\.texts, \.invitations, \.callActions, \.heartbeats, \.directories]
      as [WritableKeyPath<Self, Requests>]
    {
      self[keyPath: path].add(other[keyPath: path])
    }
  }
}
