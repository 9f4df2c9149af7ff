import HTTP2
import PacketCapture
import ProviderAPI

/// A record of a connection over HTTP/2 besides its notifications.
public enum ProviderRecord: Sendable, Equatable {
  case response(ResponseRecord)
  case goAway(GoAwayRecord)
  case reset(ResetRecord)
  case settings(SettingsRecord)
  case channelRequest(ChannelRequestRecord)

  /// Where it is.
  public var place: RecordPlace {
    switch self {
    case .response(let record): record.place
    case .goAway(let record): record.place
    case .reset(let record): record.place
    case .settings(let record): record.place
    case .channelRequest(let record): record.place
    }
  }

  /// Its type.
  public var type: RecordType {
    switch self {
    case .response: .response
    case .goAway: .goAway
    case .reset: .reset
    case .settings: .settings
    case .channelRequest: .channelRequest
    }
  }
}

/// The final answer to a request.
public struct ResponseRecord: Sendable, Equatable {
  /// Its END_STREAM, or its last frame that is there, and the bytes of its frames.
  public var place: RecordPlace
  public var stream: Int
  /// The HTTP status; `nil` if it is lost.
  public var status: Int?
  /// The reason of a rejection.
  public var reason: String?
  /// When APNs learned that the token is not valid, in milliseconds since 1970 UTC.
  public var timestamp: Int?
  public var apnsID: String?
  public var apnsUniqueID: String?
  public var requestID: String?
  public var channelID: String?
  /// The index of the notification that it answers; `nil` for other requests.
  public var notification: Int?
  /// Nanoseconds from the request's END_STREAM to the answer's HEADERS.
  public var latencyNanoseconds: Int64?
  /// Whether fields may be missing.
  public var isUncertain = false

  package init(place: RecordPlace, stream: Int) { (self.place, self.stream) = (place, stream) }

  /// What it says of its notification.
  package var answer: ProviderAnswer {
    ProviderAnswer(
      status: status, reason: reason, isReasonUncertain: reason == nil && isUncertain,
      latencyNanoseconds: latencyNanoseconds)
  }
}

/// A GOAWAY frame.
public struct GoAwayRecord: Sendable, Equatable {
  public var place: RecordPlace
  public var direction: Direction
  public var lastStream: Int
  /// The error code by its name.
  public var error: String
  /// The reason in the debug data.
  public var reason: String?
  /// The notifications without an answer on streams above the last one, which are certainly not processed; `nil` for
  /// the client's.
  public var discarded: Int?
  /// The notifications without an answer on other streams; `nil` for the client's.
  public var unknown: Int?

  package init(
    place: RecordPlace, direction: Direction, lastStream: Int, error: String, reason: String? = nil,
    discarded: Int? = nil, unknown: Int? = nil
  ) {
    (self.place, self.direction, self.lastStream, self.error) = (place, direction, lastStream, error)
    (self.reason, self.discarded, self.unknown) = (reason, discarded, unknown)
  }
}

/// A RST_STREAM frame.
public struct ResetRecord: Sendable, Equatable {
  public var place: RecordPlace
  public var direction: Direction
  public var stream: Int
  /// The error code by its name; `nil` if it is cut off.
  public var error: String?
  /// The index of the stream's notification; `nil` if it has none.
  public var notification: Int?

  package init(place: RecordPlace, direction: Direction, stream: Int, error: String?, notification: Int?) {
    (self.place, self.direction, self.stream) = (place, direction, stream)
    (self.error, self.notification) = (error, notification)
  }
}

/// A SETTINGS frame that is no acknowledgement.
public struct SettingsRecord: Sendable, Equatable {
  /// A setting by its name, without `SETTINGS_`.
  public struct Value: Sendable, Equatable {
    public var name: String
    public var value: Int

    package init(name: String, value: Int) { (self.name, self.value) = (name, value) }
  }

  public var place: RecordPlace
  public var direction: Direction
  public var values: [Value]

  package init(place: RecordPlace, direction: Direction, values: [Value]) {
    (self.place, self.direction, self.values) = (place, direction, values)
  }
}

/// A request of channel management, with its answer.
public struct ChannelRequestRecord: Sendable, Equatable {
  /// The request's END_STREAM, and the bytes of its frames.
  public var place: RecordPlace
  public var stream: Int
  public var action: ChannelAction
  public var bundle: String?
  /// The channel: of a request to create one, that of its answer.
  public var channelID: String?
  public var requestID: String?
  /// The status of the answer; `nil` if there is none, or it is lost.
  public var status: Int?
  public var reason: String?
  /// Nanoseconds from the request's END_STREAM to the answer's HEADERS.
  public var latencyNanoseconds: Int64?

  package init(place: RecordPlace, stream: Int, action: ChannelAction) {
    (self.place, self.stream, self.action) = (place, stream, action)
  }
}

/// What a connection over HTTP/2 has besides the counts of every connection.
public struct HTTP2Summary: Sendable, Equatable {
  /// Final answers to requests of any kind.
  public var responses = 0
  /// Rejected notifications by reason, or by status without one, sorted by name.
  public var rejections: [NamedCount] = []
  /// Different provider tokens; `nil` if there may be more than were counted.
  public var providerTokens: Int?
  /// The most streams that were open at once; `nil` if frames may be missing.
  public var openStreamsMaximum: Int?
  /// The server's first limit on open streams that was in force; `nil` without one, or if it is not known.
  public var firstStreamLimit: Int?
  /// The limit at the end, likewise.
  public var lastStreamLimit: Int?
  /// GOAWAY frames of the server.
  public var goAways = 0
  /// RST_STREAM frames of both sides.
  public var resets = 0
  /// Requests whose provider token was sent in full and added to no header table, and the bytes of these values as they
  /// were coded.
  public var literalTokens = 0
  public var literalTokenBytes = 0
  /// PRIORITY frames of the client.
  public var priorityFrames = 0
  /// PING frames of the client, and their answers.
  public var pings = Pings()
  /// How often the client's header table was lost.
  public var clientTableLosses = 0
  /// How often the server's header table was lost.
  public var serverTableLosses = 0

  /// PING frames of the client, and their answers.
  public struct Pings: Sendable, Equatable {
    /// Those of the client that are no answers.
    public var sent = 0
    /// Those that are known to be answered.
    public var answered = 0
    /// The shortest and the longest time to an answer in nanoseconds; `nil` if none is known.
    public var leastNanoseconds: Int64?
    public var greatestNanoseconds: Int64?
    /// When the latest answer came.
    public var lastAnswer = Timestamp.none

    package init() {}
  }

  /// A count by name.
  public struct NamedCount: Sendable, Equatable {
    public var name: String
    public var count: Int

    package init(name: String, count: Int) { (self.name, self.count) = (name, count) }
  }

  package init() {}
}
