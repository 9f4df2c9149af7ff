import BinaryProtocol
import Bytes
import PushModel

/// The lane of writers: notifications as they will be in the output, so that only copying is left to do in packet
/// order.
public struct RenderedLane: RecordLane {
  public struct Batch: Sendable {
    fileprivate var text = WrittenBytes()
  }

  /// Topics of connections' certificates, for judgements of payloads.
  public struct Knowledge: Sendable {
    fileprivate let facts: NotificationFacts.Told
  }

  /// A writer of the lane's own, which passes nothing to an output.
  let writer: any RecordSerializer

  public static var cost: LaneCost { .high }
  public var position: Int { writer.renderedCount }

  public static func makeBatch() -> Batch { Batch() }
  public mutating func take(_ knowledge: Knowledge) { writer.facts.take(knowledge.facts) }

  public mutating func begin(_ batch: inout Batch, _ block: RawSpan) {
    var text = WrittenBytes()
    swap(&text, &batch.text)
    var bytes = ByteWriter(reusing: text)
    writer.exchange(&bytes)
  }

  public mutating func end(_ batch: inout Batch) {
    var bytes = ByteWriter(capacity: 0)
    writer.exchange(&bytes)
    batch.text = WrittenBytes(bytes)
  }

  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    writer.receive(fields, frame, at: place, index: index)
  }

  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    writer.receive(malformed: problem, fields, frame, at: place, index: index)
  }
}

extension RecordSerializer {
  public func makeLane() -> sending RenderedLane { RenderedLane(writer: makeLaneWriter()) }

  public var laneKnowledge: RenderedLane.Knowledge { RenderedLane.Knowledge(facts: facts.told) }

  public func receive(_ batch: inout RenderedLane.Batch, _ range: Range<Int>, in block: RawSpan) {
    put(rendered: batch.text.bytes.extracting(range))
  }
}
