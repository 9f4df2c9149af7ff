import BinaryProtocol
import Bytes
import PushModel

/// What one of several dissecting threads makes of the notifications of its connections, until it is their turn in the
/// order of packets.
///
/// A lane belongs to one thread at a time. What it makes of a batch of packets is a value that goes to the sink and comes
/// back; both threads have nothing in common, which is why these values are `Sendable`.
public protocol RecordLane: SendableMetatype {
  /// What was made of a batch; its memory is used again.
  associatedtype Batch: Sendable
  /// What the sink is told of connections that the lane has to know.
  associatedtype Knowledge: Sendable = NoKnowledge
  static func makeBatch() -> Batch
  /// Takes over what the sink knows by now, between two batches.
  mutating func take(_ knowledge: Knowledge)
  /// The next notifications are of this batch, whose bytes are in `block`.
  mutating func begin(_ batch: inout Batch, _ block: RawSpan)
  mutating func end(_ batch: inout Batch)
  /// A notification, as `RecordSink` takes it.
  mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int)
  /// Where the next notification will stand in the batch, in units of the lane's own.
  var position: Int { get }
  static var cost: LaneCost { get }
}

/// What a lane and its sink make of a notification, compared with finding it.
public enum LaneCost: Sendable {
  /// Takes less time.
  case low
  /// Takes about as long.
  case medium
  /// Takes much longer.
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
    /// Not nothing at all: the thread sanitizer would take the next property's address for its own.
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
