extension InspectionReport {
  /// Counts of the device channel, of one connection or of all. `deliveries` is the sum of `acknowledged`,
  /// `unacknowledged`, `open` and `notGrowing`.
  public struct DeviceCounts: Sendable, Equatable, Codable {
    /// Connections; `nil` in the counts of one.
    public var connections: Int?
    public var messages = 0
    /// Notifications that the gateway sent.
    public var deliveries = 0
    public var acknowledged = 0
    /// The device closed its direction, all of which was recorded, without an acknowledgement.
    public var unacknowledged = 0
    /// No acknowledgement was recorded, but the recording may lack it.
    public var open = 0
    /// The sequence is not above that of an earlier notification of the token.
    public var notGrowing = 0
    /// Those that waited at the gateway.
    public var stored = 0
    /// Those that were sent on an earlier connection.
    public var repeated = 0

    package init(connections: Int? = nil) { self.connections = connections }
  }

  /// Counts of local push, of one connection or of all. `requests` is the sum of `acknowledged`, `late`,
  /// `unacknowledged` and `open`.
  public struct LocalPushCounts: Sendable, Equatable, Codable {
    /// Connections; `nil` in the counts of one.
    public var connections: Int?
    public var messages = 0
    /// Requests of both ends.
    public var requests = 0
    /// Those that were acknowledged within 10 s.
    public var acknowledged = 0
    /// Those that were acknowledged later.
    public var late = 0
    /// The other end was recorded for 10 s or to its end, and has not acknowledged them.
    public var unacknowledged = 0
    /// No acknowledgement was recorded, but the recording may lack it.
    public var open = 0
    /// Heartbeats of the server.
    public var heartbeats = 0
    /// Times of over 30 s without a message of the server, with nothing missing.
    public var silences = 0
    /// The longest time between two heartbeats with nothing missing between them, in seconds; `nil`: none is known.
    public var longestIntervalS: Double?

    package init(connections: Int? = nil) { self.connections = connections }
  }
}

extension InspectionReport.DeviceCounts {
  /// Adds those of a connection, or of other ones.
  package mutating func add(_ other: Self) {
    connections = connections.map { $0 + (other.connections ?? 1) }
    messages += other.messages
    deliveries += other.deliveries
    acknowledged += other.acknowledged
    unacknowledged += other.unacknowledged
    open += other.open
    notGrowing += other.notGrowing
    stored += other.stored
    repeated += other.repeated
  }
}

extension InspectionReport.LocalPushCounts {
  /// Adds those of a connection, or of other ones.
  package mutating func add(_ other: Self) {
    connections = connections.map { $0 + (other.connections ?? 1) }
    messages += other.messages
    requests += other.requests
    acknowledged += other.acknowledged
    late += other.late
    unacknowledged += other.unacknowledged
    open += other.open
    heartbeats += other.heartbeats
    silences += other.silences
    longestIntervalS = [longestIntervalS, other.longestIntervalS].compactMap { $0 }.max()
  }
}
