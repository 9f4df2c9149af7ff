import Bytes
import Payload
import PushModel

/// A notification: a view, valid as long as the bytes in which it was found.
package struct NotificationRecord: ~Escapable {
  package let place: RecordPlace
  /// The notification's index on its connection, from 0; only decoded ones count.
  package let index: Int
  package let notification: Push
  /// The error in a frame whose length is valid and whose items do not fit it. The fields are those of the items before
  /// the error.
  package let problem: String?
  /// Its fate; `nil` when it is not known while it is written.
  package let fate: Fate?
  /// The verdict on its payload and frame; `nil` when they were not judged.
  package let verdict: PayloadVerdict?

  @_lifetime(copy frame)
  package init(
    _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int,
    problem: String? = nil, fate: Fate? = nil, verdict: PayloadVerdict? = nil
  ) {
    self.place = place
    self.index = index
    self.problem = problem
    self.fate = fate
    self.verdict = verdict
    notification = Push(fields, frame)
  }
}
