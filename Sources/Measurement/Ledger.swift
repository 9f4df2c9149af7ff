/// The gateway's books of one run: received notifications, answers, and the fates of the notifications.
///
/// `received = accepted + Σ rejected + discarded`. The other counts are parts of these, as their comments say. Written
/// as JSON with names in snake case.
public struct Ledger: Sendable, Equatable, Codable {
  /// The version of the document's schema.
  public var schema = 1
  /// The kind of the document, which distinguishes it from other ones.
  public var kind = "simulate"
  /// The time of the start in UTC, RFC 3339.
  public var started = ""
  /// The time of the end in UTC, RFC 3339.
  public var ended = ""
  /// The counts of all connections.
  public var gateway = Gateway()
  /// Decided notifications by the content of their payload; `nil` if payloads were not judged.
  public var payloads: Payloads?
  /// The accepted notifications by their delivery.
  public var devices = Devices()
  /// The counts of the feedback service.
  public var feedback = Feedback()
  /// What only the HTTP/2 provider API has; `nil` if it was not served.
  public var http2: HTTP2?
  /// Counts of the server of local push; `nil` without one.
  public var localPush: LocalPush?
  /// The notifications in the records of `--records`; `nil` without it.
  public var records: Records?
  /// The verdict on the providers; `nil` without `--verdict`.
  public var verdict: ProviderVerdict?
  /// The conditions of `--expect` and `--until`, as they came out; `nil` without any.
  public var expectations: [RunResult.Verdict.Threshold]?
  /// Connections in the order in which they ended.
  public var connections: [Connection] = []
  /// Connections that are in the counts above but not in the list, which has a limit.
  public var connectionsOmitted = 0

  /// A ledger without counts.
  public init() {}

  /// Counts of the gateway: connections, notifications, answers.
  public struct Gateway: Sendable, Equatable, Codable {
    /// TCP connections that were accepted.
    public var connections = 0
    /// The part of `connections` whose TLS handshake was completed; without TLS, all of them.
    public var handshakes = 0
    /// The part of `handshakes` that resumed a session.
    public var resumed = 0
    /// The part of `connections` that ended before their handshake was completed.
    public var handshakeFailures = 0
    /// The part of `handshakes` that was closed at once, by a rule.
    public var refused = 0
    /// Frames that arrived completely, or could not be parsed.
    public var received = 0
    /// The part of `received` that was accepted.
    public var accepted = 0
    /// Rejections by status, whether or not an error response was sent.
    public var rejected: [String: Int] = [:]
    /// Notifications that arrived after a rejection or a shutdown on the same connection, and were never read.
    public var discarded = 0
    /// What only the binary protocol has.
    public var binary = Binary()
    /// Plaintext bytes from providers.
    public var bytes = 0

    package init() {}

    /// Counts of frames, and of a protocol whose only answer is an error. In the document they are among the gateway's
    /// other counts.
    public struct Binary: Sendable, Equatable {
      /// The part of `rejected` that is not a frame of the protocol.
      public var malformed = 0
      /// Connections that ended inside a frame, which is in no other count.
      public var incomplete = 0
      /// Error responses that were sent completely (six bytes), by status.
      public var errorResponses: [String: Int] = [:]
      /// Error responses that are not in `errorResponses`, because their connection closed before all six bytes were
      /// sent.
      public var errorResponsesIncomplete = 0
      package init() {}
    }
  }

