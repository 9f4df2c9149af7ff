import BinaryProtocol
import PushModel

/// An error response and its effect on the notifications of its connection.
public struct ErrorResponseRecord: Sendable {
  public var place: RecordPlace
  public var response: ErrorResponse
  /// The index of the notification that it names; `nil` if none was seen with its identifier.
  public var notification: Int?
  public var accepted: Int?
  public var discarded: Int?
  /// Nanoseconds from the named notification's last byte to the response's, as captured.
  public var latencyNanoseconds: Int64?
  /// Above 1, the identifier was used more than once and the latest use was taken.
  public var candidates: Int
  /// The identifier is 0, which may mean none, so that it is not taken to name a notification.
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

/// The fate of consecutive notifications of one connection. It is emitted once no response can change it any more, at
/// the latest before the connection's record; a connection's ranges are in order and without gaps.
public struct FateRecord: Sendable, Equatable {
  public var connection: Int
  /// The first and last notification, by index.
  public var first: Int
  public var last: Int
  public var fate: Fate

  package init(
    connection: Int, first: Int, last: Int, fate: Fate
  ) {
    self.connection = connection
    self.first = first
    self.last = last
    self.fate = fate
  }
}
