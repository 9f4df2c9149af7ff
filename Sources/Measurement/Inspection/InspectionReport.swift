/// The counts of a recording: the document of `apnscope inspect --format json` (`InspectionDocument`).
///
/// Names in JSON are snake case; times RFC 3339; `nil` is left out.
public struct InspectionReport: Sendable, Equatable, Codable {
  public var files: [File] = []
  /// The selection that all figures are of, as options of the command; `nil`: all records.
  public var selection: [String]?
  public var summary = Summary()
  public var connections: [ConnectionRow] = []
  public var connectionsNotListed = 0
  public var missingBytes = 0
  /// Connections with TLS, by whether they could be opened, and what that cost.
  public var tls = TLSTotals()
  public var gapsByReason: NamedCounts<CapturedGap> = [:]
  public var malformed = 0
  public var notificationsByCommand = [0, 0, 0]
  public var fates = Fates()
  /// Counts of the HTTP/2 provider API; `nil` without any connection of it.
  public var http2: Requests?
  /// Counts of the device channel; `nil` without any connection of it.
  public var devices: DeviceCounts?
  /// Counts of local push; `nil` without any connection of it.
  public var localPush: LocalPushCounts?
  /// Outcomes by distinct notification, over all of its sendings; `nil` if none was sent.
  public var stories: Stories?
  public var errorCount = 0
  /// Keys are `Int` because JSON then has an object; of other numbers it has a list.
  public var errorsByStatus: [Int: Int] = [:]
  public var errors: [ErrorRow] = []
  public var feedbackConnections = 0
  public var feedbackTuples = 0
  /// Over the seconds in which any were sent.
  public var notificationsPerSecond: Distribution?
  public var payloadLengths: Distribution?
  /// The kinds of payloads and the rules that they break; `nil` when they were not judged.
  public var payloads: Payloads?
  public var notificationsPerSegment: Distribution?
  /// Over the minutes in which any were opened.
  public var opensPerMinute: Distribution?
  /// Seconds from the first packet to the first FIN or RST.
  public var lifetimesS: Distribution?
  public var ends: NamedCounts<CapturedEnd> = [:]
  public var repeatedlyRejectedTokens: [TokenRow] = []
  public var findings: [FindingRow] = []
  /// The values from which reports can be merged; `nil` if they were not requested.
  public var counts: Counts?

  public init() {}

  /// A file that was read.
  public struct File: Sendable, Equatable, Codable {
    /// Its number among the files, if there are several.
    public var file: Int?
    public var source = ""
    public var format = ""
    public var linkTypes: [String] = []
    public var bytes: Int?
    public var packets = 0
    public var cutPackets = 0
    public var firstTime: String?
    public var lastTime: String?
    public var durationS: Double?
    public var warnings: [String] = []
    package init() {}
  }

  /// Totals over the recording.
  public struct Summary: Sendable, Equatable, Codable {
    public var packets = 0
    public var connections = 0
    public var notifications = 0
    public var errorResponses = 0
    public var feedbackTuples = 0
    public var gaps = 0
    public var malformed = 0
    public var undecryptedConnections = 0
    /// Packets that the capture lost; `nil` without any.
    public var droppedPackets: Int?
    /// Packets of protocols that are not read, in which TCP may be; `nil` without any.
    public var unreadPackets: Int?
    /// Descriptions of the unread packets and, if no connection was read, of all other packets; `nil`: none.
    public var unread: [String]?
    /// Final answers over HTTP/2; `nil` without any.
    public var responses: Int?
    /// Messages of the device channel and of local push; `nil` without any.
    public var messages: Int?
    /// Connections to a feedback service that could be read, to the end of an empty list too. Not in JSON.
    public var readFeedbackConnections = 0
    /// Connections with requests of the provider API. Not in JSON.
    public var readProviderConnections = 0

    package init() {}

    /// Whether APNs traffic was read. Otherwise nothing is known about notifications.
    public var hasRead: Bool {
      notifications > 0 || errorResponses > 0 || feedbackTuples > 0 || (messages ?? 0) > 0
        || readFeedbackConnections > 0 || readProviderConnections > 0
    }

