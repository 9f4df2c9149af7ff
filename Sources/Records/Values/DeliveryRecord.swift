import PacketCapture

/// The outcome of an accepted notification for its device, when that is not an immediate delivery. Only a gateway knows
/// it.
public struct DeliveryRecord: Sendable, Equatable {
  /// The ways in which it can end. The raw value is the text in records.
  public enum Outcome: String, Sendable, CaseIterable {
    /// The device came online, and got it.
    case delivered
    /// A later one for the same device and topic took its place before the device came online.
    case coalesced
    /// Its expiration passed, or it was not to be stored.
    case expired
    /// It was dropped while it could still have been delivered.
    case dropped
    /// The app is uninstalled: its token is on the feedback list.
    case uninstalled
    /// It waits at the end.
    case stored
  }

  /// The number of its connection; `nil`: the connection is not among the records.
  public var connection: Int?
  /// The notification's number on its connection, from 0; `nil`: the connection is not among the records.
  public var index: Int?
  public var time: Timestamp
  public var outcome: Outcome
  public var token: [UInt8]

  package init(connection: Int?, index: Int?, time: Timestamp, outcome: Outcome, token: [UInt8]) {
    (self.connection, self.index, self.time) = (connection, index, time)
    (self.outcome, self.token) = (outcome, token)
  }
}
