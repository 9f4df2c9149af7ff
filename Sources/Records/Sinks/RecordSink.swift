import BinaryProtocol
import Bytes
import PacketCapture
import PushModel

/// Receives records as they are found: writers write them, `Inspection` counts them.
public protocol RecordSink: NotificationSink {
  /// A lane for another thread, which shares nothing with the sink: its results are merged in packet order.
  func makeLane() -> sending any RecordLane
  /// What the sink has learned about connections: read from time to time between batches, and passed to each lane.
  var laneKnowledge: LaneKnowledge { get }
  /// Announces an event of a connection: its state may be prefetched.
  mutating func prepare(for connection: Int)
  /// Receives notifications of which a lane has made a batch, as if each had been received separately.
  ///
  /// - Parameters:
  ///   - batch: the lane's results.
  ///   - range: positions in the batch.
  ///   - block: the bytes that the lane began the batch with.
  mutating func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan)
  /// A file that was opened, before its other records.
  mutating func receive(_ record: CaptureRecord)
  /// An error response when it was seen: notifications written after it are not counted yet.
  mutating func receiveEarly(_ record: ErrorResponseRecord)
  /// An error response with its final counts, after its connection has ended.
  mutating func receive(_ record: ErrorResponseRecord)
  /// Fates that are final.
  mutating func receive(_ record: FateRecord)
  /// The fates of notifications that follow, where they are known before: from the gateway itself.
  mutating func receiveEarly(_ record: FateRecord)
  mutating func receive(_ record: borrowing FeedbackRecord)
  /// A notification of the HTTP/2 provider API.
  mutating func receive(_ record: borrowing ProviderNotificationRecord)
  /// Another record of a connection over HTTP/2.
  mutating func receive(_ record: ProviderRecord)
  /// A message of the device channel or of local push.
  mutating func receive(_ record: MessageRecord)
  /// Bytes of a connection over HTTP/2 as they were read: the next piece of a direction, or, behind a redaction, a
  /// frame of it. Called only for a sink that takes them.
  mutating func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction)
  /// Whether it takes the bytes of connections over HTTP/2.
  var takesHTTP2: Bool { get }
  mutating func receive(_ record: GapRecord)
  mutating func receive(_ record: MalformedRecord)
  /// A connection that has ended, after all its other records.
  mutating func receive(_ record: ConnectionRecord)
  mutating func receive(_ record: CaptureLossRecord)
  /// What became of a notification for its device, also after its connection has ended.
  mutating func receive(_ record: DeliveryRecord)
  /// The totals, as the last record.
  mutating func receive(_ record: SummaryRecord)
  /// An input has been read.
  mutating func receive(_ outcome: CaptureOutcome)
  /// A connection was opened; its record comes when it ends.
  mutating func opened(connection: Int, at time: Timestamp)
  /// A connection's client presented this certificate. Called before the connection's first notification, perhaps more
  /// than once.
  mutating func presented(subject: String, connection: Int)
  /// A connection has ended whose record is passed to another sink.
  mutating func ended(connection: Int)
  /// A piece of a gateway connection's client stream has completed this many notifications.
  mutating func segment(notifications: Int, at time: Timestamp)
  /// Whether records that are not selected are wanted as well: statements about selected records may depend on the
  /// others.
  var takesWholeRecording: Bool { get }
  /// Marks whether the records that follow are selected. Without a selection all are.
  mutating func mark(isSelected: Bool)
  /// Announces that a record of a connection is selected. The connection was opened before.
  mutating func select(connection: Int)
  /// Announces that no input arrives for a moment, for example from a live pipe: buffered output should be flushed.
  mutating func pause()
  /// Whether records are still wanted; `false` ends the reading.
  var isOpen: Bool { get }
}

/// A sink that ignores individual notifications.
public protocol ConnectionSink: RecordSink {}

extension ConnectionSink {
  public func makeLane() -> sending any RecordLane { EmptyLane() }
  public mutating func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {}
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {}
  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {}
}

extension RecordSink {
  public func makeLane() -> sending any RecordLane { FrameLane() }
  public var laneKnowledge: LaneKnowledge { LaneKnowledge() }
  @inlinable
  public mutating func receive(_ batch: inout LaneBatch, _ range: Range<Int>, in block: RawSpan) {
    batch.frames.pass(range, in: block, to: &self)
  }
  @inlinable public mutating func prepare(for connection: Int) {}
  public mutating func receiveEarly(_ record: ErrorResponseRecord) {}
  public mutating func receive(_ record: borrowing ProviderNotificationRecord) {}
  public mutating func receive(_ record: ProviderRecord) {}
  public mutating func receive(_ record: MessageRecord) {}
  public mutating func receive(http2 bytes: RawSpan, at place: RecordPlace, _ direction: Direction) {}
  public var takesHTTP2: Bool { false }
  public mutating func receive(_ record: CaptureLossRecord) {}
  public mutating func receive(_ record: DeliveryRecord) {}
  public mutating func receive(_ record: FateRecord) {}
  public mutating func receiveEarly(_ record: FateRecord) {}
  public mutating func receive(_ outcome: CaptureOutcome) {}
  public mutating func opened(connection: Int, at time: Timestamp) {}
  public mutating func presented(subject: String, connection: Int) {}
  public mutating func ended(connection: Int) {}
  public mutating func segment(notifications: Int, at time: Timestamp) {}
  public var takesWholeRecording: Bool { false }
  public mutating func mark(isSelected: Bool) {}
  public mutating func select(connection: Int) {}
  public mutating func pause() {}
}
