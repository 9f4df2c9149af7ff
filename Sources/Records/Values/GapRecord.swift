import Measurement

/// Bytes that are missing in the capture, or that belong to a record of which others are missing.
public struct GapRecord: Sendable {
  /// Why bytes are missing.
  public typealias Reason = CapturedGap

  /// The place of the missing bytes.
  public var place: RecordPlace
  /// The sender of the missing bytes.
  public var direction: Direction
  public var reason: Reason
  /// Whether entries of the direction's header table are lost (HTTP/2).
  public var losesHeaderTable: Bool

  package init(
    place: RecordPlace, direction: Direction, reason: Reason, losesHeaderTable: Bool = false
  ) {
    self.losesHeaderTable = losesHeaderTable
    self.place = place
    self.direction = direction
    self.reason = reason
  }
}

/// Bytes that are not a record.
public struct MalformedRecord: Sendable {
  public var place: RecordPlace
  /// The sender of the bytes.
  public var direction: Direction
  /// What is wrong with the bytes, in words.
  public var problem: String
  /// The first bytes, at most 64.
  public var bytes: [UInt8]

  package init(
    place: RecordPlace, direction: Direction, problem: String, bytes: [UInt8]
  ) {
    self.place = place
    self.direction = direction
    self.problem = problem
    self.bytes = bytes
  }
}
