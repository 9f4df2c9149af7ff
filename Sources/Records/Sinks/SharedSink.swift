import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// A sink whose state its owner can read while other code passes records to it.
///
/// Stages that pass records on hold any sink; the result is read from the last sink of the chain:
///
/// ```swift
/// let counted = SharedSink(Inspection())
/// var dissection = Dissection(into: counted, options: DissectionOptions())
/// // … read recordings
/// let report = counted.sink.finish()
/// ```
public final class SharedSink<Sink: RecordSink>: RecordSink {
  public var sink: Sink

  public init(_ sink: Sink) { self.sink = sink }

  public func makeLane() -> sending any RecordLane { sink.makeLane() }
  public var laneKnowledge: LaneKnowledge { sink.laneKnowledge }
  public func prepare(for connection: Int) { sink.prepare(for: connection) }
  public func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {
    sink.receive(&batch, range, in: block)
  }
  public func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    sink.readFrames(bytes, &position, at: offset, mark, &frames)
  }
  public func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    sink.receive(fields, frame, at: place, index: index)
  }
  public func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    sink.receive(malformed: problem, fields, frame, at: place, index: index)
  }
  public func receive(_ record: CaptureRecord) { sink.receive(record) }
  public func receiveEarly(_ record: ErrorResponseRecord) { sink.receiveEarly(record) }
  public func receive(_ record: ErrorResponseRecord) { sink.receive(record) }
  public func receive(_ record: FateRecord) { sink.receive(record) }
  public func receiveEarly(_ record: FateRecord) { sink.receiveEarly(record) }
  public func receive(_ record: borrowing FeedbackRecord) { sink.receive(record) }
  public func receive(_ record: borrowing ProviderNotificationRecord) { sink.receive(record) }
  public func receive(_ record: ProviderRecord) { sink.receive(record) }
  public func receive(_ record: MessageRecord) { sink.receive(record) }
  public func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {
    sink.receive(http2: bytes, at: place, direction)
  }
  public var takesHTTP2: Bool { sink.takesHTTP2 }
  public func receive(_ record: GapRecord) { sink.receive(record) }
  public func receive(_ record: MalformedRecord) { sink.receive(record) }
  public func receive(_ record: ConnectionRecord) { sink.receive(record) }
  public func receive(_ record: CaptureLossRecord) { sink.receive(record) }
  public func receive(_ record: DeliveryRecord) { sink.receive(record) }
  public func receive(_ record: SummaryRecord) { sink.receive(record) }
  public func receive(_ outcome: CaptureOutcome) { sink.receive(outcome) }
  public func opened(connection: Int, at time: Timestamp) { sink.opened(connection: connection, at: time) }
  public func presented(subject: String, connection: Int) { sink.presented(subject: subject, connection: connection) }
  public func ended(connection: Int) { sink.ended(connection: connection) }
  public func segment(notifications: Int, at time: Timestamp) { sink.segment(notifications: notifications, at: time) }
  public var takesWholeRecording: Bool { sink.takesWholeRecording }
  public func mark(isSelected: Bool) { sink.mark(isSelected: isSelected) }
  public func select(connection: Int) { sink.select(connection: connection) }
  public func pause() { sink.pause() }
  public var isOpen: Bool { sink.isOpen }
}
