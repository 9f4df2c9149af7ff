import Bytes
import HTTP2
import PushModel

/// One request of a provider: numbers by value, text as ranges in its bytes, which come with it and are borrowed.
///
/// A field that was absent is `nil`, or not present. One that needs a lost entry of the header table is absent, too, and
/// in `uncertain`: nothing is guessed. The provider token is in no range; its number is.
public struct ProviderRequest: Sendable, Equatable {
  /// Fields that may be there, or have other values than none, because what they refer to is lost.
  public struct Uncertain: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let token = Uncertain(rawValue: 1 << 0)
    public static let topic = Uncertain(rawValue: 1 << 1)
    public static let pushType = Uncertain(rawValue: 1 << 2)
    public static let priority = Uncertain(rawValue: 1 << 3)
    public static let expiration = Uncertain(rawValue: 1 << 4)
    public static let apnsID = Uncertain(rawValue: 1 << 5)
    public static let collapseID = Uncertain(rawValue: 1 << 6)
    public static let channelID = Uncertain(rawValue: 1 << 7)
    public static let requestID = Uncertain(rawValue: 1 << 8)
    /// The provider token, and whether there is one.
    public static let trust = Uncertain(rawValue: 1 << 9)
    /// Fields without a property here.
    public static let headers = Uncertain(rawValue: 1 << 10)
    /// Some content is missing.
    public static let payload = Uncertain(rawValue: 1 << 11)
    /// Frames that open or close streams may be missing.
    public static let openStreams = Uncertain(rawValue: 1 << 12)
    /// SETTINGS, or their acknowledgement, may be missing.
    public static let streamLimit = Uncertain(rawValue: 1 << 13)

    /// Everything that a lost field block leaves open.
    static let all: Uncertain = [
      .token, .topic, .pushType, .priority, .expiration, .apnsID, .collapseID, .channelID, .requestID, .trust, .headers,
    ]

    private static let names: [(Uncertain, String)] = [
      (.token, "token"), (.topic, "topic"), (.pushType, "push_type"), (.priority, "priority"),
      (.expiration, "expiration"), (.apnsID, "apns_id"), (.collapseID, "collapse_id"), (.channelID, "channel_id"),
      (.requestID, "request_id"), (.trust, "trust"), (.headers, "headers"), (.payload, "payload"),
      (.openStreams, "open_streams"), (.streamLimit, "stream_limit"),
    ]

    /// The fields with these names in records.
    package init(fieldNames: [String]) {
      self = Self.names.reduce(into: []) { if fieldNames.contains($1.1) { $0.insert($1.0) } }
    }

    /// The names of the fields in records.
    public var fieldNames: [String] { Self.names.filter { contains($0.0) }.map(\.1) }
  }

  /// A field that no property has.
  public struct Header: Sendable, Equatable {
    public var name: ByteField
    public var value: ByteField

    package init(name: ByteField, value: ByteField) { (self.name, self.value) = (name, value) }
  }

  /// What became of the request itself.
  public enum Completion: Sendable, Hashable {
    /// END_STREAM was sent.
    case complete
    /// It was reset, or the provider ended the connection, before END_STREAM.
    case incomplete
    /// END_STREAM may be missing from the recording.
    case unknown
  }

  /// What it is for.
  public var target: RequestTarget
  /// The number among the connection's notifications, from 0 in the order of their HEADERS; `nil` for other requests.
  public var notification: Int?
  public var stream: UInt32
  /// The arrival of the field block's last byte; `nil` if the block is lost.
  public var started: Arrival?
  /// The arrival of END_STREAM; `nil` without.
  public var ended: Arrival?
  /// The arrival of its last frame that is there.
  public var latest = Arrival(time: 0, packet: 0)
  public var completion = Completion.unknown
  /// The stream offset of the first frame that is there.
  public var offset: Int
  /// The bytes of all its frames that are there.
  public var length = 0

  /// The path, as it was sent.
  public var path = ByteField()
  public var method = ByteField()
  /// The `:authority` or `host`.
  public var authority = ByteField()
  /// The device token in hexadecimal, as it stands in the path.
  public var tokenText = ByteField()
  /// The device token's bytes; not present if the text is not hexadecimal.
  public var token = ByteField()
  /// The bundle identifier in the path of a broadcast or a channel request.
  public var bundle = ByteField()
  public var topic = ByteField()
  public var pushType = ByteField()
  public var apnsID = ByteField()
  public var collapseID = ByteField()
  public var channelID = ByteField()
  public var requestID = ByteField()
  /// `apns-priority`; `nil` if it is absent, or no number below 256: then it is in `headers`.
  public var priority: UInt8?
  /// `apns-expiration` in seconds since 1970 UTC, below 2^63; 0: one attempt. `nil` if it is absent, or no such number:
  /// then it is in `headers`.
  public var expiration: UInt64?
  /// The place of the provider token among those of the session, from 1; `nil` without one, or beyond the limit.
  public var providerToken: Int?
  /// Whether that is its number among all tokens that the connection has used, of which none can be missing.
  public var isProviderTokenNumbered = false
  /// Whether there is an `authorization` field with a provider token, or with what has the form of one.
  public var hasAuthorization = false
  /// Whether there is an `authorization` field with something else, which leaves the trust uncertain where no
  /// certificate is known.
  public var hasOtherAuthorization = false
  /// Fields that no property has, in their order, without pseudo-fields.
  public var headers: [Header] = []
  /// The content that was kept.
  public var payload = ByteField()
  /// The length of the content that is there, also beyond what was kept.
  public var payloadLength = 0
  /// The value of `content-length`, which is in `headers` as well; `nil` if it is absent, or no number.
  public var contentLength: Int?
  /// What may be there besides.
  public var uncertain: Uncertain = []
  /// The streams that were open at its HEADERS, with its own; `nil` if that is not known.
  public var openStreams: Int?
  /// The server's limit on them that was in force; `nil` without one, or if it is not known.
  public var streamLimit: Int?

  package init(
    target: RequestTarget, stream: UInt32, offset: Int, openStreams: Int?, streamLimit: Int? = nil
  ) {
    (self.target, self.stream, self.offset) = (target, stream, offset)
    (self.openStreams, self.streamLimit) = (openStreams, streamLimit)
  }

  /// Whether all content is in `payload`.
  public var isPayloadWhole: Bool { !uncertain.contains(.payload) && payload.length == payloadLength }
}

