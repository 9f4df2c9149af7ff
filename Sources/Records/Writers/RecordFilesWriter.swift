import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// Writes records into one file for each type.
public final class RecordFilesWriter<Writer: RecordSink>: RecordSink {
  private var notifications: Writer
  private var others: [RecordType: Writer]

  /// Creates one writer for each type of record.
  ///
  /// - Parameter writer: creates the writer of one type; what it throws is thrown.
  public init(_ writer: (RecordType) throws -> Writer) rethrows {
    notifications = try writer(.notification)
    var others: [RecordType: Writer] = [:]
    for type in RecordType.allCases where type != .notification { others[type] = try writer(type) }
    self.others = others
  }

  /// Whether every output has accepted everything so far.
  public var isOpen: Bool { notifications.isOpen && others.values.allSatisfy(\.isOpen) }

  public func makeLane() -> sending any RecordLane { notifications.makeLane() }
  public var laneKnowledge: LaneKnowledge { notifications.laneKnowledge }
  public func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {
    notifications.receive(&batch, range, in: block)
  }
  public func readFrames(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    notifications.readFrames(bytes, &position, at: offset, mark, &frames)
  }

  public func pause() {
    notifications.pause()
    for type in others.keys { others[type]?.pause() }
  }

  public func presented(subject: String, connection: Int) {
    notifications.presented(subject: subject, connection: connection)
  }

  public func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    notifications.receive(fields, frame, at: place, index: index)
  }
  public func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    notifications.receive(malformed: problem, fields, frame, at: place, index: index)
  }
  public func receive(_ record: CaptureRecord) { others[.capture]?.receive(record) }
  public func receive(_ record: ErrorResponseRecord) { others[.errorResponse]?.receive(record) }
  public func receive(_ record: FateRecord) { others[.fate]?.receive(record) }
  public func receive(_ record: borrowing FeedbackRecord) { others[.feedback]?.receive(record) }
  public func receive(_ record: borrowing ProviderNotificationRecord) { notifications.receive(record) }
  public func receive(_ record: ProviderRecord) { others[record.type]?.receive(record) }
  public func receive(_ record: MessageRecord) { others[record.type]?.receive(record) }
  public func receive(_ record: GapRecord) { others[.gap]?.receive(record) }
  public func receive(_ record: MalformedRecord) { others[.malformed]?.receive(record) }
  public func receive(_ record: CaptureLossRecord) { others[.captureLoss]?.receive(record) }
  public func receive(_ record: DeliveryRecord) { others[.delivery]?.receive(record) }
  public func receive(_ record: ConnectionRecord) {
    notifications.ended(connection: record.connection)
    others[.connection]?.receive(record)
  }
  public func receive(_ record: SummaryRecord) { others[.summary]?.receive(record) }
}