    private enum CodingKeys: CodingKey {
      case packets, connections, notifications, errorResponses, feedbackTuples, gaps, malformed, undecryptedConnections
      case droppedPackets, unreadPackets, unread, responses, messages
    }
  }

  /// A connection of the recording.
  public struct ConnectionRow: Sendable, Equatable, Codable {
    public var connection = 0
    /// The number of the file with its first packet, if there are several files.
    public var file: Int?
    /// gateway, feedback, other or unknown.
    public var service = ""
    /// The other protocol that was recognised on the connection.
    public var `protocol`: String?
    /// The preamble before the first record or the TLS handshake.
    public var preamble: String?
    public var client: String?
    public var server: String?
    public var opened: String?
    public var durationS: Double?
    public var end = CapturedEnd.captureEnd
    public var encrypted = false
    public var notifications = 0
    /// Notifications by command 0, 1, 2.
    public var commands = [0, 0, 0]
    public var feedbackTuples = 0
    public var accepted = 0
    public var rejected = 0
    public var discarded = 0
    public var unknown = 0
    public var firstErrorStatus: Int?
    public var firstErrorName: String?
    public var discardedAfterFirstError: Int?
    public var missingBytes = 0
    public var tls: TLSRow?
    /// Counts over HTTP/2; `nil` for other connections.
    public var http2: RequestRow?
    /// Counts of the device channel; `nil` for other connections.
    public var devices: DeviceCounts?
    /// Counts of local push; `nil` for other connections.
    public var localPush: LocalPushCounts?
    /// Other addresses under which it was recorded.
    public var alsoSeenAs: [Ends]?
    package init() {}
  }

  /// The addresses and ports of a connection.
  public struct Ends: Sendable, Equatable, Codable {
    public var client: String
    public var server: String

    package init(client: String, server: String) { (self.client, self.server) = (client, server) }
  }

  /// A connection's TLS.
  public struct TLSRow: Sendable, Equatable, Codable {
    public var version: String?
    public var cipherSuite: String?
    public var keyExchange: String?
    public var resumed: Bool?
    public var decrypted = false
    public var problem: String?
    public var clientSubject: String?
    /// The end of the client certificate's validity, and the environment that it is for.
    public var certificateEnds: String?
    public var environment: ProviderEnvironment?
    public var alert: String?
    /// Bytes of both directions on the wire, and their plaintext.
    public var tlsBytes = 0
    public var payloadBytes = 0
    public var tlsBytesPerPayloadByte: Double?
    package init() {}
  }

  /// Totals over connections with TLS; lengths in bytes.
  public struct TLSTotals: Sendable, Equatable, Codable {
    public var connections = 0
    public var decrypted = 0
    public var resumed = 0
    /// Bytes on the wire of decrypted connections, and their plaintext.
    public var tlsBytes = 0
    public var payloadBytes = 0
    package init() {}
  }

  /// The number of notifications with each fate.
  public struct Fates: Sendable, Equatable, Codable {
    public var accepted = 0
    public var rejected = 0
    public var discarded = 0
    public var unknown = 0
    package init() {}
  }

  /// An error response.
  public struct ErrorRow: Sendable, Equatable, Codable {
    public var connection = 0
    public var time: String?
    /// The number of the file with its packet, if there are several files.
    public var file: Int?
    public var packet: Int?
    public var status = 0
    public var statusName = ""
    public var identifier = 0
    public var notification: Int?
    public var accepted: Int?
    public var discarded: Int?
    /// The number of discarded notifications that were seen again later, on any connection; `nil` if too many are
    /// tracked.
    public var sentAgain: Int?
    public var latencyMs: Double?
    /// The notification that it refused: its token in hexadecimal, and the beginning of its payload.
    public var token: String?
    public var payload: String?
    /// The outcomes of the notifications that it discarded.
    public var outcomes: NamedCounts<StoryOutcome>?
    /// Seconds from the response to the first and the last sending again of what it discarded, and to the provider's next
    /// connection; `nil`: there is none, or it was not looked for.
    public var firstResentS: Double?
    public var lastResentS: Double?
    public var reconnectedS: Double?
    package init() {}
  }

