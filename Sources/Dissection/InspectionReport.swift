import APNSProtocol
import PacketCapture
import TLSDecryption

/// What is in a recording, counted. Names in JSON are snake case; times RFC 3339; `nil` is left out.
public struct InspectionReport: Sendable, Encodable {
  public struct File: Sendable, Encodable {
    public var source: String
    public var format: String
    public var linkTypes: [String]
    public var bytes: Int?
    public var packets: Int
    public var cutPackets: Int
    public var firstTime: String?
    public var lastTime: String?
    public var durationS: Double?
    public var warnings: [String]
  }

  public struct ConnectionRow: Sendable, Encodable {
    public var connection: Int
    public var service: String
    /// The other protocol that was recognised on the connection.
    public var `protocol`: String?
    public var client: String?
    public var server: String?
    public var opened: String?
    public var durationS: Double?
    public var end: String
    public var encrypted: Bool
    public var notifications: Int
    /// Notifications by command 0, 1, 2.
    public var commands: [Int]
    public var feedbackTuples: Int
    public var accepted: Int
    public var rejected: Int
    public var discarded: Int
    public var unknown: Int
    public var firstErrorStatus: Int?
    public var firstErrorName: String?
    public var discardedAfterFirstError: Int?
    public var missingBytes: Int
    public var tls: TLSRow?
  }

  public struct TLSRow: Sendable, Encodable {
    public var version: String?
    public var cipherSuite: String?
    public var keyExchange: String?
    public var resumed: Bool?
    public var decrypted: Bool
    public var problem: String?
    public var clientSubject: String?
    public var alert: String?
    /// Both directions' bytes on the wire, and what they carried.
    public var tlsBytes: Int
    public var payloadBytes: Int
    public var tlsBytesPerPayloadByte: Double?
  }

  public struct ErrorRow: Sendable, Encodable {
    public var connection: Int
    public var time: String?
    public var packet: Int?
    public var status: Int
    public var statusName: String
    public var identifier: Int
    public var notification: Int?
    public var accepted: Int?
    public var discarded: Int?
    /// Of those that were discarded, how many were seen again later, on any connection; `nil` when too many are followed.
    public var sentAgain: Int?
    public var latencyMs: Double?
  }

  public struct TokenRow: Sendable, Encodable {
    /// The first eight bytes in hexadecimal.
    public var tokenPrefix: String
    public var rejections: Int
  }

  public struct FindingRow: Sendable, Encodable {
    public var kind: String
    public var count: Int
    public var firstPacket: Int?
    public var text: String
  }

  public struct Summary: Sendable, Encodable {
    public var packets = 0
    public var connections = 0
    public var notifications = 0
    public var errorResponses = 0
    public var feedbackTuples = 0
    public var gaps = 0
    public var malformed = 0
    public var undecryptedConnections = 0
    /// No field of the record.
    var readFeedbackConnections = 0

    /// Something of this protocol was read. When nothing was, nothing is known of what was sent.
    public var hasRead: Bool {
      notifications > 0 || errorResponses > 0 || feedbackTuples > 0 || readFeedbackConnections > 0
    }

    private enum CodingKeys: CodingKey {
      case packets, connections, notifications, errorResponses, feedbackTuples, gaps, malformed, undecryptedConnections
    }
  }

  public var files: [File] = []
  public var summary = Summary()
  public var connections: [ConnectionRow] = []
  public var connectionsNotListed = 0
  public var missingBytes = 0
  /// Connections with TLS, by whether they could be opened, and what that cost.
  public var tls = TLSTotals()
  public var gapsByReason: [String: Int] = [:]
  public var malformed = 0
  public var notificationsByCommand = [0, 0, 0]
  public var fates = Fates()
  public var errorCount = 0
  /// Keys are `Int` because JSON then has an object; of other numbers it has a list.
  public var errorsByStatus: [Int: Int] = [:]
  public var errors: [ErrorRow] = []
  public var feedbackConnections = 0
  public var feedbackTuples = 0
  /// Over the seconds in which any were sent.
  public var notificationsPerSecond: Distribution?
  public var payloadLengths: Distribution?
  public var notificationsPerSegment: Distribution?
  /// Over the minutes in which any were opened.
  public var opensPerMinute: Distribution?
  /// Seconds from the first packet to the last FIN or RST.
  public var lifetimes: Distribution?
  public var ends: [String: Int] = [:]
  public var repeatedlyRejectedTokens: [TokenRow] = []
  public var findings: [FindingRow] = []

  public struct TLSTotals: Sendable, Encodable {
    public var connections = 0
    public var decrypted = 0
    public var resumed = 0
    /// Of those that were decrypted.
    public var tlsBytes = 0
    public var payloadBytes = 0
  }

