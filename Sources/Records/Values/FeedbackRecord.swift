import BinaryProtocol

/// A feedback tuple. A view, as `NotificationRecord`.
public struct FeedbackRecord: ~Escapable {
  public let place: RecordPlace
  /// The tuple's number on its connection, from 0.
  public let index: Int
  /// The time and the token, borrowed from the bytes.
  public let tuple: FeedbackTuple

  @_lifetime(copy tuple)
  package init(place: RecordPlace, index: Int, tuple: consuming FeedbackTuple) {
    self.place = place
    self.index = index
    self.tuple = tuple
  }
}