  /// Distinct notifications, each one token and payload, by outcome over all of their sendings.
  public struct Stories: Sendable, Equatable, Codable {
    /// The outcomes, which add up to the distinct notifications, as far as repeats were recognised.
    public var acceptedTwice = 0
    public var expired = 0
    public var recovered = 0
    public var accepted = 0
    public var open = 0
    public var rejected = 0
    public var lost = 0
    /// The reasons why notifications are open, with their counts.
    public var openReasons: NamedCounts<OpenReason> = [:]
    /// The part of `openReasons` whose sendings were all discarded: not seen again, and not proven lost.
    public var notSeenAgain: NamedCounts<OpenReason> = [:]
    /// Gaps in what providers sent, and their bytes.
    public var gaps = 0
    public var gapBytes = 0
    public var recovery: RecoveryTimes?
    /// Repeats were recognised among this many notifications before each; `nil`: among all.
    public var window: Int?
    /// The shortest time that those spanned.
    public var windowS: Double?
    /// Sendings of discarded or repeated notifications that were not followed, because of a limit.
    public var notTracked = 0
    package init() {}

    /// Documents of 0.1.0 have four of the outcomes.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      func count(_ key: CodingKeys) throws -> Int { try container.decodeIfPresent(Int.self, forKey: key) ?? 0 }
      acceptedTwice = try count(.acceptedTwice)
      expired = try count(.expired)
      recovered = try count(.recovered)
      accepted = try count(.accepted)
      open = try count(.open)
      rejected = try count(.rejected)
      lost = try count(.lost)
      openReasons = try container.decodeIfPresent(NamedCounts<OpenReason>.self, forKey: .openReasons) ?? [:]
      notSeenAgain = try container.decodeIfPresent(NamedCounts<OpenReason>.self, forKey: .notSeenAgain) ?? [:]
      gaps = try count(.gaps)
      gapBytes = try count(.gapBytes)
      recovery = try container.decodeIfPresent(RecoveryTimes.self, forKey: .recovery)
      window = try container.decodeIfPresent(Int.self, forKey: .window)
      windowS = try container.decodeIfPresent(Double.self, forKey: .windowS)
      notTracked = try count(.notTracked)
    }

    /// Distinct notifications.
    public var total: Int { StoryOutcome.allCases.reduce(0) { $0 + self[$1] } }

    public subscript(outcome: StoryOutcome) -> Int {
      get { self[keyPath: Self.path(outcome)] }
      set { self[keyPath: Self.path(outcome)] = newValue }
    }

    private static func path(_ outcome: StoryOutcome) -> WritableKeyPath<Stories, Int> {
      switch outcome {
      case .acceptedTwice: \.acceptedTwice
      case .expired: \.expired
      case .recovered: \.recovered
      case .accepted: \.accepted
      case .open: \.open
      case .rejected: \.rejected
      case .lost: \.lost
      }
    }

