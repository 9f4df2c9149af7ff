import BinaryProtocol
import Bytes
import PushModel
import Records

/// Receives what a client stream finds on another thread: notifications go into the lane, the records between them into
/// `others`.
final class LaneSink: RecordSink {
  /// Rare records between notifications.
  enum Other {
    case gap(GapRecord)
    case malformed(MalformedRecord)
  }

  var lane: any RecordLane
  /// Each with its position in the lane.
  var others: [(position: Int, record: Other)] = []

  init(_ lane: any RecordLane) { self.lane = lane }

  func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    lane.readFrames(bytes, &position, at: offset, mark, &frames)
  }
  func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    lane.receive(fields, frame, at: place, index: index)
  }
  func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    lane.receive(malformed: problem, fields, frame, at: place, index: index)
  }
  func receive(_ record: GapRecord) { others.append((lane.position, .gap(record))) }
  func receive(_ record: MalformedRecord) { others.append((lane.position, .malformed(record))) }

  // MARK: what a client stream does not find

  var isOpen: Bool { true }
  func receive(_ record: CaptureRecord) {}
  func receive(_ record: ErrorResponseRecord) {}
  func receive(_ record: borrowing FeedbackRecord) {}
  func receive(_ record: ConnectionRecord) {}
  func receive(_ record: SummaryRecord) {}
}
