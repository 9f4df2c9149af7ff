import BinaryProtocol
import Bytes
import Payload
import PushModel

/// Collects the notifications of one dissecting thread's connections until their turn in packet order.
///
/// A lane belongs to one thread at a time. Its results for a batch of packets are a value that goes to the sink and comes
/// back. The threads share nothing.
public protocol RecordLane: NotificationSink {
  /// Adopts the sink's present knowledge, between two batches.
  mutating func take(_ knowledge: LaneKnowledge)
  /// The next notifications are of this batch, whose bytes are in `block`.
  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan)
  mutating func end(_ batch: inout LaneBatch)
  /// The position of the next notification in the batch, in units of the lane's own.
  var position: Int { get }
  var cost: LaneCost { get }
}

/// The time that a lane and its sink need for a notification, compared with finding it.
public enum LaneCost: Sendable {
  /// Less time.
  case low
  /// About as much time.
  case medium
  /// Much more time.
  case high
}

/// What lanes need to know about connections, as their sink learned it.
public struct LaneKnowledge: Sendable {
  /// The topics of connections' certificates, for judgements of payloads; `nil`: payloads are not judged.
  package var topics: [Int: PayloadTopic]?

  public init() {}
}

/// A lane's results for one batch of packets; its memory is used again for the next.
public struct LaneBatch: Sendable {
  /// The fields of notifications, for sinks that receive them one by one.
  @usableFromInline package var frames = FrameList()
  /// Notifications as they will be in the output, for writers.
  package var text = WrittenBytes()

  public init() {}
}

extension RecordLane {
  public mutating func take(_ knowledge: LaneKnowledge) {}
  public var cost: LaneCost { .low }
}

/// The lane of sinks that take no notice of single notifications.
struct EmptyLane: RecordLane {
  let position = 0
  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan) {}
  mutating func end(_ batch: inout LaneBatch) {}
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {}
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {}
}
