/// The counts of a trace for its report: an inspection's findings, and series over time.
///
/// Names that end in S are seconds since the trace's start. Strings may hold anything: they are of a recording.
public struct TraceReport: Sendable, Equatable, Codable {
  public var inspection = InspectionReport()
  /// The files that the records are of.
  public var sources: [Source] = []
  /// Warnings about the input file.
  public var warnings: [String] = []
  /// The earliest time in the trace: UTC, RFC 3339, to milliseconds; `nil` if there is none.
  public var started: String?
  /// Seconds from the earliest to the latest time in the trace.
  public var lengthS = 0.0
  /// Bytes of all notifications' frames.
  public var frameBytes = 0
  /// Notifications, and the bytes of their frames.
  public var sent = Series()
  /// Error responses and feedback tuples in the bins of `sent`.
  public var errorResponses: [Int] = []
  public var feedbackTuples: [Int] = []
  /// Times from notifications to their answers over HTTP/2, by when the answers came; `nil` without any.
  public var latencies: Latencies?
  /// The connections that the inspection lists, in its order.
  public var connections: [Connection] = []
  /// Times of the error responses that the inspection lists, in its order; in seconds since the start.
  public var errorTimesS: [Double?] = []
  /// The number of segments by the notifications that ended in them, and by the bytes of these; both in ascending
  /// order.
  public var perSegment: [Bucket] = []
  public var bytesPerSegment: [Bucket] = []
  public var payloads: [Bucket] = []
  /// Notifications by their priority.
  public var priorities: [Int: Int] = [:]
  public var withoutPriority = 0
  public var expirations = Expirations()
  public var tokens = Tokens()
  public var feedback = Feedback()
  /// The outcomes of the distinct notifications; `nil` when they were not followed.
  public var stories: Stories?

  public init() {}

  /// A file of the trace.
  public struct Source: Sendable, Equatable, Codable {
    public var name: String
    public var format: String
    package init(name: String, format: String) { (self.name, self.format) = (name, format) }
  }

  /// How often a value occurred.
  public struct Bucket: Sendable, Equatable, Codable {
    public var value: Int
    public var count: Int
    package init(_ value: Int, _ count: Int) { (self.value, self.count) = (value, count) }
  }

  /// Equal bins of time.
  public struct Series: Sendable, Equatable, Codable {
    /// The beginning of the first bin in seconds since the start, which may be negative.
    public var fromS = 0.0
    public var widthS = 1.0
    public var counts: [Int] = []
    public var bytes: [Int] = []
    package init() {}
  }

  /// Times to answers in equal bins of time.
  public struct Latencies: Sendable, Equatable, Codable {
    /// The beginning of the first bin in seconds since the start, which may be negative.
    public var fromS = 0.0
    public var widthS = 1.0
    /// The answers of each bin.
    public var counts: [Int] = []
    /// The median of each bin in milliseconds, and the value that 99 % of its answers do not exceed; `nil` without any.
    public var p50Ms: [Double?] = []
    public var p99Ms: [Double?] = []
    package init() {}
  }

  /// A connection over time. Its counts are in the inspection's row.
  public struct Connection: Sendable, Equatable, Codable {
    public var openedS: Double?
    /// The first and the last notification, error response or feedback tuple.
    public var firstRecordS: Double?
    public var lastRecordS: Double?
    public var closedS: Double?
    /// Bytes of its notifications' frames.
    public var frameBytes = 0
    public var errorResponses = 0
    /// The connection's notifications in the bins of the trace's `sent`; `nil` if they are not kept separately.
    public var sent: [Int]?
    package init() {}
  }

  /// Notifications by what their expiration says, seen from when they were written.
  public struct Expirations: Sendable, Equatable, Codable {
    public var none = 0
    public var zero = 0
    public var past = 0
    public var withinHour = 0
    public var withinDay = 0
    public var withinFourWeeks = 0
    public var later = 0
    package init() {}
  }

  /// Device tokens, distinguished by their first eight bytes.
  public struct Tokens: Sendable, Equatable, Codable {
    /// The beginning of a token, and its count.
    public struct Row: Sendable, Equatable, Codable {
      /// The first bytes of the token, in hexadecimal.
      public var prefix: String
      public var count: Int
      package init(_ prefix: String, _ count: Int) { (self.prefix, self.count) = (prefix, count) }
    }

    public var distinct = 0
    /// There were too many to count each; both numbers are of a sample.
    public var isEstimate = false
    /// Written to more than once.
    public var repeated = 0
    /// The counted tokens with the most notifications.
    public var most: [Row] = []
    package init() {}
  }

  /// The tokens that the feedback service listed. How many tuples on how many connections is in the inspection.
  public struct Feedback: Sendable, Equatable, Codable {
    /// Distinct tokens that were listed.
    public var tokens = 0
    /// More tokens were listed than are remembered.
    public var isCut = false
    /// Notifications to listed tokens that were written after the listing.
    public var sentToLater = 0
    public var sentToLaterTokens = 0
    /// Seconds from a tuple's timestamp to the time when it was read.
    public var ageS: Distribution?
    /// The earliest and latest timestamp in tuples: UTC, RFC 3339.
    public var firstTimestamp: String?
    public var lastTimestamp: String?
    package init() {}
  }
}