  public struct Fates: Sendable, Encodable {
    public var accepted = 0
    public var rejected = 0
    public var discarded = 0
    public var unknown = 0
  }
}

extension InspectionReport {
  mutating func add(_ record: ConnectionRecord, _ tally: ConnectionTally, listed: Int) {
    missingBytes += record.missingBytes
    ends[record.end.rawValue, default: 0] += 1
    for command in 0..<3 { notificationsByCommand[command] += tally.commands[command] }
    fates.accepted += record.fates.accepted
    fates.rejected += record.fates.rejected
    fates.discarded += record.fates.discarded
    fates.unknown += record.fates.unknown
    if let summary = record.tls {
      tls.connections += 1
      if summary.isResumed == true { tls.resumed += 1 }
      if summary.isDecrypted {
        tls.decrypted += 1
        tls.tlsBytes += summary.wireBytes
        tls.payloadBytes += summary.plaintextBytes
      }
    }
    guard connections.count < listed else {
      connectionsNotListed += 1
      return
    }
    connections.append(
      ConnectionRow(
        connection: record.connection, service: record.service.rawValue,
        protocol: record.otherProtocol?.rawValue, client: record.client?.description,
        server: record.server?.description, opened: record.opened.text,
        durationS: record.closed.nanoseconds(since: record.opened).map { Double($0) / 1e9 }, end: record.end.rawValue,
        encrypted: record.tls?.isDecrypted == false, notifications: record.notifications,
        commands: [tally.commands[0], tally.commands[1], tally.commands[2]], feedbackTuples: record.feedbackTuples,
        accepted: record.fates.accepted, rejected: record.fates.rejected, discarded: record.fates.discarded,
        unknown: record.fates.unknown, firstErrorStatus: tally.firstError.map { Int($0.response.status.rawValue) },
        firstErrorName: tally.firstError?.response.status.description,
        discardedAfterFirstError: tally.firstError?.discarded, missingBytes: record.missingBytes,
        tls: record.tls.map(TLSRow.init)))
  }
}

extension InspectionReport.TLSRow {
  init(_ tls: TLSSummary) {
    self.init(
      version: tls.version?.description, cipherSuite: tls.suite?.name, keyExchange: tls.keyExchange,
      resumed: tls.isResumed, decrypted: tls.isDecrypted, problem: tls.problem, clientSubject: tls.clientSubject,
      alert: tls.alert, tlsBytes: tls.wireBytes, payloadBytes: tls.plaintextBytes,
      tlsBytesPerPayloadByte: tls.plaintextBytes > 0 ? Double(tls.wireBytes) / Double(tls.plaintextBytes) : nil)
  }
}

extension InspectionReport.File {
  init(_ outcome: CaptureOutcome) {
    self.init(
      source: outcome.source, format: outcome.format.rawValue, linkTypes: outcome.linkTypes.map(\.description),
      bytes: outcome.size, packets: outcome.packets, cutPackets: outcome.cutPackets, firstTime: outcome.firstTime.text,
      lastTime: outcome.lastTime.text,
      durationS: outcome.lastTime.nanoseconds(since: outcome.firstTime).map { Double($0) / 1e9 },
      warnings: outcome.warnings)
  }
}

extension InspectionReport.ErrorRow {
  init(_ record: ErrorResponseRecord) {
    self.init(
      connection: record.place.connection, time: record.place.time.text,
      packet: record.place.packet > 0 ? record.place.packet : nil, status: Int(record.response.status.rawValue),
      statusName: record.response.status.description, identifier: Int(record.response.identifier),
      notification: record.notification, accepted: record.accepted, discarded: record.discarded,
      latencyMs: record.latencyNanoseconds.map { Double($0) / 1e6 })
  }
}

extension InspectionReport.TokenRow {
  init(prefix: UInt64, count: Int) {
    let digits = String(prefix, radix: 16)
    self.init(tokenPrefix: String(repeating: "0", count: 16 - digits.count) + digits, rejections: count)
  }
}

extension InspectionReport.Summary {
  init(_ record: SummaryRecord) {
    self.init(
      packets: record.packets, connections: record.connections, notifications: record.notifications,
      errorResponses: record.errorResponses, feedbackTuples: record.feedbackTuples, gaps: record.gaps,
      malformed: record.malformed, undecryptedConnections: record.undecryptedConnections,
      readFeedbackConnections: record.readFeedbackConnections)
  }
}

extension Timestamp {
  fileprivate var text: String? { isKnown ? TimestampFormatter.text(self) : nil }
}