    /// Adds the outcomes of another recording.
    package mutating func add(_ other: Stories) {
      for outcome in StoryOutcome.allCases { self[outcome] += other[outcome] }
      openReasons.merge(other.openReasons, +)
      notSeenAgain.merge(other.notSeenAgain, +)
      gaps += other.gaps
      gapBytes += other.gapBytes
      window = [window, other.window].compactMap { $0 }.min()
      windowS = [windowS, other.windowS].compactMap { $0 }.min()
      notTracked += other.notTracked
    }
  }

  /// A device token that was rejected.
  public struct TokenRow: Sendable, Equatable, Codable {
    /// The first eight bytes in hexadecimal.
    public var tokenPrefix: String
    /// The first 32 bytes, which usually is all of it.
    public var token: String?
    public var rejections: Int
    package init(tokenPrefix: String, token: String?, rejections: Int) {
      (self.tokenPrefix, self.token, self.rejections) = (tokenPrefix, token, rejections)
    }
  }

  /// Notifications by kind, and the rules that they break.
  public struct Payloads: Sendable, Equatable, Codable {
    /// The most frequent first.
    public var kinds: [PayloadKindRow] = []
    /// Findings by rule, errors first.
    public var findings: [PayloadFindingRow] = []
    package init() {}
  }

  /// Notifications of a kind.
  public struct PayloadKindRow: Sendable, Equatable, Codable {
    public var kind: String
    public var count: Int
    package init(kind: String, count: Int) { (self.kind, self.count) = (kind, count) }
  }

  /// A rule that payloads or their frames break.
  public struct PayloadFindingRow: Sendable, Equatable, Codable {
    public var code: String
    /// error, warning or advice.
    public var severity: String
    /// Notifications.
    public var count = 0
    /// The number of the file of `firstPacket`, from 1; `nil` if there is only one file.
    public var firstFile: Int?
    /// Within its file.
    public var firstPacket: Int?
    public var text = ""
    public var example: PayloadExample?
    package init(code: String, severity: String) { (self.code, self.severity) = (code, severity) }
  }

  /// A payload that breaks a rule.
  public struct PayloadExample: Sendable, Equatable, Codable {
    public var connection: Int
    /// The beginning of the payload, or the value that breaks the rule: a token's first bytes, an expiration.
    public var text: String
    /// The position in the payload, from 1.
    public var line: Int?
    public var column: Int?
    public var message: String
    package init(connection: Int, text: String, message: String) {
      (self.connection, self.text, self.message) = (connection, text, message)
    }
  }

  /// A finding: how often, where first, and in words.
  public struct FindingRow: Sendable, Equatable, Codable {
    public var kind: FindingKind
    public var count: Int
    /// The file of the first packet, where there are several.
    public var firstFile: Int?
    public var firstPacket: Int?
    public var text: String
    package init(_ kind: FindingKind, count: Int, firstFile: Int? = nil, firstPacket: Int? = nil, text: String) {
      (self.kind, self.count, self.firstPacket, self.text) = (kind, count, firstPacket, text)
      self.firstFile = firstFile
    }
  }
}

extension InspectionReport {
  /// The order of connections and error responses.
  public enum Order: String, Sendable, CaseIterable {
    /// Connections by their numbers, error responses by their times.
    case start
    /// By cost, highest first: connections by discarded and unknown notifications, then by rejected ones; error
    /// responses by the notifications that they discarded.
    case cost
  }

  /// Sorts connections and error responses.
  public mutating func sort(by order: Order) {
    switch order {
    case .start:
      connections.sort { $0.connection < $1.connection }
      // All time texts have the same length. Without times, errors are in their order of arrival.
      errors.sort { ($0.time ?? "", $0.packet ?? 0, $0.connection) < ($1.time ?? "", $1.packet ?? 0, $1.connection) }
    case .cost:
      connections.sort {
        ($1.discarded + $1.unknown, $1.rejected, $0.connection)
          < ($0.discarded + $0.unknown, $0.rejected, $1.connection)
      }
      errors.sort {
        ($1.discarded ?? 0, $0.time ?? "", $0.packet ?? 0) < ($0.discarded ?? 0, $1.time ?? "", $1.packet ?? 0)
      }
    }
  }
}

/// Seconds from the first sending to the accepted one, of recovered notifications.
public struct RecoveryTimes: Sendable, Equatable, Codable {
  public var p50S: Double
  public var p99S: Double
  public var maxS: Double
  package init(p50S: Double, p99S: Double, maxS: Double) {
    (self.p50S, self.p99S, self.maxS) = (p50S, p99S, maxS)
  }

  /// `nil` without any. A quantile is the value that a share of all does not exceed.
  package init?(sortedSeconds values: [Double]) {
    guard let last = values.last else { return nil }
    self.init(
      p50S: values[(values.count + 1) / 2 - 1], p99S: values[(99 * values.count + 99) / 100 - 1], maxS: last)
  }
}

/// The environment that a provider's certificate is for.
public enum ProviderEnvironment: String, Sendable, Codable, CaseIterable {
  case sandbox, production, both
}
