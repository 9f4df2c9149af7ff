import BinaryProtocol
import Bytes
import Payload
import PushModel

/// Collects the notifications of one dissecting thread's connections until these are next in packet order.
///
/// A lane belongs to one thread at a time. Its results for a batch of packets are a value that is passed to the sink
/// and back. The threads share nothing.
public protocol RecordLane: NotificationSink {
  /// Takes what the sink has learned about connections, between two batches.
  mutating func take(_ knowledge: LaneKnowledge)
  /// Begins a batch: the next notifications are of this batch, and its bytes are in `block`.
  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan)
  /// Ends the batch.
  mutating func end(_ batch: inout LaneBatch)
  /// The position of the next notification in the batch, in units that only the lane uses.
  var position: Int { get }
  /// The time needed for a notification, by which the number of threads is chosen.
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

/// The facts about connections that lanes need and that only the sink learns.
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

/// The lane of sinks that ignore individual notifications.
struct EmptyLane: RecordLane {
  let position = 0
  mutating func begin(_ batch: inout LaneBatch, _ block: RawSpan) {}
  mutating func end(_ batch: inout LaneBatch) {}
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {}
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {}
}
