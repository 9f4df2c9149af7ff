extension FleetResult {
  /// Counts of devices that use local push. Texts and invitations are `Notifications`, too, and were sent as soon as they
  /// came.
  public struct LocalPush: Sendable, Equatable, Codable {
    /// Joinings of networks on which the extension may run, by their names; empty if all are such.
    public var joins: [String: Int] = [:]
    /// Joinings of other networks.
    public var joinsElsewhere = 0
    /// The part of the counts that is of each network on which the extension may run; empty if all are such.
    public var networks: [String: Network] = [:]
    /// Users that were sent to the server.
    public var registrations = 0
    /// The part of `registrations` that was acknowledged.
    public var registered = 0
    /// The part of `registrations` that was not acknowledged in time.
    public var timedOut = 0
    public var texts = 0
    public var invitations = 0
    /// The part of `invitations` that came too late to be answered.
    public var missedCalls = 0
    public var heartbeats = 0
    /// Requests of other kinds.
    public var otherRequests = 0
    /// The part of texts and invitations that does not say when it was sent.
    public var untimed = 0
    /// Acknowledgements of all requests.
    public var acknowledgements = 0
    /// From the sending of an invitation to the device, in microseconds; it is in `Latency.onlineUs`, too.
    public var invitationUs = LatencyHistogram(.microseconds)

    package init() {}

    /// The part of the counts that is of a network.
    public struct Network: Sendable, Equatable, Codable {
      /// Users that were acknowledged by its server.
      public var registered = 0
      public var texts = 0
      public var invitations = 0
      public var heartbeats = 0

      package init() {}

      package mutating func add(_ other: Self) {
        for path in [\.registered, \.texts, \.invitations, \.heartbeats] as [WritableKeyPath<Self, Int>] {
          self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
        }
      }
    }

    /// The equations of the networks: what has come, has come on one of them.
    package var invariants: [RunResult.Verdict.Invariant] {
      guard !networks.isEmpty else { return [] }
      let counts: [(name: String, whole: Int, path: KeyPath<Network, Int>)] = [
        ("registered", registered, \.registered), ("texts", texts, \.texts),
        ("invitations", invitations, \.invitations), ("heartbeats", heartbeats, \.heartbeats),
      ]
      return counts.map { name, whole, path in
        let parts = networks.values.reduce(0) { sum($0, $1[keyPath: path]) }
        return .init("\(name) = sum of networks", holds: whole == parts, detail: "\(whole) = \(parts)")
      }
    }

    package mutating func add(_ other: Self) {
      joins.merge(other.joins, uniquingKeysWith: sum)
      for (name, network) in other.networks { networks[name, default: Network()].add(network) }
      for path in [
        \.joinsElsewhere, \.registrations, \.registered, \.timedOut, \.texts, \.invitations, \.missedCalls,
        \.heartbeats,
        \.otherRequests, \.untimed, \.acknowledgements,
      ] as [WritableKeyPath<Self, Int>] {
        self[keyPath: path] = sum(self[keyPath: path], other[keyPath: path])
      }
      invitationUs.merge(other.invitationUs)
    }
  }
}
