import Bytes

/// The direction of a frame, its place in the stream, and when it arrived.
public struct FrameOrigin: Sendable, Equatable {
  /// The sender.
  public var side: FrameReader.Side
  /// The stream offset of the frame's header, or of the first missing or unread byte.
  public var offset: Int
  /// The length in bytes of the frame or frames with their headers, or of what is missing or not read.
  public var length: Int
  /// The arrival of the last byte.
  public var arrival: Arrival
}

/// A field section: the fields of a request, of a response, or behind its content.
public struct FieldSection: Sendable, Equatable {
  /// What a section is.
  public enum Kind: Sendable, Hashable {
    case request
    /// A response that another one follows, with a status of 100 to 199.
    case interimResponse
    case response
    case trailers
  }

  /// How much of the section is known.
  public enum Extent: Sendable, Hashable {
    /// All fields are there; single ones may be unknown.
    case whole
    /// The last fields are missing.
    case cut
    /// No field is known.
    case lost
  }

  /// What the section is.
  public var kind: Kind
  /// How much of it is known.
  public var extent: Extent
  /// Whether the sender sends nothing else on the stream.
  public var endsStream: Bool
  /// The status of a response; `nil` if it is not known, or no three digits (RFC 9110 section 15).
  public var status: Int?
}

/// What is known of a stream, for as long as it is open.
public struct StreamPlace: Sendable, Hashable {
  /// The stream's number.
  public var stream: UInt32
  /// A number below `ConnectionReader.Limits.openStreams` that no other open stream has, from its first event until
  /// `closed`: the index of whatever a handler keeps for each stream.
  public var slot: Int
}

/// Receives what happens on a connection. Bytes and fields are borrowed for the call.
public protocol ConnectionHandler {
  /// A field section has ended, or was lost.
  mutating func receive(_ section: FieldSection, _ fields: FieldList, on place: StreamPlace, _ origin: FrameOrigin)
  /// A DATA frame; some of its content may be missing, then `isWhole` is false and the rest is not `content`.
  mutating func receive(
    content: RawSpan, isWhole: Bool, endsStream: Bool, on place: StreamPlace, _ origin: FrameOrigin)
  /// RST_STREAM. The code is `nil` if it is cut off.
  mutating func receive(reset code: ErrorCode?, on place: StreamPlace, _ origin: FrameOrigin)
  /// RST_STREAM on a stream that is not open: it was closed, or its frames are lost.
  mutating func receive(reset code: ErrorCode?, onClosed stream: UInt32, _ origin: FrameOrigin)
  /// GOAWAY.
  mutating func receive(goAway lastStream: UInt32, _ code: ErrorCode, debugData: RawSpan, _ origin: FrameOrigin)
  /// SETTINGS, which is no acknowledgement.
  mutating func receive(settings: [Setting], _ origin: FrameOrigin)
  /// SETTINGS were acknowledged: the sender of the acknowledgement keeps to them from here on.
  mutating func receiveAcknowledgement(inForce settings: Settings, _ origin: FrameOrigin)
  /// SETTINGS or acknowledgements may be missing: the limits that are in force are no longer known.
  mutating func receiveLossOfSettings()
  /// Entries of a side's table are lost, and no bytes are missing: a block broke a rule or exceeded a limit.
  mutating func receiveLossOfTable(of side: FrameReader.Side)
  /// PRIORITY, which RFC 9113 section 5.3 deprecates.
  mutating func receivePriority(_ origin: FrameOrigin)
  /// PING.
  mutating func receive(ping: UInt64, isAcknowledgement: Bool, _ origin: FrameOrigin)
  /// A rule was broken.
  mutating func receive(_ violation: Violation, _ origin: FrameOrigin)
  /// Bytes are missing. `losesFrames`: whole frames may have been among them. `losesTable`: so may a field block, or a
  /// part of one.
  mutating func receive(missing origin: FrameOrigin, losesFrames: Bool, losesTable: Bool)
  /// Bytes are there and belong to no frame that can be read.
  mutating func receive(unread cause: FrameReader.UnreadCause, _ origin: FrameOrigin)
  /// No other event concerns the stream; its slot is free.
  mutating func closed(_ place: StreamPlace, _ reason: StreamEnd)
  /// Whether reading is to pause until what the handler keeps was taken from it: a few bytes can refer to long fields.
  var isFull: Bool { get }
}

extension ConnectionHandler {
  public mutating func receiveLossOfTable(of side: FrameReader.Side) {}
  public mutating func receivePriority(_ origin: FrameOrigin) {}
  public var isFull: Bool { false }
}

/// Why a stream is no longer open.
public enum StreamEnd: Sendable, Hashable {
  /// Both sides ended it, or one reset it.
  case closed
  /// It was forgotten, because more streams are open than `ConnectionReader.Limits.openStreams`.
  case limit
  /// The connection ended before it did.
  case connectionEnd
}