/// The final answer to a request: numbers by value, text as ranges in its bytes, which come with it and are borrowed.
public struct ProviderResponse: Sendable, Equatable {
  public var stream: UInt32
  /// What the request is for.
  public var target: RequestTarget
  /// The number of the notification that it answers; `nil` for other requests.
  public var notification: Int?
  /// The HTTP status; `nil` if it is lost, or no three digits.
  public var status: Int?
  /// The reason of a rejection.
  public var reason: ProviderReason?
  /// The `timestamp` of the content in milliseconds since 1970 UTC: when APNs learned that the token is not valid.
  public var timestamp: Int?
  public var apnsID = ByteField()
  public var apnsUniqueID = ByteField()
  public var requestID = ByteField()
  public var channelID = ByteField()
  /// The content that was kept.
  public var body = ByteField()
  /// The length of the content that is there, also beyond what was kept.
  public var bodyLength = 0
  /// Whether fields or content may be missing.
  public var isUncertain = false
  /// The arrival of the field block's last byte.
  public var started: Arrival
  /// The arrival of END_STREAM; `nil` without.
  public var ended: Arrival?
  /// The time in nanoseconds from the request's END_STREAM to the answer's fields; `nil` if one of them is not known, or
  /// the request's end was captured later.
  public var latency: Int64?
  /// The stream offset of its first frame.
  public var offset: Int
  /// The bytes of all its frames that are there.
  public var length: Int
}

/// Why a notification was certainly not processed.
public enum DiscardCause: String, Sendable, Hashable, CaseIterable {
  /// The server reset the stream with REFUSED_STREAM (RFC 9113 section 8.7).
  case refusedStream = "refused_stream"
  /// Its stream is above the last one of the server's GOAWAY (RFC 9113 section 6.8).
  case goAway = "goaway"
  /// It never ended (RFC 9113 section 8.1).
  case incomplete
}

/// What became of a notification. Each has one, when its stream is closed, or at the connection's end.
public struct FateDecision: Sendable, Equatable {
  public var notification: Int
  public var stream: UInt32
  public var fate: Fate
  /// The cause of `discarded`.
  public var cause: DiscardCause?
  /// The status of an accepted or rejected one.
  public var status: Int?
  /// The reason of a rejected one.
  public var reason: ProviderReason?
  /// When it was decided.
  public var arrival: Arrival
}

/// What happens on a connection of a provider.
public enum ProviderEvent: Sendable {
  /// A request has ended, or will not end. Its ranges are in the bytes of the event.
  case request(ProviderRequest)
  /// A provider token that the connection has not used before; requests refer to its number. One that cannot be read has
  /// a problem.
  case providerToken(Result<ProviderToken, ProviderToken.Problem>, number: Int)
  /// A final answer has ended, or will not end. Its ranges are in the bytes of the event.
  case response(ProviderResponse)
  case fate(FateDecision)
  /// GOAWAY. `discarded` notifications are open on streams above the last one, `open` ones on others; `nil` if frames may
  /// be missing, or the path of an open request.
  case goAway(
    lastStream: UInt32, error: ErrorCode, reason: ProviderReason?, discarded: Int?, open: Int?, FrameOrigin)
  /// RST_STREAM; the error is `nil` if it is cut off.
  case reset(stream: UInt32, error: ErrorCode?, notification: Int?, FrameOrigin)
  case settings([Setting], FrameOrigin)
  case ping(UInt64, isAcknowledgement: Bool, FrameOrigin)
  /// A rule of RFC 9113 or RFC 7541 was broken.
  case violation(Violation, FrameOrigin)
  /// Bytes are missing; whether table entries are lost.
  case missing(FrameOrigin, losesTable: Bool)
  /// Entries of a side's header table are lost, because a block broke a rule or exceeded a limit.
  case tableLost(FrameReader.Side)
  /// Bytes are there and cannot be read.
  case unread(FrameReader.UnreadCause, FrameOrigin)
}

/// Receives what happens on a connection of a provider. `bytes` are those of a request or a response, and empty for other
/// events; they are borrowed for the call.
public protocol ProviderHandler {
  mutating func receive(_ event: ProviderEvent, _ bytes: RawSpan)
}
