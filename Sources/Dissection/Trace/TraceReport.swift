/// What is in a trace, counted for a report: an inspection's findings, and when everything was.
public struct TraceReport: Sendable {
  public var inspection = InspectionReport()
  /// What files the records are of.
  public var sources: [Source] = []
  /// UNIX nanoseconds of the first and the last thing with a time; `nil` when nothing has one.
  public var start: Int64?
  public var end: Int64?
  /// Notifications and their frames' bytes.
  public var sent = TimeBins()
  public var errors = TimeBins()
  public var feedback = TimeBins()
  /// Of the connections that the inspection lists, in its order.
  public var connections: [Connection] = []
  /// Of the error responses that the inspection lists, in its order: UNIX nanoseconds.
  public var errorTimes: [Int64?] = []
  /// Bytes of all notifications' frames.
  public var frameBytes = 0
  /// How many segments ended how many notifications, or how many bytes of them.
  public var perSegment: [(value: Int, count: Int)] = []
  public var bytesPerSegment: [(value: Int, count: Int)] = []
  public var payloads: [(value: Int, count: Int)] = []
  /// By priority; `nil` for none.
  public var priorities: [UInt8?: Int] = [:]
  public var expirations: [Expiration: Int] = [:]
  public var tokens = Tokens()
  public var listed = Listed()

  public struct Source: Sendable {
    public var name: String
    public var format: String
    public var linkTypes: [String]
  }

  public struct Connection: Sendable {
    /// UNIX nanoseconds.
    public var opened: Int64?
    /// Of the first and the last notification, error response or feedback tuple.
    public var firstRecord: Int64?
    public var lastRecord: Int64?
    public var closed: Int64?
    /// Of its notifications' frames.
    public var frameBytes = 0
    public var errorResponses = 0
    public var feedbackTuples = 0
    /// Its notifications over time; `nil` when there were too many connections.
    public var sent: TimeBins?
  }

  /// What an expiration says, seen from when its notification was written.
  public enum Expiration: Int, Sendable, CaseIterable {
    case none, zero, past, withinHour, withinDay, withinFourWeeks, later
  }

  public struct Tokens: Sendable {
    public struct Row: Sendable {
      /// The first eight bytes in hexadecimal.
      public var prefix: String
      public var count: Int
    }

    /// Told apart by their first eight bytes.
    public var distinct = 0
    /// There were too many to count each; both numbers are of a sample.
    public var isEstimate = false
    /// Written to more than once.
    public var repeated = 0
    /// The most repeated of those that were counted.
    public var most: [Row] = []
  }

  /// Tokens that the feedback service listed.
  public struct Listed: Sendable {
    public var tokens = 0
    /// More came than are remembered.
    public var isCut = false
    /// Notifications to one of them that were written after it had been listed.
    public var sentToLater = 0
    public var sentToLaterTokens = 0
    /// Seconds from the time that a tuple tells to the one at which it was read.
    public var ageS: Distribution?
    public var firstTimestamp: UInt32?
    public var lastTimestamp: UInt32?
  }

  public init() {}
}
