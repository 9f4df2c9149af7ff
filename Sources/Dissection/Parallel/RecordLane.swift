import BinaryProtocol
import Bytes
import PushModel

/// Collects the notifications of one dissecting thread's connections until their turn in packet order.
///
/// A lane belongs to one thread at a time. Its results for a batch of packets are a value that goes to the sink and
/// comes back. The threads share nothing, which is why these values are `Sendable`.
public protocol RecordLane: SendableMetatype {
  /// A lane's results for one batch of packets; its memory is reused.
  associatedtype Batch: Sendable
  /// What the lane needs to know about connections, as the sink learned it.
  associatedtype Knowledge: Sendable = NoKnowledge
  static func makeBatch() -> Batch
  /// Adopts the sink's present knowledge, between two batches.
  mutating func take(_ knowledge: Knowledge)
  /// The next notifications are of this batch, whose bytes are in `block`.
  mutating func begin(_ batch: inout Batch, _ block: RawSpan)
  mutating func end(_ batch: inout Batch)
  /// Receives a notification, like `RecordSink`.
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// The position of the next notification in the batch, in units of the lane's own.
  var position: Int { get }
  static var cost: LaneCost { get }
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

/// A lane's that needs to know nothing.
public struct NoKnowledge: Sendable {
  public init() {}
}

extension RecordLane where Knowledge == NoKnowledge {
  public mutating func take(_ knowledge: NoKnowledge) {}
}

extension RecordLane {
  public static var cost: LaneCost { .low }
}

/// The lane of sinks that take no notice of single notifications.
public struct EmptyLane: RecordLane {
  public struct Batch: Sendable {
    /// Not an empty struct: the thread sanitizer would take the next property's address for its own.
    private let isEmpty = true
  }

  public let position = 0
  public static func makeBatch() -> Batch { Batch() }
  public mutating func begin(_ batch: inout Batch, _ block: RawSpan) {}
  public mutating func end(_ batch: inout Batch) {}
  public mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
  }
  public mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {}
}
