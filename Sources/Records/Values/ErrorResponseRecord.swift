import BinaryProtocol
import ProviderAPI
import PushModel

/// An error response and its effect on the notifications of its connection.
public struct ErrorResponseRecord: Sendable {
  /// The place of the six bytes in the server's stream.
  public var place: RecordPlace
  /// The status and the identifier.
  public var response: ErrorResponse
  /// The index of the notification that the response names; `nil` if none was seen with its identifier.
  public var notification: Int?
  /// The number of notifications that the response proves accepted; `nil` if not known.
  public var accepted: Int?
  /// The number of notifications that the gateway discarded after the named one; `nil` if not known.
  public var discarded: Int?
  /// Nanoseconds from the named notification's last byte to the response's, as captured.
  public var latencyNanoseconds: Int64?
  /// The number of notifications with the identifier; if above 1, the latest was taken.
  public var candidates: Int
  /// Whether the identifier is 0 and may mean none, so that no notification is named.
  public var isAmbiguous = false
  /// Notifications that its packet acknowledges; `nil` when that is not known.
  package var acknowledged: Int?

  package init(
    place: RecordPlace, response: ErrorResponse, notification: Int? = nil, accepted: Int? = nil, discarded: Int? = nil,
    latencyNanoseconds: Int64? = nil, candidates: Int, isAmbiguous: Bool = false, acknowledged: Int? = nil
  ) {
    self.place = place
    self.response = response
    self.notification = notification
    self.accepted = accepted
    self.discarded = discarded
    self.latencyNanoseconds = latencyNanoseconds
    self.candidates = candidates
    self.isAmbiguous = isAmbiguous
    self.acknowledged = acknowledged
  }
}

/// The fate of consecutive notifications of one connection.
///
/// The record is emitted once no response can change the fate any more, at the latest before the connection's record. A
/// connection's ranges are in order and without gaps.
public struct FateRecord: Sendable, Equatable {
  /// The connection's number, from 1.
  public var connection: Int
  /// The index of the first notification.
  public var first: Int
  /// The index of the last notification, not less than `first`.
  public var last: Int
  public var fate: Fate
  /// Why they were discarded; of notifications of the provider API only.
  public var cause: DiscardCause?

  package init(
    connection: Int, first: Int, last: Int, fate: Fate, cause: DiscardCause? = nil
  ) {
    self.cause = cause
    self.connection = connection
    self.first = first
    self.last = last
    self.fate = fate
  }
}