  /// Counts of the HTTP/2 provider API. Its connections and notifications are in `Gateway`, too.
  public struct HTTP2: Sendable, Equatable, Codable {
    /// The part of the gateway's `connections` that came to the address of HTTP/2.
    public var connections = 0
    /// Notifications: requests to `/3/device/`, and those with fields of notifications to another path. The part of the
    /// gateway's `received`; `received = accepted + rejected + discarded`.
    public var received = 0
    /// The part of `received` that got status 200.
    public var accepted = 0
    /// The part of `received` that got another status; the gateway's `rejected` has them by reason.
    public var rejected = 0
    /// The part of `received` that was certainly not processed: above the limit on streams, above the last stream of a
    /// GOAWAY, or hit by a fault.
    public var discarded = 0
    /// Notifications that never ended, which are in no other count.
    public var incomplete = 0
    /// The parts of `accepted` and `rejected` whose answer was cut behind its status: its content waited for the client's
    /// window when the client reset the stream, or the connection ended; or a fault cut it.
    public var unanswered = 0
    /// The parts of `accepted`, `rejected` and `discarded` of which the provider was told nothing.
    public var unknown = Unknown()
    /// Requests that are no notifications; they are in `answers`, or were not answered.
    public var otherRequests = 0
    /// Answers to all requests by status.
    public var answers: [String: Int] = [:]
    /// GOAWAY frames that were sent.
    public var goaways = 0
    /// RST_STREAM frames that were sent.
    public var resetsSent = 0
    /// RST_STREAM frames of clients that closed a stream.
    public var resetsReceived = 0
    /// PING frames of clients.
    public var pings = 0
    /// Rules of RFC 9113 and RFC 7541 that clients broke, by their words.
    public var violations: [String: Int] = [:]
    /// Connections that were ended for what a client did too often, by that.
    public var floods: [String: Int] = [:]
    /// Faults that were done on demand, by their kind.
    public var faults: [String: Int] = [:]
    /// Channel management; `nil`: there was none.
    public var channels: Channels?
    /// The provider tokens that were accepted, in that order, each once.
    public var providerTokens: [ProviderToken] = []
    /// Accepted provider tokens that are not in the list, which has a limit.
    public var providerTokensOmitted = 0
    /// Provider tokens that took the place of another one on their connection.
    public var providerTokenRenewals = 0

    package init() {}

    /// Notifications that got no status, no refusal and no GOAWAY that excludes them: a recording calls their fate
    /// unknown. By what the gateway did with them.
    public struct Unknown: Sendable, Equatable, Codable {
      public var accepted = 0
      public var rejected = 0
      public var discarded = 0

      package init() {}
    }

    /// Requests to channel management, which are no notifications, and the channels.
    public struct Channels: Sendable, Equatable, Codable {
      public var created = 0
      public var read = 0
      public var deleted = 0
      /// Lists of all channels of an app.
      public var listed = 0
      /// By reason.
      public var rejected: [String: Int] = [:]
      /// Channels that are registered, and those of them that keep a message.
      public var registered = 0
      public var keeping = 0

      package init() {}
    }

    /// A provider token that was accepted. Its signature is nowhere.
    public struct ProviderToken: Sendable, Equatable, Codable {
      /// The `kid`.
      public var keyID: String
      /// The `iss`.
      public var teamID: String
      /// The `iat` in UTC, RFC 3339.
      public var issuedAt: String
      /// Its age in seconds when it was first accepted; below 0 if the provider's clock is ahead.
      public var ageS: Int
      /// Connections that used it.
      public var connections: Int

      package init(keyID: String, teamID: String, issuedAt: String, ageS: Int, connections: Int) {
        (self.keyID, self.teamID, self.issuedAt) = (keyID, teamID, issuedAt)
        (self.ageS, self.connections) = (ageS, connections)
      }

      private enum CodingKeys: String, CodingKey {
        case keyID = "keyId"
        case teamID = "teamId"
        case issuedAt, ageS, connections
      }
    }
  }

  /// The judged payloads of notifications; not part of the balance.
  public struct Payloads: Sendable, Equatable, Codable {
    /// Notifications by the kind of their payload.
    public var kinds: [String: Int]
    /// Notifications by code of each rule that their payload or frame breaks.
    public var lint: [String: Int]

    package init(kinds: [String: Int] = [:], lint: [String: Int] = [:]) { (self.kinds, self.lint) = (kinds, lint) }
  }

