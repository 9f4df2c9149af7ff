import Bytes
import PushModel
import Records

/// The lane of an inspection, which also wants to know whether a notification was sent before.
struct DigestLane: RecordLane {
  private var lane = FrameLane()

  var cost: LaneCost { .medium }
  var position: Int { lane.position }
  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan) { lane.begin(&batch, block) }
  mutating func end(_ batch: inout LaneBatch) { lane.end(&batch) }

  @inline(__always)
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let digest = NotificationIdentity.digest(
      token: frame.extracting(fields.token.range), payload: frame.extracting(fields.payload.range),
      hasPayload: fields.payload.isPresent)
    lane.frames.append(fields, frame, at: lane.offset(of: frame), place, index: index, digest: digest)
  }

  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    lane.receive(malformed: problem, fields, frame, at: place, index: index)
  }
}
