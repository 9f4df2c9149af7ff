import Bytes

/// What two captures of a segment have in common, whatever the addresses are.
struct SegmentPrint {
  /// In the terms of one flow.
  var direction: FlowDirection
  let time: Timestamp
  private let sequence: SequenceNumber
  private let acknowledgement: SequenceNumber
  private let flags: UInt8
  private let length: Int
  /// Of the captured bytes; and of the first of them.
  private let captured: Int
  private let digest: UInt64
  private let beginning: UInt64

  /// Bytes that are compared where a segment was recorded in parts.
  private static let beginningLength = 64

  init(_ segment: TCPSegment, _ payload: RawSpan, _ direction: FlowDirection, _ time: Timestamp) {
    self.direction = direction
    self.time = time
    sequence = segment.sequence
    acknowledgement = segment.acknowledgement
    flags = segment.flags.rawValue & 0b1_0111
    length = segment.payloadLength
    captured = payload.byteCount
    digest = captured > 0 ? RecentSegments.digest(payload) : 0
    beginning =
      captured >= Self.beginningLength
      ? RecentSegments.digest(payload.extracting(0..<Self.beginningLength)) : 0
  }

  private var isBeginning: Bool { flags & TCPSegment.Flags.syn.rawValue != 0 }

  /// It was captured with all of its data, which it has.
  var hasWholeData: Bool { captured > 0 && captured == length }

  /// Both are captures of the same packet, as far as its TCP segment tells.
  func isSame(as other: SegmentPrint) -> Bool {
    sequence == other.sequence && direction == other.direction && acknowledgement == other.acknowledgement
      && flags == other.flags && length == other.length && captured == other.captured && digest == other.digest
  }

  /// What two segments at the same place say about their connections.
  enum Likeness {
    /// Nothing: they stand elsewhere, or were captured at other times.
    case none
    /// Neither has data, and they are the same.
    case empty
    /// They have the same data.
    case data
    /// Their data begin alike, and were recorded in other parts.
    case beginning
    /// They have other data, or begin at other numbers: the connections are two.
    case different
  }

  func likeness(to other: SegmentPrint) -> Likeness {
    guard direction == other.direction else { return .none }
    if sequence != other.sequence {
      // An end begins at one number.
      return isBeginning && other.isBeginning ? .different : .none
    }
    if length == 0 && other.length == 0 {
      return flags == other.flags && acknowledgement == other.acknowledgement ? .empty : .none
    }
    guard captured > 0 && other.captured > 0 else { return .none }
    if captured == other.captured { return digest == other.digest ? .data : .different }
    guard captured >= Self.beginningLength && other.captured >= Self.beginningLength else { return .none }
    return beginning == other.beginning ? .beginning : .different
  }

  /// The same for a segment of which only a digest is left.
  func likeness(to known: RecentSegments.Segment) -> Likeness {
    guard hasWholeData, captured == known.length else { return .none }
    return digest == known.digest ? .data : .different
  }
}