  /// The outcomes of accepted notifications for devices:
  /// `accepted = delivered + stored + coalesced + expired + dropped + uninstalled`.
  public struct Devices: Sendable, Equatable, Codable {
    /// Notifications that reached a device that is online.
    public var delivered = 0
    /// Notifications replaced by a later one for the same device and topic before the device came online.
    public var coalesced = 0
    /// Dropped because its expiration passed, or because it was not to be stored.
    public var expired = 0
    /// Dropped while it could still have been delivered, because the store was full.
    public var dropped = 0
    /// Waiting for a device that is offline.
    public var stored = 0
    /// Notifications for an uninstalled app: accepted, dropped, and the token added to the feedback list.
    public var uninstalled = 0
    /// Counts of the device channel; `nil` without one. Of notifications for registered devices `delivered` are those that
    /// the device has acknowledged, and `stored` those that wait or are not acknowledged.
    public var channel: Channel?

    package init() {}

    /// Counts of the device channel.
    public struct Channel: Sendable, Equatable, Codable {
      /// TCP connections of devices.
      public var connections = 0
      /// The part of `connections` that ended before its handshake was completed.
      public var handshakeFailures = 0
      /// Registrations that got a token, the same one again included.
      public var registrations = 0
      /// Tokens that are valid at the end.
      public var registered = 0
      /// The part of `registered` whose device is connected at the end.
      public var online = 0
      /// Notifications that were sent to devices, those that were sent again included.
      public var sent = 0
      /// The part of `sent` that was sent before, on a connection that ended.
      public var repeated = 0
      /// The part of `Gateway.accepted` that was for registered devices, and the part of `Devices.delivered`.
      public var accepted = 0
      public var acknowledged = 0
      /// From when a notification for a registered device was read to when it was replaced by a later one, and to when it
      /// expired; `nil` in ledgers that have no devices' counts.
      public var coalescedMs: LatencyHistogram?
      public var expiredMs: LatencyHistogram?
      /// The part of `Devices.stored` that was sent and not acknowledged.
      public var unacknowledged = 0
      /// Notifications of an earlier run, from `--device-store`: they are in `Devices` and not in `Gateway.accepted`.
      public var restored = 0
      /// Notifications that could not be kept, and were not accepted for that reason.
      public var unkept = 0
      /// Messages that could not be read; each ended its connection.
      public var malformed = 0
      /// Requests of devices that were refused, by reason.
      public var refused: [String: Int] = [:]

      package init() {}
    }
  }

  /// Counts of the feedback service.
  public struct Feedback: Sendable, Equatable, Codable {
    /// TCP connections to the feedback service.
    public var connections = 0
    /// The part of `connections` that ended before its handshake was completed.
    public var handshakeFailures = 0
    /// Transfers that were read to the end, according to the peer's kernel, so that the list was cleared.
    public var completed = 0
    /// Tuples that were sent.
    public var tuplesSent = 0
    /// Tokens on the feedback list at the end, over all topics.
    public var waiting = 0
    /// The part of `Devices.uninstalled` that could not be put on a list, on a full disk say. Their connections were ended
    /// without an answer.
    public var lost = 0

    package init() {}
  }

  /// Counts of the notifications that arrived, by whether they are in records.
  public struct Records: Sendable, Equatable, Codable {
    /// Notifications that are in records.
    public var notifications = 0
    /// Notifications that arrived and are in no record, because the writer was behind, or could not write.
    public var lost = 0
    /// Outcomes for devices that are in no record for that reason; `nil`: none.
    public var outcomesLost: Int?

    package init() {}
  }

  /// A connection of the gateway, and its counts.
  public struct Connection: Sendable, Equatable, Codable {
    /// Address and port.
    public var client: String
    /// `nil` when no certificate was shown.
    public var topic: String?
    /// The notifications that arrived, as in `Gateway`.
    public var received = 0
    /// The notifications that were accepted, as in `Gateway`.
    public var accepted = 0
    /// The rejection that ended it.
    public var rejected: Rejection?
    /// The notifications that were discarded, as in `Gateway`.
    public var discarded = 0
    /// UTC, RFC 3339.
    public var opened: String
    /// The time of the end in UTC, RFC 3339.
    public var closed: String
    /// How the connection ended.
    public var end: ConnectionEnd
    /// The error of TLS or the system that ended the connection; absent without one.
    public var error: String?
    /// Notifications that were rejected without ending the connection, over HTTP/2; absent for the binary protocol.
    public var rejections: Int?

