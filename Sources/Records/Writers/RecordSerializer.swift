import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// A record that is written field by field.
package protocol WritableRecord: ~Escapable {
  static var type: RecordType { get }
  func write(to output: inout some FieldWriter & ~Copyable)
}

/// How much writers keep before they pass it on.
enum WriterBuffer {
  static let threshold = 1 << 17
  static let capacity = threshold + 1 << 16
}

/// A sink that writes every record with its fields: how fates and judgements get into records is the same in all formats.
protocol RecordSerializer: RecordSink, AnyObject {
  var facts: NotificationFacts { get set }

  func put(_ record: borrowing some WritableRecord & ~Escapable)
  /// Writes notifications that another writer of the same kind has rendered.
  func put(rendered: RawSpan)
  /// A writer of the same format for notifications, which keeps them for `exchange`.
  func makeLaneWriter() -> sending any RecordSerializer
  /// Bytes of written notifications that were not passed to an output.
  var renderedCount: Int { get }
  /// Exchanges these bytes for `rendered`.
  func exchange(_ rendered: inout ByteWriter)
  /// Passes everything written to the output.
  func flush()
  /// As `readFrames`. A requirement, so that a lane's writer, whose type is not known there, has its loop compiled for
  /// its type, too.
  func readNotifications(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool
}

extension RecordSerializer {
  func readNotifications(
    _ bytes: RawSpan, _ position: inout Int, at offset: Int, _ mark: CapturePosition, _ frames: inout FrameReader
  ) -> Bool {
    var writer = self
    return frames.read(bytes, &position, at: offset, mark, into: &writer)
  }

  public func pause() { flush() }

  public func presented(subject: String, connection: Int) { facts.note(subject: subject, of: connection) }
  public func ended(connection: Int) { facts.noteEnd(of: connection) }

  public func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    let (fate, verdict) = facts.of(fields, frame, place, index: index)
    put(NotificationRecord(fields, frame, at: place, index: index, fate: fate, verdict: verdict))
  }
  public func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    let fate = facts.fate(of: index, on: place.connection)
    put(NotificationRecord(fields, frame, at: place, index: index, problem: problem, fate: fate))
  }
  public func receive(_ record: ConnectionRecord) {
    ended(connection: record.connection)
    put(record)
  }
  public func receive(_ record: FateRecord) { if facts.writes(record) { put(record) } }
  public func receiveEarly(_ record: FateRecord) { facts.receiveEarly(record) }
  public func receive(_ record: CaptureRecord) { put(record) }
  public func receive(_ record: ErrorResponseRecord) { put(record) }
  public func receive(_ record: borrowing FeedbackRecord) { put(record) }
  public func receive(_ record: borrowing ProviderNotificationRecord) {
    let (outcome, verdict) = facts.of(record)
    put(record.adding(outcome, verdict))
  }
  public func receive(_ record: ProviderRecord) {
    switch record {
    case .response(let record): put(record)
    case .goAway(let record): put(record)
    case .reset(let record): put(record)
    case .settings(let record): put(record)
    case .channelRequest(let record): put(record)
    }
  }
  public func receive(_ record: MessageRecord) {
    switch record {
    case .device(let record): put(record)
    case .localPush(let record): put(record)
    }
  }
  public func receive(_ record: GapRecord) { put(record) }
  public func receive(_ record: MalformedRecord) { put(record) }
  public func receive(_ record: CaptureLossRecord) { put(record) }
  public func receive(_ record: DeliveryRecord) { put(record) }
  public func receive(_ record: SummaryRecord) { put(record) }
}
