import BinaryProtocol
import Bytes
import PushModel

/// Receives what a client stream finds on another thread: notifications go into the lane, the records between them into
/// `others`.
struct LaneSink<Notifications: RecordLane>: ConnectionSink {
  /// Rare records between notifications.
  enum Other {
    case gap(GapRecord)
    case malformed(MalformedRecord)
  }

  var lane: Notifications
  /// Each with its position in the lane.
  var others: [(position: Int, record: Other)] = []

  init(_ lane: Notifications) { self.lane = lane }

  @inline(__always)
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    lane.receive(fields, frame, at: place, index: index)
  }
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    lane.receive(malformed: problem, fields, frame, at: place, index: index)
  }
  mutating func receive(_ record: GapRecord) { others.append((lane.position, .gap(record))) }
  mutating func receive(_ record: MalformedRecord) { others.append((lane.position, .malformed(record))) }

  // MARK: what a client stream does not find

  var isOpen: Bool { true }
  mutating func receive(_ record: CaptureRecord) {}
  mutating func receive(_ record: ErrorResponseRecord) {}
  mutating func receive(_ record: borrowing FeedbackRecord) {}
  mutating func receive(_ record: ConnectionRecord) {}
  mutating func receive(_ record: SummaryRecord) {}
}