    package init(client: String, topic: String?, opened: String, closed: String, end: ConnectionEnd) {
      self.client = client
      self.topic = topic
      self.opened = opened
      self.closed = closed
      self.end = end
    }

    private enum CodingKeys: String, CodingKey {
      case client, topic, received, accepted, rejected, discarded, opened, closed, end, error, rejections
    }

    /// `topic` and `rejected` are written as null, not left out: the contract names them.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(client, forKey: .client)
      try container.encode(topic, forKey: .topic)
      try container.encode(received, forKey: .received)
      try container.encode(accepted, forKey: .accepted)
      try container.encode(rejected, forKey: .rejected)
      try container.encode(discarded, forKey: .discarded)
      try container.encode(opened, forKey: .opened)
      try container.encode(closed, forKey: .closed)
      try container.encode(end, forKey: .end)
      try container.encodeIfPresent(error, forKey: .error)
      try container.encodeIfPresent(rejections, forKey: .rejections)
    }
  }

  /// A rejected notification: its status, and its identifier if it has one.
  public struct Rejection: Sendable, Equatable, Codable {
    /// The status of the error response.
    public var status: Int
    /// The identifier of the notification; `nil` if its command has none.
    public var identifier: UInt32?
    /// Its number on the connection, from 0.
    public var notification: Int

    package init(status: Int, identifier: UInt32?, notification: Int) {
      self.status = status
      self.identifier = identifier
      self.notification = notification
    }
  }
}

// Ledgers from before there was a count can be read: nothing was counted.

extension Ledger.Gateway {
  private enum CodingKeys: String, CodingKey {
    case connections, handshakes, resumed, handshakeFailures, refused, received, accepted, rejected, discarded
    case malformed, incomplete, errorResponses, errorResponsesIncomplete, bytes
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    connections = try container.decode(Int.self, forKey: .connections)
    handshakes = try container.decode(Int.self, forKey: .handshakes)
    resumed = try container.decode(Int.self, forKey: .resumed)
    handshakeFailures = try container.decode(Int.self, forKey: .handshakeFailures)
    refused = try container.decode(Int.self, forKey: .refused)
    received = try container.decode(Int.self, forKey: .received)
    accepted = try container.decode(Int.self, forKey: .accepted)
    rejected = try container.decode([String: Int].self, forKey: .rejected)
    discarded = try container.decode(Int.self, forKey: .discarded)
    binary.malformed = try container.decode(Int.self, forKey: .malformed)
    binary.incomplete = try container.decode(Int.self, forKey: .incomplete)
    binary.errorResponses = try container.decode([String: Int].self, forKey: .errorResponses)
    binary.errorResponsesIncomplete = try container.decodeIfPresent(Int.self, forKey: .errorResponsesIncomplete) ?? 0
    bytes = try container.decode(Int.self, forKey: .bytes)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(connections, forKey: .connections)
    try container.encode(handshakes, forKey: .handshakes)
    try container.encode(resumed, forKey: .resumed)
    try container.encode(handshakeFailures, forKey: .handshakeFailures)
    try container.encode(refused, forKey: .refused)
    try container.encode(received, forKey: .received)
    try container.encode(accepted, forKey: .accepted)
    try container.encode(rejected, forKey: .rejected)
    try container.encode(discarded, forKey: .discarded)
    try container.encode(binary.malformed, forKey: .malformed)
    try container.encode(binary.incomplete, forKey: .incomplete)
    try container.encode(binary.errorResponses, forKey: .errorResponses)
    try container.encode(binary.errorResponsesIncomplete, forKey: .errorResponsesIncomplete)
    try container.encode(bytes, forKey: .bytes)
  }
}

extension Ledger.Feedback {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    connections = try container.decode(Int.self, forKey: .connections)
    handshakeFailures = try container.decode(Int.self, forKey: .handshakeFailures)
    completed = try container.decode(Int.self, forKey: .completed)
    tuplesSent = try container.decode(Int.self, forKey: .tuplesSent)
    waiting = try container.decode(Int.self, forKey: .waiting)
    lost = try container.decodeIfPresent(Int.self, forKey: .lost) ?? 0
  }
}
