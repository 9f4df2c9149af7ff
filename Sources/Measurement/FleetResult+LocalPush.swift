extension FleetResult {
  /// Counts of devices that use local push. Texts and invitations are `Notifications`, too, and were sent as soon as they
  /// came.
  public struct LocalPush: Sendable, Equatable, Codable {
    /// Joinings of networks on which the extension may run, by their names; empty if all are such.
    public var joins: [String: Int] = [:]
    /// Joinings of other networks.
    public var joinsElsewhere = 0
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

    package mutating func add(_ other: Self) {
      joins.merge(other.joins, uniquingKeysWith: sum)
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
