/// What is in a decoded trace, counted: the numbers that `TracePage` shows.
///
/// Times are seconds since `start`. Strings may hold anything: they are of a recording.
public struct TraceSummary: Sendable, Equatable {
  public var sources: [Source] = []
  /// When the first packet or record was, as it is to be shown; empty when nothing has a time.
  public var started = ""
  public var length = 0.0
  /// What was wrong with the input as a file.
  public var warnings: [String] = []

  public var packets = 0
  public var connectionCount = 0
  public var notifications = 0
  public var frameBytes = 0
  /// Notifications by command 0, 1, 2.
  public var commands = [0, 0, 0]
  /// By priority; -1 for none.
  public var priorities: [Int: Int] = [:]
  /// What expirations say, in words, in the order in which they are listed.
  public var expirations: [Count] = []
  public var fates = Fates()
  public var missingBytes = 0
  public var malformed = 0
  public var undecrypted = 0
  /// Something of the protocol was read; else nothing is known of what was sent.
  public var hasRead = true
  /// Discarded notifications that were too many to be looked for again.
  public var notFollowed = 0
  /// Bytes that the trace does not hold, by reason.
  public var gaps: [Count] = []
  public var findings: [Finding] = []

  /// Notifications and their bytes over time, and error responses and feedback tuples in the same bins.
  public var sent = Series()
  public var errorCounts: [Int] = []
  public var feedbackCounts: [Int] = []

  /// The first of them; `connectionCount` is how many there were.
  public var connections: [Connection] = []
  public var errorCount = 0
  /// By status, in its order.
  public var statuses: [Status] = []
  /// The first of them; `errorCount` is how many there were.
  public var errors: [ErrorResponse] = []

  /// How many segments ended how many notifications, and how many bytes of them.
  public var perSegment: [Bucket] = []
  public var bytesPerSegment: [Bucket] = []
  public var payloads: [Bucket] = []

  public var tokens = Tokens()
  public var feedback = Feedback()

  public init() {}

  public struct Source: Sendable, Equatable {
    public var name: String
    public var format: String
    public init(name: String, format: String) { (self.name, self.format) = (name, format) }
  }

  public struct Count: Sendable, Equatable {
    public var name: String
    public var count: Int
    public init(_ name: String, _ count: Int) { (self.name, self.count) = (name, count) }
  }

  public struct Bucket: Sendable, Equatable {
    public var value: Int
    public var count: Int
    public init(_ value: Int, _ count: Int) { (self.value, self.count) = (value, count) }
  }

  public struct Fates: Sendable, Equatable {
    public var accepted = 0
    public var rejected = 0
    public var discarded = 0
    public var unknown = 0
    public init() {}
  }

  public struct Finding: Sendable, Equatable {
    public var text: String
    public var firstPacket: Int?
    public var tone: Tone
    public init(_ text: String, firstPacket: Int?, tone: Tone) {
      (self.text, self.firstPacket, self.tone) = (text, firstPacket, tone)
    }
  }

  /// Equal bins of time.
  public struct Series: Sendable, Equatable {
    /// Seconds since the trace's start of the first bin's begin, which may be before it.
    public var from = 0.0
    public var width = 1.0
    public var counts: [Int] = []
    public var bytes: [Int] = []
    public init() {}
  }

  public struct Connection: Sendable, Equatable {
    public var number = 0
    public var service = ""
    /// Address and port; empty when the trace does not tell.
    public var client = ""
    public var server = ""
    /// What the client's certificate is for.
    public var topic = ""
    /// Version and cipher suite; empty without TLS.
    public var tls = ""
    public var isResumed: Bool?
    /// Why nothing, or not all, of it could be decrypted.
    public var problem = ""
    public var isDecrypted = true
    public var opened: Double?
    /// The first and the last notification, error response or feedback tuple.
    public var firstRecord: Double?
    public var lastRecord: Double?
    public var closed: Double?
    /// Who ended it, as records say it: `client_fin`.
    public var end = ""
    public var notifications = 0
    public var frameBytes = 0
    public var feedbackTuples = 0
    public var errorResponses = 0
    public var fates = Fates()
    /// Of its first error response: `8 invalid token`.
    public var firstError = ""
    /// Its notifications in the bins of the trace's `sent`; `nil` when they were not kept apart.
    public var sent: [Int]?
    public init() {}
  }

  public struct Status: Sendable, Equatable {
    public var status: Int
    public var name: String
    public var count: Int
    public init(_ status: Int, _ name: String, _ count: Int) {
      (self.status, self.name, self.count) = (status, name, count)
    }
  }

  public struct ErrorResponse: Sendable, Equatable {
    public var connection = 0
    public var time: Double?
    public var packet: Int?
    public var status = 0
    public var name = ""
    public var identifier = 0
    /// The notification that it names, counted from 0 on its connection; `nil` when none was seen.
    public var notification: Int?
    public var accepted: Int?
    public var discarded: Int?
    /// Of those that were discarded, how many were seen again later.
    public var sentAgain: Int?
    public var latency: Double?
    public init() {}
  }

  public struct Tokens: Sendable, Equatable {
    public var distinct = 0
    public var isEstimate = false
    public var repeated = 0
    /// The first bytes in hexadecimal, and how often it was written to.
    public var most: [Count] = []
    public var rejected: [Count] = []
    public init() {}
  }

  public struct Feedback: Sendable, Equatable {
    public var connections = 0
    public var tuples = 0
    public var tokens = 0
    public var isCut = false
    public var sentToLater = 0
    public var sentToLaterTokens = 0
    /// Seconds from the time that a tuple tells to when it was read: median and largest.
    public var ageMedian: Double?
    public var ageMost: Double?
    /// The times that the first and the last tuple tell.
    public var first = ""
    public var last = ""
    public init() {}
  }
}
