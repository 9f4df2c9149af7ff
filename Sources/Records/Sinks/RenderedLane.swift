import BinaryProtocol
import Bytes
import PushModel

/// The lane of writers: notifications as they will be in the output, so that only copying is left to do in packet order.
struct RenderedLane: RecordLane {
  /// A writer of the lane's own, which passes nothing to an output.
  let writer: any RecordSerializer

  var cost: LaneCost { .high }
  var position: Int { writer.renderedCount }

  mutating func take(_ knowledge: LaneKnowledge) { writer.facts.take(knowledge) }

  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan) {
    var text = WrittenBytes()
    swap(&text, &batch.text)
    var bytes = ByteWriter(reusing: text)
    writer.exchange(&bytes)
  }

  mutating func end(_ batch: inout LaneBatch) {
    var bytes = ByteWriter(capacity: 0)
    writer.exchange(&bytes)
    batch.text = WrittenBytes(bytes)
  }

  mutating func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    writer.readNotifications(bytes, &position, at: offset, mark, &frames)
  }

  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    writer.receive(fields, frame, at: place, index: index)
  }

  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    writer.receive(malformed: problem, fields, frame, at: place, index: index)
  }
}

extension RecordSerializer {
  public func makeLane() -> sending any RecordLane { RenderedLane(writer: makeLaneWriter()) }

  public var laneKnowledge: LaneKnowledge { facts.knowledge }

  public func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {
    put(rendered: batch.text.bytes.extracting(range))
  }
}
