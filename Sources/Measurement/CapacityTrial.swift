/// One trial of a search for a gateway's capacity: its settings, its counts, and its verdict.
///
/// Values that do not exist, e.g. a recovery without an error, are absent, never 0.
public struct CapacityTrial: Sendable, Equatable, Codable {
  /// Its purpose in the search.
  public enum Purpose: String, Sendable, Codable {
    /// As fast as possible, for a first upper bound.
    case burst
    /// A step of the search.
    case search
    /// A long trial at the rate that was found, and one a step above it.
    case confirm, above
    /// As fast as possible, with other numbers of connections, other batch sizes, or intentional errors.
    case connections, batch, errors
    /// One more point, which a fit has to predict.
    case check
    /// All connections opened at once, with full handshakes.
    case storm
  }

  /// The beginning of a trial, in which its connections are opened, with the counts of that time alone but for `up`.
  public struct Opening: Sendable, Equatable, Codable {
    /// Seconds until every connection had been established, or no more were waited for.
    public var seconds = 0.0
    /// The time over which the attempts to connect were spread.
    public var staggerS = 0.0
    /// Connections that were established, and the part of them that resumed a session.
    public var opened = 0
    public var resumed = 0
    /// Attempts to connect that failed.
    public var failed = 0
    /// Connections that the gateway took, as far as the whole trial shows.
    public var up = 0
    /// Full TLS handshakes, from the TCP connection to their end; absent without any.
    public var handshakeP50Us: Int?
    public var handshakeP99Us: Int?
    /// Cores of this process in use.
    public var cpuCores = 0.0
    /// Share of the time in which its threads were runnable and had no processor.
    public var waitedShare = 0.0
    package init() {}
  }

  /// The verdict on a trial.
  public enum Verdict: String, Sendable, Codable {
    case passed, failed
    /// The trial says nothing about the gateway: the generator had too little processor time or stalled, or the trial
    /// was interrupted.
    case void
    /// There was nothing to pass: it went as fast as possible.
    case measured
  }

  public var number = 0
  public var purpose = Purpose.search
  public var verdict = Verdict.measured
  /// The reasons why it failed or is void.
  public var reasons: [String] = []

  public var connections = 1
  /// The most notifications per write; absent: a full TLS record.
  public var batch: Int?
  /// Absent: as fast as possible.
  public var offeredPerS: Double?
  /// Share that was made bad on purpose.
  public var faultShare = 0.0

  /// Before the measured phase, the phase itself, and from its end until all was proven.
  public var settleS = 0.0
  public var measuredS = 0.0
  public var drainS = 0.0

  /// Counts of the whole trial: distinct notifications and their fates, sendings, and error responses.
  public var notifications = RunResult.Notifications()
  public var sendings = RunResult.Sendings()
  public var errors = 0
  public var connectionsOpened = 0
  public var connectionsFailed = 0
  public var writtenBytes = 0
  /// How its connections were opened; absent in documents from before 0.3.
  public var opening: Opening?

  /// Written in the measured phase.
  public var writtenPerS = 0.0
  /// Accepted in the whole trial, over the time until it was proven: buffers that were filled count for nothing.
  public var acceptedPerS = 0.0
  public var sendLagP50Us = 0
  public var sendLagP99Us = 0
  public var loopLagP99Us = 0
  /// Seconds of the trial, its settling and draining included, in which the generator stalled, and milliseconds of the
  /// longest stall; absent in documents of 0.1.0.
  public var stalledS: Double?
  public var longestStallMs: Double?
  /// Growth of the backlog of due notifications per second; absent without a rate, or with less than 3 seconds.
  public var backlogPerS: Double?
  /// Time from writing the last marker to its answer: the gateway's backlog at the end.
  public var behindMs: Double?
  public var lossMean: Double?
  public var recoverMeanMs: Double?
  public var perWriteMean: Double?
  /// Cores in use in the measured phase, by all processes of the load; absent if that was not measured: a trial of a
  /// command tells it by whole seconds, and a shorter one has none.
  public var cpuCores: Double?
  /// How many cores the load could use.
  public var availableCores = 1
  /// Share of the time in which the generator's threads were runnable and had no processor, because other processes
  /// ran; absent for trials of a command, whose results do not tell it.
  public var waitedShare: Double? = 0.0
  /// The side that kept the rate from being higher, by the result of a trial's command: the generator's, if it was so in
  /// any segment; absent for trials of this process.
  public var limitedBy: RunResult.Verdict.Limit?
  public var cpuPerNotificationUs: Double?
  public var maxRssBytes = 0

  package init() {}

  /// The reason of a trial that was interrupted, which is void.
  package static let interruption = "interrupted"
  public var wasInterrupted: Bool { verdict == .void && reasons == [Self.interruption] }

  /// The proven rate if it passed: the offered notifications, over the time until all were proven.
  public var heldPerS: Double? {
    guard let offeredPerS else { return nil }
    let offered = settleS + measuredS
    return offered > 0 ? offeredPerS * offered / (offered + max(0, drainS)) : offeredPerS
  }

  /// Share of the sendings that were looked at and refused.
  public var errorShare: Double {
    let seen = sendings.accepted + sendings.rejected
    return seen > 0 ? Double(sendings.rejected) / Double(seen) : 0
  }
}
