/// A gateway's verdict on the providers that sent to it: the outcome of each notification over all of its
/// sendings, and what followed error responses.
///
/// It is the outcome of a recording by the same rules (`apnscope follow`), where the gateway's decisions are known and
/// nothing was sent before the recording began. It speaks of one gateway: what a provider sent to another is not in it.
public struct ProviderVerdict: Sendable, Equatable, Codable {
  /// Distinct notifications by outcome.
  public var stories = InspectionReport.Stories()
  /// Sendings of these.
  public var sendings = 0
  /// Sendings that the gateway discarded: written after one that it rejected, or after a shutdown.
  public var discarded = 0
  /// The part of `discarded` that was sent again, with any outcome.
  public var sentAgain = 0
  /// The part of `discarded` that was not sent again, of notifications that were neither accepted nor rejected. What is
  /// in neither part was decided on another connection before the gateway read what it discarded.
  public var notSentAgain = 0
  /// Open notifications of which no sending was accepted or rejected; `nil` in ledgers of 0.2.
  public var undecided: Int?
  /// Seconds from an error response to the sending again of what it discarded.
  public var resend: RecoveryTimes?
  /// Seconds from an error response to the next connection from the same address; `nil` also if not all connections are
  /// listed.
  public var reconnect: RecoveryTimes?
  /// How connections are used.
  public var connections = Connections()
  /// Notifications that ended in one TLS record; without TLS in one read of the socket, which may join several
  /// segments.
  public var notificationsPerRead: Distribution?
  /// Visits of the feedback service, and what was sent regardless of it.
  public var feedback = Feedback()
  /// Requests, answers and tokens of the HTTP/2 provider API; `nil`: there were none.
  public var http2: InspectionReport.Requests?
  /// Error responses of the binary protocol in the order of their connections' ends, up to a limit; without tokens and
  /// payloads.
  public var errors: [InspectionReport.ErrorRow] = []
  public var errorsOmitted = 0
  /// Notifications that arrived and were left out, because the gateway's recorder was behind.
  public var notObserved = 0
  /// Whether events of connections are no longer kept, so that counts of connections and of the feedback service may be
  /// too small; `nil`: all are.
  public var isCut: Bool?
  /// The notifications to each of the tokens that were asked for.
  public var tokens: [Token] = []
  /// Worth a look, losses of notifications first.
  public var findings: [InspectionReport.FindingRow] = []

  /// Counts of connections to the gateway.
  public struct Connections: Sendable, Equatable, Codable {
    /// Connections that carried notifications, and the part of these that carried one.
    public var sending = 0
    public var ofOneNotification = 0
    /// The most connections that were opened within a second.
    public var mostPerSecond = 0
    /// Over the minutes in which any were opened.
    public var opensPerMinute: Distribution?
    package init() {}
  }

  /// Counts of the feedback service.
  public struct Feedback: Sendable, Equatable, Codable {
    public var connections = 0
    public var tuples = 0
    /// Distinct tokens that were listed; notifications that were sent to these later, and their tokens.
    public var listedTokens = 0
    public var sentToListed = 0
    public var sentToListedTokens = 0
    /// Too many tokens were listed to remember all: more may have been sent to.
    public var isCut = false
    package init() {}
  }

  /// Counts of the notifications to some tokens.
  public struct Token: Sendable, Equatable, Codable {
    /// The beginning of the tokens, in lower-case hexadecimal.
    public var prefix: String
    public var sent = 0
    public var accepted = 0
    public var rejected = 0
    package init(prefix: String) { self.prefix = prefix }
  }

  package init() {}

  /// The number of notifications that are lost or may be: no sending of theirs was accepted or rejected.
  public var mayBeLost: Int { sum(stories.lost, undecided ?? stories.notSeenAgain.sum) }
}

extension ProviderVerdict {
  /// The verdict of a trace whose notifications were followed, with the counts of its inspection.
  package init(_ report: TraceReport) {
    let inspection = report.inspection
    if let stories = report.stories {
      self.stories = InspectionReport.Stories(stories)
      (sendings, discarded, sentAgain) = (stories.sendings, stories.discarded, stories.sentAgain)
      (resend, notSentAgain, undecided) = (stories.resend, stories.notSentAgain, stories.undecided)
    }
    let counts = inspection.counts
    connections.sending = counts?.sendingConnections ?? 0
    connections.ofOneNotification = counts?.oneNotificationConnections ?? 0
    connections.mostPerSecond = counts?.opensPerSecond.counts.max() ?? 0
    connections.opensPerMinute = inspection.opensPerMinute
    notificationsPerRead = inspection.notificationsPerSegment
    http2 = inspection.http2
    feedback.connections = inspection.feedbackConnections
    feedback.tuples = inspection.feedbackTuples
    feedback.listedTokens = report.feedback.tokens
    feedback.sentToListed = report.feedback.sentToLater
    feedback.sentToListedTokens = report.feedback.sentToLaterTokens
    feedback.isCut = report.feedback.isCut
    errors = inspection.errors.map { row in
      var row = row
      // A ledger has no private content; records do.
      (row.token, row.payload) = (nil, nil)
      return row
    }
    errorsOmitted = max(0, inspection.errorCount - errors.count)
    // A gateway that nobody sends to is no damaged recording.
    findings = inspection.findings.filter { $0.kind != .nothingRead }
    // The next connection may be one that is not listed.
    if inspection.connectionsNotListed == 0 { takeReconnects(report) }
  }

  /// Finds the connection that followed each error response: the next one from the same address.
  private mutating func takeReconnects(_ report: TraceReport) {
    var clients: [Int: Substring] = [:]
    var opened: [Substring: [Double]] = [:]
    for connection in report.listedConnections where connection.row.service == "gateway" {
      guard let client = connection.row.client, let port = client.lastIndex(of: ":") else { continue }
      let address = client[..<port]
      clients[connection.row.connection] = address
      if let time = connection.course.openedS { opened[address, default: []].append(time) }
    }
    for address in opened.keys { opened[address]?.sort() }
    var delays: [Double] = []
    for (index, error) in report.listedErrors.enumerated() where errors.indices.contains(index) {
      guard let time = error.timeS, let times = clients[error.row.connection].flatMap({ opened[$0] }) else { continue }
      var (low, high) = (0, times.count)
      while low < high {
        let middle = (low + high) / 2
        if times[middle] < time { low = middle + 1 } else { high = middle }
      }
      guard low < times.count else { continue }
      errors[index].reconnectedS = times[low] - time
      delays.append(times[low] - time)
    }
    reconnect = RecoveryTimes(sortedSeconds: delays.sorted())
  }
}
