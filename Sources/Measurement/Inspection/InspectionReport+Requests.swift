extension InspectionReport {
  /// What a recording has of the HTTP/2 provider API. All of it adds up over recordings, distributions included.
  ///
  /// A figure that was not measured is absent: after a gap, the number of open streams for example.
  public struct Requests: Sendable, Equatable, Codable {
    /// Connections over HTTP/2 with requests of the provider API, those of channel management included.
    public var connections = 0
    /// Notifications: requests to a device or a channel.
    public var notifications = 0
    /// Final answers to requests of any kind.
    public var responses = 0
    /// Requests of channel management.
    public var channelRequests: Int?
    /// The notifications by fate; those of connections that have ended.
    public var fates = Fates()
    /// Answers to notifications, by status and reason.
    public var answers: [Answer] = []
    /// Notifications that were certainly not processed, by cause.
    public var discardedBy: [String: Int] = [:]
    /// GOAWAY frames of servers.
    public var goaways: [GoAway] = []
    /// RST_STREAM frames of servers by error.
    public var resets: [String: Int] = [:]
    /// From a notification's END_STREAM to its answer's fields.
    public var latency: LatencyHistogram?
    /// The streams that were open at a notification's fields, with its own; where that is known.
    public var openStreams: LatencyHistogram?
    /// The server's lowest and highest limit on open streams that was in force at a notification.
    public var streamLimitLowest: Int?
    public var streamLimitHighest: Int?
    /// Notifications of a connection; those of connections that have ended.
    public var perConnection: LatencyHistogram?
    /// The bytes of a notification's frames without its payload: field block, and 9 for each frame.
    public var headerBytes: LatencyHistogram?
    /// Provider tokens, each connection's on its own; `nil`: some may be missing.
    public var providerTokens: Int? = 0
    /// The least and the greatest age of a provider token at a notification, in seconds by the capture's clock;
    /// negative: issued later.
    public var tokenAgeLeastS: Double?
    public var tokenAgeGreatestS: Double?
    /// PING frames of clients, and those that are known to be answered; those of connections that have ended.
    public var pings: Int?
    public var pingsAnswered: Int?
    /// The shortest and the longest time from a PING to its answer.
    public var pingMsLeast: Double?
    public var pingMsGreatest: Double?

    package init() {}

    /// Answers with one status and reason.
    public struct Answer: Sendable, Equatable, Codable {
      /// `nil`: lost in a gap.
      public var status: Int?
      public var reason: String?
      public var count: Int

      package init(status: Int?, reason: String?, count: Int) {
        (self.status, self.reason, self.count) = (status, reason, count)
      }
    }

    /// GOAWAY frames with one error and reason.
    public struct GoAway: Sendable, Equatable, Codable {
      public var error: String
      public var reason: String?
      public var count: Int

      package init(error: String, reason: String?, count: Int) {
        (self.error, self.reason, self.count) = (error, reason, count)
      }

      /// The reason, or else the error.
      package var name: String { reason ?? error }
    }
  }

  /// What a connection over HTTP/2 has besides.
  public struct RequestRow: Sendable, Equatable, Codable {
    public var responses = 0
    /// Rejected notifications by reason, or by status without one.
    public var rejections: [String: Int] = [:]
    /// `nil`: not known.
    public var providerTokens: Int?
    public var openStreamsMax: Int?
    public var streamLimitFirst: Int?
    public var streamLimitLast: Int?
    public var goaways = 0
    public var resets = 0
    package init() {}
  }
}

extension InspectionReport.Requests {
  /// GOAWAY frames by their reasons: `3 Shutdown, 1 PROTOCOL_ERROR`.
  package var goAwayWords: String { goaways.map { "\($0.count) \($0.name)" }.joined(separator: ", ") }

  /// The order in which answers are listed: the most frequent first.
  package static func precedes(_ a: Answer, _ b: Answer) -> Bool {
    (b.count, a.status ?? 0, a.reason ?? "") < (a.count, b.status ?? 0, b.reason ?? "")
  }

  /// Adds the counts of another recording.
  package mutating func add(_ other: Self) {
    connections += other.connections
    notifications += other.notifications
    responses += other.responses
    if let more = other.channelRequests { channelRequests = (channelRequests ?? 0) + more }
    fates.accepted += other.fates.accepted
    fates.rejected += other.fates.rejected
    fates.discarded += other.fates.discarded
    fates.unknown += other.fates.unknown
    for row in other.answers {
      if let place = answers.firstIndex(where: { $0.status == row.status && $0.reason == row.reason }) {
        answers[place].count += row.count
      } else {
        answers.append(row)
      }
    }
    answers.sort(by: Self.precedes)
    discardedBy.merge(other.discardedBy, uniquingKeysWith: +)
    for row in other.goaways {
      if let place = goaways.firstIndex(where: { $0.error == row.error && $0.reason == row.reason }) {
        goaways[place].count += row.count
      } else {
        goaways.append(row)
      }
    }
    goaways.sort { ($1.count, $0.name) < ($0.count, $1.name) }
    resets.merge(other.resets, uniquingKeysWith: +)
    Self.merge(&latency, other.latency)
    Self.merge(&openStreams, other.openStreams)
    Self.merge(&perConnection, other.perConnection)
    Self.merge(&headerBytes, other.headerBytes)
    streamLimitLowest = [streamLimitLowest, other.streamLimitLowest].compactMap { $0 }.min()
    streamLimitHighest = [streamLimitHighest, other.streamLimitHighest].compactMap { $0 }.max()
    providerTokens = providerTokens.flatMap { sum in other.providerTokens.map { sum + $0 } }
    tokenAgeLeastS = [tokenAgeLeastS, other.tokenAgeLeastS].compactMap { $0 }.min()
    tokenAgeGreatestS = [tokenAgeGreatestS, other.tokenAgeGreatestS].compactMap { $0 }.max()
    if let more = other.pings { pings = (pings ?? 0) + more }
    if let more = other.pingsAnswered { pingsAnswered = (pingsAnswered ?? 0) + more }
    pingMsLeast = [pingMsLeast, other.pingMsLeast].compactMap { $0 }.min()
    pingMsGreatest = [pingMsGreatest, other.pingMsGreatest].compactMap { $0 }.max()
  }

  private static func merge(_ histogram: inout LatencyHistogram?, _ other: LatencyHistogram?) {
    guard let other else { return }
    // A document may name another unit, which cannot be added.
    guard let known = histogram, known.unit == other.unit else {
      if histogram == nil { histogram = other }
      return
    }
    histogram?.merge(other)
  }
}
