import Bytes

/// The properties of a segment that its captures under different addresses have in common.
struct SegmentPrint {
  /// The direction in the flow with which it is compared.
  var direction: FlowDirection
  let time: Timestamp
  private let sequence: SequenceNumber
  private let acknowledgement: SequenceNumber
  private let flags: UInt8
  private let length: Int
  /// The length of the captured bytes, their digest, and the digest of the first of them.
  private let captured: Int
  private let digest: UInt64
  private let beginning: UInt64

  /// The number of bytes that are compared if a segment was recorded in different pieces.
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

  /// Whether the segment has data, all of which was captured.
  var hasWholeData: Bool { captured > 0 && captured == length }

  /// Whether both are captures of the same packet, judging by the TCP segment.
  func isSame(as other: SegmentPrint) -> Bool {
    sequence == other.sequence && direction == other.direction && acknowledgement == other.acknowledgement
      && flags == other.flags && length == other.length && captured == other.captured && digest == other.digest
  }

  /// What two segments at the same sequence number say about their connections.
  enum Likeness {
    /// Nothing: different sequence numbers or times.
    case none
    /// Equal segments without data.
    case empty
    /// The same data.
    case data
    /// Data that begin alike, but in pieces of different lengths.
    case beginning
    /// Different data, or different initial sequence numbers: two connections.
    case different
  }

  func likeness(to other: SegmentPrint) -> Likeness {
    guard direction == other.direction else { return .none }
    if sequence != other.sequence {
      // An endpoint has one initial sequence number.
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

  /// Like `likeness(to:)`, for a segment of which only a digest was kept.
  func likeness(to known: RecentSegments.Segment) -> Likeness {
    guard hasWholeData, captured == known.length else { return .none }
    return digest == known.digest ? .data : .different
  }
}