extension TraceReport {
  /// The outcomes of the distinct notifications, each one token, payload and topic, over all of its sendings.
  public struct Stories: Sendable, Equatable, Codable {
    /// A name, as `accepted_twice`, and its count.
    public struct Outcome: Sendable, Equatable, Codable {
      public var name: String
      public var count: Int
      package init(_ name: String, _ count: Int) { (self.name, self.count) = (name, count) }
    }

    /// A notification that an error response refused.
    public struct Refusal: Sendable, Equatable, Codable {
      public var connection: Int
      /// Its number on the connection, from 0.
      public var notification: Int
      /// The token in hexadecimal.
      public var token: String
      /// The payload's beginning.
      public var payload: String
      package init(connection: Int, notification: Int, token: String, payload: String) {
        (self.connection, self.notification, self.token, self.payload) = (connection, notification, token, payload)
      }
    }

    /// A notification that was discarded and not seen again.
    public struct Missing: Sendable, Equatable, Codable {
      /// Whether it is proven lost; otherwise it may have been sent where the trace does not show it.
      public var isLost: Bool
      /// Its last sending: the connection, and the number on it, from 0.
      public var connection: Int
      public var notification: Int
      /// When it was written: UTC, RFC 3339, to milliseconds; `nil` if the trace has no times.
      public var time: String?
      /// The token in hexadecimal.
      public var token: String
      /// The payload's beginning.
      public var payload: String
      package init(
        isLost: Bool, connection: Int, notification: Int, time: String?, token: String, payload: String
      ) {
        (self.isLost, self.connection, self.notification) = (isLost, connection, notification)
        (self.time, self.token, self.payload) = (time, token, payload)
      }
    }

    /// The outcomes of the notifications that were discarded on a connection, over all of their sendings.
    public struct Loss: Sendable, Equatable, Codable {
      public var connection: Int
      public var outcomes: [Outcome]
      /// The number of these that were sent again, with any outcome.
      public var sentAgain: Int
      /// Seconds from the error response to the first and the last sending again; `nil`: none has a time.
      public var firstResentS: Double?
      public var lastResentS: Double?
      package init(
        connection: Int, outcomes: [Outcome], sentAgain: Int, firstResentS: Double? = nil, lastResentS: Double? = nil
      ) {
        (self.connection, self.outcomes, self.sentAgain) = (connection, outcomes, sentAgain)
        (self.firstResentS, self.lastResentS) = (firstResentS, lastResentS)
      }
    }

    /// A token that was rejected, or sent to after feedback listed it.
    public struct Token: Sendable, Equatable, Codable {
      /// The token in hexadecimal.
      public var token: String
      public var topic: String?
      public var sent: Int
      public var rejected: Int
      public var status: Int?
      /// The reason of an answer over HTTP/2.
      public var reason: String?
      /// Sendings after it was listed, or after its app was gone.
      public var sentInVain: Int
      package init(
        token: String, topic: String?, sent: Int, rejected: Int, status: Int?, reason: String? = nil, sentInVain: Int
      ) {
        (self.token, self.topic, self.sent, self.rejected) = (token, topic, sent, rejected)
        (self.status, self.reason, self.sentInVain) = (status, reason, sentInVain)
      }
    }

    /// All outcomes, in the order in which they are decided.
    public var outcomes: [Outcome] = []
    /// The reasons why notifications are open, with their counts.
    public var openReasons: NamedCounts<OpenReason> = [:]
    /// The part of `openReasons` whose sendings were all discarded.
    public var notSeenAgain: NamedCounts<OpenReason> = [:]
    /// Gaps in what providers sent, and their bytes.
    public var gaps = 0
    public var gapBytes = 0
    public var recovery: RecoveryTimes?
    /// All sendings, and the part of them that was discarded.
    public var sendings = 0
    public var discarded = 0
    /// The number of discarded sendings that were sent again, and the times from the error response to that.
    public var sentAgain = 0
    public var resend: RecoveryTimes?
    /// The discarded sendings that no other followed, of notifications of which no sending was accepted or rejected.
    public var notSentAgain = 0
    /// Open notifications of which no sending was accepted or rejected.
    public var undecided = 0
    /// Tokens that were listed by feedback, or rejected with status 8, after they were last accepted.
    public var deadTokens = 0
    /// Tokens that were answered with 410 after they were last accepted (HTTP/2).
    public var unregisteredTokens = 0
    /// Refused notifications, at most as many as error responses are listed.
    public var refusals: [Refusal] = []
    /// Discarded notifications that were not seen again: those that are lost, and those that may be, each at most as
    /// many as error responses are listed.
    public var missing: [Missing] = []
    /// Discarded notifications by connection, at most as many as error responses are listed.
    public var losses: [Loss] = []
    /// The worst first.
    public var worstTokens: [Token] = []
    package init() {}

    public var count: Int { outcomes.reduce(0) { $0 + $1.count } }
  }
}

extension TraceReport {
  /// A connection's counts and its activity over time.
  public struct ListedConnection: Sendable, Equatable {
    public var row: InspectionReport.ConnectionRow
    public var course: Connection
  }

  public var listedConnections: [ListedConnection] {
    zip(inspection.connections, connections).map { ListedConnection(row: $0, course: $1) }
  }

  /// An error response, and when it was.
  public struct ListedError: Sendable, Equatable {
    public var row: InspectionReport.ErrorRow
    public var timeS: Double?
  }

  public var listedErrors: [ListedError] {
    zip(inspection.errors, errorTimesS).map { ListedError(row: $0, timeS: $1) }
  }
}
