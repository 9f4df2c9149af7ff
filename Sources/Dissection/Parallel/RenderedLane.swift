import APNSProtocol
import Bytes

/// The lane of writers: notifications as they will stand in the output, so that only copying is left to do in order.
public struct RenderedLane: RecordLane {
  public final class Batch {
    fileprivate(set) var bytes = ByteWriter()
  }

  /// A writer of the lane's own, which passes nothing to an output.
  let writer: any RecordSerializer

  public static var cost: LaneCost { .high }
  public var position: Int { writer.renderedCount }

  public func makeBatch() -> Batch { Batch() }

  public mutating func begin(_ batch: inout Batch, _ block: RawSpan) {
    batch.bytes.removeAll()
    writer.exchange(&batch.bytes)
  }

  public mutating func end(_ batch: inout Batch) { writer.exchange(&batch.bytes) }

  public mutating func receive(_ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    writer.receive(layout, frame, at: place, index: index)
  }

  public mutating func receive(
    malformed problem: String, _ layout: PushNotification.Layout, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    writer.receive(malformed: problem, layout, frame, at: place, index: index)
  }
}

extension RecordSerializer {
  public func makeLane() -> RenderedLane { RenderedLane(writer: makeLaneWriter()) }

  public func prepare(_ lane: inout RenderedLane) {
    lane.writer.facts.takeTopics(of: facts)
  }

  public func receive(_ batch: inout RenderedLane.Batch, _ range: Range<Int>, in block: RawSpan) {
    batch.bytes.withBytes { put(rendered: $0.extracting(range)) }
  }
}
